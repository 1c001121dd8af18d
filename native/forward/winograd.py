"""Winograd's minimal filtering for 3x3 convolutions: F(m x m, 3 x 3) turns tiles of (m + 2)² inputs into m² outputs.

    inputs V = B^T d B per tile;  M[place] = V[place] [tiles, in] @ U[place] [in, out];  outputs A^T M A

with (m + 2)² places. F(5) needs 4.1 times fewer multiplications than the plain sum on 19x19, 3.7 times on 9x9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.native.forward.emit import FLOAT_BYTES, HAS_PAIRS, I64, INT_VECTOR, WIDTH, Emitter, Routine, chosen
from yomi.native.forward.gemm import FloatArray

# The matrices are Cook and Toom's (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015), for
# infinity and points found by search: short binary fractions, so that sums are exact, in pairs of opposites, so that
# half of the factors are 0. Their rounding error is half that of the usual 0, 1, -1, 2, -2.
#
# Products of 16-bit integers are as fast as products of bfloats, on more processors. Simulated relative errors: F(3)
# 1.4e-3, F(4) 2.8e-3, F(5) 5.1e-3; with bfloats 5.6e-3, 9.4e-3, 18e-3. F(7) would save 27% on 13x13, with 43e-3.

Matrix: TypeAlias = npt.NDArray[np.float64]

_POINTS = {
    3: (0.375, -0.375, 1.25, -1.25),
    4: (0.0, 0.6875, -0.6875, 1.5625, -1.5625),
    5: (0.28125, -0.28125, 0.84375, -0.84375, 1.75, -1.75),
}
_KINDS = (False, True) if HAS_PAIRS else (False,)  # whether products are of integers
_VECTOR_BYTES = WIDTH * FLOAT_BYTES
TILE_OUTPUTS = tuple(_POINTS)  # the values of m


def choose_tile(size: int) -> int:
    """Return the m with the fewest multiplications on boards of `size`. Of equally good m, the smallest is chosen."""
    return min(TILE_OUTPUTS, key=lambda m: (-(-size // m) * (m + 2)) ** 2)


def matrices(m: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return A^T [m, n], G [n, 3] and B^T [n, n] with n = m + 2: outputs = A^T ((G g) * (B^T d))."""
    points = _POINTS[m]
    n = m + 2
    a, g, b = np.zeros((m, n)), np.zeros((n, 3)), np.zeros((n, n))
    for j, point in enumerate(points):
        others = [other for other in points if other != point]
        a[:, j] = [point**i for i in range(m)]
        g[j] = np.array([point**k for k in range(3)]) / np.prod([point - other for other in others])
        b[j, : n - 1] = np.poly(others)[::-1]
    a[m - 1, n - 1] = 1.0
    g[n - 1, 2] = 1.0
    b[n - 1] = np.poly(points)[::-1]
    return a, g, b


