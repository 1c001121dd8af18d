"""Operations of transformer blocks on rows of points: norms, rotations, softmax, gates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from yomi.native.forward.emit import (
    BYTES,
    F32,
    FLOAT_BYTES,
    FLOATS,
    I32,
    I64,
    IN_WORD,
    INPUT_KINDS,
    INT_VECTOR,
    INTEGERS,
    PRODUCT_KINDS,
    SCORE_KINDS,
    SHORT_VECTOR,
    TILES,
    VECTOR,
    WIDTH,
    Emitter,
    Routine,
    chosen,
)
from yomi.native.forward.gemm import PANEL
from yomi.native.forward.pointwise import clamped, exponential, power_of_two

# A point is a row of channels. Products are floats, or integers in units. With integers, each point has a factor for
# its products: the greatest of its inputs, times 1 / their root mean square if they are normed.

_FAR = 1e30  # exceeds the magnitude of any score
_FAR_INTEGER = 2**31 - 1
_POWERS_OF_TWO = math.log2(math.e)  # e**x = 2**(x * this)
WEIGHT = 8192.0  # the greatest weight of attention, as an integer
LEAST = 1e-30  # A point with no magnitude above this counts as zero


def _root(e: Emitter, squares: Any, share: Any, epsilon: Any) -> Any:
    """Emit 1 / sqrt(squares * share + epsilon) and return it as a float."""
    mean = e.add(e.mul(squares, share), epsilon)
    return e.ir.fdiv(F32(1.0), e.square_root(mean))


# A `_x_routine` is one kind of the routine `x`, without the first arguments, which choose the kind.
def _condense_routine(numbers: int, normed: bool) -> Routine:
    def body(
        e: Emitter, source: Any, point: Any, points: Any, channels: Any, constants: Any, target: Any, factors: Any
    ) -> None:
        builder = e.ir
        most, epsilon, share = (e.load(e.at(constants, place), F32) for place in (0, 4, 8))
        is_whole = numbers in (INTEGERS, BYTES)
        number_bytes = FLOAT_BYTES // IN_WORD[numbers]
        with e.loop(points, 1) as row:
            first = e.at(source, builder.mul(row.index, point))
            out = e.at(target, e.times(builder.mul(row.index, channels), number_bytes))
            by: Any = F32(1.0)
            if is_whole or normed:
                start = [e.splat(0.0), ir.Constant(INT_VECTOR, None)]
                with e.loop(channels, WIDTH, start) as loop:
                    value = e.load(e.at(first, e.times(loop.index, FLOAT_BYTES)))
                    bits = e.magnitude_bits(value)
                    is_more = builder.icmp_signed(">", bits, loop.values[1])
                    loop.results = [e.fma(value, value, loop.values[0]), builder.select(is_more, bits, loop.values[1])]
                squares, greatest = loop.results
                if normed:
                    by = _root(e, e.sum_of(squares), share, epsilon)
                if is_whole:
                    height = builder.bitcast(e.greatest_of(greatest), F32)
                    e.store(e.mul(by, height), e.at(factors, e.times(row.index, FLOAT_BYTES)))
                    is_zero = builder.fcmp_ordered("<", height, F32(LEAST))
                    by = builder.select(is_zero, F32(0.0), builder.fdiv(most, height))
            spread = e.splat(by)
            with e.loop(channels, WIDTH) as loop:
                value = e.load(e.at(first, e.times(loop.index, FLOAT_BYTES)))
                where = e.at(out, e.times(loop.index, number_bytes))
                if numbers == INTEGERS:
                    e.store_rounded(value, spread, where)
                elif numbers == BYTES:
                    e.store_bytes(value, spread, where)
                elif numbers == TILES:
                    e.store_halves(e.mul(value, spread), where)
                else:
                    e.store(e.mul(value, spread), where)

    return Routine(f"condense_{numbers}_{int(normed)}", 7, body)


# condense(numbers, normed, source, point, points, channels, constants, target, factors): write inputs of a product.
#
# Copies points that are `point` bytes apart as floats, bfloats, 16-bit integers, or 8-bit integers plus 128. Integers
# have a factor per point in `factors`. Normed points are divided by their root mean square. constants: three floats:
# the greatest integer, the norm's epsilon, 1 / the number of channels.
condense = Routine(
    "condense",
    9,
    chosen({(kind, norm): _condense_routine(kind, norm) for kind in INPUT_KINDS for norm in (False, True)}),
).intrinsic()


def _counted(e: Emitter, numbers: int, source: Any, units: Any, by: Any) -> Any:
    """Load products of matrices as floats. Integers are multiplied by `units` (per output) and `by` (per point)."""
    value = e.load(source)
    if numbers != INTEGERS:
        return value
    return e.mul(e.mul(e.to_floats(e.ir.bitcast(value, INT_VECTOR)), e.load(units)), by)


def _factor(e: Emitter, numbers: int, factors: Any, index: Any) -> Any:
    return e.broadcast(e.at(factors, e.times(index, FLOAT_BYTES))) if numbers == INTEGERS else None


def _turn_routine(numbers: int, turned: bool, halved: bool) -> Routine:
    def body(
        e: Emitter,
        source: Any,
        source_point: Any,
        points: Any,
        channels: Any,
        units: Any,
        factors: Any,
        cosines: Any,
        sines: Any,
        angle_point: Any,
        target: Any,
        point: Any,
    ) -> None:
        neighbours = ir.Constant(INT_VECTOR, [i ^ 1 for i in range(WIDTH)])
        with e.loop(points, 1) as row:
            by = _factor(e, numbers, factors, row.index)
            first = e.at(source, e.ir.mul(row.index, source_point))
            out = e.at(target, e.ir.mul(row.index, point))
            angles = e.ir.mul(row.index, angle_point)
            with e.loop(channels, WIDTH) as loop:
                offset = e.times(loop.index, FLOAT_BYTES)
                value = _counted(e, numbers, e.at(first, offset), e.at(units, offset), by)
                if turned:
                    swapped = e.ir.shuffle_vector(value, ir.Constant(VECTOR, ir.Undefined), neighbours)
                    crossed = e.mul(swapped, e.load(e.at(sines, angles, offset)))
                    value = e.fma(value, e.load(e.at(cosines, angles, offset)), crossed)
                if halved:
                    e.store_halves(value, e.at(out, e.times(loop.index, FLOAT_BYTES // 2)))
                else:
                    e.store(value, e.at(out, offset))

    return Routine(f"turn_{numbers}_{int(turned)}_{int(halved)}", 11, body)


# turn(numbers, turned, halved, source, source_point, points, channels, units, factors, cosines, sines, angle_point,
# target, point)
#
# Write products as floats, or as bfloats if `halved`. With `turned`, each pair of channels (a, b) becomes (a cos - b
# sin, b cos + a sin). Cosines and sines of points are `angle_point` bytes apart; the sine of a pair's first channel
# has its sign changed.
turn = Routine(
    "turn",
    14,
    chosen(
        {
            (kind, turned, halved): _turn_routine(kind, turned, halved)
            for kind in PRODUCT_KINDS
            for turned in (False, True)
            for halved in (False, True)
        }
    ),
).intrinsic()


def _write_transpose(e: Emitter, source: Any, point: Any, points: Any, channels: Any, target: Any) -> None:
    builder = e.ir
    panel_bytes = e.times(channels, PANEL * FLOAT_BYTES)
    with e.loop(points, WIDTH) as row:
        first = e.at(source, builder.mul(row.index, point))
        panel, rest = builder.sdiv(row.index, I64(PANEL)), builder.srem(row.index, I64(PANEL))
        out = e.at(target, builder.mul(panel, panel_bytes), e.times(rest, FLOAT_BYTES))
        with e.loop(channels, WIDTH) as loop:
            here = e.at(first, e.times(loop.index, FLOAT_BYTES))
            rows = [e.load(e.at(here, e.times(point, k))) for k in range(WIDTH)]
            # Each stage exchanges one bit of the row number with the same bit of the column number.
            bit = 1
            while bit < WIDTH:
                low = ir.Constant(INT_VECTOR, [j if not j & bit else WIDTH + j - bit for j in range(WIDTH)])
                high = ir.Constant(INT_VECTOR, [j + bit if not j & bit else WIDTH + j for j in range(WIDTH)])
                for k in range(WIDTH):
                    if not k & bit:
                        a, b = rows[k], rows[k | bit]
                        rows[k], rows[k | bit] = builder.shuffle_vector(a, b, low), builder.shuffle_vector(a, b, high)
                bit *= 2
            place = e.at(out, e.times(loop.index, PANEL * FLOAT_BYTES))
            for k in range(WIDTH):
                e.store(rows[k], e.at(place, k * PANEL * FLOAT_BYTES))


# transpose(source, point, points, channels, target): pack points as the columns of a matrix, in panels.
#
# The number of points is a multiple of PANEL, the number of channels a multiple of WIDTH.
transpose = Routine("transpose", 5, _write_transpose).intrinsic()


def _softmax_routine(numbers: int) -> Routine:
    def body(
        e: Emitter, scores: Any, line: Any, rows: Any, columns: Any, width: Any, units: Any, inverses: Any
    ) -> None:
        builder = e.ir
        full = builder.and_(columns, I64(-WIDTH))
        parts = ((I64(0), full, False), (full, builder.sub(width, full), True))
        is_whole = numbers == INTEGERS
        unit, result_unit = (e.load(e.at(units, place), F32) if is_whole else F32(1.0) for place in (0, 4))
        # In fewer bits, scores become exponents of 2.
        if numbers != FLOATS:
            unit = builder.fmul(unit, F32(_POWERS_OF_TWO))
        by, far = e.splat(unit), ir.Constant(INT_VECTOR, [-_FAR_INTEGER] * WIDTH) if is_whole else e.splat(-_FAR)
        kind = INT_VECTOR if is_whole else VECTOR
        with e.loop(rows, 1) as row:
            first = e.at(scores, builder.mul(row.index, line))

            def over_columns(start: Any, write: Callable[[Any, Any, Any], Any]) -> Any:
                """Fold write(score, place, carried) over a row; scores behind the last column are far below others."""
                for begin, count, is_rest in parts:
                    with e.loop(count, WIDTH, [start], may_be_empty=True) as loop:
                        place = builder.add(begin, loop.index)
                        score = e.load(e.at(first, e.times(place, FLOAT_BYTES)), kind)
                        if is_rest:
                            score = builder.select(e.lanes_below(builder.sub(columns, place)), score, far)
                        loop.results = [write(score, place, loop.values[0])]
                    start = loop.results[0]
                return start

            def greater(score: Any, place: Any, best: Any) -> Any:
                if is_whole:
                    return builder.select(builder.icmp_signed(">", score, best), score, best)
                return e.maximum(score, best)

            most = over_columns(far, greater)
            largest = builder.sitofp(e.greatest_of(most), F32) if is_whole else e.greatest_float_of(most)
            less = e.splat(builder.fneg(builder.fmul(largest, unit)))

            def write_power(score: Any, place: Any, total: Any) -> Any:
                if numbers == FLOATS:
                    power = exponential(e, e.maximum(e.add(score, less), e.splat(-80.0)))
                else:
                    value = e.to_floats(score) if is_whole else score
                    power = power_of_two(e, e.maximum(e.fma(value, by, less), e.splat(-100.0)))
                if is_whole:
                    e.store_rounded(power, e.splat(WEIGHT), e.at(first, e.times(place, FLOAT_BYTES // 2)))
                elif numbers == TILES:
                    e.store_halves(power, e.at(first, e.times(place, FLOAT_BYTES // 2)))
                else:
                    e.store(power, e.at(first, e.times(place, FLOAT_BYTES)))
                return e.add(power, total)

            total = e.sum_of(over_columns(e.splat(0.0), write_power))
            e.store(builder.fdiv(result_unit, total), e.at(inverses, e.times(row.index, FLOAT_BYTES)))

    return Routine(f"softmax_{numbers}", 7, body)


# softmax(numbers, scores, line, rows, columns, width, units, inverses): replace scores by e**(score - max), 0 from
# `columns` on.
#
# Rows of `width` scores are `line` bytes apart. TILES or INTEGERS: the results are bfloats, or 16-bit integers times
# WEIGHT, from the beginning of each row. INTEGERS: scores are 32-bit integers, in units of the first float at `units`.
# inverses: 1 / the sum of each row, which the caller multiplies by later. INTEGERS: times the second float at `units`.
softmax = Routine("softmax", 8, chosen({(kind,): _softmax_routine(kind) for kind in SCORE_KINDS})).intrinsic()


def _write_pair(e: Emitter, source: Any, point: Any, points: Any, channels: Any, target: Any) -> None:
    order = ir.Constant(ir.VectorType(I32, 2 * WIDTH), [k // 2 + WIDTH * (k % 2) for k in range(2 * WIDTH)])
    with e.loop(points, 2) as row:
        first = e.at(source, e.ir.mul(row.index, point))
        out = e.at(target, e.times(e.ir.mul(row.index, channels), FLOAT_BYTES // 2))
        with e.loop(channels, WIDTH) as loop:
            here = e.at(first, e.times(loop.index, FLOAT_BYTES // 2))
            upper, lower = (e.load(place, SHORT_VECTOR) for place in (here, e.at(here, point)))
            e.store(e.ir.shuffle_vector(upper, lower, order), e.at(out, e.times(loop.index, FLOAT_BYTES)))


# pair(source, point, points, channels, target): pack an even number of points of bfloats as the rows of a matrix.
pair = Routine("pair", 5, _write_pair).intrinsic()


def _scale_routine(numbers: int) -> Routine:
    def body(e: Emitter, address: Any, point: Any, points: Any, channels: Any, factors: Any) -> None:
        with e.loop(points, 1) as row:
            by = e.broadcast(e.at(factors, e.times(row.index, FLOAT_BYTES)))
            first = e.at(address, e.ir.mul(row.index, point))
            with e.loop(channels, WIDTH) as loop:
                here = e.at(first, e.times(loop.index, FLOAT_BYTES))
                value = e.to_floats(e.load(here, INT_VECTOR)) if numbers == INTEGERS else e.load(here)
                e.store(e.mul(value, by), here)

    return Routine(f"scale_points_{numbers}", 5, body)


# scale_points(numbers, address, point, points, channels, factors): multiply each point by its factor, in place.
#
# INTEGERS: points are 32-bit integers, and become floats.
scale_points = Routine("scale_points", 6, chosen({(kind,): _scale_routine(kind) for kind in SCORE_KINDS})).intrinsic()


def _swiglu_routine(numbers: int, gated: bool) -> Routine:
    def body(e: Emitter, address: Any, point: Any, points: Any, channels: Any, units: Any, factors: Any) -> None:
        apart = e.times(channels, FLOAT_BYTES)
        with e.loop(points, 1) as row:
            by = _factor(e, numbers, factors, row.index)
            first = e.at(address, e.ir.mul(row.index, point))
            with e.loop(channels, WIDTH) as loop:
                offset = e.times(loop.index, FLOAT_BYTES)
                here = e.at(first, offset)
                x = _counted(e, numbers, here, e.at(units, offset), by)
                if numbers == FLOATS:
                    power = exponential(e, clamped(e, e.ir.fneg(x), 80.0))
                else:
                    power = power_of_two(e, clamped(e, e.mul(x, e.splat(-_POWERS_OF_TWO)), 100.0))
                value = e.ir.fdiv(x, e.add(power, e.splat(1.0)))
                if gated:
                    value = e.mul(value, _counted(e, numbers, e.at(here, apart), e.at(units, apart, offset), by))
                e.store(value, here)

    return Routine(f"swiglu_{numbers}_{int(gated)}", 6, body)


# swiglu(numbers, gated, address, point, points, channels, units, factors): x / (1 + e**-x), written as floats.
#
# If `gated`, multiplied by the products `channels` further on.
swiglu = Routine(
    "swiglu",
    8,
    chosen({(kind, gated): _swiglu_routine(kind, gated) for kind in PRODUCT_KINDS for gated in (False, True)}),
).intrinsic()


def _add_routine(numbers: int) -> Routine:
    def body(
        e: Emitter,
        source: Any,
        source_point: Any,
        points: Any,
        channels: Any,
        units: Any,
        factors: Any,
        target: Any,
        point: Any,
    ) -> None:
        with e.loop(points, 1) as row:
            by = _factor(e, numbers, factors, row.index)
            first = e.at(source, e.ir.mul(row.index, source_point))
            out = e.at(target, e.ir.mul(row.index, point))
            with e.loop(channels, WIDTH) as loop:
                offset = e.times(loop.index, FLOAT_BYTES)
                value = _counted(e, numbers, e.at(first, offset), e.at(units, offset), by)
                e.store(e.add(e.load(e.at(out, offset)), value), e.at(out, offset))

    return Routine(f"add_points_{numbers}", 8, body)


# add_points(numbers, source, source_point, points, channels, units, factors, target, point): target += products.
add_points = Routine("add_points", 9, chosen({(kind,): _add_routine(kind) for kind in PRODUCT_KINDS})).intrinsic()


def _write_squares(e: Emitter, source: Any, point: Any, points: Any, channels: Any, target: Any) -> None:
    with e.loop(points, 1) as row:
        first = e.at(source, e.ir.mul(row.index, point))
        with e.loop(channels, WIDTH, [e.splat(0.0)]) as loop:
            value = e.load(e.at(first, e.times(loop.index, FLOAT_BYTES)))
            loop.results = [e.fma(value, value, loop.values[0])]
        e.store(e.sum_of(loop.results[0]), e.at(target, e.times(row.index, FLOAT_BYTES)))


# squares(source, point, points, channels, target): write the sum of squares of each point.
squares = Routine("squares", 5, _write_squares).intrinsic()


def _write_normalise(
    e: Emitter,
    source: Any,
    source_point: Any,
    points: Any,
    channels: Any,
    factors: Any,
    gamma: Any,
    beta: Any,
    floor: Any,
    target: Any,
    point: Any,
) -> None:
    with e.loop(points, 1) as row:
        by = e.broadcast(e.at(factors, e.times(row.index, FLOAT_BYTES)))
        first = e.at(source, e.ir.mul(row.index, source_point))
        out = e.at(target, e.ir.mul(row.index, point))
        with e.loop(channels, WIDTH) as loop:
            offset = e.times(loop.index, FLOAT_BYTES)
            value = e.mul(e.load(e.at(first, offset)), by)
            value = e.fma(value, e.load(e.at(gamma, offset)), e.load(e.at(beta, offset)))
            value = e.maximum(value, e.load(e.at(floor, offset)))
            e.store(value, e.at(out, offset))


# normalise(source, source_point, points, channels, factors, gamma, beta, floor, target, point)
#
#     target = max(source * factor of the point * gamma + beta, floor)
normalise = Routine("normalise", 10, _write_normalise).intrinsic()
