"""Networks on TensorRT itself: engines, which are built once from an ONNX file and cached, and the session of one
worker.

Networks are strongly typed, the only kind in TensorRT 11: the precision is that of the ONNX file.
"""

import functools
import hashlib
import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError, notices, stop_making
from yomi.engine.evaluators.cuda import CudaDriver
from yomi.engine.evaluators.devices import Device, install_command
from yomi.engine.evaluators.onnx_session import batch_sizes
from yomi.native.packing import packed_bytes
from yomi.nets.files import default_cache_dir, source_digest, write_atomically
from yomi.nets.gpu_variants import SUFFIX, Variant

_log = logging.getLogger("yomi.evaluators")

Array = npt.NDArray[Any]

TRIALS = 3  # batches of each size for the comparison of CUDA graphs
TOLERANCE = 1e-3  # of an output's greatest number: allowed difference between results with and without a graph
INTERVAL = 5.0  # seconds between lines about the progress of a build
FORMAT = 2  # increase it with every change of how engines are built: other engines are not used

# of yomi's log, by TensorRT's severity; warnings are about TensorRT's internals, verbose lines are omitted
LEVELS = {0: logging.ERROR, 1: logging.ERROR, 2: logging.INFO, 3: logging.DEBUG}

# by engine: the workers of one GPU wait for the first of them to build
_building: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


Tensors = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]  # shape of a row, and type, by name


class TensorRtNetwork:
    """An engine with an execution context for each batch size.

    A CUDA graph keeps using the memory and shapes of its context.
    """

    def __init__(self, runtime: Any, engine: Any, sizes: Sequence[int], stream: int) -> None:
        """Make the execution contexts. The engine has a profile for each batch size in `sizes`, in this order.

        The runtime must outlive the engine. The stream prepares profiles and computes batches.

        Raises:
            EvaluatorError: not enough GPU memory, or the shape of a tensor is unknown.
        """
        tensorrt = import_tensorrt()
        self._runtime, self._engine = runtime, engine
        self._contexts: dict[int, Any] = {}
        types: dict[bool, dict[str, np.dtype[Any]]] = {True: {}, False: {}}
        for index in range(engine.num_io_tensors):
            name = engine.get_tensor_name(index)
            is_input = engine.get_tensor_mode(name) == tensorrt.TensorIOMode.INPUT
            types[is_input][name] = np.dtype(tensorrt.nptype(engine.get_tensor_dtype(name)))
        for profile, rows in enumerate(sizes):
            context = engine.create_execution_context()
            if context is None:
                raise EvaluatorError("TensorRT could not make an execution context: expected more free GPU memory")
            context.set_optimization_profile_async(profile, stream)
            for name in types[True]:
                if not context.set_input_shape(name, (rows, *tuple(engine.get_tensor_shape(name))[1:])):
                    raise EvaluatorError(f"TensorRT refuses batches of {rows} rows for {name}")
            unknown = context.infer_shapes()
            shapes = {name: tuple(context.get_tensor_shape(name)) for each in types.values() for name in each}
            unknown += [name for name, shape in shapes.items() if shape[0] != rows or min(shape) < 0]
            if unknown:
                found = ", ".join(f"{name} of shape {shapes[name]}" for name in unknown)
                raise EvaluatorError(f"{found} found in batches of {rows} rows: expected {rows}, then known lengths")
            self._contexts[rows] = context
        self.inputs: Tensors = {name: (shapes[name][1:], dtype) for name, dtype in types[True].items()}
        self.outputs: Tensors = {name: (shapes[name][1:], dtype) for name, dtype in types[False].items()}

    def enqueue(self, rows: int, addresses: Mapping[str, int], stream: int) -> None:
        """Start the computation of `rows` rows on a stream, with the addresses of all inputs and outputs."""
        context = self._contexts[rows]
        for name, address in addresses.items():
            if not context.set_tensor_address(name, address):
                raise EvaluatorError(f"TensorRT refuses the address of {name}; its messages on stderr say why")
        if not context.execute_async_v3(stream):
            raise EvaluatorError("TensorRT could not start a batch; its messages on stderr say why")

    def close(self) -> None:
        """Release contexts, engine and runtime, in this order."""
        self._contexts.clear()
        self._engine = None
        self._runtime = None


