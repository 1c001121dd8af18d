"""Slow twin of what sparse networks see of shogi: rows by their meaning, from a list of 81 pieces."""

from __future__ import annotations

from tests.naive.shogi_rules import HAND, KING, SlowShogi, color_of

HAND_MAX = (8, 4, 4, 4, 4, 2, 2)
WAYS = [(0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)]
"""(files, ranks) of dlshogi's directions, of which knights have two more."""
FIRST_HAND = 28 * 81 * 4
FIRST_DEED = 27 * 81
FIRST_ORIGIN = FIRST_DEED + 21 * 15 * 4 * 2
FIRST_DROPPED = FIRST_ORIGIN + 14 * 81 * 4


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


class SlowRows:
    """A position's rows, and those of its moves."""

    def __init__(self, position: SlowShogi) -> None:
        """Look at a position."""
        self.position = position
        self.us, self.them = position.side, 3 - position.side
        king = self._turned(position.board.index(KING + 16 * (self.us - 1)))
        self._is_mirrored = king // 9 > 4

    def _turned(self, square: int) -> int:
        return square if self.us == 1 else 80 - square

    def seen(self, square: int) -> int:
        """Return where a square is seen."""
        square = self._turned(square)
        return (8 - square // 9) * 9 + square % 9 if self._is_mirrored else square

    def attackers(self, color: int, square: int) -> int:
        """Return how many pieces of a color attack a square."""
        board = self.position.board
        return sum(color_of(code) == color and square in self.position.reach(s) for s, code in enumerate(board))

    def _flags(self, color: int, square: int) -> int:
        """Return 1 if a piece of a color is attacked, and 2 more if it is defended."""
        return (self.attackers(3 - color, square) > 0) + 2 * (self.attackers(color, square) > 0)

    def active(self) -> set[int]:
        """Return the position's rows."""
        rows = set()
        for square, code in enumerate(self.position.board):
            if code:
                color = color_of(code)
                piece = 14 * (color != self.us) + code % 16 - 1
                rows.add((piece * 81 + self.seen(square)) * 4 + self._flags(color, square))
        for side, color in enumerate((self.us, self.them)):
            for place, most in enumerate(HAND_MAX):
                first = FIRST_HAND + side * 28 + sum(HAND_MAX[:place])
                rows |= set(range(first, first + min(most, self.position.hands[color - 1][place])))
        return rows

    def of_move(self, move: int) -> tuple[int, int, int]:
        """Return a legal move's rows."""
        board = self.position.board
        to, origin, promotes = move & 127, move >> 7 & 127, move >> 14
        attacked, others = self.attackers(self.them, to) > 0, self.attackers(self.us, to)
        if origin > 80:
            kind, captured, place = origin - 80, 0, HAND.index(origin - 80)
            way, mover, source = 20 + kind - 1, 14 + place, FIRST_DROPPED + place
            defended = others > 0
        else:
            kind, captured = board[origin] % 16, board[to] % 16
            way = 10 * promotes + self._way(origin, to)
            mover = kind - 1
            source = FIRST_ORIGIN + (mover * 81 + self.seen(origin)) * 4 + self._flags(self.us, origin)
            defended = others > 1
        deed = mover * 15 + captured
        deed = (deed * 4 + attacked + 2 * defended) * 2 + self._checks(move, kind + 8 * promotes, to)
        return way * 81 + self.seen(to), FIRST_DEED + deed, source

    def _way(self, origin: int, to: int) -> int:
        origin, to = self.seen(origin), self.seen(to)
        files, ranks = to // 9 - origin // 9, to % 9 - origin % 9
        if abs(files) == 1 and ranks == -2:
            return 8 if files > 0 else 9
        return WAYS.index((_sign(files), _sign(ranks)))

    def _checks(self, move: int, kind: int, to: int) -> bool:
        """Whether another piece attacks the king then, or this one does, were its own square still occupied."""
        king = self.position.board.index(KING + 16 * (self.them - 1))
        placed = self.position.board.copy()
        placed[to] = kind + 16 * (self.us - 1)
        if king in SlowShogi(placed, self.position.hands, self.us).reach(to):
            return True
        after = self.position.after(move)
        return any(
            color_of(code) == self.us and square != to and king in after.reach(square)
            for square, code in enumerate(after.board)
        )
