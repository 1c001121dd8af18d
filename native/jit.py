"""The one decorator that every kernel wears, and where the compiled code is kept.

numba's file cache does not notice an edit in a kernel that is *called from* the cached one and ignores a changed
bounds-check flag when warm, so a cache directory is named after a hash of all sources that its kernels may be made of,
the flags, the versions of Python and numba, and the processor's features. Every package of kernels has a directory of
its own: an edit in one game leaves the other's kernels alone.
"""

import contextlib
import functools
import gc
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import llvmlite.binding as llvm
import numba
from numba.core import codegen, config, sigutils, types
from numba.core.caching import CacheImpl, IndexDataCacheFile, _CacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic

from yomi.native.cache_folder import cache_directory, locked, make_folder, require_private
from yomi.native.levels import features_of, level_in_use, packaged_kernels, processor_of
from yomi.native.plain import plain_kernel

P = ParamSpec("P")
R = TypeVar("R")

SOURCE_ROOT = Path(__file__).resolve().parent
CONTAINS = {"datasets": ("go", "shogi"), "sparse": ("shogi",), "others": ("datasets", "go", "shogi", "tree")}
"""Packages whose kernels contain those of other packages. `others` are the files outside native."""
BATCHES = ("tree/arrays.py", "tree/buffers.py")
"""What says how a batch lies in memory: evaluators load it by address (yomi.native.calls), which no signature tells."""
WITHOUT_KERNELS = (
    *("warmup.py", "kernel_groups.py", "build_kernels.py", "levels.py", "speed.py", "typecheck.py", "plain.py"),
    *("cache_folder.py", "compile_progress.py", "inventory.py"),
)
"""Files that compiled kernels do not depend on."""
FLAGS = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "YOMI_CHECKED")
"""Environment variables that kernels are compiled by, besides those that decide the processor's features."""
CHECKED = os.environ.get("YOMI_CHECKED", "0") not in ("", "0")
"""Whether kernels check the tree while they search it (YOMI_CHECKED=1): see yomi.native.tree.search."""


CACHE_DIRECTORY = cache_directory()


def _choose_level() -> str | None:
    """Let numba compile for the level of processors in use, if it is one; return the level."""
    level = level_in_use(CHOICE)
    if level is not None:
        settings: Any = config
        settings.CPU_NAME, settings.CPU_FEATURES = processor_of(level), features_of(level)
    return level


@functools.cache
def kernel_key(package: str) -> str:
    """Return a short hash of everything that the compiled kernels of a package of native depend on."""
    return hashlib.sha256(json.dumps(kernel_facts(package)).encode()).hexdigest()[:16]


def kernel_facts(package: str) -> dict[str, str]:
    """Return everything that the compiled kernels of a package of native depend on.

    The processor's facts are those that numba compiles for: LLVM's name of it and the features in use.
    Python's patch release is left out, since numba's files depend on the minor version only.
    """
    sources = hashlib.sha256()
    parts = ("*.py", *BATCHES, *(f"{name}/*.py" for name in (package, *CONTAINS.get(package, ()))))
    for path in sorted({path for part in parts for path in SOURCE_ROOT.glob(part)}):
        if path.name not in WITHOUT_KERNELS and path.parent.name != "cuda":
            sources.update(path.read_bytes())
    settings = {name: os.environ.get(name, "") for name in FLAGS}
    return {
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "numba": numba.__version__,
        "processor": _processor(),
        "settings": " ".join(f"{name}={value}" for name, value in settings.items() if value),
        "sources": sources.hexdigest()[:16],
    }


def _processor() -> str:
    """Return the processor's name and features by which numba compiles, as in the keys of its own files."""
    name, features = getattr(config, "CPU_NAME", None), getattr(config, "CPU_FEATURES", None)
    features = codegen.get_host_cpu_features() if features is None else features
    used = ",".join(feature for feature in features.split(",") if not feature.startswith("-"))
    return f"{name or llvm.get_host_cpu_name()} {llvm.get_process_triple()} {used}"


CHOICE = CACHE_DIRECTORY / f"faster-kernels-{kernel_facts('others')['sources']}"
"""File that contains `native` or a level, once native kernels of these sources were compared with those of a level."""
LEVEL = _choose_level()
"""Level of processors that kernels are compiled for; None for this very processor."""
PACKAGED = packaged_kernels(LEVEL)
"""Folder with kernels of this level that came with yomi."""
UNSAVED: list[str] = []
"""What kept compiled kernels out of the cache, in words: they serve this process only."""
IS_PLAIN = bool(getattr(config, "DISABLE_JIT", 0))
"""Whether kernels run as plain Python: NUMBA_DISABLE_JIT=1."""
_HOME = "kernel_home"
"""Attribute of functions whose compiled code is kept here: the file that it is kept with."""
_OUTSIDE: dict[Path, str] = {}
"""Files outside this package that have kernels -> hash of all that these are compiled from."""
_GAMES: dict[str, set[Path]] = {}
"""Names of the record types of games outside this package -> files of the kernels that the tree's contain then."""