def import_tensorrt() -> Any:
    """Import TensorRT and return it. Raises EvaluatorError with the remedy."""
    try:
        import tensorrt
    except (ImportError, OSError) as error:  # OSError: of its libraries
        command = install_command("tensorrt")
        raise EvaluatorError(f"TensorRT cannot be imported ({error}); to mend it: {command}") from error
    return tensorrt


@functools.cache
def get_logger() -> Any:
    """Return TensorRT's logger. It writes to the log, and errors to stderr, while TensorRT's own logger writes to
    stdout.

    There is one for the whole process: TensorRT keeps the first and warns about every other.
    """
    base: Any = import_tensorrt().ILogger

    class Logger(base):  # type: ignore[misc]  # of no known type
        def __init__(self) -> None:
            super().__init__()

        def log(self, severity: Any, msg: str) -> None:
            if int(severity) in LEVELS:
                _log.log(LEVELS[int(severity)], "TensorRT: %s", msg)

    return Logger()


def load_network(path: Path, gpu: str, driver: str, sizes: Sequence[int], stream: int) -> TensorRtNetwork:
    """Return a network. Its engine is read from the cache, or built with progress on stderr.

    `gpu` is the name of the GPU whose context this thread has, `driver` its driver's version.

    Raises:
        EvaluatorError: TensorRT cannot be imported, or the file cannot be built for this GPU.
    """
    tensorrt = import_tensorrt()
    facts = (source_digest(path), gpu, driver, tensorrt.__version__, *map(str, sizes), str(FORMAT))
    key = hashlib.sha256(" ".join(facts).encode()).hexdigest()[:16]
    folder = default_cache_dir() / "tensorrt"
    entry = folder / f"{key}.engine"
    runtime = tensorrt.Runtime(get_logger())
    with _building[key]:
        _expect_to_go_on(path)  # maybe while another thread was building
        engine = _read_engine(runtime, entry)
        if engine is None:
            timings = folder / f"timings-{hashlib.sha256(' '.join(facts[1:4]).encode()).hexdigest()[:16]}.cache"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(entry, build_engine(path, gpu, sizes, timings))
            except OSError as error:
                raise EvaluatorError(f"{folder}: engines cannot be kept: {error.strerror or error}") from error
            engine = _read_engine(runtime, entry)
    if engine is None:
        raise EvaluatorError(f"{entry}: TensorRT cannot read the engine that it has just built")
    return TensorRtNetwork(runtime, engine, sizes, stream)


def _read_engine(runtime: Any, entry: Path) -> Any:
    """Return a cached engine, or None if there is none or TensorRT rejects it."""
    return runtime.deserialize_cuda_engine(entry.read_bytes()) if entry.exists() else None


