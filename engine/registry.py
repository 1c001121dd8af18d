"""The games that yomi plays, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import game_of_network
from yomi.engine.game import Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.shogi.descriptor import GAME as SHOGI

if TYPE_CHECKING:
    from yomi.nets.sparse import SparseEncoder

__all__ = ["GAMES", "GO", "SHOGI", "find_encoder", "game_of_network"]

# To add a game, insert it before a command runs.
GAMES: dict[str, Game[Any, Any]] = {game.name: game for game in (GO, SHOGI)}


def find_encoder(name: str) -> SparseEncoder | None:
    """Return the encoder that turns boards into a feature set for sparse networks, or None if no game has this set."""
    from yomi.nets.metadata import feature_set

    return GAMES[feature_set(name).game].encoder(name)
