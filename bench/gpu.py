"""`bench gpu`: checks that yomi computes correctly on GPUs, measures the speed, and profiles the operators of networks.

Parts whose software is not installed are skipped, with the reason. The parts of a device run in a process of their own:
if it crashes or hangs, that part has failed, and another process continues with the next.
"""

import contextlib
import dataclasses
import functools
import json
import os
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from yomi.bench import gpu_proofs
from yomi.bench.flags import GPU_OPTIONS
from yomi.bench.gpu_proofs import NotInstalledError, Proof
from yomi.bench.measure import evaluator_rate, make_job
from yomi.engine.calibration import search_counts
from yomi.engine.cli.output import say, set_up_logs
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import KINDS, Device, devices_of, find_fault
from yomi.engine.evaluators.network import open_network
from yomi.engine.evaluators.onnx_session import PROFILE
from yomi.engine.game import Game
from yomi.engine.options import Options
from yomi.engine.registry import GAMES, GO, SHOGI
from yomi.engine.search.search import Search
from yomi.engine.search.types import SearchableGame
from yomi.nets.dlshogi.random_network import write_network
from yomi.nets.files import write_atomically
from yomi.nets.katago import network as katago
from yomi.nets.katago.onnx_export import export_onnx
from yomi.nets.katago.outputs import describe
from yomi.nets.models import default_network
from yomi.processes import CONTEXT

