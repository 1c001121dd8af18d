"""Levels of x86-64 processors, and the compiled kernels for them in a wheel.

A wheel may contain native/compiled/LEVEL, made by `python -m tests.build_kernels`. YOMI_KERNELS=native or
YOMI_KERNELS=LEVEL overrides the choice of kernels.
"""

import json
import os
import platform
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numba

import yomi
from yomi.errors import CompileError
from yomi.native.cache_folder import FACTS, require_private

# The first start uses the wheel's kernels. It compiles kernels for the exact processor in the background, and later
# starts use those.
# yomi.native.jit calls `level_in_use` when it is imported, before numba compiles anything.

_V3 = "cx16,sahf,popcnt,sse3,sse4.1,sse4.2,ssse3,avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,xsave"
_V4 = f"{_V3},avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
# Level -> its features, by LLVM's names.
LEVELS = {  # best first
    "x86-64-v4-bf16": f"{_V4},avx512vnni,avx512bf16",  # AMD since Zen 4, Intel's servers since Sapphire Rapids
    "x86-64-v4": _V4,
    "x86-64-v3": _V3,
}
NATIVE = "native"
SETTING = "YOMI_KERNELS"
# Folder that contains the package yomi; working directory of processes that import yomi.native.
ROOT = Path(yomi.__file__).resolve().parents[1]
# Folder of the levels' kernels. A checkout has none.
COMPILED = Path(__file__).resolve().parent / "compiled"


def features_of(level: str) -> str:
    """Return the features of a level in the form of numba's setting."""
    return ",".join(f"+{feature}" for feature in LEVELS[level].split(","))


def processor_of(level: str) -> str:
    """Return the name of the processor for which LLVM tunes the kernels of a level."""
    return level.removesuffix("-bf16")


def lacking_features(level: str) -> str:
    """Return the features of a level that this processor lacks, separated by commas."""
    has = llvm.get_host_cpu_features()
    return ", ".join(name for name in LEVELS[level].split(",") if not has.get(name))


def level_in_use(native_mark: Path) -> str | None:
    """Return the level whose packaged kernels this process uses, or None if its kernels are for this exact processor.

    Args:
        native_mark: file that exists once the kernels for this exact processor are compiled.
    """
    setting = os.environ.get(SETTING, "")
    if setting in LEVELS:
        if lacking := lacking_features(setting):
            raise CompileError(
                f"found {SETTING}={setting}, expected a level without {lacking}, which this processor lacks"
            )
        return setting
    if setting not in ("", NATIVE):
        raise CompileError(f"found {SETTING}={setting}, expected {NATIVE} or {' or '.join(LEVELS)}")
    if setting == NATIVE or os.environ.get("NUMBA_CPU_NAME") or os.environ.get("NUMBA_CPU_FEATURES"):
        return None
    if not COMPILED.exists() or platform.machine() not in ("x86_64", "AMD64") or native_mark.exists():
        return None
    fitting = (level for level in LEVELS if not lacking_features(level))
    return next((level for level in fitting if packaged_kernels(level) is not None), None)


def packaged_kernels(level: str | None) -> Path | None:
    """Return the folder of the installed kernels for a level and this numba and Python, or None.

    Raises:
        CompileError: other users can write to the folder.
    """
    folder = COMPILED / str(level)
    if level is None or not folder.is_dir():
        return None
    require_private(COMPILED)
    require_private(folder)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    return folder if facts == {"python": sys.implementation.cache_tag, "numba": numba.__version__} else None
