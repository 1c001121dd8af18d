"""The schedule of units, on actors that fail, and the results that actors send."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.units import Events, FakePool, kill_some
from tests.looping import looped
from yomi.engine.clusters.actors import Answer, ClusterError
from yomi.engine.clusters.units import UnitWorker, distribute
from yomi.errors import LineError


class Squares(UnitWorker):
    """A unit is the square of its payload."""

    def work(self, number: int, payload: Any) -> int:
        return int(payload**2)


def run(pool: Any, units: int = 20, **options: Any) -> Iterator[tuple[int, int]]:
    return distribute(pool, ((number, number + 10) for number in range(units)), **options)


SQUARES = {unit: (unit + 10) ** 2 for unit in range(20)}


@looped("in_order", [False, True])
@looped("slots", [1, 4])
@looped("count", [1, 2, 5])
def test_every_unit_is_done_once_however_many_actors_are_lost(count: int, slots: int, in_order: bool) -> None:
    losses = 0
    for seed in range(20):
        pool = FakePool(Squares, count, seed, kill_some)
        found = list(run(pool, slots=slots, in_order=in_order))
        assert sorted(found) == sorted(SQUARES.items())
        assert not in_order or found == sorted(found)
        losses += len(pool.lost)
    assert losses > 20


def test_a_loss_costs_only_the_open_units() -> None:
    def kill_once(rng: random.Random, pool: FakePool) -> None:
        if len(pool.sent) == 8 and not pool.lost:
            pool.answers.append(pool.lose(0, "killed"))

    pool = FakePool(Squares, 2, 1, kill_once)
    assert dict(run(pool)) == SQUARES
    assert pool.lost == ["killed"]
    assert 0 < sum(pool.sent.values()) - len(pool.sent) <= 2


def test_a_slow_reader_stops_the_actors() -> None:
    pool = FakePool(Squares, 2)
    results = run(pool, 1000)
    next(results)
    assert len(pool.sent) <= 2 * 2 + 1
    pool = FakePool(Squares, 3)
    next(run(pool, 1000, in_order=True))
    assert len(pool.sent) <= 4 * 3 + 1


def test_no_actor_is_idle_while_another_has_units_for_later() -> None:
    begun: list[list[int]] = []

    def note(rng: random.Random, pool: FakePool) -> None:
        if pool.sent:
            begun.append([sum(map(len, calls)) for calls in pool.calls.values()])

    assert len(dict(run(FakePool(Squares, 4, 1, note), 8, slots=2))) == 8
    assert begun[0] == [2, 2, 2, 2]
    begun.clear()
    assert len(dict(run(FakePool(Squares, 4, 1, note), 5))) == 5
    assert begun[0] == [2, 1, 1, 1]


def test_no_units_end_at_once() -> None:
    assert list(run(FakePool(Squares, 2), 0)) == []


def test_a_result_of_the_unit_of_nobody_is_a_loss() -> None:
    def lie(rng: random.Random, pool: FakePool) -> None:
        if pool.sent[0] and not pool.lost and 0 in pool.workers:
            pool.answers.append(Answer(0, "step", [(99, 1)]))

    pool = FakePool(Squares, 1, 1, lie)
    assert dict(run(pool)) == SQUARES
    assert pool.lost == ["sent a result of unit 100, which is not its own"]


def fail(error: Exception, after: int) -> Events:
    def event(rng: random.Random, pool: FakePool) -> None:
        if len(pool.sent) > after and pool.workers:
            pool.answers.append(pool.lose(pool.ready[0], f"{type(error).__name__}: {error}", error))

    return event


def test_a_unit_that_always_fails_ends_the_run() -> None:
    with pytest.raises(ClusterError, match=r"^unit \d+ has failed 3 times: ValueError: no game$"):
        list(run(FakePool(Squares, 2, 1, fail(ValueError("no game"), 5))))


def test_a_mistake_of_the_user_ends_the_run_at_once() -> None:
    pool = FakePool(Squares, 2, 1, fail(LineError("player a: not found"), 0))
    with pytest.raises(ClusterError, match=r"^player a: not found$"):
        list(run(pool))
    assert len(pool.lost) == 1
