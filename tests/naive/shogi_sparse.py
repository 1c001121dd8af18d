"""Slow twin of what sparse networks see of shogi: rows by their meaning, from a list of 81 pieces."""

from tests.naive.shogi_rules import HAND, KING, SlowShogi, color_of

HAND_MAX = (8, 4, 4, 4, 4, 2, 2)
WAYS = [(0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)]
"""(files, ranks) of dlshogi's directions, of which knights have two more."""
COSTS = ((1,), (2, 3), (4,), (7, 9, 10, 11, 12), (5,), (6,), (13, 14), (8,))
"""Kinds, cheap ones first."""
TABLES = (27 * 81, 21 * 15 * 6 * 3 * 2, 14 * 81 * 6 * 2 + 7, 21 * 81, 21 * 81 * 2)
FIRST_HAND = 28 * 81 * 6
FIRST_BESIDE = FIRST_HAND + 2 * 28
FIRST_NEAR = FIRST_BESIDE + 2 * 8 * 175
FIRST = [sum(TABLES[:part]) for part in range(5)]
FIRST_DROPPED = FIRST[3] - 7


def cost(kind: int) -> int:
    """Return how dear a piece is."""
    return next(place for place, kinds in enumerate(COSTS) if kind in kinds)


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

    def attackers(self, color: int, square: int) -> list[int]:
        """Return the kinds of the pieces of a color that attack a square."""
        board = self.position.board
        return [c % 16 for s, c in enumerate(board) if color_of(c) == color and square in self.position.reach(s)]

    def _attacked(self, color: int, kind: int, square: int) -> int:
        """Return 2 if a piece of a color is attacked on a square, 4 if by a cheaper one."""
        attackers = self.attackers(3 - color, square)
        return 2 * (len(attackers) > 0) + 2 * any(cost(each) < cost(kind) for each in attackers)

    def _flags(self, color: int, square: int) -> int:
        """Return how a piece of a color is attacked, and 1 more if it is defended."""
        kind = self.position.board[square] % 16
        return self._attacked(color, kind, square) + (len(self.attackers(color, square)) > 0)

    def active(self) -> set[int]:
        """Return the position's rows."""
        rows = set()
        for square, code in enumerate(self.position.board):
            if code:
                color = color_of(code)
                piece = 14 * (color != self.us) + code % 16 - 1
                rows.add((piece * 81 + self.seen(square)) * 6 + self._flags(color, square))
                if code % 16 != KING:
                    rows |= self._near(piece, self.seen(square))
        for side, color in enumerate((self.us, self.them)):
            for place, most in enumerate(HAND_MAX):
                first = FIRST_HAND + side * 28 + sum(HAND_MAX[:place])
                rows |= set(range(first, first + min(most, self.position.hands[color - 1][place])))
            rows |= {FIRST_BESIDE + side * 8 * 175 + row for row in self._beside(color)}
        return rows

    def _near(self, piece: int, seen: int) -> set[int]:
        """Return the rows of a piece that is near a king, or both."""
        rows = set()
        for number, color in enumerate((self.us, self.them)):
            king = self.seen(self.position.board.index(KING + 16 * (color - 1)))
            files, ranks = seen // 9 - king // 9, seen % 9 - king % 9
            if max(abs(files), abs(ranks)) < 4:
                rows.add(FIRST_NEAR + (number * 28 + piece) * 49 + (files + 3) * 7 + ranks + 3)
        return rows

    def _beside(self, color: int) -> list[int]:
        """Return the rows of the squares beside a king, those of the first side's."""
        king = self.seen(self.position.board.index(KING + 16 * (color - 1)))
        steps = [(files, ranks) for files in (-1, 0, 1) for ranks in (-1, 0, 1) if files or ranks]
        rows = []
        for place, (files, ranks) in enumerate(steps):
            state = 174
            if 0 <= king // 9 + files < 9 and 0 <= king % 9 + ranks < 9:
                square = next(each for each in range(81) if self.seen(each) == king + 9 * files + ranks)
                code = self.position.board[square]
                what = code % 16 + 14 * (code > 0 and color_of(code) != color)
                others = [kind for kind in self.attackers(color, square) if kind != KING]
                state = what * 6 + 2 * min(2, len(self.attackers(3 - color, square))) + (len(others) > 0)
            rows.append(place * 175 + state)
        return rows

    def of_move(self, move: int) -> tuple[int, ...]:
        """Return a legal move's rows."""
        board = self.position.board
        to, origin, promotes = move & 127, move >> 7 & 127, move >> 14
        others = len(self.attackers(self.us, to))
        if origin > 80:
            kind, captured, place = origin - 80, 0, HAND.index(origin - 80)
            way, mover, source = 20 + kind - 1, 14 + place, FIRST_DROPPED + place
            defended = others > 0
        else:
            kind, captured = board[origin] % 16, board[to] % 16
            way = 10 * promotes + self._way(origin, to)
            mover = kind - 1
            place = (mover * 81 + self.seen(origin)) * 6 + self._flags(self.us, origin)
            source = FIRST[2] + place * 2 + any(map(self._is_held, self.position.reach(origin)))
            defended = others > 1
            kind += 8 * promotes
        reached = self._reached(kind, to)
        threats = [
            square for square in reached if color_of(board[square]) == self.them and self._threatens(kind, square)
        ]
        guards = any(self._is_in_danger(square) for square in reached)
        deed = ((mover * 15 + captured) * 6 + self._attacked(self.us, kind, to) + defended) * 3 + min(2, len(threats))
        return (
            way * 81 + self.seen(to),
            FIRST[1] + deed * 2 + self._checks(move, kind, to),
            source,
            FIRST[3] + mover * 81 + self._offset(self.them, to),
            FIRST[4] + (mover * 81 + self._offset(self.us, to)) * 2 + guards,
        )

    def _reached(self, kind: int, to: int) -> list[int]:
        """Return what a piece would attack on a square, with its own old square still occupied."""
        placed = self.position.board.copy()
        placed[to] = kind + 16 * (self.us - 1)
        return list(SlowShogi(placed, self.position.hands, self.us).reach(to))

    def _threatens(self, kind: int, square: int) -> bool:
        """Whether a piece that attacks another one threatens it."""
        is_dearer = cost(self.position.board[square] % 16) > cost(kind)
        return is_dearer or not self.attackers(self.them, square)

    def _is_in_danger(self, square: int) -> bool:
        """Whether a piece of the side to move stands there, attacked and not defended."""
        is_ours = color_of(self.position.board[square]) == self.us
        return is_ours and bool(self.attackers(self.them, square)) and not self.attackers(self.us, square)

    def _is_held(self, square: int) -> bool:
        """Whether a piece of the side to move stands there, attacked and defended by one piece alone."""
        is_ours = color_of(self.position.board[square]) == self.us
        return is_ours and bool(self.attackers(self.them, square)) and len(self.attackers(self.us, square)) == 1

    def _offset(self, color: int, to: int) -> int:
        """Return where a square lies from a king, told apart up to four files and ranks."""
        king, to = self.seen(self.position.board.index(KING + 16 * (color - 1))), self.seen(to)
        files, ranks = (max(-4, min(4, distance)) for distance in (to // 9 - king // 9, to % 9 - king % 9))
        return (files + 4) * 9 + ranks + 4

    def _way(self, origin: int, to: int) -> int:
        origin, to = self.seen(origin), self.seen(to)
        files, ranks = to // 9 - origin // 9, to % 9 - origin % 9
        if abs(files) == 1 and ranks == -2:
            return 8 if files > 0 else 9
        return WAYS.index((_sign(files), _sign(ranks)))

    def _checks(self, move: int, kind: int, to: int) -> bool:
        """Whether another piece attacks the king then, or this one does, were its own square still occupied."""
        king = self.position.board.index(KING + 16 * (self.them - 1))
        if king in self._reached(kind, to):
            return True
        after = self.position.after(move)
        return any(
            color_of(code) == self.us and square != to and king in after.reach(square)
            for square, code in enumerate(after.board)
        )
