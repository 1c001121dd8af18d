"""Kernels bound to arguments and called by address: the tree calls a game and an evaluator in this way.

An entry is a C function of integers. The first is the address of the stored arguments (`store`).

- `entry`: one more integer, a row or a number of rows. `bind` returns `Calls`, which Python runs (`run`) and kernels
call (`call_all`). - `answering_entry`: two more integers, and an integer result. Kernels call it with `ask`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import event, sigutils
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

from yomi.native.bits import U
from yomi.native.debug_kernels import plain, plain_kernel
from yomi.native.jit import IS_PLAIN, compiling, keep_compiled, kernel, machine_code, mark_kernel
from yomi.native.quick_numba import Compiler, quick_numba

# A kernel that calls another by name contains its code: it must be compiled after it, and again for each variant. A
# call by address keeps the two apart.

# Maximum size of an entry's arguments in uint64 words. An array takes 5, plus 2 per dimension.
_WORDS = 512


# Functions and arguments for plain Python. An index replaces an address.
_PLAIN: list[Any] = []


def _add_plain(value: Any) -> int:
    _PLAIN.append(value)
    return len(_PLAIN) - 1


def _call_plainly(address: int, *integers: int) -> Any:
    return _PLAIN[address](*integers)


@machine_code(lambda address, kind: _PLAIN[address])
def load(typing_context: Any, address: Any, kind: Any) -> Any:
    """Return the arguments of numba type `kind` that `_store` put at an address. Arrays are borrowed."""
    loaded = kind.instance_type

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], context.get_value_type(loaded).as_pointer()))

    return loaded(address, kind), codegen


@intrinsic
def _store(typing_context: Any, address: Any, room: Any, value: Any) -> Any:
    """Store a value at an address with `room` bytes; return its size. The value is stored only if it fits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = ir.Constant(ir.IntType(64), context.get_abi_sizeof(args[2].type))
        with builder.if_then(builder.icmp_signed("<=", size, args[1])):
            builder.store(args[2], builder.inttoptr(args[0], args[2].type.as_pointer()))
        return size

    return types.int64(types.int64, types.int64, value), codegen


@machine_code(_call_plainly)
def _call(typing_context: Any, address: Any, arguments: Any, rows: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [integer, integer])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), codegen


