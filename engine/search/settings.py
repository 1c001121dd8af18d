"""Settings of the search, made from the table of options, and their way into the tree's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yomi.engine.options import TABLE, SearchOptions

if TYPE_CHECKING:
    from yomi.native.tree.arrays import Tree


@dataclass
class SearchSettings(SearchOptions):
    """The search's options without a none, and settings that are no options. yomi.engine.players.setup makes them."""

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
        """Rows of a batch for one leaf."""
        return 8 if self.symmetry == "average" else 1

    def parameter(self, name: str) -> Any:
        """Return a setting as kernels read it: a choice as its number, none at the root as the value elsewhere."""
        value = getattr(self, name)
        if value is None:
            value = getattr(self, name.removeprefix("root_"))
        return TABLE[name].code(value) if isinstance(value, str) else value

    def write(self, tree: Tree, score_unit: float) -> None:
        """Write the settings into the tree's parameters of the same names. `score_unit` is that of the GameSpec."""
        parameters = tree.parameters[0]
        for name in parameters.dtype.names:
            parameters[name] = score_unit if name == "score_unit" else self.parameter(name)
