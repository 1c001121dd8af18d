"""The games that yomi plays, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import game_of_network
from yomi.engine.game import Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.nets.user_files import is_in_file
from yomi.settings import OptionError

if TYPE_CHECKING:
    from yomi.nets.sparse import SparseEncoder

__all__ = ["GAMES", "GO", "SHOGI", "find_encoder", "find_game", "game_of_network"]

# To add a game, insert it before a command runs.
GAMES: dict[str, Game[Any, Any]] = {game.name: game for game in (GO, SHOGI)}


def find_game(name: str) -> Game[Any, Any]:
    """Return a game of GAMES by its name, or the game `FILE.py:NAME`, which is not one of them.

    Raises:
        OptionError: there is no such game.
    """
    if is_in_file(name):
        from yomi.engine.board_game.descriptor import game_of_file

        return game_of_file(name)
    if name not in GAMES:
        raise OptionError(f"game {name!r} found, expected one of {', '.join(GAMES)}, or FILE.py:NAME")
    return GAMES[name]


def find_encoder(name: str) -> SparseEncoder | None:
    """Return the encoder that turns boards into a feature set for sparse networks, or None if no game has this set."""
    from yomi.nets.metadata import feature_set

    return GAMES[feature_set(name).game].encoder(name)
