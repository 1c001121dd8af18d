"""The arrays of batches and workers for one game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from native.tree.arrays import VALUES, Batch, Worker

if TYPE_CHECKING:
    from native.spec import GameSpec


def make_batch(spec: GameSpec, rows: int, *, planes: bool, positions: bool) -> Batch:
    """Return a batch of `rows` rows, with room for the network's inputs and for positions as asked."""
    planes_shape = spec.planes_shape if planes else (0, *spec.planes_shape[1:])
    extras_shape = spec.extras_shape if planes else (0, *spec.extras_shape[1:])
    return Batch(
        node=np.zeros(rows, np.uint32),
        opponent_to_move=np.zeros(rows, np.uint8),
        is_root=np.zeros(rows, np.uint8),
        symmetry=np.zeros(rows, np.int32),
        keys=np.zeros(rows, np.uint64),
        moves=np.zeros((rows, spec.max_moves), np.uint16),
        move_count=np.zeros(rows, np.int32),
        indices=np.zeros((rows, spec.max_moves), np.uint16),
        plain_indices=np.zeros((rows, spec.max_moves), np.uint16),
        planes=np.zeros((rows, *planes_shape), np.float32),
        extras=np.zeros((rows, *extras_shape), np.float32),
        positions=spec.positions(rows if positions else 0),
        logits=np.zeros((rows, spec.policy_size), np.float32),
        values=np.zeros((rows, VALUES), np.float32),
        ownership=np.zeros((rows, spec.area), np.float32),
    )


def make_worker(spec: GameSpec, seed: int) -> Worker:
    """Return what one search thread needs; equal seeds make equal choices."""
    return Worker(
        positions=spec.positions(1),
        history=np.zeros(spec.max_history, np.uint64),
        moves=np.zeros(spec.max_moves, np.uint16),
        priors=np.zeros(spec.max_moves, np.float32),
        weights=np.zeros(spec.max_moves, np.float32),
        indices=np.zeros(spec.max_moves, np.uint16),
        values=np.zeros(VALUES, np.float32),
        rng=np.array([int(seed) | 1], np.uint64),
        scratch=np.zeros(1, spec.scratch_dtype),
        ownership=np.zeros(spec.area + 1, np.float64),
    )
