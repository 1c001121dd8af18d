"""The usable devices and backends of this machine. Every fault contains the command that remedies it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from yomi.engine.evaluators.base import EvaluatorError, Fault
from yomi.engine.evaluators.cuda import driver_cuda, gpu_names
from yomi.engine.evaluators.plugins import PLUGINS, find_plugin_fault, plugin_gpus
from yomi.engine.options import TABLE
from yomi.nets.installation import extra_command, missing_line

_log = logging.getLogger("yomi.evaluators")

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}

EXTRA_CUDAS = {13: "", 12: "12"}  # suffixes of the extras for GPUs, by CUDA's major version, newest first
DRIVER_REMEDY = "install NVIDIA's driver (Debian, Ubuntu: sudo apt install nvidia-driver), or choose --device cpu"

NATIVE_PRECISIONS = ("int16", "int8", "bf16")  # of yomi's own kernels only


def split_device(device: str) -> tuple[str, int]:
    """Return (cuda, 1) for cuda:1, and (webgpu:software, 0) for webgpu:software. The default number is 0."""
    kind, _, number = device.rpartition(":")
    return (kind, int(number)) if number.isdecimal() else (device, 0)


def choose_device(asked: str) -> str:
    """Return the device for `asked`: auto, cpu, or a kind of GPU with or without a number such as cuda:1.

    Raises:
        EvaluatorError: a named device cannot be used. The message contains the remedy.
    """
    if asked == "auto":
        if not built_for_gpus() or find_gpu_fault() is not None:
            return "cpu"
        fault = find_fault("cuda")
        if fault is not None:
            _warn_once(fault)
        return "cuda" if fault is None else "cpu"
    kind, _ = split_device(asked)
    if kind != "cpu":
        _expect(asked, find_fault(kind))
    return asked


@functools.cache
def _warn_once(fault: Fault) -> None:
    """Players choose the device for every load, but the log gets one line."""
    _log.warning("device auto: the network runs on the processor: %s", fault)


def check_backend(device: str, backend: str, precision: str) -> None:
    """Raise EvaluatorError if device, backend and precision contradict each other."""
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
        raise EvaluatorError("precision fp16 is for GPUs: expected device cuda or the like, or precision fp32")
    if precision in NATIVE_PRECISIONS and (backend not in ("auto", "native") or not chooses_cpu(device)):
        raise EvaluatorError(
            f"precision {precision} is for backend native: expected device cpu with it, or precision fp32"
        )


def chooses_cpu(device: str) -> bool:
    """Whether a network runs on the CPU. Builds of onnxruntime for the CPU are not imported, as that takes long."""
    return (choose_device("auto") if device == "auto" else device) == "cpu"


def choose_backend(device: str, backend: str) -> str:
    """Return the backend of a network on a GPU: tensorrt (TensorRT itself) or onnx (onnxruntime).

    For device tensorrt, auto is TensorRT itself if it is installed. If the backend cannot be used, the EvaluatorError
    contains the remedy.
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
    """Raise EvaluatorError if there is a fault, or no GPU of the device's number."""
    if fault is not None:
        raise EvaluatorError(f"device {device}: {fault}")
    kind, number = split_device(device)
    names = [gpu.name for gpu in plugin_gpus(kind)] if kind in PLUGINS else gpu_names()
    if number >= len(names):
        found = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
        raise EvaluatorError(f"device {device}: GPUs {found} found, expected one with the number {number}")


def find_direct_fault() -> Fault | None:
    """Return what TensorRT lacks without onnxruntime, or None."""
    packages = ("tensorrt", "onnx", "onnxruntime")
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        return Fault(f"{' and '.join(missing)} not installed", gpu_command("tensorrt"))
    return _import_fault()


def find_gpu_fault() -> Fault | None:
    """Return why there is no GPU to use, or None."""
    try:
        names = gpu_names()
    except EvaluatorError as error:
        return Fault(str(error), DRIVER_REMEDY)
    return None if names else Fault("NVIDIA's driver shows no GPU", "put one in, or choose --device cpu")


