"""Working memory of the kernels that encode a position: ladders, areas, planes. One record per thread."""

import numpy as np

from yomi.native.go.board import MAX_AREA, MAX_POINTS, POSITION_DTYPE, WORDS
from yomi.native.spec import packed_words

# Only the table of ladders keeps its contents between calls; it is valid for all games.

# Maximum depth of a ladder: KataGo's limit for the largest board.
LADDER_PLIES = 3 * MAX_AREA // 2 + 2
LADDER_MOVES = 8192  # size of the move stack of a ladder search
# Number of boards whose ladders are cached, a power of two; 64 bytes each.
LADDER_TABLE = 4096
# Maximum number of regions: each needs an empty point that touches no empty point of another region.
MAX_REGIONS = (MAX_AREA + 1) // 2 + 1

SCRATCH_DTYPE = np.dtype(
    [
        ("board", POSITION_DTYPE),  # ladders are played out here
        # To undo a stone, by depth.
        ("depth", np.int64),  # number of stones to undo
        ("undo_point", np.uint16, (LADDER_PLIES,)),
        ("undo_chain", np.uint16, (LADDER_PLIES,)),  # slot on this point, of a captured chain that may return
        ("undo_next", np.uint16, (LADDER_PLIES,)),
        ("undo_ko", np.uint16, (LADDER_PLIES,)),
        ("undo_target", np.uint16, (LADDER_PLIES,)),  # chain that the stone joined or started
        ("undo_liberties", np.uint16, (LADDER_PLIES,)),  # its state before
        ("undo_stones", np.uint16, (LADDER_PLIES,)),
        ("undo_bits", np.uint64, (LADDER_PLIES * WORDS,)),
        ("undo_joined", np.uint8, (LADDER_PLIES,)),  # number of own chains that the stone touched
        ("undo_joined_slot", np.uint16, (LADDER_PLIES * 4,)),
        ("undo_joined_stone", np.uint16, (LADDER_PLIES * 4,)),
        ("undo_captured", np.uint8, (LADDER_PLIES,)),  # number of chains that the stone captured
        ("undo_captured_stone", np.uint16, (LADDER_PLIES * 4,)),
        # The ladder search.
        ("move", np.uint16, (LADDER_MOVES,)),
        ("move_next", np.uint64, (LADDER_PLIES + 1,)),  # by ply: next move to try, in `move`
        ("move_end", np.uint64, (LADDER_PLIES + 1,)),
        ("laddered", np.uint64, (WORDS,)),  # result: stones of chains that a ladder captures
        ("working", np.uint64, (WORDS,)),  # result: moves that start a ladder
        ("table", np.uint64, (LADDER_TABLE * 8,)),  # cached ladders: key, then `laddered`
        # Sets of points.
        ("empty", np.uint64, (WORDS,)),
        ("black", np.uint64, (WORDS,)),
        ("white", np.uint64, (WORDS,)),
        ("owned_black", np.uint64, (WORDS,)),  # result of find_areas
        ("owned_white", np.uint64, (WORDS,)),
        ("alive", np.uint64, (WORDS,)),  # stones of chains that are, or may be, pass-alive
        ("within", np.uint64, (WORDS,)),
        ("filled", np.uint64, (WORDS,)),
        ("seeds", np.uint64, (WORDS,)),
        ("region", np.uint64, (WORDS,)),
        # Regions that are vital to a chain.
        (
            "region_seed",
            np.uint16,
            (MAX_REGIONS,),
        ),  # an empty point; 0: the region touches a chain that is not pass-alive
        ("region_vital", np.uint8, (MAX_REGIONS,)),  # number of chains that it is vital to
        ("region_stone", np.uint16, (MAX_REGIONS * 4,)),  # a stone of each of these chains
        ("vital", np.uint8, (MAX_POINTS,)),  # by slot: number of regions that are vital to the chain
        # Indices in a plane, by symmetry and point.
        ("seen_shape", np.int64),  # shape of the board of `seen`: columns, and 256 times the rows
        ("seen", np.uint16, (8 * MAX_POINTS,)),
        ("bits", np.uint64, (packed_words(22 * MAX_AREA),)),  # planes, before they are unpacked to numbers
    ],
    align=True,
)
