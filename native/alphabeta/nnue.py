"""NNUE evaluations (Nasu 2018): incremental sums of 16-bit rows per view of the board, then small layers of 8-bit
integers.

    sums(ply) = sums(ply - 1) + rows added by the move - rows removed
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from yomi.native.bits import U
from yomi.native.forward.emit import (
    HAS_DOT_PRODUCTS,
    I8,
    I32,
    INT_VECTOR,
    PAIR_VECTOR,
    WIDTH,
    Emitter,
    Routine,
)
from yomi.native.jit import inlined, inlined_early, kernel
from yomi.native.shogi.pieces import (
    BISHOP,
    DRAGON,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    PROM_KNIGHT,
    PROM_LANCE,
    PROM_PAWN,
    PROM_SILVER,
    ROOK,
    SILVER,
    WHITE_PIECE,
)
from yomi.native.shogi.position import FIRST_DROP, occupied
from yomi.native.shogi.squares import SQUARES, first_square, without_first
from yomi.native.shogi.tables import HAND_INDEX, ROWS

# -- rows of a position ------------------------------------------------------------------------------------------------

# A position has two views, Black's and White's (rotated). In a view each piece has a number, by kind, side and square,
# or by kind, side and count in a hand. A row is this number, or the number within a block that belongs to the square of
# the view's own king.
MAX_ROWS = 40  # maximum rows of a view: 38 pieces and two kings
MAX_CHANGES = 2  # maximum rows that a move adds to, or removes from, a view
NO_ROW = -1
MAX_NUMBERS = 1710  # numbers of a view are less than this
PIECES = 38
_OTHERS = 81  # offset of the opponent's numbers of pieces on the board
# First numbers of pieces in hand, in the order of a hand: own, opponent's.
_HANDS = ((1, 39, 49, 59, 69, 79, 85), (20, 44, 54, 64, 74, 82, 88))
# First numbers of pieces on the board.
_BOARD = {PAWN: 90, LANCE: 252, KNIGHT: 414, SILVER: 576, GOLD: 738, BISHOP: 900, HORSE: 1062, ROOK: 1224}
_BOARD |= dict.fromkeys((PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER), 738) | {DRAGON: 1386, KING: 1548}


class Shape(NamedTuple):
    """How a set of inputs maps numbers to rows."""

    block: int  # rows per square of the own king; 0 if rows do not depend on it
    kings: bool  # whether kings are inputs
    is_folded: bool  # whether both kings share their numbers
    is_mirrored: bool  # whether the board is mirrored if the own king is on files 6 to 9


SHAPES = {
    "K-P": Shape(0, True, False, False),
    "HalfKP": Shape(1548, False, False, False),
    "HalfKP_vm": Shape(1548, False, False, True),
    "HalfKA1": Shape(1710, True, False, False),
    "HalfKA2": Shape(1629, True, True, False),
    "HalfKA_hm1": Shape(1710, True, False, True),
    "HalfKA_hm2": Shape(1629, True, True, True),
}


class NnueInputs(NamedTuple):
    """Tables that map the pieces of a position to rows of a network's first layer."""

    # int32[2 * 2 * 32 * SQUARES]: by view, mirrored or not, piece code and square; NO_ROW if it is no input
    numbers: Any
    hands: Any  # int32[2 * 2 * 7]: first number by view, color and index in a hand
    blocks: Any  # int32[2 * ROWS]: first row of the block, by view and square of its own king
    mirrored: Any  # int32[2 * ROWS]: whether the view is mirrored
    follows_king: Any  # int32[1]: whether a move of the own king changes all rows of a view
    pieces: Any  # int32[1]: inputs of a complete position


class NnueChanges(NamedTuple):
    """Rows that each move of the line adds and removes, by ply."""

    added: Any  # int32[plies, 2, MAX_CHANGES]: rows by view
    removed: Any  # int32[plies, 2, MAX_CHANGES]
    counts: Any  # int32[plies, 2, 2]: number of rows added and removed; negative if the view must be recomputed


