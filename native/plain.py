"""Kernels as plain Python, for debuggers: what NUMBA_DISABLE_JIT=1 makes of them. Some 1,000 times as slow.

numpy's own scalars are not numba's: records have no attributes, integers of 8 bits wrap around, int64 and uint64 become
floats. Here, a kernel sees its arguments and its module's constants through `Array` and `Record`: all integers but
uint64 are Python's, are wrapped around where they are written, and numpy's names for them (np.int64, ...) cut them off.
What computes float32 may differ in the last bit. The forward pass writes machine code itself and has no plain form.
"""

import functools
import threading
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np


class Array(np.ndarray[Any, np.dtype[Any]]):
    """An array whose elements are read as numba reads them."""

    def __getitem__(self, index: Any) -> Any:
        """Return an element, or a part."""
        return plain(super().__getitem__(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write an element, cut off to its bits, or a part."""
        super().__setitem__(index, _fitting(value, self.dtype))


class Record:
    """A record of a structured array, with its fields as attributes."""

    __slots__ = ("void",)
    void: np.void

    def __init__(self, void: np.void) -> None:
        """Take numpy's record, which leads to its array's memory."""
        object.__setattr__(self, "void", void)

    def __getattr__(self, name: str) -> Any:
        """Return a field."""
        try:
            return plain(self.void[name])
        except ValueError:
            raise AttributeError(f"no field {name} in {self.void.dtype.names}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        """Write a field."""
        assert self.void.dtype.fields is not None
        self.void[name] = _fitting(value, self.void.dtype.fields[name][0])

    def assign(self, other: "Record") -> None:
        """Make all fields equal to those of a record of the same type."""
        for name in self.void.dtype.names or ():
            self.void[name] = other.void[name]

    __getitem__ = __getattr__
    __setitem__ = __setattr__


class _Integer:
    """numpy's name of an integer type, which makes Python's integers of that many bits."""

    def __init__(self, kind: Any) -> None:
        self.dtype = np.dtype(kind)  # np.zeros takes what has one

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
_running = threading.local()


def _fitting(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return what is to be written for a value: an integer cut off to the bits of a type, a record's own bytes."""
    if isinstance(value, Record):
        return value.void
    if dtype.kind not in "iu" or not np.isscalar(value):
        return value
    bits = 8 * dtype.itemsize
    number = int(cast(Any, value)) & ((1 << bits) - 1)
    return number - (1 << bits) if dtype.kind == "i" and number >> (bits - 1) else number


def plain(value: Any) -> Any:
    """Return a value as a kernel sees it."""
    if isinstance(value, Array | Record):
        return value
    if isinstance(value, np.ndarray):
        return value.view(Array)
    if isinstance(value, np.void):
        return Record(value)
    if isinstance(value, np.integer):
        return value if isinstance(value, np.uint64) else int(value)
    if isinstance(value, tuple):
        parts = [plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is np:
        return _NUMPY
    if value is np.uint64:
        return _unsigned
    return value


def plain_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that runs as Python; a debugger steps through its own lines."""
    made: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        if not made:  # at the first call, when all of the module is there
            names = {name: plain(value) for name, value in function.__globals__.items()}
            # numba's float is 64 bits wide, next to which Python's gives way to numpy's 32.
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
