"""The numbered units of a command on actors: who does which unit, and what an actor sends back.

`distribute` is the schedule. It knows nothing of Ray. Each command has a subclass of `UnitWorker`, which actors make.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Protocol, TypeVar

from yomi.engine.clusters.actors import LOST, Actors, Answer, Cluster, ClusterError, ClusterOptions, Recipe
from yomi.errors import LineError
from yomi.nets.text import parse_json

T = TypeVar("T")

CALLS_AHEAD = 2  # pending calls of an actor: it does one while the answer to another travels
TRIES = 3  # errors of one unit that end the run; the loss of an actor is no error
IN_ORDER = 4  # units per actor, at most, that are given out before the oldest unfinished unit is done
POLL_SECONDS = 0.5
HEADER_BYTES = 8


@dataclass(frozen=True)
class Report:
    """The results of a unit: JSON, and contents of files by their path."""

    data: Any
    files: Mapping[str, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        sizes = [[name, len(content)] for name, content in self.files.items()]
        header = json.dumps({"data": self.data, "files": sizes}).encode()
        return b"".join([len(header).to_bytes(HEADER_BYTES, "big"), header, *self.files.values()])

    @classmethod
    def from_bytes(cls, content: bytes) -> Report:
        """Read a report. Its files have relative paths without `..`.

        Raises:
            ValueError: it has another form.
        """
        begin = HEADER_BYTES + int.from_bytes(content[:HEADER_BYTES], "big")
        header = parse_json(content[HEADER_BYTES:begin])
        if not isinstance(header, dict) or set(header) != {"data", "files"} or not isinstance(header["files"], list):
            raise ValueError("expected data and files")
        files: dict[str, bytes] = {}
        for entry in header["files"]:
            if not isinstance(entry, list) or len(entry) != 2 or not _is_path(entry[0]):
                raise ValueError(f"file {entry!r:.80} found, expected a relative path and a size")
            name, size = entry
            if type(size) is not int or not 0 <= size <= len(content) - begin or name in files:
                raise ValueError(f"size {size!r:.80} of {name} found, expected at most {len(content) - begin}")
            files[name] = content[begin : begin + size]
            begin += size
        if begin != len(content):
            raise ValueError(f"{len(content)} bytes found, expected {begin}")
        return cls(header["data"], files)


def _is_path(name: object) -> bool:
    if not isinstance(name, str) or not name or "\0" in name or "\\" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and str(path) == name


class UnitWorker:
    """Does units in an actor, one after the other."""

    def __init__(self) -> None:
        self._left: deque[tuple[int, Any]] = deque()

    def step(self, units: Sequence[tuple[int, Any]]) -> list[tuple[int, bytes]]:
        """Take units, each with its payload, finish at least one of all that are open, and return those finished.

        Without an open unit return at once.
        """
        self._left += units
        if not self._left:
            return []
        unit, payload = self._left.popleft()
        return [(unit, self.work(unit, payload).to_bytes())]

    def work(self, unit: int, payload: Any) -> Report:
        """Do a unit. `payload` comes from the command's machine."""
        raise NotImplementedError

    def close(self) -> None:
        """End what the worker has started. Nobody calls it in an actor: there its process ends."""


class Pool(Protocol):
    """Actors that have a method `step` as `UnitWorker` has it."""

    count: int

    @property
    def ready(self) -> list[int]:
        """The numbers of the actors that can be called."""

    def poll(self, seconds: float) -> list[Answer]:
        """Return the answers that have arrived. Wait up to `seconds` for the first."""

    def call(self, number: int, name: str, *arguments: Any) -> None:
        """Call a method of an actor."""

    def lose(self, number: int, why: str) -> Answer:
        """End an actor. Another one starts in its place."""

    def note_success(self) -> None:
        """Called with each finished unit."""


def distribute(
    pool: Pool,
    units: Iterable[int],
    payload: Callable[[int], Any],
    check: Callable[[int, Report], T],
    *,
    slots: int = 1,
    in_order: bool = False,
) -> Iterator[tuple[int, T]]:
    """Let actors do units, and yield each unit once, with its checked result.

    The units of a lost actor are given out again, before others. An actor that sends anything else than the results of
    its units is lost, too. Actors have few open units, so that they wait if the caller does.

    Args:
        pool: the actors.
        units: different numbers of units, in order.
        payload: returns what a unit needs.
        check: returns the result of a report. Raises ValueError if it is no result of this unit.
        slots: units that an actor does at the same time. It has one more, at least, to continue with.
        in_order: yield the units in their order, otherwise as they end.

    Raises:
        ClusterError: a unit fails again and again, or the first one fails; or from the pool.
    """
    state = _Schedule(pool, units, payload, slots, math.inf if not in_order else IN_ORDER * slots * pool.count)
    results: dict[int, T] = {}
    for number in pool.ready:
        state.fill(number)
    while not state.is_over:
        for answer in pool.poll(POLL_SECONDS):
            if answer.name == LOST:
                state.lost(answer)
            elif answer.name == "step" and answer.actor in state.pending:
                try:
                    found = [(unit, check(unit, Report.from_bytes(content))) for unit, content in state.own(answer)]
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    state.lost(pool.lose(answer.actor, f"sent no results of its units ({error})"))
                    continue
                state.done(answer.actor, [unit for unit, _ in found])
                results.update(found)
                if not in_order:
                    for unit in list(results):
                        state.order.pop(unit)
                        yield unit, results.pop(unit)
            while in_order and state.order and (unit := next(iter(state.order))) in results:
                del state.order[unit]
                yield unit, results.pop(unit)
        for number in pool.ready:
            state.fill(number)


