"""Evaluation workers: threads that own a device each, and what happens when one fails.

A worker makes its evaluator in its own thread, so that it is bound to its device, and closes it there. Batches wait in
one queue and go to whoever is free, which shares them by load between devices of any speed. A worker that fails gives
its batch back for another to evaluate and makes its evaluator anew; after MAX_FAILURES in a row, or at once if its
GPU is lost to this process, it is given up, and the others go on without it. A worker that hangs is left behind with
the arrays it works on, and replaced as often.
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError, stop_making
from yomi.engine.evaluators.queue import EvaluatorCall, Job

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.native.tree.arrays import Batch

_log = logging.getLogger("yomi.evaluators")

T = TypeVar("T")
Task = Job | EvaluatorCall[Any]

SWITCH_INTERVAL = 2e-4
"""Seconds that a thread which computes in Python keeps the others waiting; the interpreter's own 5 ms starve a GPU."""
HANG = 5.0
"""Seconds after which an evaluation that has not ended is taken to hang; on a GPU the longest takes some tenths."""
LOOKS = 10
"""Looks at each worker in that time. Looks are counted, not seconds: nothing hangs in a process that was stopped."""
MAKING_LOOKS = 24 * LOOKS
"""Looks after which a worker that makes its evaluator anew is given up: 2 minutes. What it was made of is in caches.

So long, too, closing waits for a worker that makes its first evaluator: TensorRT looks between two steps of a build
whether it shall go on.
"""
MAX_FAILURES = 3
"""Failures in a row that end a worker: two may be those of one batch that no device can evaluate."""


@dataclass(slots=True, eq=False)
class _Worker:
    """One thread with an evaluator of its own."""

    seat: int
    """Its number among the workers that were asked for; who replaces it has the same."""
    make: Callable[[], Evaluator]
    failures: int = 0
    """In a row."""
    thread: threading.Thread | None = None
    description: str = ""
    task: Task | None = None
    """What it evaluates now."""
    looks: int = 0
    """How often it was seen with this task, or remaking its evaluator."""
    is_starting: bool = False
    """It makes the first evaluator of its seat, which may take many minutes."""
    is_making: bool = False
    """It closes an evaluator that has failed, and makes another."""
    is_lost: bool = False
    """It hangs: its task is with somebody else, and what it may still say counts for nothing."""


