"""Sparse networks, for processors and one position at a time.

    units = min(max(sum of the rows of the position's features, 0), 1) ** 2              [V + P]
    value logit = out(layers(units[:V])) + sum of `direct` of the features
    logit of a move = units[V:] . (sum of the move's rows)                               legal moves only

Sources: efficiently updatable networks (Nasu 2018), here computed for every leaf, with output rows by move as in Monty,
2024.
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

# Sums and products are of integers that cannot overflow (nets/definitions/sparse.py): 16 bits in the first layer and
# for the value, 8 bits for moves and for the rows of both tables. All layers except the last (float32) are identical on
# every processor.

ONE_BITS = 8
ONE = 1 << ONE_BITS  # 1.0 in the sums of the first layer
SQUARED_BITS = 12  # 1.0 in its outputs is 1 << SQUARED_BITS
BYTE_ONE = 255  # 1.0 in the outputs that are multiplied with moves
HIDDEN, LAST = 16, 32  # units of the two layers before the value
LANES = 2 * WIDTH  # 16-bit integers of a vector
CHUNK = 4  # vectors of rows that are added in parallel, in registers
WIDTH_STEP = 128  # V and P are multiples of this, on all processors


class SparseNetwork(NamedTuple):
    """The weights of a network: F feature rows, V units for the value, P units for the policy, M move rows."""

    rows: Any  # int8[F, V + P], in 1 / ONE
    bias: Any  # int16[V + P], in 1 / ONE
    direct: Any  # float32[F]: part of the value's logit
    hidden: Any  # int16[V // 2, HIDDEN, 2]: weights by pair of inputs and unit
    hidden_bias: Any  # float32[HIDDEN]
    last: Any  # float32[HIDDEN, LAST]
    last_bias: Any  # float32[LAST]
    out: Any  # float32[LAST + 1]: weights of the value's logit, then its bias
    moves: Any  # int8[M, P]
    move_bias: Any  # float32[M]
    scales: Any  # float32[2]: scales of products of `hidden` and of `moves` with units


class SparseScratch(NamedTuple):
    units: Any  # int16[V + P]: outputs of the first layer, in 1 / (1 << SQUARED_BITS)
    move_units: Any  # uint8[P]: the part for moves, in 1 / BYTE_ONE
    hidden: Any  # float32[HIDDEN]
    value: Any  # float32[1]: output of the last layer
    products: Any  # int32[moves]
    logits: Any  # float32[moves]: result of `move_logits`


def network_of(tensors: Mapping[str, Any]) -> SparseNetwork:
    """Return the network of a file's tensors (yomi.nets.sparse), in which `hidden` is [HIDDEN, V]."""
    pairs = tensors["hidden"].reshape(HIDDEN, -1, 2).transpose(1, 0, 2)
    return SparseNetwork(**{**tensors, "hidden": np.ascontiguousarray(pairs)})


def make_scratch(network: SparseNetwork, moves: int) -> SparseScratch:
    """Return working memory for a network and positions with at most `moves` legal moves, at least one."""
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
    place = e.ir.inttoptr(e.at(numbers, e.times(index, 2)), I16.as_pointer())
    number = e.ir.zext(e.ir.load(place, align=2), row_bytes.type)
    return e.at(table, e.ir.mul(number, row_bytes))


def _add_rows(e: Emitter, begin: list[Any], table: Any, row_bytes: Any, numbers: Any, count: Any) -> list[Any]:
    """Return the vectors `begin` plus the sums of rows of 8-bit integers (`_row`)."""
    with e.loop(count, 1, begin, may_be_empty=True) as rows:
        row = _row(e, table, row_bytes, numbers, rows.index)
        wide = [e.ir.sext(e.load(e.at(row, i * LANES), BYTE_VECTOR), PAIR_VECTOR) for i in range(CHUNK)]
        rows.results = [e.ir.add(*each) for each in zip(rows.values, wide, strict=True)]
    return list(rows.results)


