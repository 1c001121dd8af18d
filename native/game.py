"""What the search tree asks of a game: a few functions on a position record and its history.

numba picks the implementation by the type of the position record. A game implements the functions with `implement`,
usually one line for each. The tree calls them by address (yomi.native.game_calls) and is compiled once for all games.
All of them run without the GIL and none of them allocates what it keeps.

A position is one record, a history is a uint64 array that belongs to it. `play` appends to the history; entries that
are there are never changed, so a copy of a position may share the array and be played on.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import from_dtype
from numba.extending import overload

from yomi.native.jit import IS_PLAIN, note_game

IMPLEMENTATIONS: dict[Any, dict[str, Callable[..., Any]]] = {}
"""Type of record -> name of a function below -> kernel."""
HOMES: dict[Any, Path] = {}
"""Type of record -> file of the game's kernels."""


def _generic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what finds the implementation where numba does not."""

    @functools.wraps(function)
    def find(*args: Any) -> Any:
        return IMPLEMENTATIONS[args[0].void.dtype][function.__name__](*args)

    return find if IS_PLAIN else function


@_generic
def copy(target: Any, source: Any) -> None:
    """Make the position `target` equal to `source`."""
    raise NotImplementedError


@_generic
def play(pos: Any, history: Any, move: int) -> None:
    """Play a legal move of the side to move."""
    raise NotImplementedError


@_generic
def legal_moves(pos: Any, history: Any, moves: Any) -> int:
    """Write the legal moves (uint16) of the side to move into `moves` and return how many there are.

    A game may leave out moves that are never better than another, but not all of them.
    """
    raise NotImplementedError


@_generic
def outcome(pos: Any, history: Any) -> tuple[int, float, float]:
    """Return (state, value, score) of a position for the side to move.

    The state is GOES_ON, OVER (value in [-1, 1] and score are exact) or OVER_UNSCORED (the game has ended and the
    evaluator's opinion of this position is its value). A value of exactly 1 or -1 is taken for a proof where the search
    solves: what only the search holds for decided (a first repetition, say) must be worth a little less.
    """
    raise NotImplementedError


@_generic
def position_key(pos: Any, history: Any, moves: Any, count: int) -> int:
    """Return the uint64 under which an evaluation of a position with these legal moves may be used again."""
    raise NotImplementedError


@_generic
def graph_key(pos: Any, history: Any, move: int, above: int, scratch: Any) -> int:
    """Return the uint64 under which the lines of a search that come to a position share its node.

    Equal keys say that as many moves were played and that all that may follow is worth the same. Where a few moves may
    bring back a position that stood on one line only, the rules of repetition tell the lines apart; so must their keys.

    Args:
        pos: the position.
        history: its history.
        move: the last one.
        above: the key of the position before it, which stands for the line that led there.
        scratch: see write_planes.
    """
    raise NotImplementedError


@_generic
def pattern_key(pos: Any, history: Any, move: int) -> int:
    """Return a uint64 that is the same wherever this move answers the same move, in the same surroundings."""
    raise NotImplementedError


@_generic
def write_planes(pos: Any, history: Any, symmetry: int, scratch: Any, planes: Any, extras: Any) -> None:
    """Write the network's two inputs (float32, one batch entry each) as seen under `symmetry`."""
    raise NotImplementedError


@_generic
def write_bits(pos: Any, history: Any, symmetry: int, scratch: Any, bits: Any, extras: Any) -> None:
    """Write the inputs of GameSpec.bits into uint64 words, and the second into `extras` if it is not among them."""
    raise NotImplementedError


@_generic
def policy_index(pos: Any, move: int, symmetry: int) -> int:
    """Return the index of a move in the policy vector of a network that saw the position under `symmetry`."""
    raise NotImplementedError


@_generic
def add_ownership(pos: Any, ownership: Any, symmetry: int, sign: float, total: Any) -> None:
    """Add sign * `ownership` (float32, as the network saw the board) to `total` (float64, board order)."""
    raise NotImplementedError


GOES_ON, OVER, OVER_UNSCORED = 0, 1, 2


def implement(function: Callable[..., Any], dtype: Any, kernel: Callable[..., Any]) -> None:
    """Make `kernel` the implementation of one of the functions above for position records of `dtype`."""
    IMPLEMENTATIONS.setdefault(dtype, {})[function.__name__] = kernel
    if IS_PLAIN:
        return
    record = from_dtype(dtype)
    note_game(record, kernel)
    HOMES.setdefault(dtype, Path(kernel.py_func.__code__.co_filename).resolve())  # type: ignore[attr-defined]
    arity = function.__code__.co_argcount
    names = ", ".join(function.__code__.co_varnames[:arity])

    def select(*args: Any) -> Any:
        if args[0] != record:
            return None
        scope: dict[str, Any] = {"kernel": kernel}
        return eval(f"lambda {names}: kernel({names})", scope)

    typed_scope: dict[str, Any] = {"select": select}
    overload(function, strict=True, inline="always")(eval(f"lambda {names}: select({names})", typed_scope))