class EvaluationWorkers:
    """An evaluation queue with one thread for each evaluator."""

    def __init__(self, factories: Sequence[Callable[[], Evaluator]], *, hang: float = HANG) -> None:
        """Start the workers and wait until each has made its evaluator.

        Args:
            factories: make the evaluators, each in its worker's thread; called again after a failure.
            hang: seconds after which an evaluation is taken to hang.

        Raises:
            ValueError: there is no factory.
            Exception: whatever a factory raised, or a KeyboardInterrupt; no worker is left running then.
        """
        if not factories:
            raise ValueError("no evaluators found, expected at least one for the evaluation workers")
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._hang = hang
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._end: Exception | None = None
        """Why no worker is left."""
        started: SimpleQueue[Evaluator | Exception] = SimpleQueue()
        self._workers = [_Worker(seat, factory, is_starting=True) for seat, factory in enumerate(factories)]
        self._leaving: list[_Worker] = []
        """Given up, but maybe still closing their evaluators."""
        self._context = contextvars.copy_context()
        self._watcher = threading.Thread(target=self._watch, name="evaluation-watch", daemon=True)
        self._watcher.start()
        atexit.register(self.close)  # a thread that is in TensorRT or CUDA when the interpreter ends can abort it
        try:
            for worker in list(self._workers):
                self._start(worker, started)
            for _ in factories:
                result = started.get()
                if isinstance(result, Exception):
                    raise result
                self.evaluator = result
        except BaseException:
            self.close()
            raise

    @property
    def worker_count(self) -> int:
        """Workers that are left."""
        return len(self._workers)

    def submit(self, job: Job) -> None:
        """Queue the job for the next worker that is free.

        Raises:
            RuntimeError: the workers were closed, so that nobody would evaluate it.
        """
        self._put(job)

    def bind(self, batch: Batch) -> None:
        """Return None: evaluators stay in their threads."""

    def call(self, function: Callable[[Evaluator], T]) -> T:
        """Have a worker call the function with its evaluator, and return the result; again after a failure.

        Raises:
            Exception: what the function or the last device raised.
        """
        call = EvaluatorCall(function)
        self._put(call)
        return call.wait()

    def close(self) -> None:
        """End the workers after what was submitted before; again, it does nothing.

        One that hangs is left behind. What fails now is not tried again, and what nobody is left for fails.
        """
        if self._closing.is_set():
            return
        self._closing.set()
        atexit.unregister(self.close)
        self._watcher.join()
        with self._lock:
            workers = [worker for worker in (*self._workers, *self._leaving) if worker.thread is not None]
        for _ in workers:
            self._tasks.put(None)
        for worker in workers:
            self._wait_for(worker)
        with self._lock:
            left = [task.renewed() for worker in workers if (task := worker.task) is not None] + self._take_all()
            for worker in workers:
                worker.is_lost = worker.task is not None
                self._tasks.put(None)
        for task in left:
            task.finish(EvaluatorError("the evaluation workers were closed while a batch was with them"))

    def _wait_for(self, worker: _Worker) -> None:
        """Wait until a worker has ended, or has been busy with one thing for as long as what hangs."""
        assert worker.thread is not None
        worker.looks = 0
        while worker.thread.is_alive() and worker.looks <= (MAKING_LOOKS if worker.is_starting else LOOKS):
            worker.thread.join(self._hang / LOOKS)
            worker.looks += 1

    # -- a worker's life -------------------------------------------------------------------------------------------

    def _start(self, worker: _Worker, started: SimpleQueue[Evaluator | Exception] | None) -> None:
        worker.thread = threading.Thread(
            target=self._context.copy().run,  # as the thread that asked for the workers
            args=(self._live, worker, started),
            name=f"evaluation-{worker.seat}",
            daemon=True,
        )
        worker.thread.start()

    def _live(self, worker: _Worker, started: SimpleQueue[Evaluator | Exception] | None) -> None:
        """Make an evaluator and serve with it; after a failure make another, until there is no hope.

        Args:
            worker: this thread's own.
            started: where the first evaluator goes; None where the worker replaces one that hangs.
        """
        stop_making.set(self._closing)
        while True:
            worker.looks, worker.is_making = 0, started is None
            try:
                evaluator = worker.make()
            except Exception as error:
                worker.is_starting = False
                if started is not None:
                    started.put(error)
                elif not worker.is_lost:
                    self._give_up(worker, error)
                return
            with self._lock:
                worker.is_starting = worker.is_making = False
            worker.description = evaluator.description
            if started is not None:
                started.put(evaluator)
                started = None
            error_met = None if worker.is_lost else self._serve(worker, evaluator)
            is_hopeless = isinstance(error_met, DeviceLostError) or worker.failures >= MAX_FAILURES
            if error_met is not None and is_hopeless and not worker.is_lost and not self._closing.is_set():
                self._leaving.append(worker)
                self._give_up(worker, error_met)
            elif error_met is not None:
                worker.looks, worker.is_making = 0, True  # a device in disorder may hang as soon as it is closed
            try:
                evaluator.close()
            except Exception as error:  # a device in disorder; what matters is who evaluates the next batch
                _log.warning("%s: cannot be closed: %s", worker.description, error)
            if error_met is None or is_hopeless or worker.is_lost or self._closing.is_set():
                return
            _log.warning("%s failed (%s): it is set up anew", worker.description, error_met)

    def _serve(self, worker: _Worker, evaluator: Evaluator) -> Exception | None:
        """Evaluate what comes until the end (None) or a failure; the task is then with somebody else."""
        while (task := self._tasks.get()) is not None:
            worker.looks = 0
            worker.task = task
            error: Exception | None = None
            try:
                task.run(evaluator)
            except Exception as caught:
                error = caught
            with self._lock:
                if worker.is_lost:
                    return None
                worker.task = None
            if error is not None:
                self._fail(worker, task, error)
                return error
            worker.failures = 0
            task.finish()
        return None

    def _fail(self, worker: _Worker, task: Task, error: Exception) -> None:
        """Put a task back into the queue; one that has failed elsewhere before goes back to whom it came from.

        So does one for which nobody would come any more. A GPU that is lost says nothing about the task.
        """
        worker.failures += 1
        if isinstance(error, DeviceLostError) and not self._closing.is_set():
            self._put(task, is_new=False)
            return
        others = any(not other.is_making for other in self._workers if other is not worker)
        if self._closing.is_set() or (task.failed_at is not None and (task.failed_at != worker.seat or not others)):
            task.finish(error)
            return
        task.failed_at = worker.seat
        self._put(task, is_new=False)

    def _give_up(self, worker: _Worker, error: Exception) -> None:
        """Go on without a worker; without the last one, everything that waits fails."""
        name = worker.description or "an evaluator"
        with self._lock:
            if worker in self._workers:
                self._workers.remove(worker)
            left = [other.description for other in self._workers]
            waiting: list[Task] = []
            if not left:
                self._end = EvaluatorError(f"{name} failed and no other device is left: {error}")
                waiting = self._take_all()
        if left:
            _log.error("%s is given up (%s): the search goes on with %s", name, error, ", ".join(left))
        else:
            _log.error("%s", self._end)
        for task in waiting:
            task.finish(self._end)

    # -- the queue -------------------------------------------------------------------------------------------------

    def _put(self, task: Task, *, is_new: bool = True) -> None:
        """Queue a task; without workers it fails at once."""
        with self._lock:
            if is_new and self._closing.is_set():
                raise RuntimeError("the evaluation workers are closed: expected no further batches")
            if self._end is None:
                self._tasks.put(task)
                return
        task.finish(self._end)

    def _take_all(self) -> list[Task]:
        tasks: list[Task] = []
        while True:
            try:
                task = self._tasks.get_nowait()
            except Empty:
                return tasks
            if task is not None:
                tasks.append(task)

    # -- workers that hang -----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._closing.wait(self._hang / LOOKS):
            with self._lock:
                lost = [(worker, worker.is_making) for worker in self._workers if self._hangs(worker)]
            for worker, is_making in lost:
                if is_making:
                    seconds = self._hang * MAKING_LOOKS / LOOKS
                    self._give_up(worker, EvaluatorError(f"it could not be set up anew within {seconds:g} s"))
                else:
                    self._replace(worker)

    def _hangs(self, worker: _Worker) -> bool:
        """Look at a worker; called with the lock held."""
        worker.looks = worker.looks + 1 if worker.task is not None or worker.is_making else 0
        worker.is_lost = worker.looks > (MAKING_LOOKS if worker.is_making else LOOKS)
        return worker.is_lost

    def _replace(self, worker: _Worker) -> None:
        """Leave a worker behind that hangs, and let a new one, or another device, have its task."""
        task, error = worker.task, EvaluatorError(f"{worker.description} has not answered for {self._hang:g} s")
        assert task is not None
        heir = _Worker(worker.seat, worker.make, worker.failures, description=worker.description)
        with self._lock:
            self._workers[self._workers.index(worker)] = heir
        self._fail(heir, task.renewed(), error)
        if heir.failures >= MAX_FAILURES:
            self._give_up(heir, error)
            return
        _log.warning("%s: it is set up anew", error)
        self._start(heir, None)
