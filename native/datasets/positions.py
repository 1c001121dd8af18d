"""Network inputs of positions of any game, for rows of data sets."""

from yomi.native.bits import U
from yomi.native.game import legal_moves, policy_index, write_planes
from yomi.native.jit import kernel


@kernel
def encode_positions(positions, history, scratch, planes, extras):  # type: ignore[no-untyped-def]
    """Write planes and extras (float32[n, ...]) of positions of one game, which share a history."""
    for i in range(U(positions.size)):
        write_planes(positions[i], history, 0, scratch[0], planes[i], extras[i])


@kernel
def index_moves(positions, moves, counts, indices):  # type: ignore[no-untyped-def]
    """Write the policy indices (uint16[n, K]) of counts[i] moves of each position."""
    for i in range(U(positions.size)):
        for k in range(U(counts[i])):
            indices[i, k] = policy_index(positions[i], moves[i, k], 0)


@kernel
def index_legal_moves(positions, history, moves, counts):  # type: ignore[no-untyped-def]
    """Write the policy indices (uint16[n, K]) and numbers of all legal moves of positions of one game."""
    for i in range(U(positions.size)):
        counts[i] = legal_moves(positions[i], history, moves[i])
        for k in range(U(counts[i])):
            moves[i, k] = policy_index(positions[i], moves[i, k], 0)
