"""The devices that compute networks: a table of their kinds (KINDS), and checks for missing packages and drivers.

The text of a device, such as `cuda:1`, is parsed once, by `parse_device`. If the requested device cannot be used, an
error names the remedy: no other device takes its place. A driver that emulates a GPU on the processor is used only if
the user names it (`webgpu:software`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.evaluators.base import LOG_ERRORS, EvaluatorError, Fault
from yomi.engine.evaluators.cuda import compute_capability, driver_cuda, gpu_descriptions
from yomi.engine.evaluators.vulkan import find_adapters
from yomi.nets.files import default_cache_dir, source_digest
from yomi.nets.installation import extra_command, missing_line
from yomi.nets.onnx_file import read_onnx_header
from yomi.system import changed_environment

if TYPE_CHECKING:
    from yomi.engine.options import Options

_log = logging.getLogger("yomi.evaluators")

OLDEST = (1, 24, 4)  # the first onnxruntime with plug-in providers
SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"
# drivers that compute on the processor, for the Vulkan loader's VK_LOADER_DRIVERS_DISABLE
SOFTWARE_DRIVERS = "*lvp*,*llvmpipe*,*swiftshader*"
EXTRA_CUDAS = {13: "", 12: "12"}  # suffixes of the extras for GPUs, by CUDA's major version, newest first
DRIVER_REMEDY = "install NVIDIA's driver (Debian, Ubuntu: sudo apt install nvidia-driver), or choose --device cpu"
VULKAN_REMEDY = "install the GPU's Vulkan driver (Debian, Ubuntu: sudo apt install libvulkan1 mesa-vulkan-drivers; "
VULKAN_REMEDY += "NVIDIA's driver brings its own), or choose --device cpu; tests take --device webgpu:software"
NATIVE_PRECISIONS = ("int16", "int8", "bf16")  # of yomi's own kernels only


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str  # its name and driver
    has_half: bool = True  # whether it computes in float16


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of device, one row of KINDS."""

    title: str  # in descriptions of evaluators
    extra: str  # the extra of yomi that installs its packages
    find: Callable[[], list[Gpu]]  # returns the GPUs by number, or raises EvaluatorError
    remedy: str  # for the fault that `find` raises
    backends: tuple[str, ...] = ("onnx",)  # that compute networks on it; auto is the first
    provider: str = ""  # onnxruntime's name of the provider
    package: str = ""  # of a plug-in provider, which lives beside onnxruntime
    # kinds of hardware that the provider may take, the preferred first, by its name in `ov_device`; empty: any
    hardware: tuple[str, ...] = ()
    # options of the provider for a file, batches of these sizes, and float16
    options: Callable[[Path, Sequence[int], bool], dict[str, str]] = lambda path, sizes, half: {}
    capture: str = ""  # option to record the commands of a batch, in order to replay them; empty: there is none
    # whether all sessions of a process share one device, so that only one may compute at a time
    is_shared: bool = False
    takes_bits: bool = True  # whether inputs of zeros and ones may be packed: as 8-bit integers that the graph unpacks
    has_one_size: bool = False  # whether all batches are padded to the largest, because shapes must be known
    rows: int | None = None  # rows of a batch, if unset; None: suits the network
    is_for_tests: bool = False

    @property
    def module(self) -> str:
        """Name by which the package is imported. The provider's library is registered under it, too."""
        return re.sub(r"-cu\d+$", "", self.package).replace("-", "_")

    @property
    def uses_cuda(self) -> bool:
        """Whether yomi itself calls NVIDIA's driver."""
        return self.extra in ("cuda", "tensorrt")


@dataclass(frozen=True, slots=True)
class Device:
    kind: str  # a key of KINDS
    number: int = 0  # of the GPU
    is_auto: bool = field(default=False, compare=False)  # whether yomi chose it

    def __str__(self) -> str:
        return self.kind if self.is_cpu else f"{self.kind}:{self.number}"

    @property
    def row(self) -> Kind:
        return KINDS[self.kind]

    @property
    def is_cpu(self) -> bool:
        return self.kind == "cpu"

    @property
    def gpu(self) -> Gpu:
        return find_gpus(self.kind)[self.number]

    def check(self) -> None:
        """Raise EvaluatorError if the device cannot be used. The message contains the remedy."""
        if self.is_cpu:
            return
        if fault := find_fault(self.kind):
            raise EvaluatorError(f"device {self}: {fault}")
        gpus = find_gpus(self.kind)
        if self.number >= len(gpus):
            found = ", ".join(f"{i} ({gpu.name})" for i, gpu in enumerate(gpus))
            raise EvaluatorError(f"device {self}: GPUs {found} found, expected one with the number {self.number}")


