"""The checks of `bench gpu`: the GPU computes the same as the processor, and faults are handled."""

import contextlib
import functools
import itertools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from yomi.bench.measure import fill_row
from yomi.engine.cli.output import set_up_logs
from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.cuda import CudaDriver
from yomi.engine.evaluators.devices import CPU, Device
from yomi.engine.evaluators.network import OnNetwork, open_network
from yomi.engine.evaluators.queue import Job
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.game import BenchmarkPositions, Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.options import TABLE, Options
from yomi.engine.players.precision import Agreement
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.errors import reraised
from yomi.native.go.spec import go_spec
from yomi.native.packing import packed_bytes
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE, Batch
from yomi.native.tree.buffers import make_batch
from yomi.nets.models import default_network

GAMES: tuple[Game[Any, Any], ...] = (SHOGI, GO)
# Bits of a row: less than a word, dlshogi's two inputs, Go's planes on 19×19.
SIZES = (31, 57, 62 * 81, 22 * 361)
# Points that a bit is repeated for, if an input is constant over the board.
BOARD = 81
THREADS, TIMES = 4, 10
# Rows of the largest batch, compared positions, and batches of random size.
ROWS, POSITIONS, BATCHES = 32, 96, 40
BOARD_9 = Options(size=9, leaf_mate_depth=0)
# Maximum difference of logits, values and ownership in fp32, where sums have another order.
TOLERANCE = 0.005
FAULT_SECONDS = 120
# The deliberate fault: an invalid address, and the time until the workers return a batch.
BAD_ADDRESS, BATCH_SECONDS = 64, 60


class NotInstalledError(EvaluatorError):
    """A check cannot run here, because software is missing."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A check of `bench gpu`."""

    part: str
    what: str
    # Returns rows of the table, or none. Raises an exception if the check fails.
    run: Callable[[], list[dict[str, Any]]]


def list_proofs(device: Device, stress: float, speeds: Sequence[Proof]) -> list[Proof]:
    """Return all checks of a GPU, the simplest first. Some are for devices whose driver yomi itself calls.

    Args:
        device: the GPU.
        stress: seconds in which its sessions are stopped at random.
        speeds: measurements, to be run before the checks that take long.
    """
    number = device.number
    proofs = [
        Proof(part, game.name, functools.partial(prove_session, game, device, precision))
        for part, precision in (("sessions", "fp32"), ("fp16 agreement", "fp16"))
        for game in GAMES
    ]
    proofs += [*speeds, Proof("workers stopped", f"{stress:g} s", functools.partial(prove_stopping, device, stress))]
    if not device.row.uses_cuda:
        return proofs
    return [
        Proof("unpack kernel", f"{len(SIZES)} sizes, 2 types", functools.partial(prove_unpacking, number, SIZES)),
        Proof("contexts", f"{THREADS} threads, each {TIMES} times", functools.partial(prove_contexts, number)),
        *proofs,
        Proof("deliberate fault", "in a process of its own", functools.partial(prove_fault, number)),
    ]


