"""Settings of the search, and how they reach the tree's parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from native.tree.parameters import RANDOM_SYMMETRY

if TYPE_CHECKING:
    from native.tree.arrays import Tree

SYMMETRIES = {"random": RANDOM_SYMMETRY, "none": 0, "average": RANDOM_SYMMETRY}


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What decides how a search goes; the names are those of the table of options, where they are explained."""

    workers: int = 1
    batches_in_flight: int = 1
    memory: int = 2**30
    cache_size: int = 64 * 2**20
    symmetry: str = "random"
    """random, none or average."""
    c_puct: float = 1.0
    c_puct_log: float = 0.45
    c_puct_base: float = 500.0
    root_c_puct: float | None = None
    root_c_puct_base: float | None = None
    fpu_reduction: float = 0.2
    root_fpu_reduction: float = 0.1
    virtual_loss: float = 1.0
    score_utility: float = 0.1
    dynamic_score_utility: float = 0.3
    policy_temperature: float = 1.0
    root_policy_temperature: float = 1.0
    root_noise: float = 0.0
    root_noise_total: float = 10.83
    fpu_from_mean: bool = False
    """Measure first-play urgency from the mean of the playouts alone: a single rollout says too little of a node."""
    spread_scale: float = 0.85
    """How far the spread of the utilities below a node scales exploration there; 0 to 1 (KataGo's value)."""
    solver: bool = False
    """Take games that are over with a value of exactly +1 or -1 for proofs, of the nodes above them too. Not for games
    whose score counts beyond the win."""
    use_lcb: bool = True
    ownership: bool = True
    seed: int | None = None

    def write(self, tree: Tree, score_unit: float) -> None:
        """Put the settings into the tree's parameters, each into the field of its name.

        Args:
            tree: the tree.
            score_unit: see GameSpec.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "root_c_puct": self.c_puct if self.root_c_puct is None else self.root_c_puct,
            "root_c_puct_base": self.c_puct_base if self.root_c_puct_base is None else self.root_c_puct_base,
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
