"""What this machine is: the facts that speeds depend on."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = (
    *("numpy", "numba", "onnxruntime", "onnxruntime-gpu", "tensorrt"),
    *("onnxruntime-ep-webgpu", "onnxruntime-ep-nv-tensorrt-rtx-cu13"),
)
"""Packages whose versions a speed depends on."""


def processor_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_versions() -> dict[str, str]:
    """Return the versions of PACKAGES that are installed."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def nvidia_devices() -> list[str]:
    """Return the names of the GPUs that NVIDIA's driver for Linux has found, in the order of their bus addresses."""
    names = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Model:"):
                names.append(line.partition(":")[2].strip())
    return names