@machine_code(_call_plainly)
def ask(typing_context: Any, address: Any, arguments: Any, first: Any, second: Any) -> Any:
    """Call the answering entry at an address with two integers; return its result."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        function = ir.FunctionType(integer, [integer, integer, integer])
        return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), codegen


@kernel
def _store_arguments(arguments, address, room):  # type: ignore[no-untyped-def]
    return _store(address, room, arguments)


@kernel
def call_all(calls, rows):  # type: ignore[no-untyped-def]
    """Call every entry of `Calls.table` for `rows` rows, in turn."""
    for i in range(U(calls.shape[0])):
        _call(calls[i, U(0)], calls[i, U(1)], rows)


@dataclass(frozen=True, eq=False)
class Calls:
    """A sequence of entries with their arguments. One thread at a time may run it."""

    table: npt.NDArray[np.int64]  # int64[calls, 2]: addresses of the entry and of its arguments
    kept: tuple[Any, ...]  # owners of the memory at these addresses

    def __add__(self, other: Calls) -> Calls:
        return Calls(np.concatenate((self.table, other.table)), (self, other))

    def run(self, rows: int) -> None:
        call_all(self.table, rows)


NO_CALLS = Calls(np.zeros((0, 2), np.int64), ())


@dataclass(frozen=True, eq=False)
class Stored:
    """Arguments of entries in memory. The memory is freed with this object."""

    address: int
    kept: tuple[Any, ...]


def store(kind: Any, *arguments: Any) -> Stored:
    """Put the arguments of entries into memory.

    Raises:
        TypeError: they differ from the type `kind`, a result of `types_of`, or are too large.
    """
    if (found := type_of(arguments)) is not kind and found != kind:
        raise TypeError(f"found arguments {found}, expected {kind}")
    if IS_PLAIN:
        return Stored(_add_plain(plain(arguments)), arguments)
    place = np.zeros(_WORDS, np.uint64)
    size = _store_arguments(arguments, place.ctypes.data, place.nbytes)
    if size > place.nbytes:
        raise TypeError(f"found arguments of {size} bytes, expected at most {place.nbytes}")
    return Stored(place.ctypes.data, (place, arguments))


ROWS_ENTRY = types.void(types.int64, types.int64)
ANSWERING_ENTRY = types.int64(types.int64, types.int64, types.int64)


class Entry:
    """A C function of integers, compiled (or loaded from the cache) when its address is first used."""

    def __init__(self, function: Callable[..., Any], kind: Any, signature: Any) -> None:
        """Create an entry.

        Args:
            function: begins with load(address, kind).
            kind: type of the arguments.
            signature: numba's, of the C function.
        """
        self.kind = kind
        self.function = function
        self._signature = signature
        self._address: int | None = None

    @property
    def address(self) -> int:
        if self._address is None:
            self._address = _add_plain(plain_kernel(self.function)) if IS_PLAIN else self._compile()
        return self._address

    def _compile(self) -> int:
        mark_kernel(self.function)
        pipeline: Any = Compiler
        compiled: Any = CFunc(
            self.function, sigutils.normalize_signature(self._signature), {}, _OPTIONS, pipeline_class=pipeline
        )
        compiled.enable_caching()
        keep_compiled(compiled._cache)
        with (
            compiling(),
            quick_numba(),
            event.trigger_event("numba:compile", data={"dispatcher": _Named(self.function)}),
        ):
            compiled.compile()
        self._compiled = compiled
        return int(compiled.address)

    def bind(self, *arguments: Any) -> Calls:
        """Return a call of this entry with arguments.

        Raises:
            TypeError: they are not of the types that the entry loads.
        """
        stored = store(self.kind, *arguments)
        return Calls(np.array([[self.address, stored.address]], np.int64), (self, stored))


_OPTIONS = {"nopython": True, "error_model": "numpy", "_nrt": False}


@dataclass(frozen=True)
class _Named:
    py_func: Callable[..., Any]


def entry(kind: Any) -> Callable[[Callable[[Any, Any], None]], Entry]:
    """Make a function an entry with arguments of type `kind`, a result of `types_of`.

    The function takes (address, rows) and begins with `load(address, kind)`. It may not allocate.
    """
    return lambda function: Entry(function, kind, ROWS_ENTRY)


def answering_entry(kind: Any) -> Callable[[Callable[[Any, Any, Any], Any]], Entry]:
    """Make a function of (address, first, second) an entry that returns an integer; see `entry`."""
    return lambda function: Entry(function, kind, ANSWERING_ENTRY)


def types_of(*examples: Any) -> Any:
    """Return the type of a tuple of arguments like `examples`."""
    return type_of(examples)


# numba types by form. numba makes the type of an array of records again at every call: that took 10 ms for a search.
_TYPES: dict[Any, Any] = {}


def type_of(value: Any) -> Any:
    """Return `numba.typeof` of arguments. The type is remembered for values of the same form."""
    form = _form(value)
    if form not in _TYPES:
        _TYPES[form] = numba.typeof(value)
    return _TYPES[form]


def _form(value: Any) -> Any:
    """Return a hashable value that determines the numba type."""
    if isinstance(value, tuple):
        return (type(value), *map(_form, value))
    if isinstance(value, np.ndarray):
        flags, dtype = value.flags, value.dtype
        order = (flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned)
        return (type(value), dtype, dtype.isalignedstruct, value.ndim, *order)
    if isinstance(value, np.void):
        return (type(value), value.dtype, value.dtype.isalignedstruct)
    return numba.typeof(value)
