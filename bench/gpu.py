"""`bench gpu`: checks that yomi computes correctly on a GPU, then measures how fast.

Parts whose software is not installed are skipped, with the reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from yomi.bench import gpu_proofs
from yomi.bench.flags import GPU_OPTIONS
from yomi.bench.go_network import write_go_network
from yomi.bench.gpu_proofs import NotInstalledError, Proof
from yomi.bench.measure import evaluator_rate
from yomi.engine.calibration import search_counts
from yomi.engine.cli.output import say
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import KINDS, Device, devices_of, find_fault
from yomi.engine.game import Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.options import Options
from yomi.engine.search.search import Search
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.nets.dlshogi.random_network import write_network
from yomi.nets.models import default_network

# Batch sizes to measure; the session has buffers for the largest.
BATCHES = (64, 128, 256, 512)
# Share of the evaluator's own speed that the search should reach.
SHARE = 0.9
# Seconds of search: before the first measurement, and per position to find the best batch size.
WARM_UP, TRIAL = 0.3, 0.5
# Kinds of devices that the device auto tries, the fastest first.
FASTEST = ("tensorrt", "cuda", "rtx", "webgpu", "openvino")
# Seconds after which no further network is measured.
LIMIT = 480.0
Row = dict[str, Any]
COLUMNS = ("part", "what", "result", "batch", "per_second", "share", "mark", "seconds")


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A network whose speed is measured, with the speed to reach."""

    game: Game[Any, Any]
    size: int
    # Blocks and channels of a network with random weights, which do not change its speed; None for a bundled network.
    shape: tuple[int, int] | None
    evaluations: int | None = None  # evaluations/s in search to reach on one data-centre GPU

    @property
    def name(self) -> str:
        board = self.game.board_name(Options(size=self.size))
        return f"{board}, {'own' if self.shape is None else '{}x{}'.format(*self.shape)}"

    def write(self, folder: Path) -> Path:
        """Return the network's file. Networks with random weights are written to `folder`."""
        if self.shape is None:
            return default_network(self.game.name)
        path, (blocks, channels) = folder / f"{self.name.replace(', ', '-').replace(' ', '-')}.onnx", self.shape
        return WRITERS[self.game](path, self.size, blocks, channels)


# Functions that write a network with random weights: path, board size, blocks, channels.
WRITERS: dict[Game[Any, Any], Callable[[Path, int, int, int], Path]] = {
    GO: write_go_network,
    SHOGI: lambda path, size, blocks, channels: write_network(path, blocks, channels),
}
MARKS = (
    Mark(SHOGI, 9, (10, 192), 100_000),
    Mark(GO, 9, (10, 128), 100_000),
    Mark(GO, 19, (10, 128), 50_000),
    Mark(SHOGI, 9, None),
    Mark(GO, 9, None),
    Mark(GO, 19, None),
)


def run(options: Options, seconds: float, stress: float) -> list[Row]:
    """Run all parts. No part stops the others.

    Args:
        options: GPU_OPTIONS of these are used. Device auto is the fastest device that is installed.
        seconds: time of search for each position, and of the evaluator alone for each batch size.
        stress: seconds in which workers are stopped at random.

    Returns:
        One row for each measurement, with the columns of COLUMNS. `result` is ok, or failed or left out with the
            reason.

    Raises:
        EvaluatorError: there is no GPU; the message names the parts.
    """
    begin = time.monotonic()
    chosen = choose_gpu(options)
    rows: list[Row] = []
    for proof in gpu_proofs.list_proofs(devices_of(chosen)[0], stress):
        rows += _told(proof)
    with tempfile.TemporaryDirectory() as folder:
        for mark in MARKS:
            measure = _measurement(mark, chosen, Path(folder), seconds, time.monotonic() - begin)
            rows += _told(Proof("speed", mark.name, measure))
    return rows


def parts() -> list[str]:
    proofs = gpu_proofs.list_proofs(Device("cuda"), 0.0)
    return list(dict.fromkeys([*(proof.part for proof in proofs), "speed"]))