CPU = Device("cpu")


# -- from texts and options to devices ---------------------------------------------------------------------------------


@functools.cache
def parse_device(text: str) -> Device:
    """Return the device that a text names: auto, or a key of KINDS with or without a number, such as cuda:1.

    auto is CUDA if onnxruntime for CUDA and a GPU are present, otherwise the processor. Whether a named device can be
    used is not checked.

    Raises:
        EvaluatorError: there is no such device.
    """
    if text == "auto":
        # onnxruntime is not imported here if it is a build for processors, because that takes long
        if not _libraries("cuda") or find_gpu_fault("cuda") is not None:
            return Device("cpu", is_auto=True)
        if fault := find_fault("cuda"):
            _log.warning("device auto: the network runs on the processor: %s", fault)
        return Device("cpu" if fault else "cuda", is_auto=True)
    kind, _, number = text.lower().rpartition(":")
    device = Device(kind, int(number)) if number.isdecimal() and len(number) < 4 else Device(text.lower())
    if device.kind not in KINDS or (device.is_cpu and ":" in text):
        raise EvaluatorError(f"device {text} found, expected auto or one of {', '.join(KINDS)}")
    return device


def check_backend(device: Device, backend: str, precision: str) -> None:
    """Raise EvaluatorError if device, backend and precision contradict each other."""
    known = device.row.backends
    if backend not in ("auto", *known) and not (backend == "native" and device.is_auto):
        raise EvaluatorError(f"backend {backend} found for device {device.kind}, expected auto or {' or '.join(known)}")
    is_native = backend == "native" or (backend == "auto" and device.is_cpu)
    if is_native and os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        raise EvaluatorError(
            "NUMBA_DISABLE_JIT found: yomi's own kernels compute networks by machine code alone: "
            "expected backend onnx, or evaluator rollouts (Go) or material (shogi)"
        )
    precisions = ("fp32", *NATIVE_PRECISIONS) if is_native else ("fp32",) if device.is_cpu else ("fp32", "fp16")
    if precision not in ("auto", *precisions):
        what = f"device {device.kind} and backend {backend}"
        raise EvaluatorError(f"precision {precision} found for {what}, expected auto or {' or '.join(precisions)}")


def device_of(options: Options) -> Device:
    """Return the first device of the options. Only its text and its backend are checked.

    Raises:
        EvaluatorError: there is no such device, or options contradict each other.
    """
    device = parse_device(options.device)
    check_backend(device, options.backend, options.precision)
    return CPU if options.backend == "native" else device


def devices_of(options: Options) -> list[Device]:
    """Return the devices of the options: the processor alone, or one or more GPUs of one kind.

    Faults of devices are found here, before any long computation.

    Raises:
        EvaluatorError: options contradict each other, or a device cannot be used. The message contains the remedy.
    """
    device = device_of(options)
    if device.is_cpu:
        if options.devices is not None:
            raise EvaluatorError(f"devices {options.devices} name GPUs: expected --device cuda or the like with them")
        return [device]
    devices = [Device(device.kind, number) for number in device_numbers(options.devices)]
    for each in devices:
        each.check()
    return devices


def device_numbers(text: str | None) -> list[int]:
    """Return the numbers in a text such as `0,1`; without a text, the first GPU. Raises EvaluatorError."""
    if text is None:
        return [0]
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) < 4 for word in words):
        raise EvaluatorError(f"devices: {text!r} found, expected numbers of GPUs such as 0,1")
    numbers = [int(word) for word in words]
    if len(set(numbers)) < len(numbers):
        raise EvaluatorError(f"devices: {text!r} names a GPU twice: expected each once (and --device-workers)")
    return numbers


# -- GPUs --------------------------------------------------------------------------------------------------------------


def _nvidia_gpus() -> list[Gpu]:
    names = gpu_descriptions()
    if not names:
        raise EvaluatorError("NVIDIA's driver shows no GPU")
    return [Gpu(name) for name in names]


def _rtx_gpus() -> list[Gpu]:
    gpus = _nvidia_gpus()
    for number, gpu in enumerate(gpus):
        major, minor = compute_capability(number)
        if major < 12 and (major, minor) not in ((8, 6), (8, 9)):
            found = f"GPU {number} ({gpu.name}) of compute capability {major}.{minor} found"
            raise EvaluatorError(f"{found}, TensorRT for RTX expects 8.6, 8.9, or 12.0 and later")
    return gpus


