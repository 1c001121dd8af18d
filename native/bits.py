"""Machine instructions that numba does not name: bit counting, random numbers, and atomic operations on array elements.

The atomics are sequentially consistent. They work on one element of a contiguous array, given as (array, index), and
return the element's old value.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from native.jit import kernel

U = np.uint64
"""Cast to an unsigned index: numba tests a signed one for being negative, which costs rollouts 40% of their speed."""


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of set bits of a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the index of the lowest set bit of a uint64; 64 where none is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


def _element_pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return a pointer to args[0][args[1]] for a one-dimensional C-contiguous array."""
    array_type, index_type = signature.args[:2]
    array = context.make_array(array_type)(context, builder, args[0])
    index = context.cast(builder, args[1], index_type, types.intp)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)


def _read_modify_write(operation: str) -> Any:
    """Make an intrinsic (array, index, value) -> old value for one of LLVM's integer atomicrmw operations."""

    @intrinsic
    def atomic(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element_pointer(context, builder, signature, args)
            operand = context.cast(builder, args[2], signature.args[2], signature.args[0].dtype)
            return builder.atomic_rmw(operation, pointer, operand, "seq_cst")

        return array.dtype(array, index, value), codegen

    return atomic


atomic_add = _read_modify_write("add")
atomic_exchange = _read_modify_write("xchg")


@intrinsic
def atomic_store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write array[index] = value with release ordering."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, signature, args)
        operand = context.cast(builder, args[2], signature.args[2], signature.args[0].dtype)
        builder.store_atomic(operand, pointer, "release", array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, index, value), codegen


@intrinsic
def cpu_pause(typing_context: Any) -> Any:
    """Tell the processor that this is a spin loop. (Inline assembly in an intrinsic aborts the process.)"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function_type = ir.FunctionType(ir.VoidType(), [])
        name = "llvm.x86.sse2.pause" if _is_x86() else "llvm.donothing"
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        builder.call(function, [])
        return context.get_dummy_value()

    return types.none(), codegen


def _is_x86() -> bool:
    import platform

    return platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


@kernel
def random_bits(state):  # type: ignore[no-untyped-def]
    """Advance the xorshift64* generator in `state` (uint64[1], never zero) and return 32 random bits as uint64."""
    x = state[U(0)]
    x ^= x >> U(12)
    x ^= x << U(25)
    x ^= x >> U(27)
    state[U(0)] = x
    return (x * U(0x2545F4914F6CDD1D)) >> U(32)


@kernel
def random_below(state, n):  # type: ignore[no-untyped-def]
    """Return a random uint64 in [0, n) by multiplication; the bias is below n / 2**32."""
    return (random_bits(state) * U(n)) >> U(32)
