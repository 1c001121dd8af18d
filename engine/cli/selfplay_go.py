"""How `yomi selfplay go` plays a game."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.cli.make import load_player
from engine.cli.selfplay_games import Played
from engine.clients.answers import Evaluation
from engine.color import BLACK, WHITE
from engine.go.descriptor import GAME
from engine.go.game import new_game
from engine.go.referee import sgf_result
from engine.go.sgf import to_sgf
from engine.play import PlayerSide, play_game

if TYPE_CHECKING:
    from engine.go.players.player import GoPlayer
    from engine.options import Options
    from engine.players.request import Decision


class GoSeries:
    """Games from an empty board by the size, rules and komi of the player's options."""

    def __init__(self, player: GoPlayer) -> None:
        """Let `player` play both sides."""
        self.player = player

    @classmethod
    def open(cls, options: Options) -> GoSeries:
        """Return games of the player that the options describe.

        Raises:
            CliError: it cannot be made.
        """
        return cls(load_player("go", options))

    def play(self, number: int) -> Played:
        """Play one game."""
        player = self.player
        game = new_game(player.options)
        player.new_game(game)
        comments = [""]

        def record(decision: Decision, seconds: float) -> None:
            report = decision.report
            comments.append(str(Evaluation(report.winrate, report.score_lead, report.visits)))

        side = PlayerSide(player)
        ended = play_game(game, {BLACK: side, WHITE: side}, GAME.referee(player), record)
        name, date = player.description, time.strftime("%Y-%m-%d")
        text = to_sgf(game, comments, black=name, white=name, result=sgf_result(ended), date=date)
        return Played(ended.winner, len(game.moves), {".sgf": text.encode("utf-8")})

    def close(self) -> None:
        """Release the engine."""
        self.player.close()