def _webgpu_gpus() -> list[Gpu]:
    if sys.platform != "linux":
        return [Gpu("GPU")]  # Direct3D and Metal have no drivers that compute on the processor in a GPU's place
    adapters = find_adapters()
    if not adapters:
        raise EvaluatorError("Vulkan shows no GPU")
    best = adapters[0]
    if best.is_software:
        raise EvaluatorError(f"Vulkan shows no GPU but {best.name}, which computes on the processor")
    if any(each.is_software for each in adapters):
        os.environ.setdefault("VK_LOADER_DRIVERS_DISABLE", SOFTWARE_DRIVERS)  # lest WebGPU refuse the GPU and take it
    return [Gpu(", ".join(filter(None, (best.name, best.driver))), best.has_half)]


def _software_gpus() -> list[Gpu]:
    """Return the driver that emulates a GPU on the processor, or an empty list if WebGPU would prefer a real GPU."""
    adapters = find_adapters()
    if not adapters:
        raise EvaluatorError("Vulkan shows no driver that computes on the processor")
    if not adapters[0].is_software:
        raise EvaluatorError(f"Vulkan shows {adapters[0].name}, which WebGPU takes before any software adapter")
    return [Gpu(f"{adapters[0].name}, a software adapter", adapters[0].has_half)]


def _openvino_gpus(kind: str) -> list[Gpu]:
    facts = [each.ep_metadata for each in provider_devices(kind)]
    return [Gpu(each["FULL_DEVICE_NAME"], "FP16" in each["OPTIMIZATION_CAPABILITIES"].split()) for each in facts]


@functools.cache
def find_gpus(kind: str) -> list[Gpu]:
    """Return the GPUs of a kind, ordered by number. Raises EvaluatorError."""
    return KINDS[kind].find()


# -- what is missing ---------------------------------------------------------------------------------------------------


@functools.cache
def find_fault(kind: str) -> Fault | None:
    """Return the reason why a kind of device cannot be used, or None if it can."""
    if KINDS[kind].module:  # only the package knows the GPUs
        return find_package_fault(kind) or find_gpu_fault(kind)
    return find_gpu_fault(kind) or find_package_fault(kind)


def find_gpu_fault(kind: str) -> Fault | None:
    """Return the reason why no GPU of this kind is found, or None. The package of a plug-in must be installed."""
    row = KINDS[kind]
    try:
        find_gpus(kind)
    except EvaluatorError as error:
        return Fault(str(error), row.remedy)
    try:
        if row.module:
            provider_devices(kind)
    except EvaluatorError as error:
        return Fault(str(error), install_command(kind))
    return None


@functools.cache
def find_package_fault(kind: str) -> Fault | None:
    """Return the fault of a missing or broken package that a kind of device needs, or None. This needs no GPU."""
    row = KINDS[kind]
    needed = {"onnxruntime": "onnxruntime"}
    if row.module:
        needed[row.module] = row.package
    if "tensorrt" in row.backends:
        needed = {"tensorrt": "tensorrt", "onnx": "onnx", **needed}
    missing = [package for name, package in needed.items() if importlib.util.find_spec(name) is None]
    if missing:
        return Fault(f"{' and '.join(missing)} not installed", install_command(kind))
    if "tensorrt" in row.backends:
        try:
            importlib.import_module("tensorrt")
        except Exception as error:  # whatever goes wrong while its libraries are loaded
            return Fault(f"tensorrt cannot be imported: {first_line(error)}", install_command(kind))
        return None
    return _version_fault(kind) if row.module else _cuda_fault()


def _version_fault(kind: str) -> Fault | None:
    import onnxruntime

    if tuple(int(part) for part in onnxruntime.__version__.split(".")[:3] if part.isdecimal()) >= OLDEST:
        return None
    expected = ".".join(map(str, OLDEST))
    return Fault(f"onnxruntime {onnxruntime.__version__} found, expected {expected} or later", install_command(kind))


