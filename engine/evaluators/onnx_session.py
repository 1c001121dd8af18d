"""Sessions of onnxruntime.

The module checks that the requested device really computes, keeps buffers on the device, and records a batch's GPU
commands to replay them (CUDA graphs).
"""

import contextlib
import logging
import os
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import LOG_ERRORS, EvaluatorError
from yomi.engine.evaluators.cuda import ThreadDevice
from yomi.engine.evaluators.devices import CPU, Device, find_fault, first_line, provider_devices
from yomi.nets.installation import missing_line

_log = logging.getLogger("yomi.evaluators")

Array = npt.NDArray[Any]

PARTS = 8  # GPU batches are padded to the next eighth of the largest, because each size has its own recording
SMALL_PARTS = (64, 32, 16)  # small batches are padded to these parts: a search begins with few rows
GRAPHS_FROM = (1, 31, 1)
"""Version of onnxruntime from which CUDA graphs are used. In older ones Concat and Split in graphs read pointers from
memory that a batch of another size had overwritten (microsoft/onnxruntime, pull request 32121)."""
TOLERANCE = 1e-2  # relative and absolute: kernels in a recording may add in another order
PROFILE = "YOMI_ONNX_PROFILE"  # environment variable: each session writes onnxruntime's profile to files that begin so
UNCAPTURED = -1  # number of a run that is neither recorded nor replayed
_DEVICE_LOCKS: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by plug-in, if sessions share a device
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


