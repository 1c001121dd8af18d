"""Operations that numba lacks: bit counting, random numbers, atomics, locks.

Atomics return the old value. They take (array, index), an element of a contiguous array, or (record, name), a field of
a record. The name must be a constant in the kernel's own source.
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

# Atomics are sequentially consistent, except that loads acquire and stores release.

# numba tests a signed index for being negative, which costs rollouts 40% of their speed.
U = np.uint64  # cast to an unsigned index


_PLAIN_LOCK = threading.Lock()  # makes the operations atomic in plain Python


@machine_code(lambda word: U(int(word).bit_count()))
def popcount(typing_context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@machine_code(lambda word: U((int(word) & -int(word)).bit_length() - 1 if word else 64))
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the index of the lowest set bit of a uint64, or 64 for 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@machine_code(lambda word: U(int(f"{int(word):064b}"[::-1], 2)))
def reversed_bits(typing_context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitreverse(args[0])

    return types.uint64(types.uint64), codegen


def _element_type(array: Any, index: Any) -> Any:
    return array.typeof(index.literal_value) if isinstance(array, types.Record) else array.dtype


def element_pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type, index_type = signature.args[:2]
    if isinstance(array_type, types.Record):
        name = index_type.literal_value
        element = context.get_data_type(array_type.typeof(name))
        return cgutils.get_record_member(builder, args[0], array_type.offset(name), element)
    array = context.make_array(array_type)(context, builder, args[0])
    index = context.cast(builder, args[1], index_type, types.intp)
    return cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)


def _read_modify_write(operation: str, result: Callable[[Any, Any], Any]) -> Any:
    """Make an intrinsic (array, index, value) -> old value.

    Args:
        operation: name of LLVM's integer atomicrmw operation.
        result: computes the new value from the old value and the argument.
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
    """Write array[index] = value if it equals `expected`; return the old value."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = element_pointer(context, builder, signature, args)
        compared = context.cast(builder, args[2], signature.args[2], signature.return_type)
        operand = context.cast(builder, args[3], signature.args[3], signature.return_type)
        return builder.extract_value(builder.cmpxchg(pointer, compared, operand, "seq_cst", "seq_cst"), 0)

    return _element_type(array, index)(array, index, expected, value), codegen


@machine_code(lambda array, index: array[index])
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
    """Hint to the processor that this is a spin loop."""

    # Inline assembly in an intrinsic aborts the process, so this calls LLVM's intrinsic.
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        machine = platform.machine().lower()
        name, arguments = "llvm.donothing", []
        if machine in ("x86_64", "amd64", "i386", "i686"):
            name = "llvm.x86.sse2.pause"
        elif machine in ("aarch64", "arm64"):  # isb takes about the time of pause; yield does nothing there
            name, arguments = "llvm.aarch64.isb", [ir.Constant(ir.IntType(32), 15)]
        function_type = ir.FunctionType(ir.VoidType(), [each.type for each in arguments])
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        builder.call(function, arguments)
        return context.get_dummy_value()

    return types.none(), codegen


@machine_code(lambda: time.sleep(0.0))
def _yield_processor(typing_context: Any) -> Any:

    # By a system call, so that the thread that holds a lock can run.
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), name)
        builder.call(function, [])
        return context.get_dummy_value()

    return types.none(), codegen


# A thread that holds a lock for longer has most likely lost its processor. Spinning would keep it from running.
SPINS = 64  # attempts to take a lock before a thread yields its processor


@inlined_early
def take_lock(locks, index):  # type: ignore[no-untyped-def]
    """Take a lock: set locks[index] (an array element, or a record's field) from 0 to 1. Wait while it is 1."""
    spins = 0
    while atomic_exchange(locks, index, 1) != 0:
        if spins < SPINS:
            spins += 1
            cpu_pause()
        else:
            _yield_processor()


@inlined_early
def free_lock(locks, index):  # type: ignore[no-untyped-def]
    atomic_store(locks, index, 0)


@inlined
def mixed(word):  # type: ignore[no-untyped-def]
    """Return a hash of a uint64 (the finalizer of splitmix64)."""
    word = (word ^ (word >> U(30))) * U(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
    return word ^ (word >> U(31))


@kernel
def random_bits(state):  # type: ignore[no-untyped-def]
    """Advance the xorshift64* generator `state` (uint64[1], never zero); return 32 random bits as uint64."""
    x = state[U(0)]
    x ^= x >> U(12)
    x ^= x << U(25)
    x ^= x >> U(27)
    state[U(0)] = x
    return (x * U(0x2545F4914F6CDD1D)) >> U(32)


@kernel
def random_below(state, n):  # type: ignore[no-untyped-def]
    """Return a random uint64 in [0, n); the bias is below n / 2**32."""
    return (random_bits(state) * U(n)) >> U(32)
