"""Matrix products with packed right-hand sides: C[rows, panels * PANEL] = A[rows, depth] @ B.

B is stored as [panels][depth][PANEL]; rows of A and C are a stride apart. A and B contain words of four bytes: a float,
two 16-bit integers or bfloats, or four 8-bit integers, neighbors along the depth. C contains floats or 32-bit integers.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from yomi.native.forward.emit import (
    BYTES,
    FLOAT_BYTES,
    FLOATS,
    HALF_VECTOR,
    I64,
    INT_VECTOR,
    INTEGERS,
    KNOWS_TILES,
    MATRIX_KINDS,
    PAIR_VECTOR,
    REGISTERS,
    TILES,
    VECTOR,
    WIDTH,
    Emitter,
    Routine,
    chosen,
)
from yomi.native.forward.tiles import write_product

# BLOCK_ROWS rows by one panel of C stay in registers during the loop over the depth.
#
# Processors multiply unsigned by signed bytes: A has 128 added, and each panel of B begins with a row of corrections.
# Processors with tiles multiply bfloats by `yomi.native.forward.tiles`.

FloatArray: TypeAlias = npt.NDArray[np.float32]

_VECTORS = 2
# Columns of a panel. Channels of all matrices are padded to a multiple.
PANEL = _VECTORS * WIDTH
# Rows of a block: with two vectors each they fill the registers.
BLOCK_ROWS = 12 if REGISTERS == 32 else 6
_UNROLL = 4  # divides PANEL, and so every depth
_CACHE_LINE = 64
_MAX_BYTE = 127.0
_LIMIT = 2.0**31 - 1.0
# Ratio that divides the bits of a product between inputs and weights so that both round equally badly, for inputs with
# a root mean square of 1/32 and weights with 5/4 of their mean magnitude.
_BALANCE = 40.0


def _block_routine(rows: int, numbers: int) -> Routine:
    """Return the routine (a, lda, blocks, b, depth, panels, c, ldc) for blocks of `rows` rows."""

    def body(e: Emitter, a: Any, lda: Any, blocks: Any, b: Any, depth: Any, panels: Any, c: Any, ldc: Any) -> None:
        head = PANEL * FLOAT_BYTES if numbers == BYTES else 0
        panel_bytes = e.at(e.times(depth, PANEL * FLOAT_BYTES), head)
        with e.loop(panels, 1) as panel:
            b_panel = e.at(b, e.ir.mul(panel.index, panel_bytes))
            c_panel = e.at(c, e.times(panel.index, PANEL * FLOAT_BYTES))
            with e.loop(blocks, 1) as block:
                first = e.times(block.index, rows)
                a_block = e.at(a, e.ir.mul(first, lda))
                c_block = e.at(c_panel, e.ir.mul(first, ldc))
                sums = _products(e, rows, numbers, a_block, lda, b_panel, depth, panel_bytes)
                for row in range(rows):
                    for v in range(_VECTORS):
                        address = e.at(c_block, e.times(ldc, row), v * WIDTH * FLOAT_BYTES)
                        e.store(sums[row * _VECTORS + v], address)

    return Routine(f"gemm_{rows}_{numbers}", 8, body)


def _products(e: Emitter, rows: int, numbers: int, a: Any, lda: Any, b: Any, depth: Any, ahead: Any) -> list[Any]:
    """Write the loop over the depth; return the sums, row by row. Prefetches the bytes `ahead`, the next panel or
    matrix.
    """
    row_addresses = [e.at(a, e.times(lda, row)) for row in range(rows)]
    start = [ir.Constant(VECTOR if numbers in (FLOATS, TILES) else INT_VECTOR, None)] * _VECTORS
    if numbers == BYTES:
        start = [e.load(e.at(b, v * WIDTH * FLOAT_BYTES), INT_VECTOR) for v in range(_VECTORS)]
        b = e.at(b, PANEL * FLOAT_BYTES)
    kind, spread, add = {
        FLOATS: (VECTOR, e.broadcast, e.fma),
        INTEGERS: (PAIR_VECTOR, e.broadcast_pair, e.add_products_of_pairs),
        TILES: (HALF_VECTOR, e.broadcast_halves, e.add_products_of_halves),
        BYTES: (INT_VECTOR, e.broadcast_bytes, e.add_products_of_bytes),
    }[numbers]
    with e.loop(depth, _UNROLL, start * rows) as loop:
        sums = list(loop.values)
        a_offset = e.times(loop.index, FLOAT_BYTES)
        b_here = e.at(b, e.times(loop.index, PANEL * FLOAT_BYTES))
        # The weights of a network exceed the second-level cache, and hardware prefetching stops at each page.
        # Prefetching lowers the time for a single position of a 6-block network to 0.7 (9x9) or 0.8 (19x19).
        for k in range(_UNROLL):
            for line in range(0, PANEL * FLOAT_BYTES, _CACHE_LINE):
                e.prefetch(e.at(b_here, ahead, k * PANEL * FLOAT_BYTES + line))
            places = [e.at(b_here, (k * PANEL + v * WIDTH) * FLOAT_BYTES) for v in range(_VECTORS)]
            right = [e.load(place, kind) for place in places]
            for row in range(rows):
                left = spread(e.at(row_addresses[row], a_offset, k * FLOAT_BYTES))
                for v in range(_VECTORS):
                    sums[row * _VECTORS + v] = add(left, right[v], sums[row * _VECTORS + v])
        loop.results = sums
    return sums


def _product_routine(numbers: int) -> Routine:
    choices = [_block_routine(rows, numbers) for rows in range(1, BLOCK_ROWS + 1)]

    def body(e: Emitter, *arguments: Any) -> None:
        _split_rows(e, choices, *arguments)

    return Routine(f"gemm_{numbers}", 8, body)


def _split_rows(
    e: Emitter,
    choices: list[Routine],
    a: Any,
    lda: Any,
    rows: Any,
    b: Any,
    depth: Any,
    panels: Any,
    c: Any,
    ldc: Any,
) -> None:
    """Split the rows into as few blocks as possible, of nearly equal size: first the blocks with one row more."""
    # An even distribution: a block with few rows would show the latency of its additions.
    builder = e.ir
    blocks = builder.sdiv(builder.add(rows, I64(BLOCK_ROWS - 1)), I64(BLOCK_ROWS))
    small = builder.sdiv(rows, blocks)
    large_blocks = builder.srem(rows, blocks)
    done = builder.mul(large_blocks, builder.add(small, I64(1)))
    for height, offset, count in (
        (builder.add(small, I64(1)), I64(0), large_blocks),
        (small, done, builder.sub(blocks, large_blocks)),
    ):
        a_part = e.at(a, builder.mul(offset, lda))
        c_part = e.at(c, builder.mul(offset, ldc))
        with builder.if_then(builder.icmp_signed(">", count, I64(0))):
            after = builder.append_basic_block("after")
            choice = builder.switch(height, after)
            for index, routine in enumerate(choices):
                case = builder.append_basic_block("rows")
                choice.add_case(I64(index + 1), case)
                builder.position_at_end(case)
                routine.call(e, a_part, lda, count, b, depth, panels, c_part, ldc)
                builder.branch(after)
            builder.position_at_end(after)


_ROUTINES: dict[tuple[int, ...], Routine] = {
    (kind,): Routine("gemm_tiles", 8, write_product) if kind == TILES and KNOWS_TILES else _product_routine(kind)
    for kind in MATRIX_KINDS
}
# multiply(numbers, a, lda, rows, b, depth, panels, c, ldc)
#
# numbers: FLOATS, INTEGERS, TILES or BYTES; does nothing if the processor lacks such products. Addresses and strides
# are in bytes, the depth in words; rows, depth and panels are positive.
multiply = Routine("multiply", 9, chosen(_ROUTINES)).intrinsic()


def quantise(matrices: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """Quantise matrices [places, depth, columns] to 16-bit integers: entry = integer * unit of its column.

    Returns:
        panels [places, panels, depth' / 2, PANEL], pairs of integers viewed as float32;
        the greatest integer of an input;
        the units, float32[columns].

    Raises:
        ValueError: an entry is not finite.
    """
    # No sum of products overflows 32 bits, for any inputs.
    if not np.isfinite(matrices).all():
        raise ValueError("found weights that are not finite, expected finite weights")
    depth = matrices.shape[-2]
    most = min(32_000.0, math.sqrt(_BALANCE * _LIMIT / depth))
    magnitudes = np.abs(matrices).astype(np.float64)
    sums, largest = magnitudes.sum(axis=-2).max(axis=0), magnitudes.max(axis=(0, -2))
    # Rounding adds up to a half to an entry and to an input. Inputs are rounded as floats first, hence the other half.
    room = _LIMIT / (most + 1.0) - 0.5 * depth
    with np.errstate(divide="ignore"):
        factors = np.minimum(room / sums, 32_767.0 / largest)
    factors[largest == 0.0] = 1.0
    panels = pack(np.rint(matrices * factors).astype(np.float32)).astype(np.int16)
    *lead, depth, columns = panels.shape
    pairs = np.swapaxes(panels.reshape(*lead, depth // 2, 2, columns), -1, -2)
    return np.ascontiguousarray(pairs).view(np.float32)[..., 0], most, (1.0 / factors).astype(np.float32)


def quantise_to_bytes(matrix: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """Quantise a matrix [depth, columns] to 8-bit integers; see `quantise`.

    Returns:
        panels [panels, 1 + depth' / 4, PANEL], four integers to a word; the first row holds 32-bit corrections: -128
            times the sum of each column;
        the greatest integer of an input;
        the units, float32[columns].

    Raises:
        ValueError: an entry is not finite.
    """
    if not np.isfinite(matrix).all():
        raise ValueError("found weights that are not finite, expected finite weights")
    largest = np.abs(matrix).max(axis=0).astype(np.float64)
    largest[largest == 0.0] = 1.0
    panels = pack(np.rint(matrix * (_MAX_BYTE / largest)).astype(np.float32)).astype(np.int8)
    count, depth, columns = panels.shape
    quads = np.ascontiguousarray(np.moveaxis(panels.reshape(count, depth // 4, 4, columns), 2, 3)).view(np.int32)
    head = -128 * panels.sum(axis=1, dtype=np.int32)
    joined = np.concatenate([head[:, None], quads[..., 0]], axis=1)
    return joined.view(np.float32), _MAX_BYTE, (largest / _MAX_BYTE).astype(np.float32)


def pack(matrices: FloatArray) -> FloatArray:
    """Return matrices [..., depth, columns] as panels [..., panels, depth', PANEL], padded with zeros."""
    *lead, depth, columns = matrices.shape
    padded = np.zeros((*lead, depth + -depth % PANEL, columns + -columns % PANEL), np.float32)
    padded[..., :depth, :columns] = matrices
    split = padded.reshape(*lead, padded.shape[-2], -1, PANEL)
    return np.ascontiguousarray(np.moveaxis(split, -2, -3))
