"""Plug-in execution providers: packages beside the ordinary onnxruntime that support GPUs of every maker.

The requested provider computes, or there is an error. A driver that computes on the processor counts as a GPU only if
the user requests it by name.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_uint8, c_uint32, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.evaluators.base import LOG_ERRORS, EvaluatorError, Fault
from yomi.engine.evaluators.cuda import compute_capability, gpu_names
from yomi.nets.installation import extra_command

OLDEST = (1, 24, 4)  # the first onnxruntime with plug-in providers
SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"
# drivers that compute on the processor, for the Vulkan loader's VK_LOADER_DRIVERS_DISABLE
SOFTWARE_DRIVERS = "*lvp*,*llvmpipe*,*swiftshader*"
RTX_CAPABILITIES = "8.6, 8.9, or 12.0 and later"
VULKAN_REMEDY = "install the GPU's Vulkan driver (Debian, Ubuntu: sudo apt install libvulkan1 mesa-vulkan-drivers; "
VULKAN_REMEDY += "NVIDIA's driver brings its own), or choose --device cpu"
LIBRARY = "libvulkan.so.1"
PROCESSOR = 4  # VK_PHYSICAL_DEVICE_TYPE_CPU
# types from the best: discrete, integrated, virtual, processor, other; WebGPU takes the best
ORDER = (2, 1, 3, PROCESSOR, 0)
VERSION_1_1 = 1 << 22 | 1 << 12


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str  # its name and driver
    has_half: bool = True  # whether it computes in float16


@dataclass(frozen=True, slots=True)
class Plugin:
    """A device that a plug-in provider drives: a row of PLUGINS."""

    title: str  # in descriptions of evaluators
    package: str
    module: str  # the package's import name, also the library's registration name
    provider: str  # onnxruntime's name of the provider
    extra: str  # the extra of yomi that installs the package
    find: Callable[[], list[Gpu]]  # returns the GPUs by number, or raises EvaluatorError
    remedy: str  # for the fault that `find` raises
    # whether all sessions of a process share one device, so that only one may compute at a time
    is_shared: bool = False
    captures: bool = False  # whether a batch's commands can be recorded and replayed, as by WebGPU's graph capture
    takes_bits: bool = True  # whether inputs of zeros and ones may be packed: as 8-bit integers that the graph unpacks
    rows: int | None = None  # rows of a batch, if unset; None: suits the network


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
    """Return the driver that computes on the processor in place of a GPU.

    Raises:
        EvaluatorError: there is none, or there is a GPU, which WebGPU would prefer.
    """
    adapters = find_adapters()
    if not adapters:
        raise EvaluatorError("Vulkan shows no driver that computes on the processor")
    if not adapters[0].is_software:
        raise EvaluatorError(f"Vulkan shows {adapters[0].name}, which WebGPU takes before any software adapter")
    return [Gpu(f"{adapters[0].name}, a software adapter", adapters[0].has_half)]


def _rtx_gpus() -> list[Gpu]:
    names = gpu_names()
    if not names:
        raise EvaluatorError("NVIDIA's driver shows no GPU")
    for number, name in enumerate(names):
        major, minor = compute_capability(number)
        if major < 12 and (major, minor) not in ((8, 6), (8, 9)):
            found = f"GPU {number} ({name}) of compute capability {major}.{minor} found"
            raise EvaluatorError(f"{found}, TensorRT for RTX expects {RTX_CAPABILITIES}")
    return [Gpu(name) for name in names]


PLUGINS = {
    "webgpu": Plugin(
        title="WebGPU",
        package="onnxruntime-ep-webgpu",
        module="onnxruntime_ep_webgpu",
        provider="WebGpuExecutionProvider",
        extra="gpu",
        find=_webgpu_gpus,
        remedy=f"{VULKAN_REMEDY}; tests take --device webgpu:software",
        is_shared=True,
        captures=True,
    ),
    "webgpu:software": Plugin(
        title="WebGPU",
        package="onnxruntime-ep-webgpu",
        module="onnxruntime_ep_webgpu",
        provider="WebGpuExecutionProvider",
        extra="gpu",
        find=_software_gpus,
        remedy="name the description of a software driver in VK_DRIVER_FILES, or choose --device webgpu or cpu",
        is_shared=True,
        captures=True,
        rows=8,
    ),
    "rtx": Plugin(
        title="TensorRT for RTX",
        package="onnxruntime-ep-nv-tensorrt-rtx-cu13",
        module="onnxruntime_ep_nv_tensorrt_rtx",
        provider="NvTensorRTRTXExecutionProvider",
        extra="rtx",
        find=_rtx_gpus,
        remedy="choose --device tensorrt, cuda or webgpu",
        takes_bits=False,
    ),
}  # by device, as in `--device`

_registering = threading.Lock()
_registered: set[str] = set()


def plugin_gpus(kind: str) -> list[Gpu]:
    """Return a device's GPUs in the order of their numbers, or raise EvaluatorError."""
    return PLUGINS[kind].find()


