"""Evaluation queues, which bring batches from search workers to evaluators. Each job names the queue for its return.

On a CPU the search worker evaluates its batch itself (`InlineQueue`). One thread per core does everything. That gave
0.98 to 1.02 of the evaluator's raw throughput, separate evaluation threads 0.8. If the evaluator consists of kernels,
`bind` returns them, so that the search runs without Python.

On GPUs evaluation workers evaluate the batches (`yomi.engine.evaluators.workers`). Search workers do not wait for them
while they have another batch to fill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.native.bound_kernels import Calls
from yomi.native.tree.arrays import Batch

T = TypeVar("T")


class EvaluationQueue(Protocol):
    """Accepts jobs, and puts each finished job on the job's own queue."""

    evaluator: Evaluator  # one of the evaluators, for its properties; only its own thread may call it

    @property
    def worker_count(self) -> int:
        """Number of threads that evaluate submitted jobs; 0 if the submitting thread does it."""

    def submit(self, job: Job) -> None:
        """Accept a job. It may be evaluated immediately, in the calling thread."""

    def bind(self, batch: Batch) -> Calls | None:
        """Return calls by which a thread evaluates this batch (see Evaluator.bind), or None if it must be submitted."""

    def call(self, function: Callable[[Evaluator], T]) -> T:
        """Call `function` with an evaluator, in the evaluator's thread, and return its result."""

    def close(self) -> None:
        """Finish the submitted jobs, then release the evaluators."""


@dataclass(slots=True)
class Job:
    batch: Batch
    rows: int
    done: SimpleQueue[Job]  # receives the job when it is evaluated, or has failed
    error: Exception | None = None
    failed_at: int | None = None  # the evaluation worker that failed

    def run(self, evaluator: Evaluator) -> None:
        """Evaluate the batch. Raise EvaluatorError if a result is not finite."""
        evaluator.evaluate(self.batch, self.rows)
        check_numbers(evaluator, self.batch, self.rows)

    def finish(self, error: Exception | None = None) -> None:
        self.error = error
        self.done.put(self)

    def renewed(self) -> Job:
        """Return a job with copies of the arrays, since a hanging thread may still write to the originals."""
        batch = type(self.batch)(*(array.copy() for array in self.batch))
        return Job(batch, self.rows, self.done, failed_at=self.failed_at)


@dataclass(slots=True)
class EvaluatorCall(Generic[T]):
    """A call of a function with an evaluator. It waits in the same queue as jobs."""

    function: Callable[[Evaluator], T]
    done: SimpleQueue[EvaluatorCall[T]] = field(default_factory=SimpleQueue)
    result: Any = None
    error: Exception | None = None
    failed_at: int | None = None

    def run(self, evaluator: Evaluator) -> None:
        self.result = self.function(evaluator)

    def finish(self, error: Exception | None = None) -> None:
        self.error = error
        self.done.put(self)

    def renewed(self) -> EvaluatorCall[T]:
        """Return the call for another thread. A later result of this call is ignored."""
        return EvaluatorCall(self.function, self.done, failed_at=self.failed_at)

    def wait(self) -> T:
        answered = self.done.get()
        if answered.error is not None:
            raise answered.error
        result: T = answered.result
        return result


class InlineQueue:
    """Evaluates each job in the thread that submits it."""

    worker_count = 0

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def submit(self, job: Job) -> None:
        """Evaluate the job and return it. An error in it is raised by the search that waits for the job."""
        try:
            job.run(self.evaluator)
        except Exception as error:
            job.finish(error)
        else:
            job.finish()

    def call(self, function: Callable[[Evaluator], T]) -> T:
        return function(self.evaluator)

    def bind(self, batch: Batch) -> Calls | None:
        return self.evaluator.bind(batch)

    def close(self) -> None:
        self.evaluator.close()


def evaluate_batch(queue: EvaluationQueue, batch: Batch, rows: int) -> int:
    """Evaluate the first `rows` rows of a batch through a queue. Wait for the result, and return the number of rows.

    Raises:
        Exception: from the evaluator.
    """
    done: SimpleQueue[Job] = SimpleQueue()
    queue.submit(Job(batch, rows, done))
    job = done.get()
    if job.error is not None:
        raise job.error
    if job.batch is not batch:  # a device hangs with the batch: the queue took a copy
        for array, evaluated in zip(batch, job.batch, strict=True):
            array[...] = evaluated
    return rows


def check_numbers(evaluator: Evaluator, batch: Batch, rows: int) -> None:
    """Raise EvaluatorError if the evaluation of a batch's first `rows` rows contains a number that is not finite."""
    for name, array in (("value", batch.values), ("logit", batch.logits)):
        # A sum is not finite if one of its numbers is not. It takes a tenth of the time of a check of each number.
        if not np.isfinite(array[:rows].sum()):
            raise EvaluatorError(f"{evaluator.description}: a {name} that is not finite found, expected numbers")
