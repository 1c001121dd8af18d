"""Builds forward programs: lists operations, assigns memory to maps, and packs weights for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.native.forward import program
from yomi.native.forward.emit import (
    BYTES,
    FLOATS,
    HAS_DOT_PRODUCTS,
    HAS_HALF_PRODUCTS,
    HAS_PAIRS,
    IN_WORD,
    INTEGERS,
    TILES,
    WIDTH,
    has_tiles,
)
from yomi.native.forward.entry import IDENTITY, bind_program
from yomi.native.forward.gemm import PANEL, FloatArray, pack, quantise, quantise_to_bytes
from yomi.native.forward.pointwise import CLAMP, MISH, SIGMOID, SILU
from yomi.native.forward.program import FACTORS, OP_DTYPE, PLACE_GAP, PLAN_DTYPE, compiled_width
from yomi.native.forward.tiles import halve
from yomi.native.forward.transformer import QUERIES
from yomi.native.forward.winograd import choose_tile, even_matrices, transform_weights

# Applied to a sum x: activation(x * scale + shift). Scale and shift are [channels]; the activation is identity, relu,
# silu, mish or sigmoid.
Norm: TypeAlias = tuple[FloatArray, FloatArray, str]

# By precision: the numbers multiplied by weights, the same for feed-forward nets (the least sensitive), and attention's
# products of two inputs.
NUMBERS = {
    "bf16": (TILES, TILES, TILES),
    "int8": (INTEGERS, BYTES, TILES if HAS_HALF_PRODUCTS else INTEGERS),
    "int16": (INTEGERS, INTEGERS, INTEGERS),
    "fp32": (FLOATS, FLOATS, FLOATS),
}
_IS_THERE = {"bf16": has_tiles(), "int8": HAS_DOT_PRODUCTS, "int16": HAS_PAIRS, "fp32": True}
# Precisions of this processor and system, fastest first.
PRECISIONS = tuple(name for name in NUMBERS if _IS_THERE[name])
MIN_SIZE, MAX_SIZE = 2, 37
MAX_KERNEL = 2 * MAX_SIZE - 1
MAX_ROWS = 16
_TILES = 16  # minimum number of tiles of a convolution, if there are enough rows
_CHUNK_BYTES = 1_400_000  # maximum size of transformed tiles and products per step
# Maximum size of the points of a 1x1 convolution per step, inputs and outputs.
_LINE_BYTES = 300_000
_MIN_CHUNK = 24  # with fewer tiles the weights would be read too often
_ALIGNMENT = 16
# Arrays of this size return to the system when they are dropped. One array per convolution would stay with the process
# (580 MB for kata1-b18c384nbt in fp32).
SLAB = 1 << 24  # floats per array of collected weights
_ACTIVATIONS = {"identity": CLAMP, "relu": CLAMP, "silu": SILU, "mish": MISH, "sigmoid": SIGMOID}


@dataclass(frozen=True, eq=False)
class Map:
    """Channels of a map [rows, side, side, stride]."""

    number: int
    first: int  # first channel
    channels: int  # number of channels, without padding


@dataclass(frozen=True, eq=False)
class Vector:
    number: int
    padded: int
    places: npt.NDArray[np.int64]  # index of each channel among the padded ones


@dataclass(frozen=True, eq=False)
class Scratch:
    floats: FloatArray
    lists: npt.NDArray[np.int64]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Program:
    """A program with its weights; immutable, shared by all threads."""

    plan: Any  # PLAN_DTYPE record
    ops: Any  # OP_DTYPE[operations]
    weights: FloatArray
    max_rows: int  # maximum rows per call of the kernel
    scratch_floats: int
    precision: str = "fp32"  # A key of NUMBERS; int16 in place of int8 if nothing is multiplied with less precision
    squash: int = IDENTITY  # final activation of the value (yomi.native.forward.entry)

    def make_scratch(self) -> Scratch:
        area = int(self.plan["size"]) ** 2
        planes = int(self.plan["planes"])
        inputs = area * planes
        lists = np.zeros(area + 1 + 3 * MAX_KERNEL + planes + inputs, np.int64)
        return Scratch(aligned(self.scratch_floats), lists, np.zeros(inputs, np.float32))

    def run(
        self,
        scratch: Scratch,
        planes: FloatArray,
        extras: FloatArray,
        policy: FloatArray,
        value: FloatArray,
        misc: FloatArray,
        ownership: FloatArray,
    ) -> None:
        """Evaluate rows of planes [B, planes, N, N] and extras [B, globals]; see `forward` for the outputs.

        Arrays are C-contiguous float32. The GIL is released.
        """
        bind_program(self, scratch, planes, extras, policy, value, misc, ownership).run(len(planes))


@dataclass
class _Op:
    """An operation under construction. Its maps and vectors get their memory last."""

    # `build` assigns memory once all operations are known.
    fields: dict[str, int]
    maps: dict[str, Map]
    vectors: dict[str, Vector]


class ProgramBuilder:
    """Collects operations. Each method returns the map or vector that it writes; see nets/forward_program.py."""

    def __init__(self, size: int, planes: int, globals_: int, *, precision: str = "fp32") -> None:
        """Start a program.

        Args:
            size: N of the N × N board.
            planes: number of input planes.
            globals_: number of input scalars.
            precision: one of PRECISIONS, for convolutions after the first and transformer blocks. int8 is for
                feed-forward nets only: all other products are then int16, or bfloats in attention if the processor
                can.

        Raises:
            ValueError: the size is out of range, or the processor lacks the precision.
        """
        # All other operations are float32: nearly all time is spent in these.
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise ValueError(f"found board size {size}, expected {MIN_SIZE} to {MAX_SIZE}")
        if precision not in PRECISIONS:
            raise ValueError(f"found precision {precision}, expected {' or '.join(PRECISIONS)} on this processor")
        if compiled_width() != WIDTH:
            raise RuntimeError(f"found kernels compiled for vectors of {compiled_width()} floats, expected {WIDTH}")
        self._size, self._planes, self._globals = size, planes, globals_
        self._precision = precision
        self._numbers, self._feed_numbers, self._scores = NUMBERS[precision]
        self._tile = choose_tile(size)
        self._side = (size if self._numbers == TILES else -(-size // self._tile) * self._tile) + 2
        self._ops: list[_Op] = []
        self._strides: list[int] = []
        self._vectors: list[int] = []
        self._slabs: list[FloatArray] = []
        self._weight_floats = 0
        self._scratch_floats = 0
        self._work = self._products = size * PANEL
        self._unit_channels = 0
        self._areas: dict[str, int] = {}  # areas of transformer blocks, in floats

    # Inputs

    def globals_(self) -> Vector:
        vector = self._vector(self._globals)
        self._append(program.GLOBALS, vectors={"target": vector}, channels=vector.padded)
        return vector

    def input(self, weights: FloatArray, bias: Vector, norm: Norm) -> tuple[Map, Map]:
        stream = self._map(weights.shape[0])
        return stream, self._append_input(weights, bias, norm, {"stream": stream})

    def first(self, weights: FloatArray, bias: Vector | None, norm: Norm) -> Map:
        # Nothing writes the new vector: it stays zero.
        return self._append_input(weights, bias or self._vector(weights.shape[0]), norm, {})

    def _append_input(self, weights: FloatArray, bias: Vector, norm: Norm, maps: dict[str, Map]) -> Map:
        out, in_channels, kernel, _ = weights.shape
        target = self._map(out)
        padded = self._strides[target.number]
        rows = np.zeros((kernel, in_channels, kernel, padded), np.float32)
        rows[..., :out] = weights.transpose(2, 1, 3, 0)
        ones = np.zeros((self._size**2 + 1, padded), np.float32)
        ones[:-1, :out] = self._of_ones(weights[:, 0])
        self._products = max(self._products, self._size * padded)
        self._append(
            program.INPUT,
            {"target": target, **maps},
            {"vector": bias},
            channels=padded,
            kernel=kernel,
            weights=self._constant(rows),
            base=self._constant(ones),
            norms=self._norms([(out, norm)]),
        )
        return target

    def _of_ones(self, weights: FloatArray) -> FloatArray:
        """Convolve weights [out, k, k] with a plane of ones (0 off the board). Return the result [area, out]."""
        half = weights.shape[-1] // 2
        taps = np.arange(weights.shape[-1]) - half
        places = np.arange(self._size)[:, None] + taps
        on_board = ((places >= 0) & (places < self._size)).astype(np.float32)
        summed = np.einsum("ya,oab,xb->yxo", on_board, weights, on_board)
        return np.asarray(summed, np.float32).reshape(self._size**2, -1)

    # Maps

    def conv(self, source: Map, weights: FloatArray, norm: Norm) -> Map:
        return self.convs(source, [(weights, norm)])[0]

    def convs(self, source: Map, parts: Sequence[tuple[FloatArray, Norm]]) -> list[Map]:
        widths = [_padded(weights.shape[0]) for weights, _ in parts]
        whole = self._map(sum(widths))
        joined = np.concatenate(
            [
                np.pad(weights, ((0, w - len(weights)), (0, 0), (0, 0), (0, 0)))
                for w, (weights, _) in zip(widths, parts, strict=True)
            ]
        )
        kinds = {norm[2] for _, norm in parts}
        together = len(kinds) == 1
        sizes = [(weights.shape[0], norm) for weights, norm in parts]
        self._append_conv(source, joined, {"target": whole}, self._norms(sizes, together))
        firsts = np.cumsum([0, *widths])
        maps = [Map(whole.number, int(first), size) for first, (size, _) in zip(firsts[:-1], sizes, strict=True)]
        # Activations that differ are applied part by part.
        for made, (_, norm) in zip(maps, sizes, strict=True):
            if not together and _ACTIVATIONS[norm[2]] != CLAMP:
                self._append(program.ACTIVATE, {"source": made}, activation=_ACTIVATIONS[norm[2]])
        return maps

    def conv_stream(self, source: Map, weights: FloatArray, norm: Norm) -> tuple[Map, Map]:
        out = weights.shape[0]
        stream, target = self._map(out), self._map(out)
        self._append_conv(source, weights, {"target": target, "stream": stream}, self._norms([(out, norm)]))
        return stream, target

    def conv_add(self, source: Map, weights: FloatArray, stream: Map, norm: Norm) -> Map:
        out = weights.shape[0]
        # The stream stays, and the next block reads the new map.
        target = self._map(out)
        maps = {"target": target, "stream": stream}
        self._append_conv(source, weights, maps, {"residual": 1, **self._norms([(out, norm)])})
        return target

    def conv_onto(self, source: Map, weights: FloatArray, onto: Map, norm: Norm) -> Map:
        norms = {"residual": 1, **self._norms([(weights.shape[0], norm)])}
        self._append_conv(source, weights, {"target": onto, "stream": onto}, norms)
        return onto

    def join(self, source: Map, onto: Map | None, norm: Norm) -> Map:
        target = self._map(source.channels) if onto is None else onto
        maps = {"source": source, "target": target, **({} if onto is None else {"stream": onto})}
        padded = _padded(source.channels)
        norms = self._norms([(source.channels, norm)])
        self._append(program.JOIN, maps, channels=padded, residual=int(onto is not None), norms=norms)
        return target

    def gate(self, source: Map, vector: Vector) -> Map:
        target = self._map(source.channels)
        norms = self._norms([(source.channels, identity(source.channels))])
        maps = {"source": source, "target": target}
        self._append(program.GATE, maps, {"vector": vector}, channels=vector.padded, norms=norms)
        return target

    def spread(self, source: Map, vector: Vector, activation: str) -> Map:
        target = self._map(source.channels)
        norms = self._norms([(source.channels, identity(source.channels, activation))])
        maps = {"source": source, "target": target}
        self._append(program.SPREAD, maps, {"vector": vector}, channels=vector.padded, norms=norms)
        return target

    def norm(
        self, source: Map, gamma: FloatArray, beta: FloatArray, epsilon: float, spatial: bool, activation: str
    ) -> Map:
        target = self._map(source.channels)
        self._append(
            program.NORM,
            {"source": source, "target": target},
            channels=_padded(source.channels),
            constants=self._norm_constants(0.0, epsilon, source.channels),
            whole=int(spatial),
            norms=self._norms([(source.channels, (gamma, beta, activation))]),
        )
        return target

    def attend(
        self,
        stream: Map,
        query: FloatArray,
        key: FloatArray,
        value: FloatArray,
        out: FloatArray,
        heads: int,
        groups: int,
        angles: FloatArray | None,
        epsilon: float,
    ) -> None:
        """Add attention over all points to a map of C channels, with the map / its root mean square as input.

        Args:
            stream: the map.
            query: [C, heads * q]; the channels of a head are contiguous, and the scale of scores is included.
            key: [C, groups * q]; head h reads group h // (heads / groups).
            value: [C, groups * v].
            out: [heads * v, C].
            heads: number of query heads.
            groups: number of key and value heads.
            angles: [area, groups, q / 2]: rotation of each pair of channels of queries and keys; None for none.
            epsilon: of the norm.
        """
        # Heads are padded to panels; queries, keys and values come from one product.
        width = _padded(max(query.shape[1] // heads, value.shape[1] // groups))
        parts = ((query, heads), (key, groups), (value, groups))
        matrix = np.concatenate([_widened(part, count, width) for part, count in parts], axis=1)
        inner = _widened(out.T, heads, width).T
        area, padded, depth = self._size**2, _padded(self._size**2), _padded(stream.channels)
        queries, keys = heads * width, groups * width
        chunk = self._reserve_points(self._numbers, depth, matrix.shape[1], queries, depth)
        self._work = max(self._work, QUERIES * width)
        for name, floats in (
            ("queries", area * queries),
            ("keys", padded * keys),
            ("key_panels", padded * width),
            ("values", padded * keys),
            # Keys are shortened here before there are scores.
            ("scores", max(QUERIES * padded, padded * width // 2)),
            ("value_pairs", padded * width // 2 if self._scores != FLOATS else 0),
        ):
            self._areas[name] = max(self._areas.get(name, 0), floats)
        # A pair of channels has one angle: cosines twice, sines with opposite signs.
        turns = {"cosines": -1, "sines": -1, "key_cosines": -1, "key_sines": -1}
        if angles is not None:
            by_channel = np.zeros((area, groups, width), np.float64)
            by_channel[:, :, : 2 * angles.shape[2]] = np.repeat(angles.astype(np.float64), 2, axis=2)
            signs = np.resize([-1.0, 1.0], width)

            def table(repeats: int) -> tuple[int, int]:
                repeated = np.repeat(by_channel, repeats, axis=1)
                cosines, sines = np.cos(repeated), np.sin(repeated) * signs
                return self._constant(cosines.astype(np.float32)), self._constant(sines.astype(np.float32))

            turns["key_cosines"], turns["key_sines"] = of_keys = table(1)
            # Queries and keys share a table if they can: on large boards the tables exceed the second-level cache.
            turns["cosines"], turns["sines"] = of_keys if heads == groups else table(heads // groups)
        self._append(
            program.ATTEND,
            {"source": stream},
            heads=heads,
            groups=groups,
            width=width,
            chunk=chunk,
            scores=self._scores,
            norms={
                **turns,
                **self._products_of_points(self._numbers, "", matrix, epsilon, stream.channels),
                **self._products_of_points(self._numbers, "inner_", inner, 0.0, 1),
            },
        )

    def feed_forward(
        self, stream: Map, first: FloatArray, gate: FloatArray | None, second: FloatArray, epsilon: float
    ) -> None:
        """Add (silu(u @ first) * (u @ gate)) @ second to a map of C channels, with u = map / its root mean square.

        Args:
            stream: the map.
            first: [C, F].
            gate: [C, F], or None.
            second: [F, C].
            epsilon: of the norm.
        """
        width, depth = _padded(first.shape[1]), _padded(stream.channels)
        firsts = [first] if gate is None else [first, gate]
        matrix = np.concatenate([_widened(each, 1, width) for each in firsts], axis=1)
        numbers, second = self._feed_numbers, _widened(second.T, 1, width).T
        chunk = self._reserve_points(numbers, depth, matrix.shape[1], width, depth)
        self._append(
            program.FEED,
            {"source": stream},
            heads=len(firsts),
            width=width,
            chunk=chunk,
            norms={
                **self._products_of_points(numbers, "", matrix, epsilon, stream.channels),
                **self._products_of_points(numbers, "inner_", second, 0.0, 1),
            },
        )

    def _reserve_points(self, numbers: int, depth: int, products: int, inner: int, out: int) -> int:
        """Reserve memory for two consecutive products. Return the number of lines of the board to process per step."""
        work, results = max(depth, inner) // IN_WORD[numbers], max(products, out)
        lines = min(self._size, max(1, _LINE_BYTES // (self._size * (work + results) * 4)))
        self._work = max(self._work, lines * self._size * work)
        self._products = max(self._products, lines * self._size * results)
        return lines

    def _products_of_points(
        self, numbers: int, prefix: str, matrix: FloatArray, epsilon: float, channels: int
    ) -> dict[str, int]:
        """Return the fields of a product with a matrix [in, out] whose inputs have a factor per point."""
        most = 0.0
        if numbers in (INTEGERS, BYTES):
            words, most, units = quantise(matrix[None]) if numbers == INTEGERS else quantise_to_bytes(matrix)
            padded = np.zeros(_padded(len(units)), np.float32)
            padded[: len(units)] = units / np.float32(most)
            fields = {f"{prefix}weights": self._constant(words), f"{prefix}units": self._constant(padded)}
        else:
            fields = {f"{prefix}weights": self._floats(matrix)["weights"]}
        constants = self._norm_constants(most, epsilon, channels)
        return {"numbers": numbers, **fields, f"{prefix}constants": constants}

    def _norm_constants(self, most: float, epsilon: float, channels: int) -> int:
        return self._constant(np.array([most, epsilon, 1.0 / channels], np.float32))

    def pool(self, source: Map) -> Vector:
        padded = _padded(source.channels)
        places = np.arange(source.channels)
        vector = self._vector(2 * padded, np.concatenate([places, padded + places]))
        self._append(program.POOL, {"source": source}, {"target": vector})
        return vector

    def flatten(self, source: Map) -> Vector:
        area, padded = self._size**2, _padded(source.channels)
        places = (np.arange(area) * padded + np.arange(source.channels)[:, None]).reshape(-1)
        vector = self._vector(area * padded, places)
        norms = self._norms([(source.channels, identity(source.channels))])
        self._append(program.FLATTEN, {"source": source}, {"target": vector}, channels=padded, norms=norms)
        return vector

    def _append_conv(self, source: Map, weights: FloatArray, maps: dict[str, Map], norms: dict[str, int]) -> None:
        """Append a 1x1 or 3x3 convolution.

        Raises:
            ValueError: the kernel has another size.
        """
        kernel = weights.shape[2:]
        channels, depth = _padded(weights.shape[0]), _padded(source.channels)
        maps = {"source": source, **maps}
        words = depth // 2 if self._numbers else depth
        if kernel == (1, 1):
            lines = min(self._size, max(1, _LINE_BYTES // (self._size * (words + channels) * 4)))
            self._work = max(self._work, lines * self._size * words)
            self._products = max(self._products, lines * self._size * channels)
            matrix = weights[:, :, 0, 0].T
            packed = self._quantised(matrix[None], np.ones(1)) if self._numbers == INTEGERS else self._floats(matrix)
            self._append(program.CONV1, maps, channels=channels, chunk=lines, norms={**packed, **norms})
            return
        if kernel != (3, 3):
            raise ValueError(f"found a convolution of {kernel[0]}x{kernel[1]} points, expected 1x1 or 3x3")
        if self._numbers == TILES:
            self._append_conv3_tiles(source, weights, maps, norms)
            return
        places = (self._tile + 2) ** 2
        chunk = max(_MIN_CHUNK, _CHUNK_BYTES // (places * (words + channels) * 4))
        self._work = max(self._work, places * (chunk * words + PLACE_GAP))
        self._products = max(self._products, places * (chunk * channels + PLACE_GAP))
        matrices = transform_weights(weights, self._tile, even=self._numbers == INTEGERS)
        factors = even_matrices(self._tile)[2]
        is_narrow = self._numbers == INTEGERS
        packed = self._quantised(matrices, np.outer(factors, factors)) if is_narrow else self._floats(matrices)
        numbers = {"tile": self._tile, "chunk": chunk, **packed, **norms}
        self._append(program.CONV3, maps, channels=channels, norms=numbers)

    def _append_conv3_tiles(
        self, source: Map, weights: FloatArray, maps: dict[str, Map], norms: dict[str, int]
    ) -> None:
        channels, depth = _padded(weights.shape[0]), _padded(source.channels)
        lines = min(self._size, max(1, _LINE_BYTES // (self._side * channels * 4)))
        self._work = max(self._work, self._side**2 * depth // 2)
        self._products = max(self._products, lines * self._side * channels)
        taps = np.zeros((3, 3, depth, weights.shape[0]), np.float32)
        taps[:, :, : source.channels] = weights.transpose(2, 3, 1, 0)
        packed = self._floats(taps.reshape(9 * depth, -1))
        self._append(program.CONV3, maps, channels=channels, chunk=lines, norms={**packed, **norms})

    def _floats(self, matrices: FloatArray) -> dict[str, int]:
        panels = pack(matrices)
        return {
            "weights": self._constant(halve(panels) if self._numbers == TILES else panels),
            "numbers": self._numbers,
        }

    def _quantised(self, matrices: FloatArray, factors: npt.NDArray[np.float64]) -> dict[str, int]:
        """Return the fields of a convolution of integers.

        Args:
            matrices: weights [places, in, out].
            factors: for each place, the scale that brings transformed inputs into [-1, 1] if all inputs are.
        """
        words, most, units = quantise(matrices)
        padded = np.ones(_padded(len(units)), np.float32)
        padded[: len(units)] = units / np.float32(most)
        self._unit_channels = max(self._unit_channels, len(padded))
        return {
            "numbers": INTEGERS,
            "weights": self._constant(words),
            "places": factors.size,
            "factors": self._constant((most * factors).astype(np.float32)),
            "units": self._constant(padded),
        }

    # Vectors

    def dense(self, source: Vector, matrix: FloatArray, norm: Norm, onto: Vector | None = None) -> Vector:
        spaced = np.zeros((source.padded, matrix.shape[1]), np.float32)
        spaced[source.places] = matrix
        target = self._vector(matrix.shape[1])
        self._append(
            program.DENSE,
            vectors={"source": source, "target": target, **({"vector": onto} if onto else {})},
            depth=source.padded,
            channels=target.padded,
            residual=int(onto is not None),
            weights=self._constant(pack(spaced)),
            norms=self._norms([(matrix.shape[1], norm)]),
        )
        return target

    # Outputs

    def policy(self, board: Sequence[Map], passing: Vector) -> None:
        zeros = self._constant(np.zeros(self._size**2, np.float32))
        for channel, each in enumerate(board):
            self._append(program.POLICY, {"source": each}, target=channel, base=zeros)
        self._append(program.PASS, vectors={"source": passing}, depth=passing.padded)

    def labels(self, source: Map, bias: FloatArray) -> None:
        for channel, part in enumerate(bias.reshape(source.channels, -1)):
            each = Map(source.number, source.first + channel, 1)
            self._append(program.POLICY, {"source": each}, target=channel, base=self._constant(part))

    def value(self, vector: Vector) -> None:
        self._append(program.VALUE, vectors={"source": vector}, depth=vector.padded)

    def ownership(self, source: Map) -> None:
        zeros = self._constant(np.zeros(self._size**2, np.float32))
        self._append(program.OWNERSHIP, {"source": source}, base=zeros)

    # Putting it together

    def build(self) -> Program:
        """Return the program. A builder builds once."""
        # The program takes the builder's weights along.
        max_rows = self._suitable_rows()
        map_offsets = self._place_maps(max_rows)
        vector_offsets = [self._reserve(max_rows * padded) for padded in self._vectors]
        areas = {
            "work": self._reserve(self._work),
            "products": self._reserve(self._products),
            "factors": self._reserve(max_rows * FACTORS),
            "units": self._reserve(max_rows * self._unit_channels),
            "unit_channels": self._unit_channels,
            "point_factors": self._reserve(self._size**2),
            **{name: self._reserve(floats) for name, floats in self._areas.items()},
        }
        ops = np.zeros(len(self._ops), OP_DTYPE)
        ops["stream"] = -1
        for row, op in zip(ops, self._ops, strict=True):
            fields = dict(op.fields)
            fields |= {name: map_offsets[each.number] + each.first for name, each in op.maps.items()}
            fields |= {name: vector_offsets[each.number] for name, each in op.vectors.items()}
            if "source" in op.maps:
                fields["source_channels"] = self._strides[op.maps["source"].number]
                fields["depth"] = _padded(op.maps["source"].channels)
            for name, number in fields.items():
                row[name] = number
        plan = np.zeros(1, PLAN_DTYPE)[0]
        for name, number in {"size": self._size, "side": self._side, "planes": self._planes, **areas}.items():
            plan[name] = number
        precision = self._precision
        if precision == "int8" and not self._has_less_than_int16():
            precision = "int16"
        return Program(plan, ops, self._join_weights(), max_rows, self._scratch_floats, precision)

    def _has_less_than_int16(self) -> bool:
        return any(op.fields["kind"] == program.FEED or op.fields.get("scores") == TILES for op in self._ops)

    def _join_weights(self) -> FloatArray:
        weights = aligned(self._weight_floats)
        # Each slab is dropped as it is copied: the weights of a large network are never in memory twice.
        for start in range(0, self._weight_floats, SLAB):
            slab = self._slabs.pop(0)
            weights[start : start + SLAB] = slab[: self._weight_floats - start]
        return weights

    def _suitable_rows(self) -> int:
        # With few tiles the weights are read too often, with many the maps fall out of the cache. Four rows on 9x9 and
        # one on 19x19 are fastest, for 64 to 256 channels and weights that fit the cache or not.
        tiles_a_side = -(-self._size // self._tile)
        return min(MAX_ROWS, -(-_TILES // tiles_a_side**2))

    def _place_maps(self, max_rows: int) -> list[int]:
        """Return the offset of each map. Maps of the same stride share memory if they are not needed together."""
        # The border of a place stays zero, as all its maps have the same stride.
        last = {each.number: index for index, op in enumerate(self._ops) for each in op.maps.values()}
        offsets = [-1] * len(self._strides)
        free: dict[int, list[int]] = {}
        for index, op in enumerate(self._ops):
            numbers = {each.number for each in op.maps.values()}
            for number in sorted(numbers):
                if offsets[number] < 0:
                    stride = self._strides[number]
                    places = free.setdefault(stride, [])
                    offsets[number] = places.pop() if places else self._reserve(max_rows * self._side**2 * stride)
            for number in sorted(numbers):
                if last[number] == index:
                    free.setdefault(self._strides[number], []).append(offsets[number])
        return offsets

    def _append(
        self,
        kind: int,
        maps: dict[str, Map] | None = None,
        vectors: dict[str, Vector] | None = None,
        norms: dict[str, int] | None = None,
        **fields: int,
    ) -> None:
        self._ops.append(_Op({"kind": kind, **fields, **(norms or {})}, maps or {}, vectors or {}))

    def _map(self, channels: int) -> Map:
        self._strides.append(_padded(channels))
        return Map(len(self._strides) - 1, 0, channels)

    def _vector(self, channels: int, places: npt.NDArray[np.int64] | None = None) -> Vector:
        padded = _padded(channels)
        self._vectors.append(padded)
        return Vector(len(self._vectors) - 1, padded, np.arange(channels) if places is None else places)

    def _reserve(self, floats: int) -> int:
        offset = self._scratch_floats
        self._scratch_floats += floats + -floats % _ALIGNMENT
        return offset

    def _constant(self, array: FloatArray) -> int:
        offset = self._weight_floats
        flat = array.reshape(-1)
        self._weight_floats += flat.size + -flat.size % _ALIGNMENT
        while len(self._slabs) * SLAB < self._weight_floats:
            self._slabs.append(np.zeros(SLAB, np.float32))
        done = 0
        while done < flat.size:
            slab, first = divmod(offset + done, SLAB)
            part = flat[done : done + SLAB - first]
            self._slabs[slab][first : first + part.size] = part
            done += part.size
        return offset

    def _norms(self, parts: Sequence[tuple[int, Norm]], together: bool = True) -> dict[str, int]:
        """Store the norms of adjacent parts (channels, norm), each part padded to whole panels.

        Returns the places of scale, shift and floor, and the activation. Without `together` the parts have different
        activations: the result is CLAMP.
        """
        channels = sum(_padded(count) for count, _ in parts)
        scale, shift, floor = (np.zeros(channels, np.float32) for _ in range(3))
        first = 0
        for count, (by, plus, activation) in parts:
            scale[first : first + count] = by
            shift[first : first + count] = plus
            if activation != "relu":
                floor[first : first + count] = -np.inf
            first += _padded(count)
        numbers = {"scale": self._constant(scale), "shift": self._constant(shift), "floor": self._constant(floor)}
        return {**numbers, "activation": _ACTIVATIONS[parts[0][1][2]] if together else CLAMP}


def identity(channels: int, activation: str = "identity") -> Norm:
    """Return a norm that only applies the activation."""
    return np.ones(channels, np.float32), np.zeros(channels, np.float32), activation


def _padded(channels: int) -> int:
    return channels + -channels % PANEL


def _widened(matrix: FloatArray, parts: int, width: int) -> FloatArray:
    split = matrix.reshape(matrix.shape[0], parts, -1)
    return np.pad(split, ((0, 0), (0, 0), (0, width - split.shape[2]))).reshape(matrix.shape[0], -1)


def aligned(floats: int) -> FloatArray:
    """Return float32 zeros whose memory begins at a cache line."""
    spare = np.zeros(floats + _ALIGNMENT, np.float32)
    first = -spare.ctypes.data // 4 % _ALIGNMENT
    return spare[first : first + floats]
