"""The transposition table: results of searched positions, which threads share without locks.

An entry is two words: the key xor the data, and the data. If two threads write an entry at once, its key fails to match
and the entry counts as empty (Hyatt, Mann 2002).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel, machine_code

BUCKET = 4  # entries of a cache line: a position may be in any of them
BUCKET_BYTES = 16 * BUCKET
NO_VALUE = 32767  # static value of an entry if unknown
# Bounds: the true value is at most, at least, or equal to the stored value.
UPPER, LOWER, EXACT = 1, 2, 3
GENERATIONS = 32
# An entry loses this many plies of its worth with each later search.
AGE_PLIES = 4


def make_table(memory: int) -> npt.NDArray[np.uint64]:
    """Return an empty table, uint64[buckets, 2 * BUCKET], of at most `memory` bytes and at least one bucket."""
    buckets = 1 << max(0, (memory // BUCKET_BYTES).bit_length() - 1)
    words = np.zeros(2 * BUCKET * (buckets + 1), np.uint64)
    first = -words.ctypes.data % BUCKET_BYTES // words.itemsize  # each bucket is one cache line
    return words[first : first + 2 * BUCKET * buckets].reshape(buckets, 2 * BUCKET)


# The data, from the lowest bit: move 16, value 16, static value 16, depth 8, bound 2, 1 if on a principal variation,
# generation 5.


@machine_code(lambda address: None)
def touch(typing_context: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        arguments = [pointer, number, number, number]
        function_type = ir.FunctionType(ir.VoidType(), arguments)
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        # To read, and to keep in all caches.
        builder.call(function, [builder.inttoptr(args[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(address), codegen


@inlined
def prefetch(table, key):  # type: ignore[no-untyped-def]
    """Load the bucket of a key into the processor's cache, without waiting for it."""
    touch(U(table.ctypes.data) + (key & U(table.shape[0] - 1)) * U(BUCKET_BYTES))


@inlined
def lookup(table, key):  # type: ignore[no-untyped-def]
    """Return the fields of `store` except the generation: (move, value, static value, depth, bound, is_principal).

    Bound 0: the position is not in the table, or has a static value alone.
    """
    bucket = key & U(table.shape[0] - 1)
    for i in range(U(0), U(2 * BUCKET), U(2)):
        word = table[bucket, i + U(1)]
        if table[bucket, i] ^ word == key and word != U(0):
            return (
                np.int64(word & U(0xFFFF)),
                np.int64((word >> U(16)) & U(0xFFFF)) - 32768,
                np.int64((word >> U(32)) & U(0xFFFF)) - 32768,
                np.int64((word >> U(48)) & U(0xFF)),
                np.int64((word >> U(56)) & U(3)),
                (word >> U(58)) & U(1) != U(0),
            )
    return 0, 0, NO_VALUE, 0, 0, False


@kernel
def store(table, key, move, value, static, depth, bound, is_principal, generation):  # type: ignore[no-untyped-def]
    """Write a position into its bucket, over its own entry or over the least valuable entry.

    Deep and recent entries are valuable.
    """
    bucket = key & U(table.shape[0] - 1)
    chosen, least = U(0), 1 << 30
    for i in range(U(0), U(2 * BUCKET), U(2)):
        word = table[bucket, i + U(1)]
        if table[bucket, i] ^ word == key and word != U(0):
            chosen = i
            if move == 0:
                move = np.int64(word & U(0xFFFF))
            # A shallow bound does not replace a much deeper one of this search.
            is_old = np.int64(word >> U(59)) != generation
            if bound != EXACT and not is_old and depth + 2 * is_principal + 4 <= np.int64((word >> U(48)) & U(0xFF)):
                word = (word & ~U(0xFFFF)) | U(move)
                table[bucket, i] = key ^ word
                table[bucket, i + U(1)] = word
                return
            break
        age = (generation - np.int64(word >> U(59))) & (GENERATIONS - 1)
        worth = np.int64((word >> U(48)) & U(0xFF)) - AGE_PLIES * age
        if word == U(0):
            worth = -(1 << 20)
        if worth < least:
            chosen, least = i, worth
    word = U(move) | (U(value + 32768) << U(16)) | (U(static + 32768) << U(32))
    word |= (U(depth) << U(48)) | (U(bound) << U(56)) | (U(is_principal) << U(58)) | (U(generation) << U(59))
    table[bucket, chosen] = key ^ word
    table[bucket, chosen + U(1)] = word
