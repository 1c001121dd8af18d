"""Go's descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.game import Game
from engine.go.game import GoGame, new_game
from engine.go.networks import FORMATS
from engine.go.players.player import GoPlayer
from engine.go.referee import GoReferee
from engine.go.scoring import removed_stones
from engine.go.vertex import format_vertex
from native.go.board import PASS

if TYPE_CHECKING:
    from engine.options import Options


class Go(Game[GoGame, GoPlayer]):
    """Go on boards of all sizes."""

    name = "go"
    formats = FORMATS
    idle_moves = (PASS,)

    def new_game(self, options: Options) -> GoGame:
        """Return an empty board."""
        return new_game(options)

    def make_player(self, options: Options) -> GoPlayer:
        """Return a player of Go."""
        return GoPlayer(options)

    def referee(self, player: GoPlayer) -> GoReferee:
        """Return a referee that takes dead stones off as the player judges them, if the rules have agreement."""
        return GoReferee(lambda game: game.final_score(removed_stones(game, lambda: player.final_ownership(game))))

    def format_opening(self, game: GoGame) -> str:
        """Return the vertices of the moves."""
        return " ".join(format_vertex(move, game.size) for _, move in game.moves)


GAME = Go()
