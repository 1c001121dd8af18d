"""The packing of edges: kernels, which take one, and Python, which takes arrays, must agree."""

import numpy as np

from yomi.native.tree.edges import (
    PRIOR_SCALE,
    all_moves,
    all_quantized,
    edge_move,
    edge_prior,
    edge_quantized,
    pack_edge,
    with_quantized,
)

PRIORS = np.concatenate([np.linspace(0.0, 1.0, 257), [1.0 + 1e-6, 0.4 / PRIOR_SCALE, 0.6 / PRIOR_SCALE]])
MOVES = np.linspace(0, 0xFFFF, len(PRIORS)).astype(np.uint32)


def packed() -> np.ndarray:
    return np.array([pack_edge(np.float32(p), int(m)) for p, m in zip(PRIORS, MOVES, strict=True)], np.uint32)


def test_an_edge_holds_its_move_and_the_nearest_prior() -> None:
    edges = packed()
    assert np.array_equal(all_moves(edges), MOVES)
    nearest = np.minimum(np.round(PRIORS.astype(np.float32).astype(np.float64) * PRIOR_SCALE), PRIOR_SCALE)
    assert np.array_equal(all_quantized(edges), nearest)
    for edge, move, steps in zip(edges, MOVES, nearest, strict=True):
        assert (edge_move(edge), edge_quantized(edge)) == (move, steps)
        assert abs(edge_prior(edge) - steps / PRIOR_SCALE) < 1e-9


def test_priors_are_exchanged_without_the_moves() -> None:
    edges = packed()
    steps = np.linspace(PRIOR_SCALE, 0.0, len(edges))
    changed = with_quantized(edges, steps)
    assert changed.dtype == np.uint32
    assert np.array_equal(all_moves(changed), MOVES)
    assert np.array_equal(all_quantized(changed), np.floor(steps + 0.5))
