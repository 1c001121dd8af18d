"""Ending games that both engines take for decided."""

from __future__ import annotations

from engine.matches.answers import Evaluation


class Adjudicator:
    """Watches the evaluations of one game."""

    def __init__(self, threshold: float | None, moves: int) -> None:
        """Make it.

        Args:
            threshold: winrate in (0, 0.5) below which a side counts as lost; None never ends a game.
            moves: moves of each side, one after the other, for which both engines must agree.
        """
        self.threshold = threshold
        self.moves = moves
        self._in_a_row = {1: 0, 2: 0}
        """Plies for which a color has been lost, as both say."""

    def loser(self, color: int, evaluation: Evaluation | None) -> int:
        """Take the evaluation of `color`, which has just moved, and return who has lost; 0 for nobody yet."""
        if self.threshold is None:
            return 0
        winrate = None if evaluation is None else evaluation.winrate
        for loser in (1, 2):
            seen = winrate if color == loser or winrate is None else 1.0 - winrate
            self._in_a_row[loser] = self._in_a_row[loser] + 1 if seen is not None and seen < self.threshold else 0
            if self._in_a_row[loser] >= 2 * self.moves:
                return loser
        return 0