def even_matrices(m: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return A^T, G and factors [n] for integers: outputs = A^T ((G g) * (factors * (B^T d)))."""
    # Rows of G have equal norms, and |factors * (B^T d)| <= max |d|.
    a, g, b = matrices(m)
    # Rounded so that opposite points keep equal factors, which `apply` relies on.
    factors = 1.0 / np.abs(b).sum(axis=1).round(9)
    weights = 1.0 / np.linalg.norm(g, axis=1).round(9)
    return a / (factors * weights), g * weights[:, None], factors


def transform_weights(weights: FloatArray, m: int, even: bool = False) -> FloatArray:
    """Return G g G^T of weights [out, in, 3, 3] as matrices [(m + 2)², in, out]; G as in (even_)matrices."""
    out_channels, in_channels = weights.shape[:2]
    g = (even_matrices if even else matrices)(m)[1].astype(np.float32)
    flat = weights.transpose(2, 3, 1, 0).reshape(3, 3, in_channels * out_channels)
    # One axis at a time and without BLAS, whose threads cost more than these sums: 30 ms per convolution.
    rows = np.einsum("ik,klp->ilp", g, flat)
    both = np.einsum("jl,ilp->ijp", g, rows)
    return np.asarray(both, np.float32).reshape(-1, in_channels, out_channels)


# Writing the transforms


def _combine(e: Emitter, terms: list[tuple[float, Any]]) -> Any:
    """Return the sum of factor * value over terms with a factor other than 0."""
    terms = sorted((term for term in terms if term[0] != 0.0), key=lambda term: abs(term[0]) != 1.0)
    if not terms:
        return e.splat(0.0)
    positive = next((term for term in terms if term[0] == 1.0), None)
    if positive is not None:
        terms.remove(positive)
        total = positive[1]
    else:
        factor, value = terms.pop(0)
        total = e.mul(value, e.splat(factor))
    for factor, value in terms:
        if factor == 1.0:
            total = e.add(total, value)
        elif factor == -1.0:
            total = e.sub(total, value)
        else:
            total = e.fma(value, e.splat(factor), total)
    return total


def apply(e: Emitter, matrix: Matrix, values: Sequence[Any]) -> list[Any]:
    """Emit code for matrix @ values, where each value is a vector, and return the results."""
    # The interpolation points p and -p differ only in signs, so their common sums are computed once.
    # In A^T the columns of two opposite points differ only in signs: sum and difference of the two values suffice. In
    # B^T their rows are an even part plus and minus an odd part.
    matrix, values = matrix.copy(), list(values)
    for j in range(matrix.shape[1] - 1):
        left, right = matrix[:, j], matrix[:, j + 1]
        if (left != 0).any() and (np.abs(left) == np.abs(right)).all() and (left != right).any():
            values[j], values[j + 1] = e.add(values[j], values[j + 1]), e.sub(values[j], values[j + 1])
            matrix[:, j], matrix[:, j + 1] = (left + right) / 2, (left - right) / 2
    results = []
    i = 0
    while i < len(matrix):
        row = matrix[i]
        if i + 1 < len(matrix):
            even, odd = (row + matrix[i + 1]) / 2, (row - matrix[i + 1]) / 2
            apart = np.count_nonzero(row) + np.count_nonzero(matrix[i + 1])
            if np.count_nonzero(even) + np.count_nonzero(odd) + 2 < apart:
                half = _combine(e, list(zip(even, values, strict=True)))
                factor = odd[np.flatnonzero(odd)[-1]]
                other = _combine(e, list(zip(odd / factor, values, strict=True)))
                results += [e.fma(other, e.splat(by), half) for by in (factor, -factor)]
                i += 2
                continue
        results.append(_combine(e, list(zip(row, values, strict=True))))
        i += 1
    return results


# Between columns and rows, values are stored. Otherwise LLVM keeps 49 of them and as many addresses in 16 registers.


def _input_routine(m: int, narrow: bool) -> Routine:
    n = m + 2
    matrix = matrices(m)[2]

    def body(
        e: Emitter, source: Any, line: Any, point: Any, target: Any, place: Any, channels: Any, factors: Any
    ) -> None:
        half = e.reserve(n * n)
        with e.loop(channels, WIDTH) as loop:
            offset = e.times(loop.index, FLOAT_BYTES)
            first, out = e.at(source, offset), e.at(target, e.times(loop.index, 2) if narrow else offset)
            with e.loop(I64(n), 1) as column:
                start = e.at(first, e.ir.mul(point, column.index))
                values = apply(e, matrix, [e.load(e.at(start, e.times(line, y))) for y in range(n)])
                for i, value in enumerate(values):
                    e.store(value, e.at(half, e.times(column.index, _VECTOR_BYTES), i * n * _VECTOR_BYTES))
            with e.loop(I64(n), 1) as row:
                start = e.at(half, e.times(row.index, n * _VECTOR_BYTES))
                values = apply(e, matrix, [e.load(e.at(start, x * _VECTOR_BYTES)) for x in range(n)])
                row_out, row_factors = (
                    e.at(base, e.ir.mul(e.times(row.index, n), step))
                    for base, step in ((out, place), (factors, I64(FLOAT_BYTES)))
                )
                for j, value in enumerate(values):
                    where = e.at(row_out, e.times(place, j))
                    if narrow:
                        e.store_rounded(value, e.broadcast(e.at(row_factors, j * FLOAT_BYTES)), where)
                    else:
                        e.store(value, where)

    return Routine(f"winograd_input_{m}_{int(narrow)}", 7, body)


def _output_routine(m: int, narrow: bool, summed: bool) -> Routine:
    n = m + 2
    matrix = (even_matrices if narrow else matrices)(m)[0]

    def body(
        e: Emitter,
        source: Any,
        place: Any,
        height: Any,
        width: Any,
        line: Any,
        point: Any,
        channels: Any,
        scale: Any,
        shift: Any,
        floor: Any,
        target: Any,
        stream: Any,
        units: Any,
    ) -> None:
        builder = e.ir

        def load(address: Any) -> Any:
            return e.to_floats(e.load(address, INT_VECTOR)) if narrow else e.load(address)

        half = e.reserve(m * n)
        with e.loop(channels, WIDTH) as loop:
            offset = e.times(loop.index, FLOAT_BYTES)
            first = e.at(source, offset)
            by, plus, least = (e.load(e.at(base, offset)) for base in (scale, shift, floor))
            unit = e.load(e.at(units, offset)) if narrow else e.splat(1.0)
            if not summed:
                by = e.mul(by, unit)
            with e.loop(I64(n), 1) as column:
                start = e.at(first, builder.mul(place, column.index))
                values = apply(e, matrix, [load(e.at(start, e.times(place, i * n))) for i in range(n)])
                for y, value in enumerate(values):
                    e.store(value, e.at(half, e.times(column.index, _VECTOR_BYTES), y * n * _VECTOR_BYTES))
            with e.loop(height, 1) as row:
                start = e.at(half, e.times(row.index, n * _VECTOR_BYTES))
                values = apply(e, matrix, [e.load(e.at(start, j * _VECTOR_BYTES)) for j in range(n)])
                row_offset = e.at(offset, builder.mul(line, row.index))
                for x, value in enumerate(values):
                    with builder.if_then(builder.icmp_signed("<", I64(x), width)):
                        where = e.at(row_offset, e.times(point, x))
                        if summed:
                            value = e.fma(value, unit, e.load(e.at(stream, where)))
                            e.store(value, e.at(stream, where))
                        e.store(e.maximum(e.fma(value, by, plus), least), e.at(target, where))

    return Routine(f"winograd_output_{m}_{int(narrow)}_{int(summed)}", 13, body)


_INPUT: dict[tuple[int, ...], Routine] = {
    (m, narrow): _input_routine(m, narrow) for m in TILE_OUTPUTS for narrow in _KINDS
}
_OUTPUT: dict[tuple[int, ...], Routine] = {
    (m, narrow, summed): _output_routine(m, narrow, summed)
    for m in TILE_OUTPUTS
    for narrow in _KINDS
    for summed in (False, True)
}


# transform(m, narrow, source, line, point, target, place, channels, factors): transform a tile of inputs.
#
# narrow: write 16-bit integers, multiplied by the floats at `factors`, one per place. Does nothing without HAS_PAIRS.
# source: address of the tile's first input [n, n, channels]; `line` and `point` are strides in bytes.
# target: address of the tile's vector in the first of n² places, which are `place` bytes apart.
transform = Routine("winograd_input", 9, chosen(_INPUT)).intrinsic()
# transform_back(m, narrow, summed, source, place, height, width, line, point, channels, scale, shift, floor, target,
# stream, units)
#
# Transform a tile of products to sums x; write the first height * width. With `narrow`, products are 32-bit integers
# in units of their channel. With `summed`, x is added to the stream and written there. Then target = max(x * scale +
# shift, floor), by channel.
transform_back = Routine("winograd_output", 16, chosen(_OUTPUT)).intrinsic()
