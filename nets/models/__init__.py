"""The networks that come with yomi, by game. How they were trained: nets/README.md."""

from __future__ import annotations

from pathlib import Path

PRECISION_DIR = Path(__file__).parent / "precision"
"""How exact these networks are with fewer bits: the files that `engine.players.precision` keeps of any network."""

MODELS = {"go": "katago-b10c384h6nbttflrs.bin.xz", "shogi": "yomi-shogi-6x64.onnx"}
"""For every device."""
FOR_PROCESSORS = {"shogi": "yomi-shogi-sparse.safetensors"}
"""What is stronger where yomi's own kernels compute it on a processor, and cannot be computed elsewhere."""
FOR_LEVELS = {"go": "yomi-go-b6c96.bin.gz", "shogi": "yomi-shogi-6x64.onnx"}
"""What plays at levels below full strength, on every device: their Elo was measured with these."""


def default_network(game: str, *, on_processor: bool = False) -> Path:
    """Return the network that plays a game where none is named.

    Args:
        game: go or shogi.
        on_processor: yomi's own kernels compute it, in integers.
    """
    names = MODELS | FOR_PROCESSORS if on_processor else MODELS
    return Path(__file__).parent / names[game]


def network_of_levels(game: str) -> Path | None:
    """Return the network that plays a game at levels below full strength; None for a game without one."""
    return Path(__file__).parent / FOR_LEVELS[game] if game in FOR_LEVELS else None
