"""Sparse networks, made for processors and for one position at a time.

The first layer is a sum of table rows, one for each thing that is there; the sum is clipped to [0, 1] and squared. Its
first part goes through two small layers to the value, to which each row adds a number of its own; the second part is
multiplied with a sum of some rows for each legal move, which gives the logit of that move. Of a policy with thousands
of labels only what is legal is computed. (Efficiently updatable networks: Nasu 2018; from scratch at every leaf, with
output rows by move, as in Monty, 2024.)

Sums and products are of 16-bit integers, scaled so that none can overflow, whatever the position
(nets/definitions/sparse_export.py); the rows of both tables, most of a network, have 8 bits. What is computed is so
exactly the same on every processor but for the last layers, in fp32.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from native.bits import U
from native.forward.emit import HAS_PAIRS, I16, I32, INT_VECTOR, PAIR_VECTOR, SHORT_VECTOR, WIDTH, Emitter, Routine
from native.jit import kernel

ONE_BITS = 8
ONE = 1 << ONE_BITS
"""1 in the first layer's sums."""
SQUARED_BITS = 12
"""1 in its squared, clipped outputs is 1 << SQUARED_BITS."""
HIDDEN, LAST = 16, 32
"""Units of the two layers before the value."""
LANES = 2 * WIDTH
"""16-bit integers of a vector."""
CHUNK = 4
"""Vectors of rows that are added up side by side, in registers."""
WIDTH_STEP = 128
"""V and P are multiples of it, on all processors."""


class SparseNetwork(NamedTuple):
    """The numbers of a network. F rows, V units for the value and P for the policy, M rows of moves."""

    rows: Any
    """int8[F, V + P], by ONE"""
    bias: Any
    """int16[V + P], by ONE"""
    direct: Any
    """float32[F]: what each row adds to the value's logit"""
    hidden: Any
    """int16[HIDDEN, V]"""
    hidden_bias: Any
    """float32[HIDDEN]"""
    last: Any
    """float32[HIDDEN, LAST]"""
    last_bias: Any
    """float32[LAST]"""
    out: Any
    """float32[LAST + 1]: weights of the value's logit, and its bias"""
    moves: Any
    """int8[M, P]"""
    move_bias: Any
    """float32[M]"""
    scales: Any
    """float32[2]: of products with `hidden` and with `moves`"""


class SparseScratch(NamedTuple):
    """Working memory of one thread."""

    units: Any
    """int16[V + P]: the first layer's outputs, by 1 << SQUARED_BITS"""
    layer: Any
    """float32[LAST]"""
    product: Any
    """int32[1]"""


def make_scratch(network: SparseNetwork) -> SparseScratch:
    """Return working memory for a network."""
    return SparseScratch(np.zeros(network.bias.size, np.int16), np.zeros(LAST, np.float32), np.zeros(1, np.int32))


BYTE_VECTOR = ir.VectorType(ir.IntType(8), LANES)


def _pairs(number: int) -> Any:
    return ir.Constant(PAIR_VECTOR, [number] * LANES)


def _add_rows(e: Emitter, begin: list[Any], table: Any, row_bytes: Any, numbers: Any, count: Any) -> list[Any]:
    """Return vectors of sums, from those at the beginning on: of the rows that `numbers` (uint16) names.

    The parts of rows that are added up, 8-bit integers, begin at `table`, `row_bytes` apart.
    """
    with e.loop(count, 1, begin, may_be_empty=True) as rows:
        place = e.ir.inttoptr(e.at(numbers, e.times(rows.index, 2)), I16.as_pointer())
        number = e.ir.zext(e.ir.load(place, align=2), row_bytes.type)
        row = e.at(table, e.ir.mul(number, row_bytes))
        wide = [e.ir.sext(e.load(e.at(row, i * LANES), BYTE_VECTOR), PAIR_VECTOR) for i in range(CHUNK)]
        rows.results = [e.ir.add(*each) for each in zip(rows.values, wide, strict=True)]
    return list(rows.results)


