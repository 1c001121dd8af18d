"""Actors in this process, for the schedule of units without Ray."""

from __future__ import annotations

import pickle
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from yomi.engine.clusters.actors import BEGIN, LOST, Answer, ClusterOptions, Recipe
from yomi.engine.clusters.units import Unit, UnitWorker, distribute

Events = Callable[[random.Random, "FakePool"], None]


class FakePool:
    """Actors without processes. Each poll begins some, and does a call of one."""

    def __init__(
        self, make: Callable[[], UnitWorker], count: int, seed: int = 1, event: Events = lambda rng, pool: None
    ) -> None:
        self.make, self.count, self.rng, self.event = make, count, random.Random(seed), event
        self.workers: dict[int, UnitWorker] = {}
        self.calls: dict[int, deque[Any]] = {number: deque() for number in range(count)}
        self.lost: list[str] = []
        self.answers: list[Answer] = []
        self.sent = Counter[int]()

    @property
    def ready(self) -> list[int]:
        return sorted(self.workers)

    def poll(self, seconds: float) -> list[Answer]:
        self.event(self.rng, self)
        for number in set(range(self.count)) - set(self.workers):
            self.workers[number] = self.make()
            self.answers.append(Answer(number, BEGIN, None))
        busy = [number for number in self.workers if self.calls[number]]
        if busy:
            number = self.rng.choice(busy)
            answer = self.workers[number].step(pickle.loads(pickle.dumps(self.calls[number].popleft())))
            self.answers.append(Answer(number, "step", pickle.loads(pickle.dumps(answer))))
        answers, self.answers = self.answers, []
        return answers

    def call(self, number: int, name: str, *arguments: Any) -> None:
        assert number in self.workers
        assert name == "step"
        self.sent.update(unit for unit, _ in arguments[0])
        self.calls[number].append(arguments[0])

    def lose(self, number: int, why: str, fault: Exception | None = None) -> Answer:
        self.workers.pop(number).close()
        self.calls[number].clear()
        self.lost.append(why)
        return Answer(number, LOST, why, fault)

    def note_success(self) -> None:
        pass


def kill_some(rng: random.Random, pool: FakePool) -> None:
    """Lose an actor in one of five rounds, with the results of its last call or without."""
    if pool.workers and rng.random() < 0.2:
        pool.answers.append(pool.lose(rng.choice(pool.ready), "killed"))


class FakeUnitPool:
    """In place of `UnitPool`: as many actors as asked for, or three. Some are lost."""

    made: list[FakePool]  # set by each test

    def __init__(
        self, place: ClusterOptions | int, prepare: Callable[[int], tuple[Recipe, int]], say: Callable[[str], None]
    ) -> None:
        count = place if isinstance(place, int) else place.actors or 3
        recipe, self._slots = prepare(count)
        sent = pickle.dumps((recipe.make, recipe.arguments))

        def make() -> UnitWorker:
            maker, arguments = pickle.loads(sent)
            worker: UnitWorker = maker({path: path for path in recipe.networks}, *arguments)
            return worker

        self._pool = FakePool(make, count, 1, kill_some)
        type(self).made.append(self._pool)

    def run(self, units: Iterable[Unit], *, in_order: bool = False) -> Iterator[Unit]:
        return distribute(cast(Any, self._pool), units, slots=self._slots, in_order=in_order)

    def close(self) -> None:
        for worker in self._pool.workers.values():
            worker.close()

    def __enter__(self) -> FakeUnitPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
