"""Operations of the forward pass besides matrix products: scales, activations, pooling, the first convolution."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from yomi.native.forward.emit import (
    FLOAT_BYTES,
    I64,
    INT_VECTOR,
    INTEGERS,
    PRODUCT_KINDS,
    TILES,
    VECTOR,
    WIDTH,
    Emitter,
    Routine,
    chosen,
)


def _write_finish(
    e: Emitter,
    source: Any,
    source_point: Any,
    points: Any,
    channels: Any,
    scale: Any,
    shift: Any,
    floor: Any,
    target: Any,
    point: Any,
    residual: Any,
    stream: Any,
    units: Any,
) -> None:
    builder = e.ir
    with e.loop(points, 1) as row:
        first = e.at(source, builder.mul(row.index, source_point))
        target_offset = builder.mul(row.index, point)
        with e.loop(channels, WIDTH) as loop:
            offset = e.times(loop.index, FLOAT_BYTES)
            by, plus, least = (e.load(e.at(base, offset)) for base in (scale, shift, floor))
            where = e.at(offset, target_offset)
            plain = e.load(e.at(first, offset))
            with_floats = builder.block
            with builder.if_then(builder.icmp_signed("!=", units, I64(0))):
                integers = builder.bitcast(plain, INT_VECTOR)
                counted = e.mul(e.to_floats(integers), e.load(e.at(units, offset)))
                with_integers = builder.block
            value = builder.phi(VECTOR)
            value.add_incoming(counted, with_integers)
            value.add_incoming(plain, with_floats)
            without_residual = builder.block
            with builder.if_then(builder.icmp_signed("!=", residual, I64(0))):
                summed = e.add(value, e.load(e.at(residual, where)))
                with_residual = builder.block
            total = builder.phi(VECTOR)
            total.add_incoming(summed, with_residual)
            total.add_incoming(value, without_residual)
            with builder.if_then(builder.icmp_signed("!=", stream, I64(0))):
                e.store(total, e.at(stream, where))
            e.store(e.maximum(e.fma(total, by, plus), least), e.at(target, where))


# finish(source, source_point, points, channels, scale, shift, floor, target, point, residual, stream, units)
#
# For each point and channel: x = source [+ residual]; [stream = x]; target = max(x * scale + shift, floor). Scale,
# shift, floor and units are by channel. Points of target, residual and stream are `point` bytes apart; address 0
# leaves residual or stream out. With units the source holds 32-bit integers, which they multiply.
finish = Routine("finish", 12, _write_finish).intrinsic()


def _gather_routine(numbers: int) -> Routine:
    def body(e: Emitter, source: Any, point: Any, points: Any, channels: Any, factor: Any, target: Any) -> None:
        by = e.broadcast(factor) if numbers == INTEGERS else None
        number_bytes = FLOAT_BYTES // 2 if numbers else FLOAT_BYTES
        with e.loop(points, 1) as row:
            first = e.at(source, e.ir.mul(row.index, point))
            out = e.at(target, e.times(e.ir.mul(row.index, channels), number_bytes))
            with e.loop(channels, WIDTH) as loop:
                value = e.load(e.at(first, e.times(loop.index, FLOAT_BYTES)))
                where = e.at(out, e.times(loop.index, number_bytes))
                if numbers == INTEGERS:
                    e.store_rounded(value, by, where)
                elif numbers == TILES:
                    e.store_halves(value, where)
                else:
                    e.store(value, where)

    return Routine(f"gather_{numbers}", 6, body)


# gather(numbers, source, point, points, channels, factor, target): copy points that are `point` bytes apart.
#
# numbers: write FLOATS, 16-bit INTEGERS (times the float at `factor`), or bfloats for TILES. Does nothing if the
# processor lacks such products.
gather = Routine("gather", 7, chosen({(kind,): _gather_routine(kind) for kind in PRODUCT_KINDS})).intrinsic()


def _write_greatest(e: Emitter, source: Any, line: Any, point: Any, size: Any, channels: Any, target: Any) -> None:
    start = [ir.Constant(INT_VECTOR, None)]
    with e.loop(size, 1, start) as rows:
        row = e.at(source, e.ir.mul(rows.index, line))
        with e.loop(size, 1, rows.values) as columns:
            here = e.at(row, e.ir.mul(columns.index, point))
            with e.loop(channels, WIDTH, columns.values) as loop:
                bits = e.magnitude_bits(e.load(e.at(here, e.times(loop.index, FLOAT_BYTES))))
                is_more = e.ir.icmp_signed(">", bits, loop.values[0])
                loop.results = [e.ir.select(is_more, bits, loop.values[0])]
            columns.results = loop.results
        rows.results = columns.results
    e.store(e.greatest_of(rows.results[0]), target)


# greatest(source, line, point, size, channels, target): write the greatest magnitude in one map.
greatest = Routine("greatest", 6, _write_greatest).intrinsic()


_TERMS = 6  # of the series, after the first


def exponential(e: Emitter, x: Any) -> Any:
    """Return e**x for |x| <= 80, with a relative error below 3e-7."""
    # 2**n times a series for the rest, |rest| <= ln(2) / 2.
    builder = e.ir
    magic = e.splat(float(3 << 22))
    shifted = e.fma(x, e.splat(1.4426950408889634), magic)
    # Adding 1.5 * 2**23 rounds to an integer in the lowest bits. This must not be contracted.
    n = builder.fsub(shifted, magic)
    rest = e.fma(n, e.splat(-0.693145751953125), x)
    rest = e.fma(n, e.splat(-1.428606765330187e-06), rest)
    total = e.splat(1.0 / math.factorial(_TERMS))
    for k in reversed(range(_TERMS)):
        total = e.fma(total, rest, e.splat(1.0 / math.factorial(k)))
    power = builder.shl(builder.bitcast(shifted, INT_VECTOR), ir.Constant(INT_VECTOR, [23] * WIDTH))
    return builder.bitcast(builder.add(builder.bitcast(total, INT_VECTOR), power), VECTOR)


# Coefficients with the smallest relative error for |x| <= 1/2: below 8e-5.
_POWER = (0.99992813, 0.69326098, 0.24261027, 0.055171208)


def power_of_two(e: Emitter, x: Any) -> Any:
    """Return 2**x for |x| <= 120, with a relative error below 8e-5."""
    builder = e.ir
    magic = e.splat(float(3 << 22))
    shifted = builder.fadd(x, magic)  # as in `exponential`
    rest = builder.fsub(x, builder.fsub(shifted, magic))
    total = e.splat(_POWER[-1])
    for factor in reversed(_POWER[:-1]):
        total = e.fma(total, rest, e.splat(factor))
    power = builder.shl(builder.bitcast(shifted, INT_VECTOR), ir.Constant(INT_VECTOR, [23] * WIDTH))
    return builder.bitcast(builder.add(builder.bitcast(total, INT_VECTOR), power), VECTOR)


def clamped(e: Emitter, x: Any, limit: float) -> Any:
    return e.maximum(e.minimum(x, e.splat(limit)), e.splat(-limit))


def _write_silu(e: Emitter, address: Any, point: Any, points: Any, channels: Any) -> None:
    with e.loop(points, 1) as row:
        first = e.at(address, e.ir.mul(row.index, point))
        with e.loop(channels, WIDTH) as loop:
            here = e.at(first, e.times(loop.index, FLOAT_BYTES))
            x = e.load(here)
            power = exponential(e, clamped(e, x, 80.0))
            e.store(e.ir.fdiv(e.mul(x, power), e.add(power, e.splat(1.0))), here)


def _write_sigmoid(e: Emitter, address: Any, point: Any, points: Any, channels: Any) -> None:
    with e.loop(points, 1) as row:
        first = e.at(address, e.ir.mul(row.index, point))
        with e.loop(channels, WIDTH) as loop:
            here = e.at(first, e.times(loop.index, FLOAT_BYTES))
            power = exponential(e, clamped(e, e.load(here), 80.0))
            e.store(e.ir.fdiv(power, e.add(power, e.splat(1.0))), here)


def _write_mish(e: Emitter, address: Any, point: Any, points: Any, channels: Any) -> None:
    with e.loop(points, 1) as row:
        first = e.at(address, e.ir.mul(row.index, point))
        with e.loop(channels, WIDTH) as loop:
            here = e.at(first, e.times(loop.index, FLOAT_BYTES))
            x = e.load(here)
            # tanh(log(1 + p)) = w / (w + 2) with w = p * (p + 2); beyond 30 it is 1.
            power = exponential(e, clamped(e, x, 30.0))
            w = e.mul(power, e.add(power, e.splat(2.0)))
            e.store(e.ir.fdiv(e.mul(x, w), e.add(w, e.splat(2.0))), here)


# Activations: max(x, floor) (ReLU or identity), x / (1 + e**-x), x * tanh(log(1 + e**x)), 1 / (1 + e**-x).
CLAMP, SILU, MISH, SIGMOID = range(4)
_ACTIVATIONS: dict[tuple[int, ...], Routine] = {
    (SILU,): Routine("silu", 4, _write_silu),
    (MISH,): Routine("mish", 4, _write_mish),
    (SIGMOID,): Routine("sigmoid", 4, _write_sigmoid),
}
# activate(kind, address, point, points, channels): apply an activation other than CLAMP in place.
activate = Routine("activate", 5, chosen(_ACTIVATIONS)).intrinsic()


def _write_pool(
    e: Emitter, source: Any, line: Any, point: Any, size: Any, channels: Any, sums: Any, greatest: Any
) -> None:
    with e.loop(channels, WIDTH) as loop:
        offset = e.times(loop.index, FLOAT_BYTES)
        first = e.at(source, offset)
        start = [e.splat(0.0), e.load(first)]
        with e.loop(size, 1, start) as rows:
            row = e.at(first, e.ir.mul(rows.index, line))
            with e.loop(size, 1, rows.values) as columns:
                value = e.load(e.at(row, e.ir.mul(columns.index, point)))
                columns.results = [e.add(columns.values[0], value), e.maximum(columns.values[1], value)]
            rows.results = columns.results
        e.store(rows.results[0], e.at(sums, offset))
        e.store(rows.results[1], e.at(greatest, offset))


# pool(source, line, point, size, channels, sums, greatest): sum and maximum over the size² points of a map, by channel.
pool = Routine("pool", 7, _write_pool).intrinsic()


def _sparse_routine(vectors: int) -> Any:
    """Return the intrinsic (spans, count, skip, offsets, values, base, bias, target) for `vectors` vectors of channels.

        target = base + bias + sum over all entries of `count` spans of value * weights

    A span is three int64: the address of weights that its entries' offsets (int64) are relative to, its first entry,
    its number of entries. `skip` bytes are added to the address, for the channels before.
    """

    def body(
        e: Emitter, spans: Any, count: Any, skip: Any, offsets: Any, values: Any, base: Any, bias: Any, target: Any
    ) -> None:
        places = range(0, vectors * WIDTH * FLOAT_BYTES, WIDTH * FLOAT_BYTES)
        start = [e.add(e.load(e.at(base, place)), e.load(e.at(bias, place))) for place in places]
        with e.loop(count, 1, start, may_be_empty=True) as loop:
            span = e.at(spans, e.times(loop.index, 24))
            weights = e.at(e.load(span, I64), skip)
            begin = e.times(e.load(e.at(span, 8), I64), 8)
            entry_offsets = e.at(offsets, begin)
            entry_values = e.at(values, e.ir.ashr(begin, I64(1)))
            with e.loop(e.load(e.at(span, 16), I64), 1, loop.values, may_be_empty=True) as entries:
                here = e.at(weights, e.load(e.at(entry_offsets, e.times(entries.index, 8)), I64))
                by = e.broadcast(e.at(entry_values, e.times(entries.index, FLOAT_BYTES)))
                entries.results = [
                    e.fma(e.load(e.at(here, place)), by, total)
                    for place, total in zip(places, entries.values, strict=True)
                ]
            loop.results = entries.results
        for place, total in zip(places, loop.results, strict=True):
            e.store(total, e.at(target, place))

    return Routine(f"sparse_{vectors}", 8, body).intrinsic()


# Vectors per routine of the first convolution. A narrower routine takes the rest of a wider one.
SPARSE_WIDE, SPARSE_MIDDLE, SPARSE_NARROW = 12, 6, 2
sparse_wide = _sparse_routine(SPARSE_WIDE)
sparse_middle = _sparse_routine(SPARSE_MIDDLE)
sparse_narrow = _sparse_routine(SPARSE_NARROW)
