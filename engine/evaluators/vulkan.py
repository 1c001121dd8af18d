"""Lists the GPUs of this machine's Vulkan drivers through ctypes, since WebGPU does not report its GPU and features."""

import ctypes
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_uint8, c_uint32, c_void_p
from dataclasses import dataclass

from yomi.engine.evaluators.base import EvaluatorError

LIBRARY = "libvulkan.so.1"
PROCESSOR = 4  # VK_PHYSICAL_DEVICE_TYPE_CPU
# types from the best: discrete, integrated, virtual, processor, other; WebGPU takes the best
ORDER = (2, 1, 3, PROCESSOR, 0)
VERSION_1_1 = 1 << 22 | 1 << 12


@dataclass(frozen=True, slots=True)
class Adapter:
    """A GPU of a Vulkan driver, or its emulation by software."""

    name: str
    driver: str
    kind: int  # VkPhysicalDeviceType
    has_half: bool = True  # whether shaders compute with 16-bit numbers, in buffers of them

    @property
    def is_software(self) -> bool:
        """Whether the processor computes instead of a GPU."""
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
