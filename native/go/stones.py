"""Simple inputs of Go networks: stones, and COSUMI's three planes with liberties."""

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import EMPTY, MIN_SIZE
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch

LEVEL_SCALE = 0.05  # COSUMI encodes n liberties as tanh(0.05 n)
MAX_LEVEL = 255


@kernel
def write_stones(pos, history, symmetry, scratch, planes, globals_):  # type: ignore[no-untyped-def]
    """Write own stones, the opponent's, and in a third plane the liberties of the stone's chain (up to 255).

    `planes` is float32[2 or 3, size, size]; `symmetry` is as in `yomi.native.go.planes`. `squash` finishes the
    liberties.
    """
    flat = planes.reshape(-1)
    size = np.int64(pos.size)
    area = U(size * size)
    for i in range(U(flat.shape[0])):
        flat[i] = np.float32(0.0)
    start, step_x, step_y = symmetry_steps(size, size, symmetry)
    for y in range(size):
        for x in range(size):
            p = U((y + 1) * np.int64(pos.stride) + x + 1)
            color = pos.color[p]
            if color == EMPTY:
                continue
            i = U(start + x * step_x + y * step_y)
            flat[i + (U(0) if color == pos.side_to_move else area)] = np.float32(1.0)
            if planes.shape[0] > 2:
                flat[i + U(2) * area] = np.float32(min(np.int64(pos.liberties[U(pos.chain[p])]), MAX_LEVEL))


@kernel
def squash(planes):  # type: ignore[no-untyped-def]
    """Replace the third plane, n liberties, by tanh(0.05 n)."""
    flat = planes.reshape(-1)
    size = U(planes.shape[1]) * U(planes.shape[2])
    for i in range(U(2) * size, U(3) * size):
        flat[i] = np.float32(np.tanh(LEVEL_SCALE * flat[i]))


_BATCH = make_batch(go_spec(MIN_SIZE), 1, Inputs.POSITIONS)
_ARGUMENTS = types_of(_BATCH, np.zeros((1, 1, 1, 1), np.float32))


@entry(_ARGUMENTS)
def encode_stones(address, rows):  # type: ignore[no-untyped-def]
    """Write the planes of a batch's positions, each under its symmetry.

    `address` points to a Batch with positions and float32[B, 2 or 3, N, N].
    """
    batch, planes = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        shown = planes[row]
        write_stones(batch.positions[row], shown, np.int64(batch.symmetry[row]), shown, shown, shown)
        if planes.shape[1] > 2:
            squash(shown)
