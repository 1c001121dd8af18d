"""Which devices can be used here, and through what; every fault comes with the command that mends it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.evaluators.base import EvaluatorError
from engine.evaluators.cuda import gpu_names
from engine.options import TABLE
from nets.installation import extra_command, missing_line, pip_command

_log = logging.getLogger("yomi.evaluators")

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}

TENSORRT_COMMAND = pip_command("install", "tensorrt-cu12<11")
DRIVER_REMEDY = "install NVIDIA's driver (Debian, Ubuntu: sudo apt install nvidia-driver), or choose --device cpu"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a device cannot be used."""

    reason: str
    remedy: str
    """A command, or what to do."""

    def __str__(self) -> str:
        """Return both on one line."""
        return f"{self.reason}; to mend it: {self.remedy}"


def split_device(device: str) -> tuple[str, int]:
    """Return (cuda, 1) for cuda:1, and number 0 where there is none."""
    kind, _, number = device.partition(":")
    return kind, int(number or 0)


def choose_device(asked: str) -> str:
    """Return the device to use for `asked`: auto, cpu, cuda, tensorrt, or one with a number such as cuda:1.

    Raises:
        EvaluatorError: it was asked for by name and cannot be used; the message says what mends that.
    """
    if asked == "auto":
        if not built_for_gpus() or find_gpu_fault() is not None:
            return "cpu"
        fault = find_fault("cuda")
        if fault is not None:
            _log.warning("device auto: the network runs on the processor: %s", fault)
        return "cuda" if fault is None else "cpu"
    kind, _ = split_device(asked)
    if kind != "cpu":
        _expect(asked, find_fault(kind))
    return asked


def check_backend(device: str, backend: str, precision: str) -> None:
    """See that device, backend and precision go together.

    Raises:
        EvaluatorError: they do not.
    """
    for name, value in (("backend", backend), ("precision", precision)):
        if value not in TABLE[name].choices:
            raise EvaluatorError(f"{name} {value} found, expected one of {', '.join(TABLE[name].choices)}")
    kind = split_device(device)[0]
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" and (
        backend == "native" or (backend == "auto" and chooses_cpu(device))
    ):
        raise EvaluatorError(
            "NUMBA_DISABLE_JIT found: yomi's own kernels compute networks by machine code alone: "
            "expected backend onnx, or evaluator rollouts (Go) or material (shogi)"
        )
    if backend == "native" and kind not in ("auto", "cpu"):
        raise EvaluatorError(f"backend native computes on the CPU: expected device cpu, not {device}")
    if backend == "tensorrt" and kind != "tensorrt":
        raise EvaluatorError(f"backend tensorrt computes on GPUs: expected device tensorrt, not {device}")
    if precision == "fp16" and (backend == "native" or chooses_cpu(device)):
        raise EvaluatorError("precision fp16 is for GPUs: expected device cuda or tensorrt, or precision fp32")
    if precision == "int16" and (backend not in ("auto", "native") or not chooses_cpu(device)):
        raise EvaluatorError("precision int16 is for backend native: expected device cpu with it, or precision fp32")


def chooses_cpu(device: str) -> bool:
    """Whether a network runs on the CPU; imports onnxruntime only if it was built for more, since that takes long."""
    return (choose_device("auto") if device == "auto" else device) == "cpu"


def choose_backend(device: str, backend: str) -> str:
    """Return what computes a network on a GPU: tensorrt (TensorRT itself) or onnx (onnxruntime).

    Args:
        device: auto, cuda or tensorrt, the latter two with or without a number.
        backend: auto, onnx or tensorrt. For device tensorrt, auto is TensorRT itself where it is installed.

    Raises:
        EvaluatorError: it cannot be used; the message says what mends that.
    """
    if split_device(device)[0] != "tensorrt" or backend == "onnx":
        choose_device(device)
        return "onnx"
    fault = find_direct_fault()
    if fault is None:
        _expect(device, find_gpu_fault())
        return "tensorrt"
    if backend == "tensorrt":
        _expect(device, fault)
    if find_fault("tensorrt") is not None:
        raise EvaluatorError(f"device {device}: {fault}; or, through onnxruntime: {find_fault('tensorrt')}")
    _expect(device, None)
    return "onnx"


