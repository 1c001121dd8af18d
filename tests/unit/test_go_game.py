"""The game as it stands: playing, undo, set-up, the end, the diagram."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.go_boards import drawing_of, game_of, play_all, points
from yomi.engine.go.game import GoGame, check_setup, score_text
from yomi.engine.go.points import SetupError, square
from yomi.engine.go.rules import PRESETS, Rules
from yomi.errors import IllegalMove
from yomi.native.go.board import BLACK, EMPTY, PASS, WHITE

RULES = st.sampled_from([PRESETS[name] for name in ("tromp-taylor", "chinese", "japanese", "aga")])


def assert_equal_games(one: GoGame, other: GoGame) -> None:
    """Two games are equal in every bit of the position and in the history that belongs to it."""
    assert one.moves == other.moves
    assert one.setup == other.setup
    assert (one.board, one.rules, one.komi, one.handicap) == (other.board, other.rules, other.komi, other.handicap)
    for name in one.position.dtype.names:
        np.testing.assert_array_equal(one.position[name], other.position[name], err_msg=name)
    length = int(one.position["history_length"])
    np.testing.assert_array_equal(one.history[:length], other.history[:length])


def random_step(game: GoGame, choice: int) -> None:
    """Play a move, mostly a legal one in turn, or undo."""
    if choice % 5 == 0 and game.moves:
        game.undo()
        return
    color = game.side_to_move if choice % 7 else 3 - game.side_to_move
    legal = [move for move in [*game.board.points, PASS] if game.is_legal(color, move)]
    game.play(color, legal[choice // 35 % len(legal)])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), RULES, st.lists(st.integers(0, 10**6), max_size=80), st.booleans())
def test_random_play_and_undo_equals_replay_from_scratch(
    size: int, rules: Rules, choices: list[int], handicap: bool
) -> None:
    game = GoGame(square(size), rules)
    fresh = GoGame(square(size), rules)
    if handicap:
        for either in (game, fresh):
            either.place_handicap(square(size).points[:2])
    for choice in choices:
        random_step(game, choice)
    for color, move in game.moves:
        fresh.play(color, move)
    assert_equal_games(game, fresh)
    while game.moves:
        game.undo()
    assert_equal_games(game, GoGame(square(size), rules) if not handicap else rewound(fresh))


def rewound(game: GoGame) -> GoGame:
    """Return a new game at the initial position of `game`."""
    start = GoGame(game.board, game.rules, game.komi)
    start.place_handicap([point for _, point in game.setup])
    return start


@settings(max_examples=30, deadline=None)
@given(RULES, RULES, st.lists(st.integers(0, 10**6), max_size=60))
def test_rules_may_change_in_the_middle(before: Rules, after: Rules, choices: list[int]) -> None:
    game = GoGame(square(4), before, 6.5)
    for choice in choices:
        random_step(game, choice)
    game.set_rules(after)
    fresh = GoGame(square(4), after, 6.5)
    for color, move in game.moves:
        fresh.play(color, move, strict=False)
    assert_equal_games(game, fresh)


def test_copies_are_independent() -> None:
    game = GoGame(square(5))
    play_all(game, "C3 C4 D4 B3 pass")
    twin = game.copy()
    assert_equal_games(game, twin)
    play_all(game, "A1")
    assert twin.color_at(square(5).parse_vertex("A1")) == EMPTY
    for _ in range(5):
        twin.undo()
    assert not twin.stones()
    assert len(game.moves) == 6


def test_the_reason_of_an_illegal_move_is_told() -> None:
    corner = game_of(". X . .\nX . . .\n. . . .\n. . . .", side=WHITE)
    ko = game_of(". X O .\nX O . O\n. X O .\n. . . .", side=BLACK)
    ko.play(BLACK, points("C3", 4)[0])
    superko = game_of(". X O .\nX O . O\n. X O .\n. . . .", side=BLACK)
    superko.set_rules(PRESETS["tromp-taylor"])
    for color, move in ((BLACK, points("C3", 4)[0]), (WHITE, PASS), (BLACK, PASS)):
        superko.play(color, move)
    for game, color, vertex, why in (
        (corner, WHITE, "A4", "suicide"),
        (corner, BLACK, "B4", "occupied"),
        (ko, WHITE, "B3", "ko"),
        (superko, WHITE, "B3", "superko"),
    ):
        with pytest.raises(IllegalMove, match=f"illegal move [BW] {vertex}: {why}$"):
            game.play(color, points(vertex, game.board.side)[0])
    for move in (0, 99, 4000):
        assert corner.why_illegal(BLACK, move) == "off the board"


def test_an_illegal_move_changes_nothing() -> None:
    game = game_of(". X .\nX . .\n. . .", side=WHITE)
    before = game.copy()
    for move in (*points("B3 A3", 3), 0, 99, 4000):
        with pytest.raises(IllegalMove, match="illegal move W"):
            game.play(WHITE, move)
    assert_equal_games(game, before)


KO = """
. X O .
X . X O
. X O .
. . . .
"""


def test_the_ko_ban_is_on_the_other_side_only() -> None:
    game = game_of(KO, PRESETS["chinese"], side=WHITE)
    play_all(game, "B3")
    point = square(4).parse_vertex("C3")
    assert not game.is_legal(BLACK, point)
    assert game.is_legal(WHITE, point)
    assert not game.is_legal(BLACK, point), "asking for the other side changes nothing"
    with pytest.raises(IllegalMove):
        game.play(BLACK, point)
    game.play(WHITE, point)
    assert game.captures(WHITE) == 1


def test_records_may_hold_moves_that_these_rules_forbid() -> None:
    game = game_of(KO, PRESETS["chinese"], side=WHITE)
    play_all(game, "B3")
    game.play(BLACK, square(4).parse_vertex("C3"), strict=False)
    with pytest.raises(IllegalMove):
        game.play(WHITE, square(4).parse_vertex("C3"), strict=False)
    lone = game_of(". X\nX .", side=WHITE)
    with pytest.raises(IllegalMove):
        lone.play(WHITE, square(2).parse_vertex("A2"), strict=False)


def test_one_color_may_play_again_and_again() -> None:
    game = GoGame(square(5))
    for vertex in ("A1", "B1", "C1"):
        game.play(WHITE, square(5).parse_vertex(vertex))
    assert drawing_of(game).splitlines()[-1] == "O O O . ."
    assert game.side_to_move == BLACK
    game.play(WHITE, PASS)
    game.turn_to(WHITE)
    assert game.side_to_move == WHITE
    game.undo()
    assert len(game.stones()) == 3


def test_two_passes_end_a_game_that_may_go_on() -> None:
    game = GoGame(square(5), PRESETS["tromp-taylor"])
    play_all(game, "C3 pass")
    assert not game.is_over
    play_all(game, "pass")
    assert game.is_over
    assert not game.is_no_result
    play_all(game, "C2")
    assert not game.is_over
    game.undo()
    assert game.is_over


def three_kos(rules: Rules) -> tuple[GoGame, list[int]]:
    """Return a board with three separate kos, two of them White's at present, and the top rows of the kos."""
    tops = [2, 7, 12]
    stones = []
    for top, holder in zip(tops, (WHITE, WHITE, BLACK), strict=True):
        stones += [(BLACK, square(19).point(2 + x, top + y)) for x, y in ((1, 0), (0, 1), (1, 2))]
        stones += [(WHITE, square(19).point(2 + x, top + y)) for x, y in ((2, 0), (3, 1), (2, 2))]
        stones.append((holder, square(19).point(2 + (1 if holder == WHITE else 2), top + 1)))
    game = GoGame(square(19), rules)
    game.set_position(stones, BLACK)
    return game, tops


