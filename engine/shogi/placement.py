"""Pieces, moves, positions and SFEN: the rules of shogi in plain, slow Python.

Numbers as in yomi.native.shogi: square = 9 * file + rank, counted from Black's right edge. A move is, as in cshogi and
dlshogi, target | source << 7 | promotion << 14; the source of a drop is 80 + the piece type.

Records are read with these rules, without loading or compiling kernels. `Placement.why_not` explains why a move is
impossible. Games use the kernels' rules (`yomi.engine.shogi.game`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.errors import LineError
from yomi.language import is_japanese, tr
from yomi.native.shogi.pieces import (
    BISHOP,
    DRAGON,
    GOLD,
    HAND_TYPES,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    PROMOTION,
    ROOK,
    SILVER,
    SLIDES,
    STEPS,
    WHITE_PIECE,
)

HAND_INDEX = {piece_type: index for index, piece_type in enumerate(HAND_TYPES)}

LETTERS = " PLNSBRGK"  # SFEN letters of the unpromoted types

# Pieces of a full set by unpromoted type.
COUNTS = {PAWN: 18, LANCE: 4, KNIGHT: 4, SILVER: 4, BISHOP: 2, ROOK: 2, GOLD: 4, KING: 2}

NAMES = ("", "pawn", "lance", "knight", "silver", "bishop", "rook", "gold", "king")
FILES = "１２３４５６７８９"
RANKS = "一二三四五六七八九"
MARKS = {BLACK: "▲", WHITE: "△"}


def code_of(piece_type: int, color: int) -> int:
    return piece_type + (WHITE_PIECE if color == WHITE else 0)


def color_of(code: int) -> int:
    """Return the color of a piece code other than 0."""
    return WHITE if code > WHITE_PIECE else BLACK


def type_of(code: int) -> int:
    return code & 15


def unpromoted(piece_type: int) -> int:
    return piece_type - PROMOTION if piece_type > KING else piece_type


def can_promote(piece_type: int) -> bool:
    return piece_type < GOLD


def in_zone(square: int, color: int) -> bool:
    rank = square % 9
    return rank < 3 if color == BLACK else rank > 5


def has_future(piece_type: int, color: int, square: int) -> bool:
    """Return whether a piece on a square can ever move again: false for pawns, lances and knights at the far edge."""
    rank = square % 9 if color == BLACK else 8 - square % 9
    if piece_type in (PAWN, LANCE):
        return rank > 0
    return piece_type != KNIGHT or rank > 1


def reaching(board: Sequence[int], color: int, piece_type: int, target: int) -> list[int]:
    """Return the squares from which pieces of this color and type reach `target`, pinned pieces included.

    `board` has 81 piece codes; the content of `target` does not matter. A promoted piece is a type of its own.
    """
    code = code_of(piece_type, color)
    # Half of all calls ask for a piece that is not on the board.
    if code not in board:
        return []
    # Walk back from the target: the step is subtracted, and White's steps are mirrored.
    sign = 1 if color == BLACK else -1
    file, rank = divmod(target, 9)
    found = []
    for step_file, step_rank in STEPS.get(piece_type, ()):
        f, r = file - sign * step_file, rank - sign * step_rank
        if 0 <= f < 9 and 0 <= r < 9 and board[9 * f + r] == code:
            found.append(9 * f + r)
    for step_file, step_rank in SLIDES.get(piece_type, ()):
        f, r = file - sign * step_file, rank - sign * step_rank
        while 0 <= f < 9 and 0 <= r < 9:
            if board[9 * f + r]:
                if board[9 * f + r] == code:
                    found.append(9 * f + r)
                break
            f, r = f - sign * step_file, r - sign * step_rank
    return found


# -- moves as numbers --------------------------------------------------------------------------------------------------

DROP = 80  # source of a drop minus its piece type

PROMOTES = 1 << 14


def board_move(source: int, target: int, promotes: bool = False) -> int:
    return target | source << 7 | (PROMOTES if promotes else 0)


def drop(piece_type: int, target: int) -> int:
    return target | (DROP + piece_type) << 7


def target_of(move: int) -> int:
    return move & 127


def source_of(move: int) -> int | None:
    """Return the source square of a move, or None for a drop."""
    source = move >> 7 & 127
    return None if source > DROP else source


def dropped_type(move: int) -> int | None:
    """Return the dropped piece type, or None if a piece on the board moves."""
    source = move >> 7 & 127
    return source - DROP if source > DROP else None


def promotes(move: int) -> bool:
    return bool(move & PROMOTES)


def is_move(move: int) -> bool:
    """Return whether a number encodes a move: two different squares, or the drop of a piece that can be in hand."""
    source, target = move >> 7 & 127, move & 127
    if not 0 <= move < 1 << 15 or target > 80:
        return False
    if source <= DROP:
        return source != target
    return PAWN <= source - DROP <= GOLD and not promotes(move)


def turned(move: int) -> int:
    """Return a move as it is on the board turned by 180 degrees."""
    source = source_of(move)
    target = 80 - target_of(move)
    return drop(dropped_type(move) or 0, target) if source is None else board_move(80 - source, target, promotes(move))


# -- positions ---------------------------------------------------------------------------------------------------------

DROP_PAWN_MATE = "a pawn may not be dropped to mate"  # the reason if `Placement.is_drop_pawn_mate`


@dataclass(frozen=True, slots=True)
class Placement:
    """A position without its history."""

    board: tuple[int, ...]  # piece codes of the 81 squares
    hands: tuple[tuple[int, ...], tuple[int, ...]]  # Black's and White's pieces in hand, by HAND_TYPES
    side: int
    number: int = 1  # number of the next move; 1 at the start of a game

    def turned(self) -> "Placement":
        """Return the position turned by 180 degrees, with exchanged colors."""
        board = tuple(code and code_of(type_of(code), opponent(color_of(code))) for code in reversed(self.board))
        return Placement(board, (self.hands[1], self.hands[0]), opponent(self.side), self.number)

    def after(self, move: int) -> "Placement":
        """Return the position after a move. The move is legal, except that it may be a drop-pawn mate."""
        board = list(self.board)
        hand = list(self.hands[self.side - 1])
        source, target = source_of(move), target_of(move)
        if source is None:
            piece_type = dropped_type(move) or 0
            hand[HAND_INDEX[piece_type]] -= 1
        else:
            piece_type = type_of(board[source]) + (PROMOTION if promotes(move) else 0)
            board[source] = 0
            if board[target]:
                hand[HAND_INDEX[unpromoted(type_of(board[target]))]] += 1
        board[target] = code_of(piece_type, self.side)
        hands = (tuple(hand), self.hands[1]) if self.side == BLACK else (self.hands[0], tuple(hand))
        return Placement(tuple(board), hands, opponent(self.side), self.number + 1)

    def king_square(self, color: int) -> int | None:
        code = code_of(KING, color)
        return self.board.index(code) if code in self.board else None

    def is_check(self, color: int) -> bool:
        king, types = self.king_square(color), range(PAWN, DRAGON + 1)
        return king is not None and any(reaching(self.board, opponent(color), kind, king) for kind in types)

    def why_not(self, move: int) -> str | None:
        """Return the reason why a move is illegal in a few words, or None. Drop-pawn mate is not checked."""
        if not is_move(move):
            return tr("{move} is no move", move=move)
        why = self._why_no_drop(move) if source_of(move) is None else self._why_no_board_move(move)
        # Pins and checks are found by playing the move: slow, but obviously right.
        if why is None and self.after(move).is_check(self.side):
            return tr("the king is in check") if self.is_check(self.side) else tr("the king would be in check")
        return why

    def is_drop_pawn_mate(self, move: int) -> bool:
        """Return whether a move is illegal for no reason except drop-pawn mate."""
        if dropped_type(move) != PAWN or self.why_not(move) is not None:
            return False
        after = self.after(move)
        king = after.king_square(after.side)
        if king is None or not after.is_check(after.side):
            return False
        # Nothing can be put between: the pawn is taken, or the king goes away.
        pawn = target_of(move)
        taking = (board_move(source, pawn, promoted) for source in range(81) for promoted in (False, True))
        going = (board_move(king, target, False) for target in range(81))
        return all(after.why_not(reply) is not None for reply in (*taking, *going))

    def _why_no_drop(self, move: int) -> str | None:
        piece_type, target = dropped_type(move) or 0, target_of(move)
        name, square = tr(NAMES[piece_type]), shown_square(target)
        if not self.hands[self.side - 1][HAND_INDEX[piece_type]]:
            return tr("{side} has no {piece} in hand", side=shown_side(self.side), piece=name)
        if self.board[target]:
            return tr("{square} is not empty", square=square)
        if not has_future(piece_type, self.side, target):
            return tr("a {piece} on {square} could never move", piece=name, square=square)
        file = self.board[target - target % 9 : target - target % 9 + 9]
        if piece_type == PAWN and code_of(PAWN, self.side) in file:
            return tr("a second pawn on file {file} (nifu)", file=target // 9 + 1)
        return None

    def _why_no_board_move(self, move: int) -> str | None:
        source, target = source_of(move) or 0, target_of(move)
        code, taken = self.board[source], self.board[target]
        if not code or color_of(code) != self.side:
            return tr("{side} has no piece on {square}", side=shown_side(self.side), square=shown_square(source))
        piece_type = type_of(code)
        if taken and color_of(taken) == self.side:
            own = shown_side(self.side)
            return tr("{side}'s own piece stands on {square}", side=own, square=shown_square(target))
        if source not in reaching(self.board, self.side, piece_type, target):
            return tr("the piece on {square} does not move there", square=shown_square(source))
        if promotes(move):
            if not can_promote(piece_type):
                return tr("the piece on {square} does not promote", square=shown_square(source))
            if not (in_zone(source, self.side) or in_zone(target, self.side)):
                return tr("no promotion outside the last three ranks")
        elif not has_future(piece_type, self.side, target):
            return tr("the piece must promote on {square}", square=shown_square(target))
        return tr("a king cannot be taken") if type_of(taken) == KING else None


def ranks_of(board: Sequence[int]) -> list[list[int]]:
    """Return the piece codes of each rank in the order of a diagram: from file 9 to file 1."""
    return [[board[9 * file + rank] for file in range(8, -1, -1)] for rank in range(9)]


def held(hand: Sequence[int]) -> list[tuple[int, int]]:
    """Return (piece type, count) of the pieces in a hand, most valuable first, as hands are written."""
    return [(kind, count) for kind, count in zip(reversed(HAND_TYPES), reversed(hand), strict=True) if count]


def square_name(square: int) -> str:
    """Return a square in USI: `7g`."""
    return f"{square // 9 + 1}{'abcdefghi'[square % 9]}"


def japanese_square(square: int) -> str:
    """Return a square such as `７六`."""
    return FILES[square // 9] + RANKS[square % 9]


def shown_square(square: int) -> str:
    """Return the name of a square in the user's language."""
    return japanese_square(square) if is_japanese() else square_name(square)


