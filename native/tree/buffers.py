"""The arrays of batches and workers for one game."""

from __future__ import annotations

import numpy as np

from native.spec import GameSpec, Inputs
from native.tree.arrays import GROUP_DTYPE, LEAST_PATH, MOST_GROUPS, VALUES, Batch, Worker


def _path_size(spec: GameSpec) -> int:
    """Return how many nodes a path from the root may have."""
    return max(spec.max_history, LEAST_PATH)


def make_batch(spec: GameSpec, rows: int, inputs: Inputs) -> Batch:
    """Return a batch of `rows` rows, with room for what an evaluator reads.

    Raises:
        ValueError: it reads bits, and the game's planes are not zeros and ones.
    """
    numbers, bits = Inputs.NUMBERS in inputs, Inputs.BITS in inputs
    if bits and not spec.bits:
        raise ValueError(f"{inputs} found for planes of other numbers than 0 and 1, expected {Inputs.NUMBERS}")
    planes_shape = spec.planes_shape if numbers else (0, *spec.planes_shape[1:])
    has_extras = numbers or (bits and len(spec.bits) == 1)
    return Batch(
        node=np.zeros(rows, np.uint32),
        path=np.zeros((rows, _path_size(spec)), np.uint32),
        slots=np.zeros((rows, _path_size(spec)), np.uint16),
        depth=np.zeros(rows, np.int32),
        is_root=np.zeros(rows, np.uint8),
        symmetry=np.zeros(rows, np.int32),
        keys=np.zeros(rows, np.uint64),
        moves=np.zeros((rows, spec.max_moves), np.uint16),
        move_count=np.zeros(rows, np.int32),
        indices=np.zeros((rows, spec.max_moves), np.uint16),
        plain_indices=np.zeros((rows, spec.max_moves), np.uint16),
        planes=np.zeros((rows, *planes_shape), np.float32),
        extras=np.zeros((rows, *(spec.extras_shape if has_extras else (0,))), np.float32),
        bits=np.zeros((rows, spec.words if bits else 0), np.uint64),
        positions=spec.positions(rows if Inputs.POSITIONS in inputs else 0),
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
        groups=np.zeros(MOST_GROUPS, GROUP_DTYPE),
        line=np.zeros(_path_size(spec), np.uint16),
        path=np.zeros(_path_size(spec), np.uint32),
        slots=np.zeros(_path_size(spec), np.uint16),
    )
