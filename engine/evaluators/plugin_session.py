"""A network by a plug-in execution provider: batches of a few fixed sizes, one at a time on a shared device."""

from __future__ import annotations

import collections
import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.onnx_session import TOLERANCE, TYPES, UNCAPTURED, batch_sizes, make_session, run_options
from yomi.engine.evaluators.plugins import PLUGINS, device_lock, device_memory, open_session, plugin_gpus
from yomi.nets.files import default_cache_dir, source_digest

_log = logging.getLogger("yomi.evaluators")

Array = npt.NDArray[Any]

CAPTURE = "enableGraphCapture"  # WebGPU's option: record the commands of a batch, and replay them


class PluginSession:
    def __init__(
        self, path: Path, kind: str, number: int, rows: int, outputs: Sequence[str], *, fixed: bool = False
    ) -> None:
        """Open the session and evaluate each batch size, so that shaders are compiled before a game.

        The file's inputs have known shapes except for the rows. A `fixed` file is for batches of exactly `rows` rows.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        plugin = PLUGINS[kind]
        self.rows = rows
        self._kind, self._number = kind, number
        self._outputs = list(outputs)
        self._sizes = [rows] if fixed else batch_sizes(rows)
        # Two WebGPU sessions that compute at once crash the process: they share a device's command encoder.
        self._lock: Any = device_lock(plugin.module) if plugin.is_shared else contextlib.nullcontext()
        self._session: Any = None
        self._bound: dict[int, _Bound] = {}
        self.inputs: dict[str, Array] = {}
        try:
            left = self._start(path)
        except BaseException:
            self.close()
            raise
        self.name = describe(kind, number, left)

    def run(self, rows: int) -> list[Array]:
        """Evaluate the first `rows` rows of the inputs, or raise EvaluatorError."""
        with self._lock:
            return self._compute(rows)

    def close(self) -> None:
        with self._lock:
            self._bound.clear()
            self._session = None

    def _start(self, path: Path) -> list[str]:
        """Open the session and compute each size, by recorded commands if possible and right."""
        kind = self._kind
        if PLUGINS[kind].captures:
            try:
                return self._prepare(path, {CAPTURE: "1"}, captures=True)
            except EvaluatorError as error:
                reason = str(error)  # and not the error, whose frames hold the session
            self.close()
            left = self._prepare(path, {}, captures=False)
            _log.warning("%s on %s: computed without recorded commands: %s", path.name, kind, reason)
            return left
        options = rtx_options(path, self._sizes) if kind == "rtx" else {}
        return self._prepare(path, options, captures=False)

    def _prepare(self, path: Path, options: dict[str, str], *, captures: bool) -> list[str]:
        # The lock is given back after each step: another worker's batch that waits too long is taken to hang.
        with self._lock:
            self._session, left = open_session(path, self._kind, self._number, options)
        self.inputs = {
            tensor.name: np.zeros((self.rows, *tensor.shape[1:]), TYPES[tensor.type])
            for tensor in self._session.get_inputs()
        }
        for size in self._sizes:
            with self._lock:
                if captures:
                    self._capture(size)
                else:
                    self._compute(size)
        return left

    def _compute(self, rows: int) -> list[Array]:
        size = next(size for size in self._sizes if size >= rows)
        fed = {name: array[:size] for name, array in self.inputs.items()}
        with self._told():
            bound = self._bound.get(size)
            found = self._session.run(self._outputs, fed) if bound is None else bound.run(self._session, fed)
        return [output[:rows] for output in found]

    def _capture(self, size: int) -> None:
        """Record the commands of a batch size, and compare their replay with single commands on random inputs.

        Raises:
            EvaluatorError: they cannot be recorded, or compute different results.
        """
        random = np.random.default_rng(size)
        zeros = {name: array[:size] for name, array in self.inputs.items()}
        drawn = {
            name: random.integers(0, 256 if array.dtype == np.uint8 else 2, array.shape).astype(array.dtype)
            for name, array in zeros.items()
        }
        place = device_memory(self._kind, self._number)
        with self._told():
            wanted = self._session.run(self._outputs, drawn, run_options(UNCAPTURED))
            bound = self._bound[size] = _Bound(self._session, place, zeros, self._outputs, wanted)
            bound.run(self._session, zeros)
            found = bound.run(self._session, drawn)
        for name, output, expected in zip(self._outputs, found, wanted, strict=True):
            if not np.allclose(output, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                raise EvaluatorError(f"recorded commands for {size} rows compute another {name} than single ones")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Raise onnxruntime's errors, which have its own types, as EvaluatorError with the device's name."""
        try:
            yield
        except Exception as error:
            text = next(iter(str(error).splitlines()), type(error).__name__)
            # Without its frames, which hold the session: whoever drops the error need not hold the lock.
            cause = error.with_traceback(None)
            raise EvaluatorError(f"device {self._kind}:{self._number}: onnxruntime: {text}") from cause


class _Bound:
    """One batch size: values at fixed places on the device, for recorded commands."""

    def __init__(
        self,
        session: Any,
        place: tuple[str, int, int],
        inputs: dict[str, Array],
        names: Sequence[str],
        outputs: Sequence[Array],
    ) -> None:
        import onnxruntime

        new_value = onnxruntime.OrtValue
        self._binding = session.io_binding()
        self._inputs = {name: new_value.ortvalue_from_numpy(array, *place) for name, array in inputs.items()}
        self._outputs = [
            new_value.ortvalue_from_shape_and_type(list(array.shape), array.dtype, *place) for array in outputs
        ]
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for name, value in zip(names, self._outputs, strict=True):
            self._binding.bind_ortvalue_output(name, value)
        self._options = run_options(len(outputs[0]))

    def run(self, session: Any, fed: dict[str, Array]) -> list[Array]:
        """Compute a batch. The first call records the commands."""
        for name, array in fed.items():
            self._inputs[name].update_inplace(array)
        session.run_with_iobinding(self._binding, self._options)
        return list(self._binding.copy_outputs_to_cpu())


def describe(kind: str, number: int, left: Sequence[str]) -> str:
    """Return provider, GPU and driver, and the nodes that run on the processor."""
    text = f"{PLUGINS[kind].title}, {plugin_gpus(kind)[number].name}"
    if not left:
        return text
    counts = ", ".join(f"{count} {name}" for name, count in sorted(collections.Counter(left).items()))
    return f"{text}, {len(left)} nodes on the processor: {counts}"


def rtx_options(path: Path, sizes: Sequence[int]) -> dict[str, str]:
    """Return the options of TensorRT for RTX for batches of `sizes`. The cache folder keeps compiled engines."""
    folder = default_cache_dir() / "tensorrt-rtx" / source_digest(path)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    shapes = {tensor.name: tensor.shape[1:] for tensor in make_session(path, "cpu").get_inputs()}
    profile = {
        name: ",".join(f"{tensor}:{'x'.join(map(str, (size, *shape)))}" for tensor, shape in shapes.items())
        for name, size in (("min", sizes[0]), ("opt", sizes[-1]), ("max", sizes[-1]))
    }
    return {
        "nv_runtime_cache_path": os.fspath(folder),
        "nv_persistent_context_memory": "1",
        **{f"nv_profile_{name}_shapes": text for name, text in profile.items()},
    }
