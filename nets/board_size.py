"""Board sizes: N for an N×N board, (columns, rows) for another board."""

from __future__ import annotations

from typing import TypeAlias

BoardSize: TypeAlias = int | tuple[int, int]


def sides(size: BoardSize) -> tuple[int, int]:
    """Return columns and rows."""
    return (size, size) if isinstance(size, int) else size


def area_of(size: BoardSize) -> int:
    columns, rows = sides(size)
    return columns * rows


def size_name(size: BoardSize) -> str:
    """Return a size for file names and messages, such as 19 or 19x13."""
    return str(size) if isinstance(size, int) else "{}x{}".format(*size)


def recorded_size(size: BoardSize) -> int:
    """Return the size for `NetworkInfo.board_size`: 0 for a board that is not square."""
    return size if isinstance(size, int) else 0