def mark_kernel(function: Any, home: Path | None = None) -> None:
    """Keep the compiled code of a function in this cache, beside that of the kernels of the file `home` if given."""
    if home is not None or not hasattr(function, _HOME):
        setattr(function, _HOME, home or Path(function.__code__.co_filename).resolve())


def note_game(record: Any, kernel: Any) -> None:
    """Remember that kernels for positions of a type contain `kernel`, which may stand outside this package."""
    file = Path(kernel.py_func.__code__.co_filename).resolve()
    if file in _OUTSIDE:
        _GAMES.setdefault(str(record), set()).add(file)


def _outside_key(function: Any, file: Path) -> str:
    """Return a hash of a file outside this package, of the files that it has kernels of, and of this package."""
    if file not in _OUTSIDE:
        values = function.__globals__.values()
        names = {str(getattr(value, "__module__", None) or getattr(value, "__name__", "")) for value in values}
        files = {Path(getattr(sys.modules.get(name), "__file__", None) or "").resolve() for name in names}
        digest = hashlib.sha256(f"{kernel_key('others')} {file}".encode() + file.read_bytes())
        for other in sorted(files & _OUTSIDE.keys()):
            digest.update(_OUTSIDE[other].encode())
        _OUTSIDE[file] = digest.hexdigest()[:16]
    return _OUTSIDE[file]


@functools.cache
def _private_folder(name: str) -> Path:
    """Return the folder of a name in the cache; if it exists, only this user may write to it."""
    folder = CACHE_DIRECTORY / name
    if folder.exists():
        require_private(folder)
    return folder


class _KernelLocator(_CacheLocator):
    """Keeps kernels by their place in this package, wherever and whenever it was installed.

    numba's own locators go by absolute path and modification time: a second installation would compile all again, and
    kernels of other files (those of tests, say) would keep what they were made of when a kernel here has changed.
    """

    def __init__(self, function: Any, file: Path) -> None:
        if file.is_relative_to(SOURCE_ROOT):
            name = self._package = file.relative_to(SOURCE_ROOT).parent.name or "bits"
            self._key = kernel_key(name)
        else:
            name = self._package = "others"
            self._key = _outside_key(function, file)
        self._folder = _private_folder(f"{name}-{self._key}")
        self._line = function.__code__.co_firstlineno

    def ensure_cache_path(self) -> None:
        make_folder(self._folder, kernel_facts(self._package))

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._key

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_KernelLocator | None":
        path = getattr(function, _HOME, None) or Path(file).resolve()
        is_ours = path.is_relative_to(SOURCE_ROOT) or hasattr(function, _HOME)
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


