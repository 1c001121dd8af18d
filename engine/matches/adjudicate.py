"""How games are refereed, whichever they are; and ending those that both engines take for decided."""

from __future__ import annotations

from dataclasses import dataclass

from engine.clients.answers import Evaluation
from engine.clients.process import TIMEOUT
from engine.color import BLACK, WHITE, opponent


@dataclass(frozen=True, slots=True)
class RefereeSettings:
    """What the referees of both games have in common."""

    margin: float = 0.0
    """Seconds that a move may take beyond its time."""
    timeout: float = TIMEOUT
    """Seconds beyond its time after which a silent engine counts as hanging."""
    resign_below: float | None = None
    """Winrate below which a side counts as lost; None: only players resign."""
    resign_moves: int = 3
    """Moves of each side for which both engines must agree."""

    def adjudicator(self) -> Adjudicator:
        """Return what watches one game."""
        return Adjudicator(self.resign_below, self.resign_moves)


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
        self._in_a_row = {BLACK: 0, WHITE: 0}
        """Plies for which a color has been lost, as both say."""

    def loser(self, color: int, evaluation: Evaluation | None) -> int:
        """Return who has lost now that `color` has moved: the side to move, or 0 for nobody yet.

        Args:
            color: has just moved.
            evaluation: what it said of its move; None for nothing.
        """
        if self.threshold is None:
            return 0
        winrate = None if evaluation is None else evaluation.winrate
        for side in (BLACK, WHITE):
            seen = winrate if color == side or winrate is None else 1.0 - winrate
            self._in_a_row[side] = self._in_a_row[side] + 1 if seen is not None and seen < self.threshold else 0
        return opponent(color) if self._in_a_row[opponent(color)] >= 2 * self.moves else 0
