"""How `yomi selfplay go` plays a game."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.cli.make import load_go_player
from engine.cli.selfplay_games import Played
from engine.color import BLACK, opponent
from engine.games.go.game import new_game, score_text
from engine.games.go.scoring import removed_stones
from engine.games.go.sgf import to_sgf
from engine.matches.answers import Evaluation
from engine.players.request import Request

if TYPE_CHECKING:
    from engine.options import Options
    from engine.players.go import GoPlayer

MOVES_PER_POINT = 3.0
"""Moves for each point of the board after which a game is scored as it stands."""


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
        return cls(load_go_player(options))

    def play(self, number: int) -> Played:
        """Play one game."""
        player = self.player
        game = new_game(player.options)
        player.new_game(game)
        comments = [""]
        resigned = 0
        while not game.is_over and len(game.moves) < MOVES_PER_POINT * game.size**2:
            color = game.side_to_move
            decision = player.decide(Request(game, hide_moves=player.options.ignore_pre_root_history))
            if decision.resign or decision.move is None:
                resigned = color
                break
            game.play(color, decision.move)
            report = decision.report
            comments.append(str(Evaluation(report.winrate, report.score_lead, report.visits)))
        if resigned:
            winner, result = opponent(resigned), "W+R" if resigned == BLACK else "B+R"
        elif game.is_no_result:
            winner, result = 0, "Void"
        else:
            score = game.final_score(removed_stones(game, lambda: player.final_ownership(game)))
            winner, result = (1 if score > 0 else 2 if score < 0 else 0), score_text(score)
        name = player.description
        text = to_sgf(game, comments, black=name, white=name, result=result, date=time.strftime("%Y-%m-%d"))
        return Played(winner, len(game.moves), {".sgf": text.encode("utf-8")})

    def close(self) -> None:
        """Release the engine."""
        self.player.close()
