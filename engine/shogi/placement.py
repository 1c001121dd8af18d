"""A position without history, and slow, plain rules for it.

Records are read with these rules, without loading or compiling kernels, and errors get their reason from here. Games
use the kernels' rules (`yomi.engine.shogi.game`).
"""

from dataclasses import dataclass

from yomi.engine.color import BLACK, COLOR_NAMES, opponent
from yomi.engine.shogi.moves import board_move, dropped_type, is_move, promotes, source_of, target_of
from yomi.engine.shogi.pieces import (
    HAND_INDEX,
    KING,
    NAMES,
    PAWN,
    PROMOTION,
    can_promote,
    code_of,
    color_of,
    has_future,
    in_zone,
    is_attacked,
    reaching,
    type_of,
    unpromoted,
)

DROP_PAWN_MATE = "a pawn may not be dropped to mate"  # the reason if `Placement.is_drop_pawn_mate`


@dataclass(frozen=True, slots=True)
class Placement:
    """A position without its history."""

    board: tuple[int, ...]  # piece codes of the 81 squares
    hands: tuple[tuple[int, ...], tuple[int, ...]]  # Black's and White's pieces in hand, by HAND_TYPES
    side: int
    number: int = 1  # number of the next move; 1 at the start of a game

    def turned(self) -> "Placement":
        """Return the position turned by 180 degrees with colors exchanged."""
        board = tuple(code and code_of(type_of(code), opponent(color_of(code))) for code in reversed(self.board))
        return Placement(board, (self.hands[1], self.hands[0]), opponent(self.side), self.number)

    def after(self, move: int) -> "Placement":
        """Return the position after a move for which `why_not` is None (drop-pawn mate included)."""
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
        """Return the square of a king, or None if there is none."""
        code = code_of(KING, color)
        return self.board.index(code) if code in self.board else None

    def is_check(self, color: int) -> bool:
        king = self.king_square(color)
        return king is not None and is_attacked(self.board, opponent(color), king)

    def why_not(self, move: int) -> str | None:
        """Return in a few words why a move is illegal, or None. Drop-pawn mate is not checked."""
        if not is_move(move):
            return f"{move} is no move"
        why = self._why_no_drop(move) if source_of(move) is None else self._why_no_board_move(move)
        if why is None and self.after(move).is_check(self.side):
            return "the king is in check" if self.is_check(self.side) else "the king would be in check"
        return why

    def is_drop_pawn_mate(self, move: int) -> bool:
        """Whether drop-pawn mate is the only reason why a move is illegal."""
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
        name = NAMES[piece_type]
        if not self.hands[self.side - 1][HAND_INDEX[piece_type]]:
            return f"{COLOR_NAMES[self.side]} has no {name} in hand"
        if self.board[target]:
            return f"{square_name(target)} is not empty"
        if not has_future(piece_type, self.side, target):
            return f"a {name} on {square_name(target)} could never move"
        file = self.board[target - target % 9 : target - target % 9 + 9]
        if piece_type == PAWN and code_of(PAWN, self.side) in file:
            return f"a second pawn on file {target // 9 + 1} (nifu)"
        return None

    def _why_no_board_move(self, move: int) -> str | None:
        source, target = source_of(move) or 0, target_of(move)
        code, taken = self.board[source], self.board[target]
        if not code or color_of(code) != self.side:
            return f"{COLOR_NAMES[self.side]} has no piece on {square_name(source)}"
        piece_type = type_of(code)
        if taken and color_of(taken) == self.side:
            return f"{COLOR_NAMES[self.side]}'s own piece stands on {square_name(target)}"
        if source not in reaching(self.board, self.side, piece_type, target):
            return f"the piece on {square_name(source)} does not move there"
        if promotes(move):
            if not can_promote(piece_type):
                return f"the piece on {square_name(source)} does not promote"
            if not (in_zone(source, self.side) or in_zone(target, self.side)):
                return "no promotion outside the last three ranks"
        elif not has_future(piece_type, self.side, target):
            return f"the piece must promote on {square_name(target)}"
        return "a king cannot be taken" if type_of(taken) == KING else None


def square_name(square: int) -> str:
    """Return a square in USI: `7g`."""
    return f"{square // 9 + 1}{'abcdefghi'[square % 9]}"
