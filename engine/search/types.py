"""What a search says. Plain data; nothing compiled is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from yomi.engine.color import BLACK, opponent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Counts: TypeAlias = tuple[tuple[int, int], ...]
"""(move, visits) of a search, the best first."""


@dataclass(frozen=True, slots=True)
class MoveReport:
    """One move of the root. All values are for the side to move at the root."""

    move: int
    """Point on the bordered board, or PASS."""
    visits: int = 0
    """Playouts through the move."""
    winrate: float = 0.5
    """[0, 1]."""
    utility: float = 0.0
    """[-1, +1] and somewhat beyond: what the search maximises, value and score together."""
    score_lead: float = 0.0
    """Points."""
    score_stdev: float = 0.0
    """Points."""
    prior: float = 0.0
    """Policy of the network, [0, 1], after noise and temperature."""
    lcb: float = 0.5
    """Lower confidence bound of the winrate; may leave [0, 1]."""
    utility_lcb: float = 0.0
    """Lower confidence bound of the utility."""
    order: int = 0
    """0 is the move that would be played."""
    pv: tuple[int, ...] = ()
    """Principal variation, this move first."""
    pv_visits: tuple[int, ...] = ()
    """Playouts through the moves of `pv`, same length."""
    pv_node_visits: tuple[int, ...] = ()
    """Visits of the positions after them."""
    proven: int = 0
    """+1 this move is proven to win, -1 to lose, 0 open. The pv of a move that wins holds the winner's moves of the
    proof, with the most visited replies; it is shorter than the game where the game itself announces a mate."""
    mate: int | None = None
    """Plies to the mate; negative if the side to move is mated; None if none is known."""
    weight: float = 0.0
    """Of the evaluations that the playouts brought; as the visits, if the evaluator does not weigh them."""
    node_visits: int = 0
    """Of the position after it: more, where other lines have come there, too."""
    node_weight: float = 0.0
    """Of all evaluations of that position."""
    wanted: float = 0.0
    """The part of `weight` that the move would have, had the search known from the first what it knows now."""
    symmetry_of: int | None = None
    """The move that was searched in this one's place, since it is the same by a symmetry of the board."""


@dataclass(frozen=True, slots=True)
class SearchReport:
    """A search as it stands. All values are for the side to move at the root."""

    side_to_move: int = BLACK
    """BLACK or WHITE."""
    visits: int = 0
    """Visits of the root."""
    playouts: int = 0
    """Playouts since the search started."""
    evaluations: int = 0
    """Positions that the evaluator was asked for since the search started."""
    seconds: float = 0.0
    """Wall-clock time since the search started."""
    winrate: float = 0.5
    utility: float = 0.0
    score_lead: float = 0.0
    score_stdev: float = 0.0
    moves: tuple[MoveReport, ...] = ()
    """Visited moves, best first; empty before the root is evaluated and when the game is over."""
    deepest: int = 0
    """Length of the longest line searched."""
    fullness: float = 0.0
    """Share of the tree's memory in use, [0, 1]."""
    ownership: npt.NDArray[np.float32] | None = None
    """[area], row by row from the top left, +1 the side to move owns the point; None where nobody asked for it."""
    proven: int = 0
    """+1 the side to move is proven to win, -1 to lose, 0 open."""
    weight: float = 0.0
    """Of the evaluations that the playouts brought; as the visits, if the evaluator does not weigh them."""

    @property
    def counts(self) -> Counts:
        """The visits of the moves that have any."""
        return tuple((move.move, move.visits) for move in self.moves if move.visits)

    @property
    def candidates(self) -> tuple[MoveReport, ...]:
        """The moves that may be drawn by chance: those proven to win, else those not proven to lose, else all."""
        best = max((move.proven for move in self.moves), default=0)
        return tuple(move for move in self.moves if move.proven == best)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search ends: at the first of its limits that is reached; without any it runs until it is stopped."""

    visits: int | None = None
    """Visits of the root, those kept from an earlier search included."""
    playouts: int | None = None
    """Playouts of this search alone."""
    seconds: float | None = None
    """Wall-clock time from the start of this search."""


class SearchableGame(Protocol):
    """A game as the search sees it."""

    position: Any
    """Position record."""
    history: npt.NDArray[Any]
    """uint64[>= history_length of the record]"""
    moves: list[tuple[int, int]]
    """(color, move) from the beginning."""

    @property
    def search_key(self) -> object:
        """Equal keys: equal games but for the moves; a tree may be kept from one to the other."""


@dataclass(frozen=True, slots=True)
class Root:
    """Identity of the position that a tree stands for."""

    key: object
    moves: tuple[tuple[int, int], ...]
    side_to_move: int

    def line_to(self, other: Root) -> list[int] | None:
        """Return the moves that lead from here to `other` with the sides taking turns, or None where none do."""
        count = len(self.moves)
        if self.key != other.key or other.moves[:count] != self.moves:
            return None
        side = self.side_to_move
        line = []
        for color, move in other.moves[count:]:
            if color != side:
                return None
            line.append(move)
            side = opponent(side)
        return line if side == other.side_to_move else None
