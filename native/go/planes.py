"""Network inputs of a Go position: KataGo's V7 features, 22 planes and 19 globals, for the side to move.

Human-SL networks also read metadata: the players that the network imitates.

Symmetries are numbered as KataGo's: bit 0 flips rows, bit 1 columns, then bit 2 swaps rows and columns.
"""

import math

import numpy as np

from yomi.native.bits import U, lowest_bit
from yomi.native.go.area import find_areas, load_sets
from yomi.native.go.board import (
    BLACK,
    KO_POSITIONAL,
    KO_SIMPLE,
    MAX_POINTS,
    NO_POINT,
    PASS,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    row_of,
)
from yomi.native.go.ladder import load_colors, read_ladders
from yomi.native.go.rules import BANNED, legality, repeats_pass
from yomi.native.go.scratch import LADDER_TABLE
from yomi.native.jit import inlined, kernel
from yomi.native.packing import set_bit, unpack_bits

# Games with a button and the encore of territory scoring are not supported: planes 7, 8, 20, 21 and globals 12, 13, 17
# are 0.

PLANES, GLOBALS = 22, 19
SYMMETRIES = 8
KOMI_MARGIN = 20.0  # komi is cut to the board's area plus this margin


@kernel
def symmetry_steps(size, height, symmetry):  # type: ignore[no-untyped-def]
    """Return (start, dx, dy): point (x, y), y = 0 the top row, has index start + x * dx + y * dy under the symmetry.

    `size` columns and `height` rows are swapped by no symmetry if they differ: 4 to 7 then equal 0 to 3.
    """
    step_x = np.int64(1)
    step_y = np.int64(size)
    if symmetry & 4 and size == height:
        step_x, step_y = step_y, step_x
    start = np.int64(0)
    if symmetry & 1:
        start += (np.int64(height) - 1) * step_y
        step_y = -step_y
    if symmetry & 2:
        start += (np.int64(size) - 1) * step_x
        step_x = -step_x
    return start, step_x, step_y


@kernel
def policy_index(size, height, move, symmetry):  # type: ignore[no-untyped-def]
    """Return the index of a move (point or PASS) in the policy [size * height + 1] under a symmetry."""
    if move == PASS:
        return np.int64(size) * np.int64(height)
    start, step_x, step_y = symmetry_steps(size, height, symmetry)
    stride = np.int64(size) + 1
    row = row_of(stride, move)
    return start + (np.int64(move) - row * stride - 1) * step_x + (row - 1) * step_y


