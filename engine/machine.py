"""Facts about this machine: processor, GPUs, packages, and the memory that a process may use."""

import contextlib
import errno
import os
import sys
from pathlib import Path

from yomi.children import ROOT

PACKAGES = (  # that affect speed
    *("numpy", "numba", "onnxruntime", "onnxruntime-gpu", "tensorrt"),
    *("onnxruntime-ep-webgpu", "onnxruntime-ep-nv-tensorrt-rtx-cu13", "onnxruntime-ep-openvino"),
)
MIN_TO_START = 512 << 20  # bytes; with less, libraries end the process or fail without a useful message
MIN_TO_PLAY = 3 << 30  # bytes; enough for the default options on a few cores
RESERVE = 256 << 20  # bytes for the threads of a search; without them the C library aborts the process


def cpu_info(*keys: str) -> str:
    """Return the first value in /proc/cpuinfo under one of `keys`; empty if there is none."""
    with contextlib.suppress(OSError):  # only Linux has this file
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in keys:
                return value.strip()
    return ""


def processor_name() -> str:
    if name := cpu_info("model name"):
        return name
    import platform  # not above, as importlib.metadata below: every start of an engine would wait for it

    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_version(package: str) -> str | None:
    """Return the version of a package, or None if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def package_versions(*more: str) -> dict[str, str]:
    """Return the versions of the installed packages among PACKAGES and `more`."""
    return {package: version for package in (*PACKAGES, *more) if (version := package_version(package))}


def start_facts() -> dict[str, str | int]:
    """Return facts to record when a run starts: the machine, the versions of packages, and yomi's commit."""
    import platform

    facts: dict[str, str | int] = {"host": platform.node(), "cpu": processor_name(), "cores": usable_cores()}
    versions = {"python": platform.python_version(), **package_versions("torch")}
    return {**facts, **versions, **({"commit": commit} if (commit := _commit()) else {})}


def _commit() -> str:
    """Return the commit of a checkout, with `-dirty` if files were changed; empty for an installed package."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return ""
    import subprocess

    words = ["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with contextlib.suppress(OSError):  # no git
        return subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return ""


def nvidia_devices() -> list[str]:
    """Return the names of the GPUs that NVIDIA's Linux driver has found, ordered by bus address."""
    names = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Model:"):
                names.append(line.partition(":")[2].strip())
    return names


def address_space_limit() -> int | None:
    """Return the bytes of address space that this process may use (`ulimit -v`), or None if unlimited."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def address_space_left() -> int | None:
    """Return the bytes of address space that this process may still allocate, or None if no limit is known."""
    limit = address_space_limit()
    sizes = Path("/proc/self/statm")
    if limit is None or sys.platform == "win32" or not sizes.exists():
        return None
    import resource

    return limit - int(sizes.read_text().split()[0]) * resource.getpagesize()


def limit_text(limit: int) -> str:
    """Return the error message for a limit of the address space that is too low for yomi."""
    return (
        f"the address space of a process is limited to {limit >> 20} MiB (ulimit -v): expected"
        f" {MIN_TO_PLAY >> 20} MiB or no limit; raise the limit, or lower --memory"
    )


def memory_fault(error: BaseException) -> str | None:
    """Return a message if a lack of memory caused the error, otherwise None.

    A library that cannot be mapped raises ImportError, or OSError without a number. Under a limit of the address space
    these count as a lack of memory.
    """
    limit = address_space_limit()
    is_unmapped = isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError)
    is_unmapped = is_unmapped or (isinstance(error, OSError) and error.errno is None)
    is_memory = (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, RuntimeError) and "can't start new thread" in str(error))
    )
    if limit is not None and limit < MIN_TO_PLAY and (is_memory or is_unmapped):
        return limit_text(limit)
    if not is_memory:
        return None
    text = " ".join(str(error).split())[:200] or type(error).__name__
    return f"not enough memory: {text}: lower --memory"