def take_kos_once_around(game: GoGame, tops: list[int]) -> None:
    """Take the kos in turn until the board is as before: six moves."""
    first, second, third = tops
    for top in (first, third, second, first, third, second):
        game.play(game.side_to_move, square(19).point(2 + (2 if game.side_to_move == BLACK else 1), top + 1))


def test_a_triple_ko_has_no_result_under_simple_ko() -> None:
    game, tops = three_kos(PRESETS["japanese"])
    take_kos_once_around(game, tops)
    assert not game.is_over
    take_kos_once_around(game, tops)
    assert game.is_no_result
    assert game.is_over
    game.undo()
    assert not game.is_over


def test_a_triple_ko_is_forbidden_under_superko() -> None:
    game, tops = three_kos(PRESETS["tromp-taylor"])
    with pytest.raises(IllegalMove):
        take_kos_once_around(game, tops)
    assert len(game.moves) == 5


def test_set_position() -> None:
    game = GoGame(square(3), PRESETS["japanese"])
    play_all(game, "A1")
    game.set_position([(WHITE, p) for p in points("A1 B2", 3)] + [(BLACK, p) for p in points("C3", 3)], WHITE)
    assert drawing_of(game) == ". . X\n. O .\nO . ."
    assert (game.side_to_move, game.moves, game.position["white_bonus"]) == (WHITE, [], -1)
    game.edit([(EMPTY, square(3).parse_vertex("A1")), (BLACK, square(3).parse_vertex("B1"))])
    assert drawing_of(game) == ". . X\n. O .\n. X ."
    assert game.side_to_move == WHITE
    game.set_position([])
    assert (game.stones(), game.side_to_move) == ([], BLACK)