def shown_side(color: int) -> str:
    return MARKS[color] if is_japanese() else COLOR_NAMES[color]


# -- SFEN --------------------------------------------------------------------------------------------------------------

STARTPOS = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
START_WORD = "startpos"  # USI's word for STARTPOS

MAX_NUMBER = 60000  # highest number of a first move: kernels count plies in 16 bits

SIDES = {"b": BLACK, "w": WHITE}


class SfenError(LineError, ValueError):
    """A text is not SFEN, or a position is impossible. The message is one line."""


def parse_sfen(text: str) -> Placement:
    """Read board, side, hands and an optional move number. Raises SfenError for other texts; see also `check`."""
    fields = text.split()
    if len(fields) not in (3, 4):
        raise SfenError(f"SFEN of {len(fields)} fields: expected board, side to move, hands and move number")
    if fields[1] not in SIDES:
        raise SfenError(f"side to move '{fields[1]}': expected b or w")
    number = fields[3] if len(fields) == 4 else "1"
    if not (number.isascii() and number.isdigit() and len(number) < 8 and int(number) <= MAX_NUMBER):
        raise SfenError(f"move number '{number}': expected 1 to {MAX_NUMBER}")
    # some programs count from 0
    placement = Placement(_parse_board(fields[0]), _parse_hands(fields[2]), SIDES[fields[1]], max(int(number), 1))
    check(placement)
    return placement


