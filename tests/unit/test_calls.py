"""Entries bound to arguments, and searches that call their evaluator that way."""

import gc
import threading
import time
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
import pytest

from tests.unit.trees import check_tree, contents_of, search_at
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.networks import RolloutEvaluator
from yomi.engine.search import search as search_module
from yomi.engine.search.types import Limits, RootMoves
from yomi.native.bound_kernels import NO_CALLS, Calls, type_of
from yomi.native.tree.searcher import Searcher
from yomi.native.tree.uniform import write_zeros


class Submitting(InlineQueue):
    """Evaluates in place, by way of Python."""

    def bind(self, batch: Any) -> None:
        """Return None."""


def outputs(rows: int) -> list[np.ndarray]:
    return [np.ones((rows, width), np.float32) for width in (3, 4, 5)]


def test_a_call_reaches_the_rows_in_use_of_its_own_arrays() -> None:
    first, second = outputs(4), outputs(6)
    calls = write_zeros.bind(*first), write_zeros.bind(*second)
    gc.collect()
    calls[0].run(3)
    assert [int(array.sum(axis=1)[0]) for array in first] == [0, 0, 0]
    assert all((array[3:] == 1).all() for array in first)
    assert all((array == 1).all() for array in second)
    both = calls[0] + calls[1]
    both.run(4)
    assert not any(array.any() for array in first)
    assert all((array[:4] == 0).all() and (array[4:] == 1).all() for array in second)


def test_no_calls_do_nothing() -> None:
    array = outputs(2)
    NO_CALLS.run(2)
    (NO_CALLS + write_zeros.bind(*array)).run(1)
    assert [each.any(axis=1).tolist() for each in array] == [[False, True]] * 3


class Pair(NamedTuple):
    first: Any
    second: Any


def test_types_of_arguments_are_numbas() -> None:
    record = np.dtype([("a", np.int32), ("b", np.float64)])
    aligned = np.dtype([("a", np.int32), ("b", np.float64)], align=True)
    frozen = np.zeros(2, record)
    frozen.flags.writeable = False
    arrays = [np.zeros(3), np.zeros((2, 3)), np.zeros((2, 3)).T, np.zeros((4, 4))[::2, ::2], np.zeros(3, np.float32)]
    records = [np.zeros(2, record), np.zeros(2, record)[0], np.zeros(2, aligned), np.zeros((2, 2), record), frozen]
    values = [*arrays, *records, True, 3, 2**63, 1.5, np.int8(1), (), Pair(1, 2), Pair(1, np.zeros(2)), (1, 2)]
    for _ in range(2):  # the second time, types are remembered
        for value in values:
            assert type_of((value, 1)) == numba.typeof((value, 1))
    assert type_of(tuple(values)) == numba.typeof(tuple(values))


def test_arguments_of_other_types_are_refused() -> None:
    logits, values, ownership = outputs(2)
    for wrong in (
        (logits, values),
        (logits, values, ownership.astype(np.float64)),
        (logits, values, ownership[:, ::2]),
    ):
        with pytest.raises(TypeError, match="found arguments"):
            write_zeros.bind(*wrong)


@pytest.mark.parametrize("kind", ["uniform", "rollouts"])
@pytest.mark.parametrize("rows", [1, 8])
def test_a_search_without_python_is_the_search_with_it(kind: str, rows: int) -> None:
    trees = []
    for queue in (InlineQueue, Submitting):
        evaluator = UniformEvaluator(rows) if kind == "uniform" else RolloutEvaluator(1, rows, 3)
        search = search_at(queue(evaluator), 5, "C3")
        for playouts in (30, 400) if kind == "uniform" else (400,):  # a new thread has rollouts of its own
            search.run(Limits(playouts=playouts))
        check_tree(search)
        trees.append(contents_of(search.tree))
    assert trees[0] == trees[1]


def test_batches_are_kept_from_search_to_search() -> None:
    class Counting(UniformEvaluator):
        """Counts the batches that are bound."""

        bound: ClassVar[list[int]] = []

        def bind(self, batch: Any) -> Calls:
            self.bound.append(len(batch.node))
            return super().bind(batch)

    search = search_at(Counting(4), 5)
    for playouts in (30, 100, 400):
        assert search.run(Limits(playouts=playouts)).playouts == playouts
    assert Counting.bound == [4]
    search.configure(replace(search.settings, symmetry="average"))
    search.run(Limits(playouts=10))
    assert Counting.bound == [4, 8]
    check_tree(search)


def test_no_search_thread_uses_the_working_memory_of_a_living_thread() -> None:
    class Watching(UniformEvaluator):
        """Remembers who bound."""

        binders: ClassVar[list[str]] = []

        def bind(self, batch: Any) -> Calls:
            self.binders.append(threading.current_thread().name)
            return super().bind(batch)

    search = search_at(Watching(4), 5, root_noise=0.25)
    for _ in range(2):
        search.start(Limits(playouts=50), RootMoves(noise=True))
        search.wait()
        search.stop()
    here = threading.current_thread().name
    assert Watching.binders == [here, "search-0"]  # the root is evaluated here, for its noise


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_not_a_number_ends_the_search(workers: int) -> None:
    class Broken(UniformEvaluator):
        """Binds outputs that it never writes."""

        def bind(self, batch: Any) -> Calls:
            batch.values[:] = np.nan
            return NO_CALLS + write_zeros.bind(*outputs(self.batch_size))

    search = search_at(Broken(4), 5, workers=workers)
    search.start(Limits(visits=500))
    assert search.wait(60.0)
    with pytest.raises(EvaluatorError, match="uniform: a value that is not finite found, expected numbers"):
        search.stop()
    assert search.root_visits == 0


def test_the_clock_is_looked_at_though_nothing_is_slow() -> None:
    """The machine may be busy: one of twenty."""
    search = search_at(UniformEvaluator(1), 5)
    search.run(Limits(playouts=100))

    def once() -> float:
        search.start(Limits())
        threading.Timer(0.05, search.interrupt).start()
        assert search.wait(60.0)
        search.stop()
        return search.latency

    assert any(once() < 1.0 for _ in range(20))


def test_batches_that_last_are_timed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def advance(searcher: Searcher, used: int, calls: Calls, rounds: int, most: int) -> int:
        asked.append(rounds)
        time.sleep(0.02 if len(asked) > 6 else 0.0)
        return original(searcher, used, calls, rounds, most)

    original = Searcher.advance
    monkeypatch.setattr(search_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(Searcher, "advance", advance)
    search = search_at(UniformEvaluator(1), 5)
    search.start(Limits())
    deadline = time.perf_counter() + 60.0
    while len(asked) < 40 and time.perf_counter() < deadline:
        time.sleep(0.001)
    search.stop()
    assert asked[0] == 1
    assert asked[-2] == 1
    assert search.tree.counters[0].stop
