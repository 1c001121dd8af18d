"""TensorRT's engines: built from an ONNX file once, kept in the cache folder, and run.

Networks are strongly typed, the only kind that TensorRT 11 has left: the precision is that of the ONNX file.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engine.evaluators.base import EvaluatorError
from nets.files import default_cache_dir, source_digest, write_atomically

INTERVAL = 5.0
"""Seconds between lines about the progress of building."""
FORMAT = 1
"""Raise it with every change of how engines are built: those of other numbers go unused."""

_building: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""By engine: the workers of one GPU wait for the first of them to build."""


Tensors = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shape of a row, and type, by name."""


class Network(Protocol):
    """A network in the memory of a GPU, with all that one worker needs to run it."""

    inputs: Tensors
    outputs: Tensors

    def enqueue(self, rows: int, addresses: Mapping[str, int], stream: int) -> None:
        """Compute `rows` rows on a stream, from and to the addresses of all inputs and outputs; returns at once."""

    def close(self) -> None:
        """Release it."""


class TensorRtNetwork:
    """See `Network`; an engine and an execution context of its own."""

    def __init__(self, runtime: Any, engine: Any) -> None:
        """Make the execution context.

        Args:
            runtime: what the engine was read by, which has to live as long.
            engine: the engine.

        Raises:
            EvaluatorError: the GPU's memory does not suffice.
        """
        import tensorrt

        self._runtime, self._engine = runtime, engine
        self._context = engine.create_execution_context()
        if self._context is None:
            raise EvaluatorError("TensorRT could not make an execution context: expected more free memory on the GPU")
        self._rows = 0
        tensors: dict[bool, dict[str, tuple[tuple[int, ...], np.dtype[Any]]]] = {True: {}, False: {}}
        for index in range(engine.num_io_tensors):
            name = engine.get_tensor_name(index)
            is_input = engine.get_tensor_mode(name) == tensorrt.TensorIOMode.INPUT
            dtype = np.dtype(tensorrt.nptype(engine.get_tensor_dtype(name)))
            tensors[is_input][name] = (tuple(engine.get_tensor_shape(name))[1:], dtype)
        self.inputs: Tensors = tensors[True]
        self.outputs: Tensors = tensors[False]

    def enqueue(self, rows: int, addresses: Mapping[str, int], stream: int) -> None:
        """Set what has changed and start.

        Raises:
            EvaluatorError: TensorRT refuses.
        """
        if rows != self._rows:
            for name, (shape, _) in self.inputs.items():
                if not self._context.set_input_shape(name, (rows, *shape)):
                    raise EvaluatorError(f"TensorRT refuses batches of {rows} rows for {name}")
            self._rows = rows
        for name, address in addresses.items():
            self._context.set_tensor_address(name, address)
        if not self._context.execute_async_v3(stream):
            raise EvaluatorError("TensorRT could not start a batch; its messages on stderr say why")

    def close(self) -> None:
        """Release context, engine and runtime, in this order."""
        self._context = None
        self._engine = None
        self._runtime = None


def load_network(path: Path, gpu: str, driver: str, sizes: Sequence[int]) -> TensorRtNetwork:
    """Return a network, from the cache folder where its engine was built before, with progress on stderr where not.

    Args:
        path: the ONNX file.
        gpu: the name of the GPU whose context this thread has.
        driver: its driver's version.
        sizes: the batch sizes that will be used.

    Raises:
        EvaluatorError: the file cannot be built for this GPU.
    """
    import tensorrt

    facts = (source_digest(path), gpu, driver, tensorrt.__version__, *map(str, sizes), str(FORMAT))
    key = hashlib.sha256(" ".join(facts).encode()).hexdigest()[:16]
    folder = default_cache_dir() / "tensorrt"
    entry = folder / f"{key}.engine"
    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    runtime = tensorrt.Runtime(logger)
    with _building[key]:
        engine = _read_engine(runtime, entry)
        if engine is None:
            timings = folder / f"timings-{hashlib.sha256(' '.join(facts[1:4]).encode()).hexdigest()[:16]}.cache"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(entry, build_engine(tensorrt, logger, path, gpu, sizes, timings))
            except OSError as error:
                raise EvaluatorError(f"{folder}: engines cannot be kept: {error.strerror or error}") from error
            engine = _read_engine(runtime, entry)
    if engine is None:
        raise EvaluatorError(f"{entry}: TensorRT cannot read the engine that it has just built")
    return TensorRtNetwork(runtime, engine)


def _read_engine(runtime: Any, entry: Path) -> Any:
    """Return a kept engine; None where there is none, or TensorRT does not take it."""
    if not entry.exists():
        return None
    return runtime.deserialize_cuda_engine(entry.read_bytes())


def build_engine(tensorrt: Any, logger: Any, path: Path, gpu: str, sizes: Sequence[int], timings: Path) -> bytes:
    """Build an engine for batches from the least to the greatest of `sizes`, best at the greatest.

    Args:
        tensorrt: the module.
        logger: TensorRT's.
        path: the ONNX file.
        gpu: its name, for the messages.
        sizes: of batches.
        timings: the timing cache, read and written.

    Raises:
        EvaluatorError: TensorRT cannot build it; the message has its reason.
    """
    say(f"building a TensorRT engine of {path.name} for {gpu}, batches of {sizes[0]} to {sizes[-1]}: once, minutes")
    builder = tensorrt.Builder(logger)
    network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(network, logger)
    if not parser.parse(path.read_bytes()):
        errors = "; ".join(str(parser.get_error(i)) for i in range(parser.num_errors))
        raise EvaluatorError(f"{path}: TensorRT cannot read it: {' '.join(errors.split())}")
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        shape = tuple(tensor.shape)[1:]
        profile.set_shape(tensor.name, (sizes[0], *shape), (sizes[-1], *shape), (sizes[-1], *shape))
    config.add_optimization_profile(profile)
    cache = config.create_timing_cache(timings.read_bytes() if timings.exists() else b"")
    config.set_timing_cache(cache, ignore_mismatch=False)
    config.progress_monitor = _make_monitor(tensorrt)
    begin = time.monotonic()
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise EvaluatorError(f"{path}: TensorRT cannot build an engine for {gpu}; its messages on stderr say why")
    write_atomically(timings, bytes(config.get_timing_cache().serialize()))
    say(f"built in {time.monotonic() - begin:.0f} s")
    return bytes(plan)


def _make_monitor(tensorrt: Any) -> Any:
    """Return what TensorRT tells its progress to; its base class exists only where TensorRT does."""

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
            return True  # go on

        def phase_finish(self, phase_name: str) -> None:
            self._phases.pop(phase_name, None)

    return Monitor()


def say(text: str) -> None:
    """Show the user a line; protocols own stdout."""
    print(f"yomi: {text}", file=sys.stderr, flush=True)
