"""Binary network inputs as bits, and float16 outputs of GPUs.

Bit i of a row is bit i % 64 of word i // 64, as numpy.packbits(bitorder="little") on little-endian machines.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from yomi.native.bits import U, element_pointer
from yomi.native.jit import inlined, kernel, machine_code
from yomi.native.spec import packed_words

# On a device `yomi.nets.gpu_variants` (ONNX) or native/cuda/unpack.cu unpacks them; for evaluators on a processor
# `unpack_bits` does.


def packed_bytes(count: int) -> int:
    """Return the bytes of a row of `count` bits, a multiple of 8."""
    return 8 * packed_words(count)


def pack(numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Return zeros and ones [B, ...] as bits [B, words]. Searches write bits directly."""
    flat = numbers.reshape(len(numbers), -1)
    packed = np.zeros((len(flat), packed_bytes(flat.shape[1])), np.uint8)
    bits = np.packbits(flat != 0.0, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.uint64)


def _spread_plainly(numbers: Any, index: Any, word: Any) -> None:
    for k in range(64):
        numbers[int(index) + k] = int(word) >> k & 1


@machine_code(_spread_plainly)
def _spread(typing_context: Any, numbers: Any, index: Any, word: Any) -> Any:
    """Write the 64 bits of a word into float32[n] from an index on, as vectors."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = element_pointer(context, builder, signature, args)
        wide = builder.uitofp(
            builder.bitcast(args[2], ir.VectorType(ir.IntType(1), 64)), ir.VectorType(ir.FloatType(), 64)
        )
        builder.store(wide, builder.bitcast(pointer, wide.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.none(numbers, index, types.uint64), codegen


@inlined
def set_bit(bits, index):  # type: ignore[no-untyped-def]
    """Set bit `index` (uint64) of uint64[n]."""
    bits[index >> U(6)] |= U(1) << (index & U(63))


@kernel
def unpack_bits(bits, word, numbers):  # type: ignore[no-untyped-def]
    """Unpack a row.

    Args:
        bits: uint64[n].
        word: first word to read.
        numbers: float32[count], contiguous; all elements are written.
    """
    count = U(numbers.size)
    first = U(word)
    whole = count >> U(6)
    for w in range(whole):
        _spread(numbers, w << U(6), bits[first + w])
    for i in range(whole << U(6), count):
        numbers[i] = np.float32((bits[first + (i >> U(6))] >> (i & U(63))) & U(1))


# 2 to the power of the difference between the exponent biases of float32 and float16.
_SCALE = 2.0**112


def _widened_plainly(value: Any) -> Any:
    return np.uint16(value).view(np.float16).astype(np.float32) if isinstance(value, int) else value


@machine_code(_widened_plainly)
def widened(typing_context: Any, value: Any) -> Any:
    """Return a float32 unchanged, or a float16 (given as uint16) as float32."""
    # Only instructions that every processor has, so that LLVM can vectorize it.
    if value == types.float32:
        return types.float32(value), lambda context, builder, signature, args: args[0]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, number = ir.IntType(32), ir.FloatType()

        def constant(bits: int) -> Any:
            return ir.Constant(word, bits)

        half = builder.zext(args[0], word)
        size = builder.shl(builder.and_(half, constant(0x7FFF)), constant(13))
        scaled = builder.fmul(builder.bitcast(size, number), ir.Constant(number, _SCALE))
        is_finite = builder.icmp_unsigned("<", size, constant(0x7C00 << 13))
        found = builder.select(is_finite, builder.bitcast(scaled, word), builder.or_(size, constant(0x7F800000)))
        sign = builder.shl(builder.and_(half, constant(0x8000)), constant(16))
        return builder.bitcast(builder.or_(found, sign), number)

    return types.float32(types.uint16), codegen
