"""The working memory of the kernels that read a position for the network: ladders, areas, planes.

One record for each thread, made with `numpy.zeros(n, SCRATCH_DTYPE)[i]`. What a kernel leaves in it means nothing to
the next call, but for the table of ladders, which only saves time: its entries hold for every position of every game.
"""

import numpy as np

from yomi.native.go.board import MAX_AREA, MAX_POINTS, POSITION_DTYPE, WORDS
from yomi.native.spec import packed_words

LADDER_PLIES = 3 * MAX_AREA // 2 + 2
"""Plies that a ladder is read: KataGo's limit for the largest board."""
LADDER_MOVES = 8192
"""Moves on the stack of one ladder search."""
LADDER_TABLE = 4096
"""Boards whose ladders are remembered (a power of two); 64 bytes each."""
MAX_REGIONS = (MAX_AREA + 1) // 2 + 1
"""A region needs an empty point that no other region's empty point is next to."""

SCRATCH_DTYPE = np.dtype(
    [
        ("board", POSITION_DTYPE),  # the board on which ladders are played out
        # what it takes to take a stone back, by depth
        ("depth", np.int64),  # stones played and not taken back
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
        ("move_next", np.uint64, (LADDER_PLIES + 1,)),  # by ply: the next move to try
        ("move_end", np.uint64, (LADDER_PLIES + 1,)),
        ("laddered", np.uint64, (WORDS,)),  # result: stones of chains that a ladder captures
        ("working", np.uint64, (WORDS,)),  # result: moves that start a ladder
        ("table", np.uint64, (LADDER_TABLE * 8,)),  # key, then `laddered`
        # sets of points
        ("empty", np.uint64, (WORDS,)),
        ("black", np.uint64, (WORDS,)),
        ("white", np.uint64, (WORDS,)),
        ("owned_black", np.uint64, (WORDS,)),  # result
        ("owned_white", np.uint64, (WORDS,)),
        ("alive", np.uint64, (WORDS,)),  # stones of chains that are pass-alive, or may be
        ("within", np.uint64, (WORDS,)),
        ("filled", np.uint64, (WORDS,)),
        ("seeds", np.uint64, (WORDS,)),
        ("region", np.uint64, (WORDS,)),
        # regions that are vital to a chain
        (
            "region_seed",
            np.uint16,
            (MAX_REGIONS,),
        ),  # an empty point of it; 0: it borders a chain that is not pass-alive
        ("region_vital", np.uint8, (MAX_REGIONS,)),  # chains it is vital to
        ("region_stone", np.uint16, (MAX_REGIONS * 4,)),  # a stone of each
        ("vital", np.uint8, (MAX_POINTS,)),  # by slot: regions vital to the chain
        # where the network sees a point of the board, by symmetry and point
        ("seen_size", np.int64),  # the size that `seen` is for
        ("seen", np.uint16, (8 * MAX_POINTS,)),
        ("bits", np.uint64, (packed_words(22 * MAX_AREA),)),  # the planes, where they are wanted as numbers
    ],
    align=True,
)
"""Working memory of one thread."""
