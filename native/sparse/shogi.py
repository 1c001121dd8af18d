"""Sparse networks of shogi: the rows of their first layer and of their policy, and the evaluation of a batch."""

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.movegen import lone_blockers
from yomi.native.shogi.pieces import KING, PROMOTION, WHITE_PIECE
from yomi.native.shogi.planes import DIRECTIONS, HAND_MAX
from yomi.native.shogi.position import FIRST_DROP, MAX_MOVES, occupied, pieces_of
from yomi.native.shogi.spec import shogi_spec
from yomi.native.shogi.squares import (
    NO_SQUARE,
    SQUARES,
    first_square,
    has,
    no_squares,
    number_of,
    put,
    squares_at,
    without_first,
)
from yomi.native.shogi.tables import DIRECTION, HAND_INDEX, ROWS, attacks
from yomi.native.sparse.network import SparseNetwork, first_layer, make_scratch, move_logits, value_logit
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE, VALUES
from yomi.native.tree.buffers import make_batch

# The board is from the mover's side as in dlshogi's form, and mirrored if the own king is on the left half. "Loose"
# means not defended. A target is defended if another own piece attacks it. Checks and threats are approximate: the
# origin still counts as occupied.
#
# Rows of the first layer:
# 1. each piece on the board: kind, owner, square, FLAGS;
# 2. each piece in hand, the n-th of its kind;
# 3. each square beside a king, relative to it: contents and GUARDS;
# 4. each piece at most NEAR files and ranks from a king, relative to it.
KINDS = 14
FLAGS = 6  # 0 not attacked, 2 attacked, 4 attacked by a cheaper piece; + 1 if defended
COSTS = 8
# uint8[16]: cost class of each kind, from pawn (0) to king.
COST_OF = np.array([0, 0, 1, 1, 2, 4, 5, 3, 7, 3, 3, 3, 3, 6, 6, 0], np.uint8)
HANDS = 28  # rows for one side's hand, with dlshogi's maximum counts
FIRST_HAND = 2 * KINDS * SQUARES * FLAGS
BESIDE = 8  # number of squares beside a king
# 0 not attacked, 2 attacked once, 4 more often; + 1 if another piece than the king defends it.
GUARDS = 6
# Contents: empty, own pieces, opponent's pieces. The last state is off the board.
BESIDE_STATES = (2 * KINDS + 1) * GUARDS + 1
FIRST_BESIDE = FIRST_HAND + 2 * HANDS
FIRST_NEAR = FIRST_BESIDE + 2 * BESIDE * BESIDE_STATES
NEAR = 3  # maximum distance of pieces near a king
PLACES_NEAR = (2 * NEAR + 1) ** 2
FAR = 255
INPUTS = FIRST_NEAR + 2 * 2 * KINDS * PLACES_NEAR
MAX_ACTIVE = 40 + 2 * BESIDE + 2 * 38  # maximum number of rows of a position

LABELS = 27 * SQUARES
MOVERS = KINDS + 7  # kinds on the board, then dropped kinds
THREATS = 3  # threatened pieces: none, one, more
REACH = 4  # relative places differ up to this distance from a king
OFFSETS = (2 * REACH + 1) ** 2
# Rows of each table of moves. The tables are joined.
TABLES = (
    # dlshogi's label: direction (with promotion, or the dropped piece) and target
    LABELS,
    # piece, captured piece, FLAGS of the target, number of dearer or loose pieces that it threatens, gives check
    MOVERS * (KINDS + 1) * FLAGS * THREATS * 2,
    # piece and origin, its FLAGS, leaves an attacked piece loose; or the dropped piece
    KINDS * SQUARES * FLAGS * 2 + 7,
    # piece and target relative to the opponent's king
    MOVERS * OFFSETS,
    # piece and target relative to the own king, guards an attacked loose piece
    MOVERS * OFFSETS * 2,
)
FIRST_DEED, FIRST_ORIGIN, FIRST_FROM_THEIRS, FIRST_FROM_OURS, MOVE_ROWS = (sum(TABLES[:i]) for i in range(1, 6))
FIRST_DROPPED = FIRST_FROM_THEIRS - 7
PARTS = len(TABLES)  # number of rows of a move


