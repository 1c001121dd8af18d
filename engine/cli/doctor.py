"""`yomi doctor`: what runs here, what is missing, and the command that installs it."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from engine.version import VERSION

USAGE = "yomi doctor"
EPILOG = """\
A line starts with ok, or with -- where something is missing that yomi can do without; the line below it then says what
installs it. Errors start with !! and make the exit status 1.
"""

FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "asimd", "sve")
CUDA_COMMAND = f'{Path(sys.executable).name} -m pip install --force-reinstall "onnxruntime-gpu[cuda,cudnn]"'
REMOVE_COMMAND = f"{Path(sys.executable).name} -m pip uninstall -y onnxruntime"

OK, MISSING, ERROR = "ok", "--", "!!"
Finding = tuple[str, str]
"""(OK, MISSING or ERROR, text)."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no flags."""


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 where something is broken."""
    sections: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("Program", program),
        ("Processor", processor),
        ("Kernels (numba)", kernels),
        ("Networks (onnxruntime)", networks),
        ("GPU", gpu),
    ]
    broken = False
    for title, find in sections:
        print(title)
        for mark, text in find():
            broken |= mark == ERROR
            print(f"  {mark} {text}")
    return int(broken)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def program() -> Iterator[Finding]:
    """Yield versions of yomi, Python and the packages that every user needs."""
    yield OK, f"yomi {VERSION}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}"
    for package in ("numpy", "onnx", "sgfmill", "tqdm"):
        found = _version(package)
        yield (OK, f"{package} {found}") if found else (ERROR, f"{package} is missing: pip install {package}")


def processor() -> Iterator[Finding]:
    """Yield the processor's name, cores and the features that matter."""
    name, flags = platform.processor() or platform.machine(), set[str]()
    with contextlib.suppress(OSError):  # only Linux has this file; elsewhere the name above has to do
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            elif key.strip() in ("flags", "Features"):
                flags = set(value.split())
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield OK, f"{name}: {cores} cores for yomi"
    useful = [feature for feature in FEATURES if feature in flags]
    if useful:
        yield OK, "features: " + ", ".join(useful)
    elif flags:
        yield MISSING, "none of the vector features that make networks fast on a processor"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        yield OK, f"memory: {memory / 2**30:.1f} GiB"


def kernels() -> Iterator[Finding]:
    """Yield whether kernels compile here and where the compiled ones are kept."""
    try:
        import numba

        from native.jit import CACHE_DIRECTORY
        from native.warmup import PROCESSES, is_compiled
    except ImportError as error:
        yield ERROR, f"numba cannot be imported ({error}): pip install 'numba>=0.68,<0.69'"
        return
    yield OK, f"numba {numba.__version__}, llvmlite {_version('llvmlite')}"
    for game in PROCESSES:
        state = "compiled" if is_compiled(game) else "not compiled yet: the first start does it, up to a minute"
        yield OK, f"kernels for {game}: {state} (cache {CACHE_DIRECTORY})"


def networks() -> Iterator[Finding]:
    """Yield onnxruntime's version and providers."""
    installed = {name: found for name in ("onnxruntime", "onnxruntime-gpu") if (found := _version(name))}
    if not installed:
        yield ERROR, "onnxruntime is missing: pip install onnxruntime"
        return
    if len(installed) > 1:
        yield ERROR, "onnxruntime and onnxruntime-gpu are both installed and break each other:"
        yield ERROR, f"{REMOVE_COMMAND} && {CUDA_COMMAND}"
    try:
        import onnxruntime
    except ImportError as error:
        yield ERROR, f"onnxruntime cannot be imported: {error}"
        return
    names = ", ".join(f"{name} {found}" for name, found in installed.items())
    yield OK, f"{names}; providers: {', '.join(onnxruntime.get_available_providers())}"


def gpu() -> Iterator[Finding]:
    """Yield the GPU, and whether onnxruntime can use it."""
    device = _cuda_device()
    if device is None:
        yield MISSING, "no NVIDIA GPU with a driver: networks run on the processor"
        return
    yield OK, device
    try:
        import onnxruntime
    except ImportError:
        return  # `networks` has said so
    providers = onnxruntime.get_available_providers()
    if "CUDAExecutionProvider" not in providers:
        yield MISSING, "CUDA: this onnxruntime is built for the processor only; to use the GPU:"
        yield MISSING, f"    {REMOVE_COMMAND} && {CUDA_COMMAND}"
        return
    if hasattr(onnxruntime, "preload_dlls"):
        with _quiet():
            onnxruntime.preload_dlls()  # finds the CUDA libraries that pip installed
    folder = Path(onnxruntime.__file__).parent / "capi"
    yield from _provider(folder, "cuda", "CUDA", CUDA_COMMAND)
    if "TensorrtExecutionProvider" in providers:
        command = f"{Path(sys.executable).name} -m pip install 'tensorrt-cu12<11'"
        yield from _provider(folder, "tensorrt", "TensorRT", command)


def _provider(folder: Path, name: str, title: str, command: str) -> Iterator[Finding]:
    """Yield whether a provider's library finds what it is linked to."""
    try:
        ctypes.CDLL(str(folder / "libonnxruntime_providers_shared.so"), mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(folder / f"libonnxruntime_providers_{name}.so"))
    except OSError as error:
        yield MISSING, f"{title}: {str(error).partition(': cannot open')[0]} is not found; to install it:"
        yield MISSING, f"    {command}"
        return
    yield OK, f"{title} works"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drop what libraries print to stdout meanwhile; they say it again in the error that `_provider` shows."""
    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
        yield


def _cuda_device() -> str | None:
    """Return the first GPU's name as the driver tells it; None without a GPU or driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=name,memory.total,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.strip().splitlines()
    if not lines:
        return None
    name, memory, driver, capability = (part.strip() for part in lines[0].split(","))
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"{name}, {memory}, compute capability {capability}, driver {driver}{more}"
