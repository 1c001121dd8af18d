"""Go boards drawn in ASCII: X Black, O White, . empty, one line a row, top row first."""

from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.options import Options
from yomi.native.go.board import BLACK, WHITE

# C7 and E7 with their friends share liberties and have no eyes.
SEKI_WITHOUT_EYES = """
. X O . X O .
X X O . X O O
. X O O X O .
X X X X O O O
. X X X O . O
X X X X O O O
X X X X O . O
"""


def game_of(drawing: str, rules: Rules = PRESETS["tromp-taylor"], komi: float = 0.0, side: int = BLACK) -> GoGame:
    """Return a game that starts from the drawn position."""
    rows = [line.split() for line in drawing.strip().splitlines()]
    size = len(rows)
    assert all(len(row) == size for row in rows), "a drawing must be square"
    stones = [
        (BLACK if symbol == "X" else WHITE, square(size).point(x, y))
        for y, row in enumerate(rows)
        for x, symbol in enumerate(row)
        if symbol != "."
    ]
    game = GoGame(square(size), rules, komi)
    game.set_position(stones, side)
    return game


def drawing_of(game: GoGame) -> str:
    """Return the board as `game_of` reads it."""
    size = game.board.side
    rows = ([".XO"[game.color_at(square(size).point(x, y))] for x in range(size)] for y in range(size))
    return "\n".join(" ".join(row) for row in rows)


def points(text: str, size: int) -> list[int]:
    """Return the points of vertices separated by spaces."""
    return [square(size).parse_vertex(vertex) for vertex in text.split()]


def play_all(game: GoGame, text: str) -> None:
    """Play vertices in turn."""
    for vertex in text.split():
        game.play(game.side_to_move, game.board.parse_vertex(vertex))


def played(line: str = "", size: int = 5) -> GoGame:
    """Return a game by the default rules after the vertices of `line`, in turn."""
    game = new_game(Options(size=size))
    play_all(game, line)
    return game
