"""The arrays of batches, boards and workers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yomi.native.game_calls import FACTS_DTYPE, Board, GameCalls
from yomi.native.spec import GameSpec, Inputs
from yomi.native.tree.arrays import GROUP_DTYPE, MAX_GROUPS, MIN_PATH, VALUES, Batch, Tree, Worker, make_tree


def _path_size(spec: GameSpec) -> int:
    """Return the maximum number of nodes of a path."""
    return max(spec.max_history, MIN_PATH)


def make_batch(spec: GameSpec, rows: int, inputs: Inputs) -> Batch:
    """Return a batch of `rows` rows with arrays for these inputs.

    Raises:
        ValueError: the inputs are bits, but the game's planes are not binary.
    """
    numbers, bits = Inputs.NUMBERS in inputs, Inputs.BITS in inputs
    if bits and not spec.bits:
        raise ValueError(f"found inputs {inputs} for planes that are not binary: expected {Inputs.NUMBERS}")
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


def make_board(spec: GameSpec, root: npt.NDArray[np.void], history: npt.NDArray[np.uint64] | None = None) -> Board:
    """Return a Board.

    Args:
        spec: sizes of the game's arrays.
        root: records[1], the root's position.
        history: uint64[H] to use; None for a new one.
    """
    return Board(
        root=root,
        position=spec.positions(1),
        history=np.zeros(spec.max_history, np.uint64) if history is None else history,
        scratch=np.zeros(1, spec.scratch_dtype),
        line=np.zeros(_path_size(spec), np.uint16),
        moves=np.zeros(spec.max_moves, np.uint16),
        indices=np.zeros(spec.max_moves, np.uint16),
        facts=np.zeros(1, FACTS_DTYPE),
        ownership=np.zeros((2 + (spec.max_moves if spec.area else 0), 2, spec.area + 2)),
    )


def make_worker(spec: GameSpec, board: Board, seed: int) -> Worker:
    """Return a Worker that shares arrays with a Board. Equal seeds give equal random numbers."""
    return Worker(
        moves=board.moves,
        priors=np.zeros(spec.max_moves, np.float32),
        weights=np.zeros(spec.max_moves, np.float32),
        indices=board.indices,
        facts=board.facts,
        values=np.zeros(VALUES, np.float32),
        rng=np.array([int(seed) | 1], np.uint64),
        ownership=board.ownership,
        groups=np.zeros(MAX_GROUPS, GROUP_DTYPE),
        line=board.line,
        path=np.zeros(_path_size(spec), np.uint32),
        slots=np.zeros(_path_size(spec), np.uint16),
    )


_ANY_GAME = GameSpec(
    name="any",
    position_dtype=np.dtype([("unused", np.int8)]),
    scratch_dtype=np.dtype([("unused", np.int8)]),
    max_moves=1,
    max_history=1,
    policy_size=1,
    area=0,
    planes_shape=(0, 0, 0),
    extras_shape=(0,),
    bits=(),
    cached_moves=0,
    mean_moves=1.0,
    mean_edges=1.0,
    score_unit=1.0,
)


def without_positions(batch: Batch) -> Batch:
    """Return a Batch of the type that the tree's kernels take for every game."""
    return batch._replace(positions=np.zeros(0, np.uint8))


def example_arguments() -> tuple[Tree, Worker, Batch, GameCalls]:
    """Return arguments of the types that the tree's kernels take."""
    board = make_board(_ANY_GAME, _ANY_GAME.positions(1))
    calls = GameCalls(np.zeros(5, np.int64), np.zeros((0, 2), np.int64), np.zeros(2, np.int64))
    batch = without_positions(make_batch(_ANY_GAME, 1, Inputs.NOTHING))
    return make_tree(0, 1.0, 0, 1), make_worker(_ANY_GAME, board, 1), batch, calls