def make_session(path: Path, device: Device = CPU, options: Mapping[str, str] | None = None) -> Any:
    """Open a session with options for the provider, and check that it really runs on `device`.

    Raises:
        EvaluatorError: a package is missing, onnxruntime fell back to another provider, or it cannot load the file.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise EvaluatorError(missing_line("onnxruntime", str(path))) from None

    row = device.row
    if not device.is_cpu and (fault := find_fault(device.kind)):  # loads libraries from unusual folders
        raise EvaluatorError(f"device {device}: {fault}")
    onnxruntime.set_default_logger_severity(LOG_ERRORS)  # it warns on stderr of every buffer on a GPU
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    settings.log_severity_level = LOG_ERRORS
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if PROFILE in os.environ:
        settings.enable_profiling, settings.profile_file_prefix = True, os.environ[PROFILE]
    how: dict[str, Any] = {}
    try:
        if row.module:
            settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
            settings.add_provider_for_devices([_provider_device(device)], dict(options or {}))
        else:
            arguments = {} if device.is_cpu else {"device_id": str(device.number), **(options or {})}
            how["providers"] = [(row.provider, arguments)]
        session = onnxruntime.InferenceSession(os.fspath(path), settings, enable_fallback=0, **how)
    except EvaluatorError:
        raise
    except Exception as error:  # onnxruntime raises its own kinds, all below Exception
        raise EvaluatorError(f"device {device}: {path}: onnxruntime cannot load it: {first_line(error)}") from error
    session.disable_fallback()
    if row.module:
        return session
    running = session.get_providers()
    if running[0] != row.provider:
        text = f"onnxruntime fell back to {running[0]}: its own messages on stderr say why"
        raise EvaluatorError(f"device {device}: {text}")
    if not device.is_cpu:
        found = session.get_provider_options()[row.provider].get("device_id", "0")
        if found != str(device.number):
            raise EvaluatorError(f"device {device}: onnxruntime took GPU {found}, expected {device.number}")
    return session


def _provider_device(device: Device) -> Any:
    devices = provider_devices(device.kind)
    if device.number >= len(devices):
        raise EvaluatorError(f"device {device}: {len(devices)} devices found, expected one with that number")
    return devices[device.number]


def _describe(session: Any, device: Device) -> str:
    """Return provider, GPU and driver, and the operators that run on the processor instead.

    Raises:
        EvaluatorError: a plug-in's provider took no node.
    """
    row = device.row
    if not row.module:
        return row.title if device.is_cpu else f"{row.title}, {device.gpu.name}"
    taken, left = 0, list[str]()
    for part in session.get_provider_graph_assignment_info():
        operators = [node.op_type for node in part.get_nodes()]
        if part.ep_name == row.provider:
            taken += len(operators)
        else:
            left += operators
    if not taken:
        raise EvaluatorError(f"device {device}: {row.provider} took none of the network's {len(left)} nodes")
    text = f"{row.title}, {device.gpu.name}"
    if not left:
        return text
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(left).items()))
    return f"{text}, {len(left)} nodes on the processor: {counts}"


def batch_sizes(rows: int) -> list[int]:
    """Return the sizes to which batches of up to `rows` rows are padded, smallest first."""
    eighths = {-(-rows * part // PARTS) for part in range(1, PARTS + 1)}
    return sorted({*(-(-rows // part) for part in SMALL_PARTS), *eighths})


class GpuSession:
    """A session on a GPU, a yomi.engine.evaluators.backends.GpuEngine. Batches are padded to a few fixed sizes.

    If the provider can record a batch's commands, and their replay gives right results, each size has values at fixed
    places on the device and a recording (with CUDA: a graph). With CUDA the inputs and outputs here are page-locked.
    """

    def __init__(
        self, path: Path, device: Device, rows: int, outputs: Sequence[str], *, half: bool = False, fixed: bool = False
    ) -> None:
        """Open the session and evaluate a batch of each size, so that nothing is left to prepare during a game.

        If the commands of batches cannot be recorded, a warning in the log gives the reason.

        Args:
            path: ONNX file. The shapes of its inputs must be known, except for the number of rows.
            device: a GPU.
            rows: maximum number of rows in a batch.
            outputs: names of the outputs to compute.
            half: whether the file computes in half precision.
            fixed: whether the file is for batches of exactly `rows` rows.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        row = device.row
        self.rows = rows
        self.inputs: dict[str, Array] = {}  # [rows, ...] by input, written before `run`
        self._device, self._path = device, path
        self._outputs = list(outputs)
        self._sizes = [rows] if fixed or row.has_one_size else batch_sizes(rows)
        self._session: Any = None
        self._batches: dict[int, _Bound] = {}
        self._results: list[Array] = []  # [rows, ...] by output, of recorded batches; with CUDA page-locked
        # Two WebGPU sessions that compute at once crash the process: they share a device's command encoder.
        self._lock: Any = _DEVICE_LOCKS[row.module] if row.is_shared else contextlib.nullcontext()
        self._thread_device = ThreadDevice(device.number) if row.uses_cuda else None
        try:
            self.name = self._start(row.options(path, self._sizes, half))
        except BaseException:
            self.close()
            raise

    def run(self, rows: int) -> list[Array]:
        if self._thread_device is not None:
            self._thread_device.check()
        size = next(size for size in self._sizes if size >= rows)
        with self._lock:
            return [output[:rows] for output in self._compute(size, self._batches.get(size))]

    def close(self) -> None:
        """Release session and memory. Call this in the thread that made them."""
        self._drop_session()
        self.inputs.clear()
        if self._thread_device is not None:
            self._thread_device.close()
            self._thread_device = None

    def _drop_session(self) -> None:
        with self._lock:
            self._batches.clear()
            self._session = None

    def _start(self, options: dict[str, str]) -> str:
        """Prepare all batch sizes, with recorded commands if they work. Return the session's name."""
        reason = ""
        if (capture := self._device.row.capture) and PROFILE not in os.environ:  # a replay has no operators to profile
            try:
                if self._thread_device is not None:
                    _expect_right_graphs()
                name = self._prepare({**options, capture: "1"}, records=True)
                self._compare()
            except EvaluatorError as error:
                reason = str(error)  # and not the error, whose frames hold the session
            else:
                return name
            self._drop_session()
        name = self._prepare(options, records=False)
        if reason:
            _log.warning("%s on %s: computed without recorded commands: %s", self._path.name, self._device, reason)
        return name

    def _prepare(self, options: dict[str, str], *, records: bool) -> str:
        # The lock is given back after each step: another worker's batch that waits too long is taken to hang.
        with self._lock:
            self._session = make_session(self._path, self._device, options)
        name = _describe(self._session, self._device)
        for tensor in self._session.get_inputs():
            if tensor.name not in self.inputs:
                self.inputs[tensor.name] = self._array((self.rows, *tensor.shape[1:]), TYPES[tensor.type])
        is_bound = records or self._thread_device is not None
        for size in self._sizes:
            for _ in range(
                1 if self._thread_device is None else 2
            ):  # CUDA: the first allocates, the second is recorded
                with self._lock:
                    if is_bound and size not in self._batches:
                        self._batches[size] = self._bind(size)
                    self._compute(size, self._batches.get(size))
        return name

    def _compute(self, size: int, bound: "_Bound | None") -> list[Array]:
        """Compute a batch, with or without a recording. The caller holds the lock."""
        device = self._thread_device
        fed = {name: array[:size] for name, array in self.inputs.items()}
        try:
            if bound is None:
                return list(self._session.run(self._outputs, fed, _run_options(UNCAPTURED)))
            for name, array in fed.items():
                bound.inputs[name].update_inplace(array)
            self._session.run_with_iobinding(bound.binding, bound.run_options)
            if device is None:
                return list(bound.binding.copy_outputs_to_cpu())
            results = [result[:size] for result in self._results]
            for value, result in zip(bound.outputs, results, strict=True):
                device.fetch(value.data_ptr(), result)
            return results
        except EvaluatorError:
            raise
        except Exception as error:  # onnxruntime raises its own kinds, all below Exception
            if device is not None:
                device.expect_alive()
            # Without its frames, which hold the session: a thread that drops the error need not hold the lock.
            cause = error.with_traceback(None)
            raise EvaluatorError(f"device {self._device}: onnxruntime: {first_line(error)}") from cause

    def _compare(self) -> None:
        """Compare the recording of each batch size with single commands, on random inputs and in random order of sizes.

        Raises:
            EvaluatorError: a recording computes different results.
        """
        order = np.random.default_rng(0).permutation(self._sizes)
        wanted = {}
        for replays in (False, True):
            for size in map(int, order):
                self._draw(size)
                with self._lock:
                    found = self._compute(size, self._batches[size] if replays else None)
                if not replays:
                    wanted[size] = found
                    continue
                for name, output, expected in zip(self._outputs, found, wanted[size], strict=True):
                    if not np.allclose(output, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                        text = f"recorded commands for {size} rows compute another {name} than single ones"
                        raise EvaluatorError(text)

    def _draw(self, size: int) -> None:
        random = np.random.default_rng(size)
        for array in self.inputs.values():
            array[:size] = random.integers(0, 256 if array.dtype == np.uint8 else 2, array[:size].shape)

    def _array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        return np.zeros(shape, dtype) if self._thread_device is None else self._thread_device.pinned(shape, dtype)

    def _bind(self, size: int) -> "_Bound":
        """Return values on the device for a batch size. The caller holds the lock."""
        import onnxruntime

        new_value, place = onnxruntime.OrtValue, self._place()
        inputs = {
            name: new_value.ortvalue_from_numpy(array[:size].copy(), *place) for name, array in self.inputs.items()
        }
        if not self._results:  # the outputs' shapes may be open in the file
            found = self._compute(self._sizes[0], None)
            self._results = [self._array((self.rows, *output.shape[1:]), output.dtype) for output in found]
        outputs = [
            new_value.ortvalue_from_shape_and_type([size, *result.shape[1:]], result.dtype, *place)
            for result in self._results
        ]
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in zip(self._outputs, outputs, strict=True):
            binding.bind_ortvalue_output(name, value)
        return _Bound(binding, inputs, outputs, _run_options(size))

    def _place(self) -> tuple[Any, ...]:
        """Return where values are on the device: type, number and, for a plug-in, vendor (-1: unknown)."""
        if self._thread_device is not None:
            return "cuda", self._device.number
        import onnxruntime

        memory = _provider_device(self._device).memory_info(onnxruntime.OrtDeviceMemoryType.DEFAULT)
        return "gpu", 0, memory.device_vendor_id or -1


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """The values for one batch size, at fixed places on the device."""

    binding: Any
    inputs: dict[str, Any]
    outputs: list[Any]
    run_options: Any


def _run_options(number: int) -> Any:
    """Return the options of a run. `number` identifies its recording, or is UNCAPTURED."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    return options


def _expect_right_graphs() -> None:
    """Raise EvaluatorError if this onnxruntime is older than GRAPHS_FROM: its CUDA graphs may compute wrong results."""
    import onnxruntime

    found = tuple(int(number) for number in re.findall(r"\d+", onnxruntime.__version__)[:3])
    if found < GRAPHS_FROM:
        wanted = ".".join(map(str, GRAPHS_FROM))
        raise EvaluatorError(f"onnxruntime {onnxruntime.__version__} found, expected {wanted} or newer")
