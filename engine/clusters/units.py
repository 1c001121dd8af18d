"""Distributes the numbered units of a command to actors.

`distribute` is the schedule. It knows nothing of Ray. Each command has a subclass of `UnitWorker`, which actors make.
"""

from __future__ import annotations

import contextlib
import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from yomi.engine.clusters.actors import LOST, Actors, ActorTable, Answer, Cluster, ClusterError, ClusterOptions, Recipe
from yomi.engine.clusters.processes import ProcessActors
from yomi.errors import LineError

CALLS_AHEAD = 2  # pending calls of an actor: it does one while the answer to another travels
TRIES = 3  # errors of one unit that end the run; the loss of an actor is no error
IN_ORDER = 4  # units per actor, at most, that are given out before the oldest unfinished unit is done
POLL_SECONDS = 0.5

# A number, and everything that an actor needs for the unit; or a number, and the result. Both travel by pickle.
Unit: TypeAlias = tuple[int, Any]


class UnitWorker:
    """Does units inside an actor, one after the other."""

    def __init__(self) -> None:
        self._left: deque[Unit] = deque()

    def step(self, units: Sequence[Unit]) -> list[Unit]:
        """Accept units, finish at least one of all open units, and return the results of the finished units.

        Without an open unit, return at once.
        """
        self._left += units
        if not self._left:
            return []
        number, payload = self._left.popleft()
        return [(number, self.work(number, payload))]

    def work(self, number: int, payload: Any) -> Any:
        """Compute the unit of work with this number from its `payload`, and return the result."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything that the worker has started. Not called in an actor, whose process ends."""


def distribute(
    actors: ActorTable, units: Iterable[Unit], *, slots: int = 1, in_order: bool = False
) -> Iterator[tuple[int, Any]]:
    """Make actors do units. Yield the number of each unit once, with its result.

    The units of a lost actor are given out again, before others. An actor that returns the result of a unit that it
    does not have is lost, too. Actors have few open units, so that they wait if the caller does.

    Args:
        actors: make `UnitWorker`s.
        units: their numbers are different and in order.
        slots: units that an actor does at the same time. It gets at least one more, to continue with.
        in_order: yield the units in their order, otherwise as they end.

    Raises:
        ClusterError: a unit fails again and again, or the first one fails; or from the actors.
    """
    state = _Schedule(actors, units, slots, math.inf if not in_order else IN_ORDER * slots * actors.count)
    results: dict[int, Any] = {}
    state.fill()
    while not state.is_over:
        for answer in actors.poll(POLL_SECONDS):
            if answer.name == LOST:
                state.lost(answer)
            elif answer.name == "step" and answer.actor in state.pending:
                results.update(state.done(answer))
            for number in list(state.order):
                if number in results:
                    del state.order[number]
                    yield number, results.pop(number)
                elif in_order:
                    break
        state.fill()


