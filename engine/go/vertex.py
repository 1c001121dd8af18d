"""Points as integers, GTP vertices and SGF letters; colors as text.

GTP: columns A to T without I, rows from the bottom, `pass`. SGF: two letters for column and row from the top left.
"""

import functools

from yomi.engine.color import BLACK, COLORS
from yomi.native.go.board import PASS
from yomi.nets.errors import LineError

COLUMNS = "ABCDEFGHJKLMNOPQRST"


class VertexError(LineError, ValueError):
    """Text that is not a vertex of the board, or not a color."""


def point_at(column: int, row: int, size: int) -> int:
    """Return the point at (column, row) from the top left corner."""
    return (row + 1) * (size + 1) + column + 1


def column_and_row(point: int, size: int) -> tuple[int, int]:
    """Return (column, row) of a point, from the top left corner."""
    row, column = divmod(point, size + 1)
    return column - 1, row - 1


@functools.cache
def board_points(size: int) -> tuple[int, ...]:
    """Return all points row by row from the top left corner: the order of planes, policy and ownership."""
    return tuple(point_at(column, row, size) for row in range(size) for column in range(size))


def format_vertex(move: int, size: int) -> str:
    """Return a move as GTP text, such as "D4", or "pass"."""
    if move == PASS:
        return "pass"
    column, row = column_and_row(move, size)
    return f"{COLUMNS[column]}{size - row}"


def parse_vertex(text: str, size: int) -> int:
    """Parse a GTP vertex or "pass" in any case, or raise VertexError."""
    name = text.strip().upper()
    if name == "PASS":
        return PASS
    column = COLUMNS[:size].find(name[:1]) if name else -1
    number = name[1:]
    if column < 0 or not (number.isascii() and number.isdigit()) or len(number) > 2 or not 1 <= int(number) <= size:
        raise VertexError(f"invalid vertex '{text}': expected A1 to {COLUMNS[size - 1]}{size} or pass")
    return point_at(column, size - int(number), size)


@functools.cache
def sgf_letters(point: int, size: int) -> str:
    """Return a point in SGF's form, such as "cd"."""
    column, row = column_and_row(point, size)
    return chr(ord("a") + column) + chr(ord("a") + row)


def parse_sgf_letters(text: str, size: int) -> tuple[int, int]:
    """Return (column, row) of a point in SGF's form, from the top left corner, or raise ValueError."""
    if len(text) != 2:
        raise ValueError(f"point '{text}' found, expected two letters")
    column, row = (ord(letter) - ord("a") for letter in text)
    if not (0 <= column < size and 0 <= row < size):
        raise ValueError(f"point '{text}' found, expected a point of a {size}x{size} board")
    return column, row


def parse_color(text: str) -> int:
    """Parse "b", "black", "w" or "white" in any case, or raise VertexError."""
    color = COLORS.get(text.strip().lower())
    if color is None:
        raise VertexError(f"invalid color '{text}': expected black or white")
    return color


def format_color(color: int) -> str:
    return "B" if color == BLACK else "W"
