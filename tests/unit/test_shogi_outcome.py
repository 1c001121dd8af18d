"""What ends a game of shogi inside a search, and what it is worth to the side to move."""

from __future__ import annotations

from tests.unit.trees import check_tree
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.native.game import ONGOING, OVER
from yomi.native.shogi import position as layout
from yomi.native.shogi.spec import UNPROVEN_WIN, outcome, shogi_spec
from yomi.native.tree.arrays import EXPANDED
from yomi.native.tree.report import find_child

BARE_KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 100"
CYCLE = "5i5h 5a5b 5h5i 5b5a"
ENTERED = "K2R1B3/+P+P+P+P+P+P+P+P1/9/9/9/9/9/9/8k b RB6P 1"


def outcome_of(sfen: str, moves: str = "", line: str = "", **rules: float | tuple[float, float]) -> tuple[int, float]:
    """Return state and value at the end of a searched line, after the moves of a game."""
    game = ShogiGame(sfen, entering_king="27")
    game.position["draw_value"] = 0.25, -0.25
    for name, value in rules.items():
        game.position[name] = value
    for move in moves.split():
        game.play(parse_usi(move))
    for move in line.split():
        layout.play(game.position, game.history, parse_usi(move))
    state, value, score = outcome(game.position, game.history)
    assert score == 0.0
    return state, value


def test_a_game_goes_on() -> None:
    assert outcome_of(BARE_KINGS) == (ONGOING, 0.0)


def test_a_mated_side_has_lost_even_on_the_last_move() -> None:
    assert outcome_of(MATED) == (OVER, -1.0)
    assert outcome_of(MATED, max_moves=99) == (OVER, -1.0)


def test_a_side_without_a_move_has_lost() -> None:
    assert outcome_of("k8/9/1GP6/9/9/9/9/9/4K4 w - 1")[0] == ONGOING
    assert outcome_of("k8/2G6/1G7/9/9/9/9/9/4K4 w - 1") == (OVER, -1.0)


def test_draws_are_worth_what_the_record_says() -> None:
    assert outcome_of(BARE_KINGS, "", f"{CYCLE} 5i5h") == (OVER, -0.25)
    assert outcome_of(BARE_KINGS, "5i5h", max_moves=1) == (OVER, -0.25)
    assert outcome_of(BARE_KINGS, "5i5h", max_moves=2) == (ONGOING, 0.0)


def test_a_draw_that_is_worth_a_loss_proves_nothing() -> None:
    line = f"{CYCLE} 5i5h"
    assert outcome_of(BARE_KINGS, "", line, draw_value=(1.0, -1.0)) == (OVER, -UNPROVEN_WIN)
    assert outcome_of(BARE_KINGS, "", line, draw_value=(-1.0, 1.0)) == (OVER, UNPROVEN_WIN)


def test_a_repetition_ends_a_line_after_the_root() -> None:
    """Positions of the game, the root included, count only with the fourth occurrence."""
    for game, line, state in (
        ("", CYCLE, ONGOING),
        ("", f"{CYCLE} 5i5h", OVER),
        (f"{CYCLE} 5i5h", "5a5b", ONGOING),
        (f"{CYCLE} 5i5h", "5a5b 5h5i 5b5a 5i5h", ONGOING),
        (f"{CYCLE} 5i5h", "5a5b 5h5i 5b5a 5i5h 5a5b", OVER),
        (f"{CYCLE} {CYCLE} 5i5h 5a5b 5h5i", "", ONGOING),
        (f"{CYCLE} {CYCLE} 5i5h 5a5b 5h5i", "5b5a", OVER),
        (f"{CYCLE} {CYCLE} 5i5h 5a5b 5h5i", "5b6b", ONGOING),
    ):
        value = 0.0 if state == ONGOING else 0.25 if len(f"{game} {line}".split()) % 2 == 0 else -0.25
        assert outcome_of(BARE_KINGS, game, line) == (state, value), (game, line)


