"""What sparse networks see of a shogi position: rows of their first layer, and of their policy, that are added up.

The board is seen from the side to move's chair, as in dlshogi's form, and mirrored besides if the own king stands on
its left half: the rules know no left and right. A piece is loose where nothing of its own side attacks its square.
These are rows of the first layer:

* each piece on the board, by its kind, owner and square, whether the other side attacks it, and with a cheaper piece,
  and whether it is loose;
* each piece in hand, the n-th of its kind;
* each square beside a king, as seen from it: what stands there, how often the other side attacks it, and whether
  another piece than the king defends it;
* each piece at most three files and ranks away from a king, as seen from it.

A move has one row of each of five tables:

* where it goes: dlshogi's label, direction (with or without promotion, or the piece that is dropped) and square;
* what it does: the piece, what it captures, whether the square is attacked, and by a cheaper piece, whether it is
  defended, whether the move gives check, and how many pieces it threatens: dearer ones, and loose ones;
* where it comes from: piece and square, attacked or not, loose or not, and whether it leaves a piece loose that is
  attacked; or the piece that is dropped;
* the piece, and where its new square lies from the other side's king;
* the piece, where that lies from the own king, and whether it guards a loose piece that is attacked.

A square counts as defended if another own piece attacks it than the one that moves there. Whether a move gives check,
and what it threatens, is told as far as it costs nothing: the piece's old square still counts as occupied.
"""

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.bitboards import attacks, first_square, without_first
from yomi.native.shogi.movegen import lone_blockers
from yomi.native.shogi.planes import DIRECTIONS, HAND_MAX
from yomi.native.shogi.position import FIRST_DROP, MAX_MOVES
from yomi.native.shogi.tables import DIRECTION, HAND_INDEX, KING, NO_SQUARE, PROMOTED, ROWS, SQUARES, WHITE_PIECE

KINDS = 14
FLAGS = 6
"""Not attacked by the other side (0), attacked (2), attacked by a cheaper piece (4); and 1 if defended by its own."""
COSTS = 8
COST_OF = np.array([0, 0, 1, 1, 2, 4, 5, 3, 7, 3, 3, 3, 3, 6, 6, 0], np.uint8)
"""uint8[16]: how dear a piece of each kind is, from pawns (0) to the king."""
HANDS = 28
"""Rows for the pieces in one side's hand: so many as dlshogi counts, more pawns than eight count as eight."""
FIRST_HAND = 2 * KINDS * SQUARES * FLAGS
BESIDE = 8
"""Squares beside a king."""
GUARDS = 6
"""Attacked not at all (0), once (2), more often (4); and 1 if another piece than the king defends it."""
BESIDE_STATES = (2 * KINDS + 1) * GUARDS + 1
"""With nothing there, the king's own pieces, the other side's; the last is what lies off the board."""
FIRST_BESIDE = FIRST_HAND + 2 * HANDS
FIRST_NEAR = FIRST_BESIDE + 2 * BESIDE * BESIDE_STATES
NEAR = 3
"""So many files and ranks away from a king pieces are near it."""
PLACES_NEAR = (2 * NEAR + 1) ** 2
FAR = 255
INPUTS = FIRST_NEAR + 2 * 2 * KINDS * PLACES_NEAR
MAX_ACTIVE = 40 + 2 * BESIDE + 2 * 38
"""Rows of a position: there are no more pieces."""

LABELS = 27 * SQUARES
MOVERS = KINDS + 7
"""Kinds on the board, then pieces that are dropped."""
THREATS = 3
"""Pieces that a move threatens: none, one, more."""
REACH = 4
"""So many files and ranks away from a king are told apart."""
OFFSETS = (2 * REACH + 1) ** 2
TABLES = (
    LABELS,
    MOVERS * (KINDS + 1) * FLAGS * THREATS * 2,
    KINDS * SQUARES * FLAGS * 2 + 7,
    MOVERS * OFFSETS,
    MOVERS * OFFSETS * 2,
)
"""Rows of each table of moves; they lie behind one another."""
FIRST_DEED, FIRST_ORIGIN, FIRST_FROM_THEIRS, FIRST_FROM_OURS, MOVE_ROWS = (sum(TABLES[:i]) for i in range(1, 6))
FIRST_DROPPED = FIRST_FROM_THEIRS - 7
PARTS = len(TABLES)
"""Rows of a move."""


