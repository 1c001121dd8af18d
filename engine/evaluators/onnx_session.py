"""Networks by onnxruntime: choice and check of the device, and buffers."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import LOG_ERRORS, EvaluatorError
from yomi.engine.evaluators.cuda import ThreadDevice
from yomi.engine.evaluators.providers import PROVIDERS, find_fault, split_device
from yomi.nets.files import default_cache_dir, source_digest
from yomi.nets.installation import missing_line

if TYPE_CHECKING:
    from yomi.engine.evaluators.network import Format

_log = logging.getLogger("yomi.evaluators")

Array = npt.NDArray[Any]

CPU_ROWS = 8  # of a batch on the CPU
BATCH_SIZES = 8  # GPU batches are padded to the next eighth of the largest, because each size has its own CUDA graph
GRAPHS_FROM = (1, 31, 1)
"""Version of onnxruntime from which CUDA graphs are used. In older ones Concat and Split in graphs read pointers from
memory that a batch of another size had overwritten (microsoft/onnxruntime, pull request 32121)."""
TOLERANCE = 1e-2  # relative and absolute: kernels in a CUDA graph may add in another order
UNCAPTURED = -1  # number of a run that neither makes nor replays a CUDA graph
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


def make_session(path: Path, device: str, options: Mapping[str, str] | None = None) -> Any:
    """Open an onnxruntime session with a provider's options, and check that it really runs on `device`.

    Raises:
        EvaluatorError: a library is missing, onnxruntime fell back to another provider, or it cannot load the file.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise EvaluatorError(missing_line("onnxruntime", str(path))) from None

    kind, number = split_device(device)
    fault = None if kind == "cpu" else find_fault(kind)  # loads the libraries, which lie where no loader looks
    if fault is not None:
        raise EvaluatorError(f"device {device}: {fault}")
    onnxruntime.set_default_logger_severity(LOG_ERRORS)  # it warns on stderr of every buffer on a GPU
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    settings.log_severity_level = LOG_ERRORS
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    arguments = {} if kind == "cpu" else {"device_id": str(number), **(options or {})}
    providers = [(PROVIDERS[kind], arguments)]
    if kind == "tensorrt":  # computes what TensorRT leaves
        providers.append((PROVIDERS["cuda"], {"device_id": str(number), "use_tf32": "0"}))
    try:
        session = onnxruntime.InferenceSession(os.fspath(path), settings, providers=providers, enable_fallback=0)
    except Exception as error:  # onnxruntime raises its own kinds, all below Exception
        raise EvaluatorError(f"{path}: onnxruntime cannot load it: {str(error).splitlines()[0]}") from error
    session.disable_fallback()
    running = session.get_providers()
    if running[0] != PROVIDERS[kind]:
        raise EvaluatorError(
            f"device {device}: onnxruntime fell back to {running[0]}: its own messages on stderr say why"
        )
    if kind != "cpu":
        found = session.get_provider_options()[PROVIDERS[kind]].get("device_id", "0")
        if found != str(number):
            raise EvaluatorError(f"device {device}: onnxruntime took GPU {found}, expected {number}")
    return session


class OnnxBackend:
    """One session on the CPU, shared by all calling threads."""

    name = "onnxruntime"
    device = "cpu"
    takes_bits = False

    def __init__(self, path: Path, form: Format, batch_size: int | None = None) -> None:
        """Load a file. Batches have `batch_size` rows; None: the file's fixed size, or CPU_ROWS.

        Raises:
            EvaluatorError: the file cannot be used.
        """
        self.precision = "fp16" if form.feeds[0].dtype == "float16" else "fp32"
        self.batch_size = batch_size or form.fixed_rows or CPU_ROWS
        self._form = form
        self._session = make_session(path, "cpu")

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """Evaluate all rows, in batches of the file's fixed size if it has one."""
        form, count = self._form, len(inputs[0])
        step = form.fixed_rows or count
        for begin in range(0, count, step):
            part = slice(begin, min(begin + step, count))
            given: list[Array | None] = [array[part] for array in inputs]
            given += [None] * (len(form.feeds) - len(given))
            fed = {feed.name: feed.fill(step, array) for feed, array in zip(form.feeds, given, strict=False)}
            try:
                outputs = self._session.run(list(form.outputs), fed)
            except Exception as error:  # onnxruntime raises its own kinds, all below Exception
                name = form.info.source_file
                raise EvaluatorError(f"{name}: onnxruntime: {str(error).splitlines()[0]}") from error
            yield part, [output[: part.stop - begin] for output in outputs]

    def bind(self, inputs: Sequence[Array]) -> None: ...

    def close(self) -> None:
        self._session = None