def build_engine(path: Path, gpu: str, sizes: Sequence[int], timings: Path) -> bytes:
    """Build an engine with a profile for each batch size, in the precision of the file. `timings` is a cache file.

    Raises:
        EvaluatorError: TensorRT cannot build it, or nobody needs it any more.
    """
    tensorrt, say = import_tensorrt(), notices.get()
    counts = ", ".join(map(str, sizes))
    say(f"building a TensorRT engine of {path.name} for {gpu}, batches of {counts}: once, minutes")
    builder = tensorrt.Builder(get_logger())
    network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(network, get_logger())
    if not parser.parse(path.read_bytes()):
        errors = "; ".join(str(parser.get_error(i)) for i in range(parser.num_errors))
        raise EvaluatorError(f"{path}: TensorRT cannot read it: {' '.join(errors.split())}")
    config = builder.create_builder_config()
    config.clear_flag(tensorrt.BuilderFlag.TF32)  # on by default: products of float32 with mantissas of ten bits
    for rows in sizes:
        profile = builder.create_optimization_profile()
        for index in range(network.num_inputs):
            tensor = network.get_input(index)
            shape = (rows, *tuple(tensor.shape)[1:])
            profile.set_shape(tensor.name, shape, shape, shape)
        config.add_optimization_profile(profile)
    cache = config.create_timing_cache(timings.read_bytes() if timings.exists() else b"")
    if cache is None or not config.set_timing_cache(cache, ignore_mismatch=False):
        say(f"{timings}: TensorRT does not take these timings of another GPU or version: it measures again")
        config.set_timing_cache(config.create_timing_cache(b""), ignore_mismatch=False)
    config.progress_monitor = _make_monitor(tensorrt)
    begin = time.monotonic()
    plan = builder.build_serialized_network(network, config)
    _expect_to_go_on(path)
    if plan is None:
        raise EvaluatorError(f"{path}: TensorRT cannot build an engine for {gpu}; its messages on stderr say why")
    write_atomically(timings, bytes(config.get_timing_cache().serialize()))
    say(f"built in {time.monotonic() - begin:.0f} s")
    return bytes(plan)


def _expect_to_go_on(path: Path) -> None:
    if stop_making.get().is_set():
        raise EvaluatorError(f"{path}: nobody waits for its TensorRT engine any more")


def _make_monitor(tensorrt: Any) -> Any:
    """Return a progress monitor for TensorRT. Its class is made here, as its base exists only in TensorRT."""
    stop, say = stop_making.get(), notices.get()  # TensorRT may call from its own threads

    class Monitor(tensorrt.IProgressMonitor):  # type: ignore[misc]  # of no known type
        def __init__(self) -> None:
            super().__init__()
            self._phases: dict[str, int] = {}
            self._said = time.monotonic()

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self._phases[phase_name] = num_steps

        def step_complete(self, phase_name: str, step: int) -> bool:
            now = time.monotonic()
            if now - self._said >= INTERVAL:
                self._said = now
                say(f"building: {phase_name}, {step + 1} of {self._phases.get(phase_name, 0)} ...")
            return not stop.is_set()

        def phase_finish(self, phase_name: str) -> None:
            self._phases.pop(phase_name, None)

    return Monitor()


@dataclass(frozen=True, slots=True)
class _Packed:
    source: int  # address of the bits
    bits: int  # of a row
    repeat: int  # numbers made of each bit