def _expect(device: str, fault: Fault | None) -> None:
    """See that there is no fault, and that there is a GPU of the device's number.

    Raises:
        EvaluatorError: there is a fault, or no such GPU.
    """
    if fault is not None:
        raise EvaluatorError(f"device {device}: {fault}")
    number, names = split_device(device)[1], gpu_names()
    if number >= len(names):
        found = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
        raise EvaluatorError(f"device {device}: GPUs {found} found, expected one with the number {number}")


def find_direct_fault() -> Fault | None:
    """Return what TensorRT lacks without onnxruntime; None where it is installed."""
    packages = ("tensorrt", "pycuda", "onnx", "onnxruntime")
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return Fault(f"{' and '.join(missing)} not installed", gpu_command("tensorrt")) if missing else None


def find_gpu_fault() -> Fault | None:
    """Return why there is no GPU to use; None where there is one."""
    try:
        names = gpu_names()
    except EvaluatorError as error:
        return Fault(str(error), DRIVER_REMEDY)
    return None if names else Fault("NVIDIA's driver shows no GPU", "put one in, or choose --device cpu")


def gpu_command(extra: str) -> str:
    """Return the command that installs cuda or tensorrt, with the GPU build of onnxruntime in the place of another.

    The builds lie in one folder: installed over each other they break, and removing either takes files of the other.
    """
    command = extra_command(extra)
    if importlib.util.find_spec("onnxruntime") is None:
        return command
    return f"{pip_command('uninstall', '-y', 'onnxruntime', 'onnxruntime-gpu')} && {command}"


def expect_packages(path: Path, device: str) -> None:
    """See that what a network needs is there, where yomi's own kernels do not compute it.

    Raises:
        EvaluatorError: it is not; the message says what installs it.
    """
    is_cpu = chooses_cpu(device)
    package, extra = ("onnxruntime", "onnx") if is_cpu else ("onnx", split_device(device)[0])
    if importlib.util.find_spec(package) is None:
        use = f"{path}: what yomi's own kernels do not compute" if is_cpu else f"{path}: device {device}"
        raise EvaluatorError(missing_line(package, use, "cuda" if extra == "auto" else extra))


def built_for_gpus() -> bool:
    """Whether the installed onnxruntime is a build for GPUs; does not import it, which takes long."""
    return bool(_libraries("cuda"))


@functools.cache
def find_fault(device: str) -> Fault | None:
    """Return why onnxruntime cannot use `device` (cuda or tensorrt); None where all that it needs is there."""
    return find_gpu_fault() or find_package_fault(device)


@functools.cache
def find_package_fault(device: str) -> Fault | None:
    """Return what onnxruntime lacks for `device`, whether there is a GPU or not.

    Loads the provider's library as onnxruntime will, which prints a banner to stdout where that fails, and goes on with
    the processor.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return Fault("onnxruntime is not installed", gpu_command("cuda"))
    if not built_for_gpus():
        return Fault("this onnxruntime is built for the processor only", gpu_command("cuda"))
    if not _libraries(device):
        return Fault(f"this onnxruntime is built without {PROVIDERS[device]}", gpu_command("cuda"))
    return _missing_library(device)


def _folder() -> Path | None:
    spec = importlib.util.find_spec("onnxruntime")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "capi"


def _libraries(name: str) -> list[Path]:
    """Return a provider's library; the list is empty where this onnxruntime has none."""
    folder = _folder()
    return [] if folder is None else sorted(folder.glob(f"*onnxruntime_providers_{name}*"))


def _missing_library(device: str) -> Fault | None:
    """Load a provider's library with all that it is linked to."""
    import onnxruntime

    if hasattr(onnxruntime, "preload_dlls"):
        with _quiet():
            onnxruntime.preload_dlls()  # finds the CUDA libraries that pip installed
    for name in ("shared", *(["cuda"] if device == "tensorrt" else []), device):
        for path in _libraries(name):
            try:
                ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                missing, is_absent, _ = str(error).partition(": cannot open")
                reason = f"{missing} is not found" if is_absent else f"{path.name} is broken ({missing})"
                return Fault(
                    reason, TENSORRT_COMMAND if "nvinfer" in missing or "nvonnx" in missing else gpu_command("cuda")
                )
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drop what is printed to stdout meanwhile; the error says it again."""
    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
        yield