def prove_unpacking(number: int, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Compare native/cuda/unpack.cu with numpy. Each bit is unpacked to one number, and to a whole board of numbers.

    Raises:
        EvaluatorError: they differ.
    """
    with contextlib.closing(CudaDriver(number)) as driver:
        for bits, dtype, repeat in itertools.product(sizes, ("float32", "float16"), (1, BOARD)):
            if repeat > 1 and bits >= BOARD:
                continue
            found, wanted = _unpacked(driver, bits, repeat, dtype)
            if not (found == wanted).all():
                count = np.count_nonzero(found != wanted)
                raise EvaluatorError(f"{bits} bits, {dtype}: {count} of {wanted.size} numbers differ from numpy's")
    return []


def prove_contexts(number: int) -> list[dict[str, Any]]:
    """Open and close a GPU in several threads at the same time, and run a kernel in between.

    Raises:
        Exception: the first failure of a thread.
    """
    barrier = threading.Barrier(THREADS)

    def open_and_close(_: int) -> None:
        barrier.wait()
        for _ in range(TIMES):
            prove_unpacking(number, SIZES[:1])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(open_and_close, range(THREADS)))
    return []


def prove_session(game: Game[Any, Any], device: Device, precision: str) -> list[dict[str, Any]]:
    """Evaluate positions in batches of random sizes, and compare the outputs with the processor's.

    Raises:
        NotInstalledError: the software of this kind of session is missing.
        EvaluatorError: outputs differ by more than TOLERANCE; in fp16, best moves or values differ too often or too
            far.
    """
    with reraised(EvaluatorError, NotInstalledError):
        device.check()
    if precision == "fp16" and not device.gpu.has_half:
        raise NotInstalledError(f"device {device} has no float16")
    wanted = reference(game)
    found = _Differences(wanted)
    rng = np.random.default_rng(1)
    done: SimpleQueue[Job] = SimpleQueue()
    with contextlib.closing(EvaluationWorkers([lambda: _make(game, device, precision)])) as queue:
        for _ in range(BATCHES):
            queue.submit(_job(wanted, rng, done))
            found.add(done.get())
    agreement = Agreement(len(found.same), float(np.mean(found.same)), float(np.mean(found.errors)))
    if precision == "fp32":
        found.expect_equal()
        return [{"result": f"ok, greatest difference {found.greatest:.1e}"}]
    if not agreement.is_enough:
        raise EvaluatorError(str(agreement))
    return [{"result": f"ok, {agreement}"}]


def prove_stopping(device: Device, seconds: float) -> list[dict[str, Any]]:
    """Make one of two workers fail at random times, and check every batch.

    Raises:
        EvaluatorError: a batch is wrong, a worker was given up, or no worker was stopped in that time.
    """
    wanted = reference(GAMES[-1])
    found = _Differences(wanted)
    rng, draw = np.random.default_rng(2), random.Random(2)
    order = threading.Event()
    done: SimpleQueue[Job] = SimpleQueue()
    stops, evaluated, last = 0, 0, 0

    make = functools.partial(_make, GAMES[-1], device, "fp32")
    with contextlib.closing(EvaluationWorkers([lambda: _Stoppable(make(), order)] * 2)) as queue:
        end = time.monotonic() + seconds  # to make the sessions may take minutes
        for _ in range(4):
            queue.submit(_job(wanted, rng, done))
        while time.monotonic() < end:
            found.add(done.get())
            evaluated += 1
            if not order.is_set() and evaluated > last + 20 and draw.random() < 0.05:
                stops, last = stops + 1, evaluated
                order.set()
            queue.submit(_job(wanted, rng, done))
        for _ in range(4):
            found.add(done.get())
        left = queue.worker_count
    found.expect_equal()
    if left < 2 or not stops:
        raise EvaluatorError(f"{left} workers left after {stops} stops in {evaluated} batches, expected 2 and some")
    return [{"result": f"ok, {stops} stops in {evaluated} batches"}]


def prove_fault(number: int) -> list[dict[str, Any]]:
    """Run a kernel that reads an invalid address, in a child process.

    The process must survive, and report in one line that it does not use the GPU any more.

    Raises:
        EvaluatorError: it does not.
    """
    command = [sys.executable, "-m", "yomi.bench.gpu_proofs", str(number)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=FAULT_SECONDS)
    lines = [line for line in ended.stderr.splitlines() if "no other device is left" in line]
    if ended.returncode or len(lines) != 1:
        said = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
        raise EvaluatorError(
            f"status {ended.returncode}, {len(lines)} lines that give the GPU up found, expected 0 and 1; last: {said}"
        )
    return [{"result": f"ok: {lines[0]}"}]


@functools.cache
def reference(game: Game[Any, Any]) -> Batch:
    """Return POSITIONS positions with the processor's outputs in fp32."""
    subject = game.benchmark_positions(BOARD_9)
    evaluator = _make(game, CPU, "fp32")
    batch = _played(game, subject, random.Random(1))
    evaluator.evaluate(batch, POSITIONS)
    evaluator.close()
    return batch


class _Differences:
    """Collects the differences between evaluated batches and a reference."""

    def __init__(self, wanted: Batch) -> None:
        self._wanted = wanted
        self.greatest = 0.0
        # By row: whether the best legal move is the same.
        self.same: list[bool] = []
        # By row: absolute difference of the values.
        self.errors: list[float] = []

    def add(self, job: Job) -> None:
        """Compare an evaluated job.

        Raises:
            Exception: the job's own failure.
        """
        if job.error is not None:
            raise job.error
        for row, index in enumerate(job.batch.node[: job.rows]):
            legal = self._wanted.indices[index, : self._wanted.move_count[index]]
            pairs = [
                (job.batch.logits[row, legal], self._wanted.logits[index, legal]),
                (job.batch.values[row, [VALUE]], self._wanted.values[index, [VALUE]]),
                (job.batch.ownership[row], self._wanted.ownership[index]),
            ]
            distances = [float(np.abs(a - b).max(initial=0.0)) for a, b in pairs]
            self.greatest = float(np.max([self.greatest, *distances]))  # NaN if one is
            self.same.append(bool(pairs[0][0].argmax() == pairs[0][1].argmax()))
            self.errors.append(distances[1])

    def expect_equal(self) -> None:
        """Raise EvaluatorError if a number differs by more than TOLERANCE."""
        if not self.greatest <= TOLERANCE:
            raise EvaluatorError(f"outputs {self.greatest:.2g} from the processor's found, expected {TOLERANCE:g}")


class _Stoppable(OnNetwork):
    """An evaluator that fails once whenever `order` is set."""

    def __init__(self, inner: Any, order: threading.Event) -> None:
        super().__init__(inner)
        self._order = order

    def evaluate(self, batch: Batch, rows: int) -> None:
        if self._order.is_set():
            self._order.clear()
            raise EvaluatorError("stopped on purpose")
        super().evaluate(batch, rows)

    def bind(self, batch: Batch) -> None: ...


def _make(game: Game[Any, Any], device: Device, precision: str) -> Any:
    network = open_network(game.formats, default_network(game.name), 9)
    return network.load(device, batch_size=ROWS, precision=precision)


def _job(batch: Batch, rng: np.random.Generator, done: SimpleQueue[Job]) -> Job:
    """Return a job with a random number of rows of a batch, drawn by `rng`, and empty outputs."""
    rows = rng.choice(POSITIONS, int(rng.integers(1, ROWS + 1)), replace=False)
    part = Batch(*(array[rows] if len(array) else array for array in batch))
    for output in (part.logits, part.values, part.ownership):
        output[...] = np.nan
    return Job(part, len(rows), done)


def _played(kind: Game[Any, Any], subject: BenchmarkPositions, draw: random.Random) -> Batch:
    """Return positions some random moves after a subject's positions, with a network's inputs as bits and as numbers.

    `node` contains each row's number; evaluators do not touch it.
    """
    batch = make_batch(subject.spec, POSITIONS, Inputs.NETWORK)
    for row in range(POSITIONS):
        game: Any = draw.choice(subject.games).copy()  # type: ignore[attr-defined]
        for _ in range(draw.randrange(8)):
            move = draw.choice(game.legal_moves())
            game.push(move)
        symmetry = row % 8 if TABLE["symmetry"].is_for(kind.name) else 0
        batch.node[row] = row
        fill_row(batch, row, subject, game, symmetry, Inputs.NETWORK)
    return batch


def _unpacked(driver: CudaDriver, bits: int, repeat: int, dtype: str) -> tuple[Any, Any]:
    """Return random bits, unpacked by the kernel and by numpy."""
    rows, width = 7, packed_bytes(bits)
    packed = np.random.default_rng(bits).integers(0, 256, (rows, width)).astype(np.uint8)
    found = np.full((rows, bits * repeat), 9, dtype)
    source, target = driver.allocate(packed.nbytes), driver.allocate(found.nbytes)
    driver.upload(source, packed)
    driver.unpack(source, target, rows, width // 4, bits, repeat, dtype)
    driver.download(found, target)
    driver.synchronize()
    return found, np.unpackbits(packed, axis=1, bitorder="little")[:, :bits].repeat(repeat, axis=1).astype(dtype)


class FaultyKernel(Evaluator):
    """An evaluator whose kernel reads from an invalid address."""

    description = "a GPU with a faulty kernel"
    inputs = Inputs.NOTHING
    batch_size = 1

    def __init__(self, number: int) -> None:
        self._driver = CudaDriver(number)
        self._target = self._driver.allocate(4 * 32)

    def evaluate(self, batch: Batch, rows: int) -> None:
        self._driver.unpack(BAD_ADDRESS, self._target, 1, 1, 32, 1, "float32")
        try:
            self._driver.synchronize()
        except EvaluatorError:
            self._driver.expect_alive()
            raise

    def close(self) -> None:
        self._driver.close()


# After a kernel reads an invalid address, CUDA refuses all calls of this process. yomi has to give the GPU up with one
# line, return the batches with an error, and end with status 0.
def fail(number: int) -> int:
    """Return 0 if both batches come back with an error, the second after the GPU was given up."""
    done: SimpleQueue[Job] = SimpleQueue()
    with contextlib.closing(EvaluationWorkers([lambda: FaultyKernel(number)])) as queue:
        for _ in range(2):
            queue.submit(Job(make_batch(go_spec(9), 1, Inputs.NOTHING), 1, done))
            if not isinstance(done.get(timeout=BATCH_SECONDS).error, EvaluatorError):
                return 1
        return 0 if queue.worker_count == 0 else 1


if __name__ == "__main__":  # the process of `prove_fault`
    set_up_logs(Options())
    sys.exit(fail(int(sys.argv[1])))
