"""What a network sees of positions of any game, for rows of data sets."""

from native.bits import U
from native.game import policy_index, write_planes
from native.jit import kernel


@kernel
def show_positions(positions, history, scratch, planes, extras):  # type: ignore[no-untyped-def]
    """Write planes (float32[n, ...]) and extras (float32[n, ...]) of positions of one game, whose history is shared."""
    for i in range(U(positions.size)):
        write_planes(positions[i], history, 0, scratch[0], planes[i], extras[i])


@kernel
def index_moves(positions, moves, counts, indices):  # type: ignore[no-untyped-def]
    """Write the policy indices of counts[i] moves of each position, uint16[n, K]."""
    for i in range(U(positions.size)):
        for k in range(U(counts[i])):
            indices[i, k] = policy_index(positions[i], moves[i, k], 0)
