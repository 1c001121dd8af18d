"""The operations of forward passes. A writer walks through a network and calls a builder for each operation.

`yomi.nets.katago.cpu_program` and `yomi.nets.onnx_program` are the writers. The package that computes has the builder
for yomi's own kernels; `yomi.nets.katago.onnx_export` has the builder for ONNX.
"""

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
        """Return the inputs that are numbers for the whole board."""

    def first(self, weights: FloatArray, bias: V | None, norm: Norm) -> M:
        """Convolve the planes with weights [out, in, k, k], add `bias`, and return norm(sum)."""

    def conv(self, source: M, weights: FloatArray, norm: Norm) -> M:
        """Convolve `source` with weights [out, in, k, k] (k is 1 or 3), and return norm(sum)."""

    def conv_onto(self, source: M, weights: FloatArray, onto: M, norm: Norm) -> M:
        """Overwrite `onto` with norm(convolution of `source` + `onto`), and return it. `source` is another map."""

    def join(self, source: M, onto: M | None, norm: Norm) -> M:
        """Overwrite `onto` with norm(source + onto), and return it. Without `onto` return norm(source) as a new map."""

    def pool(self, source: M) -> V:
        """Return for each channel the sum over the points; then for each channel the maximum."""

    def dense(self, source: V, matrix: FloatArray, norm: Norm, onto: V | None = None) -> V:
        """Return norm(source @ matrix + onto) for a matrix [in, out]."""

    def value(self, vector: V) -> None:
        """Make a vector the value outputs, followed by the misc outputs if there are any."""


class OnnxProgramBuilder(Builder[M, V], Protocol[M, V]):
    """Further operations, for ONNX graphs. A is the area of the board."""

    def gate(self, source: M, vector: V) -> M:
        """Multiply each point by a vector."""

    def flatten(self, source: M) -> V:
        """Return the map as a vector whose entry c * A + p is channel c of point p."""

    def labels(self, source: M, bias: FloatArray) -> None:
        """Make a map plus the bias [channels * A] the policy [channels, A]."""


class KataGoBuilder(Builder[M, V], Protocol[M, V]):
    """Further operations, for KataGo's networks. The stream is the residual map to which blocks add."""

    def input(self, weights: FloatArray, bias: V, norm: Norm) -> tuple[M, M]:
        """Convolve the planes with weights [out, in, k, k] and add the bias; return the sum and norm(sum)."""

    def convs(self, source: M, parts: Sequence[tuple[FloatArray, Norm]]) -> list[M]:
        """Convolve one map with the weights of several parts, which have the same k. Return one map for each part."""

    def conv_stream(self, source: M, weights: FloatArray, norm: Norm) -> tuple[M, M]:
        """Convolve `source`. Return the sum, a new stream, and norm(sum)."""

    def conv_add(self, source: M, weights: FloatArray, stream: M, norm: Norm) -> M:
        """Convolve `source`, add the result to the stream, and return norm(stream)."""

    def spread(self, source: M, vector: V, activation: str) -> M:
        """Add a vector to each point of a map, and apply the activation."""

    def policy(self, board: Sequence[M], passing: V) -> None:
        """Make the policy from one map for each channel, and a vector of all channels' passes."""

    def ownership(self, source: M) -> None: ...

    def norm(self, source: M, gamma: FloatArray, beta: FloatArray, epsilon: float, spatial: bool, activation: str) -> M:
        """Return activation(x / root mean square * gamma + beta). The mean is over a point, if `spatial` over all."""

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
        """Add attention to the stream. Its input is the stream / its root mean square. `query` contains the scale."""

    def feed_forward(
        self, stream: M, first: FloatArray, gate: FloatArray | None, second: FloatArray, epsilon: float
    ) -> None:
        """Add (silu(u @ first) * (u @ gate)) @ second to the stream, with u = stream / its root mean square."""


def identity_norm(channels: int) -> Norm:
    return np.ones(channels, np.float32), np.zeros(channels, np.float32), "identity"
