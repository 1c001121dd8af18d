"""Evaluation workers: threads that evaluate batches, each on one device, and recover from failures.

A worker makes its evaluator in its own thread, which binds the evaluator to the device, and closes it there. Batches
wait in one queue for the next free worker, so fast devices get more batches.

If an evaluation fails, its batch goes back to the queue and the worker makes its evaluator again. The worker ends after
MAX_FAILURES in a row, or at once if this process has lost the GPU. The other workers continue. If an evaluation hangs,
its worker is abandoned and another worker gets a copy of the batch. A hang counts as a failure.
"""

import atexit
import contextvars
import functools
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from yomi.engine.evaluators.base import DeviceLostError, Evaluator, EvaluatorError, stop_making
from yomi.engine.evaluators.devices import Device
from yomi.engine.evaluators.queue import EvaluationQueue, EvaluatorCall, InlineQueue, Job
from yomi.native.tree.arrays import Batch

_log = logging.getLogger("yomi.evaluators")

T = TypeVar("T")
Task = Job | EvaluatorCall[Any]

SWITCH_INTERVAL = 2e-4  # seconds that a thread keeps the GIL; the interpreter's own 5 ms starve a GPU
HANG = 5.0  # seconds after which an evaluation counts as hanging; the longest on a GPU takes some tenths
# checks of each worker in that time; counted instead of seconds, because the process may have been suspended
LOOKS = 10
MAKING_LOOKS = 24 * LOOKS
"""Checks after which a worker that makes its evaluator again is given up: 2 minutes, because everything is in caches.

Closing waits as long for a worker that makes its first evaluator: TensorRT checks between two steps of a build whether
to stop."""
MAX_FAILURES = 3  # in a row, that end a worker; two may come from one batch that no device can evaluate
WORKERS_PER_DEVICE = 2  # one worker's batch is computed while the other's is copied


@dataclass(slots=True, eq=False)
class _Worker:
    seat: int  # its number; a replacement has the same
    make: Callable[[], Evaluator]
    failures: int = 0  # in a row
    thread: threading.Thread | None = None
    description: str = ""
    task: Task | None = None  # in progress
    looks: int = 0  # checks that saw it with this task, or remaking its evaluator
    is_starting: bool = False  # makes the first evaluator of its seat, which may take many minutes
    is_making: bool = False  # closes an evaluator that has failed, and makes another
    is_lost: bool = False  # hangs: another worker has its task, and its results are ignored


class EvaluationWorkers:
    """An evaluation queue with one thread for each evaluator."""

    def __init__(self, factories: Sequence[Callable[[], Evaluator]], *, hang: float = HANG) -> None:
        """Start the workers and wait until each has made its evaluator, in its own thread.

        Factories are called again after a failure. An evaluation counts as hanging after `hang` seconds. If a factory
        fails, its exception is raised and no worker is left running.
        """
        if not factories:
            raise ValueError("no evaluators found, expected at least one for the evaluation workers")
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._hang = hang
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._end: Exception | None = None  # why no worker is left
        started: SimpleQueue[Evaluator | Exception] = SimpleQueue()
        self._workers = [_Worker(seat, factory, is_starting=True) for seat, factory in enumerate(factories)]
        self._leaving: list[_Worker] = []  # given up, but perhaps still closing their evaluators
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
        return len(self._workers)

    def submit(self, job: Job) -> None:
        """Queue a job for the next free worker. Raises RuntimeError after `close`."""
        self._put(job)

    def bind(self, batch: Batch) -> None: ...

    def call(self, function: Callable[[Evaluator], T]) -> T:
        """Call a function with a worker's evaluator in its thread; return the result. A failed call is repeated."""
        call = EvaluatorCall(function)
        self._put(call)
        return call.wait()

    def close(self) -> None:
        """End the workers after all submitted jobs. A second call does nothing.

        A hanging worker is abandoned. Failures are not retried, and jobs without a worker fail.
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
        """Wait until a worker has ended or is considered as hanging."""
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
        """Make an evaluator and evaluate tasks with it. After a failure make a new evaluator.

        End when the workers are closed, the device is lost, an evaluator cannot be made, the worker counts as hanging,
        or it has failed MAX_FAILURES times. `started` receives the first evaluator or the error. It is None if this
        worker replaces a hanging worker.
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
            _log.warning("%s failed (%s): it is set up again", worker.description, error_met)

    def _serve(self, worker: _Worker, evaluator: Evaluator) -> Exception | None:
        """Evaluate tasks. Return None at the end, or the error of a failure; `_fail` then handles the task."""
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
        """Put a failed task back into the queue, or return the error to its caller.

        The caller gets the error if the task has failed before, and either that was at another worker or no other
        worker is ready. The caller also gets it during `close`. If the GPU was lost, the failure does not count
        against the task.
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
        """Go on without this worker. If it was the last one, all waiting tasks fail."""
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
            _log.error("%s is given up (%s): the search continues with %s", name, error, ", ".join(left))
        else:
            _log.error("%s", self._end)
        for task in waiting:
            task.finish(self._end)

    # -- the queue -------------------------------------------------------------------------------------------------

    def _put(self, task: Task, *, is_new: bool = True) -> None:
        """Queue a task. If no worker is left, the task fails at once."""
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
                    self._give_up(worker, EvaluatorError(f"it could not be set up again within {seconds:g} s"))
                else:
                    self._replace(worker)

    def _hangs(self, worker: _Worker) -> bool:
        """Return whether a worker hangs. The caller holds the lock."""
        worker.looks = worker.looks + 1 if worker.task is not None or worker.is_making else 0
        worker.is_lost = worker.looks > (MAKING_LOOKS if worker.is_making else LOOKS)
        return worker.is_lost

    def _replace(self, worker: _Worker) -> None:
        """Abandon a hanging worker. Give its task to a new worker or to another device."""
        task, error = worker.task, EvaluatorError(f"{worker.description} has not answered for {self._hang:g} s")
        assert task is not None
        heir = _Worker(worker.seat, worker.make, worker.failures, description=worker.description)
        with self._lock:
            self._workers[self._workers.index(worker)] = heir
        self._fail(heir, task.renewed(), error)
        if heir.failures >= MAX_FAILURES:
            self._give_up(heir, error)
            return
        _log.warning("%s: it is set up again", error)
        self._start(heir, None)


def make_device_queue(
    make: Callable[[Device], Evaluator], devices: Sequence[Device], workers: int | None = None
) -> EvaluationQueue:
    """Return the queue for a network on the processor, or on GPUs with `workers` workers each (None: suitable).

    `make` makes an evaluator for a device, in the thread that uses it. It is called once for each worker, and again
    after a failure.
    """
    first = devices[0]
    if first.is_cpu:
        return InlineQueue(make(first))
    # Sessions that share a device take turns, so that a second worker would only wait.
    count = workers or (1 if first.row.is_shared else WORKERS_PER_DEVICE)
    return EvaluationWorkers(
        # One worker of each device first, so that the first batches are spread.
        [functools.partial(make, device) for _ in range(count) for device in devices]
    )
