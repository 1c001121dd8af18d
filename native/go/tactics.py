"""Tactics of one move without playing it: liberties after the move, self-atari, and 3x3 patterns.

The code of a pattern has two bits for each neighbor (EMPTY, BLACK, WHITE, BORDER), row by row from the upper left.
"""

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U, lowest_bit, popcount
from yomi.native.go.board import BLACK, BORDER, EMPTY, MAX_CHAINS, NO_POINT, WHITE
from yomi.native.jit import kernel


@kernel
def other_liberty(pos, slot, point):  # type: ignore[no-untyped-def]
    """Return the lowest liberty of the chain in `slot` other than `point`, or NO_POINT."""
    base = U(slot) * U(pos.words)
    for w in range(U(pos.words)):
        word = pos.liberty_bits[base + w]
        if w == U(point) >> U(6):
            word &= ~(U(1) << (U(point) & U(63)))
        if word != U(0):
            return w * U(64) + lowest_bit(word)
    return U(NO_POINT)


@kernel
def self_atari_stones(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the size of the own chain that a move of `color` on the empty `point` would leave in atari; 0 if none."""
    # Counts the new stone; 0 if the move captures.
    # Self-atari: at most one liberty after the move.
    i = np.int64(point)
    stride = np.int64(pos.stride)
    own = U(color)
    liberty = U(NO_POINT)
    count = np.int64(1)
    counted = (U(MAX_CHAINS), U(MAX_CHAINS), U(MAX_CHAINS))
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = U(pos.color[q])
        other = U(NO_POINT)
        if c == U(EMPTY):
            other = q
        elif c == own:
            slot = U(pos.chain[q])
            n = pos.liberties[slot]
            if n > 2:
                return 0
            if n == 2:
                other = other_liberty(pos, slot, point)
            if slot != counted[0] and slot != counted[1] and slot != counted[2]:
                counted = (slot, counted[0], counted[1])
                count += np.int64(pos.stones[slot])
        elif c == U(3) - own and pos.liberties[U(pos.chain[q])] == 1:
            return 0
        if other != U(NO_POINT):
            if liberty == U(NO_POINT):
                liberty = other
            elif liberty != other:
                return 0
    return count


@kernel
def liberties_after(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the liberties of a stone of `color` on the empty `point`."""
    # Of captured chains only stones next to `point` count, so that the number may be too small after a capture.
    i = np.int64(point)
    stride = np.int64(pos.stride)
    own = U(color)
    count = U(0)
    joined = 0
    slots = (U(MAX_CHAINS), U(MAX_CHAINS), U(MAX_CHAINS), U(MAX_CHAINS))
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = U(pos.color[q])
        if c == own:
            slots = (U(pos.chain[q]), slots[0], slots[1], slots[2])
            joined += 1
        elif c == U(3) - own:
            if pos.liberties[U(pos.chain[q])] == 1:
                count += U(1)
        elif c == U(EMPTY) and joined == 0:
            count += U(1)
    if joined == 0:
        return np.int64(count)
    words = U(pos.words)
    total = U(0)
    for w in range(words):
        word = pos.liberty_bits[slots[0] * words + w]
        if joined > 1:
            word |= pos.liberty_bits[slots[1] * words + w]
            if joined > 2:
                word |= pos.liberty_bits[slots[2] * words + w]
                if joined > 3:
                    word |= pos.liberty_bits[slots[3] * words + w]
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if q >> U(6) == w and pos.color[q] == EMPTY:
                word |= U(1) << (q & U(63))
        if U(point) >> U(6) == w:
            word &= ~(U(1) << (U(point) & U(63)))
        total += popcount(word)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] == U(3) - own and pos.liberties[U(pos.chain[q])] == 1:
            total += U(1)
    return np.int64(total)


# -- patterns ----------------------------------------------------------------------------------------------------------

# The patterns are MoGo's: hane, cuts and moves at the edge (Gelly, Wang, Munos, Teytaud: Modification of UCT with
# patterns in Monte-Carlo Go, INRIA 2006, figure 3).

CODES = 1 << 16

# Rows from the top, and who may play in the middle: X (`mover`), or X and O (`both`).
#
# X and O are stones, `.` is empty, `#` is border, `?` is anything, `x` is not X, `o` is not O. Rotations and
# reflections match, too.
DRAWINGS: tuple[tuple[str, str, str, str], ...] = (
    # hane: around the head of an enemy stone
    ("XOX", "...", "???", "both"),
    ("XO.", "...", "?.?", "both"),
    ("XO?", "X..", "?.?", "both"),
    ("XOO", "...", "?.?", "mover"),
    # cuts: a crosscut that is not protected yet, and a push between two stones
    ("XO?", "O.o", "?o?", "both"),
    ("XO?", "O.X", "???", "both"),
    ("?X?", "O.O", "ooo", "both"),
    # the edge of the board
    ("X.?", "O.?", "##?", "both"),
    ("OX?", "X.O", "###", "both"),
    ("?X?", "x.O", "###", "mover"),
    ("?XO", "x.x", "###", "mover"),
    ("?OX", "X.O", "###", "both"),
)

