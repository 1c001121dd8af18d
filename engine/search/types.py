"""Games, settings, limits and reports of the search. Plain data: nothing compiled is imported."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from yomi.engine.color import BLACK
from yomi.engine.options import TABLE, SearchOptions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.native.tree.arrays import Tree

Counts: TypeAlias = tuple[tuple[int, int], ...]  # (move, visits), best first


@dataclass(frozen=True, slots=True)
class Owners:
    """Mean ownership of some evaluations, for the side to move at the root. Points are row by row from the top left."""

    mean: npt.NDArray[np.float32]  # [area], +1: the side to move owns the point
    stdev: npt.NDArray[np.float32]  # [area]
    no_result: float  # mean probability of a game without result


@dataclass(frozen=True, slots=True)
class MoveReport:
    """Report of one root move. All values are for the side to move at the root."""

    move: int  # point on the bordered board, or PASS
    visits: int = 0  # playouts through the move
    winrate: float = 0.5  # [0, 1]
    utility: float = 0.0  # what the search maximizes, value and score together: [-1, +1] and slightly beyond
    score_lead: float = 0.0  # points
    score_stdev: float = 0.0  # points
    prior: float = 0.0  # policy of the network, [0, 1], after noise and temperature
    lcb: float = 0.5  # lower confidence bound of the winrate; may leave [0, 1]
    utility_lcb: float = 0.0  # lower confidence bound of the utility
    order: int = 0  # 0: the move to play
    pv: tuple[int, ...] = ()  # principal variation, this move first
    pv_visits: tuple[int, ...] = ()  # playouts through the moves of `pv`
    pv_node_visits: tuple[int, ...] = ()  # visits of the positions after them
    # +1: proven win; -1: proven loss; 0: open. The pv of a win contains the winner's moves of the proof and the most
    # visited replies. It is shorter than the game if the game itself announces a mate.
    proven: int = 0
    mate: int | None = None  # plies to the mate, negative if the side to move is mated; None: unknown
    bound: int = 0  # +1: the winrate is at least this; -1: at most (alpha-beta, before a depth is finished)
    weight: float = 0.0  # of the playouts' evaluations; equals the visits if the evaluator does not weigh
    node_visits: int = 0  # of the position after it: more than `visits` if other lines lead there
    node_weight: float = 0.0  # of all evaluations of that position
    # part of `weight` that the move would have if the search had known its current values from the start
    wanted: float = 0.0
    symmetry_of: int | None = None  # the equivalent move that was searched instead
    owners: Owners | None = None  # of the evaluations below the move; None if there are none or they are not counted


@dataclass(frozen=True, slots=True)
class SearchReport:
    """State of a search. All values are for the side to move at the root."""

    side_to_move: int = BLACK  # BLACK or WHITE
    visits: int = 0  # of the root; see `unit`
    playouts: int = 0  # since the search started
    evaluations: int = 0  # positions evaluated since the search started
    seconds: float = 0.0  # since the search started
    winrate: float = 0.5
    utility: float = 0.0
    score_lead: float = 0.0
    score_stdev: float = 0.0
    # Visited moves, best first; empty before the root is evaluated and when the game is over.
    moves: tuple[MoveReport, ...] = ()
    deepest: int = 0  # length of the longest searched line
    depth: int = 0  # plies that an alpha-beta search has searched completely; 0: a tree, which has no such depth
    time_share: float = 1.0  # alpha-beta: share of a move's usual time after which this search may end
    spread: tuple[float, float] | None = None  # least and greatest winrate of its last depths; None: a tree
    fullness: float = 0.0  # used share of the tree's memory, [0, 1]
    # [area], row by row from the top left, +1: the side to move owns the point; None if it was not computed.
    ownership: npt.NDArray[np.float32] | None = None
    # [area]: standard deviation of the evaluations' ownership; None without SearchSettings.move_ownership.
    ownership_stdev: npt.NDArray[np.float32] | None = None
    proven: int = 0  # of the side to move: +1 win, -1 loss, 0 open
    weight: float = 0.0  # of the playouts' evaluations
    unit: str = "visits"  # what the counts count: visits, or nodes of an alpha-beta search

    @property
    def counts(self) -> Counts:
        """Moves of the report with their visits."""
        return tuple((move.move, move.visits) for move in self.moves if move.visits)

    @property
    def candidates(self) -> tuple[MoveReport, ...]:
        """Moves from which a move may be drawn: proven wins, otherwise moves without a proven loss, otherwise all."""
        best = max((move.proven for move in self.moves), default=0)
        return tuple(move for move in self.moves if move.proven == best)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a search, which ends at the first of them. Without limits it runs until it is stopped."""

    visits: int | None = None  # of the root, including those kept from an earlier search
    playouts: int | None = None  # of this search alone
    seconds: float | None = None  # from the start of this search
    depth: int | None = None  # plies of alpha-beta, or moves of the principal variation of a tree

    def least(self, other: Any) -> Limits:
        """Return the lower of each pair of limits. `other` has fields of the same names: Limits or Options."""
        both = {row.name: (getattr(self, row.name), getattr(other, row.name)) for row in fields(self)}
        return Limits(**{name: min((n for n in pair if n is not None), default=None) for name, pair in both.items()})


