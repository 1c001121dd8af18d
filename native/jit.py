"""The decorators of kernels, and the cache of compiled code."""

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
from numba.extending import intrinsic

from yomi.native.cache_folder import cache_directory, locked, make_folder, require_private
from yomi.native.debug_kernels import plain_kernel
from yomi.native.levels import features_of, level_in_use, packaged_kernels, processor_of
from yomi.native.quick_numba import Compiler, quick_numba

# numba's own file cache misses an edit in a kernel that a cached kernel calls, and a changed bounds-check flag. So a
# cache folder is named after a hash of all sources that its kernels may contain, the flags, the versions of Python and
# numba, and the processor's features. Each package of kernels has its own folder: an edit in one game leaves the other
# game's kernels valid.

P = ParamSpec("P")
R = TypeVar("R")

SOURCE_ROOT = Path(__file__).resolve().parent
# Packages whose kernels contain kernels of other packages. `others` stands for files outside native.
CONTAINS = {
    "datasets": ("go", "shogi", "sparse", "forward"),
    "sparse": ("shogi", "forward"),
    "alphabeta": ("shogi", "forward"),
    "others": ("alphabeta", "datasets", "forward", "go", "shogi", "sparse", "tree"),
}
# Sources of the layout of a batch. Evaluators load batches by address (yomi.native.bound_kernels), so no signature
# shows a change.
BATCHES = ("tree/arrays.py", "tree/buffers.py")
# Files that compiled kernels do not depend on.
WITHOUT_KERNELS = ("cache_folder.py", "debug_kernels.py", "kernel_groups.py", "levels.py", "precompile.py")
# Environment variables that change compiled kernels, besides the processor's.
FLAGS = ("NUMBA_BOUNDSCHECK", "NUMBA_OPT", "YOMI_CHECKED")
# Whether kernels check the tree during a search (YOMI_CHECKED=1).
CHECKED = os.environ.get("YOMI_CHECKED", "0") not in ("", "0")


CACHE_DIRECTORY = cache_directory()


def _choose_level() -> str | None:
    level = level_in_use(CHOICE)
    if level is not None:
        settings: Any = config
        settings.CPU_NAME, settings.CPU_FEATURES = processor_of(level), features_of(level)
    return level


@functools.cache
def kernel_key(package: str) -> str:
    """Return a short hash of `kernel_facts`."""
    return hashlib.sha256(json.dumps(kernel_facts(package)).encode()).hexdigest()[:16]


def kernel_facts(package: str) -> dict[str, str]:
    """Return everything that the compiled kernels of a package of native depend on."""
    sources = hashlib.sha256()
    parts = ("*.py", *BATCHES, *(f"{name}/*.py" for name in (package, *CONTAINS.get(package, ()))))
    for path in sorted({path for part in parts for path in SOURCE_ROOT.glob(part)}):
        if path.name not in WITHOUT_KERNELS and path.parent.name != "cuda":
            sources.update(path.read_bytes())
    settings = {name: os.environ.get(name, "") for name in FLAGS}
    # Without Python's patch release: numba's files depend on the minor version only.
    return {
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "numba": numba.__version__,
        "processor": _processor(),
        "settings": " ".join(f"{name}={value}" for name, value in settings.items() if value),
        "sources": sources.hexdigest()[:16],
    }


def _processor() -> str:
    name, features = getattr(config, "CPU_NAME", None), getattr(config, "CPU_FEATURES", None)
    features = codegen.get_host_cpu_features() if features is None else features
    used = ",".join(feature for feature in features.split(",") if not feature.startswith("-"))
    return f"{name or llvm.get_host_cpu_name()} {llvm.get_process_triple()} {used}"


# File that exists once kernels for this exact processor are compiled beside packaged ones.
CHOICE = CACHE_DIRECTORY / f"faster-kernels-{kernel_facts('others')['sources']}"
# Processor level that kernels are compiled for; None for this exact processor.
LEVEL = _choose_level()
# Folder of kernels for this level that came with yomi, or None.
PACKAGED = packaged_kernels(LEVEL)
# Errors that kept compiled kernels out of the cache. Such kernels serve this process only.
UNSAVED: list[str] = []
# Whether kernels run as plain Python (NUMBA_DISABLE_JIT=1).
IS_PLAIN = bool(getattr(config, "DISABLE_JIT", 0))
# Attribute of a function that is cached here: the file whose kernels it is stored with.
_HOME = "kernel_home"
# Files with kernels outside this package -> hash of their sources.
_OUTSIDE: dict[Path, str] = {}


def mark_kernel(function: Any, home: Path | None = None) -> None:
    """Cache a function's compiled code here, beside the kernels of the file `home` (default: its own file)."""
    if home is not None or not hasattr(function, _HOME):
        setattr(function, _HOME, home or Path(function.__code__.co_filename).resolve())


def _outside_key(function: Any, file: Path) -> str:
    """Return a hash of a file outside this package, of the files whose kernels it uses, and of this package."""
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
    folder = CACHE_DIRECTORY / name
    if folder.exists():
        require_private(folder)
    return folder


class _KernelLocator(_CacheLocator):
    """Finds the cache folder of a kernel by the kernel's place in this package, wherever it is installed."""

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


