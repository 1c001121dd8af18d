"""Sparse networks, made for processors and for one position at a time.

The first layer is a sum of table rows, one for each thing that is there; the sum is clipped to [0, 1] and squared. Its
first part goes through two small layers to the value, to which each row adds a number of its own; the second part is
multiplied with a sum of some rows for each legal move, which gives the logit of that move. Of a policy with thousands
of labels only what is legal is computed. (Efficiently updatable networks: Nasu 2018; from scratch at every leaf, with
output rows by move, as in Monty, 2024.)

Sums and products are of integers, scaled so that none can overflow, whatever the position
(nets/definitions/sparse_export.py): 16 bits in the first layer and for the value, 8 for moves and for the rows of both
tables, most of a network. What is computed is so exactly the same on every processor but for the last layers, in fp32.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from yomi.native.bits import U
from yomi.native.forward.emit import (
    F32,
    HAS_DOT_PRODUCTS,
    HAS_PAIRS,
    I16,
    I32,
    INT_VECTOR,
    PAIR_VECTOR,
    SHORT_VECTOR,
    WIDTH,
    Emitter,
    Routine,
)
from yomi.native.jit import kernel

ONE_BITS = 8
ONE = 1 << ONE_BITS
"""1 in the first layer's sums."""
SQUARED_BITS = 12
"""1 in its squared, clipped outputs is 1 << SQUARED_BITS."""
BYTE_ONE = 255
"""1 in those that are multiplied with moves."""
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
    """int16[V // 2, HIDDEN, 2]: for each pair of the first layer's outputs a pair of weights in each unit"""
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
    """float32[2]: of products of `hidden` and of `moves` with outputs of which 1 is 1 << SQUARED_BITS"""


class SparseScratch(NamedTuple):
    """Working memory of one thread."""

    units: Any
    """int16[V + P]: the first layer's outputs, by 1 << SQUARED_BITS"""
    move_units: Any
    """uint8[P]: those for moves, by BYTE_ONE"""
    hidden: Any
    """float32[HIDDEN]: outputs of the layer behind them"""
    value: Any
    """float32[1]: what the last layer says"""
    products: Any
    """int32[moves]"""
    logits: Any
    """float32[moves]: `move_logits` writes them"""


def network_of(tensors: Mapping[str, Any]) -> SparseNetwork:
    """Return the network of a file's tensors (yomi.nets.sparse.file), in which `hidden` lies unit by unit, [HIDDEN,
    V].
    """
    pairs = tensors["hidden"].reshape(HIDDEN, -1, 2).transpose(1, 0, 2)
    return SparseNetwork(**{**tensors, "hidden": np.ascontiguousarray(pairs)})


def make_scratch(network: SparseNetwork, moves: int) -> SparseScratch:
    """Return working memory for a network and positions of at most so many legal moves, one at least."""
    return SparseScratch(
        np.zeros(network.bias.size, np.int16),
        np.zeros(network.moves.shape[1], np.uint8),
        np.zeros(HIDDEN, np.float32),
        np.zeros(1, np.float32),
        np.zeros(moves, np.int32),
        np.zeros(moves, np.float32),
    )


BYTE_VECTOR = ir.VectorType(ir.IntType(8), LANES)


def _pairs(number: int) -> Any:
    return ir.Constant(PAIR_VECTOR, [number] * LANES)


def _row(e: Emitter, table: Any, row_bytes: Any, numbers: Any, index: Any) -> Any:
    """Return the address of the row that `numbers` (uint16) names there; the rows of `table` lie `row_bytes` apart."""
    place = e.ir.inttoptr(e.at(numbers, e.times(index, 2)), I16.as_pointer())
    number = e.ir.zext(e.ir.load(place, align=2), row_bytes.type)
    return e.at(table, e.ir.mul(number, row_bytes))


def _add_rows(e: Emitter, begin: list[Any], table: Any, row_bytes: Any, numbers: Any, count: Any) -> list[Any]:
    """Return vectors of sums, from those at the beginning on, of rows of 8-bit integers: see `_row`."""
    with e.loop(count, 1, begin, may_be_empty=True) as rows:
        row = _row(e, table, row_bytes, numbers, rows.index)
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