def _parse_board(text: str) -> tuple[int, ...]:
    ranks = text.split("/")
    if len(ranks) != 9:
        raise SfenError(f"board of {len(ranks)} ranks: expected 9")
    board = [0] * 81
    for rank, row in enumerate(ranks):
        file = 9
        for match in re.finditer(r"[1-9]|(\+?)([A-Za-z])|.", row):
            plus, letter = match.groups()
            if match[0] in "123456789":
                file -= int(match[0])
                continue
            piece_type = LETTERS.find(letter.upper()) if letter else -1
            if piece_type < 0 or (plus and not can_promote(piece_type)):
                raise SfenError(
                    f"'{match[0]}' in rank {rank + 1} '{row}': expected a piece or a number of empty squares"
                )
            file -= 1
            if file >= 0:
                color = BLACK if letter.isupper() else WHITE
                board[9 * file + rank] = code_of(piece_type + (PROMOTION if plus else 0), color)
        if file != 0:
            raise SfenError(f"rank {rank + 1} '{row}' has {9 - file} squares: expected 9")
    return tuple(board)


def _parse_hands(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    hands = ([0] * 7, [0] * 7)
    if text == "-":
        return tuple(hands[0]), tuple(hands[1])
    if not re.fullmatch(r"([1-9][0-9]?)?[A-Za-z](([1-9][0-9]?)?[A-Za-z])*", text):
        raise SfenError(f"hands '{text}': expected - or pieces with counts such as 2P3p")
    for count, letter in re.findall(r"([0-9]*)([A-Za-z])", text):
        piece_type = LETTERS.find(letter.upper())
        if piece_type not in HAND_INDEX:
            raise SfenError(f"'{letter}' in hands '{text}': expected pieces of {LETTERS[1:8]}")
        # A letter may occur twice, as in "PP": counts add up.
        hands[0 if letter.isupper() else 1][HAND_INDEX[piece_type]] += int(count or 1)
    return tuple(hands[0]), tuple(hands[1])


def check(placement: Placement) -> None:
    """Raise SfenError if a position is impossible: too many pieces, nifu, or a king in check that can be captured.

    One king may be missing, as in mate problems.
    """
    counts: Counter[int] = Counter()
    kings: dict[int, list[int]] = {BLACK: [], WHITE: []}
    pawns: set[tuple[int, int]] = set()
    for square, code in enumerate(placement.board):
        if not code:
            continue
        piece_type, color = type_of(code), color_of(code)
        counts[unpromoted(piece_type)] += 1
        if piece_type == KING:
            kings[color].append(square)
        if not has_future(piece_type, color, square):
            raise SfenError(f"{COLOR_NAMES[color]}'s {NAMES[piece_type]} on {square_name(square)} can never move")
        if piece_type == PAWN:
            if (color, square // 9) in pawns:
                raise SfenError(f"{COLOR_NAMES[color]} has two pawns on file {square // 9 + 1} (nifu)")
            pawns.add((color, square // 9))
    for hand in placement.hands:
        for piece_type, count in zip(HAND_TYPES, hand, strict=True):
            counts[piece_type] += count
    for color, squares in kings.items():
        if len(squares) > 1:
            raise SfenError(f"{COLOR_NAMES[color]} has {len(squares)} kings: expected one")
    if not counts[KING]:
        raise SfenError("no king on the board: expected one for each side (mate problems: for one)")
    # Fewer pieces are allowed: handicap games and mate problems lack some.
    for piece_type, most in COUNTS.items():
        if counts[piece_type] > most:
            raise SfenError(f"{counts[piece_type]} {NAMES[piece_type]}s: expected at most {most}")
    waiting = opponent(placement.side)
    if placement.is_check(waiting):
        raise SfenError(f"{COLOR_NAMES[waiting]} is in check but {COLOR_NAMES[placement.side]} is to move")


def format_sfen(placement: Placement, *, number: bool = True) -> str:
    """Return a position as SFEN; `number` adds the number of the next move."""
    # A blank for each empty square, then runs of blanks become numbers.
    ranks = "/".join("".join(_piece(code) if code else " " for code in rank) for rank in ranks_of(placement.board))
    hands = "".join(
        f"{count if count > 1 else ''}{_piece(code_of(kind, color))}"
        for color in (BLACK, WHITE)
        for kind, count in held(placement.hands[color - 1])
    )
    board = re.sub(" +", lambda run: str(len(run[0])), ranks)
    fields = [board, "b" if placement.side == BLACK else "w", hands or "-"]
    if number:
        fields.append(str(placement.number))
    return " ".join(fields)


def _piece(code: int) -> str:
    piece_type = type_of(code)
    letter = LETTERS[unpromoted(piece_type)]
    if color_of(code) == WHITE:
        letter = letter.lower()
    return f"+{letter}" if piece_type > KING else letter
