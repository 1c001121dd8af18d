"""`bench gpu`: checks that yomi computes correctly on a GPU, then measures the speed.

Parts whose software is not installed are skipped, with the reason.
"""

import dataclasses
import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from yomi.bench import gpu_proofs
from yomi.bench.flags import GPU_OPTIONS
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
from yomi.nets.files import write_atomically
from yomi.nets.katago import network as katago
from yomi.nets.katago.onnx_export import export_onnx
from yomi.nets.katago.outputs import describe
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
    """A network to measure, and the speed that it should reach."""

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
    GO: lambda path, size, blocks, channels: write_go_network(path, size, blocks, channels),
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
    """Run all parts of the benchmark. A part that fails does not stop the others.

    Args:
        options: the options of the benchmark; only GPU_OPTIONS are used. Device auto is the fastest installed device.
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
            measure = functools.partial(_measure, mark, chosen, Path(folder), seconds, time.monotonic() - begin)
            rows += _told(Proof("speed", mark.name, measure))
    return rows


def parts() -> list[str]:
    proofs = gpu_proofs.list_proofs(Device("cuda"), 0.0)
    return list(dict.fromkeys([*(proof.part for proof in proofs), "speed"]))


def choose_gpu(options: Options) -> Options:
    """Return the options with the best GPU that works here, in fp16 unless the user or the device requires fp32.

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
    """Run a part, report its result on stderr, and return its rows. If it raises an error, that becomes a row."""
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


def _measure(mark: Mark, options: Options, folder: Path, seconds: float, elapsed: float) -> list[Row]:
    """Measure a network: alone by batch size, then in a search with the fastest batch."""
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
        tried, search = {}, Search(subject.spec, queue, settings)
        for rows in alone:
            queue.evaluator.batch_size = rows  # a search asks for it whenever it makes its batches
            search_counts(search, game, WARM_UP)  # warms caches and clocks up
            tried[rows] = sum(search_counts(search, each, TRIAL)["evaluations_per_second"] for each in subject.games)
        best = queue.evaluator.batch_size = max(tried, key=tried.__getitem__)
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


def _verdict(mark: Mark, rate: float, share: float) -> str:
    if mark.evaluations is None:
        return "ok"
    return "reached" if rate >= mark.evaluations and share >= SHARE else "not reached"


# -- a network for Go --------------------------------------------------------------------------------------------------

KATAGO_VERSION = 8
# As in KataGo's networks of 10 blocks × 128 channels.
HEAD_CHANNELS, VALUE_WIDTH = 32, 64
SEED = 1
GAINS = {"conv2": 0.3}  # of the sums that blocks add to the trunk


class _Weights:
    """Random weights with which activations stay near 1."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(SEED)

    def records(self, kind: type, layout: str, kernel: int, **sizes: int) -> dict[str, Any]:
        """Return the records of a layout by field. Its convolutions have the size `kernel`."""
        return {
            name: self.record(record, name, kernel, *(factor * sizes[letter] for factor, letter in letters))
            for name, record, letters in katago.entries(kind, layout)
        }

    def record(self, kind: str, name: str, kernel: int, inputs: int = 0, outputs: int = 0) -> Any:
        draw = self._rng.standard_normal
        match kind:
            case "Conv":
                scale = GAINS.get(name, 1.0) * np.sqrt(2.0 / (inputs * kernel**2))
                return katago.Conv(name, (scale * draw((outputs, inputs, kernel, kernel))).astype(np.float32))
            case "MatMul":
                return katago.MatMul(name, (draw((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32))
            case "MatBias":
                return katago.MatBias(name, np.zeros(inputs, np.float32))
            case "BatchNorm":
                zeros, ones = np.zeros(inputs, np.float32), np.ones(inputs, np.float32)
                return katago.BatchNorm(name, zeros, ones, ones, (0.1 * draw(inputs)).astype(np.float32), 1e-5)
        return katago.Activation.RELU


def make_go_network(blocks: int, channels: int) -> katago.KataGoNetwork:
    """Return a network with random weights. Equal shapes get equal weights."""
    w, head = _Weights(), HEAD_CHANNELS
    sizes = {"c": channels, "m": channels}
    trunk = katago.Trunk(
        conv=w.record("Conv", "conv1", 5, katago.SPATIAL_CHANNELS, channels),
        matmul=w.record("MatMul", "ginputw", 0, katago.GLOBAL_CHANNELS, channels),
        meta_encoder=None,
        blocks=tuple(
            katago.OrdinaryBlock(f"block{number}", **w.records(katago.OrdinaryBlock, katago.ORDINARY, 3, **sizes))
            for number in range(blocks)
        ),
        tip_norm=w.record("BatchNorm", "norm", 0, channels),
        tip_act=katago.Activation.RELU,
    )
    heads = {"c": channels, "p": head, "g": head, "v": head, "h": VALUE_WIDTH, "o": 1, "r": 3, "s": 4}
    layout = f"{katago.POLICY}, {katago.OLD_PASS}"
    policy = katago.PolicyHead(**katago.NO_PASS_LAYER | w.records(katago.PolicyHead, layout, 1, **heads))
    value = katago.ValueHead(**w.records(katago.ValueHead, katago.VALUE, 1, **heads))
    name, scales = f"random-b{blocks}c{channels}", katago.OutputScales()
    return katago.KataGoNetwork(name, KATAGO_VERSION, scales, False, trunk, policy, value)


def write_go_network(path: Path, size: int, blocks: int, channels: int) -> Path:
    """Write a Go network with random weights as an ONNX file for boards of `size`. Return its path."""
    network = make_go_network(blocks, channels)
    info = describe(network, size, path.name, "0" * 64)
    write_atomically(path, export_onnx(network, size, info.to_props()).SerializeToString(deterministic=True))
    return path