def _activated(e: Emitter, sums: Any) -> Any:
    """Return a vector of floats clipped to [0, 1] and squared."""
    clipped = e.minimum(e.maximum(sums, e.splat(0.0)), e.splat(1.0))
    return e.mul(clipped, clipped)


def _write_hidden(e: Emitter, outputs: Any, units: Any, width: Any, hidden: Any, scale: Any, bias: Any) -> None:
    """Write the outputs (float32[HIDDEN]) of the layer behind `width` units."""
    zero = ir.Constant(INT_VECTOR, [0] * WIDTH)
    vectors, side_by_side = HIDDEN // WIDTH, 4
    with e.loop(width, 2 * side_by_side, [zero] * (vectors * side_by_side)) as loop:
        for k in range(side_by_side):
            pair = e.broadcast_pair(e.at(units, e.times(loop.index, 2), 4 * k))
            weights = e.at(hidden, e.times(loop.index, 2 * HIDDEN), 4 * HIDDEN * k)
            for v in range(vectors):
                weight = e.load(e.at(weights, 4 * WIDTH * v), PAIR_VECTOR)
                loop.results.append(_add_products(e, pair, weight, loop.values[k * vectors + v]))
    for v in range(vectors):
        product = e.to_floats(functools.reduce(e.ir.add, loop.results[v::vectors]))
        place = 4 * WIDTH * v
        sums = e.fma(product, e.broadcast(scale), e.load(e.at(bias, place)))
        e.store(_activated(e, sums), e.at(outputs, place))


def _write_value(e: Emitter, value: Any, hidden: Any, last: Any, bias: Any, out: Any) -> None:
    """Write the product (float32) of the last layer's outputs, behind those of `hidden`, and their weights."""
    vectors = LAST // WIDTH
    sums = [e.load(e.at(bias, 4 * WIDTH * v)) for v in range(vectors)]
    for h in range(HIDDEN):
        x = e.broadcast(e.at(hidden, 4 * h))
        sums = [e.fma(x, e.load(e.at(last, 4 * (LAST * h + WIDTH * v))), total) for v, total in enumerate(sums)]
    products = [e.mul(_activated(e, total), e.load(e.at(out, 4 * WIDTH * v))) for v, total in enumerate(sums)]
    e.ir.store(e.sum_of(functools.reduce(e.add, products)), e.ir.inttoptr(value, F32.as_pointer()), align=4)


def _write_bytes(e: Emitter, narrow: Any, units: Any, width: Any) -> None:
    """Write outputs of the first layer by BYTE_ONE, rounded."""
    with e.loop(width, LANES) as parts:
        wide = e.load(e.at(units, e.times(parts.index, 2)), PAIR_VECTOR)
        less = e.ir.sub(e.ir.add(wide, _pairs(8)), e.ir.lshr(wide, _pairs(8)))  # 255 / 256 of it, and half a step
        e.store(e.ir.trunc(e.ir.lshr(less, _pairs(SQUARED_BITS - 8)), BYTE_VECTOR), e.at(narrow, parts.index))
        parts.results = []


def _write_move_products(
    e: Emitter, products: Any, units: Any, table: Any, rows: Any, parts: Any, moves: Any, width: Any
) -> None:
    """Write the products (int32) of units, of 8 bits, and each move's sum of rows of a table.

    `rows` (uint16) names those of the first move, `parts` of them, then those of the next. All moves at once: rows of
    the table come from far, and here nothing keeps the processor from asking for those of the next moves.
    """
    with e.loop(moves, 1) as each:
        own = e.at(rows, e.ir.mul(each.index, e.times(parts, 2)))
        total = _move_product(e, units, table, own, parts, width)
        _write_sum(e, total, e.at(products, e.times(each.index, 4)))
        each.results = []


