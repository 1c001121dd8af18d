"""The networks that come with yomi, by game. How they were trained: nets/README.md."""

from __future__ import annotations

from pathlib import Path

MODELS = {"go": "yomi-go-b6c96.bin.gz"}


def default_network(game: str) -> Path | None:
    """Return the network that plays a game where none is named; None where there is none yet."""
    return Path(__file__).parent / MODELS[game] if game in MODELS else None