class TensorRtSession:
    """A session for the thread that makes it. Implements yomi.engine.evaluators.backends.GpuEngine.

    A whole batch, from the first copy to the last, is one CUDA graph, which one call starts.
    """

    def __init__(
        self,
        path: Path,
        device: Device,
        rows: int,
        outputs: Sequence[str],
        variant: Variant,
        *,
        fixed: bool = False,
    ) -> None:
        """Push the device's context, load or build the engine, allocate, and capture a graph of each batch size.

        The ONNX file has the requested precision. The variant names the inputs that are sent as bits. A `fixed` file is
        for batches of exactly `rows` rows. On failure the context is popped.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        self.name = f"{device.row.title}, {device.gpu.name}"
        self.rows = rows
        # page-locked arrays [rows, ...], written before `run`; packed ones have SUFFIX in their names
        self.inputs: dict[str, Array] = {}
        self._sizes = [rows] if fixed else batch_sizes(rows)
        self._outputs = list(outputs)
        self._results: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}  # on the device, of every input and output of the network
        self._packed: dict[str, _Packed] = {}
        self._graphs: dict[int, int] = {}  # by batch size
        self._network: TensorRtNetwork | None = None
        self._driver = CudaDriver(device.number)
        try:
            driver = self._driver
            self._network = load_network(path, driver.name, driver.version, self._sizes, driver.stream)
            self._allocate(self._network, variant)
            self._capture(path.name)
        except BaseException as error:
            self.close()
            if type(error) in (RuntimeError, TypeError):  # TensorRT raises them for objects that it cannot make
                reason = f"TensorRT refuses {path.name}: {' '.join(str(error).split())}; its messages say why"
                raise EvaluatorError(reason) from error
            raise

    def run(self, rows: int) -> list[Array]:
        driver = self._driver
        driver.check()
        size = next(size for size in self._sizes if size >= rows)
        try:
            if size in self._graphs:
                driver.launch(self._graphs[size])
            else:
                self._enqueue(size)
            driver.synchronize()
        except EvaluatorError:
            driver.expect_alive()
            raise
        return [self._results[name][:rows] for name in self._outputs]

    def _enqueue(self, size: int) -> None:
        driver, network = self._driver, self._network
        assert network is not None, "the session is closed"
        for name, (_, dtype) in network.inputs.items():
            packed = self._packed.get(name)
            if packed is None:
                driver.upload(self._addresses[name], self.inputs[name][:size])
            else:
                bits = self.inputs[name + SUFFIX][:size]
                driver.upload(packed.source, bits)
                target, words = self._addresses[name], bits.shape[1] // 4
                driver.unpack(packed.source, target, size, words, packed.bits, packed.repeat, dtype.name)
        network.enqueue(size, self._addresses, driver.stream)
        for name in self._outputs:
            driver.download(self._results[name][:size], self._addresses[name])

    def _capture(self, name: str) -> None:
        """Capture a graph of each batch size and compare its results. If that fails, no graphs are used."""
        rng = np.random.default_rng(1)
        trials = [(int(size), seed) for seed, size in enumerate(rng.permutation(np.repeat(self._sizes, TRIALS)))]
        # TensorRT wants each size to have been computed before it is captured.
        expected = {seed: self._trial(size, seed) for size, seed in trials}
        try:
            self._graphs = {size: self._driver.capture(functools.partial(self._enqueue, size)) for size in self._sizes}
            for index in rng.permutation(len(trials)):
                size, seed = trials[index]
                for found, wanted in zip(self._trial(size, seed), expected[seed], strict=True):
                    limit = TOLERANCE * np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
                    if not np.allclose(found, wanted, rtol=0.0, atol=limit, equal_nan=True):
                        raise EvaluatorError(f"a graph's batch of {size} rows differs from the result without a graph")
        except DeviceLostError:
            raise
        except EvaluatorError as error:
            self._graphs = {}
            _log.warning("%s: computed without CUDA graphs: %s", name, error)
            self.run(self.rows)

    def _trial(self, size: int, seed: int) -> list[Array]:
        rng = np.random.default_rng(seed)
        for array in self.inputs.values():
            is_packed = array.dtype == np.uint8
            array[...] = rng.integers(0, 256, array.shape) if is_packed else rng.random(array.shape)
        return [output.astype(np.float32) for output in self.run(size)]

    def close(self) -> None:
        """Release the network, then the memory, and pop the context."""
        try:
            if self._network is not None:
                self._network.close()
                self._network = None
        finally:
            self.inputs.clear()
            self._results.clear()
            self._driver.close()

    def _allocate(self, network: TensorRtNetwork, variant: Variant) -> None:
        driver, rows = self._driver, self.rows
        for name, (shape, dtype) in (*network.inputs.items(), *network.outputs.items()):
            self._addresses[name] = driver.allocate(rows * math.prod(shape) * dtype.itemsize)
        for name, (shape, dtype) in network.inputs.items():
            if name not in variant.packed:
                self.inputs[name] = driver.pinned((rows, *shape), dtype)
                continue
            is_constant = name in variant.constant
            bits = shape[0] if is_constant else math.prod(shape)
            host = driver.pinned((rows, packed_bytes(bits)), np.uint8)
            self.inputs[name + SUFFIX] = host
            repeat = math.prod(shape[1:]) if is_constant else 1
            self._packed[name] = _Packed(driver.allocate(host.nbytes), bits, repeat)
        for name in self._outputs:
            shape, dtype = network.outputs[name]
            self._results[name] = driver.pinned((rows, *shape), dtype)
