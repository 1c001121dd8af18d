"""Settings of the search, and how they reach the tree's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from native.tree import arrays

if TYPE_CHECKING:
    from native.tree.arrays import Tree

VISITS_A_ROW = 12
"""A batch takes one leaf for so many visits of the root: a young tree has too few good leaves for a full batch."""
ASSUMED_STDEV = 0.4
"""Spread that the utilities below a node are taken to have while few were seen (KataGo's value)."""
ASSUMED_STDEV_WEIGHT = 2.0
"""Playouts' worth of evidence that stands for (KataGo's value)."""
SYMMETRIES = {"random": -1, "none": 0, "average": -1}


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
        """Put the settings into the tree's parameters; the score's center stays."""
        p = tree.parameters
        p[arrays.C_PUCT] = self.c_puct
        p[arrays.C_PUCT_LOG] = self.c_puct_log
        p[arrays.C_PUCT_BASE] = self.c_puct_base
        p[arrays.ROOT_C_PUCT] = self.c_puct if self.root_c_puct is None else self.root_c_puct
        p[arrays.ROOT_C_PUCT_BASE] = self.c_puct_base if self.root_c_puct_base is None else self.root_c_puct_base
        p[arrays.FPU_REDUCTION] = self.fpu_reduction
        p[arrays.ROOT_FPU_REDUCTION] = self.root_fpu_reduction
        p[arrays.VIRTUAL_LOSS] = self.virtual_loss
        p[arrays.STDEV_PRIOR] = ASSUMED_STDEV
        p[arrays.STDEV_PRIOR_WEIGHT] = ASSUMED_STDEV_WEIGHT
        p[arrays.STDEV_SCALE] = self.spread_scale
        p[arrays.FPU_FROM_MEAN] = 1.0 if self.fpu_from_mean else 0.0
        p[arrays.SCORE_STATIC] = self.score_utility
        p[arrays.SCORE_DYNAMIC] = self.dynamic_score_utility
        p[arrays.SCORE_UNIT] = score_unit
        p[arrays.POLICY_TEMPERATURE] = self.policy_temperature
        p[arrays.ROOT_POLICY_TEMPERATURE] = self.root_policy_temperature
        p[arrays.SYMMETRY] = SYMMETRIES[self.symmetry]
        p[arrays.ROWS_A_LEAF] = self.rows_a_leaf
        p[arrays.MAX_COLLISIONS] = 8.0
        p[arrays.VISITS_A_ROW] = VISITS_A_ROW
        p[arrays.SOLVER] = 1.0 if self.solver else 0.0
        p[arrays.OWNERSHIP] = 1.0 if self.ownership else 0.0

    @property
    def rows_a_leaf(self) -> int:
        """Rows of a batch that one leaf takes."""
        return 8 if self.symmetry == "average" else 1
