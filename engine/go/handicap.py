"""Handicap stones: GTP's fixed placement, a simple free placement, and the definition of handicap stones."""

from collections.abc import Iterable, Sequence

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.vertex import board_points, column_and_row, parse_vertex, point_at
from yomi.errors import Error
from yomi.native.go.board import PASS

HANDICAP_KOMI = 0.5  # default komi of a handicap game


class HandicapError(Error, ValueError):
    """Handicap stones that are not allowed. The message is one line."""


def max_fixed_handicap(size: int) -> int:
    """Return the maximum for a fixed handicap: 9; 4 on even boards and 7x7; 0 below 7x7 (GTP 2, 4.1.1)."""
    if size < 7:
        return 0
    return 9 if size % 2 == 1 and size > 7 else 4


def fixed_handicap(stones: int, size: int) -> list[int]:
    """Return the points of a fixed handicap in GTP's order (GTP 2, section 4.1.1), or raise HandicapError."""
    most = max_fixed_handicap(size)
    if most == 0:
        raise HandicapError(f"no fixed handicap on {size}x{size}: expected a board of 7x7 or larger")
    if not 2 <= stones <= most:
        raise HandicapError(f"invalid number of stones {stones}: expected 2 to {most} on {size}x{size}")
    near = 3 if size >= 13 else 2
    far, middle = size - 1 - near, size // 2
    center = (middle, middle)
    corners = [(near, far), (far, near), (near, near), (far, far)]
    sides = [(near, middle), (far, middle), (middle, far), (middle, near)]
    if stones <= 4:
        chosen = corners[:stones]
    elif stones % 2 == 1:
        chosen = corners + sides[: stones - 5] + [center]
    else:
        chosen = corners + sides[: stones - 4]
    return [point_at(column, row, size) for column, row in chosen]


def free_handicap(stones: int, size: int) -> list[int]:
    """Return good points for a free placement of 2 to area - 1 stones.

    A fixed handicap is used if there is one. Otherwise stones are added to the largest fixed handicap: off the two
    lowest lines, then far from other stones, then near the center.

    Raises:
        HandicapError: fewer than 2 stones, or no empty point would be left.
    """
    if not 2 <= stones < size * size:
        raise HandicapError(f"invalid number of stones {stones}: expected 2 to {size * size - 1} on {size}x{size}")
    most = max_fixed_handicap(size)
    if most:
        if stones <= most:
            return fixed_handicap(stones, size)
        chosen = fixed_handicap(most, size)
    else:
        chosen = []
    free = [point for point in board_points(size) if point not in chosen]
    while len(chosen) < stones:
        best = max(free, key=lambda point: _appeal(point, chosen, size))
        chosen.append(best)
        free.remove(best)
    return chosen


def _appeal(point: int, chosen: list[int], size: int) -> tuple[int, float, float]:
    """Rank a point for a free placement: high line, distance from other stones, nearness to the center."""
    column, row = column_and_row(point, size)
    line = 1 + min(column, row, size - 1 - column, size - 1 - row)
    middle = (size - 1) / 2
    off_center = (column - middle) ** 2 + (row - middle) ** 2
    others = (column_and_row(other, size) for other in chosen)
    distance = min(((column - x) ** 2 + (row - y) ** 2 for x, y in others), default=0)
    wanted_line = min(3, (size + 1) // 2)
    return min(line, wanted_line), float(distance), -off_center


def check_free_handicap(points: list[int], size: int) -> None:
    """Raise HandicapError unless a free handicap has 2 to area - 1 different points."""
    if not 2 <= len(points) < size * size:
        raise HandicapError(f"invalid number of stones {len(points)}: expected 2 to {size * size - 1} on {size}x{size}")
    if PASS in points:
        raise HandicapError("a handicap stone cannot be a pass")
    if len(set(points)) < len(points):
        raise HandicapError("two handicap stones on the same vertex")


def parse_free_handicap(vertices: Iterable[str], size: int) -> list[int]:
    """Parse and check the vertices of `set_free_handicap`. Raises HandicapError or VertexError."""
    points = [parse_vertex(text, size) for text in vertices]
    check_free_handicap(points, size)
    return points


def handicap_stones(setup: Iterable[tuple[int, int]], moves: Sequence[tuple[int, int]]) -> int:
    """Return the number of handicap stones by KataGo's definition, for White's compensation.

    These are Black's stones in the initial position and Black's moves before the first White stone. A single White pass
    does not end Black's run; two White moves in a row make it a set-up position, which does not count. A White stone in
    the initial position means no handicap, and so does a single Black stone.

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
