"""What a search is asked for and what it says: limits in, reports out. Plain data; nothing compiled is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search ends: at the first of its limits that is reached; without any it runs until it is stopped."""

    visits: int | None = None
    """Visits of the root, those kept from an earlier search included."""
    playouts: int | None = None
    """Playouts of this search alone."""
    seconds: float | None = None
    """Wall-clock time from the start of this search."""


@dataclass(frozen=True, slots=True)
class MoveReport:
    """One move of the root. All values are for the side to move at the root."""

    move: int
    """Point on the bordered board, or PASS."""
    visits: int
    """Playouts through the move's child node."""
    winrate: float
    """[0, 1]."""
    utility: float
    """[-1, +1] and somewhat beyond: what the search maximises, value and score together."""
    score_lead: float
    """Points."""
    score_stdev: float
    """Points."""
    prior: float
    """Policy of the network, [0, 1], after noise and temperature."""
    lcb: float
    """Lower confidence bound of the winrate; may leave [0, 1]."""
    utility_lcb: float
    """Lower confidence bound of the utility."""
    order: int
    """0 is the move that would be played."""
    pv: tuple[int, ...]
    """Principal variation, this move first."""
    pv_visits: tuple[int, ...] = ()
    """Visits of the nodes after the moves of `pv`, same length."""
    proven: int = 0
    """+1 this move is proven to win, -1 to lose, 0 open. The pv of a move that wins holds the winner's moves of the
    proof, with the most visited replies; it is shorter than the game where the game itself announces a mate."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """A search as it stands. All values are for the side to move at the root."""

    side_to_move: int
    """BLACK or WHITE."""
    visits: int
    """Visits of the root."""
    playouts: int
    """Playouts since the search started."""
    evaluations: int
    """Positions that the evaluator was asked for since the search started."""
    seconds: float
    """Wall-clock time since the search started."""
    winrate: float
    utility: float
    score_lead: float
    score_stdev: float
    moves: tuple[MoveReport, ...]
    """Visited moves, best first; empty before the root is evaluated and when the game is over."""
    ownership: npt.NDArray[np.float32] | None = None
    """[area], row by row from the top left, +1 the side to move owns the point; None where nobody asked for it."""
    proven: int = 0
    """+1 the side to move is proven to win, -1 to lose, 0 open."""

    @property
    def candidates(self) -> tuple[MoveReport, ...]:
        """The moves that may be drawn by chance: those proven to win, else those not proven to lose, else all."""
        best = max((move.proven for move in self.moves), default=0)
        return tuple(move for move in self.moves if move.proven == best)


@dataclass(frozen=True, slots=True)
class RawEvaluation:
    """One evaluation of a position, without search. Values are for White, as KataGo's `kata-raw-nn` prints them."""

    symmetry: int
    """0..7: the symmetry under which the evaluator saw the board; -1 the average of all. All below is turned back."""
    white_win: float
    """Probability in [0, 1]; with `white_loss` and `no_result` the sum is 1."""
    white_loss: float
    no_result: float
    white_lead: float
    """Points."""
    white_score_selfplay: float
    """Points that self-play would end with on average."""
    white_score_stdev: float
    """Points."""
    white_score_mean_square: float
    """Mean of that score's square."""
    policy: npt.NDArray[np.float32]
    """[area + 1], row by row from the top left, pass last, NaN illegal."""
    white_ownership: npt.NDArray[np.float32]
    """[area], +1 White owns the point."""
    extra: tuple[tuple[str, float], ...] = ()
    """Further outputs of the network by the names that KataGo prints (such as varTimeLeft)."""
