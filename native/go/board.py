"""The Go board: a position is one record with incremental chains and liberties.

Points of a bordered board are numbered row by row: point = (y + 1) * stride + x + 1, stride = columns + 1, y = 0 the
top row. Point 0 is border and means "no point". PASS is greater than all points.
"""

import numpy as np

from yomi.native.bits import U, lowest_bit, popcount
from yomi.native.jit import kernel

# The border column left of a row is also the right border of the row above. Each chain has a slot. Its liberties are a
# bit set over points. Used slots are a bit set, too; the lowest free slot is taken, so that `copy` touches little.

EMPTY, BLACK, WHITE, BORDER = 0, 1, 2, 3

MIN_SIZE = 2
MAX_SIZE = 19
# (19 + 2) * (19 + 1) + 1 points with border, rounded up to a multiple of 8.
MAX_POINTS = 424
MAX_AREA = MAX_SIZE * MAX_SIZE
MAX_CHAINS = 368
WORDS = 7  # uint64 words of a bit set over the points of the largest board
PASS = MAX_POINTS - 1  # Move number of a pass. No bit set of points contains it.
NO_POINT = 0
RECENT = 5  # number of last moves in a position, as in the network's planes

KO_SIMPLE, KO_POSITIONAL, KO_SITUATIONAL = 0, 1, 2
SCORING_AREA, SCORING_TERRITORY = 0, 1
TAX_NONE, TAX_SEKI, TAX_ALL = 0, 1, 2
# How a board ended the game. THIRD_REPETITION and REPEATED_PASS need the simple ko rule: the same board and side to
# move for the third time since the last pass; a pass on a board on which the side has passed before (KataGo's rule).
NOT_FINISHED, TWO_PASSES, THIRD_REPETITION, REPEATED_PASS = 0, 1, 2, 3

# One Go position: `numpy.zeros(n, POSITION_DTYPE)`, then `clear`.
POSITION_DTYPE = np.dtype(
    [
        # Identity, turn and rules.
        ("hash", np.uint64),  # Zobrist hash of the stones alone
        ("history_length", np.int32),  # number of valid history entries
        ("phase_start", np.int32),  # first history entry that a repetition may match
        ("size", np.int32),  # columns
        ("height", np.int32),  # rows
        ("stride", np.int32),
        ("words", np.int32),  # uint64 words of a bit set over this board's points
        ("ply", np.int32),  # moves played, passes included
        ("empty_count", np.int32),
        ("side_to_move", np.uint8),
        ("passes", np.uint8),  # consecutive passes up to now
        ("suicide", np.uint8),  # rule: suicide of several stones is legal
        ("suicide_areas", np.uint8),  # encode areas as if suicide were legal
        ("judges_agreement", np.uint8),  # the evaluator knows dead stones if players must agree on them; see outcome
        ("ko_rule", np.uint8),
        ("scoring", np.uint8),
        ("tax", np.uint8),
        ("friendly_pass", np.uint8),  # rule: a pass may be answered by one that ends the game (friendlyPassOk)
        ("finished", np.uint8),  # NOT_FINISHED, TWO_PASSES, ...: how this board ended the game
        # The players that a human-SL network imitates; see yomi.native.go.planes.
        ("human_source", np.uint8),  # origin of their games; 0: no profile
        ("human_rank", np.uint8, (2,)),  # of Black and White: 1 for 9d, 9 for 1d, 10 for 1k, ...
        ("human_date", np.int32),  # of the games, in days since 1970-01-01
        ("recent_valid", np.uint8),  # number of recent moves that may be encoded: moves since a game's end
        ("simple_ko", np.uint16),  # point that may not be retaken now, or NO_POINT
        ("recent_move", np.uint16, (RECENT,)),  # newest first, or NO_POINT
        ("recent_color", np.uint8, (RECENT,)),
        ("prisoners", np.int32, (4,)),  # captured stones, by their color
        ("komi", np.float32),  # points for White, with compensation for handicap stones
        # Playouts of Black beyond White's that networks expect, in doublings (KataGo's playoutDoublingAdvantage)
        ("doubling_advantage", np.float32),
        ("white_bonus", np.float32),  # territory scoring: +1 per Black move, -1 per White move, instead of prisoners
        # The board, by point.
        ("color", np.uint8, (MAX_POINTS,)),
        ("chain", np.uint16, (MAX_POINTS,)),  # slot of the stone's chain
        ("next_stone", np.uint16, (MAX_POINTS,)),  # the stones of a chain form a ring
        ("empty_index", np.uint16, (MAX_POINTS,)),  # index of an empty point in `empties`
        ("empties", np.uint16, (MAX_POINTS,)),  # the empty points, in any order
        ("previous_color", np.uint8, (2 * MAX_POINTS,)),  # boards one and two moves ago
        ("previous_ko", np.uint16, (2,)),  # their simple ko points
        ("previous_count", np.uint8),  # number of previous boards, up to 2
        # The chains, by slot.
        ("occupied", np.uint64, (WORDS,)),  # points that ever held a stone; only they can repeat a board
        ("slots", np.uint64, (6,)),  # slots in use
        ("liberties", np.uint16, (MAX_CHAINS,)),  # number of liberties
        ("stones", np.uint16, (MAX_CHAINS,)),  # number of stones
        ("liberty_bits", np.uint64, (MAX_CHAINS * WORDS,)),  # slot * words + word
    ],
    align=True,
)