class _Schedule:
    def __init__(
        self, pool: Pool, units: Iterable[int], payload: Callable[[int], Any], slots: int, window: float
    ) -> None:
        self.pool, self.payload = pool, payload
        self.want = slots + max(1, slots // 4)  # open units of an actor
        self.window = window
        self._left, self._is_empty = iter(units), False
        self._again: list[int] = []  # a heap of the units of lost actors
        self.order: dict[int, None] = {}  # given units without a result, or with one that has not been yielded
        self.pending: dict[int, int] = {}  # calls by actor
        self.given: dict[int, dict[int, None]] = {}  # open units by actor
        self._tries = Counter[int]()
        self._has_success = False

    @property
    def is_over(self) -> bool:
        return self._is_empty and not self._again and not self.order and not any(self.pending.values())

    def fill(self, number: int) -> None:
        """Give an actor as many units as it lacks."""
        given = self.given.setdefault(number, {})
        self.pending.setdefault(number, 0)
        while self.pending[number] < CALLS_AHEAD:
            units = self._take(self.want - len(given))
            if not units and self.pending[number] >= len(given):
                break
            given.update(dict.fromkeys(units))
            self.pool.call(number, "step", [(unit, self.payload(unit)) for unit in units])
            self.pending[number] += 1

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
            self.order[unit] = None
            taken.append(unit)
        return taken

    def own(self, answer: Answer) -> list[tuple[int, bytes]]:
        """Return the units and contents of an answer. Raises ValueError if they are not open units of its actor."""
        given = set(self.given[answer.actor])
        for unit, content in answer.value:
            if type(unit) is not int or unit not in given or not isinstance(content, bytes):
                raise ValueError(f"unit {unit!r:.80}")
            given.remove(unit)
        return list(answer.value)

    def done(self, number: int, units: Sequence[int]) -> None:
        self.pending[number] -= 1
        for unit in units:
            del self.given[number][unit]
        if units:
            self._has_success = True
            self.pool.note_success()

    def lost(self, answer: Answer) -> None:
        """Take back the units of a lost actor."""
        self.pending.pop(answer.actor, None)
        units = self.given.pop(answer.actor, {})
        if answer.fault is not None:
            if isinstance(answer.fault, LineError) and not self._has_success:  # probably a mistake of the user
                raise ClusterError(str(answer.fault))
            self._tries.update(list(units))  # not the values of the mapping
            failed = [unit for unit in units if self._tries[unit] >= TRIES]
            if failed:
                raise ClusterError(f"unit {failed[0] + 1} has failed {TRIES} times: {answer.value}")
        for unit in units:
            heapq.heappush(self._again, unit)


class UnitPool:
    """Actors of a cluster that do the units of a command. A context manager."""

    def __init__(
        self, options: ClusterOptions, prepare: Callable[[int], tuple[Recipe, int]], say: Callable[[str], None]
    ) -> None:
        """Connect, and request the actors.

        Args:
            options: the cluster.
            prepare: returns the recipe of UnitWorkers, and the units that each does at the same time, given the number
                of actors.
            say: receives a line for each lost actor.

        Raises:
            ClusterError: the cluster cannot be used.
        """
        cluster = Cluster(options)
        try:
            recipe, self._slots = prepare(cluster.actors)
            self._actors = Actors(cluster, lambda _: recipe, lambda number, why: say(f"actor {number + 1} lost: {why}"))
        except BaseException:
            cluster.close()
            raise

    def run(
        self,
        units: Iterable[int],
        payload: Callable[[int], Any],
        check: Callable[[int, Report], T],
        *,
        in_order: bool = False,
    ) -> Iterator[tuple[int, T]]:
        """Let the actors do units: see `distribute`."""
        return distribute(self._actors, units, payload, check, slots=self._slots, in_order=in_order)

    def close(self) -> None:
        """Disconnect. Unfinished units are lost."""
        self._actors.close()

    def __enter__(self) -> UnitPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