class _Schedule:
    def __init__(self, actors: ActorTable, units: Iterable[Unit], slots: int, window: float) -> None:
        self.actors = actors
        self.slots = slots
        self.want = slots + max(1, slots // 4)  # open units of an actor
        self.window = window
        self._left, self._is_empty = iter(units), False
        self._again: list[int] = []  # a heap of the units of lost actors
        self.order: dict[int, Any] = {}  # payloads of the given units, until their results are yielded
        self.pending: dict[int, int] = {}  # calls by actor
        self.given: dict[int, dict[int, None]] = {}  # open units by actor
        self._tries = Counter[int]()
        self._has_success = False

    @property
    def is_over(self) -> bool:
        return self._is_empty and not self._again and not self.order and not any(self.pending.values())

    def fill(self) -> None:
        """Give each ready actor the units that it can begin now. Afterwards queue further units ahead of time."""
        ready = self.actors.ready
        for want, calls in ((self.slots, 1), (self.want, CALLS_AHEAD)):
            for actor in ready:
                self._fill(actor, want, calls)

    def _fill(self, actor: int, want: int, calls: int) -> None:
        given = self.given.setdefault(actor, {})
        self.pending.setdefault(actor, 0)
        while self.pending[actor] < calls:
            numbers = self._take(want - len(given))
            if not numbers and self.pending[actor] >= len(given):
                break
            given.update(dict.fromkeys(numbers))
            self.actors.call(actor, "step", [(number, self.order[number]) for number in numbers])
            self.pending[actor] += 1

    def _take(self, count: int) -> list[int]:
        taken: list[int] = []
        while len(taken) < count:
            if self._again:
                taken.append(heapq.heappop(self._again))
                continue
            if self._is_empty or len(self.order) >= self.window:
                break
            unit = next(self._left, None)
            if unit is None:
                self._is_empty = True
                break
            self.order[unit[0]] = unit[1]
            taken.append(unit[0])
        return taken

    def done(self, answer: Answer) -> list[Unit]:
        """Return the results in an answer. An actor that answers with a unit that it does not have is lost."""
        given = dict(self.given[answer.actor])
        for number, _ in answer.value:
            if number not in given:
                self.lost(self.actors.lose(answer.actor, f"sent a result of unit {number + 1}, which is not its own"))
                return []
            del given[number]
        self.given[answer.actor] = given
        self.pending[answer.actor] -= 1
        if answer.value:
            self._has_success = True
            self.actors.note_success()
        return list(answer.value)

    def lost(self, answer: Answer) -> None:
        """Take back the units of a lost actor."""
        self.pending.pop(answer.actor, None)
        numbers = self.given.pop(answer.actor, {})
        if answer.fault is not None:
            if isinstance(answer.fault, LineError) and not self._has_success:  # probably a mistake of the user
                raise ClusterError(str(answer.fault))
            self._tries.update(list(numbers))  # not the values of the mapping
            failed = [number for number in numbers if self._tries[number] >= TRIES]
            if failed:
                raise ClusterError(f"unit {failed[0] + 1} has failed {TRIES} times: {answer.value}")
        for number in numbers:
            heapq.heappush(self._again, number)


class UnitPool(contextlib.AbstractContextManager["UnitPool"]):
    """Actors that do the units of a command."""

    def __init__(
        self, place: ClusterOptions | int, prepare: Callable[[int], tuple[Recipe, int]], say: Callable[[str], None]
    ) -> None:
        """Connect to the cluster, and request the actors.

        Args:
            place: the cluster, or the number of processes of this machine.
            prepare: gets the number of actors. Returns the recipe of UnitWorkers, and how many units each does at the
                same time.
            say: receives a line for each lost actor.

        Raises:
            ClusterError: the cluster cannot be used.
        """
        self._actors: ActorTable
        if isinstance(place, int):
            recipe, self._slots = prepare(place)
            self._actors = ProcessActors(lambda _: recipe, place, _end_run)
            return
        cluster = Cluster(place)
        try:
            recipe, self._slots = prepare(cluster.actors)
            self._actors = Actors(cluster, lambda _: recipe, lambda number, why: say(f"actor {number + 1} lost: {why}"))
        except BaseException:
            cluster.close()
            raise

    def run(self, units: Iterable[Unit], *, in_order: bool = False) -> Iterator[Unit]:
        """Make the actors do units; see `distribute`."""
        return distribute(self._actors, units, slots=self._slots, in_order=in_order)

    def close(self) -> None:
        """Disconnect. Unfinished units are lost."""
        self._actors.close()

    def __exit__(self, *error: object) -> None:
        self.close()


def _end_run(number: int, why: str) -> None:
    """End the run with ClusterError, because a process of this machine has ended and no other can replace it."""
    if why.startswith("ended with"):
        raise ClusterError(f"a process has {why}; run the same command again to continue")
    raise ClusterError(f"a process has failed: {why}")
