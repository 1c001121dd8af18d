"""`yomi doctor`: what runs here, what is missing, and the command that installs it."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yomi import __version__
from yomi.engine.evaluators.providers import gpu_command
from yomi.engine.machine import processor_name, usable_cores
from yomi.native.errors import CompileError
from yomi.nets.installation import EXTRA_OF, extra_command, pip_command

if TYPE_CHECKING:
    from yomi.native.inventory import Kept

USAGE = "yomi doctor"
EPILOG = """\
ok: works. --: an optional part is missing; the next line shows how to install it. !!: an error; the exit status is 1.
"""

EXTRAS = {"matplotlib": "pictures (--plot)", "torch": "training (yomi train)", "onnx": "conversion of networks to ONNX"}
FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "asimd", "sve")

CLEAN_COMMAND = "yomi setup --clean"
TRIAL_ROWS = 8
"""Batch of the network that tests a GPU."""

OK, MISSING, ERROR = "ok", "--", "!!"
Finding = tuple[str, str]
"""(OK, MISSING or ERROR, text)."""


def add(parser: argparse.ArgumentParser) -> None: ...


def run(args: argparse.Namespace) -> int:
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
    yield OK, f"yomi {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}"
    for package in ("numpy", "sgfmill", "tqdm"):
        found = _version(package)
        yield (
            (OK, f"{package} {found}") if found else (ERROR, f"{package} is missing: {pip_command('install', package)}")
        )
    for package, use in EXTRAS.items():
        if found := _version(package):
            yield OK, f"{package} {found}"
        else:
            yield MISSING, f"{use}: {package} is not installed; to install it:"
            yield MISSING, f"    {extra_command(EXTRA_OF[package])}"


def processor() -> Iterator[Finding]:
    yield OK, f"{processor_name()}: {usable_cores()} cores for yomi"
    flags = set[str]()
    with contextlib.suppress(OSError):  # only Linux has this file
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                flags = set(value.split())
                break
    useful = [feature for feature in FEATURES if feature in flags]
    if useful:
        yield OK, "features: " + ", ".join(useful)
    elif flags:
        yield MISSING, "none of the vector features that make networks fast on a processor"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        yield OK, f"memory: {memory / 2**30:.1f} GiB"


def kernels() -> Iterator[Finding]:
    try:
        import numba

        from yomi.native.forward.emit import HAS_DOT_PRODUCTS, HAS_PAIRS, WIDTH, has_tiles
        from yomi.native.inventory import inventory
    except CompileError as error:
        yield ERROR, str(error)
        return
    except ImportError as error:
        yield ERROR, f"numba cannot be imported ({error}): {pip_command('install', 'numba>=0.68,<0.69')}"
        return
    yield OK, f"numba {numba.__version__}, llvmlite {_version('llvmlite')}"
    yield from compiled_kernels(inventory())
    products = "int16, without VNNI" if HAS_PAIRS else "fp32"
    if HAS_DOT_PRODUCTS:
        products = "int16 (transformers: int8), with VNNI"
    if has_tiles():
        products = f"bf16, with AMX, or {products}"
    yield OK, f"networks on the processor: vectors of {WIDTH} floats, products in {products}"


PARTS = {"more": "other networks and evaluators", "learning": "learning"}


def compiled_kernels(found: Sequence[Kept]) -> Iterator[Finding]:
    from yomi.native.jit import CACHE_DIRECTORY
    from yomi.native.kernel_groups import NAMES

    sizes = {kept.path.name: kept.size for kept in found}
    for name, groups in NAMES.items():
        marks = [kept for kept in found if kept.is_mark and kept.name in groups]
        used = [kept for kept in marks if not kept.reason]
        game, _, part = name.partition("-")
        title = f"kernels for {game}" + (f" ({PARTS[part]})" if part else "")
        if len(used) == len(groups):
            folders = {str(folder) for kept in used for folder in kept.content.get("folders", ())}
            size = _megabytes(sum(sizes.get(folder, 0) for folder in folders))
            yield OK, f"{title}: compiled {_date(used[-1].time)}, {size}"
            continue
        stale = [kept for kept in marks if kept.reason]
        state = f"out of date ({stale[-1].reason}, {_date(stale[-1].time)})" if stale else "not compiled yet"
        yield MISSING, f"{title}: {state}; the first start compiles them, or now:"
        yield MISSING, f"    yomi setup {game}"
    yield OK, f"cache of kernels: {CACHE_DIRECTORY}, {_megabytes(sum(sizes.values()))}"
    others = [kept for kept in found if kept.reason and not kept.is_mark]
    for reason in dict.fromkeys(kept.reason for kept in others):
        alike = [kept for kept in others if kept.reason == reason]
        total = _megabytes(sum(kept.size for kept in alike))
        yield OK, f"    not used here: {len(alike)} folders, {total}, until {_date(alike[-1].time)}: {reason}"
    if any(kept.may_remove for kept in found):
        yield OK, "    another yomi or Python on this machine may use some of them; to remove them:"
        yield OK, f"    {CLEAN_COMMAND}"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def networks() -> Iterator[Finding]:
    installed = {name: found for name in ("onnxruntime", "onnxruntime-gpu") if (found := _version(name))}
    if not installed:
        yield MISSING, "networks beyond yomi's own kernels: onnxruntime is not installed; to install it:"
        yield MISSING, f"    {extra_command('onnx')}"
        return
    if len(installed) > 1:
        yield ERROR, "onnxruntime and onnxruntime-gpu are both installed and break each other:"
        yield ERROR, gpu_command("cuda")
    try:
        import onnxruntime
    except ImportError as error:
        yield ERROR, f"onnxruntime cannot be imported: {error}"
        return
    names = ", ".join(f"{name} {found}" for name, found in installed.items())
    yield OK, f"{names}; providers: {', '.join(onnxruntime.get_available_providers())}"


def gpu() -> Iterator[Finding]:
    """Yield the GPUs, and test each way to use them with a small network."""
    from yomi.engine.evaluators.cuda import gpu_names, gpu_uuid
    from yomi.engine.evaluators.plugins import PLUGINS
    from yomi.engine.evaluators.providers import find_direct_fault, find_fault, find_gpu_fault, find_package_fault
    from yomi.engine.evaluators.tensorrt_driver import driver_name

    fault = find_gpu_fault()
    if fault is not None:
        yield MISSING, f"no GPU for CUDA: {fault.reason}; to change this:"
        yield MISSING, f"    {fault.remedy}"
    else:
        details = _smi_lines()
        for number, name in enumerate(gpu_names()):
            yield OK, f"GPU {number}: {details.get(gpu_uuid(number), name) if details else name}"
    ways = (
        ("CUDA (--device cuda)", "cuda", "onnx"),
        ("TensorRT through onnxruntime (--device tensorrt --backend onnx)", "tensorrt", "onnx"),
        ("TensorRT itself (--device tensorrt)", "tensorrt", "tensorrt"),
    )
    for title, device, backend in ways:
        found = find_direct_fault() if backend == "tensorrt" else find_package_fault(device)
        if found is not None:
            yield MISSING, f"{title}: {found.reason}; to install it:"
            yield MISSING, f"    {found.remedy}"
        elif fault is not None:
            yield OK, f"{title} is installed; a test needs a GPU"
        else:
            reason = _try(device, backend)
            yield (OK, f"{title} works") if reason is None else (MISSING, f"{title} does not work: {reason}")
    yield OK, f"TensorRT itself uses {driver_name()}"
    for device, plugin in PLUGINS.items():
        if device.endswith(":software"):  # for tests
            continue
        title = f"{plugin.title} (--device {device})"
        if (found := find_fault(device)) is not None:
            yield MISSING, f"{title}: {found.reason}; to mend it:"
            yield MISSING, f"    {found.remedy}"
        else:
            reason = _try(device, "onnx")
            yield (OK, f"{title} works") if reason is None else (MISSING, f"{title} does not work: {reason}")


def _try(device: str, backend: str) -> str | None:
    """Compute a small network in float16 on the first GPU, with packed inputs as in games.

    Return None if the outputs match the processor's, otherwise the fault in one line.
    """
    try:
        import numpy as np

        from yomi.engine.evaluators.providers import expect_packages

        expect_packages(Path("the network that is tried"), device)
        from yomi.engine.evaluators.gpu import has_half, open_engine, takes_bits
        from yomi.engine.evaluators.onnx_session import GpuSession
        from yomi.nets.dlshogi.definition import NetworkShape, write_network
        from yomi.nets.packed import Variant, variant_file

        outputs = ["output_policy", "output_value"]
        packed = ("input1", "input2") if takes_bits(device) else ()
        variant = Variant(half=has_half(device), packed=packed, constant=packed[1:])
        random = np.random.default_rng(0)
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            path = write_network(Path(folder) / "doctor.onnx", NetworkShape(blocks=1, channels=32))
            reference = GpuSession(variant_file(path, variant), "cpu", TRIAL_ROWS, outputs)
            engine, _ = open_engine(path, device, backend, TRIAL_ROWS, outputs, variant)
            stack.callback(engine.close)
            for name, array in reference.inputs.items():
                array[...] = random.integers(0, 256 if packed else 2, array.shape)
                engine.inputs[name][...] = array
            results = zip(outputs, engine.run(TRIAL_ROWS), reference.run(TRIAL_ROWS), strict=True)
            wrong = [name for name, found, wanted in results if not np.allclose(found, wanted, rtol=0.05, atol=0.05)]
            return f"its {' and '.join(wrong)} differ from the processor's" if wrong else None
    except Exception as error:  # of the packages', the driver's or our own kinds: the next way may work
        return next(iter(str(error).splitlines()), type(error).__name__)


def _smi_lines() -> dict[str, str]:
    """Return a description of each GPU by uuid, or nothing if nvidia-smi is not installed."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    query = [tool, "--query-gpu=uuid,name,memory.total,driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = {}
    for line in answer.stdout.strip().splitlines():
        uuid, name, memory, driver, capability = (part.strip() for part in line.split(","))
        lines[uuid] = f"{name}, {memory}, compute capability {capability}, driver {driver}"
    return lines
