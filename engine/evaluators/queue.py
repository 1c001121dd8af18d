"""From search workers to evaluators: a batch is submitted with the queue on which it comes back.

Two ways. On a CPU the search worker evaluates its batch itself (`evaluate_inline`): one thread a core does everything,
which was measured at 0.98 to 1.02 of the evaluator's raw throughput, against 0.8 with threads of its own. On a GPU
evaluation workers own a device each (`EvaluationWorkers`) and search workers go on while they compute.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.evaluators.base import Evaluator
    from native.tree.arrays import Batch


@dataclass(slots=True)
class Job:
    """A gathered batch on its way."""

    batch: Batch
    rows: int
    done: SimpleQueue[Job]
    """Where the job is put when it has been evaluated, or has failed."""
    error: Exception | None = None


class EvaluationQueue(Protocol):
    """Takes jobs and returns each on its own queue."""

    evaluator: Evaluator
    """One of the evaluators behind the queue: says what they want of a batch."""

    def submit(self, job: Job) -> None:
        """Take a job; may evaluate it at once in the caller's thread."""

    def close(self) -> None:
        """Finish what was submitted, then release the evaluators."""


class InlineQueue:
    """Evaluates in the thread that submits."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Serve all search workers with one evaluator."""
        self.evaluator = evaluator

    def submit(self, job: Job) -> None:
        """Evaluate the job and return it."""
        _evaluate(self.evaluator, job)

    def close(self) -> None:
        """Release the evaluator."""
        self.evaluator.close()


class EvaluationWorkers:
    """One thread for each evaluator; each makes its own evaluator in its thread, so that it is bound to its device."""

    def __init__(self, factories: Sequence[Callable[[], Evaluator]]) -> None:
        """Start the workers and wait until each has made its evaluator.

        Raises:
            ValueError: there is no factory.
            Exception: whatever a factory raised; no worker is left running then.
        """
        if not factories:
            raise ValueError("no evaluators found, expected at least one for the evaluation workers")
        self._is_closed = False
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        started: SimpleQueue[Evaluator | Exception] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(factory, started), name=f"evaluation-{i}", daemon=True)
            for i, factory in enumerate(factories)
        ]
        for thread in self._threads:
            thread.start()
        results = [started.get() for _ in self._threads]
        failures = [result for result in results if isinstance(result, Exception)]
        if failures:
            self.close()
            raise failures[0]
        self.evaluator = next(result for result in results if not isinstance(result, Exception))

    def submit(self, job: Job) -> None:
        """Queue the job for the next worker that is free.

        Raises:
            RuntimeError: the workers were closed, so that nobody would evaluate it.
        """
        if self._is_closed:
            raise RuntimeError("the evaluation workers are closed: expected no further batches")
        self._jobs.put(job)

    def close(self) -> None:
        """End the workers after what was submitted before; again, it does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, factory: Callable[[], Evaluator], started: SimpleQueue[Evaluator | Exception]) -> None:
        try:
            evaluator = factory()
        except Exception as error:
            started.put(error)
            return
        started.put(evaluator)
        while (job := self._jobs.get()) is not None:
            _evaluate(evaluator, job)
        evaluator.close()


def _evaluate(evaluator: Evaluator, job: Job) -> None:
    """Evaluate a job; a failure travels back with it, to be raised where the search was started."""
    try:
        evaluator.evaluate(job.batch, job.rows)
    except Exception as error:
        job.error = error
    job.done.put(job)
