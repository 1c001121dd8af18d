"""`yomi doctor`: shows what works on this machine, what is missing, and the command that installs it."""

import argparse
import contextlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from yomi import __version__
from yomi.engine.evaluators.devices import Device, install_command
from yomi.engine.machine import cpu_info, package_version, processor_name, usable_cores
from yomi.errors import CompileError
from yomi.language import tr
from yomi.nets.installation import EXTRA_OF, extra_command, pip_command

USAGE = "yomi doctor"
EPILOG = """\
ok: works. --: an optional part is missing; the next line shows how to install it. !!: an error; the exit status is 1.
"""

EXTRAS = {"matplotlib": "pictures (--plot)", "torch": "training (yomi train)", "onnx": "conversion of networks to ONNX"}
FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "asimd", "sve")

CLEAN_COMMAND = "yomi setup --clean"
TRIAL_ROWS = 8  # Batch of the network that tests a GPU

OK, MISSING, ERROR = "ok", "--", "!!"
Finding = tuple[str, str]  # (OK, MISSING or ERROR, text)


def add(parser: argparse.ArgumentParser) -> None: ...


def run(args: argparse.Namespace) -> int:
    sections: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        (tr("Program"), program),
        (tr("Processor"), processor),
        (tr("Kernels (numba)"), kernels),
        (tr("Networks (onnxruntime)"), networks),
        ("GPU", gpu),
    ]
    broken = False
    for title, find in sections:
        print(title)
        for mark, text in find():
            broken |= mark == ERROR
            print(f"  {mark} {text}")
    return int(broken)


def program() -> Iterator[Finding]:
    yield OK, f"yomi {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}"
    for package in ("numpy", "sgfmill", "tqdm"):
        if found := package_version(package):
            yield OK, f"{package} {found}"
        else:
            yield ERROR, tr("{package} is missing: {command}", package=package, command=pip_command("install", package))
    for package, use in EXTRAS.items():
        if found := package_version(package):
            yield OK, f"{package} {found}"
        else:
            yield MISSING, tr("{use}: {package} is not installed; to install it:", use=tr(use), package=package)
            yield MISSING, f"    {extra_command(EXTRA_OF[package])}"


def processor() -> Iterator[Finding]:
    yield OK, tr("{processor}: {n} cores for yomi", processor=processor_name(), n=usable_cores())
    flags = cpu_info("flags", "Features").split()
    useful = [feature for feature in FEATURES if feature in flags]
    if useful:
        yield OK, tr("features: {names}", names=", ".join(useful))
    elif flags:
        yield MISSING, tr("none of the vector features that make networks fast on a processor")
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        yield OK, tr("memory: {size} GiB", size=f"{memory / 2**30:.1f}")


def kernels() -> Iterator[Finding]:
    try:
        import numba

        from yomi.native.forward.emit import HAS_DOT_PRODUCTS, HAS_PAIRS, WIDTH, has_tiles
    except CompileError as error:
        yield ERROR, str(error)
        return
    except ImportError as error:
        command = pip_command("install", "numba>=0.68,<0.69")
        yield (
            ERROR,
            tr("{package} cannot be imported ({error}): {command}", package="numba", error=error, command=command),
        )
        return
    yield OK, f"numba {numba.__version__}, llvmlite {package_version('llvmlite')}"
    yield from compiled_kernels()
    products = tr("int16, without VNNI") if HAS_PAIRS else "fp32"
    if HAS_DOT_PRODUCTS:
        products = tr("int16 (transformers: int8), with VNNI")
    if has_tiles():
        products = tr("bf16, with AMX, or {products}", products=products)
    yield (
        OK,
        tr("networks on the processor: vectors of {n} floats, products in {products}", n=WIDTH, products=products),
    )


PARTS = {"alphabeta": "alpha-beta", "more": "other networks and evaluators", "learning": "learning"}


