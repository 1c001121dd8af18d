"""The networks that come with yomi, by game. How they were trained: nets/README.md."""

from __future__ import annotations

from pathlib import Path

PRECISION_DIR = Path(__file__).parent / "precision"
"""How exact these networks are with fewer bits: the files that `engine.players.precision` keeps of any network."""

MODELS = {"go": "yomi-go-b6c96.bin.gz", "shogi": "yomi-shogi-6x64.onnx"}


def default_network(game: str) -> Path:
    """Return the network that plays a game where none is named."""
    return Path(__file__).parent / MODELS[game]
