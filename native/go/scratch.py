"""The working memory of the kernels that read a position for the network: ladders, areas, planes.

One record for each thread, made with `numpy.zeros(n, SCRATCH_DTYPE)[i]`. What a kernel leaves in it means nothing to
the next call, but for the table of ladders, which only saves time: its entries hold for every position of every game.
"""

import numpy as np

from native.go.board import MAX_AREA, MAX_CHAINS, MAX_POINTS, WORDS

LADDER_PLIES = 3 * MAX_AREA // 2 + 2
"""Plies that a ladder is read: KataGo's limit for the largest board."""
LADDER_SLOTS = MAX_CHAINS + LADDER_PLIES
LADDER_MOVES = 8192
"""Moves on the stack of one ladder search."""
LADDER_TABLE = 4096
"""Boards whose ladders are remembered (a power of two); 64 bytes each."""
MAX_REGIONS = (MAX_AREA + 1) // 2 + 1
"""A region needs an empty point that no other region's empty point is next to."""

SCRATCH_DTYPE = np.dtype(
    [
        # the board on which ladders are played out: as in POSITION_DTYPE, but chains are taken back in the order played
        ("size", np.int32),
        ("stride", np.int32),
        ("words", np.int32),
        ("depth", np.int32),  # stones played and not taken back
        ("next_slot", np.int32),
        ("ko", np.uint16),  # the simple ko point
        ("color", np.uint8, (MAX_POINTS,)),
        ("chain", np.uint16, (MAX_POINTS,)),
        ("next_stone", np.uint16, (MAX_POINTS,)),
        ("liberties", np.uint16, (LADDER_SLOTS,)),
        ("stones", np.uint16, (LADDER_SLOTS,)),
        ("liberty_bits", np.uint64, (LADDER_SLOTS * WORDS,)),  # slot * WORDS + word
        # what it takes to take a stone back, by depth
        ("undo_point", np.uint16, (LADDER_PLIES,)),
        ("undo_chain", np.uint16, (LADDER_PLIES,)),  # what the point held of a captured chain, to be put back perhaps
        ("undo_next", np.uint16, (LADDER_PLIES,)),
        ("undo_ko", np.uint16, (LADDER_PLIES,)),
        ("undo_target", np.uint16, (LADDER_PLIES,)),  # the chain that the stone joined or began
        ("undo_liberties", np.uint16, (LADDER_PLIES,)),  # that chain's state before
        ("undo_stones", np.uint16, (LADDER_PLIES,)),
        ("undo_bits", np.uint64, (LADDER_PLIES * WORDS,)),
        ("undo_joined", np.uint8, (LADDER_PLIES,)),  # chains of the same color that the stone touched
        ("undo_joined_slot", np.uint16, (LADDER_PLIES * 4,)),
        ("undo_joined_stone", np.uint16, (LADDER_PLIES * 4,)),
        ("undo_captured", np.uint8, (LADDER_PLIES,)),  # chains that the stone captured
        ("undo_captured_stone", np.uint16, (LADDER_PLIES * 4,)),
        # the search
        ("move", np.uint16, (LADDER_MOVES,)),
        ("move_next", np.int32, (LADDER_PLIES + 1,)),  # by ply: the next move to try
        ("move_end", np.int32, (LADDER_PLIES + 1,)),
        ("solved", np.uint8, (LADDER_SLOTS,)),
        ("laddered", np.uint64, (WORDS,)),  # result: stones of chains that a ladder captures
        ("working", np.uint64, (WORDS,)),  # result: moves that start a ladder
        ("table", np.uint64, (LADDER_TABLE * 8,)),  # key, then `laddered`
        # areas
        ("empty", np.uint64, (WORDS,)),
        ("black", np.uint64, (WORDS,)),
        ("white", np.uint64, (WORDS,)),
        ("owned_black", np.uint64, (WORDS,)),  # result
        ("owned_white", np.uint64, (WORDS,)),
        ("alive", np.uint64, (WORDS,)),  # stones of chains that are pass-alive, or may be
        ("within", np.uint64, (WORDS,)),
        ("filled", np.uint64, (WORDS,)),
        ("near", np.uint64, (WORDS,)),
        ("region", np.uint64, (MAX_REGIONS * WORDS,)),
        ("region_around", np.uint64, (MAX_REGIONS * WORDS,)),  # the region and the points next to it
        ("region_enemy", np.uint8, (MAX_REGIONS,)),  # holds enemy stones
        ("region_safe", np.uint8, (MAX_REGIONS,)),  # borders no chain that is not pass-alive
        ("region_vital", np.uint8, (MAX_REGIONS,)),  # chains it is vital for
        ("region_vital_slot", np.uint16, (MAX_REGIONS * 4,)),
        ("vital", np.uint8, (MAX_CHAINS,)),  # by slot: vital regions
    ],
    align=True,
)
"""Working memory of one thread."""
