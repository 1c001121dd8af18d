"""Sets up the players of all games: evaluators, number of threads, settings of the search, tuned settings.

`yomi net calibrate` saves tuned settings for each network, board size and machine in the cache's folder `tuning`.
"""

import dataclasses
import functools
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from yomi.engine.default_network import check_network, has_network, network_file
from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.devices import Device, device_of, devices_of
from yomi.engine.evaluators.kernel_evaluators import KernelFormat, UniformEvaluator
from yomi.engine.evaluators.network import FileEvaluator, FileFormat, open_network
from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue
from yomi.engine.evaluators.workers import EvaluationWorkers, make_device_queue
from yomi.engine.machine import nvidia_devices, package_versions, processor_name, usable_cores
from yomi.engine.options import TABLE, OptionError, Options, SearchOptions, Value, rows_for
from yomi.engine.players.precision import with_suitable_precision
from yomi.engine.players.request import PlayableGame
from yomi.engine.search.types import SearchSettings
from yomi.errors import one_line
from yomi.native.spec import Inputs
from yomi.nets.errors import NetworkError
from yomi.nets.files import default_cache_dir, known_digest, write_atomically
from yomi.nets.metadata import BoardSize
from yomi.nets.text import parse_json

_log = logging.getLogger("yomi.networks")

# Options that are tuned. Their defaults leave them open.
TUNED = ("device", "backend", "precision", "batch_size", "workers", "batches_in_flight")


@dataclass(frozen=True, slots=True)
class EvaluatorFactory:
    game: str
    title: str  # the game in messages
    plain: str  # the evaluator without a network, by its name in the option `evaluator`
    make_default: Callable[[Options], Evaluator]
    formats: Sequence[type[FileFormat]]  # of the networks

    def check(self, options: Options) -> None:
        """Raise EvaluatorError if the evaluator is not for this game, or if a network is named but not used."""
        kind = options.evaluator
        if has_network(options):
            return
        if kind not in (self.plain, "uniform"):
            raise EvaluatorError(
                f"evaluator {kind} does not know {self.title}: expected auto, onnx, {self.plain} or uniform"
            )
        if options.net is not None:
            raise EvaluatorError(f"evaluator {kind} uses no network: expected no --net (DNN_Model), or no --evaluator")

    def make_queue(
        self,
        options: Options,
        size: BoardSize,
        begin: Callable[[], PlayableGame],
        finish: Callable[[FileEvaluator, Device], Evaluator] = lambda network, device: network,
    ) -> EvaluationQueue:
        """Return the evaluation queue that the options describe.

        Args:
            options: the settings.
            size: board size.
            begin: returns the start of a game. Precisions are compared on games from there.
            finish: makes the final evaluator from a network on a device.

        Raises:
            NetworkError: the network's file cannot be used.
            EvaluatorError: the evaluator or the device cannot be used.
        """
        self.check(options)
        if options.evaluator == "uniform":
            return InlineQueue(UniformEvaluator(options.batch_size or 16))
        net = network_file(options, self.game)
        if net is None:
            return InlineQueue(self.make_default(options))
        check_network(Path(net), self.game)
        network = open_network(self.formats, net, size)

        def make(device: Device) -> Evaluator:
            load = functools.partial(_load, network, options, device)
            return finish(with_suitable_precision(load, options.precision, begin), device)

        if isinstance(network, KernelFormat):
            return InlineQueue(make(device_of(options)))
        return make_device_queue(make, devices_of(options), options.device_workers)


def _load(network: FileFormat, options: Options, device: Device, precision: str) -> FileEvaluator:
    # A reference for the comparison is not worth its space on the disk.
    keep = precision == options.precision
    return network.load(device, options.backend, options.batch_size, precision, keep=keep)