# Batch sizes to measure; the session has buffers for the largest.
BATCHES = (64, 128, 256, 512)
# Share of the evaluator's own speed that the search should reach.
SHARE = 0.9
# Seconds of search: before the first measurement, and per position to find the best batch size.
WARM_UP, TRIAL = 0.3, 0.5
# Kinds of devices that the device auto tries, the fastest first; kinds that --all tries, the most wanted first.
FASTEST = ("tensorrt", "cuda", "rtx", "webgpu", "openvino")
ALL = ("cuda", "tensorrt", "webgpu", "rtx", "openvino")
GRACE = 60.0  # seconds that a part may take after the end of its device's time, such as to build an engine
PART_SECONDS = 300.0  # a part that takes longer hangs; the end of the time has cut off a shorter one
PROFILE_SECONDS = 120.0
# The last batches of a profile, which are counted: the first ones prepare the session.
PROFILED = 10
Row = dict[str, Any]
Note = Callable[[list[Row]], None]
ALONE = "alone"  # the result of an evaluator without a search begins so
COLUMNS = ("device", "part", "what", "result", "batch", "per_second", "milliseconds", "share", "mark", "seconds")


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A network to measure, and the speed that it should reach."""

    game: Game[Any, Any]
    size: int
    # Blocks and channels of a network with random weights, which do not change its speed; None for a bundled network.
    shape: tuple[int, int] | None
    # evaluations/s to reach on one data-centre GPU: in search, and alone
    evaluations: int | None = None
    alone: int | None = None
    share: float = SHARE  # of the speed alone that the search should reach
    is_profiled: bool = False

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
# The most wanted first: the time may end.
MARKS = (
    Mark(GO, 19, None, 20_000, alone=25_000, share=0.8, is_profiled=True),
    Mark(SHOGI, 9, (10, 192), 120_000, is_profiled=True),
    Mark(GO, 19, (10, 128), 50_000),
    Mark(GO, 9, (10, 128), 100_000),
    Mark(SHOGI, 9, None),
    Mark(GO, 9, None),
)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The parts of the benchmark on one device."""

    options: Options  # only GPU_OPTIONS are used
    seconds: float  # time of search for each position, and of the evaluator alone for each batch size
    stress: float  # seconds in which workers are stopped at random
    folder: Path  # for networks with random weights
    end: float  # time.monotonic() from which parts are left out
    best: dict[str, int] = dataclasses.field(default_factory=dict)  # fastest batch alone of the measured networks

    def parts(self) -> list[Proof]:
        """Return all parts, the most wanted first."""
        device = devices_of(self.options)[0]
        parts = []
        for mark in MARKS:
            parts.append(Proof("speed", mark.name, functools.partial(self._measure, mark)))
            if mark.is_profiled:
                parts.append(Proof("profile", mark.name, functools.partial(self._profile, mark)))
        name = Proof("device", str(device), lambda: [{"result": device.gpu.name}])
        return [name, *gpu_proofs.list_proofs(device, self.stress, parts)]

    def rows(self, proof: Proof, result: str = "ok") -> list[Row]:
        """Return a part's rows, and report its result on stderr. If the part raises an error, that becomes a row.

        With another `result` the part is not run.
        """
        begin = time.monotonic()
        found: list[Row] = []
        try:
            if result == "ok" and begin > self.end:
                raise NotInstalledError("no time is left, see --minutes")
            found = proof.run() if result == "ok" else []
        except NotInstalledError as error:
            result = f"left out: {_line(error)}"
        except Exception as error:  # whatever a GPU's software raises: the other parts are to run
            result = f"failed: {_line(error)}"
        rows = _rows(self.options.device, proof.part, proof.what, result, time.monotonic() - begin, found)
        self.note_best(rows)
        return rows

    def note_best(self, rows: Sequence[Row]) -> None:
        """Remember the fastest batch alone of a network that was measured."""
        alone = [row for row in rows if row["result"].startswith(ALONE)]
        if alone:
            fastest = max(alone, key=lambda row: float(row["per_second"]))
            self.best[fastest["what"]] = fastest["batch"]

    def send(self, link: Connection, first: int) -> None:
        """Send the rows of each part from number `first` on: the work of a process."""
        if hasattr(os, "setsid"):
            os.setsid()  # a group of its own, for `kill`
        set_up_logs(Options())
        for proof in self.parts()[first:]:
            link.send(self.rows(proof))

    def _measure(self, mark: Mark) -> list[Row]:
        """Measure a network: alone by batch size, then in a search with the fastest batch."""
        own = Options.for_game(mark.game.name)
        for name in GPU_OPTIONS:
            own.set(name, self.options.get(name))
        own.net, own.size = str(mark.write(self.folder)), mark.size
        own.batch_size = self.options.batch_size or max(BATCHES)
        with mark.game.benchmark_setup(own) as (subject, queue, settings):
            most = queue.evaluator.batch_size
            game = subject.games[0]
            load = settings.workers, self.seconds, settings.batches_in_flight
            sizes = sorted({min(rows, most) for rows in BATCHES})
            alone = {rows: evaluator_rate(queue, subject, game, rows, *load) for rows in sizes}
            # Not the batch that is fastest alone: a larger one has more of its rows wasted on leaves in evaluation.
            tried, search = {}, Search(subject.spec, queue, settings)
            for rows in alone:
                queue.evaluator.batch_size = rows  # a search asks for it whenever it makes its batches
                search_counts(search, game, WARM_UP)  # warms caches and clocks up
                tried[rows] = sum(_rates(search, subject.games, TRIAL))
            best = queue.evaluator.batch_size = max(tried, key=tried.__getitem__)
            rate, fastest = statistics.median(_rates(search, subject.games, self.seconds)), max(alone.values())
            how = f"{ALONE}: {queue.evaluator.description.partition(' on ')[2]}"
            result = f"search, {settings.workers} workers: {_verdict(mark, rate, fastest)}"
            found = {"batch": best, "per_second": rate, "share": rate / fastest, "mark": mark.evaluations}
            return [
                *({"result": how, "batch": rows, "per_second": alone[rows], "mark": mark.alone} for rows in alone),
                {"result": result, **found},
            ]

    def _profile(self, mark: Mark) -> list[Row]:
        """Return the share of each kind of operator in the time of the fastest batch.

        A process of its own computes the batches: it waits for each operator, where a search would not.

        Raises:
            NotInstalledError: not onnxruntime, but TensorRT computes the network.
            EvaluatorError: there is no profile.
        """
        options, device = self.options, devices_of(self.options)[0]
        if "onnx" not in device.row.backends:
            raise NotInstalledError(f"onnxruntime does not compute on device {device.kind}")
        rows = options.batch_size or self.best.get(mark.name, max(BATCHES))
        with tempfile.TemporaryDirectory() as folder:
            how = os.path.join(folder, "profile"), options, mark.game.name, mark.size, mark.write(self.folder), rows
            process = CONTEXT.Process(target=compute, args=how)
            process.start()
            process.join(PROFILE_SECONDS)
            process.kill()
            process.join()
            files = sorted(Path(folder).glob("*.json"))
            if process.exitcode or not files:
                status = f"status {process.exitcode} and {len(files)} profiles"
                raise EvaluatorError(f"{status} found after {PROFILE_SECONDS:g} s at most, expected 0 and 1")
            return [{"batch": rows, **each} for each in summarize(json.loads(files[-1].read_text(encoding="utf-8")))]


