"""The one decorator that every kernel wears, and where the compiled code is kept.

numba's file cache does not notice an edit in a kernel that is *called from* the cached one and ignores a changed
bounds-check flag when warm, so a cache directory is named after a hash of all sources that its kernels may be made of,
the flags, the Python and numba versions and the processor. Every package of kernels has a directory of its own: an edit
in one game leaves the other's kernels alone.
"""

import functools
import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import sigutils, types
from numba.core.caching import CacheImpl, _CacheLocator

P = ParamSpec("P")
R = TypeVar("R")

SOURCE_ROOT = Path(__file__).resolve().parent
COMBINING = ("tree", "datasets")
"""Packages whose kernels contain those of the games."""
BATCHES = ("tree/arrays.py", "tree/buffers.py")
"""What says how a batch lies in memory: evaluators load it by address (native.calls), which no signature tells."""
FLAGS = ("NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
"""Environment variables that kernels are compiled by."""


@functools.cache
def kernel_key(package: str) -> str:
    """Return a short hash of everything that the compiled kernels of a package of native depend on."""
    digest = hashlib.sha256()
    parts = ("*.py", "*/*.py") if package in COMBINING else ("*.py", *BATCHES, f"{package}/*.py")
    for path in sorted({path for part in parts for path in SOURCE_ROOT.glob(part)}):
        if path.name != "warmup.py" and path.parent.name != "cuda":  # they have no kernels of numba's
            digest.update(path.read_bytes())
    flags = (os.environ.get(name, "") for name in FLAGS)
    for fact in (*flags, platform.python_version(), numba.__version__, _processor()):
        digest.update(f"{fact}\n".encode())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Return a writable directory for compiled kernels: the user's cache, or a temporary one where it is read-only.

    Its path is absolute, and it is the one of any process whose YOMI_CACHE_DIR is its parent.
    """
    base = os.environ.get("YOMI_CACHE_DIR")
    home = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yomi"
    directory = home.absolute() / "kernels"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError as error:
        print(f"yomi: cannot write {directory} ({error.strerror}): using a temporary folder", file=sys.stderr)
        directory = _temporary_directory() / "kernels"
        directory.mkdir(exist_ok=True)
        return directory


def _temporary_directory() -> Path:
    """Return a folder that only this user can write: compiled code must not be read from anywhere else."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"yomi-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and (folder.is_symlink() or folder.stat().st_uid != user):
        raise RuntimeError(f"{folder} belongs to another user: expected YOMI_CACHE_DIR to name a folder to write to")
    return folder


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line
    except OSError:
        pass
    return platform.processor() or platform.machine()


CACHE_DIRECTORY = cache_directory()
_MARK = "is_kernel"
"""Attribute of the kernels of other files, whose compiled code is kept there as well."""


class _KernelLocator(_CacheLocator):
    """Keeps kernels by their place in this package, wherever and whenever it was installed.

    numba's own locators go by absolute path and modification time: a second installation would compile all again, and
    kernels of other files (those of tests, say) would keep what they were made of when a kernel here has changed.
    """

    def __init__(self, function: Any, file: Path) -> None:
        if file.is_relative_to(SOURCE_ROOT):
            name = file.relative_to(SOURCE_ROOT).parent.name or "bits"
            self._key = kernel_key(name)
        else:
            name = "others"
            own = hashlib.sha256(str(file).encode() + file.read_bytes()).hexdigest()
            self._key = hashlib.sha256(f"{kernel_key(COMBINING[0])} {own}".encode()).hexdigest()[:16]
        self._folder = CACHE_DIRECTORY / f"{name}-{self._key}"
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._key

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_KernelLocator | None":
        path = Path(file).resolve()
        is_ours = path.is_relative_to(SOURCE_ROOT) or getattr(function, _MARK, False)
        return cls(function, path) if is_ours else None


CacheImpl._locator_classes.insert(0, _KernelLocator)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` without the GIL, cached on disk; integer division by zero yields 0 instead of raising.

    It may not allocate: arrays are borrowed from the caller and their references not counted, which costs a quarter of
    the tree's time otherwise, in atomic additions.
    """
    return _compiled(function, allocates=False)


def allocating_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` as `kernel` does, with arrays of its own."""
    return _compiled(function, allocates=True)


def _compiled(function: Callable[P, R], *, allocates: bool) -> Callable[P, R]:
    setattr(function, _MARK, True)
    # no_cfunc_wrapper: a tenth less to compile, and nobody calls kernels from C.
    decorate: Any = numba.njit
    compiled = decorate(nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=allocates)(function)
    compiled.compile = _widening(compiled.compile)
    return cast(Callable[P, R], compiled)


def _widening(compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a dispatcher compile one form of a kernel for all narrow integers: they are widened to int64 on the way in.

    Points come as uint16 from a board, as uint64 from an index and as int64 from arithmetic; without this every mixture
    would be compiled, each in 0.3 s.
    """
    narrow = {types.uint8, types.uint16, types.uint32, types.int8, types.int16, types.int32}

    def compile_widened(signature: Any) -> Any:
        arguments, _ = sigutils.normalize_signature(signature)
        plain = [types.unliteral(argument) for argument in arguments]
        return compile_for(tuple(types.int64 if argument in narrow else argument for argument in plain))

    return compile_widened


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` a part of each kernel that calls it, with no compiled form of its own.

    LLVM optimises a kernel again in every kernel that calls it, so that a helper with one caller doubles the time to
    compile what stands in it. Such helpers wear this decorator.
    """
    compiled: Callable[P, R] = numba.njit(nogil=True, error_model="numpy", inline="always")(function)
    return compiled
