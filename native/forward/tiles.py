"""Matrix products and 3x3 convolutions of bfloats with tiles (Intel's AMX): registers of 16 rows of 64 bytes.

B is packed as in `yomi.native.forward.gemm`, in words of two bfloats that are neighbors along the depth: 16 rows of
half a panel are a tile.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from yomi.native.forward.emit import FLOAT_BYTES, I8, I64, PRODUCT_KINDS, TILES, Emitter, Routine, chosen

# A block has two tiles of rows and two of columns. Its four sums stay in tiles during the loop over the depth.

FloatArray: TypeAlias = npt.NDArray[np.float32]

TILE_ROWS = 16
TILE_BYTES = 64
TILE_WORDS = TILE_BYTES // FLOAT_BYTES
_PANEL_BYTES = 2 * TILE_BYTES
# Bytes of a configuration: the number of rows, and of bytes per row, of each tile.
_CONFIGURATION = 64
# Tile numbers: sums by row and column, rows of A, columns of B. The second tiles of rows may be shorter.
_SUMS, _LEFT, _RIGHT = ((0, 1), (2, 3)), (4, 5), (6, 7)


def _configurations() -> ir.Constant:
    """Return configurations for second tiles of 1 to 16 rows, joined."""
    table = np.zeros((TILE_ROWS, _CONFIGURATION), np.uint8)
    table[:, 0] = 1  # the palette
    for tile in range(8):
        table[:, 16 + 2 * tile] = TILE_BYTES
        table[:, 48 + tile] = TILE_ROWS
    for tile in (*_SUMS[1], _LEFT[1]):
        table[:, 48 + tile] = np.arange(1, TILE_ROWS + 1)
    return ir.Constant(ir.ArrayType(I8, table.size), bytearray(table.tobytes()))


def _configure(e: Emitter, rows: Any) -> None:
    """Set the number of rows of the second tiles."""
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
    """Return the routine for blocks of 16 + `rows` rows (`whole`), or of `rows` rows.

    Arguments: `rows`, then the arguments of `convolve`, with the number of blocks in place of its rows.
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
        # Bytes from the first tile of rows to the second.
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
    """Distribute the rows over blocks of 32 and one block for the rest."""
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
# convolve(numbers, a, lda, rows, b, depth, panels, c, ldc, taps, line): C = the sum of taps * taps products.
#
#     C = sum over i, j < taps of A(a + i * line + j * lda) @ B(i, j)
#
# Arguments as of `multiply` with TILES. Each panel of B holds taps * taps matrices of `depth` words. Does nothing for
# other numbers.
convolve = Routine("convolve", 11, chosen(TILE_ROUTINES)).intrinsic()


def write_product(e: Emitter, *arguments: Any) -> None:
    """Write a matrix product, with the arguments of `multiply` after the first."""
    TILE_ROUTINES[TILES,].call(e, *arguments, I64(1), I64(0))


def halve(panels: FloatArray) -> FloatArray:
    """Return panels [..., depth, PANEL] as pairs of bfloats [..., depth / 2, PANEL], viewed as float32."""
    bits = np.ascontiguousarray(panels).view(np.uint32)
    # Rounds to nearest, ties to even.
    rounded = ((bits + np.uint32(0x7FFF) + (bits >> 16 & np.uint32(1))) >> 16).astype(np.uint16)
    *lead, depth, columns = panels.shape
    pairs = np.swapaxes(rounded.reshape(*lead, depth // 2, 2, columns), -1, -2)
    return np.ascontiguousarray(pairs).view(np.float32)[..., 0]
