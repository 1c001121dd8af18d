"""Common parts of programs for forward passes without onnxruntime, for all kinds of networks."""

from __future__ import annotations

from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]
Norm: TypeAlias = tuple[FloatArray, FloatArray, str]
"""Scale and shift, each [channels], and an activation: identity, relu, silu, mish or sigmoid."""

M = TypeVar("M")
V = TypeVar("V")


class Builder(Protocol[M, V]):
    """The operations of a forward pass on its own maps M [rows, N, N, channels] and vectors V [rows, channels]."""

    def globals_(self) -> V:
        """Return the input numbers that are not per point."""

    def conv(self, source: M, weights: FloatArray, norm: Norm) -> M:
        """Convolve with weights [out, in, k, k], k 1 or 3, and return norm(sum)."""

    def pool(self, source: M) -> V:
        """Return the sums over the points of each channel, then the maxima."""

    def dense(self, source: V, matrix: FloatArray, norm: Norm) -> V:
        """Return norm(source @ matrix) for a matrix [in, out]."""

    def value(self, vector: V) -> None:
        """Use a vector as the value outputs, followed by the misc outputs if there are any."""


def identity_norm(channels: int) -> Norm:
    """Return a norm that changes nothing."""
    return np.ones(channels, np.float32), np.zeros(channels, np.float32), "identity"