def _compiled(function: Callable[P, R], *, allocates: bool, inline: bool = False) -> Callable[P, R]:
    if IS_PLAIN:
        return cast(Callable[P, R], plain_kernel(function))
    mark_kernel(function)
    # no_cfunc_wrapper: a tenth less to compile, and nobody calls kernels from C.
    decorate: Any = numba.njit
    options = {"nogil": True, "cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled = decorate(**options, forceinline=inline, _nrt=allocates)(function)
    if compiled._cache.cache_path is not None:  # yomi.native.typecheck keeps nothing, and compiles nothing
        compiled.compile = _by_parts(compiled, compiled.compile)
    compiled.compile = _widening(compiled.compile)
    keep_compiled(compiled._cache)
    return cast(Callable[P, R], compiled)


def keep_compiled(cache: Any) -> None:
    """Make one of numba's caches write alone, and distinguish games outside this package."""
    if cache.cache_path is not None:  # yomi.native.typecheck keeps nothing
        cache.save_overload = _saving(cache)
        cache._index_key = _telling_games(cache._index_key)
        if PACKAGED is not None:
            _look_in_package(cache, PACKAGED)


def _look_in_package(cache: Any, folder: Path) -> None:
    """Make a cache read what it lacks from a folder of compiled kernels that came with yomi."""
    own, place = cache._cache_file, cache._impl.locator
    path = folder / Path(cache.cache_path).name
    packaged = IndexDataCacheFile(str(path), cache._impl.filename_base, place.get_source_stamp())
    load_own = own.load

    def load(key: Any) -> Any:
        found = load_own(key)
        return packaged.load(key) if found is None else found

    own.load = load


_JITCodeLibrary: Any = codegen.JITCodeLibrary


class _PartLibrary(_JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that others contain: neither optimized nor turned into machine code by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


_compiling = threading.local()
"""Has `depth`: how many kernels this thread is compiling, each for the one before."""


@contextlib.contextmanager
def compiling() -> Iterator[bool]:
    """Enter the compilation of a kernel; the value says whether another kernel waits for it.

    Python's garbage collection waits for the outermost one: it takes an eighth of the time and finds little.
    """
    depth = getattr(_compiling, "depth", 0)
    _compiling.depth = depth + 1
    collects = depth == 0 and gc.isenabled()
    if collects:
        gc.disable()
    try:
        yield depth > 0
    finally:
        _compiling.depth = depth
        if collects:
            gc.enable()


def _by_parts(dispatcher: Any, compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a dispatcher compile only what its caller needs.

    LLVM optimizes a kernel again in every kernel that contains it. A kernel that is compiled for another is therefore
    left as it is, unless the cache has it: optimizing and machine code take place once, in the outermost kernel. If
    Python calls the kernel later, it is compiled for that.
    """
    parts: set[Any] = set()

    def compile_part(arguments: Any) -> Any:
        compiler = dispatcher._compiler
        customize, compiler._customize_flags = compiler._customize_flags, _without_machine_code
        try:
            with dispatcher._compiling_counter:  # by which numba recognizes recursion
                result = compiler.compile(arguments, None)
        finally:
            compiler._customize_flags = customize
        result.library.__class__ = _PartLibrary
        result = result._replace(entry_point=object())  # by which callers find the code
        dispatcher.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        dispatcher.overloads[arguments] = result
        parts.add(arguments)
        return result.entry_point

    def compile_by_parts(arguments: Any) -> Any:
        with compiling() as is_part, global_compiler_lock:
            if is_part:
                if arguments in dispatcher.overloads:
                    return dispatcher.overloads[arguments].entry_point
                if not _is_cached(dispatcher, arguments):
                    return compile_part(arguments)
            elif arguments in parts:
                parts.discard(arguments)
                del dispatcher.overloads[arguments]
            return compile_for(arguments)

    return compile_by_parts


def _without_machine_code(flags: Any) -> Any:
    flags.no_compile = flags.no_cpython_wrapper = True
    return flags


def _is_cached(dispatcher: Any, arguments: Any) -> bool:
    """Whether the cache has a kernel's machine code for these types of arguments."""
    cache = dispatcher._cache
    key = cache._index_key(arguments, dispatcher.targetctx.codegen())
    return key in cache._cache_file._load_index()


def _saving(cache: Any) -> Callable[[Any, Any], None]:
    """Return what writes a compiled form of a kernel into its cache, one process at a time.

    numba reads the index, adds an entry and writes index and code without a lock: of two processes that do so at once
    one loses its entry, or the index names the other's code. A full disk is noted and otherwise costs nothing but time.
    """
    save = cache.save_overload

    def save_alone(signature: Any, data: Any) -> None:
        folder = Path(cache.cache_path)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(folder / "lock"):
                save(signature, data)
        except OSError as error:
            fault = f"{folder}: {error.strerror or error}"
            if not UNSAVED:
                print(f"yomi: compiled kernels cannot be kept: {fault}", file=sys.stderr)
            UNSAVED.append(fault)

    return save_alone


def _telling_games(key_of: Callable[[Any, Any], tuple[Any, ...]]) -> Callable[[Any, Any], tuple[Any, ...]]:
    """Make the keys of a kernel's compiled forms tell what games outside this package are compiled from.

    The folder's name tells it of this package only: the tree's kernels contain those of the games.
    """

    def key(signature: Any, codegen: Any) -> tuple[Any, ...]:
        text = " ".join(map(str, sigutils.normalize_signature(signature)[0])) if _GAMES else ""
        files = {file for record, files in _GAMES.items() if record in text for file in files}
        return (*key_of(signature, codegen), *(_OUTSIDE[file] for file in sorted(files)))

    return key


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
    """Compile `function` as `kernel` does, and make it a part of each kernel that calls it.

    It may not call a kernel that calls it: such a pair needs `inlined_early`.
    """
    return _compiled(function, allocates=False, inline=True)


def inlined_early(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` a part of each kernel that calls it before types are inferred, so that it may take field names.

    This takes longer to compile than `inlined`.
    """
    if IS_PLAIN:
        return cast(Callable[P, R], plain_kernel(function))
    compiled: Callable[P, R] = numba.njit(nogil=True, error_model="numpy", inline="always")(function)
    return compiled


def machine_code(plainly: Callable[..., Any]) -> Callable[[Any], Any]:
    """Make a function one of numba's intrinsics; `plainly` does the same where kernels run as plain Python.

    The function is told constants by their values (types.Literal), as far as numba knows them.
    """
    return lambda function: plainly if IS_PLAIN else intrinsic(prefer_literal=True)(function)