def _cuda_fault() -> Fault | None:
    """Return why onnxruntime cannot use CUDA, with the command that repairs it; None if it can.

    The provider's library is loaded as onnxruntime would load it: on failure onnxruntime prints a banner to stdout, and
    continues with the processor.
    """
    command = install_command("cuda")
    if not _libraries("cuda"):
        return Fault("this onnxruntime is built for the processor only", command)
    import onnxruntime

    wanted = int((getattr(onnxruntime, "cuda_version", None) or "0").partition(".")[0])
    with contextlib.suppress(EvaluatorError):  # no driver, which is reported as another fault
        if (found := driver_cuda()) < wanted:
            build = f"onnxruntime {onnxruntime.__version__} is built for CUDA {wanted}"
            return Fault(f"{build}, NVIDIA's driver runs CUDA {found} at most", command)
    if hasattr(onnxruntime, "preload_dlls"):
        # Finds the CUDA libraries that pip installed. It prints what the caller reports as a Fault.
        with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
            onnxruntime.preload_dlls()
    for path in (*_libraries("shared"), *_libraries("cuda")):
        try:
            ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            missing, is_absent, _ = str(error).partition(": cannot open")
            reason = missing.removeprefix(f"{path}: ")
            reason = f"{missing} is not found" if is_absent else f"{path.name} is broken ({reason})"
            return Fault(reason, DRIVER_REMEDY if missing == "libcuda.so.1" else command)
    return None