def choose_gpu(options: Options) -> Options:
    """Return the options with the best GPU device that works here, and fp16 unless the user or the device requires
    fp32.

    Raises:
        EvaluatorError: no GPU works, or the user chose the processor; the message names the skipped parts.
    """
    kind = options.device
    if kind == "cpu":
        raise EvaluatorError(f"device cpu found, expected a GPU: {', '.join(each for each in KINDS if each != 'cpu')}")
    if kind == "auto":
        kind = next((each for each in FASTEST if find_fault(each) is None), "cuda")
    chosen = dataclasses.replace(options, device=kind)
    try:
        first, *_ = devices_of(chosen)
    except EvaluatorError as error:
        raise EvaluatorError(f"{error}; skipped: {', '.join(parts())}") from None
    if options.precision == "auto":  # random weights need no comparison
        chosen.precision = "fp16" if first.gpu.has_half else "fp32"
    return chosen


def failed(rows: list[Row]) -> bool:
    return any(str(row["result"]).startswith("failed") for row in rows)


def _told(proof: Proof) -> list[Row]:
    """Run a part, report how it ended on stderr, and return its rows, whatever error it raises."""
    begin = time.monotonic()
    found: list[Row] = []
    try:
        found = proof.run()
        result = "ok"
    except NotInstalledError as error:
        result = f"left out: {_line(error)}"
    except Exception as error:  # whatever a GPU's software raises: the other parts are to run
        result = f"failed: {_line(error)}"
    seconds = time.monotonic() - begin
    common = {"part": proof.part, "what": proof.what, "result": result, "seconds": seconds}
    rows = [{name: {**common, **each}.get(name) for name in COLUMNS} for each in found or [{}]]
    say(f"{proof.part}, {proof.what}: {rows[-1]['result']}")
    return rows


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _measurement(mark: Mark, options: Options, folder: Path, seconds: float, elapsed: float) -> Callable[[], list[Row]]:
    """Return the function that measures a network: alone by batch size, then in search with the fastest batch."""

    def measure() -> list[Row]:
        if elapsed > LIMIT:
            raise NotInstalledError(f"{LIMIT:g} s have passed")
        own = Options.for_game(mark.game.name)
        for name in GPU_OPTIONS:
            own.set(name, options.get(name))
        own.net, own.size, own.batch_size = str(mark.write(folder)), mark.size, options.batch_size or max(BATCHES)
        with mark.game.benchmark_setup(own) as (subject, queue, settings):
            most = queue.evaluator.batch_size
            game = subject.games[0]
            how = settings.workers, seconds, settings.batches_in_flight
            alone = {
                rows: evaluator_rate(queue, subject, game, rows, *how)
                for rows in sorted({min(rows, most) for rows in BATCHES})
            }
            # Not the batch that is fastest alone: a larger one has more of its rows wasted on leaves in evaluation.
            best, most_tried, search = 0, 0.0, None
            for rows in alone:
                with _batches_of(queue.evaluator, rows):
                    candidate = Search(subject.spec, queue, settings)
                search_counts(candidate, game, WARM_UP)  # warms caches and clocks up
                tried = sum(search_counts(candidate, each, TRIAL)["evaluations_per_second"] for each in subject.games)
                if search is None or tried > most_tried:
                    best, most_tried, search = rows, tried, candidate
            assert search is not None
            rates = [search_counts(search, each, seconds)["evaluations_per_second"] for each in subject.games]
            rate = statistics.median(rates)
            share = rate / max(alone.values())
            how_fast = queue.evaluator.description.partition(" on ")[2]
            return [
                *({"result": f"alone: {how_fast}", "batch": rows, "per_second": alone[rows]} for rows in alone),
                {
                    "result": f"search, {settings.workers} workers: {_verdict(mark, rate, share)}",
                    "batch": best,
                    "per_second": rate,
                    "share": share,
                    "mark": mark.evaluations,
                },
            ]

    return measure


def _verdict(mark: Mark, rate: float, share: float) -> str:
    if mark.evaluations is None:
        return "ok"
    return "reached" if rate >= mark.evaluations and share >= SHARE else "not reached"


@contextlib.contextmanager
def _batches_of(evaluator: Any, rows: int) -> Iterator[None]:
    """Within the block, give new searches batches of `rows` rows."""
    before, evaluator.batch_size = evaluator.batch_size, rows
    try:
        yield
    finally:
        evaluator.batch_size = before
