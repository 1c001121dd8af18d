"""Slow twins of the rollout kernels: a board of nested lists, patterns matched symbol by symbol."""

from collections.abc import Iterator

import numpy as np

from yomi.native.go.board import BLACK, BORDER, EMPTY, WHITE

Square = tuple[int, int]
"""A point as (row, column)."""


class SlowBoard:
    """Stones on a square board; every question is answered by flood fill."""

    def __init__(self, pos: np.void) -> None:
        """Take the stones of a position record."""
        self.size = int(pos["size"])
        self.stride = int(pos["stride"])
        self.rows = [[int(pos["color"][self.point((r, c))]) for c in range(self.size)] for r in range(self.size)]

    def point(self, square: Square) -> int:
        """Return the point of the bordered board."""
        return (square[0] + 1) * self.stride + square[1] + 1

    def square(self, point: int) -> Square:
        """Return the square of a point."""
        return point // self.stride - 1, point % self.stride - 1

    def at(self, square: Square) -> int:
        """Return the color of a square, BORDER outside the board."""
        r, c = square
        return self.rows[r][c] if 0 <= r < self.size and 0 <= c < self.size else BORDER

    def squares(self) -> Iterator[Square]:
        """Yield all squares."""
        return ((r, c) for r in range(self.size) for c in range(self.size))

    def neighbors(self, square: Square) -> list[Square]:
        """Return the two to four neighbors on the board."""
        r, c = square
        around = [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]
        return [s for s in around if self.at(s) != BORDER]

    def chain(self, square: Square) -> set[Square]:
        """Return the chain of a stone."""
        color, found, todo = self.at(square), {square}, [square]
        while todo:
            for near in self.neighbors(todo.pop()):
                if self.at(near) == color and near not in found:
                    found.add(near)
                    todo.append(near)
        return found

    def liberties(self, square: Square) -> set[Square]:
        """Return the liberties of a stone's chain."""
        return {near for stone in self.chain(square) for near in self.neighbors(stone) if self.at(near) == EMPTY}

    def play(self, square: Square, color: int) -> int:
        """Put a stone on an empty square and remove what it captures, not its own chain; return the stones captured."""
        assert self.at(square) == EMPTY
        self.rows[square[0]][square[1]] = color
        captured = 0
        for near in self.neighbors(square):
            if self.at(near) == BLACK + WHITE - color and not self.liberties(near):
                for r, c in self.chain(near):
                    self.rows[r][c] = EMPTY
                    captured += 1
        return captured

    def is_own_eye(self, square: Square, color: int) -> bool:
        """Whether a square is an eye by the rule of rollouts."""
        near = self.neighbors(square)
        if any(self.at(s) != color for s in near):
            return False
        r, c = square
        corners = [(r - 1, c - 1), (r - 1, c + 1), (r + 1, c - 1), (r + 1, c + 1)]
        enemies = sum(self.at(s) == BLACK + WHITE - color for s in corners)
        return enemies <= 1 if len(near) == 4 else enemies == 0


def _turn(rows: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("".join(row[i] for row in reversed(rows)) for i in range(len(rows)))


def _mirror(rows: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(row[::-1] for row in rows)


def _fits(symbol: str, color: int, x: int) -> bool:
    other = BLACK + WHITE - x
    match symbol:
        case "X":
            return color == x
        case "O":
            return color == other
        case ".":
            return color == EMPTY
        case "#":
            return color == BORDER
        case "x":
            return color != x
        case "o":
            return color != other
    return symbol == "?"


def matches(board: SlowBoard, square: Square, mover: int, drawing: tuple[str, str, str, str]) -> bool:
    """Whether the neighborhood of an empty square looks like a drawing of yomi.native.go.tactics in some
    orientation.
    """
    rows: tuple[str, ...] = drawing[:3]
    roles = (mover, BLACK + WHITE - mover) if drawing[3] == "both" else (mover,)
    for _ in range(2):
        for _ in range(4):
            for x in roles:
                if all(
                    _fits(rows[r][c], board.at((square[0] + r - 1, square[1] + c - 1)), x)
                    for r in range(3)
                    for c in range(3)
                ):
                    return True
            rows = _turn(rows)
        rows = _mirror(rows)
    return False