def _make_views() -> npt.NDArray[np.uint8]:
    squares = np.arange(SQUARES).reshape(9, 9)
    turned = squares[::-1, ::-1]
    views = np.stack([squares, squares[::-1], turned, turned[::-1]]).reshape(4, SQUARES)
    return np.concatenate([views, np.full((4, 1), NO_SQUARE)], 1).astype(np.uint8).ravel()


# uint8[4 * ROWS]: rotated or mirrored squares; row = 2 if White is to move, + 1 if mirrored. Each row is its own
# inverse.
VIEWS = _make_views()


def _make_beside() -> npt.NDArray[np.uint8]:
    found = np.full((ROWS, BESIDE), NO_SQUARE, np.uint8)
    steps = [(file, rank) for file in (-1, 0, 1) for rank in (-1, 0, 1) if (file, rank) != (0, 0)]
    for square in range(SQUARES):
        for number, (files, ranks) in enumerate(steps):
            file, rank = square // 9 + files, square % 9 + ranks
            if 0 <= file < 9 and 0 <= rank < 9:
                found[square, number] = file * 9 + rank
    return found.ravel()


# uint8[ROWS * BESIDE]: the squares beside a square, or NO_SQUARE
SQUARES_BESIDE = _make_beside()


def _make_offsets() -> npt.NDArray[np.uint8]:
    places = np.arange(SQUARES)
    files, ranks = (np.clip(part[None] - part[:, None], -REACH, REACH) + REACH for part in (places // 9, places % 9))
    found = np.full((ROWS, ROWS), OFFSETS // 2, np.uint8)
    found[:SQUARES, :SQUARES] = files * (2 * REACH + 1) + ranks
    return found.ravel()


# uint8[ROWS * ROWS]: place of one square relative to another (row); the middle for a missing king.
OFFSET = _make_offsets()


def _make_places_near() -> npt.NDArray[np.uint8]:
    places = np.arange(SQUARES)
    files, ranks = (part[None] - part[:, None] for part in (places // 9, places % 9))
    is_near = (np.abs(files) <= NEAR) & (np.abs(ranks) <= NEAR)
    found = np.full((ROWS, ROWS), FAR, np.uint8)
    found[:SQUARES, :SQUARES] = np.where(is_near, (files + NEAR) * (2 * NEAR + 1) + ranks + NEAR, FAR)
    return found.ravel()


# uint8[ROWS * ROWS]: place of a square relative to a king (row), or FAR
PLACE_NEAR = _make_places_near()
# uint8[8]: first row of each kind in a hand.
FIRST_OF_HAND = np.concatenate([[0], np.cumsum(HAND_MAX)]).astype(np.uint8)

# Working memory for one position.
SCRATCH_DTYPE = np.dtype(
    [
        # Sets of squares, one a row.
        ("attacked", np.uint64, (4,)),  # by the side to move, then by the other
        ("twice", np.uint64, (4,)),  # by two or more pieces
        ("cheaply", np.uint64, (4 * COSTS,)),  # by pieces that are cheaper than each cost
        ("targets", np.uint64, (2 * COSTS,)),  # pieces that an own piece of each cost threatens
        ("in_danger", np.uint64, (2,)),  # own attacked loose pieces
        ("held", np.uint64, (2,)),  # own attacked pieces with a single defender
        ("checks", np.uint64, (2 * (KINDS + 1),)),  # squares from which an own piece of each kind gives check
        ("blockers", np.uint64, (2,)),  # own pieces that give a discovered check
        ("chair", np.uint64),  # row of VIEWS * ROWS
        ("rows", np.uint16, (MAX_ACTIVE,)),
        ("move_rows", np.uint16, (MAX_MOVES * PARTS,)),
    ],
    align=True,
)


@kernel
def _find_attacks(pos, scratch):  # type: ignore[no-untyped-def]
    us = U(pos.side_to_move) - U(1)
    blockers = occupied(pos)
    for side in range(U(2)):
        rest = pieces_of(pos, us ^ side)
        once = twice = no_squares()
        cheaply = scratch.cheaply[side * U(2 * COSTS) : (side + U(1)) * U(2 * COSTS)]
        for cost in range(U(COSTS)):
            put(cheaply, cost, no_squares())
        while rest:
            square = first_square(rest)
            rest = without_first(rest)
            piece = U(pos.board[square])
            attacked = attacks(piece, square, blockers)
            twice |= once & attacked
            once |= attacked
            dearer = U(COST_OF[piece & U(15)]) + U(1)
            if dearer < U(COSTS):  # nothing is dearer than the king
                put(cheaply, dearer, squares_at(cheaply, dearer) | attacked)
        for cost in range(U(1), U(COSTS)):
            put(cheaply, cost, squares_at(cheaply, cost) | squares_at(cheaply, cost - U(1)))
        put(scratch.attacked, side, once)
        put(scratch.twice, side, twice)


@inlined
def _attacked(scratch, side, kind, square):  # type: ignore[no-untyped-def]
    """Return the FLAGS of a piece that depend on enemy attacks. `side`: 0 for the side to move, 1 for the opponent."""
    other = U(1) - side
    cheaply = other * U(COSTS) + U(COST_OF[kind])
    return U(2) * (has(scratch.attacked, other, square) + has(scratch.cheaply, cheaply, square))


@inlined
def _flags(scratch, side, kind, square):  # type: ignore[no-untyped-def]
    """Return the FLAGS of a piece. `side`: 0 for the side to move, 1 for the opponent."""
    return _attacked(scratch, side, kind, square) + has(scratch.attacked, side, square)


@kernel
def find_rows(pos, scratch):  # type: ignore[no-untyped-def]
    """Write the rows of a position into scratch.rows, and the input of `find_threats`; return their number."""
    us = U(pos.side_to_move) - U(1)
    _find_attacks(pos, scratch)
    king = U(pos.king[us])
    view = us * U(2 * ROWS)
    if king != U(NO_SQUARE) and VIEWS[view + king] >= 45:  # beyond file 5, the middle
        view += U(ROWS)
    scratch.chair = view
    ours, theirs = U(VIEWS[view + king]), U(VIEWS[view + U(pos.king[U(1) - us])])
    count = U(0)
    # The mover's pieces first, then the opponent's.
    for side in range(U(2)):
        color = us ^ side
        rest = pieces_of(pos, color)
        while rest:
            square = first_square(rest)
            rest = without_first(rest)
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
    """Append the row of a piece if it is near a king; return the new number of rows."""
    place = U(PLACE_NEAR[king * U(ROWS) + square])
    if place != U(FAR):
        scratch.rows[count] = U(FIRST_NEAR) + piece * U(PLACES_NEAR) + place
        count += U(1)
    return count


@kernel
def _add_beside(pos, scratch, side, count):  # type: ignore[no-untyped-def]
    """Append the rows of the squares beside a side's king."""
    color = U(pos.side_to_move) - U(1) ^ side
    other = U(1) - side
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
            attackers = has(scratch.attacked, other, square) + has(scratch.twice, other, square)
            state = kind * U(GUARDS) + attackers * U(2) + has(scratch.twice, side, square)
        scratch.rows[count + i] = U(FIRST_BESIDE) + (side * U(BESIDE) + i) * U(BESIDE_STATES) + state


@kernel
def find_threats(pos, scratch):  # type: ignore[no-untyped-def]
    """Fill the parts of `scratch` that `find_move_rows` needs. Call `find_rows` first."""
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    ours, theirs = squares_at(scratch.attacked, U(0)), squares_at(scratch.attacked, U(1))
    attacked = pieces_of(pos, us) & theirs
    put(scratch.in_danger, U(0), attacked & ~ours)
    put(scratch.held, U(0), attacked & ours & ~squares_at(scratch.twice, U(0)))
    for cost in range(U(COSTS)):
        put(scratch.targets, cost, pieces_of(pos, them) & ~theirs)
    left = pieces_of(pos, them)
    while left:
        square = first_square(left)
        rest = without_first(left)
        for cost in range(U(COST_OF[U(pos.board[square]) & U(15)])):
            put(scratch.targets, cost, squares_at(scratch.targets, cost) | (left ^ rest))
        left = rest
    # Squares from which each kind of own piece checks.
    king = U(pos.king[them])
    blockers = occupied(pos)
    for kind in range(U(1), U(KINDS + 1)):
        # A piece gives check from the squares that a piece of the other color on the king's square attacks.
        checks = no_squares()
        if king != U(NO_SQUARE) and kind != U(KING):
            checks = attacks(kind + them * U(WHITE_PIECE), king, blockers)
        put(scratch.checks, kind, checks)
    unveil = no_squares() if king == U(NO_SQUARE) else lone_blockers(pos, king, us, us, blockers)
    put(scratch.blockers, U(0), unveil)


@kernel
def find_move_rows(pos, scratch, move, first):  # type: ignore[no-untyped-def]
    """Write the PARTS rows of a legal move into scratch.move_rows from `first` on, after `find_threats`."""
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
        defended = has(scratch.attacked, U(0), to)
        source = U(FIRST_DROPPED) + hand
        check = has(scratch.checks, kind, to)
    else:
        kind = U(pos.board[origin]) & U(15)
        promotes = (U(move) >> U(14)) & U(1)
        seen = U(VIEWS[scratch.chair + origin])
        label = (promotes * U(10) + U(DIRECTIONS[seen * U(SQUARES) + seen_to])) * U(SQUARES) + seen_to
        mover = kind - U(1)
        captured = U(pos.board[to]) & U(15)
        defended = has(scratch.twice, U(0), to)
        place = (mover * U(SQUARES) + seen) * U(FLAGS) + _flags(scratch, U(0), kind, origin)
        reached = attacks(kind + us * U(WHITE_PIECE), origin, occupied(pos))
        leaves = U(bool(reached & squares_at(scratch.held, U(0))))
        source = U(FIRST_ORIGIN) + place * U(2) + leaves
        kind += promotes * U(PROMOTION)
        check = has(scratch.checks, kind, to)
        if has(scratch.blockers, U(0), origin) != U(0):
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
def _threats(pos, scratch, piece, to):  # type: ignore[no-untyped-def]
    """Return how many pieces (up to two) a piece on `to` threatens, and whether it guards an own piece in danger."""
    reached = attacks(piece, to, occupied(pos))
    guards = U(bool(reached & squares_at(scratch.in_danger, U(0))))
    targets = reached & squares_at(scratch.targets, U(COST_OF[piece & U(15)]))
    return min(number_of(targets), U(2)), guards


_BYTES, _SHORTS, _FLOATS = (np.zeros((1, 1), kind) for kind in (np.int8, np.int16, np.float32))
# A network of the types that `evaluate_rows` takes.
EXAMPLE = SparseNetwork(
    rows=_BYTES,
    bias=_SHORTS[0],
    direct=_FLOATS[0],
    hidden=_SHORTS[None],
    hidden_bias=_FLOATS[0],
    last=_FLOATS,
    last_bias=_FLOATS[0],
    out=_FLOATS[0],
    moves=_BYTES,
    move_bias=_FLOATS[0],
    scales=_FLOATS[0],
)
_ARGUMENTS = types_of(
    make_batch(shogi_spec(), 1, Inputs.POSITIONS),
    EXAMPLE,
    make_scratch(EXAMPLE, 1),
    np.zeros(1, SCRATCH_DTYPE)[0],
)


@entry(_ARGUMENTS)
def evaluate_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write logits and values of a batch's first `rows` rows. Scores become zero.

    `address` points to a Batch with positions, a SparseNetwork, its scratch and a record of SCRATCH_DTYPE.
    """
    batch, network, scratch, seen = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        pos = batch.positions[row]
        count = find_rows(pos, seen)
        first_layer(network, seen.rows, count, scratch)
        for i in range(U(VALUES)):
            batch.values[row, i] = 0.0
        logit = value_logit(network, seen.rows, count, scratch)
        batch.values[row, U(VALUE)] = np.float32(np.tanh(np.float32(0.5) * logit))
        find_threats(pos, seen)
        moves = U(batch.move_count[row])
        for i in range(moves):
            find_move_rows(pos, seen, batch.moves[row, i], i * U(PARTS))
        if moves != U(0):
            move_logits(network, seen.move_rows, PARTS, moves, scratch)
        for i in range(moves):
            batch.logits[row, U(batch.indices[row, i])] = scratch.logits[i]
