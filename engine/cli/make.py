"""Making what the commands use. Imports numba and onnxruntime only when called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.options import Options

if TYPE_CHECKING:
    from engine.players.base import Player


def make_player(options: Options) -> Player:
    """Return the player of Go that the options describe; slow (kernels and the network are loaded)."""
    from engine.players.go import GoPlayer

    return GoPlayer(options)