def symmetry_table(size: int, height: int, symmetry: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return table[size * height + 1]: the network's index of each point under the symmetry; the pass stays last.

    `network_values[table]` rotates a policy or an ownership back to the board.
    """
    start, step_x, step_y = symmetry_steps(size, height, symmetry)
    y, x = np.divmod(np.arange(size * height), size)
    return np.append(start + x * step_x + y * step_y, size * height)


@kernel
def _fill_seen(s, size, height):  # type: ignore[no-untyped-def]
    """Set `s.seen[symmetry * MAX_POINTS + point]` to the index of each point in the network's planes."""
    s.seen_shape = size + 256 * height
    stride = np.int64(size) + 1
    for symmetry in range(SYMMETRIES):
        start, step_x, step_y = symmetry_steps(size, height, symmetry)
        for y in range(np.int64(height)):
            for x in range(np.int64(size)):
                index = U(symmetry * MAX_POINTS + (y + 1) * stride + x + 1)
                s.seen[index] = start + x * step_x + y * step_y


@kernel
def _write_set(points, words, seen, view, plane, bits):  # type: ignore[no-untyped-def]
    """Set the plane at bit `plane` to 1 for each point of a set. `view`: offset of the symmetry in `seen`."""
    for w in range(words):
        word = points[w]
        while word != U(0):
            set_bit(bits, plane + U(seen[view + w * U(64) + lowest_bit(word)]))
            word &= word - U(1)


@kernel
def _write_stones(pos, s, view, area, bits):  # type: ignore[no-untyped-def]
    """Planes 0 to 5: the board, stones by side, chains with 1 to 3 liberties. Clears the rest."""
    seen = s.seen
    chain = pos.chain
    liberties = pos.liberties
    whole = area >> U(6)
    for w in range(whole):
        bits[w] = ~U(0)
    bits[whole] = (U(1) << (area & U(63))) - U(1)
    for w in range(whole + U(1), U(bits.size)):
        bits[w] = U(0)
    black = pos.side_to_move == BLACK
    for w in range(U(pos.words)):
        own = s.black[w] if black else s.white[w]
        stones = s.black[w] | s.white[w]
        while stones != U(0):
            bit = lowest_bit(stones)
            p = w * U(64) + bit
            i = U(seen[view + p])
            set_bit(bits, i + (area if (own >> bit) & U(1) != U(0) else U(2) * area))
            n = liberties[U(chain[p])]
            if n <= 3:
                set_bit(bits, i + (U(2) + U(n)) * area)
            stones &= stones - U(1)


@kernel
def _write_bans(pos, history, s, view, area, bits):  # type: ignore[no-untyped-def]
    """Plane 6: the simple ko point, and all points that superko forbids."""
    if pos.simple_ko != NO_POINT:
        set_bit(bits, U(6) * area + U(s.seen[view + U(pos.simple_ko)]))
    if pos.ko_rule != KO_SIMPLE:
        own = np.int64(pos.side_to_move)
        for w in range(U(pos.words)):
            # A stone on a never occupied point can only repeat a board if it is suicide.
            points = s.empty[w] if pos.suicide else s.empty[w] & pos.occupied[w]
            while points != U(0):
                p = np.int64(w * U(64) + lowest_bit(points))
                points &= points - U(1)
                if legality(pos, history, p, own) == BANNED:
                    set_bit(bits, U(6) * area + U(s.seen[view + U(p)]))


@kernel
def _write_moves(pos, hidden, s, view, area, bits, globals_):  # type: ignore[no-untyped-def]
    """Write planes 9 to 13 and globals 0 to 4: the last moves. Return the number of encoded moves."""
    # Only alternating moves count. If `hidden`, no move is encoded: a friendly pass may be answered without ending the
    # game.
    limit = np.int64(pos.recent_valid)
    if hidden:
        limit = np.int64(0)
    # Of the moves that ended a game only the last is encoded.
    elif pos.finished:
        limit = min(limit, np.int64(1))
    color = 3 - pos.side_to_move
    shown = U(0)
    while np.int64(shown) < limit and pos.recent_color[shown] == color:
        move = pos.recent_move[shown]
        if move == PASS:
            globals_[shown] = 1.0
        else:
            set_bit(bits, (U(9) + shown) * area + U(s.seen[view + U(move)]))
        color = 3 - color
        shown += U(1)
    return shown


@inlined
def _write_ladders(pos, history, s, shown, view, area, bits):  # type: ignore[no-untyped-def]
    """Write planes 14 to 17: stones in ladders now, one move ago and two moves ago, and the moves that start a ladder.

    `shown` is the number of encoded moves. The plane of an earlier board repeats the next plane if the move is not
    encoded.
    """
    # A board's ladders are cached by stones, ko point and shape.
    words = U(pos.words)
    laddered = s.laddered
    table = s.table
    for ago in range(U(3)):
        if ago == U(0):
            stones = pos.hash
            ko = pos.simple_ko
        # Boards of moves that are not encoded repeat the ladders of the later board.
        elif ago <= shown and ago <= U(pos.previous_count):
            stones = history[U(pos.history_length - 1) - ago]
            ko = pos.previous_ko[ago - U(1)]
        else:
            _write_set(laddered, words, s.seen, view, (U(14) + ago) * area, bits)
            continue
        key = (stones >> U(1)) ^ (U(ko) * U(0x9E3779B97F4A7C15)) ^ (U(s.seen_shape) * U(0xC2B2AE3D27D4EB4F))
        key |= U(1) << U(63)  # never 0, the key of a free entry
        entry = (key & U(LADDER_TABLE - 1)) * U(8)
        if ago != U(0) and table[entry] == key:
            for w in range(words):
                laddered[w] = table[entry + U(1) + w]
        else:
            source = pos
            if ago != U(0):
                load_colors(s.board, pos, np.int64(ago))
                source = s.board
            read_ladders(source, s, 3 - np.int64(pos.side_to_move) if ago == U(0) else np.int64(0), ago != U(0))
            table[entry] = key
            for w in range(words):
                table[entry + U(1) + w] = laddered[w]
        if ago == U(0):
            _write_set(s.working, words, s.seen, view, U(17) * area, bits)
        _write_set(laddered, words, s.seen, view, (U(14) + ago) * area, bits)


@kernel
def _write_globals(pos, ends, globals_):  # type: ignore[no-untyped-def]
    """Write globals 5 to 18, except globals that are always 0."""
    area = np.int64(pos.size) * np.int64(pos.height)
    limit = np.float32(area) + np.float32(KOMI_MARGIN)
    # Komi for the side to move, with prisoners under territory scoring.
    komi = np.float32(pos.komi + pos.white_bonus)
    if komi > limit:
        komi = limit
    if komi < -limit:
        komi = -limit
    if pos.side_to_move == BLACK:
        komi = -komi
    globals_[5] = komi / np.float32(20.0)
    if pos.ko_rule != KO_SIMPLE:
        globals_[6] = 1.0
        globals_[7] = 0.5 if pos.ko_rule == KO_POSITIONAL else -0.5
    if pos.suicide:
        globals_[8] = 1.0
    if pos.tax != TAX_NONE:
        globals_[10] = 1.0
    if pos.tax == TAX_ALL:
        globals_[11] = 1.0
    if ends:
        globals_[14] = 1.0
    if pos.doubling_advantage != np.float32(0.0):
        globals_[15] = 1.0
        advantage = np.float32(0.5) * pos.doubling_advantage
        globals_[16] = advantage if pos.side_to_move == BLACK else -advantage
    if pos.scoring == SCORING_TERRITORY:
        globals_[9] = 1.0
    else:
        # A triangular wave of period 2 in the komi, rising at a komi that allows a draw.
        parity = np.float32(area & 1)
        above = komi - (np.floor((komi - parity) * np.float32(0.5)) * np.float32(2.0) + parity)
        if above < np.float32(0.5):
            globals_[18] = above
        elif above < np.float32(1.5):
            globals_[18] = np.float32(1.0) - above
        else:
            globals_[18] = above - np.float32(2.0)


# -- metadata ----------------------------------------------------------------------------------------------------------

# The form and all numbers are those of KataGo's SGFMetadata (cpp/neuralnet/sgfmetadata.cpp). A profile is one of two
# kinds: ranked players on the server KGS, with byo-yomi, or professionals, of whom the time control is unknown.

METADATA = 192
SOURCE_KGS, SOURCE_GOGOD, SOURCE_GO4GO = 2, 5, 6
MAIN_TIME, PERIOD_TIME, PERIODS = 1200.0, 30.0, 5.0  # byo-yomi on KGS, in seconds
RANKS = 34  # inputs for the rank of each side
OWN_RANK, OTHER_RANK = 6, 6 + RANKS
RATED, UNKNOWN_TIME, BYOYOMI = 74, 75, 79
MAIN, PERIOD, COUNT, STONES, AREA = 82, 83, 84, 85, 86
DATE, SOURCE = 87, 151
PERIODS_OF_DATE = 32  # wavelengths of the date
SHORTEST, GROWTH = 7.0, 80000.0 ** (1.0 / (PERIODS_OF_DATE - 1))  # days, and the ratio of two wavelengths


@kernel
def write_metadata(pos, first, numbers):  # type: ignore[no-untyped-def]
    """Write the inputs of the position's profile to numbers[first : first + METADATA]: zeros without a profile."""
    for k in range(U(METADATA)):
        numbers[U(first) + k] = 0.0
    if pos.human_source == 0:
        return
    row = numbers[first:]
    own = U(0) if pos.side_to_move == BLACK else U(1)
    row[0] = row[1] = 1.0  # both sides are people
    for k in range(min(np.int64(pos.human_rank[own]), RANKS)):
        row[U(OWN_RANK + k)] = 1.0
    for k in range(min(np.int64(pos.human_rank[U(1) - own]), RANKS)):
        row[U(OTHER_RANK + k)] = 1.0
    is_ranked = pos.human_source == SOURCE_KGS
    row[RATED] = 0.5 if is_ranked else 0.0
    row[BYOYOMI if is_ranked else UNKNOWN_TIME] = 1.0
    row[MAIN] = 0.4 * (math.log((MAIN_TIME if is_ranked else 0.0) + 60.0) - 6.5)
    row[PERIOD] = 0.3 * (math.log((PERIOD_TIME if is_ranked else 0.0) + 1.0) - 3.0)
    row[COUNT] = 0.5 * (math.log((PERIODS if is_ranked else 0.0) + 2.0) - 1.5)
    row[STONES] = 0.25 * (math.log(2.0) - 1.5)
    row[AREA] = 0.5 * math.log(np.int64(pos.size) * np.int64(pos.height) / 361.0)
    length = SHORTEST
    for k in range(PERIODS_OF_DATE):
        angle = np.float64(pos.human_date) / length * (2.0 * math.pi)
        row[U(DATE + 2 * k)] = math.cos(angle)
        row[U(DATE + 2 * k + 1)] = math.sin(angle)
        length *= GROWTH
    row[U(SOURCE) + U(pos.human_source)] = 1.0


@kernel
def write_bits(pos, history, symmetry, scratch, bits, globals_):  # type: ignore[no-untyped-def]
    """Write the network's input for the side to move, with the planes as bits.

    Args:
        pos: the position record.
        history: uint64[MAX_HISTORY].
        symmetry: 0 to 7.
        scratch: a record of SCRATCH_DTYPE of this thread.
        bits: uint64[packed_words(22 * columns * rows)], all written.
        globals_: float32[19], all written; for human-SL networks float32[19 + METADATA].
    """
    size, height = np.int64(pos.size), np.int64(pos.height)
    area = U(size * height)
    words = U(pos.words)
    view = U(symmetry) * U(MAX_POINTS)
    for k in range(U(GLOBALS)):
        globals_[k] = 0.0
    if scratch.seen_shape != size + 256 * height:
        _fill_seen(scratch, size, height)
    load_sets(scratch, pos)
    _write_stones(pos, scratch, view, area, bits)
    _write_bans(pos, history, scratch, view, area, bits)
    repeated = repeats_pass(pos, history)
    hidden = pos.friendly_pass != 0 and pos.scoring == SCORING_AREA and pos.passes == 1 and not repeated
    shown = _write_moves(pos, hidden, scratch, view, area, bits, globals_)
    _write_ladders(pos, history, scratch, shown, view, area, bits)
    if pos.scoring == SCORING_AREA:
        find_areas(scratch, pos, pos.suicide | pos.suicide_areas)
        black = pos.side_to_move == BLACK
        for side in range(U(2)):
            mine = black == (side == U(0))
            owned = scratch.owned_black if mine else scratch.owned_white
            _write_set(owned, words, scratch.seen, view, (U(18) + side) * area, bits)
    _write_globals(pos, (pos.passes >= 1 or repeated) and not hidden, globals_)
    if globals_.size > GLOBALS:
        write_metadata(pos, GLOBALS, globals_)


@kernel
def write_planes(pos, history, symmetry, scratch, spatial, globals_):  # type: ignore[no-untyped-def]
    """Write the network's input as numbers: `spatial` is float32[22, rows, columns], contiguous. See `write_bits`."""
    numbers = spatial.reshape(-1)
    bits = scratch.bits[: (U(numbers.size) + U(63)) >> U(6)]
    write_bits(pos, history, symmetry, scratch, bits, globals_)
    unpack_bits(bits, 0, numbers)
