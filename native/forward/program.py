"""The forward pass as a program: a table of operations on maps and vectors, and the kernel that runs it.

Maps are [rows, side, side, channels], vectors [rows, channels]. Both are in one scratch array per thread; constants are
in one array of weights. Offsets in the tables count floats; strides passed to routines count bytes.
"""

from __future__ import annotations

import numpy as np

from yomi.native.bits import U
from yomi.native.forward.emit import FLOATS, INTEGERS, TILES, WIDTH
from yomi.native.forward.gemm import PANEL, multiply
from yomi.native.forward.points import LEAST
from yomi.native.forward.pointwise import (
    CLAMP,
    SPARSE_MIDDLE,
    SPARSE_NARROW,
    SPARSE_WIDE,
    activate,
    finish,
    gather,
    greatest,
    pool,
    sparse_middle,
    sparse_narrow,
    sparse_wide,
)
from yomi.native.forward.tiles import convolve
from yomi.native.forward.transformer import attend, feed, norm_points
from yomi.native.forward.winograd import transform, transform_back
from yomi.native.jit import inlined_early, kernel

# The board of a map has a border of zeros, so that convolutions need no test for the edge.

GLOBALS, INPUT, CONV3, CONV1, POOL, DENSE, SPREAD, ACTIVATE, POLICY, PASS, VALUE, OWNERSHIP = range(12)
# Kinds of operations; see the functions below.
GATE, JOIN, FLATTEN, ATTEND, FEED, NORM = range(12, 18)
OP_DTYPE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind",
            "source",  # map or vector in the scratch
            "source_channels",  # floats per point of the source
            "depth",  # channels that are read
            "target",  # map or vector in the scratch; for outputs a channel
            "channels",  # of the target
            "stream",  # map in the scratch that receives the sum before scale and shift; -1: none
            "residual",  # 1: add the stream's old content (DENSE: the vector) to the sum
            "vector",  # vector in the scratch, added to each point
            "weights",
            "scale",
            "shift",
            "floor",  # by channel, like scale and shift: target = max(x * scale + shift, floor)
            "activation",
            "tile",  # m of a Winograd convolution
            "chunk",  # tiles of a 3x3 convolution, or lines of a 1x1 convolution, per step
            "numbers",  # kind of products: FLOATS, INTEGERS or TILES
            "places",  # number of factors of a row
            "factors",  # factors that make inputs of at most 1 integers
            "units",  # by channel, of the products for inputs of at most 1
            "kernel",  # width of the first convolution
            "base",  # first convolution: of a plane of ones [area, channels], then zeros [channels]; outputs: added
            # constants [area]
            "heads",  # of an attention; of a feed-forward net: 2 if gated, otherwise 1
            "groups",  # heads of keys and values
            "width",  # channels of a head, or inner channels of a feed-forward net
            "constants",  # three floats: see `points.condense`
            "cosines",  # of the angles of the queries, [area, heads * width]; -1 without rotation
            "sines",
            "key_cosines",  # of the keys, [area, groups * width]
            "key_sines",
            "inner_weights",  # of the second product of a transformer block
            "inner_units",
            "inner_constants",
            "scores",  # kind of attention's products of two inputs: FLOATS, INTEGERS or TILES
            "whole",  # 1: a norm over the whole board
        )
    ]
)
PLAN_DTYPE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "size",  # of the board
            "side",  # of a map, with borders
            "planes",
            "work",  # area in the scratch for transformed tiles or gathered points
            "products",  # area in the scratch for results of matrix products
            "factors",  # area in the scratch, FACTORS per row
            "units",  # area in the scratch, `unit_channels` per row
            "unit_channels",
            "point_factors",  # area in the scratch, one per point
            "value_pairs",
            "queries",  # these are areas in the scratch for one row
            "keys",
            "key_panels",
            "values",
            "scores",
        )
    ]
)

# Without a gap all places would fall into the same sets of the first-level cache.
PLACE_GAP = 16  # floats between the places of transformed tiles
FACTORS = 64  # floats per row for factors: more than the places of any tile


@kernel
def compiled_width():  # type: ignore[no-untyped-def]
    """Return the WIDTH that kernels were compiled for; cached kernels may differ from this process."""
    return WIDTH


