"""The networks that come with yomi, by game. How they were trained: nets/README.md."""

from __future__ import annotations

from pathlib import Path

MODELS = {"go": "yomi-go-b6c96.bin.gz", "shogi": "yomi-shogi-6x64.onnx"}


def default_network(game: str) -> Path:
    """Return the network that plays a game where none is named."""
    return Path(__file__).parent / MODELS[game]
