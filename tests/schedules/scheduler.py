"""A deterministic scheduler for kernels that run as plain Python.

One thread runs at a time. Before every lock, unlock and atomic operation the scheduler decides which thread continues.
`explore` enumerates all such decisions with a limited number of preemptions: a preemption takes the processor from a
thread that could have continued.

Two runs that reach the same state continue alike, so that only the first one is followed. A state consists of the
tree's arrays and, for each thread, a hash of all the values that it has read: these determine its local variables.
Source of the bound: Musuvathi and Qadeer, Iterative context bounding (PLDI 2007).

NUMBA_DISABLE_JIT=1 must be set, and `install` called before any module of yomi.native.tree is imported.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from yomi.native import bits, debug_kernels

NUMBER = (int, float, np.generic)
HOOKED = ("atomic_add", "atomic_exchange", "atomic_max", "atomic_compare_exchange", "atomic_load", "atomic_store")
MAX_STEPS = 20_000
"""Operations of one run: more means that the threads wait for each other without end."""


class Scenario(Protocol):
    """Threads that work on one tree."""

    name: str

    def reset(self) -> list[Callable[[], None]]:
        """Restore the state at the beginning; return one function for each thread."""

    def memory(self) -> tuple[bytes, ...]:
        """Return the contents of all shared arrays."""

    def check(self) -> None:
        """Raise AssertionError if the final state breaks an invariant."""


class ScheduleError(Exception):
    """A schedule that breaks an invariant, ends in a deadlock or raises."""


class _Abort(BaseException):
    """Ends the threads of a run that reached a known state, or that failed."""


@dataclass
class _Thread:
    work: Callable[[], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    reads: int = 0
    """Hash of all the values that the thread has read."""
    is_blocked: Callable[[], bool] = lambda: False
    is_finished: bool = False
    thread: threading.Thread | None = None


Plan = tuple[tuple[int, int], ...]
"""Steps at which the scheduler decides otherwise than by default, each with the thread that continues."""


class Run:
    """One execution of a scenario under a plan."""

    def __init__(self, scenario: Scenario, plan: Plan, bound: int, visited: dict[int, int]) -> None:
        self.scenario = scenario
        self.plan = dict(plan)
        self.last_planned = max(self.plan, default=-1)
        self.remaining = bound
        self.visited = visited
        self.children: list[Plan] = []
        self._prefix = plan
        self.step = 0
        self.error: BaseException | None = None
        self.is_cut = False
        """Whether the run reached a state from which all continuations are explored already."""
        self._ended = threading.Event()
        self._threads = [_Thread(work) for work in scenario.reset()]
        self.current = 0

    def execute(self) -> None:
        """Run all threads to their ends, or to a known state.

        Raises:
            ScheduleError: an invariant is broken; the message names the plan.
        """
        global _run
        _run = self
        for number, thread in enumerate(self._threads):
            thread.thread = threading.Thread(target=self._body, args=(number,), daemon=True)
            thread.thread.start()
        self._threads[0].turn.release()
        self._ended.wait()
        for thread in self._threads:
            thread.turn.release()  # an aborted run leaves threads waiting
        for thread in self._threads:
            assert thread.thread is not None
            thread.thread.join()
        _run = None
        if self.error is None and not self.is_cut:
            try:
                self.scenario.check()
            except AssertionError as error:
                self.error = error
        if self.error is not None:
            place = traceback.extract_tb(self.error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            raise ScheduleError(f"plan {self._prefix}: {self.error!r} at {where}: {place.line}") from self.error

    def _body(self, number: int) -> None:
        thread = self._threads[number]
        thread.turn.acquire()
        try:
            if not self._ended.is_set():
                thread.work()
                thread.is_finished = True
                self._hand_over(number)
        except _Abort:
            pass
        except BaseException as error:  # reported by execute
            self.error = error
            self._ended.set()

    def point(self, is_blocked: Callable[[], bool] | None = None) -> None:
        """Decide who continues; the calling thread returns when it is its turn.

        Args:
            is_blocked: given if the caller cannot continue; it says whether that is still so.
        """
        if self._ended.is_set():
            raise _Abort
        number = self.current
        thread = self._threads[number]
        if is_blocked is not None:
            thread.is_blocked = is_blocked
            self._hand_over(number)
            return
        if self.step > MAX_STEPS:
            raise AssertionError(f"a run of more than {MAX_STEPS} operations")
        step, self.step = self.step, self.step + 1
        planned = self.plan.get(step)
        if step > self.last_planned:
            if self._is_known(number, self.remaining):
                self._cut()
            if self.remaining > 0:
                self._branch(step, [other for other in self._enabled() if other != number], self.remaining - 1)
        if planned is not None and planned != number:
            self.remaining -= 1
            self._switch(number, planned)

    def _hand_over(self, number: int) -> None:
        """Let another thread continue, since this one cannot."""
        step, self.step = self.step, self.step + 1
        enabled = self._enabled()
        if not enabled:
            if all(thread.is_finished for thread in self._threads):
                self._ended.set()
                return
            raise AssertionError("a deadlock")
        chosen = self.plan.get(step, enabled[0])
        if step > self.last_planned:
            self._branch(step, enabled[1:], self.remaining)
        self._switch(number, chosen)

    def _branch(self, step: int, others: list[int], remaining: int) -> None:
        """Plan a run for each other thread that may continue here, unless its continuations are explored already."""
        self.children += [(*self._prefix, (step, other)) for other in others if not self._is_known(other, remaining)]

    def _is_known(self, number: int, remaining: int) -> bool:
        """Whether this state was explored with as many preemptions left; it counts as explored from now on."""
        key = hash((number, *(thread.reads for thread in self._threads), self.scenario.memory()))
        if self.visited.get(key, -1) >= remaining:
            return True
        self.visited[key] = remaining
        return False

    def _cut(self) -> None:
        self.is_cut = True
        self._ended.set()
        raise _Abort

    def _enabled(self) -> list[int]:
        """Return the threads that can continue."""
        return [i for i, thread in enumerate(self._threads) if not thread.is_finished and not thread.is_blocked()]

    def _switch(self, number: int, other: int) -> None:
        self.current = other
        target, own = self._threads[other], self._threads[number]
        target.is_blocked = lambda: False
        target.turn.release()
        if not own.is_finished:
            own.turn.acquire()
            if self._ended.is_set():
                raise _Abort

    def note(self, value: Any) -> None:
        """Add a value that the current thread has read to its hash."""
        thread = self._threads[self.current]
        thread.reads = hash((thread.reads, value))


_run: Run | None = None


def explore(scenario: Scenario, bound: int) -> Iterator[Run]:
    """Execute every schedule with at most `bound` preemptions, and yield each run.

    Raises:
        ScheduleError: see Run.execute.
    """
    visited: dict[int, int] = {}
    waiting: list[tuple[Plan, int]] = [((), bound)]
    while waiting:
        plan, _ = waiting.pop()
        run = Run(scenario, plan, bound, visited)
        run.execute()
        waiting += [(child, bound) for child in run.children]
        yield run


def install() -> None:
    """Make kernels call the scheduler before every operation that other threads may see in another order."""
    assert not any(name.startswith("yomi.native.tree") for name in sys.modules), "install comes before yomi.native.tree"
    for name in HOOKED:
        if hasattr(bits, name):
            setattr(bits, name, _hooked(getattr(bits, name)))
    bits.take_lock = _take_lock
    bits.free_lock = _free_lock
    debug_kernels.Record.__getattr__ = debug_kernels.Record.__getitem__ = _noting(debug_kernels.Record.__getattr__)  # type: ignore[method-assign]
    debug_kernels.Array.__getitem__ = _noting(debug_kernels.Array.__getitem__)  # type: ignore[method-assign]


def _hooked(operation: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        if _run is None:
            return operation(*arguments)
        _run.point()
        old = operation(*arguments)
        _run.note(old)
        return old

    return run


def _take_lock(locks: Any, index: Any) -> None:
    if _run is not None:
        _run.point()
        while _is_held(locks, index):
            _run.point(lambda: _is_held(locks, index))
    locks[index] = 1


def _is_held(locks: Any, index: Any) -> bool:
    """Whether a lock is held; not a read of the calling thread."""
    if isinstance(locks, debug_kernels.Record):
        return bool(locks.void[index])
    return bool(np.ndarray.__getitem__(locks, int(index)))


def _free_lock(locks: Any, index: Any) -> None:
    if _run is not None:
        _run.point()
    locks[index] = 0


def _noting(read: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def note(owner: Any, name: Any) -> Any:
        value = read(owner, name)
        if _run is not None and isinstance(value, NUMBER):
            _run.note(value)
        return value

    return note
