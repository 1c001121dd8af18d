"""An edge is a uint32: prior << 16 | move, with the prior in steps of 1 / PRIOR_SCALE."""

from typing import TYPE_CHECKING

import numpy as np

from yomi.native.jit import inlined

if TYPE_CHECKING:
    import numpy.typing as npt

# The first functions take one edge in kernels, the last three take arrays in Python.

PRIOR_SCALE = 65535  # steps of a prior of 1
PRIOR_STEP = np.float32(1.0 / PRIOR_SCALE)
_PRIOR_SHIFT = np.uint32(16)
_MOVE_BITS = np.uint32(0xFFFF)


@inlined
def quantized_prior(prior):  # type: ignore[no-untyped-def]
    """Return prior * PRIOR_SCALE + 1/2 (float32). Truncation to an integer rounds to the nearest step."""
    return min(np.float32(PRIOR_SCALE), prior * np.float32(PRIOR_SCALE) + np.float32(0.5))


@inlined
def pack_edge(prior, move):  # type: ignore[no-untyped-def]
    return (np.uint32(quantized_prior(prior)) << _PRIOR_SHIFT) | np.uint32(move)


@inlined
def edge_move(edge):  # type: ignore[no-untyped-def]
    return edge & _MOVE_BITS


@inlined
def edge_quantized(edge):  # type: ignore[no-untyped-def]
    return edge >> _PRIOR_SHIFT


@inlined
def edge_prior(edge):  # type: ignore[no-untyped-def]
    return float(edge_quantized(edge)) * PRIOR_STEP


def all_moves(edges: "npt.NDArray[np.uint32]") -> "npt.NDArray[np.uint32]":
    return edges & _MOVE_BITS


def all_quantized(edges: "npt.NDArray[np.uint32]") -> "npt.NDArray[np.uint32]":
    return edges >> _PRIOR_SHIFT


def with_quantized(edges: "npt.NDArray[np.uint32]", priors: "npt.NDArray[np.float64]") -> "npt.NDArray[np.uint32]":
    """Return edges of the same moves with other priors, in steps."""
    return ((priors + 0.5).astype(np.uint32) << _PRIOR_SHIFT) | all_moves(edges)
