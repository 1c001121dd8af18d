"""TensorRT's engines: built from an ONNX file once, stored in the cache folder, and run.

Networks are strongly typed, the only kind in TensorRT 11: the precision is that of the ONNX file.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from yomi.engine.evaluators.base import EvaluatorError, stop_making
from yomi.engine.evaluators.providers import gpu_command
from yomi.nets.files import default_cache_dir, source_digest, write_atomically

_log = logging.getLogger("yomi.evaluators")

INTERVAL = 5.0  # seconds between lines about the progress of a build
FORMAT = 2  # increase it with every change of how engines are built: other engines are not used

# of yomi's log, by TensorRT's severity; warnings are about TensorRT's internals, verbose lines are omitted
LEVELS = {0: logging.ERROR, 1: logging.ERROR, 2: logging.INFO, 3: logging.DEBUG}

# by engine: the workers of one GPU wait for the first of them to build
_building: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


Tensors = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]  # shape of a row, and type, by name


class Network(Protocol):
    """A network in the memory of a GPU, with everything that one worker needs to run it."""

    inputs: Tensors
    outputs: Tensors

    def enqueue(self, rows: int, addresses: Mapping[str, int], stream: int) -> None:
        """Start `rows` rows on a stream, from and to the addresses of all inputs and outputs."""

    def close(self) -> None: ...


class TensorRtNetwork:
    """An engine, and an execution context for each batch size.

    A CUDA graph keeps using the memory and shapes of its context.
    """

    def __init__(self, runtime: Any, engine: Any, sizes: Sequence[int], stream: int) -> None:
        """Make the execution contexts.

        Args:
            runtime: the engine's reader, which must live as long as the engine.
            engine: the engine; its profiles are for `sizes`, in this order.
            sizes: of batches.
            stream: for the preparation of profiles, and for batches.

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
            if not context.set_optimization_profile_async(profile, stream):
                raise EvaluatorError(f"TensorRT refuses the engine's profile for batches of {rows} rows")
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
    """Return TensorRT's module, or raise EvaluatorError with the remedy."""
    try:
        import tensorrt
    except (ImportError, OSError) as error:  # OSError: of its libraries
        raise EvaluatorError(f"TensorRT cannot be imported ({error}); to mend it: {gpu_command('tensorrt')}") from error
    return tensorrt


@functools.cache
def get_logger() -> Any:
    """Return TensorRT's logger, which writes to the log, and errors to stderr; its own logger writes to stdout.

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
    """Return a network. Its engine comes from the cache folder, or is built with progress on stderr.

    Args:
        path: the ONNX file.
        gpu: the name of the GPU whose context this thread has.
        driver: its driver's version.
        sizes: the batch sizes.
        stream: for the computation.

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
    """Return a stored engine, or None if there is none or TensorRT rejects it."""
    if not entry.exists():
        return None
    return runtime.deserialize_cuda_engine(entry.read_bytes())


def build_engine(path: Path, gpu: str, sizes: Sequence[int], timings: Path) -> bytes:
    """Build an engine with a profile for each batch size, in the precision of the file.

    Args:
        path: the ONNX file.
        gpu: its name, for the messages.
        sizes: of batches.
        timings: the timing cache, read and written.

    Raises:
        EvaluatorError: TensorRT cannot build it, or nobody needs it any more.
    """
    tensorrt = import_tensorrt()
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
    kept = timings.read_bytes() if timings.exists() else b""
    if not config.set_timing_cache(config.create_timing_cache(kept), ignore_mismatch=False):
        say(f"{timings}: TensorRT does not take these timings of another GPU or version: it measures anew")
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
    """Return TensorRT's progress monitor. Its base class exists only if TensorRT is installed."""
    stop = stop_making.get()  # TensorRT may call from threads of its own

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


def say(text: str) -> None:
    """Show the user a line on stderr, because protocols own stdout."""
    print(f"yomi: {text}", file=sys.stderr, flush=True)
