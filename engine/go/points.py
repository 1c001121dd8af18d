"""Boards of Go: points as integers, GTP vertices, SGF letters, policy indices, and handicap stones.

GTP: columns A to Z without I, rows from the bottom, `pass`. SGF: two letters for column and row from the top left.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from yomi.engine.color import BLACK, COLORS, WHITE
from yomi.errors import Error, LineError
from yomi.language import is_japanese, tr
from yomi.nets.metadata import BoardSize
from yomi.settings import OptionError

if TYPE_CHECKING:
    from yomi.engine.options import Options

# Numbers of yomi.native.go.board, which takes half a second to import because of numba.
MIN_SIZE, MAX_SIZE, PASS = 2, 19, 423
COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
HANDICAP_KOMI = 0.5  # default komi of a handicap game
T = TypeVar("T")


class VertexError(LineError, ValueError):
    """A text is not a vertex of the board, or not a color."""


class SetupError(OptionError):
    """A board size, a komi or a set-up position is impossible."""


class HandicapError(Error, ValueError):
    """The handicap stones are not allowed. The message is one line."""


@dataclass(frozen=True)
class Board:
    """The shape of a board. A move is a point or PASS; (x, y) is column and row from the top left corner."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"

    @property
    def area(self) -> int:
        return self.width * self.height

    @property
    def is_square(self) -> bool:
        return self.width == self.height

    @property
    def size(self) -> BoardSize:
        """The board size in the form that networks use."""
        return self.width if self.is_square else (self.width, self.height)

    @property
    def side(self) -> int:
        """N for an N×N board. Data sets, learning and Go servers have square boards only.

        Raises:
            SetupError: the board is not square.
        """
        if not self.is_square:
            wanted = f"{MIN_SIZE}x{MIN_SIZE} to {MAX_SIZE}x{MAX_SIZE}"
            raise SetupError(f"board {self} is not square: expected {wanted}")
        return self.width

    @functools.cached_property
    def points(self) -> tuple[int, ...]:
        """All points row by row from the top left corner: the order of planes, policy and ownership."""
        return tuple(self.point(x, y) for y in range(self.height) for x in range(self.width))

    def point(self, x: int, y: int) -> int:
        # the numbers of the kernels: a border column on the left also borders the row above
        return (y + 1) * (self.width + 1) + x + 1

    def coordinates(self, point: int) -> tuple[int, int]:
        """Return (x, y) of a point."""
        y, x = divmod(point, self.width + 1)
        return x - 1, y - 1

    def neighbors(self, point: int) -> tuple[int, int, int, int]:
        """Return the four points beside a point. Some may be off the board."""
        return point - 1, point + 1, point - self.width - 1, point + self.width + 1

    def components(self, points: Iterable[int]) -> list[set[int]]:
        """Return the connected parts of a set of points."""
        left, found = set(points), []
        while left:
            frontier = [left.pop()]
            found.append(part := set(frontier))
            while frontier:
                more = left.intersection(self.neighbors(frontier.pop()))
                left -= more
                part |= more
                frontier += more
        return found

    def rows(self, values: Sequence[T]) -> list[Sequence[T]]:
        """Split values, which are in the order of `points`, into rows."""
        return [values[first : first + self.width] for first in range(0, self.area, self.width)]

    def index(self, move: int) -> int:
        """Return the index of a move in a policy: y * width + x, or `area` for a pass."""
        x, y = self.coordinates(move)
        return self.area if move == PASS else y * self.width + x

    def move_at(self, index: int) -> int:
        """Return the move with an index in a policy."""
        return PASS if index == self.area else self.points[index]

    def vertex(self, move: int) -> str:
        """Return a move as GTP text, such as "D4", or "pass"."""
        if move == PASS:
            return "pass"
        x, y = self.coordinates(move)
        return f"{COLUMNS[x]}{self.height - y}"

    def parse_vertex(self, text: str) -> int:
        """Parse a GTP vertex or "pass" in any case, or raise VertexError."""
        name = text.strip().upper()
        if name == "PASS":
            return PASS
        x = COLUMNS[: self.width].find(name[:1]) if name else -1
        number = name[1:]
        is_number = number.isascii() and number.isdigit() and len(number) <= 2
        if x < 0 or not is_number or not 1 <= int(number) <= self.height:
            last = f"{COLUMNS[self.width - 1]}{self.height}"
            raise VertexError(tr("invalid vertex '{text}': expected A1 to {last} or pass", text=text, last=last))
        return self.point(x, self.height - int(number))

    def letters(self, point: int) -> str:
        """Return a point in SGF's form, such as "cd"."""
        return "".join(chr(ord("a") + number) for number in self.coordinates(point))

    def parse_letters(self, text: str) -> tuple[int, int]:
        """Return (x, y) of a point in SGF's form, or raise ValueError."""
        if len(text) != 2:
            raise ValueError(f"point '{text}' found, expected two letters")
        x, y = (ord(letter) - ord("a") for letter in text)
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise ValueError(f"point '{text}' found, expected a point of a {self} board")
        return x, y


@functools.cache
def square(side: int) -> Board:
    return Board(side, side)


