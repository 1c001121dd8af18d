"""The operations of forward passes. A writer walks through a network and calls a builder.

`yomi.nets.katago.cpu_program` and `yomi.nets.onnx_program` are the writers. The package that computes has the builder
for yomi's own kernels; `yomi.nets.katago.onnx_export` has the builder for ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
# Scale and shift, each [channels], and an activation: identity, relu, silu, mish or sigmoid.
Norm: TypeAlias = tuple[FloatArray, FloatArray, str]

M = TypeVar("M")
V = TypeVar("V")


class Builder(Protocol[M, V]):
    """Operations on the builder's maps M [rows, N, N, channels] and vectors V [rows, channels]."""

    def globals_(self) -> V:
        """Return the input numbers that are not per point."""

    def first(self, weights: FloatArray, bias: V | None, norm: Norm) -> M:
        """Convolve the planes with weights [out, in, k, k], add the bias, and return norm(sum)."""

    def conv(self, source: M, weights: FloatArray, norm: Norm) -> M:
        """Convolve with weights [out, in, k, k], k 1 or 3, and return norm(sum)."""

    def conv_onto(self, source: M, weights: FloatArray, onto: M, norm: Norm) -> M:
        """Convolve, add the map `onto` (not the source), and write norm(sum) over it."""

    def join(self, source: M, onto: M | None, norm: Norm) -> M:
        """Write norm(source + onto) over `onto`. Without `onto` return norm(source), a new map."""

    def pool(self, source: M) -> V:
        """Return the sums over the points of each channel, then the maxima."""

    def dense(self, source: V, matrix: FloatArray, norm: Norm, onto: V | None = None) -> V:
        """Return norm(source @ matrix + onto) for a matrix [in, out]."""

    def value(self, vector: V) -> None:
        """Use a vector as the value outputs, followed by the misc outputs if there are any."""


class OnnxProgramBuilder(Builder[M, V], Protocol[M, V]):
    """Further operations for ONNX graphs. A is the area of the board."""

    def gate(self, source: M, vector: V) -> M:
        """Multiply each point by a vector."""

    def flatten(self, source: M) -> V:
        """Return the map as a vector whose entry c * A + p is channel c of point p."""

    def labels(self, source: M, bias: FloatArray) -> None:
        """Use a map plus the bias [channels * A] as the policy [channels, A]."""


class KataGoBuilder(Builder[M, V], Protocol[M, V]):
    """Further operations for KataGo's networks. The stream is the residual map that blocks add to."""

    def input(self, weights: FloatArray, bias: V, norm: Norm) -> tuple[M, M]:
        """Convolve the planes with weights [out, in, k, k] and add the bias; return the sum and norm(sum)."""

    def convs(self, source: M, parts: Sequence[tuple[FloatArray, Norm]]) -> list[M]:
        """Convolve one map with several weights of the same k."""

    def conv_stream(self, source: M, weights: FloatArray, norm: Norm) -> tuple[M, M]:
        """Convolve; return the sum and norm(sum)."""

    def conv_add(self, source: M, weights: FloatArray, stream: M, norm: Norm) -> M:
        """Convolve and add the sum to the stream; return norm(stream)."""

    def spread(self, source: M, vector: V, activation: str) -> M:
        """Add a vector to each point and activate."""

    def policy(self, board: Sequence[M], passing: V) -> None:
        """Use one map for each channel, and the vector of all channels' passes, as the policy."""

    def ownership(self, source: M) -> None: ...

    def norm(self, source: M, gamma: FloatArray, beta: FloatArray, epsilon: float, spatial: bool, activation: str) -> M:
        """Return activation(x / root mean square * gamma + beta). The mean is over a point or, if spatial, over the
        board.
        """

    def attend(
        self,
        stream: M,
        query: FloatArray,
        key: FloatArray,
        value: FloatArray,
        out: FloatArray,
        heads: int,
        groups: int,
        angles: FloatArray | None,
        epsilon: float,
    ) -> None:
        """Add attention to the stream. Its input is the stream divided by its root mean square; `query` contains the
        scale.
        """

    def feed_forward(
        self, stream: M, first: FloatArray, gate: FloatArray | None, second: FloatArray, epsilon: float
    ) -> None:
        """Add (silu(u @ first) * (u @ gate)) @ second to the stream, with u = stream / its root mean square."""


def identity_norm(channels: int) -> Norm:
    return np.ones(channels, np.float32), np.zeros(channels, np.float32), "identity"
