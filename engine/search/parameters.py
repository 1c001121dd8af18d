"""Settings of the search, made from the table of options, and how they reach the tree's parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from yomi.engine.options import SearchOptions
from yomi.native.tree.arrays import RANDOM_SYMMETRY

if TYPE_CHECKING:
    from yomi.native.tree.arrays import Tree

SYMMETRIES = {"random": RANDOM_SYMMETRY, "none": 0, "average": RANDOM_SYMMETRY}


@dataclass
class SearchSettings(SearchOptions):
    """What decides how a search goes: the options that it goes by, with what they leave open, and what is no option.

    The defaults are those of the options in Go. A player's settings are made by yomi.engine.players.setup.
    """

    workers: int = 1
    batches_in_flight: int = 1
    c_puct: float = 1.0
    """KataGo's value."""
    fpu_from_mean: bool = False
    """Measure first-play urgency from the mean of the playouts alone: a single rollout says too little of a node."""
    spread_scale: float = 0.85
    """How far the spread of the utilities below a node scales exploration there; 0 to 1 (KataGo's value)."""
    forced_playouts: float = 0.0
    """In self-play, playouts that a root move gets once it was tried: sqrt(this * prior * playouts), at least."""
    halving: bool = False
    """In self-play, playouts of the root go to the moves that are not banned in turn: for sequential halving."""
    solver: bool = False
    """Take games that are over with a value of exactly +1 or -1 for proofs, of the nodes above them too. Not for games
    whose score counts beyond the win."""
    ownership: bool = True
    """Add up the evaluator's ownership of every point."""

    @property
    def root_temperature(self) -> float:
        """Temperature of the policy at the root."""
        own = self.root_policy_temperature
        return self.policy_temperature if own is None else own

    def write(self, tree: Tree, score_unit: float) -> None:
        """Put the settings into the tree's parameters, each into the field of its name.

        Args:
            tree: the tree.
            score_unit: see GameSpec.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "root_c_puct": self.c_puct if self.root_c_puct is None else self.root_c_puct,
            "root_c_puct_base": self.c_puct_base if self.root_c_puct_base is None else self.root_c_puct_base,
            "root_policy_temperature": self.root_temperature,
            "score_unit": score_unit,
            "symmetry": SYMMETRIES[self.symmetry],
            "rows_per_leaf": self.rows_per_leaf,
        }
        parameters = tree.parameters[0]
        for name in parameters.dtype.names:
            parameters[name] = values[name]

    @property
    def rows_per_leaf(self) -> int:
        """Rows of a batch that one leaf takes."""
        return 8 if self.symmetry == "average" else 1
