"""The deliberate fault of `bench gpu`, in a process of its own: `python -m yomi.bench.gpu_fault NUMBER`."""

from __future__ import annotations

import contextlib
import sys
from queue import SimpleQueue

from yomi.engine.cli.output import set_up_logs
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.cuda import CudaDriver
from yomi.engine.evaluators.queue import Job
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.options import Options
from yomi.native.go.spec import go_spec
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.native.tree.buffers import make_batch

BAD_ADDRESS = 64
SECONDS = 60


class FaultyKernel:
    """An evaluator whose kernel reads an invalid address."""

    inputs = Inputs.NOTHING
    batch_size = 1

    def __init__(self, number: int) -> None:
        self.description = f"GPU {number} with a faulty kernel"
        self._driver = CudaDriver(number)
        self._target = self._driver.allocate(4 * 32)

    def evaluate(self, batch: Batch, rows: int) -> None:
        self._driver.unpack(BAD_ADDRESS, self._target, 1, 1, 32, 1, "float32")
        try:
            self._driver.synchronize()
        except EvaluatorError:
            self._driver.expect_alive()
            raise

    def bind(self, batch: Batch) -> None:
        """Return None: this evaluator has no kernels of numba."""

    def close(self) -> None:
        self._driver.close()


# After a kernel reads an invalid address, CUDA refuses all calls of this process. yomi has to give the GPU up with one
# line, return the batches with an error, and end with status 0.
def main(number: int) -> int:
    """Return 0 if both batches come back with an error, the second after the GPU was given up."""
    done: SimpleQueue[Job] = SimpleQueue()
    with contextlib.closing(EvaluationWorkers([lambda: FaultyKernel(number)])) as queue:
        for _ in range(2):
            queue.submit(Job(make_batch(go_spec(9), 1, Inputs.NOTHING), 1, done))
            if not isinstance(done.get(timeout=SECONDS).error, EvaluatorError):
                return 1
        return 0 if queue.worker_count == 0 else 1


if __name__ == "__main__":
    set_up_logs(Options())
    sys.exit(main(int(sys.argv[1])))