def _move_product(e: Emitter, units: Any, table: Any, rows: Any, count: Any, width: Any) -> Any:
    """Return a vector whose sum is the product of units and the sum of the rows that `rows` names."""
    zero = ir.Constant(INT_VECTOR, [0] * WIDTH)
    with e.loop(width, CHUNK * LANES, [zero] * (CHUNK // 2)) as chunks:
        part, unit = e.at(table, chunks.index), e.at(units, chunks.index)
        if HAS_DOT_PRODUCTS:
            places = [4 * WIDTH * i for i in range(CHUNK // 2)]
            words = [e.load(e.at(unit, place), INT_VECTOR) for place in places]
            with e.loop(count, 1, chunks.values) as each:
                row = _row(e, part, width, rows, each.index)
                row_words = [e.load(e.at(row, place), INT_VECTOR) for place in places]
                factors = zip(words, row_words, each.values, strict=True)
                each.results = [e.add_products_of_bytes(a, b, total) for a, b, total in factors]
            chunks.results = list(each.results)
        else:
            chunks.results = list(chunks.values)
            for i, row in enumerate(_add_rows(e, [_pairs(0)] * CHUNK, part, width, rows, count)):
                wide = e.ir.zext(e.load(e.at(unit, LANES * i), BYTE_VECTOR), PAIR_VECTOR)
                chunks.results[i % 2] = _add_products(e, wide, row, chunks.results[i % 2])
    return functools.reduce(e.ir.add, chunks.results)


_first_layer = Routine("sparse_first_layer", 6, _write_first_layer).intrinsic()
_hidden = Routine("sparse_hidden", 6, _write_hidden).intrinsic()
_value = Routine("sparse_value", 5, _write_value).intrinsic()
_bytes = Routine("sparse_bytes", 3, _write_bytes).intrinsic()
_move_products = Routine("sparse_move_products", 7, _write_move_products).intrinsic()


@kernel
def first_layer(network, active, count, scratch):  # type: ignore[no-untyped-def]
    """Write scratch.units and scratch.move_units for a position.

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
    first = scratch.units.ctypes.data + 4 * np.int64(network.hidden.shape[0])
    _bytes(scratch.move_units.ctypes.data, first, network.moves.shape[1])


@kernel
def value_logit(network, active, count, scratch):  # type: ignore[no-untyped-def]
    """Return the logit of the value for the side to move, after `first_layer`, whose arguments these are."""
    _hidden(
        scratch.hidden.ctypes.data,
        scratch.units.ctypes.data,
        2 * network.hidden.shape[0],
        network.hidden.ctypes.data,
        network.scales.ctypes.data,
        network.hidden_bias.ctypes.data,
    )
    _value(
        scratch.value.ctypes.data,
        scratch.hidden.ctypes.data,
        network.last.ctypes.data,
        network.last_bias.ctypes.data,
        network.out.ctypes.data,
    )
    # four sums: one would wait for each addition before the next
    sums = (np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0))
    for k in range(U(count)):
        sums = (sums[1], sums[2], sums[3], sums[0] + network.direct[U(active[k])])
    return scratch.value[U(0)] + network.out[U(LAST)] + ((sums[0] + sums[1]) + (sums[2] + sums[3]))


@kernel
def move_logits(network, rows, parts, moves, scratch):  # type: ignore[no-untyped-def]
    """Write the logits of some moves into scratch.logits, after `first_layer`.

    Args:
        network: a SparseNetwork.
        rows: uint16[>= moves * parts], the rows of each move, one move after the other.
        parts: rows of a move.
        moves: how many.
        scratch: a SparseScratch.
    """
    _move_products(
        scratch.products.ctypes.data,
        scratch.move_units.ctypes.data,
        network.moves.ctypes.data,
        rows.ctypes.data,
        parts,
        moves,
        network.moves.shape[1],
    )
    scale = network.scales[U(1)] * np.float32((1 << SQUARED_BITS) / BYTE_ONE)
    for i in range(U(moves)):
        logit = np.float32(scratch.products[i]) * scale
        for k in range(U(parts)):
            logit += network.move_bias[U(rows[i * U(parts) + k])]
        scratch.logits[i] = logit
