"""Transformer blocks of a forward program: attention over all points of a board, and feed-forward nets per point.

Both add to a map, the residual stream, in place. The gamma of norms is folded into the weights.
"""

from __future__ import annotations

import numpy as np

from yomi.native.bits import U
from yomi.native.forward.emit import BYTES, FLOATS, IN_WORD, INTEGERS, TILES
from yomi.native.forward.gemm import PANEL, multiply
from yomi.native.forward.points import (
    LEAST,
    WEIGHT,
    add_points,
    condense,
    normalise,
    pair,
    scale_points,
    softmax,
    squares,
    swiglu,
    transpose,
    turn,
)
from yomi.native.forward.pointwise import activate, gather, greatest
from yomi.native.jit import inlined_early

_LIMIT = 2.0**31 - 1.0  # of sums of products
_MOST = np.float32(32_000.0)  # exceeds no 16-bit integer
QUERIES = 32  # points per block of scores: fits the first-level cache, and is two tiles


@inlined_early
def _line(plan, source, point, row, y):  # type: ignore[no-untyped-def]
    """Return the address of the first point of a line of a map."""
    return source + ((row * plan.side + y + 1) * plan.side + 1) * point


@inlined_early
def _counted_as(numbers):  # type: ignore[no-untyped-def]
    """Return a kind of numbers whose sums have the same form as sums of `numbers`."""
    return INTEGERS if numbers == BYTES else numbers


@inlined_early
def _condense_lines(plan, op, row, top, lines, w, s, target):  # type: ignore[no-untyped-def]
    """Write the inputs of a product: the norm of lines of the stream."""
    point = op.source_channels * 4
    words = op.depth // IN_WORD[op.numbers]
    for k in range(lines):
        here, done = _line(plan, s + op.source * 4, point, row, top + k), k * plan.size
        constants, factors = w + op.constants * 4, s + (plan.point_factors + done) * 4
        condense(op.numbers, 1, here, point, plan.size, op.depth, constants, target + done * words * 4, factors)


@inlined_early
def _add_lines(plan, op, row, top, lines, s, products, products_point, units):  # type: ignore[no-untyped-def]
    """Add products to lines of the stream."""
    point = op.source_channels * 4
    for k in range(lines):
        here, done = _line(plan, s + op.source * 4, point, row, top + k), k * plan.size
        factors = s + (plan.point_factors + done) * 4
        source = products + done * products_point
        add_points(_counted_as(op.numbers), source, products_point, plan.size, op.depth, units, factors, here, point)


@inlined_early
def _turn_points(op, turned, source, source_point, points, units, factors, cosines, sines, point, target):  # type: ignore[no-untyped-def]
    """Write the queries or keys of one head, `width` floats per point."""
    turn(
        op.numbers,
        turned,
        1 if op.scores == TILES else 0,
        source,
        source_point,
        points,
        op.width,
        units,
        factors,
        cosines,
        sines,
        point,
        target,
        point,
    )