def compiled_kernels() -> Iterator[Finding]:
    from yomi.native.cache_folder import size_of
    from yomi.native.jit import CACHE_DIRECTORY
    from yomi.native.kernel_groups import NAMES
    from yomi.native.precompile import is_compiled, unused_kernels

    for name in NAMES:
        game, _, part = name.partition("-")
        title = tr("kernels for {game}", game=game) + (f" ({tr(PARTS[part])})" if part else "")
        if is_compiled(name):
            yield OK, tr("{title}: compiled", title=title)
        else:
            yield MISSING, tr("{title}: not compiled; the first start compiles them, or now:", title=title)
            yield MISSING, f"    yomi setup {game}"
    yield (
        OK,
        tr("cache of kernels: {folder}, {size}", folder=CACHE_DIRECTORY, size=_megabytes(size_of(CACHE_DIRECTORY))),
    )
    if unused := unused_kernels():
        size = _megabytes(sum(map(size_of, unused)))
        yield OK, "    " + tr("{size} are of another yomi, Python or processor; to remove them:", size=size)
        yield OK, f"    {CLEAN_COMMAND}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def networks() -> Iterator[Finding]:
    installed = {name: found for name in ("onnxruntime", "onnxruntime-gpu") if (found := package_version(name))}
    if not installed:
        use = tr("networks beyond yomi's own kernels")
        yield MISSING, tr("{use}: {package} is not installed; to install it:", use=use, package="onnxruntime")
        yield MISSING, f"    {extra_command('onnx')}"
        return
    if len(installed) > 1:
        yield ERROR, tr("onnxruntime and onnxruntime-gpu are both installed and break each other:")
        yield ERROR, install_command("cuda")
    try:
        import onnxruntime
    except ImportError as error:
        yield ERROR, tr("onnxruntime cannot be imported: {error}", error=error)
        return
    names = ", ".join(f"{name} {found}" for name, found in installed.items())
    providers = ", ".join(onnxruntime.get_available_providers())
    yield OK, tr("{names}; providers: {providers}", names=names, providers=providers)


def gpu() -> Iterator[Finding]:
    """Yield findings about NVIDIA's GPUs. Test each kind of GPU with a small network."""
    from yomi.engine.evaluators.cuda import gpu_names, gpu_uuid, has_pycuda
    from yomi.engine.evaluators.devices import KINDS, Device, find_gpu_fault, find_package_fault

    fault = find_gpu_fault("cuda")
    if fault is not None:
        yield MISSING, tr("no GPU for CUDA: {reason}; to change this:", reason=fault.reason)
        yield MISSING, f"    {fault.remedy}"
    else:
        details = _smi_lines()
        for number, name in enumerate(gpu_names()):
            yield OK, f"GPU {number}: {details.get(gpu_uuid(number), name) if details else name}"
    for kind, row in KINDS.items():
        if kind == "cpu" or row.is_for_tests or len(row.hardware) == 1:  # `openvino` names the hardware that it finds
            continue
        title = f"{row.title} (--device {kind})"
        if missing := find_package_fault(kind):
            yield MISSING, tr("{title}: {reason}; to install it:", title=title, reason=missing.reason)
            yield MISSING, f"    {missing.remedy}"
        elif row.uses_cuda and fault is not None:
            yield OK, tr("{title} is installed; a test needs a GPU", title=title)
        elif missing := find_gpu_fault(kind):
            yield MISSING, tr("{title}: {reason}; to mend it:", title=title, reason=missing.reason)
            yield MISSING, f"    {missing.remedy}"
        else:
            reason = _try(Device(kind))
            if reason is None:
                yield OK, tr("{title} works", title=title)
            else:
                yield MISSING, tr("{title} does not work: {reason}", title=title, reason=reason)
    binding = "pycuda" if has_pycuda() else tr("yomi's own binding of NVIDIA's driver")
    yield OK, tr("TensorRT uses {binding}", binding=binding)


def _try(device: Device) -> str | None:
    """Compute a small network on a device, in float16 if possible, with inputs like those in games.

    Return None if the outputs match the processor's, otherwise the fault in one line.
    """
    try:
        import numpy as np

        from yomi.engine.evaluators.backends import open_engine
        from yomi.engine.evaluators.devices import expect_packages

        expect_packages(Path("the network that is tried"), device)
        from yomi.engine.evaluators.onnx_session import make_session
        from yomi.nets.dlshogi.random_network import write_network
        from yomi.nets.gpu_variants import Variant, variant_file

        outputs = ["output_policy", "output_value"]
        packed = ("input1", "input2") if device.row.takes_bits else ()
        variant = Variant(half=device.gpu.has_half, packed=packed, constant=packed[1:])
        random = np.random.default_rng(0)
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            path = write_network(Path(folder) / "doctor.onnx", 1, 32)
            engine = open_engine(path, device, TRIAL_ROWS, outputs, variant)
            stack.callback(engine.close)
            for array in engine.inputs.values():
                array[...] = random.integers(0, 256 if packed else 2, array.shape)
            wanted = make_session(variant_file(path, variant)).run(outputs, dict(engine.inputs))
            results = zip(outputs, engine.run(TRIAL_ROWS), wanted, strict=True)
            wrong = [name for name, a, b in results if not np.allclose(a, b, rtol=0.05, atol=0.05)]
            return f"its {' and '.join(wrong)} differ from the processor's" if wrong else None
    except Exception as error:  # of the packages', the driver's or our own kinds: the next way may work
        return next(iter(str(error).splitlines()), type(error).__name__)


def _smi_lines() -> dict[str, str]:
    """Return nvidia-smi's description of each GPU by uuid; empty if nvidia-smi is not installed."""
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