def test_a_repetition_is_searched_again_below_a_later_root() -> None:
    """The first root's tree contains the repetition as the end of the game."""
    search = Search(shogi_spec(), InlineQueue(UniformEvaluator()), SearchSettings(workers=1, memory=2**26, graph=False))
    game = ShogiGame(BARE_KINGS)
    search.set_position(game)
    search.run(Limits(playouts=20_000))
    for move in CYCLE.split():
        game.play(parse_usi(move))
    search.set_position(game)
    assert search.root_visits > 1  # the tree was kept
    check_tree(search, pruned=True)
    search.run(Limits(playouts=500))
    assert search.tree.nodes[find_child(search.tree, parse_usi("5i5h"))]["state"] == EXPANDED
    check_tree(search, pruned=True)


def test_more_pieces_in_hand_end_a_line_after_the_root() -> None:
    sfen, cycle = "4k4/9/9/9/9/7R1/9/9/4K4 w 2p 1", "P*2e 2f2e 5a4a 2e2f 4a4b 5i5h 4b5a 5h5i"
    assert outcome_of(sfen, cycle)[0] == ONGOING
    assert outcome_of(sfen, "", cycle)[0] == ONGOING
    assert outcome_of(sfen, "", f"{cycle} P*2e") == (OVER, UNPROVEN_WIN)


def test_a_perpetual_check_is_as_good_as_lost() -> None:
    sfen, cycle = "k8/9/9/1R7/9/9/9/9/K8 b - 1", "8d9d 9a8a 9d8d 8a9a"
    assert outcome_of(sfen, cycle) == (ONGOING, 0.0)
    assert outcome_of(sfen, "", f"{cycle} 8d9d") == (OVER, UNPROVEN_WIN)
    assert outcome_of(sfen, "", f"{cycle} 8d9d 9a8a") == (OVER, -UNPROVEN_WIN)
    assert outcome_of(sfen, f"{cycle} {cycle} 8d9d 9a8a 9d8d", "8a9a") == (OVER, -UNPROVEN_WIN)


def test_a_declaration_wins_under_its_rule() -> None:
    assert outcome_of(ENTERED) == (OVER, 1.0)
    assert outcome_of(ENTERED, entering_king=0)[0] == ONGOING


def test_a_declaration_is_too_late_at_the_limit_of_moves() -> None:
    second = ENTERED.removesuffix("1") + "2"
    assert outcome_of(second, max_moves=2) == (OVER, 1.0)
    assert outcome_of(second, max_moves=1) == (OVER, 0.25)  # a draw


TRYING = "9/4K4/9/9/9/9/9/9/k8 b - 1"


def test_a_try_wins_under_its_rule() -> None:
    king = {"entering_king": layout.ENTERING_KING_TRY}
    assert outcome_of(TRYING, **king) == (OVER, 1.0)
    assert outcome_of(TRYING)[0] == ONGOING
    assert outcome_of(TRYING, "5b5a", **king) == (OVER, -1.0)
    assert outcome_of(TRYING, "5b5a", max_moves=1, **king) == (OVER, -1.0)
    assert outcome_of(TRYING, "5b5a")[0] == ONGOING
    assert outcome_of("9/4K4/3s5/9/9/9/9/9/k8 b - 1", "5b6b", **king)[0] == ONGOING
    # White's king is on its own square.
    assert outcome_of("4k4/9/9/9/9/9/9/9/4K4 b - 1", "5i5h", **king)[0] == ONGOING
    assert outcome_of("9/9/9/9/9/9/9/3k5/8K w - 1", "6h5i", **king) == (OVER, -1.0)


def test_a_longer_mate_that_a_try_may_avert_settles_nothing() -> None:
    in_three = "7nl/5+P1k1/6ppp/9/9/9/9/9/4K4 b 2G 1"
    settings = {"mate_depth": 3}
    assert outcome_of(in_three, **settings) == (OVER, 1.0)
    assert outcome_of(in_three, **settings, entering_king=layout.ENTERING_KING_TRY)[0] == ONGOING


def test_a_mate_at_hand_is_a_win_if_it_is_looked_for() -> None:
    before = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    assert outcome_of(before) == (ONGOING, 0.0)
    assert outcome_of(before, mate_depth=1) == (OVER, 1.0)