def _make_views() -> npt.NDArray[np.uint8]:
    squares = np.arange(SQUARES).reshape(9, 9)
    turned = squares[::-1, ::-1]
    views = np.stack([squares, squares[::-1], turned, turned[::-1]]).reshape(4, SQUARES)
    return np.concatenate([views, np.full((4, 1), NO_SQUARE)], 1).astype(np.uint8).ravel()


VIEWS = _make_views()
"""uint8[4 * ROWS]: where a square is seen, row = 2 if White is to move, and 1 more if the board is mirrored. And back:
each row is its own inverse."""


def _make_beside() -> npt.NDArray[np.uint8]:
    found = np.full((ROWS, BESIDE), NO_SQUARE, np.uint8)
    steps = [(file, rank) for file in (-1, 0, 1) for rank in (-1, 0, 1) if (file, rank) != (0, 0)]
    for square in range(SQUARES):
        for number, (files, ranks) in enumerate(steps):
            file, rank = square // 9 + files, square % 9 + ranks
            if 0 <= file < 9 and 0 <= rank < 9:
                found[square, number] = file * 9 + rank
    return found.ravel()


SQUARES_BESIDE = _make_beside()
"""uint8[ROWS * BESIDE]: the squares beside a square, NO_SQUARE off the board."""


def _make_offsets() -> npt.NDArray[np.uint8]:
    places = np.arange(SQUARES)
    files, ranks = (np.clip(part[None] - part[:, None], -REACH, REACH) + REACH for part in (places // 9, places % 9))
    found = np.full((ROWS, ROWS), OFFSETS // 2, np.uint8)
    found[:SQUARES, :SQUARES] = files * (2 * REACH + 1) + ranks
    return found.ravel()


OFFSET = _make_offsets()
"""uint8[ROWS * ROWS]: where one square lies from another (row); from a king that is not there, where none ever does."""


def _make_places_near() -> npt.NDArray[np.uint8]:
    places = np.arange(SQUARES)
    files, ranks = (part[None] - part[:, None] for part in (places // 9, places % 9))
    is_near = (np.abs(files) <= NEAR) & (np.abs(ranks) <= NEAR)
    found = np.full((ROWS, ROWS), FAR, np.uint8)
    found[:SQUARES, :SQUARES] = np.where(is_near, (files + NEAR) * (2 * NEAR + 1) + ranks + NEAR, FAR)
    return found.ravel()


PLACE_NEAR = _make_places_near()
"""uint8[ROWS * ROWS]: where one square lies from a king's (row), FAR if it is not near, or there is no king."""
FIRST_OF_HAND = np.concatenate([[0], np.cumsum(HAND_MAX)]).astype(np.uint8)
"""uint8[8]: the first row of each piece in a hand."""

SCRATCH_DTYPE = np.dtype(
    [
        ("attacked", np.uint64, (4,)),  # by the side to move (low, high), by the other
        ("twice", np.uint64, (4,)),  # by two or more pieces of a side
        ("cheaply", np.uint64, (4 * COSTS,)),  # by pieces of a side that are cheaper than each cost
        ("targets", np.uint64, (2 * COSTS,)),  # what a piece of each cost of the side to move threatens
        ("in_danger", np.uint64, (2,)),  # loose pieces of the side to move that are attacked
        ("held", np.uint64, (2,)),  # the same, but that a single piece defends them
        ("checks", np.uint64, (2 * (KINDS + 1),)),  # from where a piece of each kind of the side to move gives check
        ("blockers", np.uint64, (2,)),  # own pieces that give check by moving away
        ("chair", np.uint64),  # row of VIEWS, times ROWS
        ("rows", np.uint16, (MAX_ACTIVE,)),
        ("move_rows", np.uint16, (MAX_MOVES * PARTS,)),
    ],
    align=True,
)
"""What is known of a position, for one position at a time."""


@inlined
def _has(sets, place, square):  # type: ignore[no-untyped-def]
    """Return 1 if a square is in the set that begins at a place of some, else 0."""
    half = sets[place + U(1)] if square >= U(64) else sets[place]
    return (half >> (square & U(63))) & U(1)


@kernel
def _find_attacks(pos, scratch):  # type: ignore[no-untyped-def]
    """Find what both sides attack."""
    us = U(pos.side_to_move) - U(1)
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    for side in range(U(2)):
        color = us ^ side
        low = pos.color_bits[color * U(2)]
        high = pos.color_bits[color * U(2) + U(1)]
        once_low = once_high = twice_low = twice_high = U(0)
        cheaply = scratch.cheaply[side * U(2 * COSTS) : (side + U(1)) * U(2 * COSTS)]
        for i in range(U(2 * COSTS)):
            cheaply[i] = U(0)
        while low | high != U(0):
            square = first_square(low, high)
            low, high = without_first(low, high)
            piece = U(pos.board[square])
            attacked_low, attacked_high = attacks(piece, square, occupied_low, occupied_high)
            twice_low |= once_low & attacked_low
            twice_high |= once_high & attacked_high
            once_low |= attacked_low
            once_high |= attacked_high
            dearer = U(2) * (U(COST_OF[piece & U(15)]) + U(1))
            if dearer < U(2 * COSTS):  # nothing is dearer than the king
                cheaply[dearer] |= attacked_low
                cheaply[dearer + U(1)] |= attacked_high
        for i in range(U(2), U(2 * COSTS)):
            cheaply[i] |= cheaply[i - U(2)]
        scratch.attacked[side * U(2)] = once_low
        scratch.attacked[side * U(2) + U(1)] = once_high
        scratch.twice[side * U(2)] = twice_low
        scratch.twice[side * U(2) + U(1)] = twice_high


@inlined
def _attacked(scratch, side, kind, square):  # type: ignore[no-untyped-def]
    """Return whether a piece of the side to move (0) or the other (1) is attacked, as in FLAGS."""
    other = U(1) - side
    cheaply = (other * U(COSTS) + U(COST_OF[kind])) * U(2)
    return U(2) * (_has(scratch.attacked, other * U(2), square) + _has(scratch.cheaply, cheaply, square))


@inlined
def _flags(scratch, side, kind, square):  # type: ignore[no-untyped-def]
    """Return the flags of a piece of the side to move (0) or the other (1)."""
    return _attacked(scratch, side, kind, square) + _has(scratch.attacked, side * U(2), square)


@kernel
def find_rows(pos, scratch):  # type: ignore[no-untyped-def]
    """Write the rows of a position into scratch.rows, and what `find_move_rows` needs; return how many there are."""
    us = U(pos.side_to_move) - U(1)
    _find_attacks(pos, scratch)
    king = U(pos.king[us])
    view = us * U(2 * ROWS)
    if king != U(NO_SQUARE) and VIEWS[view + king] >= 45:  # file 5 is in the middle
        view += U(ROWS)
    scratch.chair = view
    ours, theirs = U(VIEWS[view + king]), U(VIEWS[view + U(pos.king[U(1) - us])])
    count = U(0)
    for side in range(U(2)):
        color = us ^ side
        low = pos.color_bits[color * U(2)]
        high = pos.color_bits[color * U(2) + U(1)]
        while low | high != U(0):
            square = first_square(low, high)
            low, high = without_first(low, high)
            kind = U(pos.board[square]) & U(15)
            seen = U(VIEWS[view + square])
            piece = side * U(KINDS) + kind - U(1)
            scratch.rows[count] = (piece * U(SQUARES) + seen) * U(FLAGS) + _flags(scratch, side, kind, square)
            count += U(1)
            if kind != U(KING):
                count = _add_near(scratch, count, piece, ours, seen)
                count = _add_near(scratch, count, U(2 * KINDS) + piece, theirs, seen)
        first = U(FIRST_HAND) + side * U(HANDS)
        for i in range(U(7)):
            for n in range(min(U(pos.hand[color, i]), U(HAND_MAX[i]))):
                scratch.rows[count] = first + U(FIRST_OF_HAND[i]) + n
                count += U(1)
        if pos.king[color] != NO_SQUARE:
            _add_beside(pos, scratch, side, count)
            count += U(BESIDE)
    return count


@inlined
def _add_near(scratch, count, piece, king, square):  # type: ignore[no-untyped-def]
    """Write the row of a piece behind `count` others if it is near a king; return how many there are then."""
    place = U(PLACE_NEAR[king * U(ROWS) + square])
    if place != U(FAR):
        scratch.rows[count] = U(FIRST_NEAR) + piece * U(PLACES_NEAR) + place
        count += U(1)
    return count


@kernel
def _add_beside(pos, scratch, side, count):  # type: ignore[no-untyped-def]
    """Write the rows of the squares beside a side's king behind `count` others."""
    color = U(pos.side_to_move) - U(1) ^ side
    own, other = side * U(2), (U(1) - side) * U(2)
    king = U(VIEWS[scratch.chair + U(pos.king[color])])
    for i in range(U(BESIDE)):
        state = U(BESIDE_STATES - 1)
        seen = U(SQUARES_BESIDE[king * U(BESIDE) + i])
        if seen != U(NO_SQUARE):
            square = U(VIEWS[scratch.chair + seen])
            piece = U(pos.board[square])
            kind = piece & U(15)
            if kind != U(0) and U(piece >= U(WHITE_PIECE)) != color:
                kind += U(KINDS)
            attackers = _has(scratch.attacked, other, square) + _has(scratch.twice, other, square)
            state = kind * U(GUARDS) + attackers * U(2) + _has(scratch.twice, own, square)
        scratch.rows[count + i] = U(FIRST_BESIDE) + (side * U(BESIDE) + i) * U(BESIDE_STATES) + state


@kernel
def find_threats(pos, scratch):  # type: ignore[no-untyped-def]
    """Find which pieces moves can threaten and guard, and from where they give check, after `find_rows`."""
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    for half in range(U(2)):
        attacked = pos.color_bits[us * U(2) + half] & scratch.attacked[U(2) + half]
        scratch.in_danger[half] = attacked & ~scratch.attacked[half]
        scratch.held[half] = attacked & scratch.attacked[half] & ~scratch.twice[half]
        loose = pos.color_bits[them * U(2) + half] & ~scratch.attacked[U(2) + half]
        for cost in range(U(COSTS)):
            scratch.targets[cost * U(2) + half] = loose
    low, high = pos.color_bits[them * U(2)], pos.color_bits[them * U(2) + U(1)]
    while low | high != U(0):
        square = first_square(low, high)
        rest_low, rest_high = without_first(low, high)
        for cost in range(U(COST_OF[U(pos.board[square]) & U(15)])):
            scratch.targets[cost * U(2)] |= low ^ rest_low
            scratch.targets[cost * U(2) + U(1)] |= high ^ rest_high
        low, high = rest_low, rest_high
    king = U(pos.king[them])
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    for kind in range(U(1), U(KINDS + 1)):
        # a piece gives check from where one of its kind and the other color would be attacked from the king's square
        low = high = U(0)
        if king != U(NO_SQUARE) and kind != U(KING):
            low, high = attacks(kind + them * U(WHITE_PIECE), king, occupied_low, occupied_high)
        scratch.checks[kind * U(2)] = low
        scratch.checks[kind * U(2) + U(1)] = high
    scratch.blockers[U(0)] = scratch.blockers[U(1)] = U(0)
    if king != U(NO_SQUARE):
        low, high = lone_blockers(pos, king, us, us, occupied_low, occupied_high)
        scratch.blockers[U(0)] = low
        scratch.blockers[U(1)] = high


@kernel
def find_move_rows(pos, scratch, move, first):  # type: ignore[no-untyped-def]
    """Write the PARTS rows of a legal move into scratch.move_rows, from `first` on.

    After `find_rows` and `find_threats`.
    """
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    seen_to = U(VIEWS[scratch.chair + to])
    captured = U(0)
    if origin >= U(FIRST_DROP):
        kind = origin - U(FIRST_DROP - 1)
        hand = U(HAND_INDEX[kind])
        label = (U(20) + kind - U(1)) * U(SQUARES) + seen_to
        mover = U(KINDS) + hand
        defended = _has(scratch.attacked, U(0), to)
        source = U(FIRST_DROPPED) + hand
        check = _has(scratch.checks, kind * U(2), to)
    else:
        kind = U(pos.board[origin]) & U(15)
        promotes = (U(move) >> U(14)) & U(1)
        seen = U(VIEWS[scratch.chair + origin])
        label = (promotes * U(10) + U(DIRECTIONS[seen * U(SQUARES) + seen_to])) * U(SQUARES) + seen_to
        mover = kind - U(1)
        captured = U(pos.board[to]) & U(15)
        defended = _has(scratch.twice, U(0), to)
        place = (mover * U(SQUARES) + seen) * U(FLAGS) + _flags(scratch, U(0), kind, origin)
        low, high = _reached(pos, kind + us * U(WHITE_PIECE), origin)
        leaves = U((low & scratch.held[U(0)]) | (high & scratch.held[U(1)]) != U(0))
        source = U(FIRST_ORIGIN) + place * U(2) + leaves
        kind += promotes * U(PROMOTED)
        check = _has(scratch.checks, kind * U(2), to)
        if _has(scratch.blockers, U(0), origin) != U(0):
            king = U(pos.king[U(1) - us]) * U(ROWS)
            check |= U(DIRECTION[king + origin] != DIRECTION[king + to])
    flags = _attacked(scratch, U(0), kind, to) + defended
    threats, guards = _threats(pos, scratch, kind + us * U(WHITE_PIECE), to)
    deed = (((mover * U(KINDS + 1) + captured) * U(FLAGS) + flags) * U(THREATS) + threats) * U(2) + check
    ours, theirs = U(VIEWS[scratch.chair + U(pos.king[us])]), U(VIEWS[scratch.chair + U(pos.king[U(1) - us])])
    from_theirs = mover * U(OFFSETS) + U(OFFSET[theirs * U(ROWS) + seen_to])
    from_ours = (mover * U(OFFSETS) + U(OFFSET[ours * U(ROWS) + seen_to])) * U(2) + guards
    rows, first = scratch.move_rows, U(first)
    rows[first] = label
    rows[first + U(1)] = U(FIRST_DEED) + deed
    rows[first + U(2)] = source
    rows[first + U(3)] = U(FIRST_FROM_THEIRS) + from_theirs
    rows[first + U(4)] = U(FIRST_FROM_OURS) + from_ours


@inlined
def _reached(pos, piece, square):  # type: ignore[no-untyped-def]
    """Return the squares that a piece on a square attacks."""
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    return attacks(piece, square, occupied_low, occupied_high)


@inlined
def _threats(pos, scratch, piece, to):  # type: ignore[no-untyped-def]
    """Return how many pieces one would threaten on a square, up to two, and whether it would guard one in danger."""
    low, high = _reached(pos, piece, to)
    guards = U((low & scratch.in_danger[U(0)]) | (high & scratch.in_danger[U(1)]) != U(0))
    cost = U(2) * U(COST_OF[piece & U(15)])
    low, high = low & scratch.targets[cost], high & scratch.targets[cost + U(1)]
    threats = U(0)
    if low | high != U(0):
        low, high = without_first(low, high)
        threats = U(1) + U(low | high != U(0))
    return threats, guards