def _libraries(name: str) -> list[Path]:
    """Return the library of a built-in provider, or an empty list if this onnxruntime has none. Nothing is imported."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return []
    return sorted((Path(spec.origin).parent / "capi").glob(f"*onnxruntime_providers_{name}*"))


def install_command(kind: str) -> str:
    """Return the command that installs the packages of a kind of device, and removes packages that conflict.

    All builds of onnxruntime use one folder; all builds of TensorRT use one, too. Two builds in one folder break each
    other, and the removal of one takes files of the other. A plug-in takes any onnxruntime as its host.
    """
    row = KINDS[kind]
    if not row.uses_cuda:
        has_host = importlib.util.find_spec("onnxruntime") is not None
        return extra_command(row.extra, leave_out=("onnxruntime",) if has_host and row.module else ())
    try:
        newest = driver_cuda()
    except EvaluatorError:  # a driver that is installed today runs the newest
        newest = max(EXTRA_CUDAS)
    cuda = next((cuda for cuda in EXTRA_CUDAS if cuda <= newest), min(EXTRA_CUDAS))
    names = {re.sub(r"[-_.]+", "-", str(each.name)).lower() for each in importlib.metadata.distributions()}
    clashing = {"onnxruntime", "onnxruntime-gpu"} & names if "onnxruntime" in names else set()
    builds = {name for name in names if re.fullmatch(r"tensorrt(-cu\d+)?(-libs|-bindings)?", name)}
    if "tensorrt" in row.backends and not all(name.startswith(f"tensorrt-cu{cuda}") for name in builds):
        clashing |= builds
    return extra_command(row.extra + EXTRA_CUDAS[cuda], remove=sorted(clashing))


def expect_packages(path: Path, device: Device) -> None:
    """Raise EvaluatorError, naming the install command, if a network needs a package that is missing."""
    package = "onnxruntime" if device.is_cpu else "onnx"
    if importlib.util.find_spec(package) is None:
        use = f"{path}: what yomi's own kernels do not compute" if device.is_cpu else f"{path}: device {device.kind}"
        raise EvaluatorError(missing_line(package, use, device.row.extra))


# -- plug-in providers: packages beside onnxruntime --------------------------------------------------------------------

_registering = threading.Lock()
_registered: set[str] = set()


def provider_devices(kind: str) -> list[Any]:
    """Return onnxruntime's devices of a plug-in provider. The first call registers the provider's library.

    Raises:
        EvaluatorError: the library cannot be loaded, or has no device.
    """
    import onnxruntime

    row = KINDS[kind]
    with _registering:
        if row.module not in _registered:
            try:
                _register(onnxruntime, row)
            except Exception as error:  # exceptions of onnxruntime or of the package
                raise EvaluatorError(f"{row.package} cannot be loaded: {first_line(error)}") from error
            _registered.add(row.module)
    found = [each for each in onnxruntime.get_ep_devices() if each.ep_name == row.provider]
    if row.hardware:  # GPUs of one machine are GPU.0, GPU.1
        found = [
            each for name in row.hardware for each in found if each.ep_metadata["ov_device"].partition(".")[0] == name
        ]
    if not found:
        hardware = " or ".join(row.hardware)
        raise EvaluatorError(f"{row.package} offers no device" + (f" called {hardware}" if hardware else ""))
    return found


def _register(onnxruntime: Any, row: Kind) -> None:
    """Register a plug-in's library.

    onnxruntime searches GPUs in /sys/class/drm, which containers often lack, but WebGPU asks Vulkan. So the provider
    offers its device even if onnxruntime knows no GPU: `Kind.find` has asked Vulkan.
    """
    module = importlib.import_module(row.module)
    onnxruntime.set_default_logger_severity(LOG_ERRORS)  # it warns of the variable
    with changed_environment({SOFTWARE_VARIABLE: "1"}):
        onnxruntime.register_execution_provider_library(row.module, module.get_library_path())


def _cuda_options(path: Path, sizes: Sequence[int], half: bool) -> dict[str, str]:
    # Float32 with ten bits of mantissa is no reference for float16.
    # cuDNN chooses its algorithms. Timing them all took 28 s a session on an H200, not 3 s, for no more speed:
    # 0.85, 1.10, 1.20 and 1.07 times as many evaluations/s this way in batches of 32, 96, 160 and 256.
    return {"use_tf32": str(int(half)), "cudnn_conv_algo_search": "HEURISTIC"}


def _rtx_options(path: Path, sizes: Sequence[int], half: bool) -> dict[str, str]:
    """Return the options of TensorRT RTX for a file. Its cache folder keeps compiled engines."""
    header = read_onnx_header(path)
    assert header is not None
    shapes = {tensor.name: (tensor.shape or ())[1:] for tensor in header.input_tensors}
    profile = {
        name: ",".join(f"{tensor}:{'x'.join(map(str, (size, *shape)))}" for tensor, shape in shapes.items())
        for name, size in (("min", sizes[0]), ("opt", sizes[-1]), ("max", sizes[-1]))
    }
    return {
        "nv_runtime_cache_path": _cache_folder("tensorrt-rtx", path),
        "nv_persistent_context_memory": "1",
        **{f"nv_profile_{name}_shapes": text for name, text in profile.items()},
    }


def _openvino_options(path: Path, sizes: Sequence[int], half: bool) -> dict[str, str]:
    # Without the hint a GPU, and a processor with AMX, compute a float32 network in 16 bits. An NPU knows no float32.
    precise = {"INFERENCE_PRECISION_HINT": "f16" if half else "f32"}
    kept = {"CACHE_DIR": _cache_folder("openvino", path)}
    return {"load_config": json.dumps({"CPU": precise | kept, "GPU": precise | kept, "NPU": kept})}


def _cache_folder(name: str, path: Path) -> str:
    """Return the folder, new or existing, in which a provider keeps what it has compiled from a file."""
    folder = default_cache_dir() / name / source_digest(path)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return os.fspath(folder)


def first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


_webgpu = functools.partial(
    Kind,
    package="onnxruntime-ep-webgpu",
    title="WebGPU",
    provider="WebGpuExecutionProvider",
    extra="gpu",
    capture="enableGraphCapture",
    is_shared=True,
)


def _openvino(kind: str, *hardware: str, **others: Any) -> Kind:
    return Kind(
        package="onnxruntime-ep-openvino",
        title="OpenVINO",
        provider="OpenVINOExecutionProvider",
        extra="openvino",
        find=functools.partial(_openvino_gpus, kind),
        remedy="install the driver of Intel's GPU or NPU (other makers' hardware: --device cuda, webgpu or cpu)",
        hardware=hardware,
        options=_openvino_options,
        **others,
    )


KINDS = {
    "cpu": Kind("onnxruntime", "onnx", list, "", backends=("native", "onnx"), provider="CPUExecutionProvider"),
    "cuda": Kind(
        "CUDA",
        "cuda",
        _nvidia_gpus,
        DRIVER_REMEDY,
        provider="CUDAExecutionProvider",
        options=_cuda_options,
        capture="enable_cuda_graph",
    ),
    "tensorrt": Kind("TensorRT", "tensorrt", _nvidia_gpus, DRIVER_REMEDY, backends=("tensorrt",)),
    "webgpu": _webgpu(find=_webgpu_gpus, remedy=VULKAN_REMEDY),
    "webgpu:software": _webgpu(
        find=_software_gpus,
        remedy="name the description of a software driver in VK_DRIVER_FILES, or choose --device webgpu or cpu",
        rows=8,
        is_for_tests=True,
    ),
    "rtx": Kind(
        package="onnxruntime-ep-nv-tensorrt-rtx-cu13",
        title="TensorRT for RTX",
        provider="NvTensorRTRTXExecutionProvider",
        extra="rtx",
        find=_rtx_gpus,
        remedy="install NVIDIA's driver for a card that TensorRT for RTX supports, or choose --device cuda or webgpu",
        options=_rtx_options,
        takes_bits=False,
    ),
    "openvino": _openvino("openvino", "GPU", "CPU"),
    "openvino:gpu": _openvino("openvino:gpu", "GPU"),
    "openvino:npu": _openvino("openvino:npu", "NPU", has_one_size=True),
    "openvino:cpu": _openvino("openvino:cpu", "CPU", rows=8),
}  # by device, as in `--device`
