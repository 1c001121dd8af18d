"""What numba has no name for: bit counting, random numbers, atomic operations on array elements, locks.

The atomics are sequentially consistent. They work on one element of a contiguous array, given as (array, index), or on
a field of a record, given as (record, name), and return its old value. A name has to stand in the kernel's own source.
"""

import operator
import platform
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from yomi.native.jit import inlined, inlined_early, kernel, machine_code

U = np.uint64
"""Cast to an unsigned index: numba tests a signed one for being negative, which costs rollouts 40% of their speed."""


_PLAIN_LOCK = threading.Lock()
"""Makes the operations atomic where kernels run as plain Python."""


@machine_code(lambda word: U(int(word).bit_count()))
def popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of set bits of a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@machine_code(lambda word: U((int(word) & -int(word)).bit_length() - 1 if word else 64))
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the index of the lowest set bit of a uint64; 64 where none is set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@machine_code(lambda word: U(int(f"{int(word):064b}"[::-1], 2)))
def reversed_bits(typing_context: Any, word: Any) -> Any:
    """Return a uint64 with its bits in the opposite order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitreverse(args[0])

    return types.uint64(types.uint64), codegen


def _element_type(array: Any, index: Any) -> Any:
    """Return the type of array[index], of an array or a record."""
    return array.typeof(index.literal_value) if isinstance(array, types.Record) else array.dtype


def element_pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return a pointer to args[0][args[1]] for a one-dimensional C-contiguous array, or a record."""
    array_type, index_type = signature.args[:2]
    if isinstance(array_type, types.Record):
        name = index_type.literal_value
        element = context.get_data_type(array_type.typeof(name))
        return cgutils.get_record_member(builder, args[0], array_type.offset(name), element)
    array = context.make_array(array_type)(context, builder, args[0])
    index = context.cast(builder, args[1], index_type, types.intp)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)


def _read_modify_write(operation: str, result: Callable[[Any, Any], Any]) -> Any:
    """Make an intrinsic (array, index, value) -> old value for one of LLVM's integer atomicrmw operations.

    Args:
        operation: LLVM's name of it.
        result: what it writes, of the old value and the argument.
    """

    def plainly(array: Any, index: Any, value: Any) -> Any:
        with _PLAIN_LOCK:
            old = array[index]
            array[index] = result(old, value)
        return old

    @machine_code(plainly)
    def atomic(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = element_pointer(context, builder, signature, args)
            operand = context.cast(builder, args[2], signature.args[2], signature.return_type)
            return builder.atomic_rmw(operation, pointer, operand, "seq_cst")

        return _element_type(array, index)(array, index, value), codegen

    return atomic


atomic_add = _read_modify_write("add", operator.add)
atomic_exchange = _read_modify_write("xchg", lambda old, value: value)
atomic_max = _read_modify_write("max", max)


def _compare_plainly(array: Any, index: Any, expected: Any, value: Any) -> Any:
    with _PLAIN_LOCK:
        old = array[index]
        if old == expected:
            array[index] = value
    return old


@machine_code(_compare_plainly)
def atomic_compare_exchange(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Write array[index] = value if it is `expected`; return the old value, by which the caller knows."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = element_pointer(context, builder, signature, args)
        compared = context.cast(builder, args[2], signature.args[2], signature.return_type)
        operand = context.cast(builder, args[3], signature.args[3], signature.return_type)
        return builder.extract_value(builder.cmpxchg(pointer, compared, operand, "seq_cst", "seq_cst"), 0)

    return _element_type(array, index)(array, index, expected, value), codegen


def _load_plainly(array: Any, index: Any) -> Any:
    with _PLAIN_LOCK:
        return array[index]


@machine_code(_load_plainly)
def atomic_load(typing_context: Any, array: Any, index: Any) -> Any:
    """Return array[index], read with acquire ordering."""
    element = _element_type(array, index)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = element_pointer(context, builder, signature, args)
        return builder.load_atomic(pointer, "acquire", element.bitwidth // 8)

    return element(array, index), codegen


def _store_plainly(array: Any, index: Any, value: Any) -> None:
    with _PLAIN_LOCK:
        array[index] = value


@machine_code(_store_plainly)
def atomic_store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write array[index] = value with release ordering."""
    element = _element_type(array, index)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = element_pointer(context, builder, signature, args)
        operand = context.cast(builder, args[2], signature.args[2], element)
        builder.store_atomic(operand, pointer, "release", element.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, index, value), codegen


@machine_code(lambda: None)
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
    return platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


@machine_code(lambda: time.sleep(0.0))
def _yield_processor(typing_context: Any) -> Any:
    """Let another thread have the processor, by the system's own call."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), name)
        builder.call(function, [])
        return context.get_dummy_value()

    return types.none(), codegen


SPINS = 64
"""Looks at a lock before a thread gives its processor away: who holds it for longer has most likely lost its own."""


@inlined_early
def take_lock(locks, index):  # type: ignore[no-untyped-def]
    """Set locks[index], an integer of an array or a record that is 0 while nobody holds it; wait while somebody does.

    If threads outnumber processors, the one that holds a lock may not be running, and spinning keeps it from doing so.
    """
    spins = 0
    while atomic_exchange(locks, index, 1) != 0:
        if spins < SPINS:
            spins += 1
            cpu_pause()
        else:
            _yield_processor()


@inlined_early
def free_lock(locks, index):  # type: ignore[no-untyped-def]
    """Let go of a lock."""
    atomic_store(locks, index, 0)


@inlined
def mixed(word):  # type: ignore[no-untyped-def]
    """Return a uint64 that each bit of `word` changes much of."""
    word = (word ^ (word >> U(30))) * U(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
    return word ^ (word >> U(31))


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
