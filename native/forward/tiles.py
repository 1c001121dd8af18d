"""Matrix products and 3x3 convolutions of bfloats by tiles: registers of 16 rows of 64 bytes (Intel's AMX).

B is packed as in `yomi.native.forward.gemm`, its words being pairs of bfloats that follow each other along the depth:
16 rows of half a panel are a tile as they are. A block is two tiles of rows by two of columns, whose sums stay in four
tiles while the loop runs over the depth.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from yomi.native.forward.emit import FLOAT_BYTES, I8, I64, PRODUCT_KINDS, TILES, Emitter, Routine, chosen

FloatArray: TypeAlias = npt.NDArray[np.float32]

TILE_ROWS = 16
TILE_BYTES = 64
TILE_WORDS = TILE_BYTES // FLOAT_BYTES
_PANEL_BYTES = 2 * TILE_BYTES
_CONFIGURATION = 64
"""Bytes that say how many rows and bytes a row each tile has."""
_SUMS, _LEFT, _RIGHT = ((0, 1), (2, 3)), (4, 5), (6, 7)
"""Numbers of the tiles: sums by row and column, rows of A, columns of B. The second tiles of rows may be shorter."""


def _configurations() -> ir.Constant:
    """Return the configurations in which the second tiles of rows have 1, 2, ... 16 rows, one behind the other."""
    table = np.zeros((TILE_ROWS, _CONFIGURATION), np.uint8)
    table[:, 0] = 1  # the palette
    for tile in range(8):
        table[:, 16 + 2 * tile] = TILE_BYTES
        table[:, 48 + tile] = TILE_ROWS
    for tile in (*_SUMS[1], _LEFT[1]):
        table[:, 48 + tile] = np.arange(1, TILE_ROWS + 1)
    return ir.Constant(ir.ArrayType(I8, table.size), bytearray(table.tobytes()))


def _configure(e: Emitter, rows: Any) -> None:
    """Let the second tiles of rows have `rows` rows."""
    module, name = e.ir.module, "yomi_forward_tile_configurations"
    if name in module.globals:
        table = module.globals[name]
    else:
        constant = _configurations()
        table = ir.GlobalVariable(module, constant.type, name)
        table.linkage, table.global_constant, table.initializer, table.align = "internal", True, constant, 64
    first = e.ir.ptrtoint(table, I64)
    e.tiles("ldtilecfg", e.at(first, e.times(e.ir.sub(rows, I64(1)), _CONFIGURATION)))


def _block_routine(whole: bool) -> Routine:
    """Return the routine for blocks of 16 rows and `rows` more, or without `whole` of `rows` alone.

    Its arguments are those of `convolve` with `rows`, in place of which there is the number of blocks.
    """
    halves = (0, 1) if whole else (1,)

    def body(
        e: Emitter,
        rows: Any,
        a: Any,
        lda: Any,
        blocks: Any,
        b: Any,
        depth: Any,
        panels: Any,
        c: Any,
        ldc: Any,
        taps: Any,
        line: Any,
    ) -> None:
        builder = e.ir
        _configure(e, rows)
        taps_depth = builder.mul(builder.mul(taps, taps), depth)
        panel_bytes = e.times(taps_depth, _PANEL_BYTES)
        # From one of the two tiles of rows to the other.
        skip = {half: e.times(lda, TILE_ROWS if whole and half else 0) for half in halves}
        down = {half: e.times(ldc, TILE_ROWS if whole and half else 0) for half in halves}
        with e.loop(panels, 1) as panel:
            b_panel = e.at(b, builder.mul(panel.index, panel_bytes))
            c_panel = e.at(c, e.times(panel.index, _PANEL_BYTES))
            with e.loop(blocks, 1) as block:
                first = e.times(block.index, 2 * TILE_ROWS)
                a_block, c_block = e.at(a, builder.mul(first, lda)), e.at(c_panel, builder.mul(first, ldc))
                for half in halves:
                    for side in (0, 1):
                        e.tiles("tilezero", _SUMS[half][side])
                with e.loop(taps, 1, [b_panel]) as row:
                    a_line = e.at(a_block, builder.mul(row.index, line))
                    with e.loop(taps, 1, row.values) as column:
                        a_tap = e.at(a_line, builder.mul(column.index, lda))
                        with e.loop(depth, TILE_WORDS, column.values) as loop:
                            here = loop.values[0]
                            for side in (0, 1):
                                e.tiles("tileloadd64", _RIGHT[side], e.at(here, side * TILE_BYTES), I64(_PANEL_BYTES))
                            for half in halves:
                                place = e.at(a_tap, skip[half], e.times(loop.index, FLOAT_BYTES))
                                e.tiles("tileloadd64", _LEFT[half], place, lda)
                                for side in (0, 1):
                                    e.tiles("tdpbf16ps", _SUMS[half][side], _LEFT[half], _RIGHT[side])
                            loop.results = [e.at(here, TILE_WORDS * _PANEL_BYTES)]
                        column.results = loop.results
                    row.results = column.results
                for half in halves:
                    for side in (0, 1):
                        place = e.at(c_block, down[half], side * TILE_BYTES)
                        e.tiles("tilestored64", _SUMS[half][side], place, ldc)
        e.tiles("tilerelease")

    return Routine(f"tiles_{int(whole)}", 11, body)


def _write(
    e: Emitter,
    a: Any,
    lda: Any,
    rows: Any,
    b: Any,
    depth: Any,
    panels: Any,
    c: Any,
    ldc: Any,
    taps: Any,
    line: Any,
) -> None:
    """Share the rows out: blocks of 32, then what is left, in one block."""
    builder = e.ir
    blocks, rest = builder.sdiv(rows, I64(2 * TILE_ROWS)), builder.srem(rows, I64(2 * TILE_ROWS))
    done = e.times(blocks, 2 * TILE_ROWS)
    a_rest, c_rest = e.at(a, builder.mul(done, lda)), e.at(c, builder.mul(done, ldc))
    more = builder.sub(rest, I64(TILE_ROWS))
    two, one = _block_routine(True), _block_routine(False)
    with builder.if_then(builder.icmp_signed(">", blocks, I64(0))):
        two.call(e, I64(TILE_ROWS), a, lda, blocks, b, depth, panels, c, ldc, taps, line)
    with builder.if_then(builder.icmp_signed(">", more, I64(0))):
        two.call(e, more, a_rest, lda, I64(1), b, depth, panels, c_rest, ldc, taps, line)
    has_one = builder.and_(builder.icmp_signed(">", rest, I64(0)), builder.icmp_signed("<=", more, I64(0)))
    with builder.if_then(has_one):
        one.call(e, rest, a_rest, lda, I64(1), b, depth, panels, c_rest, ldc, taps, line)


TILE_ROUTINES: dict[tuple[int, ...], Routine] = (
    {(TILES,): Routine("tiles", 10, _write)} if TILES in PRODUCT_KINDS else {}
)
convolve = Routine("convolve", 11, chosen(TILE_ROUTINES)).intrinsic()
"""convolve(numbers, a, lda, rows, b, depth, panels, c, ldc, taps, line): C = the sum over taps * taps products.

As `multiply` with TILES, except that A is multiplied `taps` times from the address on, each time a row further, that
again `taps` times, each time `line` bytes further, by as many matrices of `depth` words in each panel of B. Nothing is
done for other numbers.
"""


def write_product(e: Emitter, *arguments: Any) -> None:
    """Write a product of matrices, without the first argument of `multiply`."""
    TILE_ROUTINES[TILES,].call(e, *arguments, I64(1), I64(0))


def halve(panels: FloatArray) -> FloatArray:
    """Return panels [..., depth, PANEL] of floats as pairs of bfloats [..., depth / 2, PANEL] in an array of floats."""
    bits = np.ascontiguousarray(panels).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + (bits >> 16 & np.uint32(1))) >> 16).astype(np.uint16)
    *lead, depth, columns = panels.shape
    pairs = np.swapaxes(rounded.reshape(*lead, depth // 2, 2, columns), -1, -2)
    return np.ascontiguousarray(pairs).view(np.float32)[..., 0]
