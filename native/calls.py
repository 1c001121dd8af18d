"""Calling kernels by address, with arguments bound to them: how the tree runs an evaluator that it does not know.

A kernel that took the evaluator as an argument would be compiled for each of them, and could not be cached. An entry is
a C function of two integers: where its arguments lie, and how many rows of a batch are in use. `bind` puts arguments
down; what it returns is called from Python (`run`) or, by `call_all`, from another kernel without a word of Python.
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
from numba.extending import intrinsic

from native.bits import U
from native.jit import IS_PLAIN, kernel, machine_code, mark_kernel
from native.plain import plain, plain_kernel

_WORDS = 512
"""uint64 words that the arguments of one entry may take: an array takes 5 and 2 for each dimension."""


_PLAIN: list[tuple[Callable[[Any, Any], None], Any]] = []
"""Where kernels run as plain Python: functions and arguments, whose places in this list stand for the addresses."""


def _call_plainly(address: int, arguments: int, rows: int) -> None:
    _PLAIN[address][0](arguments, rows)


@machine_code(lambda address, kind: plain(_PLAIN[address][1]))
def load(typing_context: Any, address: Any, kind: Any) -> Any:
    """Return the value of a numba type that `_store` put at an address; its arrays are borrowed."""
    loaded = kind.instance_type

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], context.get_value_type(loaded).as_pointer()))

    return loaded(address, kind), codegen


@intrinsic
def _store(typing_context: Any, address: Any, room: Any, value: Any) -> Any:
    """Put a value at an address where there are `room` bytes; return the bytes it takes, which may be too many."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = ir.Constant(ir.IntType(64), context.get_abi_sizeof(args[2].type))
        with builder.if_then(builder.icmp_signed("<=", size, args[1])):
            builder.store(args[2], builder.inttoptr(args[0], args[2].type.as_pointer()))
        return size

    return types.int64(types.int64, types.int64, value), codegen


@machine_code(_call_plainly)
def _call(typing_context: Any, address: Any, arguments: Any, rows: Any) -> Any:
    """Call the entry at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [integer, integer])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), codegen


@kernel
def _store_arguments(arguments, address, room):  # type: ignore[no-untyped-def]
    return _store(address, room, arguments)


@kernel
def call_all(calls, rows):  # type: ignore[no-untyped-def]
    """Make every call of `Calls.table` for `rows` rows, in turn."""
    for i in range(U(calls.shape[0])):
        _call(calls[i, U(0)], calls[i, U(1)], rows)


@dataclass(frozen=True, eq=False)
class Calls:
    """Entries with their arguments, to be called one after the other; by one thread at a time."""

    table: npt.NDArray[np.int64]
    """int64[calls, 2]: addresses of the entry and of its arguments"""
    kept: tuple[Any, ...]
    """What the addresses lead to."""

    def __add__(self, other: Calls) -> Calls:
        """Return the calls of both, this one's first."""
        return Calls(np.concatenate((self.table, other.table)), (self, other))

    def run(self, rows: int) -> None:
        """Make the calls for the first `rows` rows."""
        call_all(self.table, rows)


NO_CALLS = Calls(np.zeros((0, 2), np.int64), ())


class Entry:
    """A function of (address of arguments, rows), compiled to a C function when it is first bound, and cached."""

    def __init__(self, function: Callable[[Any, Any], None], kind: Any) -> None:
        """Hold what is to be compiled."""
        self._function = function
        self._kind = kind
        self._compiled: Any = None

    def bind(self, *arguments: Any) -> Calls:
        """Return a call of this entry with arguments.

        Raises:
            TypeError: they are not of the types that the entry loads.
        """
        if (kind := numba.typeof(arguments)) != self._kind:
            raise TypeError(f"arguments {kind} found, expected {self._kind}")
        if IS_PLAIN:
            _PLAIN.append((plain_kernel(self._function), arguments))
            return Calls(np.full((1, 2), len(_PLAIN) - 1, np.int64), arguments)
        if self._compiled is None:
            decorate: Any = numba.cfunc
            signature = types.void(types.int64, types.int64)
            mark_kernel(self._function)
            compiler = decorate(signature, cache=True, error_model="numpy", _nrt=False)
            self._compiled = compiler(self._function)
        place = np.zeros(_WORDS, np.uint64)
        size = _store_arguments(arguments, place.ctypes.data, place.nbytes)
        if size > place.nbytes:
            raise TypeError(f"arguments of {size} bytes found, expected at most {place.nbytes}")
        table = np.array([[self._compiled.address, place.ctypes.data]], np.int64)
        return Calls(table, (place, arguments))


def entry(kind: Any) -> Callable[[Callable[[Any, Any], None]], Entry]:
    """Make a function an entry whose arguments are of the type `kind`, a result of `types_of`.

    The function takes (address, rows) and begins with `load(address, kind)`. It may not allocate.
    """
    return lambda function: Entry(function, kind)


def types_of(*examples: Any) -> Any:
    """Return the type of the tuple of arguments that `examples` are."""
    return numba.typeof(examples)