def _write_first_layer(e: Emitter, units: Any, table: Any, active: Any, count: Any, bias: Any, width: Any) -> None:
    """Write the clipped, squared sums of a bias and of the rows that `active` (uint16) names."""
    pair_bytes = 2 * LANES
    with e.loop(width, CHUNK * LANES) as chunks:
        first = e.times(chunks.index, 2)
        begin = [e.load(e.at(bias, first, i * pair_bytes), PAIR_VECTOR) for i in range(CHUNK)]
        for i, total in enumerate(_add_rows(e, begin, e.at(table, chunks.index), width, active, count)):
            total = e.ir.select(e.ir.icmp_signed(">", total, _pairs(0)), total, _pairs(0))
            total = e.ir.select(e.ir.icmp_signed("<", total, _pairs(ONE)), total, _pairs(ONE))
            # the upper halves of products of 16-bit integers are one instruction
            wide = e.ir.zext(e.ir.shl(total, _pairs((16 + SQUARED_BITS) // 2 - ONE_BITS)), ir.VectorType(I32, LANES))
            upper = e.ir.lshr(e.ir.mul(wide, wide), ir.Constant(wide.type, [16] * LANES))
            e.store(e.ir.trunc(upper, PAIR_VECTOR), e.at(units, first, i * pair_bytes))
        chunks.results = []


def _add_products(e: Emitter, a: Any, b: Any, total: Any) -> Any:
    """Return a vector of integers plus the products of two vectors of 16-bit integers, added up by pairs."""
    if HAS_PAIRS:
        return e.add_products_of_pairs(a, b, total)
    for half in range(2):
        places = ir.Constant(INT_VECTOR, [2 * i + half for i in range(WIDTH)])
        parts = [e.ir.shuffle_vector(each, ir.Constant(PAIR_VECTOR, ir.Undefined), places) for each in (a, b)]
        wide = [e.ir.sext(e.ir.bitcast(each, SHORT_VECTOR), INT_VECTOR) for each in parts]
        total = e.ir.add(total, e.ir.mul(*wide))
    return total


def _write_sum(e: Emitter, total: Any, product: Any) -> None:
    """Write the sum of a vector's integers to the address of an int32."""
    name = f"llvm.vector.reduce.add.v{WIDTH}i32"
    summed = e.ir.module.globals.get(name) or ir.Function(e.ir.module, ir.FunctionType(I32, [INT_VECTOR]), name)
    e.ir.store(e.ir.call(summed, [total]), e.ir.inttoptr(product, I32.as_pointer()), align=4)


def _write_product(e: Emitter, product: Any, units: Any, width: Any, row: Any) -> None:
    """Write the product (int32) of units and a row, of `width` 16-bit integers each."""
    zero = ir.Constant(INT_VECTOR, [0] * WIDTH)
    with e.loop(width, 2 * LANES, [zero] * 2) as loop:
        loop.results = []
        for i in range(2):
            place = e.at(e.times(loop.index, 2), 2 * i * LANES)
            a, b = (e.load(e.at(each, place), PAIR_VECTOR) for each in (units, row))
            loop.results.append(_add_products(e, a, b, loop.values[i]))
    _write_sum(e, e.ir.add(*loop.results), product)


def _write_move_product(e: Emitter, product: Any, units: Any, table: Any, rows: Any, count: Any, width: Any) -> None:
    """Write the product (int32) of units and the sum of the rows of a table that `rows` (uint16) names."""
    zeros = [ir.Constant(PAIR_VECTOR, [0] * LANES)] * CHUNK
    with e.loop(width, CHUNK * LANES, [ir.Constant(INT_VECTOR, [0] * WIDTH)]) as chunks:
        first = e.times(chunks.index, 2)
        sums = _add_rows(e, zeros, e.at(table, chunks.index), width, rows, count)
        total = chunks.values[0]
        for i, each in enumerate(sums):
            total = _add_products(e, e.load(e.at(units, first, 2 * i * LANES), PAIR_VECTOR), each, total)
        chunks.results = [total]
    _write_sum(e, chunks.results[0], product)


_first_layer = Routine("sparse_first_layer", 6, _write_first_layer).intrinsic()
_product = Routine("sparse_product", 4, _write_product).intrinsic()
_move_product = Routine("sparse_move_product", 6, _write_move_product).intrinsic()


@kernel
def first_layer(network, active, count, scratch):  # type: ignore[no-untyped-def]
    """Write scratch.units for a position.

    Args:
        network: a SparseNetwork.
        active: uint16[count], the position's rows.
        count: how many.
        scratch: a SparseScratch.
    """
    width = network.bias.size
    _first_layer(
        scratch.units.ctypes.data,
        network.rows.ctypes.data,
        active.ctypes.data,
        count,
        network.bias.ctypes.data,
        width,
    )


@kernel
def value_logit(network, active, count, scratch):  # type: ignore[no-untyped-def]
    """Return the logit of the value for the side to move, after `first_layer`, whose arguments these are."""
    layer, product = scratch.layer, scratch.product
    wide = network.hidden.shape[1]
    for i in range(U(LAST)):
        layer[i] = network.last_bias[i]
    for h in range(U(HIDDEN)):
        place = network.hidden.ctypes.data + 2 * wide * np.int64(h)
        _product(product.ctypes.data, scratch.units.ctypes.data, wide, place)
        x = np.float32(product[U(0)]) * network.scales[U(0)] + network.hidden_bias[h]
        x = min(max(x, np.float32(0.0)), np.float32(1.0))
        x *= x
        for i in range(U(LAST)):
            layer[i] += x * network.last[h, i]
    logit = network.out[U(LAST)]
    for i in range(U(LAST)):
        x = min(max(layer[i], np.float32(0.0)), np.float32(1.0))
        logit += x * x * network.out[i]
    for k in range(U(count)):
        logit += network.direct[U(active[k])]
    return logit


@kernel
def move_logit(network, rows, count, scratch):  # type: ignore[no-untyped-def]
    """Return the logit of a move, after `first_layer`.

    Args:
        network: a SparseNetwork.
        rows: uint16[count], the move's rows.
        count: how many.
        scratch: a SparseScratch.
    """
    _move_product(
        scratch.product.ctypes.data,
        scratch.units.ctypes.data + 2 * np.int64(network.hidden.shape[1]),
        network.moves.ctypes.data,
        rows.ctypes.data,
        count,
        network.moves.shape[1],
    )
    logit = np.float32(scratch.product[U(0)]) * network.scales[U(1)]
    for k in range(U(count)):
        logit += network.move_bias[U(rows[k])]
    return logit
