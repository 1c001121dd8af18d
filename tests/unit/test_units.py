"""The schedule of units, on actors that fail, and the reports that actors send."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.units import Events, FakePool, kill_some
from tests.looping import looped
from yomi.engine.clusters.actors import Answer, ClusterError
from yomi.engine.clusters.units import Report, UnitWorker, distribute
from yomi.errors import LineError


class Squares(UnitWorker):
    """A unit is the square of its payload, as text in a file."""

    def work(self, unit: int, payload: Any) -> Report:
        return Report(payload, {"square.txt": str(payload**2).encode()})


def read(unit: int, report: Report) -> int:
    if report.data != unit + 10:
        raise ValueError(f"{report.data} found")
    return int(report.files["square.txt"])


def run(pool: FakePool, units: int = 20, **options: Any) -> Iterator[tuple[int, int]]:
    return distribute(pool, range(units), lambda unit: unit + 10, read, **options)


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


def test_no_units_end_at_once() -> None:
    assert list(run(FakePool(Squares, 2), 0)) == []


@looped(
    "content",
    [
        [(3, b"")],  # no report
        [(99, Report(109, {"square.txt": b"1"}).to_bytes())],  # the unit of nobody
        [(0, Report(10, {"square.txt": b"x"}).to_bytes())],
        [(0, Report(10).to_bytes())],
        [(0, Report(None, {"square.txt": b"1"}).to_bytes())],
        [(0, Report(10, {"square.txt": b"100"}).to_bytes())] * 2,
        ["a"],
        None,
        7,
    ],
)
def test_wrong_reports_are_a_loss(content: Any) -> None:
    def lie(rng: random.Random, pool: FakePool) -> None:
        if pool.sent[0] and not pool.lost and 0 in pool.workers:
            pool.answers.append(Answer(0, "step", content))

    pool = FakePool(Squares, 1, 1, lie)
    assert dict(run(pool)) == SQUARES
    assert len(pool.lost) == 1
    assert pool.lost[0].startswith("sent no results of its units (")


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


def test_a_report_travels_as_bytes() -> None:
    report = Report({"a": [1, "ä"]}, {"b/c.npy": b"\0\1", "d": b""})
    assert Report.from_bytes(report.to_bytes()) == report
    for name in ("../a", "/a", "a/../b", "", "a\0b", "a\\b", "./a", "a//b"):
        with pytest.raises(ValueError, match="expected a relative path"):
            Report.from_bytes(Report(None, {name: b"1"}).to_bytes())
    content = report.to_bytes()
    for broken in (b"", content[:-1], content + b"0", content[:9], b"\xff" * 16, Report([]).to_bytes()[:-3]):
        with pytest.raises(ValueError, match=r"."):
            Report.from_bytes(broken)
