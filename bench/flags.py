"""Types of the benchmarks' own flags, and the options of yomi that each benchmark takes."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Collection
from typing import Any

from yomi.engine.cli.flags import type_of
from yomi.engine.options import TABLE
from yomi.engine.players.setup import TUNED
from yomi.settings import Setting


def _within(kind: str, low: float, high: float) -> Callable[[str], Any]:
    """Return a type of numbers from `low` to `high`. `kind` is that of a Setting: int or real."""
    return type_of(Setting("", kind, False, None, "", low=low, high=high).parse, ": ")


positive = _within("real", 1e-6, 1e6)
winrate = _within("real", 0, 0.499)  # of the side that is behind
count = _within("int", 1, 10**9)
board = type_of(TABLE["size"].parse, "size: ")


def network(text: str) -> tuple[int, int]:
    blocks, _, channels = text.partition("x")
    if not (blocks.isdecimal() and channels.isdecimal() and int(channels)):
        raise ArgumentTypeError(f"expected blocks x channels such as 10x192, found {text!r}")
    return int(blocks), int(channels)


# Options that a level or the ladder sets.
BY_LEVEL = (
    *("seconds", "visits", "playouts", "temperature", "temperature_moves", "workers", "memory", "seed", "ponder"),
    "level",
)
# Options of the evaluation and its batches.
EVALUATOR_OPTIONS = (
    *TUNED,
    *("net", "value_net", "evaluator", "devices", "device_workers", "symmetry", "rollout_weight", "seed", "size"),
)
# Options of `bench nps`, for the evaluation and the tree. It searches for a given time, without noise.
SEARCH_OPTIONS = (
    *EVALUATOR_OPTIONS,
    *("cache_size", "memory", "c_puct", "c_puct_log", "c_puct_base", "root_c_puct", "root_c_puct_base"),
    *("fpu_reduction", "root_fpu_reduction", "virtual_loss", "score_utility", "dynamic_score_utility"),
    *("policy_temperature", "root_policy_temperature", "leaf_mate_depth"),
)
PRECISION_OPTIONS = ("net", "device", "devices", "backend", "precision", "batch_size", "size")
# Options of `bench gpu`, which has networks of its own.
GPU_OPTIONS = (*TUNED, "devices", "device_workers", "memory")

RULES = ("size", "komi", "rules", "entering_king")


def all_but(names: Collection[str]) -> list[str]:
    """Return the options that a command must leave out in order to take only `names`."""
    return [name for name in TABLE if name not in names]