@inlined_early
def _project(plan, op, row, w, s):  # type: ignore[no-untyped-def]
    """Write queries, keys and values of one row, rotated by the positions of their points."""
    size, width = plan.size, op.width
    area = size * size
    padded = (area + PANEL - 1) // PANEL * PANEL
    words = op.depth // IN_WORD[op.numbers]
    query_point, key_point = op.heads * width * 4, op.groups * width * 4
    out_point = query_point + 2 * key_point
    work, products, factors = s + plan.work * 4, s + plan.products * 4, s + plan.point_factors * 4
    units = w + op.units * 4
    turned = 1 if op.cosines >= 0 else 0
    for top in range(0, size, op.chunk):
        lines = min(op.chunk, size - top)
        first, points = top * size, lines * size
        _condense_lines(plan, op, row, top, lines, w, s, work)
        panels = out_point // (PANEL * 4)
        multiply(op.numbers, work, words * 4, points, w + op.weights * 4, words, panels, products, out_point)
        slot = width * 4
        for head in range(op.heads):
            skip = head * slot
            turns = first * query_point + skip
            cosines, sines, target = w + op.cosines * 4 + turns, w + op.sines * 4 + turns, s + plan.queries * 4 + turns
            source = products + skip
            _turn_points(
                op, turned, source, out_point, points, units + skip, factors, cosines, sines, query_point, target
            )
        for group in range(op.groups):
            skip = group * slot
            turns = first * key_point + skip
            cosines, sines = w + op.key_cosines * 4 + turns, w + op.key_sines * 4 + turns
            source, target = products + query_point + skip, s + plan.keys * 4 + turns
            units_here = units + query_point + skip
            _turn_points(op, turned, source, out_point, points, units_here, factors, cosines, sines, key_point, target)
        for panel in range(op.groups * width // PANEL):
            skip = query_point + key_point + panel * PANEL * 4
            target = s + (plan.values + (panel * padded + first) * PANEL) * 4
            source = products + skip
            turn(
                op.numbers,
                0,
                1 if op.scores == TILES else 0,
                source,
                out_point,
                points,
                PANEL,
                units + skip,
                factors,
                0,
                0,
                0,
                target,
                PANEL * 4,
            )


@inlined_early
def _height(plan, source, point, channels, s, scratch):  # type: ignore[no-untyped-def]
    """Return the greatest magnitude among a board's points. Points are `point` bytes apart."""
    greatest(source, plan.size * point, point, plan.size, channels, s + plan.factors * 4)
    return scratch[U(plan.factors)]


@inlined_early
def _set_factor(plan, height, most, scratch):  # type: ignore[no-untyped-def]
    """Write the factor that scales floats of at most `height` to integers of at most `most`. Return its inverse."""
    scratch[U(plan.factors)] = np.float32(0.0) if height < LEAST else most / height
    return height / most


@inlined_early
def _pack_integers(plan, op, keys, values, padded, key_most, s, scratch):  # type: ignore[no-untyped-def]
    """Write keys and values of one group as matrices of 16-bit integers; return the units of both."""
    width, factor, spare = op.width, s + plan.factors * 4, s + plan.scores * 4
    key_point, panel_bytes = op.groups * width * 4, padded * PANEL * 4
    key_unit = _set_factor(plan, _height(plan, keys, key_point, width, s, scratch), key_most, scratch)
    gather(INTEGERS, keys, key_point, padded, width, factor, spare)
    transpose(spare, width * 2, padded, width // 2, s + plan.key_panels * 4)
    height = np.float32(0.0)
    for panel in range(width // PANEL):
        height = max(height, _height(plan, values + panel * panel_bytes, PANEL * 4, PANEL, s, scratch))
    # No weighted sum of all points overflows 32 bits.
    value_most = min(_MOST, np.float32(_LIMIT / (plan.size * plan.size * (WEIGHT + 1.0)) - 1.0))
    value_unit = _set_factor(plan, height, value_most, scratch)
    for panel in range(width // PANEL):
        gather(INTEGERS, values + panel * panel_bytes, PANEL * 4, padded, PANEL, factor, spare)
        pair(spare, PANEL * 2, padded, PANEL, s + plan.value_pairs * 4 + panel * panel_bytes // 2)
    return key_unit, value_unit


@inlined_early
def attend(plan, op, rows, w, s, scratch):  # type: ignore[no-untyped-def]
    """Add attention to the stream: stream += out(softmax(Q K^T) V), with Q, K, V products of the stream's norm."""
    size, width = plan.size, op.width
    area = size * size
    padded = (area + PANEL - 1) // PANEL * PANEL
    query_point, key_point = op.heads * width * 4, op.groups * width * 4
    work, products = s + plan.work * 4, s + plan.products * 4
    queries, keys, scores = s + plan.queries * 4, s + plan.keys * 4, s + plan.scores * 4
    sums = s + plan.point_factors * 4
    words = op.heads * width // IN_WORD[op.numbers]
    # Zero the padding, which products read.
    scratch[plan.keys + area * op.groups * width : plan.keys + padded * op.groups * width] = 0.0
    for panel in range(op.groups * width // PANEL):
        end = plan.values + (panel + 1) * padded * PANEL
        scratch[end - (padded - area) * PANEL : end] = 0.0
    # Scores and values may be bfloats, whatever the projections are.
    numbers = op.scores
    shrink = IN_WORD[numbers]
    # The first float is the factor of integers, the next are the units of scores and results.
    factor, units = s + plan.factors * 4, plan.factors + 1
    most = min(_MOST, np.float32(np.sqrt(_LIMIT / width) - 1.0))
    for row in range(rows):
        _project(plan, op, row, w, s)
        for group in range(op.groups):
            # Keys are transposed once for all heads that share them.
            matrix, own_keys = s + plan.key_panels * 4, keys + group * width * 4
            own_values = s + (plan.values + group * width * padded) * 4
            values = own_values if numbers == FLOATS else s + plan.value_pairs * 4
            key_unit, value_unit = np.float32(1.0), np.float32(1.0)
            if numbers == INTEGERS:
                key_unit, value_unit = _pack_integers(plan, op, own_keys, own_values, padded, most, s, scratch)
            else:
                transpose(own_keys, key_point, padded, width // shrink, matrix)
            if numbers == TILES:
                for panel in range(width // PANEL):
                    skip = panel * padded * PANEL * 4
                    pair(own_values + skip, PANEL * 4, padded, PANEL, values + skip // 2)
            for head in range(group * (op.heads // op.groups), (group + 1) * (op.heads // op.groups)):
                own_queries = queries + head * width * 4
                if numbers == INTEGERS:
                    height = _height(plan, own_queries, query_point, width, s, scratch)
                    scratch[U(units)] = _set_factor(plan, height, most, scratch) * key_unit
                    scratch[U(units + 1)] = value_unit / np.float32(WEIGHT)
                for first in range(0, area, QUERIES):
                    count = min(QUERIES, area - first)
                    here, line = own_queries + first * query_point, padded * 4
                    left, left_point = here, query_point
                    if numbers == INTEGERS:
                        gather(INTEGERS, here, query_point, count, width, factor, work)
                        left, left_point = work, width * 2
                    depth, panels = width // shrink, padded // PANEL
                    multiply(numbers, left, left_point, count, matrix, depth, panels, scores, line)
                    softmax(numbers, scores, line, count, area, padded, s + units * 4, sums)
                    depth, panels = padded // shrink, width // PANEL
                    multiply(numbers, scores, line, count, values, depth, panels, here, query_point)
                    # The softmax's sums divide the results, which are fewer than the scores.
                    scale_points(numbers, here, query_point, count, width, sums)
        for top in range(0, size, op.chunk):
            lines = min(op.chunk, size - top)
            points = lines * size
            source = queries + top * size * query_point
            constants, factors = w + op.inner_constants * 4, s + plan.point_factors * 4
            condense(op.numbers, 0, source, query_point, points, op.heads * width, constants, work, factors)
            matrix, panels, out_point = w + op.inner_weights * 4, op.depth // PANEL, op.depth * 4
            multiply(op.numbers, work, words * 4, points, matrix, words, panels, products, out_point)
            _add_lines(plan, op, row, top, lines, s, products, out_point, w + op.inner_units * 4)


@inlined_early
def feed(plan, op, rows, w, s):  # type: ignore[no-untyped-def]
    """Add a feed-forward net of the stream's norm to the stream. `width` is the number of inner channels; `heads` is 2
    if gated.
    """
    words, inner_words = op.depth // IN_WORD[op.numbers], op.width // IN_WORD[op.numbers]
    work, products, factors = s + plan.work * 4, s + plan.products * 4, s + plan.point_factors * 4
    hidden = op.heads * op.width
    hidden_point, out_point = hidden * 4, op.depth * 4
    for row in range(rows):
        for top in range(0, plan.size, op.chunk):
            lines = min(op.chunk, plan.size - top)
            points = lines * plan.size
            _condense_lines(plan, op, row, top, lines, w, s, work)
            matrix, panels = w + op.weights * 4, hidden // PANEL
            multiply(op.numbers, work, words * 4, points, matrix, words, panels, products, hidden_point)
            swiglu(
                _counted_as(op.numbers),
                op.heads - 1,
                products,
                hidden_point,
                points,
                op.width,
                w + op.units * 4,
                factors,
            )
            # The hidden channels are the inputs of the second product.
            constants = w + op.inner_constants * 4
            condense(op.numbers, 0, products, hidden_point, points, op.width, constants, work, factors)
            matrix, panels = w + op.inner_weights * 4, op.depth // PANEL
            multiply(op.numbers, work, inner_words * 4, points, matrix, inner_words, panels, products, out_point)
            _add_lines(plan, op, row, top, lines, s, products, out_point, w + op.inner_units * 4)


@inlined_early
def norm_points(plan, op, rows, w, s, weights, scratch):  # type: ignore[no-untyped-def]
    """Write x / sqrt(mean x² + epsilon) * gamma + beta, activated; the mean is over a point or the whole board."""
    point, out_point = op.source_channels * 4, op.channels * 4
    factors = s + plan.point_factors * 4
    area = plan.size * plan.size
    epsilon, share = weights[U(op.constants + 1)], weights[U(op.constants + 2)]
    for row in range(rows):
        for y in range(plan.size):
            source = _line(plan, s + op.source * 4, point, row, y)
            squares(source, point, plan.size, op.depth, factors + y * plan.size * 4)
        if op.whole:
            # One mean for all points of the board.
            total = np.float32(0.0)
            for k in range(area):
                total += scratch[U(plan.point_factors + k)]
            total /= np.float32(area)
            for k in range(area):
                scratch[U(plan.point_factors + k)] = total
        for k in range(area):
            mean = scratch[U(plan.point_factors + k)] * share
            scratch[U(plan.point_factors + k)] = np.float32(1.0) / np.sqrt(mean + epsilon)
        for y in range(plan.size):
            source = _line(plan, s + op.source * 4, point, row, y)
            target = _line(plan, s + op.target * 4, out_point, row, y)
            by, gamma, beta, floor = factors + y * plan.size * 4, w + op.scale * 4, w + op.shift * 4, w + op.floor * 4
            normalise(source, point, plan.size, op.depth, by, gamma, beta, floor, target, out_point)
            activate(op.activation, target, out_point, plan.size, op.depth)
