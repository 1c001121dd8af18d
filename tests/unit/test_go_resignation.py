"""When White may resign a game in which Black has an advantage from the start."""

from __future__ import annotations

import pytest

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.player import black_advantage, may_resign
from yomi.engine.go.points import free_handicap, square
from yomi.engine.go.rules import PRESETS
from yomi.native.go.board import EMPTY

HOPELESS = -1000.0


def handicap_game(size: int, stones: int, rules: str = "tromp-taylor", komi: float = 0.5) -> GoGame:
    game = GoGame(square(size), PRESETS[rules], komi)
    if stones:
        game.place_handicap(free_handicap(stones, square(size)))
    return game


def played(game: GoGame, plies: int) -> GoGame:
    """Return the game after so many moves: Black fills the board from below, White from above."""
    empty = [point for point in game.board.points if game.color_at(point) == EMPTY]
    for _ in range(plies):
        game.play(game.side_to_move, empty.pop(0 if game.side_to_move == WHITE else -1))
    return game


@pytest.mark.parametrize(
    ("stones", "rules", "komi", "expected"),
    [
        (0, "tromp-taylor", 7.5, -0.5),
        (0, "tromp-taylor", 0.5, 6.5),
        (0, "japanese", 6.5, 0.5),
        (9, "tromp-taylor", 0.5, 8 * 15 + 6.5),
        (9, "chinese", 0.5, 8 * 15 + 6.5 - 9),
        (9, "aga", 0.5, 8 * 15 + 6.5 - 8),
        (2, "japanese", 0.5, 14 + 6.5),
    ],
)
def test_the_advantage_of_black(stones: int, rules: str, komi: float, expected: float) -> None:
    assert black_advantage(handicap_game(19, stones, rules, komi)) == expected


def test_the_advantage_of_stones_that_were_set_up_or_played() -> None:
    corners = [square(19).parse_vertex(vertex) for vertex in ("D4", "Q16", "D16")]
    game = GoGame(square(19), PRESETS["tromp-taylor"], 0.5)
    game.set_position([(BLACK, point) for point in corners], WHITE)
    assert black_advantage(game) == 2 * 15 + 6.5
    game = GoGame(square(19), PRESETS["tromp-taylor"], 0.5)
    for point in corners:
        game.play(BLACK, point)
    assert black_advantage(game) == 2 * 15 + 6.5


def test_an_even_game_may_be_resigned_at_once() -> None:
    game = handicap_game(19, 0, komi=7.5)
    assert may_resign(game, WHITE, HOPELESS)
    assert may_resign(game, BLACK, HOPELESS)


def test_black_may_resign_at_once() -> None:
    assert may_resign(handicap_game(19, 9), BLACK, HOPELESS)


@pytest.mark.parametrize(("size", "stones", "first"), [(19, 9, 73), (9, 2, 17), (9, 0, 17)])
def test_white_plays_on_for_a_fifth_of_the_board(size: int, stones: int, first: int) -> None:
    game = played(handicap_game(size, stones), first - 1)
    assert not may_resign(game, WHITE, HOPELESS)
    assert may_resign(played(game, 1), WHITE, HOPELESS)


def test_white_resigns_when_it_is_well_behind_the_schedule() -> None:
    game = handicap_game(9, 2)  # 21.5 points, to be caught up with between the moves 17 and 48.6
    leads = []
    for ply in (17, 32, 49, 60):
        played(game, ply - len(game.moves))
        leads.append(next(lead for lead in range(100) if may_resign(game, WHITE, -lead)))
    assert leads == [30, 20, 9, 9]  # 5 points and 15% of the 21.5 beyond the schedule's 21.5, 11.3, 0 and 0