# Cells of a 3x3 square in the order of the code's bits. Cell 4 is the middle.
NEIGHBOR_CELLS = (0, 1, 2, 3, 5, 6, 7, 8)


def symmetric_squares(cells: str) -> list[str]:
    """Return the eight rotations and reflections of a 3x3 square written row by row, with repeats."""
    squares = []
    for square in (cells, "".join(cells[3 * row + 2 - column] for row in range(3) for column in range(3))):
        turned = square
        for _ in range(4):
            squares.append(turned)
            turned = "".join(turned[3 * (2 - column) + row] for row in range(3) for column in range(3))
    return squares


def _symbol_values(mover: int) -> dict[str, tuple[int, ...]]:
    """Return the colors that each symbol allows if X has the color `mover`."""
    other = BLACK + WHITE - mover
    return {
        "X": (mover,),
        "O": (other,),
        ".": (EMPTY,),
        "#": (BORDER,),
        "?": (EMPTY, mover, other, BORDER),
        "x": (EMPTY, other, BORDER),
        "o": (EMPTY, mover, BORDER),
    }


def _matching_codes(cells: str, x: int) -> npt.NDArray[np.int64]:
    """Return all codes that match the square `cells` if X has the color `x`."""
    values = _symbol_values(x)
    codes = np.zeros(1, np.int64)
    for bit, cell in enumerate(NEIGHBOR_CELLS):
        choices = np.array(values[cells[cell]], np.int64) << (2 * bit)
        codes = (codes[:, None] + choices).ravel()
    return codes


def _pattern_table() -> npt.NDArray[np.uint8]:
    table = np.zeros(3 * CODES, np.uint8)
    for top, middle, bottom, who in DRAWINGS:
        for cells in set(symmetric_squares(top + middle + bottom)):
            for mover in (BLACK, WHITE):
                for x in {mover, BLACK + WHITE - mover} if who == "both" else {mover}:
                    table[mover * CODES + _matching_codes(cells, x)] = 1
    return table


# uint8[3 * CODES], index color << 16 | code: 1 if a move of `color` in the middle is a pattern move.
PATTERNS = _pattern_table()


@kernel
def pattern_code(pos, point):  # type: ignore[no-untyped-def]
    """Return the code of the eight neighbors of `point`, in [0, CODES)."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    north = i - stride
    south = i + stride
    return (
        U(pos.color[U(north - 1)])
        | U(pos.color[U(north)]) << U(2)
        | U(pos.color[U(north + 1)]) << U(4)
        | U(pos.color[U(i - 1)]) << U(6)
        | U(pos.color[U(i + 1)]) << U(8)
        | U(pos.color[U(south - 1)]) << U(10)
        | U(pos.color[U(south)]) << U(12)
        | U(pos.color[U(south + 1)]) << U(14)
    )


@kernel
def is_pattern_move(pos, point, color):  # type: ignore[no-untyped-def]
    return PATTERNS[(U(color) << U(16)) | pattern_code(pos, point)] != 0


def _canonical_codes() -> npt.NDArray[np.int64]:
    """Return for each code the smallest of its eight symmetric codes; -1 for impossible codes."""
    codes = np.arange(CODES, dtype=np.int64)
    best = np.full(CODES, CODES, np.int64)
    grid = "012345678"
    for square in set(symmetric_squares(grid)):
        turned = np.zeros(CODES, np.int64)
        for bit, cell in enumerate(NEIGHBOR_CELLS):
            source = NEIGHBOR_CELLS.index(int(square[cell]))
            turned |= ((codes >> (2 * source)) & 3) << (2 * bit)
        best = np.minimum(best, turned)
    borders = np.zeros(CODES, np.int64)
    for bit in range(8):
        borders |= (((codes >> (2 * bit)) & 3) == BORDER).astype(np.int64) << bit
    sides = (0b00000111, 0b00101001, 0b11100000, 0b10010100)
    possible = {0, *sides} | {a | b for a in sides for b in sides}
    best[~np.isin(borders, sorted(possible))] = -1
    return best


def _class_table() -> npt.NDArray[np.uint16]:
    """Return the class of each code, by color << 16 | code, numbered from 1; 0 for impossible codes."""
    canonical = _canonical_codes()
    codes = np.arange(CODES, dtype=np.int64)
    swapped = np.zeros(CODES, np.int64)
    for bit in range(8):
        swapped |= np.array([0, 2, 1, 3])[(codes >> (2 * bit)) & 3] << (2 * bit)
    numbers = np.unique(canonical[canonical >= 0])
    classes = np.where(canonical >= 0, np.searchsorted(numbers, canonical) + 1, 0)
    return np.concatenate([np.zeros(CODES, np.int64), classes, classes[swapped]]).astype(np.uint16)


CLASSES = _class_table()
PATTERN_CLASSES = int(CLASSES.max()) + 1  # number of classes, with class 0


@kernel
def pattern_class(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the class of the 3x3 square around `point` for `color`, up to rotation and reflection."""
    return np.int64(CLASSES[(U(color) << U(16)) | pattern_code(pos, point)])
