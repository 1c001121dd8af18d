"""A goban as SVG: stones, coordinates, the last move, labels, move numbers and a value for each point.

Input is plain data, and no kernel is loaded. A point is (column, row) from the top left corner, as in SGF.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE
from yomi.engine.go.points import COLUMNS, Board, star_lines
from yomi.engine.pictures import INK, MARK, WOOD, Grid, element, heat_color, sheet, strength, text_at

Point: TypeAlias = tuple[int, int]

CELL, RADIUS = 32, 15  # distance between lines, and radius of a stone
MIN_STRENGTH = 0.005  # smaller values are not drawn
STONES = {BLACK: "#15120e", WHITE: "#fbf9f4"}
# Color of text and marks on a stone or an empty point.
ON_STONES = {BLACK: "#fbf9f4", WHITE: "#15120e", 0: INK}


def goban(
    stones: Grid,
    board: Board,
    *,
    last: Point | None = None,
    labels: Mapping[Point, str] | None = None,
    numbers: Mapping[Point, int] | None = None,
    heat: Grid | None = None,
    ownership: Grid | None = None,
    coordinates: bool = True,
) -> str:
    """Return the picture of a board.

    Args:
        stones: 0, BLACK or WHITE for each point.
        board: its shape.
        last: the last move, marked with a ring; None for none or a pass.
        labels: text of one to three characters by point.
        numbers: move numbers by point, where there is no label.
        heat: value from -1 (red) to 1 (blue) for each point, such as a policy; NaN for nothing.
        ownership: value from -1 (White) to 1 (Black) for each point, drawn as small squares.
        coordinates: write A to Z without I, and rows from the bottom.
    """
    rows = [[int(stone) for stone in row] for row in stones]
    texts = {**{point: str(number) for point, number in (numbers or {}).items()}, **(labels or {})}
    margin = CELL * (1.1 if coordinates else 0.75)
    picture = _Goban(rows, board, margin)
    parts = [*picture.grid()]
    if heat is not None:
        parts = [*picture.heat(heat), *parts]
    parts += picture.stones()
    if ownership is not None:
        parts += picture.ownership(ownership)
    parts += picture.texts(texts)
    if last is not None:
        parts.append(picture.last(last, last in texts))
    if coordinates:
        parts += picture.coordinates()
    across, down = (2 * margin + (side - 1) * CELL for side in (board.width, board.height))
    return sheet(across, down, _title(rows, board, last), parts)


def _title(rows: list[list[int]], board: Board, last: Point | None) -> str:
    black, white = (sum(row.count(color) for row in rows) for color in (BLACK, WHITE))
    text = f"Go board {board.width}×{board.height}, {black} black and {white} white stones"
    if last is None:
        return text
    color = COLOR_NAMES.get(rows[last[1]][last[0]], "")
    return f"{text}, last move {color} {board.vertex(board.point(*last))}".replace("  ", " ")


def stars(board: Board) -> list[Point]:
    (left, right, middle), (top, bottom, center) = star_lines(board.width), star_lines(board.height)
    if min(board.width, board.height) < 7:
        return []
    points = [(x, y) for y in (top, bottom) for x in (left, right)]
    has_middle, has_center = board.width % 2 == 1, board.height % 2 == 1
    points += [(middle, center)] * (has_middle and has_center)
    points += [(middle, y) for y in (top, bottom) if has_middle and board.width >= 15]
    return points + [(x, center) for x in (left, right) if has_center and board.height >= 15]


class _Goban:
    def __init__(self, rows: list[list[int]], board: Board, margin: float) -> None:
        self.rows, self.board, self.margin = rows, board, margin

    def place(self, point: Point) -> tuple[float, float]:
        """Return the x and y coordinates of a board point in the picture."""
        return self.margin + CELL * point[0], self.margin + CELL * point[1]

    def square(self, point: Point, side: float, content: str = "", **attributes: object) -> str:
        x, y = self.place(point)
        return element("rect", content, x=x - side / 2, y=y - side / 2, width=side, height=side, **attributes)

    def points(self) -> Iterator[tuple[Point, int]]:
        for row, stones in enumerate(self.rows):
            for column, stone in enumerate(stones):
                yield (column, row), stone

    def grid(self) -> Iterator[str]:
        (left, top), (right, bottom) = self.place((0, 0)), self.place((self.board.width - 1, self.board.height - 1))
        across = "".join(f"M{left:g} {top + CELL * row:g}H{right:g}" for row in range(self.board.height))
        down = "".join(f"M{left + CELL * column:g} {top:g}V{bottom:g}" for column in range(self.board.width))
        yield element("path", d=across + down, fill="none", stroke=INK, stroke_width=1, stroke_linecap="square")
        for star in stars(self.board):
            x, y = self.place(star)
            yield element("circle", cx=x, cy=y, r=3, fill=INK)

    def stones(self) -> Iterator[str]:
        for point, stone in self.points():
            if stone:
                x, y = self.place(point)
                yield element("circle", cx=x, cy=y, r=RADIUS, fill=STONES[stone], stroke=STONES[BLACK])

    def heat(self, values: Grid) -> Iterator[str]:
        """Yield a square for each value, with the value as a tooltip."""
        for (column, row), _ in self.points():
            value = values[row][column]
            if strength(value) >= MIN_STRENGTH:
                name = f"{self.board.vertex(self.board.point(column, row))}: {value:.3g}"
                yield self.square((column, row), CELL, element("title", name), fill=heat_color(value))

    def ownership(self, values: Grid) -> Iterator[str]:
        """Yield a small square of the owner's color for each point without the owner's stone."""
        for (column, row), stone in self.points():
            value = values[row][column]
            owner = BLACK if value > 0 else WHITE
            side = CELL * 0.5 * strength(value) ** 0.5
            if strength(value) >= MIN_STRENGTH and stone != owner:
                yield self.square((column, row), side, fill=STONES[owner], stroke=INK, stroke_width=0.5)

    def texts(self, texts: Mapping[Point, str]) -> Iterator[str]:
        """Yield labels and numbers, sorted by point."""
        for (column, row), text in sorted(texts.items(), key=lambda item: (item[0][1], item[0][0])):
            stone = self.rows[row][column]
            x, y = self.place((column, row))
            if not stone:  # without this the lines would cross the text
                yield element("circle", cx=x, cy=y, r=RADIUS - 3, fill=WOOD)
            size = (17, 17, 15, 12)[min(len(text), 3)]
            yield text_at(x, y, text, size, ON_STONES[stone], font_weight=600)

    def last(self, point: Point, has_text: bool) -> str:
        """Return the ring of the last move, drawn inside the stone, or around it if there is text on the stone."""
        x, y = self.place(point)
        color = MARK if has_text else ON_STONES[self.rows[point[1]][point[0]]]
        radius = RADIUS if has_text else RADIUS / 2
        return element("circle", cx=x, cy=y, r=radius, fill="none", stroke=color, stroke_width=2.5)

    def coordinates(self) -> Iterator[str]:
        (_, top), (_, bottom) = self.place((0, 0)), self.place((0, self.board.height - 1))
        offset = 0.75 * CELL
        for column in range(self.board.width):
            x, _ = self.place((column, 0))
            for y in (top - offset, bottom + offset):
                yield text_at(x, y, COLUMNS[column], 13, INK)
        for row in range(self.board.height):
            _, y = self.place((0, row))
            for x in (self.place((0, 0))[0] - offset, self.place((self.board.width - 1, 0))[0] + offset):
                yield text_at(x, y, self.board.height - row, 13, INK)
