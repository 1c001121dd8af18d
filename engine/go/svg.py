"""A goban as SVG: stones, coordinates, the last move, labels, move numbers and a value for each point.

Input is plain data, and no kernel is loaded. A point is (column, row) from the top left corner, as in SGF.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE
from yomi.engine.pictures import INK, MARK, WOOD, Grid, element, heat_color, rows_of, sheet, strength, text_at

Point: TypeAlias = tuple[int, int]

MAX_SIZE = 25
COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
CELL, RADIUS = 32, 15  # distance between lines, and radius of a stone
MIN_STRENGTH = 0.005  # smaller values are not drawn
STONES = {BLACK: "#15120e", WHITE: "#fbf9f4"}
# Color of text and marks on a stone or an empty point.
ON_STONES = {BLACK: "#fbf9f4", WHITE: "#15120e", 0: INK}


def goban(
    stones: Grid,
    *,
    last: Point | None = None,
    labels: Mapping[Point, str] | None = None,
    numbers: Mapping[Point, int] | None = None,
    heat: Grid | None = None,
    ownership: Grid | None = None,
    coordinates: bool = True,
    title: str = "",
) -> str:
    """Return the picture of a board.

    Args:
        stones: 0, BLACK or WHITE for each point, in 1 to 25 rows and columns.
        last: the last move, marked with a ring; None for none or a pass.
        labels: text of one to three characters by point.
        numbers: move numbers by point, where there is no label.
        heat: value from -1 (red) to 1 (blue) for each point, such as a policy; NaN for nothing.
        ownership: value from -1 (White) to 1 (Black) for each point, drawn as small squares.
        coordinates: write A to Z without I, and rows from the bottom.
        title: text for screen readers; empty for a default title.

    Raises:
        ValueError: wrong size of the board, wrong value in `stones`, or a point off the board.
    """
    board = _board(stones)
    width, height = len(board[0]), len(board)
    texts = {**{point: str(number) for point, number in (numbers or {}).items()}, **(labels or {})}
    for point in [*texts, *([] if last is None else [last])]:
        if not (0 <= point[0] < width and 0 <= point[1] < height):
            raise ValueError(f"point {point}: expected (column, row) on a board of {width}×{height}, from (0, 0)")
    margin = CELL * (1.1 if coordinates else 0.75)
    picture = _Goban(board, margin)
    parts = [*picture.grid()]
    if heat is not None:
        parts = [*picture.heat(rows_of(heat, width, height, "heat")), *parts]
    parts += picture.stones()
    if ownership is not None:
        parts += picture.ownership(rows_of(ownership, width, height, "ownership"))
    parts += picture.texts(texts)
    if last is not None:
        parts.append(picture.last(last, last in texts))
    if coordinates:
        parts += picture.coordinates()
    return sheet(2 * margin + (width - 1) * CELL, 2 * margin + (height - 1) * CELL, title or _title(board, last), parts)


def point_name(point: Point, height: int) -> str:
    return f"{COLUMNS[point[0]]}{height - point[1]}"


def _board(stones: Grid) -> list[list[int]]:
    rows = [[int(stone) for stone in row] for row in stones]
    width = len(rows[0]) if rows else 0
    if not (1 <= len(rows) <= MAX_SIZE and 1 <= width <= MAX_SIZE) or any(len(row) != width for row in rows):
        sizes = sorted({len(row) for row in rows})
        raise ValueError(f"{len(rows)} rows of {sizes} stones: expected 1 to {MAX_SIZE} equal rows of 1 to {MAX_SIZE}")
    for stone in (stone for row in rows for stone in row):
        if stone not in (0, BLACK, WHITE):
            raise ValueError(f"stone {stone}: expected 0, {BLACK} (Black) or {WHITE} (White)")
    return rows


def _title(board: list[list[int]], last: Point | None) -> str:
    black, white = (sum(row.count(color) for row in board) for color in (BLACK, WHITE))
    text = f"Go board {len(board[0])}×{len(board)}, {black} black and {white} white stones"
    if last is None:
        return text
    color = COLOR_NAMES.get(board[last[1]][last[0]], "")
    return f"{text}, last move {color} {point_name(last, len(board))}".replace("  ", " ")


def stars(width: int, height: int) -> list[Point]:
    def lines(size: int) -> tuple[list[int], int | None]:
        edge = 3 if size >= 13 else 2
        return ([edge, size - 1 - edge] if size >= 7 else []), (size // 2 if size % 2 else None)

    (columns, middle_column), (rows, middle_row) = lines(width), lines(height)
    points = [(column, row) for row in rows for column in columns]
    if points and middle_column is not None and middle_row is not None:
        points.append((middle_column, middle_row))
    if points and middle_column is not None and width >= 15:
        points += [(middle_column, row) for row in rows]
    if points and middle_row is not None and height >= 15:
        points += [(column, middle_row) for column in columns]
    return points


class _Goban:
    def __init__(self, board: list[list[int]], margin: float) -> None:
        self.board, self.margin = board, margin
        self.width, self.height = len(board[0]), len(board)

    def place(self, point: Point) -> tuple[float, float]:
        """Return the picture's coordinates of a point."""
        return self.margin + CELL * point[0], self.margin + CELL * point[1]

    def square(self, point: Point, side: float, content: str = "", **attributes: object) -> str:
        x, y = self.place(point)
        return element("rect", content, x=x - side / 2, y=y - side / 2, width=side, height=side, **attributes)

    def points(self) -> Iterator[tuple[Point, int]]:
        for row, stones in enumerate(self.board):
            for column, stone in enumerate(stones):
                yield (column, row), stone

    def grid(self) -> Iterator[str]:
        (left, top), (right, bottom) = self.place((0, 0)), self.place((self.width - 1, self.height - 1))
        across = "".join(f"M{left:g} {top + CELL * row:g}H{right:g}" for row in range(self.height))
        down = "".join(f"M{left + CELL * column:g} {top:g}V{bottom:g}" for column in range(self.width))
        yield element("path", d=across + down, fill="none", stroke=INK, stroke_width=1, stroke_linecap="square")
        for star in stars(self.width, self.height):
            x, y = self.place(star)
            yield element("circle", cx=x, cy=y, r=3, fill=INK)

    def stones(self) -> Iterator[str]:
        for point, stone in self.points():
            if stone:
                x, y = self.place(point)
                yield element("circle", cx=x, cy=y, r=RADIUS, fill=STONES[stone], stroke=STONES[BLACK])

    def heat(self, values: list[list[float]]) -> Iterator[str]:
        """Yield a square for each value, with the value as a tooltip."""
        for (column, row), _ in self.points():
            value = values[row][column]
            if strength(value) >= MIN_STRENGTH:
                name = f"{point_name((column, row), self.height)}: {value:.3g}"
                yield self.square((column, row), CELL, element("title", name), fill=heat_color(value))

    def ownership(self, values: list[list[float]]) -> Iterator[str]:
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
            stone = self.board[row][column]
            x, y = self.place((column, row))
            if not stone:  # without this the lines would cross the text
                yield element("circle", cx=x, cy=y, r=RADIUS - 3, fill=WOOD)
            size = (17, 17, 15, 12)[min(len(text), 3)]
            yield text_at(x, y, text, size, ON_STONES[stone], font_weight=600)

    def last(self, point: Point, has_text: bool) -> str:
        """Return the ring of the last move: in the stone, or around it if there is text on it."""
        x, y = self.place(point)
        color = MARK if has_text else ON_STONES[self.board[point[1]][point[0]]]
        radius = RADIUS if has_text else RADIUS / 2
        return element("circle", cx=x, cy=y, r=radius, fill="none", stroke=color, stroke_width=2.5)

    def coordinates(self) -> Iterator[str]:
        (_, top), (_, bottom) = self.place((0, 0)), self.place((0, self.height - 1))
        offset = 0.75 * CELL
        for column in range(self.width):
            x, _ = self.place((column, 0))
            for y in (top - offset, bottom + offset):
                yield text_at(x, y, COLUMNS[column], 13, INK)
        for row in range(self.height):
            _, y = self.place((0, row))
            for x in (self.place((0, 0))[0] - offset, self.place((self.width - 1, 0))[0] + offset):
                yield text_at(x, y, self.height - row, 13, INK)
