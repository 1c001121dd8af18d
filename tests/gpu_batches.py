"""yomi with a GPU's batches on a processor, to measure in matches what large batches cost at equal visits.

`python -m tests.gpu_batches gtp --batch-size 256 --workers 4 --visits 400` runs a command of yomi whose processor is
used as a GPU is: two evaluation workers, and search workers with two batches in flight each.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from yomi.engine.cli.main import main
from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.devices import Device
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.evaluators.workers import WORKERS_PER_DEVICE, EvaluationWorkers
from yomi.engine.players import setup


def make_queue(make: Callable[[Device], Evaluator], devices: Sequence[Device], _: int | None) -> EvaluationQueue:
    return EvaluationWorkers([functools.partial(make, devices[0])] * WORKERS_PER_DEVICE)


if __name__ == "__main__":
    setattr(setup, "make_device_queue", make_queue)  # noqa: B010  (mypy allows no other way)
    sys.exit(main())
