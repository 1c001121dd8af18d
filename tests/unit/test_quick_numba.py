"""Changes to numba that make it compile kernels in less time."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import types
from numba.core import ir
from numba.core.caching import NullCache
from numba.core.compiler import run_frontend
from numba.core.datamodel.registry import default_manager

from yomi.native import quick_numba
from yomi.native.bound_kernels import type_of
from yomi.native.game_calls import GameCalls
from yomi.native.jit import inlined_early, kernel


class Pair(NamedTuple):
    first: int
    second: float


def calls() -> GameCalls:
    return GameCalls(np.arange(5), np.array([[6, 7]]), np.array([8, 9]))


@kernel
def second_of(given):  # type: ignore[no-untyped-def]
    return given.board[1] + given.rows[0, 1] + given.ownership[1]


@kernel
def twice_the_second_of(given):  # type: ignore[no-untyped-def]
    swapped = given
    total = 0
    for _ in range(2):
        total += second_of(swapped)
    return total


def test_a_named_tuple_is_passed_as_one_value() -> None:
    found: Any = default_manager.lookup(type_of(calls())).get_argument_type()
    assert not isinstance(found, tuple)
    assert twice_the_second_of(calls()) == 2 * (1 + 7 + 9)


def test_numba_is_changed_for_kernels_alone() -> None:
    with quick_numba.quick_numba():
        for owner, name, value in quick_numba._CHANGES:
            assert vars(owner)[name] is value
    for owner, name, value in quick_numba._CHANGES:
        assert vars(owner).get(name) is not value, name


def test_tuples_of_other_packages_stay_as_they_are() -> None:
    pair: Any = default_manager.lookup(type_of(Pair(1, 2.0)))
    assert isinstance(pair.get_argument_type(), tuple)


def test_symbols_are_short_and_differ_by_function_types_flags_and_number() -> None:
    long = type_of(np.zeros(1, [(f"field_{i}", np.int64) for i in range(100)]))
    names = [
        quick_numba._short_name(name, kinds, abi_tags=tags, uid=number)
        for name, kinds, tags, number in (
            ("a", (long,), (), 1),
            ("b", (long,), (), 1),
            ("a", (long, types.int64), (), 1),
            ("a", (long,), ("tag",), 1),
            ("a", (long,), (), 2),
        )
    ]
    assert len(set(names)) == 5
    assert max(map(len, names)) < 60
    assert quick_numba._short_name("a", [long], uid=1) == names[0]


def test_variables_of_an_instruction_are_those_of_numba() -> None:
    def work(a: Any, b: Any) -> Any:
        pair = (a, b, a + 1)
        for i in range(b):
            a[i] = max(pair[0][i], 3)
        return [x * b for x in pair]

    def naive(value: Any) -> list[Any]:
        if isinstance(value, ir.Var):
            return [value]
        if isinstance(value, ir.Inst):
            found: list[Any] = value.list_vars()
            return found
        if isinstance(value, list | tuple | dict):
            parts = value.values() if isinstance(value, dict) else value
            return [variable for part in parts for variable in naive(part)]
        return []

    body = [inst for block in run_frontend(work).blocks.values() for inst in block.body]
    assert len(body) > 20
    for inst in body:
        assert quick_numba._variables(inst, inst.__dict__) == naive(inst.__dict__)


def uncached(function: Any) -> Any:
    """Return a kernel that a second run of the tests compiles again."""
    compiled: Any = kernel(function)
    compiled._cache = NullCache()
    return compiled


def test_an_operator_is_typed_once_for_its_types(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    resolve = quick_numba._resolve

    def count(function: Any, context: Any, args: Any, kws: Any) -> Any:
        asked.append((str(function), args))
        return resolve(function, context, args, kws)

    monkeypatch.setattr(quick_numba, "_resolve", count)
    monkeypatch.setattr(quick_numba, "_CALL_TYPES", {})

    def work(a: Any, b: Any) -> Any:
        return a * b + (a - b) * b + (b - a) * a

    assert uncached(work)(3.0, 4.0) == 12.0 - 4.0 + 3.0
    assert asked
    assert len(asked) == len(set(asked))


@kernel
def swapped_sum(numbers, count):  # type: ignore[no-untyped-def]
    """Reassign variables in a loop: without reference counts, their ends need no code."""
    low, high = numbers[0], numbers[1]
    total = 0.0
    for i in range(count):
        if i % 2 == 0:
            part = numbers[i:]
            total += part[0] * low
        else:
            part = numbers[:i]
            total += part[i - 1] * high
        low, high = high, low
    return total


def test_variables_that_change_in_a_loop_keep_their_values() -> None:
    numbers: npt.NDArray[np.float64] = np.arange(1.0, 8.0)
    python: Any = getattr(swapped_sum, "py_func", swapped_sum)
    assert swapped_sum(numbers, 6) == python(numbers, 6)


@inlined_early
def doubled(number):  # type: ignore[no-untyped-def]
    part = number
    for _ in range(1):
        part = part + number
    return part


def test_a_function_that_is_inlined_early_is_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    translated = []
    translate: Any = quick_numba._run_untyped_passes

    def count(worker: Any, function: Any, *arguments: Any) -> Any:
        translated.append(function.__name__)
        return translate(worker, function, *arguments)

    monkeypatch.setattr(quick_numba, "_run_untyped_passes", count)
    monkeypatch.setattr(quick_numba, "_INLINED", {})

    def work(a, b):  # type: ignore[no-untyped-def]
        return doubled(a) + 10 * doubled(b) + 100 * doubled(a + b)

    assert uncached(work)(1, 2) == 2 + 40 + 600
    assert translated == ["doubled"]
