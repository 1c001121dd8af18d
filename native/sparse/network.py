"""Sparse networks, made for processors and for one position at a time.

The first layer is a sum of table rows, one for each thing that is there; the sum is clipped to [0, 1] and squared. Its
first part goes through two small layers to the value, to which each row adds a number of its own; the second part is
multiplied with a sum of three rows for each legal move, which gives the logit of that move. Of a policy with thousands
of labels only what is legal is computed. (Efficiently updatable networks: Nasu 2018; from scratch at every leaf, with
output rows by move, as in Monty, 2024.)

Sums and products are of 16-bit integers, scaled so that none can overflow, whatever the position (nets/sparse.py).
What is computed is so exactly the same on every processor but for the last layers, in fp32.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from native.bits import U
from native.forward.emit import HAS_PAIRS, I16, I32, INT_VECTOR, PAIR_VECTOR, SHORT_VECTOR, WIDTH, Emitter, Routine
from native.jit import kernel

ONE_BITS = 9
ONE = 1 << ONE_BITS
"""1 in the first layer's sums."""
SQUARED_BITS = 12
"""1 in its squared, clipped outputs is 1 << SQUARED_BITS."""
HIDDEN, LAST = 16, 32
"""Units of the two layers before the value."""
LANES = 2 * WIDTH
"""16-bit integers of a vector."""
CHUNK = 4
"""Vectors of the first layer that are added up side by side, in registers."""
WIDTH_STEP = 128
"""V and P are multiples of it, on all processors."""


class SparseNetwork(NamedTuple):
    """The numbers of a network. F rows, V units for the value and P for the policy, M rows of moves."""

    rows: Any
    """int16[F, V + P], by ONE"""
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
    """int16[M, P]"""
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


def _pairs(number: int) -> Any:
    return ir.Constant(PAIR_VECTOR, [number] * LANES)


def _write_first_layer(  # type: ignore[no-untyped-def]
    e: Emitter, units, table, row_bytes, active, count, bias, width
) -> None:
    """Write the clipped, squared sums of a bias and of the rows that `active` (uint16) names."""
    load = ir.IRBuilder.load
    pair_bytes = 2 * LANES
    with e.loop(width, CHUNK * LANES) as chunks:
        first = e.times(chunks.index, 2)
        begin = [e.load(e.at(bias, first, i * pair_bytes), PAIR_VECTOR) for i in range(CHUNK)]
        with e.loop(count, 1, begin, may_be_empty=True) as rows:
            place = e.ir.inttoptr(e.at(active, e.times(rows.index, 2)), I16.as_pointer())
            number = e.ir.zext(load(e.ir, place, align=2), row_bytes.type)
            row = e.at(table, e.ir.mul(number, row_bytes), first)
            loaded = [e.load(e.at(row, i * pair_bytes), PAIR_VECTOR) for i in range(CHUNK)]
            rows.results = [e.ir.add(*each) for each in zip(rows.values, loaded, strict=True)]
        for i, total in enumerate(rows.results):
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


def _write_product(e: Emitter, product: Any, units: Any, width: Any, *rows: Any) -> None:
    """Write the product (int32) of units and the sum of some rows, of `width` 16-bit integers each."""
    zero = ir.Constant(INT_VECTOR, [0] * WIDTH)
    step = 2 if len(rows) == 1 else 1
    with e.loop(width, step * LANES, [zero] * step) as loop:
        loop.results = []
        for i in range(step):
            place = e.at(e.times(loop.index, 2), 2 * i * LANES) if i else e.times(loop.index, 2)
            total, *others = [e.load(e.at(row, place), PAIR_VECTOR) for row in rows]
            for other in others:
                total = e.ir.add(total, other)
            loop.results.append(_add_products(e, e.load(e.at(units, place), PAIR_VECTOR), total, loop.values[i]))
    total = loop.results[0] if step == 1 else e.ir.add(*loop.results)
    summed = e.ir.module.globals.get(f"llvm.vector.reduce.add.v{WIDTH}i32") or ir.Function(
        e.ir.module, ir.FunctionType(I32, [INT_VECTOR]), f"llvm.vector.reduce.add.v{WIDTH}i32"
    )
    e.ir.store(e.ir.call(summed, [total]), e.ir.inttoptr(product, I32.as_pointer()), align=4)


_first_layer = Routine("sparse_first_layer", 7, _write_first_layer).intrinsic()
_product = Routine("sparse_product", 4, _write_product).intrinsic()
_move_product = Routine("sparse_move_product", 6, _write_product).intrinsic()


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
        2 * width,
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
def move_logit(network, scratch, a, b, c):  # type: ignore[no-untyped-def]
    """Return the logit of the move with rows a, b and c, after `first_layer`."""
    width = network.moves.shape[1]
    units = scratch.units.ctypes.data + 2 * np.int64(network.hidden.shape[1])
    table, row = network.moves.ctypes.data, 2 * width
    product = scratch.product
    place_a, place_b, place_c = table + row * np.int64(a), table + row * np.int64(b), table + row * np.int64(c)
    _move_product(product.ctypes.data, units, width, place_a, place_b, place_c)
    bias = network.move_bias[a] + network.move_bias[b] + network.move_bias[c]
    return np.float32(product[U(0)]) * network.scales[U(1)] + bias
