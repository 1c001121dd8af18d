"""Games of Go of the engine against itself, for `yomi selfplay`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from yomi.engine.clients.client import Evaluation
from yomi.engine.go.game import new_game
from yomi.engine.go.referee import sgf_result
from yomi.engine.go.sgf import to_sgf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yomi.engine.go.game import GoGame
    from yomi.engine.options import Options
    from yomi.engine.play import Ended
    from yomi.engine.players.request import Decision
    from yomi.engine.search.types import Counts


class GoRecorder:
    """See yomi.engine.game.Recorder: games from an empty board, as SGF."""

    row_bytes: Mapping[str, int] = {}

    def __init__(self, options: Options) -> None:
        """Begin games by size, rules and komi of the options."""
        self._options = options
        self._comments = [""]
        self._counts: list[Counts] = []

    def begin(self, number: int) -> GoGame:
        """Return an empty board."""
        self._comments, self._counts = [""], []
        return new_game(self._options)

    def record(self, game: GoGame, decision: Decision, seconds: float) -> None:
        """Keep winrate, lead and visits for the comment of the move, and the visits of all moves."""
        report = decision.report
        self._comments.append(str(Evaluation(report.winrate, report.score_lead, report.visits)))
        self._counts.append(report.counts)

    def files(self, game: GoGame, ended: Ended, name: str) -> dict[str, bytes]:
        """Return the SGF."""
        date, result = time.strftime("%Y-%m-%d"), sgf_result(ended)
        text = to_sgf(game, self._comments, self._counts, black=name, white=name, result=result, date=date)
        return {".sgf": text.encode("utf-8")}