@inlined_early
def _measure(plan, op, rows, s, weights, scratch):  # type: ignore[no-untyped-def]
    """Write the factors that scale each row's inputs to integers, and the units of the products."""
    point = op.source_channels * 4
    # Rows are scaled independently: a position's value must not depend on its batch.
    for row in range(rows):
        source = s + op.source * 4 + ((row * plan.side + 1) * plan.side + 1) * point
        factors, units = plan.factors + row * FACTORS, plan.units + row * plan.unit_channels
        greatest(source, plan.side * point, point, plan.size, op.depth, s + factors * 4)
        most = scratch[U(factors)]
        inverse = np.float32(0.0) if most < LEAST else np.float32(1.0) / most
        for k in range(op.places):
            scratch[U(factors + k)] = weights[U(op.factors + k)] * inverse
        for c in range(op.channels):
            scratch[U(units + c)] = weights[U(op.units + c)] * most


@inlined_early
def _conv3(plan, op, rows, w, s, weights, scratch):  # type: ignore[no-untyped-def]
    """3x3 convolution by Winograd, then `finish`."""
    m, side = op.tile, plan.side
    tiles_a_side = (plan.size + m - 1) // m
    tiles_a_row = tiles_a_side * tiles_a_side
    tiles = rows * tiles_a_row
    in_point, out_point = op.depth * 4, op.channels * 4
    words = op.depth // 2 if op.numbers else op.depth
    line = side * out_point
    work, products = s + plan.work * 4, s + plan.products * 4
    scale, shift, floor = w + op.scale * 4, w + op.shift * 4, w + op.floor * 4
    summed = op.stream >= 0
    if summed and op.residual == 0:
        scratch[op.stream : op.stream + rows * side * side * op.channels] = 0.0
    if op.numbers:
        _measure(plan, op, rows, s, weights, scratch)
    chunks = (tiles + op.chunk - 1) // op.chunk
    for chunk in range(chunks):
        begin, end = tiles * chunk // chunks, tiles * (chunk + 1) // chunks
        count = end - begin
        in_place, out_place = (count * words + PLACE_GAP) * 4, (count * op.channels + PLACE_GAP) * 4
        # Transform the inputs of each tile, multiply place by place, transform back.
        for i in range(begin, end):
            row, tile = i // tiles_a_row, i % tiles_a_row
            y, x = tile // tiles_a_side * m, tile % tiles_a_side * m
            source = s + op.source * 4 + ((row * side + y) * side + x) * in_point
            target = work + (i - begin) * words * 4
            factors = s + (plan.factors + row * FACTORS) * 4
            transform(m, op.numbers, source, side * in_point, in_point, target, in_place, op.depth, factors)
        for place in range((m + 2) * (m + 2)):
            matrix = w + (op.weights + place * words * op.channels) * 4
            left, right = work + place * in_place, products + place * out_place
            multiply(op.numbers, left, words * 4, count, matrix, words, op.channels // PANEL, right, out_point)
        for i in range(begin, end):
            row, tile = i // tiles_a_row, i % tiles_a_row
            y, x = tile // tiles_a_side * m, tile % tiles_a_side * m
            point = ((row * side + y + 1) * side + x + 1) * out_point
            source = products + (i - begin) * out_point
            high, wide = min(m, plan.size - y), min(m, plan.size - x)
            target, stream = s + op.target * 4 + point, s + op.stream * 4 + point
            units = s + (plan.units + row * plan.unit_channels) * 4
            transform_back(
                m,
                op.numbers,
                summed,
                source,
                out_place,
                high,
                wide,
                line,
                out_point,
                op.channels,
                scale,
                shift,
                floor,
                target,
                stream,
                units,
            )
            if op.activation != CLAMP:
                for k in range(high):
                    activate(op.activation, target + k * line, out_point, wide, op.channels)


@inlined_early
def _finish_line(plan, op, w, s, source, source_point, row, y, scale, shift, units):  # type: ignore[no-untyped-def]
    """Write one line of the target: apply scale, shift and activation by `finish`."""
    point = op.channels * 4
    where = ((row * plan.side + y + 1) * plan.side + 1) * point
    target = s + op.target * 4 + where
    stream = s + op.stream * 4 + where if op.stream >= 0 else 0
    residual = stream if op.residual != 0 else 0
    floor = w + op.floor * 4
    finish(source, source_point, plan.size, op.channels, scale, shift, floor, target, point, residual, stream, units)
    activate(op.activation, target, point, plan.size, op.channels)


@inlined_early
def _conv1(plan, op, rows, w, s, weights, scratch):  # type: ignore[no-untyped-def]
    """1x1 convolution of `depth` channels of a map, then `finish`."""
    work, products = s + plan.work * 4, s + plan.products * 4
    words = op.depth // 2 if op.numbers else op.depth
    in_point, out_point = op.source_channels * 4, op.channels * 4
    in_line, out_line = plan.size * words * 4, plan.size * out_point
    matrix, panels = w + op.weights * 4, op.channels // PANEL
    scale, shift = w + op.scale * 4, w + op.shift * 4
    if op.numbers == INTEGERS:
        _measure(plan, op, rows, s, weights, scratch)
    for row in range(rows):
        factor = s + (plan.factors + row * FACTORS) * 4
        units = s + (plan.units + row * plan.unit_channels) * 4 if op.numbers == INTEGERS else 0
        for top in range(0, plan.size, op.chunk):
            lines = min(op.chunk, plan.size - top)
            for k in range(lines):
                source = s + op.source * 4 + ((row * plan.side + top + k + 1) * plan.side + 1) * in_point
                gather(op.numbers, source, in_point, plan.size, op.depth, factor, work + k * in_line)
            multiply(op.numbers, work, words * 4, lines * plan.size, matrix, words, panels, products, out_point)
            for k in range(lines):
                _finish_line(plan, op, w, s, products + k * out_line, out_point, row, top + k, scale, shift, units)


@inlined_early
def _conv3_tiles(plan, op, rows, w, s):  # type: ignore[no-untyped-def]
    """3x3 convolution by plain sums on tiles, then `finish`."""
    # All points of lines, borders included, are rows of one matrix: neighbors are a fixed distance apart.
    work, products, side = s + plan.work * 4, s + plan.products * 4, plan.side
    words = op.depth // 2
    in_point, out_point = op.source_channels * 4, op.channels * 4
    matrix, panels = w + op.weights * 4, op.channels // PANEL
    scale, shift = w + op.scale * 4, w + op.shift * 4
    for row in range(rows):
        source = s + op.source * 4 + row * side * side * in_point
        gather(TILES, source, in_point, side * side, op.depth, 0, work)
        for top in range(0, plan.size, op.chunk):
            lines = min(op.chunk, plan.size - top)
            points = (lines - 1) * side + plan.size
            first = work + top * side * words * 4
            convolve(TILES, first, words * 4, points, matrix, words, panels, products, out_point, 3, side * words * 4)
            for k in range(lines):
                line = products + k * side * out_point
                _finish_line(plan, op, w, s, line, out_point, row, top + k, scale, shift, 0)


@inlined_early
def _rewrite(plan, op, rows, w, s):  # type: ignore[no-untyped-def]
    """Finish the points of a map, with a vector as the shift (SPREAD) or as the scale (GATE)."""
    in_point = op.source_channels * 4
    for row in range(rows):
        scale, shift = w + op.scale * 4, w + op.shift * 4
        vector = s + (op.vector + row * op.channels) * 4
        if op.kind == SPREAD:
            shift = vector
        elif op.kind == GATE:
            scale = vector
        for y in range(plan.size):
            source = s + op.source * 4 + ((row * plan.side + y + 1) * plan.side + 1) * in_point
            _finish_line(plan, op, w, s, source, in_point, row, y, scale, shift, 0)


@inlined_early
def _flatten(plan, op, rows, w, s):  # type: ignore[no-untyped-def]
    """Finish the points of a map into a vector, point by point."""
    in_point, out_point = op.source_channels * 4, op.channels * 4
    scale, shift, floor = w + op.scale * 4, w + op.shift * 4, w + op.floor * 4
    target = s + op.target * 4
    for row in range(rows):
        for y in range(plan.size):
            source = s + op.source * 4 + ((row * plan.side + y + 1) * plan.side + 1) * in_point
            finish(source, in_point, plan.size, op.channels, scale, shift, floor, target, out_point, 0, 0, 0)
            target += plan.size * out_point


@inlined_early
def _activate_map(plan, op, rows, s):  # type: ignore[no-untyped-def]
    point = op.source_channels * 4
    for row in range(rows):
        for y in range(plan.size):
            where = ((row * plan.side + y + 1) * plan.side + 1) * point
            activate(op.activation, s + op.source * 4 + where, point, plan.size, op.depth)


@inlined_early
def _pool(plan, op, rows, s):  # type: ignore[no-untyped-def]
    """Write sum and maximum over the points of `depth` channels of a map: a vector of 2 * depth."""
    point = op.source_channels * 4
    for row in range(rows):
        source = s + op.source * 4 + ((row * plan.side + 1) * plan.side + 1) * point
        target = s + (op.target + row * 2 * op.depth) * 4
        pool(source, plan.side * point, point, plan.size, op.depth, target, target + op.depth * 4)


@inlined_early
def _dense(op, rows, w, s):  # type: ignore[no-untyped-def]
    target, point = s + op.target * 4, op.channels * 4
    factors, panels = w + op.weights * 4, op.channels // PANEL
    multiply(FLOATS, s + op.source * 4, op.depth * 4, rows, factors, op.depth, panels, target, point)
    scale, shift, floor = w + op.scale * 4, w + op.shift * 4, w + op.floor * 4
    residual = s + op.vector * 4 if op.residual != 0 else 0
    finish(target, point, rows, op.channels, scale, shift, floor, target, point, residual, 0, 0)
    activate(op.activation, target, point, rows, op.channels)


@inlined_early
def _list_inputs(plan, op, row, planes, starts, used, offsets, values):  # type: ignore[no-untyped-def]
    """List the nonzero inputs of one row, point by point; return whether plane 0 is all ones (and is left out).

    The entries of a point begin at starts[point]. An entry's offset is the offset of its plane's and column's weights.
    `used` receives the planes that are not all zero.
    """
    area = plan.size * plan.size
    full = True
    for point in range(area):
        if planes[U(row), U(0), U(point)] != 1.0:
            full = False
    # Planes with entries.
    users = 0
    for plane in range(1 if full else 0, plan.planes):
        entries = 0
        for point in range(area):
            entries += planes[U(row), U(plane), U(point)] != 0.0
        if entries != 0:
            used[U(users)] = plane
            users += 1
    count = 0
    for point in range(area):
        starts[U(point)] = count
        column = point % plan.size
        for k in range(users):
            plane = used[U(k)]
            value = planes[U(row), U(plane), U(point)]
            if value != 0.0:
                offsets[U(count)] = (plane * op.kernel + column) * op.channels * 4
                values[U(count)] = value
                count += 1
    starts[U(area)] = count
    return full


@inlined_early
def _input(plan, op, rows, w, s, planes, lists, values):  # type: ignore[no-untyped-def]
    """The first convolution: add the weights of the nonzero inputs, then `finish`."""
    # Of 7,942 inputs of a 19x19 board, 240 on average (at most 700) are nonzero in KataGo's reference positions,
    # besides plane 0, whose sum is constant.
    size, half, channels = plan.size, op.kernel // 2, op.channels
    area = size * size
    starts = lists[: area + 1]
    spans = lists[area + 1 : area + 1 + 3 * op.kernel]
    used = lists[area + 1 + 3 * op.kernel : area + 1 + 3 * op.kernel + plan.planes]
    offsets = lists[area + 1 + 3 * op.kernel + plan.planes :]
    offsets_at, values_at, spans_at = offsets.ctypes.data, values.ctypes.data, spans.ctypes.data
    products = s + plan.products * 4
    wide, middle, narrow = SPARSE_WIDE * WIDTH, SPARSE_MIDDLE * WIDTH, SPARSE_NARROW * WIDTH
    for row in range(rows):
        full = _list_inputs(plan, op, row, planes, starts, used, offsets, values)
        bias = s + (op.vector + row * channels) * 4
        for y in range(size):
            top, bottom = max(0, y - half), min(size - 1, y + half)
            for x in range(size):
                left, right = max(0, x - half), min(size - 1, x + half)
                # One span per line of the kernel: the entries of its points are adjacent.
                for line in range(top, bottom + 1):
                    begin = starts[U(line * size + left)]
                    span = (line - top) * 3
                    kernel_row = line - y + half
                    place = kernel_row * plan.planes * op.kernel - (x - half)
                    spans[U(span)] = w + (op.weights + place * channels) * 4
                    spans[U(span + 1)] = begin
                    spans[U(span + 2)] = starts[U(line * size + right + 1)] - begin
                base = w + (op.base + (y * size + x if full else area) * channels) * 4
                target = products + x * channels * 4
                c = 0
                while c < channels:
                    at = c * 4
                    if channels - c >= wide:
                        sparse_wide(
                            spans_at, bottom + 1 - top, at, offsets_at, values_at, base + at, bias + at, target + at
                        )
                        c += wide
                    elif channels - c >= middle:
                        sparse_middle(
                            spans_at, bottom + 1 - top, at, offsets_at, values_at, base + at, bias + at, target + at
                        )
                        c += middle
                    else:
                        sparse_narrow(
                            spans_at, bottom + 1 - top, at, offsets_at, values_at, base + at, bias + at, target + at
                        )
                        c += narrow
            scale, shift = w + op.scale * 4, w + op.shift * 4
            _finish_line(plan, op, w, s, products, channels * 4, row, y, scale, shift, 0)


@inlined_early
def _read_map(plan, op, row, weights, scratch, out):  # type: ignore[no-untyped-def]
    """Write the first channel of a map, plus a constant for each point, to out[area]."""
    for y in range(plan.size):
        where = op.source + ((row * plan.side + y + 1) * plan.side + 1) * op.source_channels
        for x in range(plan.size):
            point = y * plan.size + x
            out[U(point)] = scratch[U(where + x * op.source_channels)] + weights[U(op.base + point)]


@kernel
def forward(plan, ops, weights, scratch, lists, values, planes, extras, policy, value, misc, ownership):  # type: ignore[no-untyped-def]
    """Run a program.

    Args:
        plan: PLAN_DTYPE record.
        ops: OP_DTYPE[operations].
        weights: float32[...], see `ProgramBuilder`.
        scratch: float32[...], zero at first, of this thread.
        lists: int64[...] of this thread: see `_list_inputs`.
        values: float32[planes * area] of this thread.
        planes: float32[rows, planes, area].
        extras: float32[rows, globals].
        policy: float32[rows, channels, area], written; with a pass [rows, channels, area + 1].
        value: float32[rows, values], written.
        misc: float32[rows, misc channels], written.
        ownership: float32[rows, area], written.
    """
    w, s = weights.ctypes.data, scratch.ctypes.data
    rows = planes.shape[0]
    for i in range(ops.shape[0]):
        op = ops[i]
        kind = op.kind
        if kind == CONV3 and op.numbers == TILES:
            _conv3_tiles(plan, op, rows, w, s)
        elif kind == CONV3:
            _conv3(plan, op, rows, w, s, weights, scratch)
        elif kind == CONV1:
            _conv1(plan, op, rows, w, s, weights, scratch)
        elif kind == SPREAD or kind == GATE or kind == JOIN:
            _rewrite(plan, op, rows, w, s)
        elif kind == ACTIVATE:
            _activate_map(plan, op, rows, s)
        elif kind == ATTEND:
            attend(plan, op, rows, w, s, scratch)
        elif kind == FEED:
            feed(plan, op, rows, w, s)
        elif kind == NORM:
            norm_points(plan, op, rows, w, s, weights, scratch)
        elif kind == POOL:
            _pool(plan, op, rows, s)
        elif kind == DENSE:
            _dense(op, rows, w, s)
        elif kind == FLATTEN:
            _flatten(plan, op, rows, w, s)
        elif kind == INPUT:
            _input(plan, op, rows, w, s, planes, lists, values)
        elif kind == GLOBALS:
            for row in range(rows):
                for k in range(extras.shape[1]):
                    scratch[U(op.target + row * op.channels + k)] = extras[U(row), U(k)]
        else:
            for row in range(rows):
                if kind == POLICY:
                    _read_map(plan, op, row, weights, scratch, policy[U(row), U(op.target)])
                elif kind == OWNERSHIP:
                    _read_map(plan, op, row, weights, scratch, ownership[U(row)])
                elif kind == PASS:
                    for k in range(policy.shape[1]):
                        policy[U(row), U(k), U(policy.shape[2] - 1)] = scratch[U(op.source + row * op.depth + k)]
                elif kind == VALUE:
                    first = op.source + row * op.depth
                    for k in range(value.shape[1]):
                        value[U(row), U(k)] = scratch[U(first + k)]
                    for k in range(misc.shape[1]):
                        misc[U(row), U(k)] = scratch[U(first + value.shape[1] + k)]