# numba's locators use absolute path and modification time: a second installation would compile everything again,
# and kernels of other files, such as tests, would stay valid when a kernel here changes.
CacheImpl._locator_classes.insert(0, _KernelLocator)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` without the GIL, cached on disk. Integer division by zero yields 0.

    The function may not allocate arrays.
    """
    # Arrays are borrowed from the caller: counting references takes a quarter of the tree's time.
    return _compiled(function, allocates=False)


def allocating_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` like `kernel`, but with reference counts, so that it may allocate arrays."""
    return _compiled(function, allocates=True)


def _compiled(function: Callable[P, R], *, allocates: bool, inline: bool = False) -> Callable[P, R]:
    if IS_PLAIN:
        return cast(Callable[P, R], plain_kernel(function))
    mark_kernel(function)
    # no_cfunc_wrapper: a tenth less to compile, and nothing calls kernels from C.
    decorate: Any = numba.njit
    options: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options["pipeline_class"] = Compiler
    compiled = decorate(**options, forceinline=inline, _nrt=allocates)(function)
    if compiled._cache.cache_path is not None:  # tests.typecheck has no cache and compiles nothing
        compiled.compile = _by_parts(compiled, compiled.compile)
    compiled.compile = _widening(compiled.compile)
    keep_compiled(compiled._cache)
    return cast(Callable[P, R], compiled)


def keep_compiled(cache: Any) -> None:
    """Make a numba cache write under a lock, and look for kernels that came with yomi."""
    if cache.cache_path is not None:  # tests.typecheck has no cache
        _forget_other_versions(cache._cache_file)
        cache.save_overload = _saving(cache)
        if PACKAGED is not None:
            _look_in_package(cache, PACKAGED)


def _forget_other_versions(file: Any) -> None:
    """Read an index of kernels as empty if it names types that this version of yomi lacks: another version wrote it."""
    load = file._load_index

    def load_index() -> Any:
        try:
            return load()
        except (ImportError, AttributeError):
            return {}

    file._load_index = load_index


def _look_in_package(cache: Any, folder: Path) -> None:
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
    """Code of a kernel that is only used inside other kernels: neither optimized nor translated to machine code."""

    _shared_module: Any

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        # numba makes a copy for this: it also runs the code.
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module


_compiling = threading.local()  # `depth`: number of nested compilations in this thread


@contextlib.contextmanager
def compiling() -> Iterator[bool]:
    """Mark that this thread compiles a kernel. Yield whether it does so on behalf of another kernel."""
    depth = getattr(_compiling, "depth", 0)
    _compiling.depth = depth + 1
    # Python's garbage collector waits for the outermost compilation: it would take an eighth of the time.
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
    """Make a dispatcher compile only the form that its caller needs: a part of another kernel, or machine code."""
    # LLVM optimizes a kernel again inside every kernel that contains it. A part is therefore left unoptimized unless
    # the cache has it. If Python calls it later, it is compiled completely.
    parts: set[Any] = set()

    def compile_part(arguments: Any) -> Any:
        compiler = dispatcher._compiler
        customize, compiler._customize_flags = compiler._customize_flags, _without_machine_code
        try:
            with dispatcher._compiling_counter:  # numba detects recursion by it
                result = compiler.compile(arguments, None)
        finally:
            compiler._customize_flags = customize
        result.library.__class__ = _PartLibrary
        result = result._replace(entry_point=object())  # callers find the code by it
        dispatcher.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        dispatcher.overloads[arguments] = result
        parts.add(arguments)
        return result.entry_point

    def compile_by_parts(arguments: Any) -> Any:
        with compiling() as is_part, quick_numba():
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
    """Return whether the cache has a kernel's machine code for these argument types."""
    cache = dispatcher._cache
    key = cache._index_key(arguments, dispatcher.targetctx.codegen())
    return key in cache._cache_file._load_index()


def _saving(cache: Any) -> Callable[[Any, Any], None]:
    # numba reads and writes the index without a lock: of two processes one would lose its entry, or the index would
    # name the other's code. A full disk costs only time.
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


def _widening(compile_for: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a dispatcher treat narrow integers as int64, so that it compiles one form of a kernel for all of them."""
    # Points are uint16 on a board, uint64 as an index and int64 in arithmetic. Every mixture would be compiled, 0.3 s
    # each.
    narrow = {types.uint8, types.uint16, types.uint32, types.int8, types.int16, types.int32}

    def compile_widened(signature: Any) -> Any:
        arguments, _ = sigutils.normalize_signature(signature)
        plain = [types.unliteral(argument) for argument in arguments]
        return compile_for(tuple(types.int64 if argument in narrow else argument for argument in plain))

    return compile_widened


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` like `kernel`, and inline it in each kernel that calls it."""
    # It may not call a kernel that calls it; use `inlined_early` for such pairs.
    return _compiled(function, allocates=False, inline=True)


def inlined_early(function: Callable[P, R]) -> Callable[P, R]:
    """Inline `function` in its callers before types are inferred, so that it may take field names."""
    # Slower to compile than `inlined`.
    if IS_PLAIN:
        return cast(Callable[P, R], plain_kernel(function))
    compiled: Callable[P, R] = numba.njit(nogil=True, error_model="numpy", inline="always")(function)
    return compiled


def machine_code(plainly: Callable[..., Any]) -> Callable[[Any], Any]:
    """Make a function a numba intrinsic; `plainly` replaces it in plain Python.

    Constants are passed by value (types.Literal) if numba knows them.
    """
    return lambda function: plainly if IS_PLAIN else intrinsic(prefer_literal=True)(function)