def compute(prefix: str, options: Options, game: str, size: int, path: Path, rows: int) -> None:
    """Compute batches with a profile of each session in files that begin with `prefix`: the work of a process."""
    os.environ.update({PROFILE: prefix, "CUDA_LAUNCH_BLOCKING": "1"})
    subject = GAMES[game].benchmark_positions(Options(size=size))
    network = open_network(GAMES[game].formats, path, size)
    evaluator = network.load(devices_of(options)[0], batch_size=rows, precision=options.precision)
    with contextlib.closing(evaluator):
        batch = make_job(evaluator, subject, subject.games[0], rows, SimpleQueue()).batch
        for _ in range(PROFILED):
            evaluator.evaluate(batch, rows)


def run(options: Options, kinds: Sequence[str], seconds: float, stress: float, minutes: float, note: Note) -> list[Row]:
    """Run all parts of the benchmark. A part that fails does not stop the others.

    Each kind of device has an equal share of the time that the earlier ones left. It leaves parts out after that.

    Args:
        options: the options of the benchmark; only GPU_OPTIONS are used.
        kinds: see `list_kinds`.
        seconds: see Plan.
        stress: see Plan.
        minutes: time of all parts.
        note: called after each part with all rows up to it.

    Returns:
        One row for each measurement, with the columns of COLUMNS. `result` is ok, or failed or left out with the
            reason.
    """
    end = time.monotonic() + 60.0 * minutes
    rows: list[Row] = []
    chosen: list[Options] = []
    for kind in kinds:
        try:
            chosen.append(choose_gpu(dataclasses.replace(options, device=kind)))
        except EvaluatorError as error:
            rows += _rows(kind, "device", kind, f"left out: {error}")
    with tempfile.TemporaryDirectory() as folder:
        for left, each in zip(range(len(chosen), 0, -1), chosen, strict=True):
            now = time.monotonic()
            plan = Plan(each, seconds, stress, Path(folder), now + (end - now) / left)
            for found in run_parts(plan):
                rows += found
                with contextlib.suppress(OSError):  # the benchmark's end tries again, and reports it
                    note(rows)
    return rows


def run_parts(plan: Plan) -> Iterator[list[Row]]:
    """Yield the rows of each part. A process computes them; if it crashes or hangs, another continues."""
    parts, done = plan.parts(), 0
    while done < len(parts):
        link, other = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=plan.send, args=(other, done))
        process.start()
        other.close()
        result = ""
        try:
            while done < len(parts) and not result:
                begin = time.monotonic()
                rows: list[Row] = []
                try:
                    if link.poll(max(0.0, plan.end - begin) + GRACE):
                        rows = link.recv()
                    elif (spent := time.monotonic() - begin) < PART_SECONDS:
                        result = f"left out: the time ended {spent:.0f} s after it began"
                    else:
                        result = f"failed: no result after {spent:.0f} s"
                except (EOFError, OSError):  # OSError: it ended in the middle of a row, or on Windows
                    process.join()
                    result = f"failed: the process ended with status {process.exitcode}"
                rows = rows or plan.rows(parts[done], result)
                plan.note_best(rows)
                yield rows
                done += 1
        finally:
            kill(process)