def gpu_command(extra: str) -> str:
    """Return the command that installs cuda or tensorrt for this machine's driver, in place of conflicting packages.

    All builds of onnxruntime use one folder, and so do those of TensorRT. Installed over each other they break, and the
    removal of one takes files of the other.
    """
    try:
        newest = driver_cuda()
    except EvaluatorError:  # a driver that is installed today runs the newest
        newest = max(EXTRA_CUDAS)
    cuda = next((cuda for cuda in EXTRA_CUDAS if cuda <= newest), min(EXTRA_CUDAS))
    names = {re.sub(r"[-_.]+", "-", str(each.name)).lower() for each in importlib.metadata.distributions()}
    clashing = {"onnxruntime", "onnxruntime-gpu"} & names if "onnxruntime" in names else set()
    builds = {name for name in names if re.fullmatch(r"tensorrt(-cu\d+)?(-libs|-bindings)?", name)}
    if extra == "tensorrt" and not all(name.startswith(f"tensorrt-cu{cuda}") for name in builds):
        clashing |= builds
    return extra_command(extra + EXTRA_CUDAS[cuda], remove=sorted(clashing))


def expect_packages(path: Path, device: str) -> None:
    """Raise EvaluatorError, with the command to install, if a network that yomi's kernels do not compute lacks a
    package.
    """
    is_cpu = chooses_cpu(device)
    kind = split_device(device)[0]
    extra = PLUGINS[kind].extra if kind in PLUGINS else kind
    package, extra = ("onnxruntime", "onnx") if is_cpu else ("onnx", extra)
    if importlib.util.find_spec(package) is None:
        use = f"{path}: what yomi's own kernels do not compute" if is_cpu else f"{path}: device {device}"
        raise EvaluatorError(missing_line(package, use, "cuda" if extra == "auto" else extra))


def built_for_gpus() -> bool:
    """Whether the installed onnxruntime is a build for GPUs. It is not imported, as that takes long."""
    return bool(_libraries("cuda"))


@functools.cache
def find_fault(device: str) -> Fault | None:
    """Return why onnxruntime cannot use a kind of GPU, or None."""
    if device in PLUGINS:
        return find_plugin_fault(device)
    return find_gpu_fault() or find_package_fault(device)


@functools.cache
def find_package_fault(device: str) -> Fault | None:
    """Return what onnxruntime lacks for `device`, even without a GPU, or None.

    The provider's library is loaded as onnxruntime would load it: on failure onnxruntime prints a banner to stdout, and
    continues with the processor.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        return Fault("onnxruntime is not installed", gpu_command(device))
    if not built_for_gpus():
        return Fault("this onnxruntime is built for the processor only", gpu_command(device))
    if not _libraries(device):
        return Fault(f"this onnxruntime is built without {PROVIDERS[device]}", gpu_command(device))
    return _find_driver_fault(device) or _missing_library(device)


def _find_driver_fault(device: str) -> Fault | None:
    """Return a fault if the driver is too old for the CUDA of this onnxruntime."""
    import onnxruntime

    wanted = int((getattr(onnxruntime, "cuda_version", None) or "0").partition(".")[0])
    try:
        found = driver_cuda()
    except EvaluatorError:  # no driver, which is a fault of its own
        return None
    if found >= wanted:
        return None
    reason = f"onnxruntime {onnxruntime.__version__} is built for CUDA {wanted}, NVIDIA's driver runs CUDA {found}"
    return Fault(f"{reason} at most", gpu_command(device))


def _folder() -> Path | None:
    spec = importlib.util.find_spec("onnxruntime")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "capi"


def _libraries(name: str) -> list[Path]:
    """Return a provider's library, or an empty list if this onnxruntime has none."""
    folder = _folder()
    return [] if folder is None else sorted(folder.glob(f"*onnxruntime_providers_{name}*"))


def _missing_library(device: str) -> Fault | None:
    import onnxruntime

    if hasattr(onnxruntime, "preload_dlls"):
        with _quiet():
            onnxruntime.preload_dlls()  # finds the CUDA libraries that pip installed
    if device == "tensorrt" and importlib.util.find_spec("tensorrt") is not None and (fault := _import_fault()):
        return fault
    for name in ("shared", *(["cuda"] if device == "tensorrt" else []), device):
        for path in _libraries(name):
            try:
                ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                missing, is_absent, _ = str(error).partition(": cannot open")
                reason = missing.removeprefix(f"{path}: ")
                reason = f"{missing} is not found" if is_absent else f"{path.name} is broken ({reason})"
                return Fault(reason, DRIVER_REMEDY if missing == "libcuda.so.1" else gpu_command(device))
    return None


def _import_fault() -> Fault | None:
    """Import TensorRT, which loads its libraries: pip installs them where no loader searches."""
    try:
        importlib.import_module("tensorrt")
    except Exception as error:  # whatever goes wrong while its libraries are loaded
        return Fault(f"tensorrt cannot be imported: {str(error).splitlines()[0]}", gpu_command("tensorrt"))
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard stdout in this block: the caller reports what `preload_dlls` prints there as a Fault."""
    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
        yield
