"""The functions of a game that the search tree calls, on a position record and its history.

A game registers its kernels with `implement`. A history is a uint64 array. `play` appends to it and never changes
existing entries. A copy of a position may therefore share the array and be played on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from yomi.native.jit import IS_PLAIN

# The tree calls the kernels by address (yomi.native.game_calls), so that it is compiled once for all games. All run
# without the GIL.

# Record type -> function name -> kernel.
IMPLEMENTATIONS: dict[Any, dict[str, Callable[..., Any]]] = {}
HOMES: dict[Any, Path] = {}  # record type -> file of the game's kernels


def copy(target: Any, source: Any) -> None:
    raise NotImplementedError


def play(pos: Any, history: Any, move: int) -> None:
    raise NotImplementedError


def legal_moves(pos: Any, history: Any, moves: Any) -> int:
    """Write the legal moves (uint16) of the side to move into `moves` and return their number.

    A game may leave out moves that are never better than another move, but not all moves.
    """
    raise NotImplementedError


def outcome(pos: Any, history: Any) -> tuple[int, float, float]:
    """Return (state, value, score) for the side to move.

    The state is ONGOING, OVER (value in [-1, 1] and score are exact) or OVER_UNSCORED (the evaluator's value of this
    position counts).
    """
    # With `solver`, 1 and -1 are taken for proofs. A result that holds only inside the search, such as a first
    # repetition, must be a little smaller.
    raise NotImplementedError


def position_key(pos: Any, history: Any, moves: Any, count: int) -> int:
    """Return the uint64 key of the evaluation cache for a position with these legal moves."""
    raise NotImplementedError


def graph_key(pos: Any, history: Any, move: int, above: int, scratch: Any) -> int:
    """Return the uint64 key of a transposition.

    Equal keys mean: equally many moves were played, and all continuations have equal values. If a few moves can repeat
    an earlier position of one line, the rules of repetition treat the lines differently, and so must the keys.

    Args:
        pos: the position.
        history: its history.
        move: the last move.
        above: key of the position before the move, which identifies the line.
        scratch: see write_planes.
    """
    raise NotImplementedError


def pattern_key(pos: Any, history: Any, move: int) -> int:
    """Return a uint64 of the last two moves and their surroundings."""
    raise NotImplementedError


def write_planes(pos: Any, history: Any, symmetry: int, scratch: Any, planes: Any, extras: Any) -> None:
    """Write the network's two inputs (float32, one batch entry each) under `symmetry`.

    `scratch` is a record of GameSpec.scratch_dtype, one per thread.
    """
    raise NotImplementedError


def write_bits(pos: Any, history: Any, symmetry: int, scratch: Any, bits: Any, extras: Any) -> None:
    """Write the inputs of GameSpec.bits into uint64 words; write `extras` if they are not among them."""
    raise NotImplementedError


def policy_index(pos: Any, move: int, symmetry: int) -> int:
    """Return the index of a move in the policy vector under `symmetry`."""
    raise NotImplementedError


def add_ownership(pos: Any, ownership: Any, symmetry: int, sign: float, total: Any) -> None:
    """Add sign * `ownership` (float32, in the network's orientation) to `total` (float64, in board order)."""
    raise NotImplementedError


ONGOING, OVER, OVER_UNSCORED = 0, 1, 2


def implement(function: Callable[..., Any], dtype: Any, kernel: Callable[..., Any]) -> None:
    """Register `kernel` as one of the functions above for records of `dtype`."""
    IMPLEMENTATIONS.setdefault(dtype, {})[function.__name__] = kernel
    if not IS_PLAIN:
        HOMES.setdefault(dtype, Path(kernel.py_func.__code__.co_filename).resolve())  # type: ignore[attr-defined]
