"""Which of yomi's options each benchmark takes."""

from __future__ import annotations

from collections.abc import Collection

from yomi.engine.options import TABLE
from yomi.engine.players.setup import TUNED

BY_LEVEL = (
    "seconds",
    "visits",
    "playouts",
    "temperature",
    "temperature_moves",
    "workers",
    "memory",
    "seed",
    "ponder",
    "level",
)
"""Options that a level, or the ladder, sets."""
EVALUATOR_OPTIONS = (
    *TUNED,
    *("net", "value_net", "evaluator", "devices", "device_workers", "symmetry", "rollout_weight", "seed", "size"),
)
"""What decides how positions are evaluated, and how many at once."""
SEARCH_OPTIONS = (
    *EVALUATOR_OPTIONS,
    *("cache_size", "memory", "c_puct", "c_puct_log", "c_puct_base", "root_c_puct", "root_c_puct_base"),
    *("fpu_reduction", "root_fpu_reduction", "virtual_loss", "score_utility", "dynamic_score_utility"),
    *("policy_temperature", "root_policy_temperature", "leaf_mate_depth"),
)
"""And what decides how the tree grows; `bench nps` searches for a given time, without noise."""
PRECISION_OPTIONS = ("net", "device", "devices", "backend", "precision", "batch_size", "size")
GPU_OPTIONS = (*TUNED, "devices", "device_workers", "memory")
"""What `bench gpu` lets the user choose; the networks are its own."""

RULES = ("size", "komi", "rules", "entering_king")


def all_but(names: Collection[str]) -> list[str]:
    """Return the options to leave out where only those named mean something."""
    return [name for name in TABLE if name not in names]