def test_editing_keeps_prisoners() -> None:
    game = game_of("O X .\n. . .\n. . .", PRESETS["japanese"])
    play_all(game, "A2")
    assert game.captures(BLACK) == 1
    game.edit([(WHITE, square(3).parse_vertex("C1"))])
    assert game.captures(BLACK) == 1
    assert game.position["white_bonus"] == 2 - 1 - 1


def test_editing_keeps_the_compensation_for_handicap() -> None:
    game = GoGame(square(9), PRESETS["chinese"], 0.5)
    game.place_handicap(points("C3 G7", 9))
    play_all(game, "E5 C7")
    game.edit([(WHITE, square(9).parse_vertex("A1"))])
    play_all(game, "E3 E7")
    game.edit([(EMPTY, square(9).parse_vertex("C3"))], WHITE)
    assert game.position["komi"] == game.copy().position["komi"] == 2.5
    game.set_rules(PRESETS["aga"])
    assert game.position["komi"] == 1.5
    game.set_position([])
    assert game.position["komi"] == 0.5


def test_stones_that_are_set_up_before_white_plays_are_counted() -> None:
    game = GoGame(square(9), PRESETS["chinese"], 0.5)
    for vertex in ("C3", "G7", "C7"):
        game.edit([(BLACK, square(9).parse_vertex(vertex))])
    assert game.position["komi"] == 3.5
    game.edit([(WHITE, square(9).parse_vertex("E5"))])
    assert game.position["komi"] == 0.5
    even = GoGame(square(9), PRESETS["chinese"], 7.5)
    play_all(even, "C3 E5 G7")
    even.edit([(EMPTY, square(9).parse_vertex("E5"))])
    assert even.position["komi"] == 7.5


@pytest.mark.parametrize(
    ("stones", "words"),
    [
        ([(BLACK, 5), (WHITE, 5)], "two set-up stones on A2"),
        ([(BLACK, 1)], "point 1"),
        ([(BLACK, p) for p in points("A1 A2 B1 B2", 2)], "no liberties"),
        ([(BLACK, p) for p in points("A1", 2)] + [(WHITE, p) for p in points("A2 B1", 2)], "A1 has no liberties"),
    ],
)
def test_impossible_positions(stones: list[tuple[int, int]], words: str) -> None:
    if words.startswith("two"):
        stones = [(color, points("A2", 2)[0]) for color, _ in stones]
    with pytest.raises(SetupError, match=words):
        check_setup(stones, square(2))


def test_unacceptable_sizes_and_komi() -> None:
    for size in (-1, 0, 1, 20, 25):
        with pytest.raises(SetupError, match="unacceptable size"):
            GoGame(square(size))
    for komi in (float("nan"), float("inf"), 401.0):
        with pytest.raises(SetupError, match="unacceptable komi"):
            GoGame(square(9), komi=komi)


def test_the_position_stays_the_same_object() -> None:
    game = GoGame(square(5))
    position, history = game.position, game.history
    play_all(game, "A1 B1 C1")
    game.undo()
    game.set_rules(PRESETS["aga"])
    game.set_position([])
    assert game.position is position
    assert game.history is history


@pytest.mark.slow
def test_a_long_game_ends_when_the_history_is_full() -> None:
    game = GoGame(square(2), PRESETS["chinese"])
    while len(game.moves) < 4094:
        game.play(game.side_to_move, PASS)
    assert game.is_over
    with pytest.raises(IllegalMove):
        game.play(game.side_to_move, PASS)
    game.undo()
    game.play(game.side_to_move, PASS)


def test_score_text() -> None:
    assert [score_text(score) for score in (3.5, -0.5, 12.0, 0.0)] == ["B+3.5", "W+0.5", "B+12", "0"]


def test_diagram() -> None:
    game = GoGame(square(9), PRESETS["chinese"], 0.5)
    game.place_handicap(points("C3 G7", 9))
    play_all(game, "D3 D2")
    lines = str(game).splitlines()
    assert lines[3:9:5] == ["  7 . . + . + . X . . 7", "  2 . . .(X). . . . . 2"]
    assert lines[-1] == "Rules: chinese, komi 0.5 + 2 for handicap"
    assert " 19 " in str(GoGame(square(19)))