def _zobrist_keys() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    rng = np.random.Generator(np.random.PCG64(20070201))
    return rng.integers(1, 2**64, size=(4, MAX_POINTS), dtype=np.uint64)


# uint64[4, MAX_POINTS]: keys by color and point. Row 3 is for other features: side to move, ko, passes.
ZOBRIST = _zobrist_keys()


PATTERN_REACH = 2  # A local pattern extends this many points to each side
_MIX = U(0x9E3779B97F4A7C15)
# 65536 / stride, rounded up, by stride. Exact for all points, as point * stride < 65536.
INVERSE = np.array([0] + [65536 // stride + 1 for stride in range(1, MAX_SIZE + 2)], np.int64)


@kernel
def row_of(stride, point):  # type: ignore[no-untyped-def]
    # A division takes ten times as long.
    return (np.int64(point) * INVERSE[U(stride)]) >> 16


@kernel
def clear(pos, size, height):  # type: ignore[no-untyped-def]
    """Empty a board of `size` columns and `height` rows."""
    stride = size + 1
    pos.size = size
    pos.height = height
    pos.stride = stride
    pos.words = ((height + 2) * stride + 1 + 63) // 64
    pos.hash = U(0)
    pos.history_length = 0
    pos.phase_start = 0
    pos.ply = 0
    pos.side_to_move = BLACK
    pos.passes = 0
    pos.finished = NOT_FINISHED
    pos.recent_valid = 0
    pos.simple_ko = NO_POINT
    pos.white_bonus = 0.0
    pos.previous_count = 0
    for i in range(RECENT):
        pos.recent_move[i] = NO_POINT
        pos.recent_color[i] = EMPTY
    for i in range(4):
        pos.prisoners[i] = 0
    for i in range(WORDS):
        pos.occupied[i] = U(0)
    for i in range(6):
        pos.slots[i] = U(0)
    for p in range(MAX_POINTS):
        pos.color[p] = BORDER
    count = 0
    for y in range(height):
        for x in range(size):
            p = (y + 1) * stride + x + 1
            pos.color[p] = EMPTY
            pos.empties[count] = p
            pos.empty_index[p] = count
            count += 1
    pos.empty_count = count


@kernel
def copy(target, source):  # type: ignore[no-untyped-def]
    target.hash = source.hash
    target.history_length = source.history_length
    target.phase_start = source.phase_start
    target.size = source.size
    target.height = source.height
    target.stride = source.stride
    target.words = source.words
    target.ply = source.ply
    target.side_to_move = source.side_to_move
    target.passes = source.passes
    target.suicide = source.suicide
    target.suicide_areas = source.suicide_areas
    target.judges_agreement = source.judges_agreement
    target.ko_rule = source.ko_rule
    target.scoring = source.scoring
    target.tax = source.tax
    target.friendly_pass = source.friendly_pass
    target.finished = source.finished
    target.human_source = source.human_source
    target.human_rank[0] = source.human_rank[0]
    target.human_rank[1] = source.human_rank[1]
    target.human_date = source.human_date
    target.recent_valid = source.recent_valid
    target.simple_ko = source.simple_ko
    target.komi = source.komi
    target.doubling_advantage = source.doubling_advantage
    target.white_bonus = source.white_bonus
    target.empty_count = source.empty_count
    target.previous_count = source.previous_count
    for i in range(RECENT):
        target.recent_move[i] = source.recent_move[i]
        target.recent_color[i] = source.recent_color[i]
    for i in range(4):
        target.prisoners[i] = source.prisoners[i]
    # Only what the board's size and its chains use.
    points = U((source.height + 2) * source.stride + 1)
    for i in range(points):
        target.color[i] = source.color[i]
        target.chain[i] = source.chain[i]
        target.next_stone[i] = source.next_stone[i]
        target.empty_index[i] = source.empty_index[i]
    for i in range(U(source.empty_count)):
        target.empties[i] = source.empties[i]
    for k in range(U(source.previous_count)):
        target.previous_ko[k] = source.previous_ko[k]
        for i in range(points):
            target.previous_color[k * U(MAX_POINTS) + i] = source.previous_color[k * U(MAX_POINTS) + i]
    for w in range(U(source.words)):
        target.occupied[w] = source.occupied[w]
    top = U(0)
    for w in range(U(6)):
        bits = source.slots[w]
        target.slots[w] = bits
        if bits != U(0):
            top = (w + U(1)) * U(64)
    top = min(top, U(MAX_CHAINS))
    for i in range(top):
        target.liberties[i] = source.liberties[i]
        target.stones[i] = source.stones[i]
    for i in range(top * U(source.words)):
        target.liberty_bits[i] = source.liberty_bits[i]


@kernel
def first_liberty(pos, slot):  # type: ignore[no-untyped-def]
    """Return the lowest liberty of the chain in `slot`, or NO_POINT."""
    base = U(slot) * U(pos.words)
    for w in range(U(pos.words)):
        word = pos.liberty_bits[base + w]
        if word != U(0):
            return w * U(64) + lowest_bit(word)
    return U(NO_POINT)


@kernel
def second_liberty(pos, slot):  # type: ignore[no-untyped-def]
    """Return the second lowest liberty of the chain in `slot`, or NO_POINT."""
    base = U(slot) * U(pos.words)
    seen = False
    for w in range(U(pos.words)):
        word = pos.liberty_bits[base + w]
        if seen and word != U(0):
            return w * U(64) + lowest_bit(word)
        if word != U(0):
            # Drop the first liberty.
            word &= word - U(1)
            if word != U(0):
                return w * U(64) + lowest_bit(word)
            seen = True
    return U(NO_POINT)


@kernel
def add_liberty(pos, slot, p):  # type: ignore[no-untyped-def]
    index = U(slot) * U(pos.words) + (U(p) >> U(6))
    old = pos.liberty_bits[index]
    bit = U(1) << (U(p) & U(63))
    pos.liberty_bits[index] = old | bit
    if old & bit == U(0):
        pos.liberties[U(slot)] += 1


@kernel
def drop_liberty(pos, slot, p):  # type: ignore[no-untyped-def]
    index = U(slot) * U(pos.words) + (U(p) >> U(6))
    old = pos.liberty_bits[index]
    bit = U(1) << (U(p) & U(63))
    pos.liberty_bits[index] = old & ~bit
    if old & bit != U(0):
        pos.liberties[U(slot)] -= 1


@kernel
def new_slot(pos):  # type: ignore[no-untyped-def]
    """Take the lowest free slot, for a chain without stones and liberties."""
    w = U(0)
    while ~pos.slots[w] == U(0):
        w += U(1)
    bit = lowest_bit(~pos.slots[w])
    pos.slots[w] |= U(1) << bit
    slot = w * U(64) + bit
    pos.liberties[slot] = 0
    pos.stones[slot] = 0
    words = U(pos.words)
    for i in range(words):
        pos.liberty_bits[slot * words + i] = U(0)
    return slot


@kernel
def _merge(pos, target, source, stone):  # type: ignore[no-untyped-def]
    """Add chain `source`, which contains `stone`, to chain `target`. The caller joins their rings."""
    p = U(stone)
    while True:
        pos.chain[p] = target
        p = U(pos.next_stone[p])
        if p == U(stone):
            break
    words = U(pos.words)
    count = U(0)
    for i in range(words):
        union = pos.liberty_bits[target * words + i] | pos.liberty_bits[source * words + i]
        pos.liberty_bits[target * words + i] = union
        count += popcount(union)
    pos.liberties[target] = count
    pos.stones[target] += pos.stones[source]
    pos.slots[source >> U(6)] &= ~(U(1) << (source & U(63)))


@kernel
def remove_chain(pos, stone):  # type: ignore[no-untyped-def]
    """Take the chain of `stone` off the board; return its number of stones."""
    slot = U(pos.chain[U(stone)])
    color = U(pos.color[U(stone)])
    enemy = U(3) - color
    stride = np.int64(pos.stride)
    count = 0
    p = U(stone)
    while True:
        pos.color[p] = EMPTY
        pos.hash ^= ZOBRIST[color, p]
        pos.empties[U(pos.empty_count)] = p
        pos.empty_index[p] = pos.empty_count
        pos.empty_count += 1
        count += 1
        # Each stone becomes a liberty of the enemy chains around it.
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if pos.color[q] == enemy:
                add_liberty(pos, U(pos.chain[q]), p)
        p = U(pos.next_stone[p])
        if p == U(stone):
            break
    pos.slots[slot >> U(6)] &= ~(U(1) << (slot & U(63)))
    return count


@kernel
def place_stone(pos, point, color):  # type: ignore[no-untyped-def]
    """Put a stone on an empty point; return the number of stones captured. Legality is not tested."""
    # Updates chains, liberties, empty points, hash, prisoners and ko point, also for suicide; leaves turn and history.
    p = U(point)
    i = np.int64(p)
    own = U(color)
    enemy = U(3) - own
    stride = np.int64(pos.stride)

    # The stone replaces an empty point; the last of the list fills its place.
    pos.color[p] = own
    pos.hash ^= ZOBRIST[own, p]
    pos.occupied[p >> U(6)] |= U(1) << (p & U(63))
    last = U(pos.empty_count - 1)
    moved = U(pos.empties[last])
    hole = pos.empty_index[p]
    pos.empties[U(hole)] = moved
    pos.empty_index[moved] = hole
    pos.empty_count -= 1

    # Join the own chains around it. The smaller chain is relabeled.
    slot = U(MAX_CHAINS)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] == own:
            other = U(pos.chain[q])
            if slot == U(MAX_CHAINS):
                slot = other
                pos.next_stone[p] = pos.next_stone[q]
                pos.next_stone[q] = p
            elif other != slot:
                if pos.stones[other] > pos.stones[slot]:
                    _merge(pos, other, slot, p)
                    slot = other
                else:
                    _merge(pos, slot, other, q)
                ring = pos.next_stone[p]
                pos.next_stone[p] = pos.next_stone[q]
                pos.next_stone[q] = ring
    if slot == U(MAX_CHAINS):
        slot = new_slot(pos)
        pos.next_stone[p] = p
    else:
        drop_liberty(pos, slot, p)
    pos.chain[p] = slot
    pos.stones[slot] += 1

    # Take a liberty from the enemy chains around it, and capture those without liberties.
    captured = 0
    captured_point = U(NO_POINT)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = pos.color[q]
        if c == EMPTY:
            add_liberty(pos, slot, q)
        elif c == enemy:
            other = U(pos.chain[q])
            drop_liberty(pos, other, p)
            if pos.liberties[other] == 0:
                captured += remove_chain(pos, q)
                captured_point = q
    pos.prisoners[enemy] += captured

    # A single stone that captured one and can be recaptured at once makes a ko.
    pos.simple_ko = NO_POINT
    if captured == 1 and pos.stones[slot] == 1 and pos.liberties[slot] == 1:
        pos.simple_ko = captured_point
    elif pos.liberties[slot] == 0:
        pos.prisoners[own] += remove_chain(pos, p)
    return captured


@kernel
def is_suicide(pos, point, color):  # type: ignore[no-untyped-def]
    """Return whether a stone of `color` on the empty `point` captures nothing and has no liberty."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = pos.color[q]
        if c == EMPTY:
            return False
        if c != BORDER:
            one = pos.liberties[U(pos.chain[q])] == 1
            if (c == color) != one:
                return False
    return True


@kernel
def is_single_stone_suicide(pos, point, color):  # type: ignore[no-untyped-def]
    """Return whether a suicide at `point` is of a single stone, which is never legal."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        if pos.color[U(neighbor)] == color:
            return False
    return True


@kernel
def is_eye(pos, point, color):  # type: ignore[no-untyped-def]
    """Return whether the empty `point` is an eye of `color`, by the usual rule of rollouts."""
    # Own stones surround it, with at most one enemy on a diagonal, or none at the edge.
    i = np.int64(point)
    stride = np.int64(pos.stride)
    edge = False
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        c = pos.color[U(neighbor)]
        if c == BORDER:
            edge = True
        elif c != color:
            return False
    enemies = 1 if edge else 0
    enemy = 3 - color
    for neighbor in (i - 1 - stride, i + 1 - stride, i - 1 + stride, i + 1 + stride):
        if pos.color[U(neighbor)] == enemy:
            enemies += 1
    return enemies < 2


@kernel
def pattern_key(pos, history, move):  # type: ignore[no-untyped-def]
    """Return a key of a move, the move before, and the 5×5 points around it: stones, and whether they are in atari."""
    key = (U(pos.recent_move[0]) << U(32)) | (U(pos.simple_ko) << U(16)) | (U(move) << U(1)) | U(pos.side_to_move & 1)
    key *= _MIX
    if move != PASS:
        stride = np.int64(pos.stride)
        row = row_of(stride, move)
        column = np.int64(move) - row * stride
        left, right = max(np.int64(1), column - PATTERN_REACH), min(stride - 1, column + PATTERN_REACH)
        bottom = min(np.int64(pos.height), row + PATTERN_REACH)
        for y in range(max(np.int64(1), row - PATTERN_REACH), bottom + 1):
            for x in range(left, right + 1):
                p = U(y * stride + x)
                point = U(pos.color[p])
                if point != U(EMPTY) and pos.liberties[U(pos.chain[p])] == 1:
                    point += U(4)
                key = (key ^ point) * _MIX
    return key ^ (key >> U(32))
