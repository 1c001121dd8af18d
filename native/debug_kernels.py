"""Kernels as plain Python for debuggers (NUMBA_DISABLE_JIT=1), about 1,000 times slower.

Results in float32 may differ in the last bit. The forward pass generates machine code and has no plain form.
"""

import functools
import threading
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

# numpy's scalars differ from numba's: records have no attributes, 8-bit integers wrap around, int64 and uint64 become
# floats. So kernels read arguments and constants through `Array` and `Record`. All integers except uint64 are Python's
# and wrap around when they are written; np.int64(...) and similar calls truncate.


class Array(np.ndarray[Any, np.dtype[Any]]):
    """An array whose elements are read as numba reads them."""

    def __getitem__(self, index: Any) -> Any:
        return plain(super().__getitem__(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, _fitting(value, self.dtype))


class Record:
    """A record of a structured array with its fields as attributes."""

    __slots__ = ("void",)
    void: np.void

    def __init__(self, void: np.void) -> None:
        object.__setattr__(self, "void", void)

    def __getattr__(self, name: str) -> Any:
        try:
            return plain(self.void[name])
        except ValueError:
            raise AttributeError(f"no field {name} in {self.void.dtype.names}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        assert self.void.dtype.fields is not None
        self.void[name] = _fitting(value, self.void.dtype.fields[name][0])

    def assign(self, other: "Record") -> None:
        for name in self.void.dtype.names or ():
            self.void[name] = other.void[name]

    __getitem__ = __getattr__
    __setitem__ = __setattr__


class _Integer:
    """An integer type of numpy that makes Python integers of the same number of bits."""

    def __init__(self, kind: Any) -> None:
        self.dtype = np.dtype(kind)  # np.zeros accepts objects with a dtype

    def __call__(self, value: Any = 0) -> Any:
        return _fitting(int(value), self.dtype)


def _unsigned(value: Any = 0) -> np.uint64:
    return np.uint64(int(value) & (2**64 - 1))


_INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
_NUMPY = types.SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
for _kind in _INTEGERS:
    setattr(_NUMPY, _kind.__name__, _Integer(_kind))
_NUMPY.uint64 = _unsigned
for _name in ("empty", "zeros", "ones", "full", "arange", "argsort"):
    setattr(_NUMPY, _name, functools.partial(lambda make, *arguments: plain(make(*arguments)), getattr(np, _name)))
_PLAIN = {Array, Record, int, float, bool, np.uint64, np.float32, np.float64}  # read as they are; most values
_running = threading.local()


def _fitting(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a value to the form in which it is stored: integers truncated to the type's bits, records as numpy's."""
    if dtype.kind not in "iu" or (type(value) is not int and not np.isscalar(value)):
        return value.void if isinstance(value, Record) else value
    bits = 8 * dtype.itemsize
    number = int(cast(Any, value)) & ((1 << bits) - 1)
    return number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number


def plain(value: Any) -> Any:
    """Convert a value to the form in which a kernel reads it."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray):
        return value.view(Array)
    if isinstance(value, np.void):
        return Record(value)
    if isinstance(value, np.integer):
        return value if isinstance(value, np.uint64) else int(value)
    if isinstance(value, tuple) and not _PLAIN.issuperset(map(type, value)):
        parts = [plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is np:
        return _NUMPY
    if value is np.uint64:
        return _unsigned
    return value


def plain_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel as a Python function; a debugger steps through its own lines."""
    made: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        if not made:  # at the first call, when the module is complete
            names = {name: plain(value) for name, value in function.__globals__.items()}
            # numba's float has 64 bits; mixed with float32, Python's would give 32 bits.
            names["float"] = np.float64
            made.append(types.FunctionType(function.__code__, names, function.__name__, None, function.__closure__))
        if getattr(_running, "is_set", False):
            return made[0](*map(plain, arguments))
        _running.is_set = True
        try:
            with np.errstate(all="ignore"):  # hashes overflow
                return made[0](*map(plain, arguments))
        finally:
            _running.is_set = False

    return run