def _mirror(square: int) -> int:
    return (8 - square // 9) * 9 + square % 9


def make_inputs(name: str) -> NnueInputs:
    """Return the tables of a set of inputs of SHAPES."""
    shape = SHAPES[name]
    numbers = np.full((2, 2, 32, SQUARES), NO_ROW, np.int32)
    hands = np.zeros((2, 2, 7), np.int32)
    blocks = np.zeros((2, ROWS), np.int32)
    mirrored = np.zeros((2, ROWS), np.int32)
    for view in range(2):
        for color in range(2):
            hands[view, color] = _HANDS[color ^ view]
            for kind, first in _BOARD.items():
                if kind == KING and not shape.kings:
                    continue
                base = first + _OTHERS * (color ^ view) * (not (kind == KING and shape.is_folded))
                for square in range(SQUARES):
                    seen = SQUARES - 1 - square if view else square
                    numbers[view, 0, kind + WHITE_PIECE * color, square] = base + seen
                    numbers[view, 1, kind + WHITE_PIECE * color, square] = base + _mirror(seen)
        for square in range(SQUARES):
            king = SQUARES - 1 - square if view else square
            mirrored[view, square] = shape.is_mirrored and king >= 45
            blocks[view, square] = shape.block * (_mirror(king) if mirrored[view, square] else king)
    return NnueInputs(
        numbers.ravel(),
        hands.ravel(),
        blocks.ravel(),
        mirrored.ravel(),
        np.array([shape.block != 0], np.int32),
        np.array([PIECES + 2 * shape.kings], np.int32),
    )


def make_changes(plies: int) -> NnueChanges:
    rows = (plies, 2, MAX_CHANGES)
    return NnueChanges(np.zeros(rows, np.int32), np.zeros(rows, np.int32), np.zeros((plies, 2, 2), np.int32))


@inlined
def _chair(inputs, pos, view):  # type: ignore[no-untyped-def]
    """Return two offsets that depend on the own king's square: of a view's piece numbers, and of its block of rows."""
    place = view * U(ROWS) + U(pos.king[view])
    return (view * U(2) + U(inputs.mirrored[place])) * U(32 * SQUARES), inputs.blocks[place]


@kernel
def find_rows(inputs, pos, view, rows):  # type: ignore[no-untyped-def]
    """Write the rows of a view (0: Black's) into `rows` (int32[MAX_ROWS]); return their number."""
    # As in YaneuraOu, each missing piece counts as the first row of the block. YaneuraOu defines no block for a view
    # without a king; here it is that of the first square.
    numbers, block = _chair(inputs, pos, U(view))
    count = U(0)
    rest = occupied(pos)
    while rest:
        square = first_square(rest)
        rest = without_first(rest)
        number = inputs.numbers[numbers + U(pos.board[square]) * U(SQUARES) + square]
        if number != NO_ROW and count < U(MAX_ROWS):
            rows[count] = block + number
            count += U(1)
    for color in range(U(2)):
        for i in range(U(7)):
            first = inputs.hands[(U(view) * U(2) + color) * U(7) + i]
            for n in range(U(pos.hand[color, i])):
                if count < U(MAX_ROWS):
                    rows[count] = block + first + np.int32(n)
                    count += U(1)
    while count < U(inputs.pieces[U(0)]):
        rows[count] = block
        count += U(1)
    return count


@inlined
def find_changes(inputs, pos, move, changes, ply):  # type: ignore[no-untyped-def]
    """Write the rows that a legal move of `pos` adds and removes into `changes`, at the `ply` of the next position."""
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    at = U(ply)
    for view in range(U(2)):
        numbers, block = _chair(inputs, pos, view)
        added = U(0)
        removed = U(0)
        if origin >= U(FIRST_DROP):
            kind = origin - U(FIRST_DROP - 1)
            i = U(HAND_INDEX[kind])
            hand = inputs.hands[(view * U(2) + us) * U(7) + i]
            changes.removed[at, view, U(0)] = block + hand + np.int32(pos.hand[us, i]) - np.int32(1)
            removed = U(1)
            code = kind + us * U(WHITE_PIECE)
        else:
            code = U(pos.board[origin])
            if code & U(15) == U(KING) and view == us and inputs.follows_king[U(0)] != 0:
                changes.counts[at, view, U(0)] = -1
                continue
            number = inputs.numbers[numbers + code * U(SQUARES) + origin]
            if number != NO_ROW:
                changes.removed[at, view, U(0)] = block + number
                removed = U(1)
            code += (U(move) >> U(14)) << U(3)
            captured = U(pos.board[to])
            if captured != U(0):
                number = inputs.numbers[numbers + captured * U(SQUARES) + to]
                changes.removed[at, view, removed] = block + number
                removed += U(1)
                i = U(HAND_INDEX[captured & U(15)])
                hand = inputs.hands[(view * U(2) + us) * U(7) + i]
                changes.added[at, view, U(0)] = block + hand + np.int32(pos.hand[us, i])
                added = U(1)
        number = inputs.numbers[numbers + code * U(SQUARES) + to]
        if number != NO_ROW:
            changes.added[at, view, added] = block + number
            added += U(1)
        changes.counts[at, view, U(0)] = added
        changes.counts[at, view, U(1)] = removed


@kernel
def no_changes(changes, ply):  # type: ignore[no-untyped-def]
    for view in range(U(2)):
        changes.counts[U(ply), view, U(0)] = 0
        changes.counts[U(ply), view, U(1)] = 0


# -- sums and layers ---------------------------------------------------------------------------------------------------

# Sums wrap around as in YaneuraOu: the order of additions does not matter, and values agree exactly.
#
# Weights are stored by words of four inputs. Words of zeros are not skipped: SuishoPetite has a fifth of them, and the
# tests would cost all that they save.

LANES = 2 * WIDTH  # 16-bit integers of a vector
CHUNK = 4  # vectors of sums that are computed in parallel, in registers
ONE = 127  # 1.0 in the outputs of a layer
TWO = 254  # SFNN: sums are twice as large, so that products keep one more bit
PRODUCT_SHIFT = 9  # 2.0 * 2.0 of such sums is 126 after this shift
SQUARE_SHIFT = 19  # squares of a layer's sums
SHIFT = 6  # 1.0 in the weights of a layer is 1 << SHIFT
GROUP = 16  # outputs of a layer are padded to a multiple of this
WORD = 4  # inputs of a layer that are multiplied together
WORDS_STEP = 4  # the number of words of inputs is a multiple of this
MAX_VALUE = 31753  # values are clamped to this, as in YaneuraOu


class NnueNetwork(NamedTuple):
    """The weights of a network: N inputs, H sums per view, layers of h1, h2 and 1 outputs.

    The first layer's inputs are 2 H clipped sums. SFNN: its inputs are H products of the halves of each view's sums;
    the second layer's inputs are the squares of h1 outputs, then the h1 outputs.
    """

    inputs: NnueInputs
    rows: Any  # int16[N, H]
    bias: Any  # int16[H]
    first: Any  # int8[stacks, inputs / 4, outputs, 4], with outputs padded
    first_bias: Any  # int32[stacks, outputs]
    second: Any  # int8[stacks, inputs / 4, outputs, 4]
    second_bias: Any  # int32[stacks, outputs of `second`]
    last: Any  # int8[stacks, outputs of `second`]
    last_bias: Any  # int32[stacks]
    facts: Any  # int32[2]: FV_SCALE; SFNN: h1, otherwise 0


class NnueKept(NamedTuple):
    """Sums of the last position with the own king on a square, by view and square."""

    sums: Any  # int16[2 * ROWS, H]
    rows: Any  # int32[2 * ROWS, MAX_ROWS]
    counts: Any  # int32[2 * ROWS]: number of rows
    marks: Any  # int8[MAX_NUMBERS]: 0, except while rows are compared
    removed: Any  # int32[MAX_ROWS]


class NnueScratch(NamedTuple):
    """Working memory of one thread for the positions of a line."""

    sums: Any  # int16[plies, 2, H]: of Black's and White's view
    is_summed: Any  # uint8[plies, 2]: 1 if the sums are computed
    changes: NnueChanges
    rows: Any  # int32[MAX_ROWS]
    kept: NnueKept
    clipped: Any  # uint8[inputs of the first layer]: of the side to move, then of the opponent
    totals: Any  # int32[outputs]: SFNN: sums of the first layer
    first: Any  # uint8[inputs of the second layer]
    second: Any  # uint8[outputs]


def _by_words(weights: Any, inputs: int, outputs: int) -> Any:
    """Return weights [stacks, outputs, inputs] as [stacks, inputs / 4, outputs, 4], padded with zeros."""
    outputs = -(-outputs // GROUP) * GROUP
    filled = np.zeros((len(weights), outputs, inputs), np.int8)
    filled[:, : weights.shape[1], : weights.shape[2]] = weights
    return np.ascontiguousarray(filled.reshape(-1, outputs, inputs // WORD, WORD).transpose(0, 2, 1, 3))


def _filled(numbers: Any, count: int) -> Any:
    """Return numbers [stacks, n] as [stacks, count], padded with zeros."""
    return np.pad(numbers, ((0, 0), (0, count - numbers.shape[1])))


def network_of(inputs: NnueInputs, tensors: Mapping[str, Any], fv_scale: int) -> NnueNetwork:
    """Return the network of a file's arrays.

    Args:
        inputs: tables of its inputs.
        tensors: rows int16[N, H], bias int16[H]; for the layers first, second and last: weights
            int8[stacks, outputs, inputs] and biases int32[stacks, outputs], as `first`, `first_bias` and so on.
        fv_scale: divisor of the output.
    """
    width, units = tensors["first"].shape[2], tensors["second"].shape[2]
    sfnn = units // 2 if width == len(tensors["bias"]) else 0
    # SFNN: place for the output that goes straight into the value. It is 0 if the network has none.
    first = _by_words(tensors["first"], width, sfnn + 1 if sfnn else units)
    second = _by_words(tensors["second"], -(-units // GROUP) * GROUP, tensors["second"].shape[1])
    return NnueNetwork(
        inputs,
        np.ascontiguousarray(tensors["rows"], np.int16),
        np.ascontiguousarray(tensors["bias"], np.int16),
        first,
        _filled(tensors["first_bias"].astype(np.int32), first.shape[2]),
        second,
        _filled(tensors["second_bias"].astype(np.int32), second.shape[2]),
        _filled(tensors["last"][:, 0].astype(np.int8), second.shape[2]),
        tensors["last_bias"][:, 0].astype(np.int32),
        np.array([fv_scale, sfnn], np.int32),
    )


def make_scratch(network: NnueNetwork, plies: int) -> NnueScratch:
    """Return working memory for a network and a line of `plies` positions."""
    width = len(network.bias)
    return NnueScratch(
        np.zeros((plies, 2, width), np.int16),
        np.zeros((plies, 2), np.uint8),
        make_changes(plies),
        np.zeros(MAX_ROWS, np.int32),
        NnueKept(
            np.tile(network.bias, (2 * ROWS, 1)),
            np.zeros((2 * ROWS, MAX_ROWS), np.int32),
            np.zeros(2 * ROWS, np.int32),
            np.zeros(MAX_NUMBERS, np.int8),
            np.zeros(MAX_ROWS, np.int32),
        ),
        np.zeros(WORD * network.first.shape[1], np.uint8),
        np.zeros(network.first.shape[2], np.int32),
        np.zeros(WORD * network.second.shape[1], np.uint8),
        np.zeros(network.second.shape[2], np.uint8),
    )


def _row(e: Emitter, table: Any, row_bytes: Any, numbers: Any, index: Any) -> Any:
    place = e.ir.inttoptr(e.at(numbers, e.times(index, 4)), I32.as_pointer())
    return e.at(table, e.ir.mul(e.ir.sext(e.ir.load(place, align=4), row_bytes.type), row_bytes))


def _write_sums(
    e: Emitter, sums: Any, before: Any, table: Any, width: Any, added: Any, adds: Any, removed: Any, removals: Any
) -> None:
    """Write `before` plus the rows `added` minus the rows `removed`, as 16-bit integers that wrap around."""
    row_bytes, vector_bytes = e.times(width, 2), 2 * LANES
    # A chunk of the sums stays in registers while all rows are added.
    with e.loop(width, CHUNK * LANES) as chunks:
        first = e.times(chunks.index, 2)
        places = [i * vector_bytes for i in range(CHUNK)]
        totals = [e.load(e.at(before, first, place), PAIR_VECTOR) for place in places]
        for numbers, count, combine in ((added, adds, e.ir.add), (removed, removals, e.ir.sub)):
            with e.loop(count, 1, totals, may_be_empty=True) as rows:
                row = _row(e, e.at(table, first), row_bytes, numbers, rows.index)
                found = [e.load(e.at(row, place), PAIR_VECTOR) for place in places]
                rows.results = [combine(total, each) for total, each in zip(rows.values, found, strict=True)]
            totals = list(rows.results)
        for total, place in zip(totals, places, strict=True):
            e.store(total, e.at(sums, first, place))
        chunks.results = []


def _clip(e: Emitter, numbers: Any, top: int = ONE) -> Any:
    zero, one = (ir.Constant(numbers.type, [n] * numbers.type.count) for n in (0, top))
    numbers = e.ir.select(e.ir.icmp_signed(">", numbers, zero), numbers, zero)
    return e.ir.select(e.ir.icmp_signed("<", numbers, one), numbers, one)


def _store_bytes(e: Emitter, numbers: Any, address: Any) -> None:
    narrow = e.ir.trunc(numbers, ir.VectorType(I8, numbers.type.count))
    e.ir.store(narrow, e.ir.inttoptr(address, narrow.type.as_pointer()), align=1)


def _write_clipped(e: Emitter, clipped: Any, sums: Any, width: Any) -> None:
    with e.loop(width, LANES) as parts:
        wide = e.load(e.at(sums, e.times(parts.index, 2)), PAIR_VECTOR)
        _store_bytes(e, _clip(e, wide), e.at(clipped, parts.index))
        parts.results = []


def _write_products(e: Emitter, products: Any, sums: Any, half: Any) -> None:
    """Write the products of the first `half` sums with the others, clipped."""
    with e.loop(half, LANES) as parts:
        place = e.at(sums, e.times(parts.index, 2))
        first, second = (e.load(address, PAIR_VECTOR) for address in (place, e.at(place, e.times(half, 2))))
        found = e.ir.mul(_clip(e, first, TWO), _clip(e, second, TWO))
        shifted = e.ir.lshr(found, ir.Constant(PAIR_VECTOR, [PRODUCT_SHIFT] * LANES))
        _store_bytes(e, shifted, e.at(products, parts.index))
        parts.results = []


def _add_word(e: Emitter, word: Any, weights: Any, total: Any) -> Any:
    """Return the sums plus, in each place, the products of a word's four inputs with four weights."""
    if HAS_DOT_PRODUCTS:
        return e.add_products_of_bytes(word, weights, total)
    bits = 32 * WIDTH
    if WIDTH > 4:
        # Sums of two products fit 16 bits, as an input is at most 127.
        byte_vector = ir.VectorType(I8, 4 * WIDTH)
        name = "llvm.x86.avx512.pmaddubs.w.512" if WIDTH == 16 else "llvm.x86.avx2.pmadd.ub.sw"
        pairs = _call(e, name, PAIR_VECTOR, [e.ir.bitcast(each, byte_vector) for each in (word, weights)])
        name = "llvm.x86.avx512.pmaddw.d.512" if bits == 512 else "llvm.x86.avx2.pmadd.wd"
        ones = ir.Constant(PAIR_VECTOR, [1] * LANES)
        return e.ir.add(total, _call(e, name, INT_VECTOR, [pairs, ones]))
    # Without products of bytes: take each byte out of its word, inputs unsigned and weights signed.
    for i in range(WORD):
        shift = ir.Constant(INT_VECTOR, [24 - 8 * i] * WIDTH)
        top = ir.Constant(INT_VECTOR, [24] * WIDTH)
        unit = e.ir.lshr(e.ir.shl(word, shift), top)
        weight = e.ir.ashr(e.ir.shl(weights, shift), top)
        total = e.ir.add(total, e.ir.mul(unit, weight))
    return total


def _call(e: Emitter, name: str, result: Any, values: list[Any]) -> Any:
    module = e.ir.module
    kind = ir.FunctionType(result, [value.type for value in values])
    function = module.globals[name] if name in module.globals else ir.Function(module, kind, name)
    return e.ir.call(function, values)


def _layer(outputs: int, is_clipped: bool = True) -> Any:
    """Return a writer of a layer's code that computes `outputs` outputs at a time."""
    # Neighboring words have separate sums: in one chain each addition would wait for the one before it.
    vectors, side_by_side = outputs // WIDTH, max(1, min(WORDS_STEP, 8 * WIDTH // outputs))

    def write(e: Emitter, target: Any, units: Any, words: Any, weights: Any, bias: Any, all_outputs: Any) -> None:
        """Write outputs.

        Args:
            e: the emitter.
            target: uint8[all_outputs]; int32[all_outputs] for sums that are not clipped.
            units: uint8, the inputs.
            words: number of words of four inputs, a multiple of WORDS_STEP.
            weights: int8[inputs / 4, all_outputs, 4].
            bias: int32[all_outputs].
            all_outputs: a multiple of `outputs`.
        """
        zero = ir.Constant(INT_VECTOR, [0] * WIDTH)
        word_bytes = e.times(all_outputs, WORD)
        with e.loop(all_outputs, outputs) as groups:
            own = e.at(weights, e.times(groups.index, WORD))
            with e.loop(words, side_by_side, [zero] * (vectors * side_by_side)) as loop:
                for k in range(side_by_side):
                    word = e.broadcast_bytes(e.at(units, e.times(loop.index, WORD), WORD * k))
                    row = e.at(own, e.ir.mul(e.at(loop.index, k), word_bytes))
                    for v in range(vectors):
                        weight = e.load(e.at(row, 4 * WIDTH * v), INT_VECTOR)
                        loop.results.append(_add_word(e, word, weight, loop.values[k * vectors + v]))
            for v in range(vectors):
                total = e.load(e.at(bias, e.times(groups.index, 4), 4 * WIDTH * v), INT_VECTOR)
                for part in loop.results[v::vectors]:
                    total = e.ir.add(total, part)
                if is_clipped:
                    shifted = e.ir.ashr(total, ir.Constant(INT_VECTOR, [SHIFT] * WIDTH))
                    _store_bytes(e, _clip(e, shifted), e.at(target, groups.index, WIDTH * v))
                else:
                    e.store(total, e.at(target, e.times(groups.index, 4), 4 * WIDTH * v))
            groups.results = []

    return write


_sums = Routine("nnue_sums", 8, _write_sums).intrinsic()
_clipped = Routine("nnue_clipped", 3, _write_clipped).intrinsic()
_products = Routine("nnue_products", 3, _write_products).intrinsic()
_layer_by_16 = Routine("nnue_layer_by_16", 6, _layer(16)).intrinsic()
_layer_by_32 = Routine("nnue_layer_by_32", 6, _layer(32)).intrinsic()
_totals_by_16 = Routine("nnue_totals_by_16", 6, _layer(16, is_clipped=False)).intrinsic()


@kernel
def begin(network, scratch, pos):  # type: ignore[no-untyped-def]
    """Compute the sums of a position at ply 0."""
    for view in range(U(2)):
        _sum_afresh(network, scratch, pos, U(0), view)


@kernel
def _sum_afresh(network, scratch, pos, ply, view):  # type: ignore[no-untyped-def]
    """Compute the sums of a view at `ply` from the last sums with its king on the same square."""
    kept = scratch.kept
    place = U(view) * U(ROWS) + U(pos.king[U(view)])
    first = network.inputs.blocks[place]
    rows, old = scratch.rows, kept.rows[place]
    count = find_rows(network.inputs, pos, view, rows)
    before = U(kept.counts[place])
    kept.counts[place] = count
    # A mark counts how often a row is added, less how often it is removed.
    for i in range(before):
        kept.marks[U(old[i] - first)] -= 1
    for i in range(count):
        kept.marks[U(rows[i] - first)] += 1
    removals = adds = U(0)
    for i in range(before):
        number = U(old[i] - first)
        if kept.marks[number] < 0:
            kept.marks[number] += 1
            kept.removed[removals] = old[i]
            removals += U(1)
    for i in range(count):
        old[i] = rows[i]
        number = U(rows[i] - first)
        if kept.marks[number] > 0:
            kept.marks[number] -= 1
            rows[adds] = old[i]
            adds += U(1)
    sums, table, width = kept.sums[place].ctypes.data, network.rows.ctypes.data, network.bias.size
    added, removed = rows.ctypes.data, kept.removed.ctypes.data
    _sums(sums, sums, table, width, added, adds, removed, removals)
    _sums(scratch.sums[U(ply), U(view)].ctypes.data, sums, table, width, added, 0, removed, 0)
    scratch.is_summed[U(ply), U(view)] = 1


@inlined_early
def _sum_up_to(network, scratch, positions, ply, view):  # type: ignore[no-untyped-def]
    """Compute the sums of a view at `ply` from the nearest earlier ply with sums."""
    known = ply
    # Go back to a ply with sums, or to one whose change is not known as rows: its count is negative.
    while scratch.is_summed[U(known), U(view)] == 0:
        if scratch.changes.counts[U(known), U(view), U(0)] < 0:
            _sum_afresh(network, scratch, positions[U(known)], known, view)
            break
        known -= 1
    width, changes = network.bias.size, scratch.changes
    while known < ply:
        known += 1
        sums, before = scratch.sums[U(known), U(view)].ctypes.data, scratch.sums[U(known - 1), U(view)].ctypes.data
        added, removed = changes.added[U(known), U(view)].ctypes.data, changes.removed[U(known), U(view)].ctypes.data
        adds, removals = changes.counts[U(known), U(view), U(0)], changes.counts[U(known), U(view), U(1)]
        _sums(sums, before, network.rows.ctypes.data, width, added, adds, removed, removals)
        scratch.is_summed[U(known), U(view)] = 1


@inlined_early
def _output(network, scratch, positions, ply):  # type: ignore[no-untyped-def]
    """Return the network's output for positions[ply] and the side to move, before the division by FV_SCALE."""
    # `scratch` must contain the changes from each ply to the next, and the sums of ply 0 (`begin`).
    us = np.int64(positions[U(ply)].side_to_move) - 1
    width = network.bias.size
    is_sfnn = network.facts[U(1)] != 0
    # The view of the side to move comes first.
    for i in range(2):
        view = us ^ i
        _sum_up_to(network, scratch, positions, ply, view)
        sums = scratch.sums[U(ply), U(view)].ctypes.data
        if is_sfnn:
            _products(scratch.clipped.ctypes.data + i * width // 2, sums, width // 2)
        else:
            _clipped(scratch.clipped.ctypes.data + i * width, sums, width)
    if is_sfnn:
        return _sfnn_output(network, scratch, positions[U(ply)])
    _apply(scratch.first, scratch.clipped, network.first[U(0)], network.first_bias[U(0)])
    return _output_of_first(network, scratch, U(0))


@inlined_early
def _output_of_first(network, scratch, stack):  # type: ignore[no-untyped-def]
    _apply(scratch.second, scratch.first, network.second[stack], network.second_bias[stack])
    total = network.last_bias[stack]
    for i in range(U(network.last.shape[1])):
        total += np.int32(scratch.second[i]) * np.int32(network.last[stack, i])
    return np.int64(total)


@kernel
def _sfnn_output(network, scratch, pos):  # type: ignore[no-untyped-def]
    stack = U(0)
    if network.first.shape[0] > 1:
        # Each side's king by thirds of the board, as this side sees it.
        black, white = U(pos.king[U(0)]) % U(9), U(8) - U(pos.king[U(1)]) % U(9)
        own, other = (black, white) if pos.side_to_move == 1 else (white, black)
        stack = own // U(3) * U(3) + other // U(3)
    weights, bias, totals = network.first[stack], network.first_bias[stack], scratch.totals
    units, words = scratch.clipped.ctypes.data, weights.shape[0]
    _totals_by_16(totals.ctypes.data, units, words, weights.ctypes.data, bias.ctypes.data, bias.size)
    count = U(network.facts[U(1)])
    for i in range(count):
        number = np.int64(totals[i])
        scratch.first[i] = min(number * number >> SQUARE_SHIFT, ONE)
        scratch.first[count + i] = min(max(number >> SHIFT, 0), ONE)
    return _output_of_first(network, scratch, stack) + np.int64(totals[count])


@inlined_early
def _apply(target, units, weights, bias):  # type: ignore[no-untyped-def]
    words, outputs = weights.shape[0], bias.size
    if outputs & U(31) == U(0):
        _layer_by_32(target.ctypes.data, units.ctypes.data, words, weights.ctypes.data, bias.ctypes.data, outputs)
    else:
        _layer_by_16(target.ctypes.data, units.ctypes.data, words, weights.ctypes.data, bias.ctypes.data, outputs)


@inlined_early
def static_value(network, scratch, positions, ply):  # type: ignore[no-untyped-def]
    """Return the value of positions[ply] for the side to move: output / FV_SCALE, rounded toward zero. A pawn is 90."""
    # Python's // rounds down. So the magnitude is divided, and the sign returns afterwards.
    raw = _output(network, scratch, positions, ply)
    scale = np.int64(network.facts[U(0)])
    value = abs(raw) // scale
    value = min(value, MAX_VALUE)
    return value if raw >= 0 else -value
