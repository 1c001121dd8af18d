"""Inputs of networks as bits: an input plane of zeros and ones takes a 32nd of its room on the way to a GPU.

A row is packed as numpy.packbits does with bitorder="little", which is the slow twin: number i of the row becomes bit
i % 8 of byte i // 8. What unpacks it on a device: `nets.packed` (a part of an ONNX graph) and native/cuda/unpack.cu.
"""

import numpy as np

from native.bits import U
from native.jit import kernel


def packed_bytes(count: int) -> int:
    """Return the bytes that a row of `count` zeros and ones takes, a multiple of 4: devices read words."""
    return -(-count // 32) * 4


@kernel
def pack_rows(values, rows, packed):  # type: ignore[no-untyped-def]
    """Pack the first `rows` rows.

    Args:
        values: float32[>= rows, n], each 0 or 1.
        rows: how many.
        packed: uint8[>= rows, packed_bytes(n)], written.
    """
    count = values.shape[1]
    whole = U(count // 8)
    for row in range(U(rows)):
        for byte in range(whole):
            first = byte * U(8)
            word = np.uint8(0)
            for bit in range(U(8)):
                word |= np.uint8(values[row, first + bit] != np.float32(0.0)) << np.uint8(bit)
            packed[row, byte] = word
        for byte in range(whole, U(packed.shape[1])):
            word = np.uint8(0)
            for bit in range(U(8)):
                i = byte * U(8) + bit
                if i < U(count) and values[row, i] != np.float32(0.0):
                    word |= np.uint8(1) << np.uint8(bit)
            packed[row, byte] = word
