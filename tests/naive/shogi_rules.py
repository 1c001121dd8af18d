"""Slow twin of shogi's rules: a list of 81 piece codes, every question answered by trying the move.

Written from the rules of the game, not from the kernels. Squares, pieces and moves have yomi.native.shogi's numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING = range(1, 9)
HORSE, DRAGON = 13, 14
HAND = (PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK)

# (files, ranks) for Black, who moves towards rank 0
ORTHOGONAL = [(0, -1), (0, 1), (1, 0), (-1, 0)]
DIAGONAL = [(1, -1), (-1, -1), (1, 1), (-1, 1)]
LIKE_GOLD = [*ORTHOGONAL, (1, -1), (-1, -1)]
STEPS = {
    PAWN: [(0, -1)],
    KNIGHT: [(1, -2), (-1, -2)],
    SILVER: [(0, -1), *DIAGONAL],
    GOLD: LIKE_GOLD,
    KING: ORTHOGONAL + DIAGONAL,
    PAWN + 8: LIKE_GOLD,
    LANCE + 8: LIKE_GOLD,
    KNIGHT + 8: LIKE_GOLD,
    SILVER + 8: LIKE_GOLD,
    HORSE: ORTHOGONAL,
    DRAGON: DIAGONAL,
}
SLIDES = {LANCE: [(0, -1)], BISHOP: DIAGONAL, ROOK: ORTHOGONAL, HORSE: DIAGONAL, DRAGON: ORTHOGONAL}


def color_of(code: int) -> int:
    """Return 1 for a Black piece, 2 for a White one, 0 for an empty square."""
    return 0 if code == 0 else 1 + (code >= 16)


def points_of(code: int) -> int:
    """Return what a piece counts in a declaration: five for rook and bishop."""
    return 5 if code % 16 in (BISHOP, ROOK, HORSE, DRAGON) else 1


def ranks_to_go(color: int, square: int) -> int:
    """Return how many ranks lie before a square, as a color sees it."""
    return square % 9 if color == 1 else 8 - square % 9


@functools.cache
def lines_of(code: int, origin: int) -> list[list[int]]:
    """Return the squares that a piece may attack from `origin`, line by line, the nearest first."""
    sign = 1 if code < 16 else -1
    lines = []
    for steps, furthest in ((STEPS, 1), (SLIDES, 8)):
        for files, ranks in steps.get(code % 16, []):
            line = []
            for distance in range(1, furthest + 1):
                file, rank = origin // 9 + sign * files * distance, origin % 9 + sign * ranks * distance
                if not (0 <= file < 9 and 0 <= rank < 9):
                    break
                line.append(file * 9 + rank)
            lines.append(line)
    return lines


@dataclass
class SlowShogi:
    """A position; moves make a new one."""

    board: list[int]
    hands: list[list[int]]
    """Counts by color - 1 and by place in HAND."""
    side: int

    def reach(self, origin: int) -> Iterator[int]:
        """Yield the squares that the piece on `origin` attacks."""
        for line in lines_of(self.board[origin], origin):
            for square in line:
                yield square
                if self.board[square]:
                    break

    def in_check(self, color: int) -> bool:
        """Whether the king of `color` is attacked."""
        king = self.board.index(KING + 16 * (color - 1))
        enemies = [s for s, code in enumerate(self.board) if code and (code < 16) == (color == 2)]
        return any(king in self.reach(s) for s in enemies)

    def points_in_hand(self, color: int) -> int:
        """Return the points of a hand."""
        return sum(count * points_of(piece) for piece, count in zip(HAND, self.hands[color - 1], strict=True))

    def points_given(self) -> int:
        """Return the points of the pieces that are not in the game, out of 56 with the kings."""
        on_board = sum(points_of(code) for code in self.board if code)
        return 56 - on_board - self.points_in_hand(1) - self.points_in_hand(2)

    def can_declare(self, black: int, white: int) -> bool:
        """Whether the side to move may declare a win where Black and White need so many points."""
        king = KING + 16 * (self.side - 1)
        far = [
            code for s, code in enumerate(self.board) if color_of(code) == self.side and ranks_to_go(self.side, s) < 3
        ]
        if self.in_check(self.side) or king not in far or len(far) < 11:
            return False
        points = sum(points_of(code) for code in far if code != king) + self.points_in_hand(self.side)
        return points >= (black if self.side == 1 else white)

    def after(self, move: int) -> SlowShogi:
        """Return the position after a move, legal or not."""
        to, origin, promotes = move & 127, move >> 7 & 127, move >> 14
        board, hands = self.board.copy(), [hand.copy() for hand in self.hands]
        if origin > 80:
            hands[self.side - 1][HAND.index(origin - 80)] -= 1
            board[to] = origin - 80 + 16 * (self.side - 1)
        else:
            if board[to]:
                kind = board[to] % 16
                hands[self.side - 1][HAND.index(kind - 8 if kind > 8 else kind)] += 1
            board[to] = board[origin] + 8 * promotes
            board[origin] = 0
        return SlowShogi(board, hands, 3 - self.side)

    def attempts(self) -> Iterator[int]:
        """Yield the moves that the pieces allow, whatever they do to the own king."""
        for origin, code in enumerate(self.board):
            if color_of(code) != self.side:
                continue
            kind = code % 16
            for to in self.reach(origin):
                if color_of(self.board[to]) == self.side:
                    continue
                near = min(ranks_to_go(self.side, origin), ranks_to_go(self.side, to))
                if kind < GOLD and near < 3:
                    yield to | origin << 7 | 1 << 14
                if ranks_to_go(self.side, to) >= {PAWN: 1, LANCE: 1, KNIGHT: 2}.get(kind, 0):
                    yield to | origin << 7
        for kind, count in zip(HAND, self.hands[self.side - 1], strict=True):
            for to in range(81) if count else ():
                far_enough = ranks_to_go(self.side, to) >= {PAWN: 1, LANCE: 1, KNIGHT: 2}.get(kind, 0)
                if self.board[to] == 0 and far_enough and not (kind == PAWN and self.has_pawn(to // 9)):
                    yield to | (80 + kind) << 7

    def has_pawn(self, file: int) -> bool:
        """Whether the side to move has an unpromoted pawn on a file."""
        return PAWN + 16 * (self.side - 1) in self.board[file * 9 : file * 9 + 9]

    def legal_moves(self) -> list[int]:
        """Return the legal moves: those that leave no king to be taken and drop no pawn that mates."""
        found = []
        for move in self.attempts():
            then = self.after(move)
            if then.in_check(self.side):
                continue
            drops_pawn = move >> 7 & 127 == 80 + PAWN
            if drops_pawn and then.in_check(then.side) and not then.legal_moves():
                continue
            found.append(move)
        return found


def repetition(line: Sequence[SlowShogi], root: int) -> str:
    """Return how the last position of a line ends a search, for the side to move: a letter of "DWLSI", or "." if not.

    DRAW, WIN, LOSE: a repetition; SUPERIOR, INFERIOR: the same board with more or fewer pieces in the hand. `root` is
    the place of the root: positions up to there count only with the fourth occurrence. Before the line it is -1.
    """
    now, occurrences = line[-1], 1
    for i in range(len(line) - 5, -1, -2):
        if line[i].board != now.board:
            continue
        mine, old = (position.hands[now.side - 1] for position in (now, line[i]))
        if line[i].hands == now.hands:
            occurrences += 1
            if i > root or occurrences == 4:
                checks = [position.in_check(position.side) for position in line[i + 1 :]]
                return "L" if all(checks[::2]) else "W" if all(checks[1::2]) else "D"
        elif i > root and all(map(int.__ge__, mine, old)):
            return "S"
        elif i > root and all(map(int.__le__, mine, old)):
            return "I"
    return "."
