"""The games that yomi plays, by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import named_file
from yomi.engine.game import Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.shogi.descriptor import GAME as SHOGI

if TYPE_CHECKING:
    from yomi.nets.sparse import SparseEncoder

__all__ = ["GAMES", "GO", "SHOGI", "find_encoder", "game_of_network"]

# To add a game, insert it before a command runs.
GAMES: dict[str, Game[Any, Any]] = {game.name: game for game in (GO, SHOGI)}


def find_encoder(name: str) -> SparseEncoder | None:
    """Return the sparse encoder of a feature set, or None if it has none."""
    from yomi.nets.metadata import feature_set

    return GAMES[feature_set(name).game].encoder(name)


def game_of_network(name: str) -> str | None:
    """Return the game of a network, or None if no file has this name (such as `none`). Raises NetworkError."""
    from yomi.nets.load import game_of

    path = Path(named_file(name, None))
    return game_of(path) if path.is_file() else None