def batch_sizes(rows: int) -> list[int]:
    """Return the sizes that batches of up to `rows` rows are padded to, smallest first."""
    return sorted({-(-rows * part // BATCH_SIZES) for part in range(1, BATCH_SIZES + 1)})


class GpuSession:
    """A session on a GPU, bound to the thread that makes it, with buffers at fixed addresses for each batch size.

    Inputs and outputs are page-locked arrays. Each input is one copy to the device; outputs are copied back after all
    are computed. With the CUDA provider a whole batch is one CUDA graph, if onnxruntime can capture it and its results
    are right. The TensorRT provider gets no graphs: it ignores their numbers, so that every batch size would replay the
    graph of the first.
    """

    def __init__(
        self, path: Path, device: str, rows: int, outputs: Sequence[str], *, half: bool = False, fixed: bool = False
    ) -> None:
        """Open the session and evaluate each batch size, so that nothing is prepared during a game.

        The file's inputs have known shapes except for the rows. A `half` file computes in half precision; a `fixed`
        file is for batches of exactly `rows` rows. If device cuda gets no CUDA graphs, the log contains the reason.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        kind, number = split_device(device)
        self.rows = rows
        self._outputs = list(outputs)
        self._sizes = [rows] if fixed else batch_sizes(rows)
        # Tests run this class on a processor, where there are neither contexts nor page-locked arrays.
        self._place = ("cpu", 0) if kind == "cpu" else ("cuda", number)
        self._thread_device = None if kind == "cpu" else ThreadDevice(number)
        self.inputs: dict[str, Array] = {}  # page-locked arrays [rows, ...] by input, written before `run`
        self._results: list[Array] = []
        self._batches: dict[int, _Bound] = {}
        self._session: Any = None
        try:
            self._start(path, device, half=half)
        except BaseException:
            self.close()
            raise

    def run(self, rows: int) -> list[Array]:
        """Evaluate the first `rows` rows of the inputs.

        Returns:
            The outputs, [rows, ...] each; valid until the next call.

        Raises:
            EvaluatorError: the device failed, or is no longer this thread's.
        """
        device = self._thread_device
        if device is not None:
            device.check()
        size = next(size for size in self._sizes if size >= rows)
        bound = self._batches[size]
        return self._compute(bound, size, rows, bound.run_options)

    def _compute(self, bound: _Bound, size: int, rows: int, run_options: Any) -> list[Array]:
        device = self._thread_device
        try:
            for name, value in bound.inputs.items():
                value.update_inplace(self.inputs[name][:size])
            self._session.run_with_iobinding(bound.binding, run_options)
            if device is None:
                return [value.numpy()[:rows] for value in bound.outputs]
            for value, result in zip(bound.outputs, self._results, strict=True):
                device.fetch(value.data_ptr(), result[:rows])
        except EvaluatorError:
            raise
        except Exception as error:  # onnxruntime raises its own kinds, all below Exception
            if device is not None:
                device.expect_alive()
            raise EvaluatorError(f"onnxruntime: {str(error).splitlines()[0]}") from error
        return [result[:rows] for result in self._results]

    def close(self) -> None:
        """Release session and memory, in the thread that made them."""
        self._batches.clear()
        self._session = None
        self.inputs.clear()
        if self._thread_device is not None:
            self._thread_device.close()
            self._thread_device = None

    def _open(self, path: Path, device: str, *, half: bool, graphs: bool) -> Any:
        kind, _ = split_device(device)
        if kind == "cpu":
            return make_session(path, device)
        if kind == "tensorrt":
            return make_session(path, device, options=tensorrt_options(path, self._sizes, half=half))
        tf32 = "1" if half else "0"  # float32 with ten bits of mantissa is no reference for float16
        # cuDNN chooses its algorithms. Timing them all took 28 s a session on an H200, not 3 s, for no more speed:
        # 0.85, 1.10, 1.20 and 1.07 times as many evaluations/s this way in batches of 32, 96, 160 and 256.
        options = {"enable_cuda_graph": str(int(graphs)), "use_tf32": tf32, "cudnn_conv_algo_search": "HEURISTIC"}
        return make_session(path, device, options=options)

    def _start(self, path: Path, device: str, *, half: bool) -> None:
        """Prepare all batch sizes, with CUDA graphs if possible and right."""
        reason = ""
        if split_device(device)[0] == "cuda":
            try:
                _expect_right_graphs()
                self._prepare(self._open(path, device, half=half, graphs=True))
                self._compare_graphs()
                return
            except EvaluatorError as error:
                reason = str(error)  # and not the error, whose frames hold the session
            self._batches.clear()
            self._session = None
        self._prepare(self._open(path, device, half=half, graphs=False))
        if reason:
            _log.warning("%s on %s: computed without CUDA graphs: %s", path.name, device, reason)

    def _prepare(self, session: Any) -> None:
        self._session = session
        if not self.inputs:
            self._allocate()
        self._batches = {size: self._bind(size) for size in self._sizes}
        for size in self._sizes:
            for _ in range(2):  # the first run allocates, the second is captured
                self.run(size)

    def _compare_graphs(self) -> None:
        """Compare each batch size's graph with single kernels on random inputs, in random order of sizes.

        Raises:
            EvaluatorError: a graph computes different results.
        """
        cases = [(size, seed) for size in self._sizes for seed in (0, 1)]  # two, lest the outputs are those of before
        np.random.default_rng(0).shuffle(cases)
        expected = {}
        for is_graph in (False, True):
            for size, seed in cases:
                drawn = np.random.default_rng((size, seed))
                for array in self.inputs.values():
                    array[:size] = drawn.integers(0, 256 if array.dtype == np.uint8 else 2, array[:size].shape)
                if not is_graph:
                    outputs = self._compute(self._batches[size], size, size, run_options(UNCAPTURED))
                    expected[size, seed] = [output.copy() for output in outputs]
                    continue
                for name, found, wanted in zip(self._outputs, self.run(size), expected[size, seed], strict=True):
                    if not np.allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                        raise EvaluatorError(f"the graph for {size} rows computes another {name} than single kernels")

    def _allocate(self) -> None:
        for tensor in self._session.get_inputs():
            self.inputs[tensor.name] = self._array((self.rows, *tensor.shape[1:]), TYPES[tensor.type])
        shapes = self._output_shapes()
        self._results = [self._array((self.rows, *shapes[name][0]), shapes[name][1]) for name in self._outputs]

    def _array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        return np.zeros(shape, dtype) if self._thread_device is None else self._thread_device.pinned(shape, dtype)

    def _bind(self, size: int) -> _Bound:
        import onnxruntime

        place, number = self._place
        new_value = onnxruntime.OrtValue
        binding = self._session.io_binding()
        inputs = {
            name: new_value.ortvalue_from_numpy(array[:size].copy(), place, number)
            for name, array in self.inputs.items()
        }
        outputs = [
            new_value.ortvalue_from_shape_and_type([size, *result.shape[1:]], result.dtype, place, number)
            for result in self._results
        ]
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in zip(self._outputs, outputs, strict=True):
            binding.bind_ortvalue_output(name, value)
        return _Bound(binding, inputs, outputs, run_options(size))

    def _output_shapes(self) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Return shape (without rows) and type of each output. If the file leaves them open, a batch is computed."""
        tensors = {tensor.name: tensor for tensor in self._session.get_outputs()}
        if all(isinstance(length, int) for name in self._outputs for length in tensors[name].shape[1:]):
            return {name: (tuple(tensors[name].shape[1:]), TYPES[tensors[name].type]) for name in self._outputs}
        fed = {name: array[: self._sizes[0]] for name, array in self.inputs.items()}
        values = self._session.run(self._outputs, fed, run_options(UNCAPTURED))
        return {name: (value.shape[1:], value.dtype) for name, value in zip(self._outputs, values, strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """Data of one batch size: values at fixed addresses on the device."""

    binding: Any
    inputs: dict[str, Any]
    outputs: list[Any]
    run_options: Any


def run_options(graph: int) -> Any:
    """Return the options of a run whose CUDA graph has a number, or of an UNCAPTURED run."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(graph))
    return options


def _expect_right_graphs() -> None:
    """Raise EvaluatorError if this onnxruntime is too old for right CUDA graphs."""
    import onnxruntime

    found = tuple(int(number) for number in re.findall(r"\d+", onnxruntime.__version__)[:3])
    if found < GRAPHS_FROM:
        wanted = ".".join(map(str, GRAPHS_FROM))
        raise EvaluatorError(f"onnxruntime {onnxruntime.__version__} found, expected {wanted} or newer")


def tensorrt_options(path: Path, sizes: Sequence[int], *, half: bool) -> dict[str, str]:
    """Return the options of the TensorRT provider for batches of `sizes`, with a cache folder for each file.

    onnxruntime names engines after the names in the graph, the device and TensorRT. A trained network keeps them all.
    """
    import onnxruntime

    timings = default_cache_dir() / "tensorrt" / f"onnxruntime-{onnxruntime.__version__}"
    engines = timings / source_digest(path)[:16]
    engines.mkdir(parents=True, exist_ok=True)
    shapes = {tensor.name: tensor.shape[1:] for tensor in make_session(path, "cpu").get_inputs()}
    profile = {
        name: ",".join(f"{tensor}:{'x'.join(map(str, (size, *shape)))}" for tensor, shape in shapes.items())
        for name, size in (("min", sizes[0]), ("opt", sizes[-1]), ("max", sizes[-1]))
    }
    return {
        "trt_fp16_enable": str(int(half)),
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": os.fspath(engines),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": os.fspath(timings),
        **{f"trt_profile_{name}_shapes": text for name, text in profile.items()},
    }
