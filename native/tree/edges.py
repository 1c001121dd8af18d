"""How an edge is packed into 4 bytes: the upper half is its prior in PRIOR_SCALE steps, the lower its move.

Kernels take one edge at a time, Python whole arrays of them.
"""

from typing import TYPE_CHECKING

import numpy as np

from yomi.native.jit import inlined

if TYPE_CHECKING:
    import numpy.typing as npt

PRIOR_SCALE = 65535
"""Steps that a prior of 1 has."""
PRIOR_STEP = np.float32(1.0 / PRIOR_SCALE)
"""The prior of one step."""
_PRIOR_SHIFT = np.uint32(16)
_MOVE_BITS = np.uint32(0xFFFF)


@inlined
def quantized_prior(prior):  # type: ignore[no-untyped-def]
    """Return a prior (float32) in steps, and half a step: cut off to an integer it is the nearest."""
    return min(np.float32(PRIOR_SCALE), prior * np.float32(PRIOR_SCALE) + np.float32(0.5))


@inlined
def pack_edge(prior, move):  # type: ignore[no-untyped-def]
    """Return the edge (uint32) that a prior (float32) and a move make."""
    return (np.uint32(quantized_prior(prior)) << _PRIOR_SHIFT) | np.uint32(move)


@inlined
def edge_move(edge):  # type: ignore[no-untyped-def]
    """Return an edge's move."""
    return edge & _MOVE_BITS


@inlined
def edge_quantized(edge):  # type: ignore[no-untyped-def]
    """Return an edge's prior in steps."""
    return edge >> _PRIOR_SHIFT


@inlined
def edge_prior(edge):  # type: ignore[no-untyped-def]
    """Return an edge's prior, a float64."""
    return float(edge_quantized(edge)) * PRIOR_STEP


def all_moves(edges: "npt.NDArray[np.uint32]") -> "npt.NDArray[np.uint32]":
    """Return the moves of edges."""
    return edges & _MOVE_BITS


def all_quantized(edges: "npt.NDArray[np.uint32]") -> "npt.NDArray[np.uint32]":
    """Return the priors of edges, in steps."""
    return edges >> _PRIOR_SHIFT


def with_quantized(edges: "npt.NDArray[np.uint32]", priors: "npt.NDArray[np.float64]") -> "npt.NDArray[np.uint32]":
    """Return edges of the same moves with other priors, which are in steps."""
    return ((priors + 0.5).astype(np.uint32) << _PRIOR_SHIFT) | all_moves(edges)
