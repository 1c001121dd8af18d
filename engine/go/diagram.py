"""The board as text: coordinates, star points, the last move in brackets."""

from typing import TYPE_CHECKING

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.handicap import fixed_handicap, max_fixed_handicap
from yomi.engine.go.vertex import COLUMNS, format_color, format_vertex, point_at
from yomi.native.go.board import EMPTY

if TYPE_CHECKING:
    from yomi.engine.go.game import GoGame

SYMBOLS = {EMPTY: ".", BLACK: "X", WHITE: "O"}


def draw(game: "GoGame") -> str:
    """Return the board (X Black, O White, + star points), then the side to move, captures and rules."""
    size = game.size
    most = max_fixed_handicap(size)
    stars = set(fixed_handicap(most, size)) if most else set()
    last = game.last_move[1] if game.last_move else None
    header = "    " + " ".join(COLUMNS[:size])
    lines = [header]
    for row in range(size):
        cells = []
        for column in range(size):
            point = point_at(column, row, size)
            symbol = SYMBOLS[game.color_at(point)]
            cells.append(symbol if symbol != "." or point not in stars else "+")
        text = "".join(
            (")" if last == point_at(column - 1, row, size) else "(" if last == point_at(column, row, size) else " ")
            + cells[column]
            for column in range(size)
        )
        text += ")" if last == point_at(size - 1, row, size) else " "
        lines.append(f" {size - row:2}{text}{size - row}")
    lines.append(header)
    return "\n".join(lines + _facts(game))


def _facts(game: "GoGame") -> list[str]:
    side = "Black (X)" if game.side_to_move == BLACK else "White (O)"
    last = ""
    if game.last_move:
        color, move = game.last_move
        last = f", last move {format_color(color)} {format_vertex(move, game.size)}"
    bonus = f" + {game.handicap_bonus} for handicap" if game.handicap_bonus else ""
    return [
        f"{side} to move, {len(game.moves)} played{last}",
        f"Captured by Black: {game.captures(BLACK)}, by White: {game.captures(WHITE)}",
        f"Rules: {game.rules}, komi {game.komi:g}{bonus}",
    ]
