"""Shogi's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.game import Game
from engine.shogi.game import ShogiGame
from engine.shogi.networks import FORMATS
from engine.shogi.notation import format_usi
from engine.shogi.players.player import ShogiPlayer
from engine.shogi.referee import ShogiReferee
from engine.shogi.sfen import START_WORD, STARTPOS

if TYPE_CHECKING:
    from engine.options import Options


class Shogi(Game[ShogiGame, ShogiPlayer]):
    """Shogi."""

    name = "shogi"
    formats = FORMATS

    def new_game(self, options: Options) -> ShogiGame:
        """Return the usual position under the options' rules."""
        return ShogiGame(STARTPOS, entering_king=options.entering_king, max_moves=options.max_moves or 0)

    def make_player(self, options: Options) -> ShogiPlayer:
        """Return a player of shogi."""
        return ShogiPlayer(options)

    def referee(self, player: ShogiPlayer) -> ShogiReferee:
        """Return a referee, who needs no player's verdict."""
        return ShogiReferee()

    def format_opening(self, game: ShogiGame) -> str:
        """Return `startpos moves ...` in USI."""
        return f"{START_WORD} moves {' '.join(format_usi(move) for _, move in game.moves)}"


GAME = Shogi()
