"""Types of the benchmarks' own flags, and the options of yomi that each benchmark takes."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Collection

from yomi.engine.options import TABLE
from yomi.engine.players.setup import TUNED


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e6:
        raise ArgumentTypeError(f"expected a positive number of seconds, found {text!r}")
    return value


def winrate(text: str) -> float:
    """Read the winrate of the side that is behind from a command line: from 0 to below 0.5."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 0.5:
        raise ArgumentTypeError(f"expected a winrate from 0 to below 0.5, found {text!r}")
    return value


def count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise ArgumentTypeError(f"expected a positive number, found {text!r}")
    return int(text)


def board(text: str) -> int:
    from yomi.native.go.board import MAX_SIZE, MIN_SIZE  # imports numba

    if not text.isdecimal() or not MIN_SIZE <= int(text) <= MAX_SIZE:
        raise ArgumentTypeError(f"expected a board size of {MIN_SIZE} to {MAX_SIZE}, found {text!r}")
    return int(text)


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
