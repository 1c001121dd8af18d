"""From search workers to evaluators: a batch is submitted with the queue on which it comes back.

Two ways. On a CPU the search worker evaluates its batch itself (`InlineQueue`): one thread a core does everything,
which was measured at 0.98 to 1.02 of the evaluator's raw throughput, against 0.8 with threads of its own. Where the
evaluator is made of kernels, `bind` says how to do so without Python. On a GPU evaluation workers own a device each
(`yomi.engine.evaluators.workers`) and search workers go on while they compute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from yomi.engine.evaluators.base import EvaluatorError

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch

T = TypeVar("T")


class EvaluationQueue(Protocol):
    """Takes jobs and returns each on its own queue."""

    evaluator: Evaluator
    """One of the evaluators behind the queue: says what they want of a batch. Only its own thread may call it."""

    def submit(self, job: Job) -> None:
        """Take a job; may evaluate it at once in the caller's thread."""

    def bind(self, batch: Batch) -> Calls | None:
        """Return calls (see Evaluator.bind) by which a thread evaluates this batch; None where it has to submit it."""

    def call(self, function: Callable[[Evaluator], T]) -> T:
        """Return what `function` makes of an evaluator, called in the thread that the evaluator is bound to."""

    def close(self) -> None:
        """Finish what was submitted, then release the evaluators."""


@dataclass(slots=True)
class Job:
    """A gathered batch on its way."""

    batch: Batch
    rows: int
    done: SimpleQueue[Job]
    """Where the job is put when it has been evaluated, or has failed."""
    error: Exception | None = None
    failed_at: int | None = None
    """The evaluation worker that could not do it."""

    def run(self, evaluator: Evaluator) -> None:
        """Evaluate, and see to it that the results are numbers.

        Raises:
            EvaluatorError: they are not.
        """
        evaluator.evaluate(self.batch, self.rows)
        check_numbers(evaluator, self.batch, self.rows)

    def finish(self, error: Exception | None = None) -> None:
        """Return the job to who submitted it."""
        self.error = error
        self.done.put(self)

    def renewed(self) -> Job:
        """Return the job with arrays of its own, for the old ones are in the hands of a thread that hangs."""
        batch = type(self.batch)(*(array.copy() for array in self.batch))
        return Job(batch, self.rows, self.done, failed_at=self.failed_at)


@dataclass(slots=True)
class EvaluatorCall(Generic[T]):
    """A call of a function with an evaluator, which goes through the same queue as jobs."""

    function: Callable[[Evaluator], T]
    done: SimpleQueue[EvaluatorCall[T]] = field(default_factory=SimpleQueue)
    result: Any = None
    error: Exception | None = None
    failed_at: int | None = None

    def run(self, evaluator: Evaluator) -> None:
        """Call the function."""
        self.result = self.function(evaluator)

    def finish(self, error: Exception | None = None) -> None:
        """Wake up who waits for the result."""
        self.error = error
        self.done.put(self)

    def renewed(self) -> EvaluatorCall[T]:
        """Return the call for another thread; the old one's result counts no more."""
        return EvaluatorCall(self.function, self.done, failed_at=self.failed_at)

    def wait(self) -> T:
        """Return the function's result, or raise what it raised."""
        answered = self.done.get()
        if answered.error is not None:
            raise answered.error
        result: T = answered.result
        return result


class InlineQueue:
    """Evaluates in the thread that submits."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Serve all search workers with one evaluator."""
        self.evaluator = evaluator

    def submit(self, job: Job) -> None:
        """Evaluate the job and return it; a failure travels with it, to be raised where the search was started."""
        try:
            job.run(self.evaluator)
        except Exception as error:
            job.finish(error)
        else:
            job.finish()

    def call(self, function: Callable[[Evaluator], T]) -> T:
        """Call the function with the evaluator."""
        return function(self.evaluator)

    def bind(self, batch: Batch) -> Calls | None:
        """Return the evaluator's calls, if it has any."""
        return self.evaluator.bind(batch)

    def close(self) -> None:
        """Release the evaluator."""
        self.evaluator.close()


def check_numbers(evaluator: Evaluator, batch: Batch, rows: int) -> None:
    """See to it that the evaluation of a batch's first `rows` rows consists of numbers.

    Raises:
        EvaluatorError: it does not.
    """
    for name, array in (("value", batch.values), ("logit", batch.logits)):
        # A sum is not finite where one of its numbers is not, and costs a tenth of looking at each.
        if not np.isfinite(array[:rows].sum()):
            raise EvaluatorError(f"{evaluator.description}: a {name} that is not finite found, expected numbers")