@dataclass(frozen=True, slots=True)
class RootMoves:
    """Which moves of the root are searched, and whether their priors get noise."""

    allow: Collection[int] | None = None  # the only moves that are searched; None: all
    avoid: Collection[int] = ()  # moves that are not searched
    prune: Collection[int] = ()  # further moves that are not searched. A tree keeps their earlier results
    noise: bool = False  # mix the settings' Dirichlet noise into the priors

    def of(self, moves: Iterable[int]) -> list[int]:
        """Return the searched moves among `moves`."""
        allow, omitted = None if self.allow is None else set(self.allow), {*self.avoid, *self.prune}
        return [move for move in moves if move not in omitted and (allow is None or move in allow)]


ALL_MOVES = RootMoves()


@dataclass
class SearchSettings(SearchOptions):
    """The settings of a search: its options, with a value for each (never None), and settings that are not options.

    yomi.engine.players.setup creates them.
    """

    workers: int = 1
    batches_in_flight: int = 1
    c_puct: float = 1.0  # KataGo's value
    # Measure first-play urgency from the mean of the playouts, because a single rollout says little.
    fpu_from_mean: bool = False
    # How far the spread of the utilities below a node scales exploration there; 0 to 1.
    spread_scale: float = 0.85  # KataGo's value
    # Self-play: a tried root move gets at least sqrt(this * prior * playouts) playouts.
    forced_playouts: float = 0.0
    # Self-play: the playouts of the root go to its allowed moves in turn, for sequential halving.
    halving: bool = False
    # Games that are over with a value of exactly +1 or -1 prove the nodes above them. Not for games whose score counts
    # beyond the win.
    solver: bool = False
    # Moves that an alpha-beta search ranks. A tree ranks all.
    best_moves: int = 1
    # Add up the evaluator's ownership of every point.
    ownership: bool = True
    # Also measure how far it spreads, and both below each root move.
    move_ownership: bool = False

    @property
    def root_temperature(self) -> float:
        return float(self.parameter("root_policy_temperature"))

    @property
    def rows_per_leaf(self) -> int:
        """Number of rows in a batch for one leaf."""
        return 8 if self.symmetry == "average" else 1

    def parameter(self, name: str) -> Any:
        """Return a setting as kernels read it: a choice as a number, an empty root setting as the value elsewhere."""
        value = getattr(self, name)
        if value is None:
            value = getattr(self, name.removeprefix("root_"))
        return TABLE[name].code(value) if isinstance(value, str) else value

    def write(self, tree: Tree, score_unit: float) -> None:
        """Write the settings into the tree's parameters of the same names. `score_unit` is the GameSpec's."""
        parameters = tree.parameters[0]
        for name in parameters.dtype.names:
            parameters[name] = score_unit if name == "score_unit" else self.parameter(name)


class SearchableGame(Protocol):
    position: Any  # position record
    history: npt.NDArray[Any]  # uint64[>= history_length of the record]
    moves: list[tuple[int, int]]  # (color, move) from the start

    @property
    def search_key(self) -> object:
        """Games with equal keys differ only in their moves, so a tree may be kept from one to the other."""