def find_plugin_fault(kind: str) -> Fault | None:
    """Return why a device of PLUGINS cannot be used, or None."""
    plugin = PLUGINS[kind]
    missing = [name for name in ("onnxruntime", plugin.module) if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join(plugin.package if name == plugin.module else name for name in missing)
        return Fault(f"{names} not installed", plugin_command(kind))
    import onnxruntime

    if tuple(int(part) for part in onnxruntime.__version__.split(".")[:3] if part.isdecimal()) < OLDEST:
        expected = ".".join(map(str, OLDEST))
        return Fault(f"onnxruntime {onnxruntime.__version__} found, expected {expected} or later", plugin_command(kind))
    try:
        plugin.find()
    except EvaluatorError as error:
        return Fault(str(error), plugin.remedy)
    try:
        provider_devices(kind)
    except EvaluatorError as error:
        return Fault(str(error), plugin_command(kind))
    return None


def plugin_command(kind: str) -> str:
    """Return the command that installs a device's package. onnxruntime-gpu works as well as onnxruntime."""
    has_host = importlib.util.find_spec("onnxruntime") is not None
    return extra_command(PLUGINS[kind].extra, leave_out=("onnxruntime",) if has_host else ())


def provider_devices(kind: str) -> list[Any]:
    """Return onnxruntime's devices of a plug-in provider. The first call registers the provider's library.

    Raises:
        EvaluatorError: the library cannot be loaded, or has no device.
    """
    import onnxruntime

    plugin = PLUGINS[kind]
    with _registering:
        if plugin.module not in _registered:
            try:
                _register(onnxruntime, plugin)
            except Exception as error:  # onnxruntime's own kinds, or those of the package
                raise EvaluatorError(f"{plugin.package} cannot be loaded: {_first_line(error)}") from error
            _registered.add(plugin.module)
    found = [each for each in onnxruntime.get_ep_devices() if each.ep_name == plugin.provider]
    if not found:
        raise EvaluatorError(f"{plugin.package} offers no device")
    return found


def _register(onnxruntime: Any, plugin: Plugin) -> None:
    """Register a plug-in's library.

    onnxruntime searches GPUs in /sys/class/drm, which containers often lack, but WebGPU asks Vulkan. So the provider
    offers its device even if onnxruntime knows no GPU: `Plugin.find` has asked Vulkan.
    """
    module = importlib.import_module(plugin.module)
    onnxruntime.set_default_logger_severity(LOG_ERRORS)  # it warns of the variable
    before = os.environ.get(SOFTWARE_VARIABLE)
    os.environ[SOFTWARE_VARIABLE] = "1"
    try:
        onnxruntime.register_execution_provider_library(plugin.module, module.get_library_path())
    finally:
        if before is None:
            del os.environ[SOFTWARE_VARIABLE]
        else:
            os.environ[SOFTWARE_VARIABLE] = before


def device_memory(kind: str, number: int) -> tuple[str, int, int]:
    """Return the location of values on a device for OrtValue: type, number and vendor id (-1: unknown)."""
    import onnxruntime

    memory = provider_devices(kind)[number].memory_info(onnxruntime.OrtDeviceMemoryType.DEFAULT)
    return "gpu", 0, memory.device_vendor_id or -1


def open_session(path: Path, kind: str, number: int, options: dict[str, str]) -> tuple[Any, list[str]]:
    """Open a session of a plug-in provider. Also return the operators of the nodes that run on the processor.

    Raises:
        EvaluatorError: the device or the file cannot be used, or the provider took no node.
    """
    import onnxruntime

    devices = provider_devices(kind)
    if number >= len(devices):
        raise EvaluatorError(f"device {kind}:{number}: {len(devices)} devices found, expected one with that number")
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    settings.log_severity_level = LOG_ERRORS
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        settings.add_provider_for_devices([devices[number]], options)
        session = onnxruntime.InferenceSession(os.fspath(path), settings, enable_fallback=0)
    except Exception as error:  # onnxruntime raises its own kinds, all below Exception
        raise EvaluatorError(f"device {kind}: {path}: onnxruntime cannot load it: {_first_line(error)}") from error
    session.disable_fallback()
    left: list[str] = []
    taken = 0
    for part in session.get_provider_graph_assignment_info():
        operators = [node.op_type for node in part.get_nodes()]
        if part.ep_name == PLUGINS[kind].provider:
            taken += len(operators)
        else:
            left += operators
    if not taken:
        raise EvaluatorError(f"device {kind}: {path}: {PLUGINS[kind].provider} took none of its {len(left)} nodes")
    return session, left


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


@functools.cache
def device_lock(module: str) -> threading.Lock:
    """Return the lock of a plug-in whose sessions share a device."""
    return threading.Lock()


@dataclass(frozen=True, slots=True)
class Adapter:
    """A GPU, or its replacement in software, of a Vulkan driver."""

    name: str
    driver: str
    kind: int  # VkPhysicalDeviceType
    has_half: bool = True  # whether shaders compute with 16-bit numbers, in buffers of them

    @property
    def is_software(self) -> bool:
        """Whether the processor computes in place of a GPU."""
        return self.kind == PROCESSOR


class _Application(Structure):
    _fields_ = (
        *(("type", c_uint32), ("next", c_void_p), ("name", c_char_p), ("version", c_uint32)),
        *(("engine", c_char_p), ("engine_version", c_uint32), ("api_version", c_uint32)),
    )


class _Creation(Structure):
    _fields_ = (
        *(("type", c_uint32), ("next", c_void_p), ("flags", c_uint32), ("application", POINTER(_Application))),
        *(("layer_count", c_uint32), ("layers", c_void_p), ("extension_count", c_uint32), ("extensions", c_void_p)),
    )


class _Driver(Structure):
    _fields_ = (
        *(("type", c_uint32), ("next", c_void_p), ("id", c_uint32)),
        *(("name", c_char * 256), ("info", c_char * 256), ("conformance", c_uint8 * 4)),
    )


class _Properties(Structure):
    _fields_ = (
        *(("type", c_uint32), ("next", c_void_p), ("api_version", c_uint32), ("driver_version", c_uint32)),
        *(("vendor", c_uint32), ("device", c_uint32), ("kind", c_uint32), ("name", c_char * 256)),
        ("rest", c_uint8 * 1024),  # identifiers, limits and features: 560 bytes, which nobody here reads
    )


class _Storage(Structure):
    """VkPhysicalDevice16BitStorageFeatures."""

    _fields_ = (("type", c_uint32), ("next", c_void_p), ("buffers", c_uint32), ("uniforms", c_uint32 * 3))


class _Half(Structure):
    """VkPhysicalDeviceShaderFloat16Int8Features."""

    _fields_ = (("type", c_uint32), ("next", c_void_p), ("float16", c_uint32), ("int8", c_uint32))


class _Features(Structure):
    _fields_ = (("type", c_uint32), ("next", c_void_p), ("rest", c_uint32 * 64))


def find_adapters() -> list[Adapter]:
    """Return the adapters of this machine's Vulkan drivers, best first; empty without a driver.

    Raises:
        EvaluatorError: the Vulkan loader is not installed.
    """
    try:
        vulkan = ctypes.CDLL(LIBRARY)
    except OSError:
        raise EvaluatorError(f"{LIBRARY}, the Vulkan loader, is not found") from None
    application = _Application(0, None, b"yomi", 0, None, 0, VERSION_1_1)
    creation = _Creation(1, None, 0, ctypes.pointer(application))
    instance, count = c_void_p(), c_uint32()
    if vulkan.vkCreateInstance(byref(creation), None, byref(instance)):
        return []  # without a driver there is no instance
    try:
        if vulkan.vkEnumeratePhysicalDevices(instance, byref(count), None):
            return []
        handles = (c_void_p * count.value)()
        vulkan.vkEnumeratePhysicalDevices(instance, byref(count), handles)
        found = [_describe(vulkan, handle) for handle in handles[: count.value] if handle]
    finally:
        vulkan.vkDestroyInstance(instance, None)
    return sorted(found, key=lambda each: ORDER.index(each.kind) if each.kind in ORDER else len(ORDER))


def _describe(vulkan: ctypes.CDLL, handle: int) -> Adapter:
    driver = _Driver(1000196000, None)
    found = _Properties(1000059001, ctypes.cast(ctypes.pointer(driver), c_void_p))
    vulkan.vkGetPhysicalDeviceProperties2(c_void_p(handle), byref(found))
    storage = _Storage(1000083000, None)
    half = _Half(1000082000, ctypes.cast(ctypes.pointer(storage), c_void_p))
    vulkan.vkGetPhysicalDeviceFeatures2(
        c_void_p(handle), byref(_Features(1000059000, ctypes.cast(ctypes.pointer(half), c_void_p)))
    )
    names = (driver.name.decode("utf-8", "replace"), driver.info.decode("utf-8", "replace"))
    has_half = bool(half.float16 and storage.buffers)
    return Adapter(found.name.decode("utf-8", "replace"), " ".join(filter(None, names)), found.kind, has_half)