STANDARD = square(19)


def board_of(options: Options) -> Board:
    return Board(options.size, options.height or options.size)


def parse_color(text: str) -> int:
    """Parse "b", "black", "w" or "white" in any case, or raise VertexError."""
    color = COLORS.get(text.strip().lower())
    if color is None:
        raise VertexError(f"invalid color '{text}': expected black or white")
    return color


def shown_color(color: int) -> str:
    """Return the name of a color in the user's language."""
    return {BLACK: "黒", WHITE: "白"}[color] if is_japanese() else format_color(color)


def format_color(color: int) -> str:
    return "B" if color == BLACK else "W"


# -- handicap stones ---------------------------------------------------------------------------------------------------


def star_lines(side: int) -> tuple[int, int, int]:
    """Return the first, last and middle line of the star points, counted from 0."""
    near = 3 if side >= 13 else 2
    return near, side - 1 - near, side // 2


def max_fixed_handicap(board: Board) -> int:
    """Return the maximum fixed handicap: 9; 4 on boards of even size and 7x7; 0 below 7x7 (GTP 2, section 4.1.1)."""
    sides = board.width, board.height
    if min(sides) < 7:
        return 0
    return 9 if all(side % 2 == 1 and side > 7 for side in sides) else 4


def fixed_handicap(stones: int, board: Board) -> list[int]:
    """Return the points of a fixed handicap in GTP's order (GTP 2, section 4.1.1), or raise HandicapError."""
    most = max_fixed_handicap(board)
    if most == 0:
        raise HandicapError(tr("no fixed handicap on {board}: expected a board of 7x7 or larger", board=board))
    if not 2 <= stones <= most:
        text = {"stones": stones, "most": most, "board": board}
        raise HandicapError(tr("invalid number of stones {stones}: expected 2 to {most} on {board}", **text))
    left, right, middle = star_lines(board.width)
    top, bottom, center = star_lines(board.height)
    chosen = [(left, bottom), (right, top), (left, top), (right, bottom)][:stones]
    if stones > 4:
        chosen += [(left, center), (right, center), (middle, bottom), (middle, top)][: stones // 2 * 2 - 4]
        chosen += [(middle, center)] * (stones % 2)
    return [board.point(x, y) for x, y in chosen]


def free_handicap(stones: int, board: Board) -> list[int]:
    """Return good points for 2 to area - 1 handicap stones.

    If there is a fixed handicap of this number, its points are used. Otherwise stones are added to the largest fixed
    handicap: off the two lowest lines, then far from other stones, then near the center.

    Raises:
        HandicapError: fewer than 2 stones, or no empty point would be left.
    """
    _check_count(stones, board)
    most = min(stones, max_fixed_handicap(board))
    chosen = fixed_handicap(most, board) if most else []
    free = [point for point in board.points if point not in chosen]
    while len(chosen) < stones:
        best = max(free, key=lambda point: _appeal(point, chosen, board))
        chosen.append(best)
        free.remove(best)
    return chosen


def _appeal(point: int, chosen: list[int], board: Board) -> tuple[int, float, float]:
    """Return a sort key for free placement: high line, then distance from other stones, then nearness to the center."""
    x, y = board.coordinates(point)
    line = 1 + min(x, y, board.width - 1 - x, board.height - 1 - y)
    off_center = (x - (board.width - 1) / 2) ** 2 + (y - (board.height - 1) / 2) ** 2
    others = map(board.coordinates, chosen)
    distance = min(((x - column) ** 2 + (y - row) ** 2 for column, row in others), default=0)
    wanted_line = min(3, (min(board.width, board.height) + 1) // 2)
    return min(line, wanted_line), float(distance), -off_center


def _check_count(stones: int, board: Board) -> None:
    if not 2 <= stones < board.area:
        raise HandicapError(f"invalid number of stones {stones}: expected 2 to {board.area - 1} on {board}")


def check_free_handicap(points: Sequence[int], board: Board) -> None:
    """Raise HandicapError unless a free handicap has 2 to area - 1 different points."""
    _check_count(len(points), board)
    if PASS in points:
        raise HandicapError("a handicap stone cannot be a pass")
    if len(set(points)) < len(points):
        raise HandicapError("two handicap stones on the same vertex")


def handicap_stones(setup: Iterable[tuple[int, int]], moves: Sequence[tuple[int, int]]) -> int:
    """Return the number of handicap stones by KataGo's definition, for White's compensation.

    Black's stones in the initial position count, and Black's moves before the first White stone. A single White pass
    does not end these moves. If two White moves in a row end them, they were a set-up and do not count.

    The result is 0 if the initial position has a White stone, or if there is only one Black stone.

    Args:
        setup: (color, point) of the initial position.
        moves: (color, move) since then.
    """
    black = 0
    for color, _ in setup:
        if color == WHITE:
            return 0
        black += 1
    run = 0
    for i, (color, move) in enumerate(moves):
        if color == BLACK:
            run += move != PASS
        elif i + 1 < len(moves) and moves[i + 1][0] == WHITE:
            run = 0
            break
        elif move != PASS:
            break
    return black + run if black + run >= 2 else 0