def kill(process: BaseProcess) -> None:
    """Kill a process and, where the system has groups of processes, the processes that it started. Wait for its end."""
    if process.pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):  # it has not begun, or is gone
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def list_kinds(options: Options, every: bool) -> list[str]:
    """Return the kind of the chosen device. If `every` and the user chose none, return ALL.

    Raises:
        EvaluatorError: no GPU works, or the user chose the processor; the message names the skipped parts.
    """
    try:
        chosen = choose_gpu(options)
    except EvaluatorError as error:
        proofs = gpu_proofs.list_proofs(Device("cuda"), 0.0, [Proof(part, "", list) for part in ("speed", "profile")])
        skipped = ", ".join(dict.fromkeys(proof.part for proof in proofs))
        raise EvaluatorError(f"{error}; skipped: {skipped}") from None
    return list(ALL) if every and options.device == "auto" else [chosen.device]


def choose_gpu(options: Options) -> Options:
    """Return the options with the best GPU that works here, in fp16 unless the user or the device requires fp32.

    Raises:
        EvaluatorError: no GPU works, or the user chose the processor.
    """
    kind = options.device
    if kind == "cpu":
        raise EvaluatorError(f"device cpu found, expected a GPU: {', '.join(each for each in KINDS if each != 'cpu')}")
    if kind == "auto":
        kind = next((each for each in FASTEST if find_fault(each) is None), "cuda")
    chosen = dataclasses.replace(options, device=kind)
    first, *_ = devices_of(chosen)
    if options.precision == "auto":  # random weights need no comparison
        chosen.precision = "fp16" if first.gpu.has_half else "fp32"
    return chosen


def _rows(device: str, part: str, what: str, result: str, seconds: float = 0.0, found: Sequence[Row] = ()) -> list[Row]:
    """Return the rows of a part, and report the last on stderr. `found` overrides the other arguments."""
    common = {"device": device, "part": part, "what": what, "result": result, "seconds": seconds}
    rows = [{name: {**common, **each}.get(name) for name in COLUMNS} for each in found or [{}]]
    say(f"{device}: {part}, {what}: {rows[-1]['result']}")
    return rows


def failed(rows: list[Row]) -> bool:
    return any(str(row["result"]).startswith("failed") for row in rows)


def _rates(search: Search, games: Sequence[SearchableGame], seconds: float) -> list[float]:
    return [search_counts(search, game, seconds)["evaluations_per_second"] for game in games]


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _verdict(mark: Mark, rate: float, fastest: float) -> str:
    if mark.evaluations is None:
        return "ok"
    is_fast = rate >= mark.evaluations and fastest >= (mark.alone or 0)
    return "reached" if is_fast and rate >= mark.share * fastest else "not reached"


def summarize(events: list[dict[str, Any]]) -> list[Row]:
    """Return a row for each provider and operator in a profile of onnxruntime, the longest first.

    Only the last PROFILED batches count. The last row contains all operators, and those on the processor by name.

    Raises:
        EvaluatorError: no batch was computed.
    """
    batches = [event["ts"] for event in events if event["name"] == "model_run"][-PROFILED:]
    nodes = [
        event for event in events if event["name"].endswith("_kernel_time") and event["ts"] >= min(batches, default=0)
    ]
    if not batches or not nodes:
        raise EvaluatorError("no operator found in onnxruntime's profile, expected some")
    calls, times = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for node in nodes:
        key = node["args"]["op_name"], node["args"]["provider"].removesuffix("ExecutionProvider")
        calls[key] += 1
        times[key] += node["dur"]
    count, total = len(batches), times.total()
    left = ", ".join(f"{calls[key] / count:g} {key[0]}" for key in calls if key[1] == "CPU") or "none"
    found = [(f"{calls[key] / count:g} {' on '.join(key)}", spent) for key, spent in times.most_common()]
    found.append((f"{len(nodes) / count:g} operators; on the processor: {left}", total))
    return [{"result": text, "milliseconds": spent / count / 1e3, "share": spent / total} for text, spent in found]


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