def search_threads(options: Options, queue: EvaluationQueue) -> tuple[int, int]:
    """Return the number of search threads, and of batches in flight for each thread.

    On a processor each core evaluates its own batches; more threads than cores would compete. A GPU gets three times
    as many search threads as evaluation workers (at most one per core, at least 2), with two batches each, so that one
    batch always waits for the device. Measurements: docs/how-to/gpu.md.
    """
    cores = usable_cores()
    if isinstance(queue, EvaluationWorkers):
        workers, batches = options.workers or max(2, min(cores, 3 * queue.worker_count)), 2
    else:
        workers, batches = min(options.workers or cores, cores), 1
    return workers, options.batches_in_flight or batches


def common_settings(
    options: Options, game: str, queue: EvaluationQueue, c_puct: float, **decided: Any
) -> SearchSettings:
    """Return the search settings of all games from the options. Unset options get values for the machine and evaluator.

    `c_puct` is the value if the option is unset. `decided` are settings that the game or the evaluator overrides.
    """
    known = {row.name for row in fields(SearchOptions)}
    chosen: dict[str, Any] = {row.name: options.get(row.name) for row in rows_for(game) if row.name in known}
    chosen["workers"], chosen["batches_in_flight"] = search_threads(options, queue)
    if options.c_puct is None:
        chosen["c_puct"] = c_puct
    if not queue.evaluator.inputs & Inputs.NETWORK:
        chosen["cache_size"] = 0
    return SearchSettings(**chosen | decided)


@dataclass(frozen=True, slots=True)
class Tuning:
    choice: dict[str, Value]  # value of each of TUNED
    evaluations_per_second: float  # of the search, during tuning

    def __str__(self) -> str:
        flags = " ".join(f"{TABLE[name].flag} {TABLE[name].format(value)}" for name, value in self.choice.items())
        return f"{flags} ({self.evaluations_per_second:,.0f} evaluations/s)"


def tuned(options: Options, game: str, size: BoardSize) -> Options:
    """Return the options with tuned values for unset options, or the same object if nothing was tuned.

    The tuned values belong together. They are used only if all options of TUNED are unset.
    """
    net = network_file(options, game)
    if not isinstance(size, int):  # only square boards are calibrated
        return options
    if net is None or any(options.get(name) != TABLE[name].default for name in TUNED):
        return options
    tuning = load_tuning(Path(net), size)
    if tuning is None:
        return options
    return dataclasses.replace(options, **tuning.choice)  # type: ignore[arg-type]


def load_tuning(net: Path, size: int) -> Tuning | None:
    """Return the tuned settings for a network on this machine, or None if there are none."""
    path, text = net, ""
    try:
        path = _tuning_file(net, size)
        text = path.read_text(encoding="utf-8")
        data = parse_json(text)
        choice = {name: TABLE[name].check(data["choice"][name]) for name in TUNED}
        return Tuning(choice, float(data["evaluations_per_second"]))
    except (FileNotFoundError, NetworkError):  # never tuned, or no such network, which its loading will say
        return None
    except (OSError, ValueError, KeyError, TypeError, OptionError) as error:
        _warn_once(path, text, one_line(str(error)))
        return None


@functools.cache
def _warn_once(path: Path, text: str, error: str) -> None:
    _log.warning("%s cannot be used (%s): expected what yomi net calibrate writes", path, error)


def save_tuning(net: Path, size: int, tuning: Tuning) -> Path:
    """Save tuned settings for a network on this machine. Return the file, or raise OSError."""
    path = _tuning_file(net, size)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"network": net.name, "board_size": size, "machine": machine_facts(), **dataclasses.asdict(tuning)}
    write_atomically(path, (json.dumps(data, indent=1) + "\n").encode())
    return path


@functools.cache
def machine_facts() -> dict[str, object]:
    """Return the facts about the machine on which tuned settings depend."""
    return {
        "processor": processor_name(),
        "cores": usable_cores(),
        "gpus": nvidia_devices(),
        "packages": package_versions(),
    }


def _tuning_file(net: Path, size: int) -> Path:
    network = known_digest(net)
    digest = hashlib.sha256(json.dumps([network, size, machine_facts()]).encode()).hexdigest()
    return default_cache_dir() / "tuning" / f"{digest[:32]}.json"