def _write_first_layer(e: Emitter, units: Any, table: Any, active: Any, count: Any, bias: Any, width: Any) -> None:
    """Write the clipped, squared sums of a bias and of the rows `active` (uint16)."""
    pair_bytes = 2 * LANES
    with e.loop(width, CHUNK * LANES) as chunks:
        first = e.times(chunks.index, 2)
        begin = [e.load(e.at(bias, first, i * pair_bytes), PAIR_VECTOR) for i in range(CHUNK)]
        for i, total in enumerate(_add_rows(e, begin, e.at(table, chunks.index), width, active, count)):
            total = e.ir.select(e.ir.icmp_signed(">", total, _pairs(0)), total, _pairs(0))
            total = e.ir.select(e.ir.icmp_signed("<", total, _pairs(ONE)), total, _pairs(ONE))
            # The upper halves of products of 16-bit integers take one instruction.
            wide = e.ir.zext(e.ir.shl(total, _pairs((16 + SQUARED_BITS) // 2 - ONE_BITS)), ir.VectorType(I32, LANES))
            upper = e.ir.lshr(e.ir.mul(wide, wide), ir.Constant(wide.type, [16] * LANES))
            e.store(e.ir.trunc(upper, PAIR_VECTOR), e.at(units, first, i * pair_bytes))
        chunks.results = []


def _add_products(e: Emitter, a: Any, b: Any, total: Any) -> Any:
    """Return int32 total plus the pairwise sums of products of two vectors of 16-bit integers."""
    if HAS_PAIRS:
        return e.add_products_of_pairs(a, b, total)
    for half in range(2):
        places = ir.Constant(INT_VECTOR, [2 * i + half for i in range(WIDTH)])
        parts = [e.ir.shuffle_vector(each, ir.Constant(PAIR_VECTOR, ir.Undefined), places) for each in (a, b)]
        wide = [e.ir.sext(e.ir.bitcast(each, SHORT_VECTOR), INT_VECTOR) for each in parts]
        total = e.ir.add(total, e.ir.mul(*wide))
    return total


def _write_sum(e: Emitter, total: Any, product: Any) -> None:
    """Write the sum of a vector of integers to the address of an int32."""
    name = f"llvm.vector.reduce.add.v{WIDTH}i32"
    summed = e.ir.module.globals.get(name) or ir.Function(e.ir.module, ir.FunctionType(I32, [INT_VECTOR]), name)
    e.ir.store(e.ir.call(summed, [total]), e.ir.inttoptr(product, I32.as_pointer()), align=4)


def _activated(e: Emitter, sums: Any) -> Any:
    clipped = e.minimum(e.maximum(sums, e.splat(0.0)), e.splat(1.0))
    return e.mul(clipped, clipped)


def _write_hidden(e: Emitter, outputs: Any, units: Any, width: Any, hidden: Any, scale: Any, bias: Any) -> None:
    """Write the outputs (float32[HIDDEN]) of the layer after `width` units."""
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
    """Write the value's logit (float32) without bias, from the outputs `hidden`."""
    vectors = LAST // WIDTH
    sums = [e.load(e.at(bias, 4 * WIDTH * v)) for v in range(vectors)]
    for h in range(HIDDEN):
        x = e.broadcast(e.at(hidden, 4 * h))
        sums = [e.fma(x, e.load(e.at(last, 4 * (LAST * h + WIDTH * v))), total) for v, total in enumerate(sums)]
    products = [e.mul(_activated(e, total), e.load(e.at(out, 4 * WIDTH * v))) for v, total in enumerate(sums)]
    e.ir.store(e.sum_of(functools.reduce(e.add, products)), e.ir.inttoptr(value, F32.as_pointer()), align=4)


def _write_bytes(e: Emitter, narrow: Any, units: Any, width: Any) -> None:
    """Convert outputs of the first layer from int16 (1.0 is 1 << SQUARED_BITS) to uint8 (1.0 is BYTE_ONE), rounded."""
    with e.loop(width, LANES) as parts:
        wide = e.load(e.at(units, e.times(parts.index, 2)), PAIR_VECTOR)
        less = e.ir.sub(e.ir.add(wide, _pairs(8)), e.ir.lshr(wide, _pairs(8)))  # times 255 / 256, plus half a step
        e.store(e.ir.trunc(e.ir.lshr(less, _pairs(SQUARED_BITS - 8)), BYTE_VECTOR), e.at(narrow, parts.index))
        parts.results = []


def _write_move_products(
    e: Emitter, products: Any, units: Any, table: Any, rows: Any, parts: Any, moves: Any, width: Any
) -> None:
    """Write the products (int32) of 8-bit units and each move's sum of rows.

    `rows` (uint16) holds `parts` row numbers per move.
    """
    # All moves in one loop: rows come from far, and the processor can fetch the next moves' rows in advance.
    with e.loop(moves, 1) as each:
        own = e.at(rows, e.ir.mul(each.index, e.times(parts, 2)))
        total = _move_product(e, units, table, own, parts, width)
        _write_sum(e, total, e.at(products, e.times(each.index, 4)))
        each.results = []


def _move_product(e: Emitter, units: Any, table: Any, rows: Any, count: Any, width: Any) -> Any:
    """Return a vector whose elements sum to the dot product of the units with the sum of a move's rows."""
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
    """Write scratch.units and scratch.move_units from the position's rows, `active` (uint16[count])."""
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
    """Return the value's logit for the side to move, after `first_layer` with the same arguments."""
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
    # Four sums: in a single sum each addition would wait for the one before.
    sums = (np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0))
    for k in range(U(count)):
        sums = (sums[1], sums[2], sums[3], sums[0] + network.direct[U(active[k])])
    return scratch.value[U(0)] + network.out[U(LAST)] + ((sums[0] + sums[1]) + (sums[2] + sums[3]))


@kernel
def move_logits(network, rows, parts, moves, scratch):  # type: ignore[no-untyped-def]
    """Write the logits of moves into scratch.logits, after `first_layer`.

    Args:
        network: a SparseNetwork.
        rows: uint16[>= moves * parts], the rows of each move.
        parts: number of rows of a move.
        moves: number of moves.
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
