"""What only players of Go owe to the protocols: passes, owners, resignation in handicap games, boards of all sizes."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.conftest import GO, Make
from tests.unit.go_boards import game_of, play_all, played
from yomi.engine.clock import Clock
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.game import GoGame
from yomi.engine.go.players import player as go
from yomi.engine.go.players.player import CLEANUP_SHARE, ROLLOUTS_PER_SECOND, find_budget, moves_left
from yomi.engine.go.points import fixed_handicap, square
from yomi.engine.go.rules import PRESETS
from yomi.engine.players.request import LoadingError, Request
from yomi.engine.search.types import Limits, SearchReport
from yomi.native.go.board import BLACK, PASS, WHITE
from yomi.native.go.rules import MAX_HISTORY

DECIDED = """
. X . X O
X X X X O
. X O O O
X X O . O
. X O O .
"""
"""Everything is alive; Black has 13 points, White 12."""
TRIPLE_KO = "B A1 B B2 W A4 W B3 B A6 B B7 W A9 W B8 B J1 B H2 W J4 W H3 W A2 B A8 W J2"


def triple_ko() -> GoGame:
    """Return a game whose board stands for the third time, Black to move."""
    game = GoGame(square(9), PRESETS["chinese"])
    words = TRIPLE_KO.split()
    colors = (BLACK if word == "B" else WHITE for word in words[::2])
    game.set_position(list(zip(colors, (square(9).parse_vertex(word) for word in words[1::2]), strict=True)))
    play_all(game, 2 * "A3 A7 J3 A2 A8 J2 ")
    return game


@pytest.fixture
def descriptor() -> Any:
    return GO


@pytest.fixture
def usual() -> dict[str, Any]:
    return {"visits": 20}


def test_a_restriction_forces_no_later_move(make: Make, kind: str) -> None:
    """A move that needs no time is the only one of its own request, not of the request before."""
    player, game = make(kind), played()
    only = game.board.parse_vertex("C3")
    clocks = dict.fromkeys((BLACK, WHITE), Clock.of(60.0))
    assert player.decide(Request(game, allow=[only], clocks=clocks)).move == only
    assert player.decide(Request(game, clocks=clocks, keep_tree=False)).report.visits == 20


@pytest.mark.parametrize("size", [2, 3, 7, 13, 19])
def test_moves_are_legal_on_every_board(make: Make, kind: str, size: int) -> None:
    player, game = make(kind, size=size, visits=12), played(size=size)
    for _ in range(6):
        decision = player.decide(Request(game))
        assert decision.report.ownership is None or decision.report.ownership.shape == (size * size,)
        game.push(decision.move)
    game.turn_to(3 - game.side_to_move)
    move = player.decide(Request(game)).move
    assert game.is_legal(game.side_to_move, move)


def test_other_boards_and_rules(make: Make, kind: str) -> None:
    player = make(kind)
    for size in (9, 5, 13):
        game = GoGame(square(size), PRESETS["tromp-taylor"], 6.5)
        assert player.needs_loading(game)
        assert player.decide(Request(game)).report.visits == 20
        assert player.search.spec.policy_size == size * size + 1
        assert player.final_ownership(game).shape == (size * size,)
    search = player.search
    assert search.latency > 0.0  # it is warmed up
    game.set_rules(PRESETS["aga"])  # which differ in nothing that an evaluator is made for
    player.decide(Request(game))
    assert player.search is search
    game.set_rules(PRESETS["japanese"])
    player.new_game(game)
    assert player.search is not search
    search = player.search
    assert player.decide(Request(game)).report.visits == 20
    assert player.search is search
    game.set_komi(-3.5)
    assert player.decide(Request(game)).report.playouts == 20  # another tree


def test_a_board_that_cannot_be_had_leaves_the_tree(make: Make, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EvaluatorError("not for this board")

    player = make(kind)
    player.decide(Request(played()))
    with monkeypatch.context() as patch:
        patch.setattr(go, "make_queue", fail)
        for method in (player.new_game, player.load, player.final_ownership, lambda game: player.decide(Request(game))):
            with pytest.raises(LoadingError, match="not for this board"):
                method(played(size=13))
    assert player.decide(Request(played())).report.playouts == 0  # the visits of the first search still count


def test_rollouts_are_mixed_into_a_network_alone(make: Make, kind: str) -> None:
    player, game = make(kind), played()
    player.options.rollout_weight = 0.5
    if kind != "network":
        with pytest.raises(LoadingError, match="expected evaluator auto or onnx"):
            player.decide(Request(game))
        return
    before = player.description
    assert player.decide(Request(game)).report.visits == 20
    assert player.description != before
    assert player.models


@pytest.mark.parametrize("game", [played("pass pass"), triple_ko()], ids=["passes", "triple ko"])
def test_a_game_that_has_ended_is_played_on(make: Make, kind: str, game: GoGame) -> None:
    player = make(kind)
    assert game.is_over
    decision = player.decide(Request(game))
    assert decision.report.visits == 20
    assert game.is_legal(BLACK, decision.move)
    player.start(Request(game, ponder=True))  # no move is to come after passes
    assert player.search.is_running == game.is_no_result
    player.start(Request(game))
    assert player.search.is_running


def test_no_move_is_found_where_none_can_be_stored(make: Make) -> None:
    player, game = make(cleanup=True), played()
    game.position["history_length"] = MAX_HISTORY - 1
    decision = player.decide(Request(game))
    assert (decision.move, decision.resign, decision.report) == (PASS, False, SearchReport(BLACK))


def test_where_no_move_is_left_a_player_passes(make: Make) -> None:
    player, game = make(), played()
    assert player.decide(Request(game, avoid=[PASS], allow=[PASS])).move == PASS
    assert player.decide(Request(game, avoid=square(5).points)).move == PASS


def test_nobody_passes_by_chance(make: Make) -> None:
    player, game = make(size=2, visits=300, temperature=100.0), played(size=2)
    report = player.decide(Request(game)).report
    assert PASS in [move.move for move in report.moves[1:]]
    assert PASS not in {player.decide(Request(game)).move for _ in range(100)}


def test_white_resigns_a_handicap_game_that_it_does_not_catch_up_in(make: Make) -> None:
    player, game = make("bare", size=9, resign_threshold=1.0), played(size=9)
    game.place_handicap(fixed_handicap(2, square(9)))
    game.play(WHITE, square(9).parse_vertex("A9"))
    answers = []
    for _ in range(10):
        game.play(BLACK, game.legal_moves()[30])
        answers.append(player.decide(Request(game)).resign)
        game.play(WHITE, PASS)
    assert answers == [False] * 8 + [True] * 2  # the first that may comes after 17 moves


def test_the_owners_at_the_end(make: Make, kind: str) -> None:
    player = make(kind)
    owners = player.final_ownership(played())
    assert owners.shape == (25,)
    assert (np.abs(owners) <= 1 + 1e-6).all()
    if kind == "network":
        return
    game = game_of(DECIDED, side=WHITE)
    stones = {point: color for color, point in game.stones()}
    for point, owner in zip(square(5).points, player.final_ownership(game), strict=True):
        if point in stones:
            assert owner > 0.9 if stones[point] == BLACK else owner < -0.9


def test_a_position_has_one_verdict_on_its_owners(make: Make) -> None:
    player, game = make("network", rules="japanese"), played("C3 pass pass")
    before = player.final_ownership(game)
    before[:] = 7.0  # a caller may change what it got
    found = player.final_ownership(game)
    player.decide(Request(game))
    assert (player.final_ownership(game) == found).all()
    for change in (
        lambda: game.set_komi(60.0),
        lambda: game.set_rules(PRESETS["aga"]),
        lambda: player.options.set("c_puct", 4.0),
        lambda: game.turn_to(WHITE),
        game.undo,
        player.clear,
    ):
        player.final_ownership(game)
        assert player._owners is not None, "the search before was whole"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(player, "_ownership", lambda *_: np.zeros(25, np.float32))
            change()
            assert not player.final_ownership(game).any()


def test_dead_stones_are_captured_before_passing(make: Make) -> None:
    board = """
    . X . X .
    X X X X X
    . X X O .
    X X X X X
    . X . X .
    """
    player, game = make("bare", visits=60), game_of(board)
    cleanup = replace(player.options, cleanup=True)
    for _ in range(2):
        decision = player.decide(Request(game, cleanup))
        assert decision.move != PASS
        assert PASS not in [move.move for move in decision.report.moves]
        play_all(game, "pass pass")
    assert player.decide(Request(game, cleanup, allow=[PASS])).move == PASS
    assert player.decide(Request(game)).report.visits >= 60  # the pass is tried again
    clean = game_of(board.replace("O", "."), side=WHITE)
    assert PASS in [move.move for move in player.decide(Request(clean, cleanup)).report.moves]


def test_a_pass_that_nothing_is_better_than_takes_no_time(make: Make) -> None:
    player, game = make("uniform", visits=None), game_of(DECIDED)
    clocks = {color: Clock.of(600.0) for color in (BLACK, WHITE)}
    decision = player.decide(Request(game, clocks=clocks))
    assert decision.move == PASS
    assert decision.report.seconds < 30.0  # of 48
    assert {move.move for move in decision.report.moves} == {PASS}
    free = replace(player.options, prune_useless_moves=False)
    assert len(player.decide(Request(game, free, limits=Limits(60), keep_tree=False)).report.moves) > 1


@pytest.mark.parametrize("left", [0.4, 10.0])
def test_cleaning_up_keeps_the_time_for_a_move(
    make: Make, kind: str, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    player, game = make(kind, visits=None, cleanup=True), played()
    now = [time.monotonic()]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(go, "time", clock)
    monkeypatch.setattr("yomi.engine.players.player.time", clock)
    budget = find_budget(Clock.of(left), moves_left(25, 0), player.options.lag + player.search.latency)
    looks: list[float] = []
    limits: list[Limits] = []

    def take(seconds: float) -> None:
        looks.append(seconds)
        now[0] += 0.05

    def rollouts(game: GoGame, count: int = 1000) -> Any:
        take(count / ROLLOUTS_PER_SECOND)
        return np.zeros(25, np.float32)

    def run(limits: Limits) -> SearchReport:
        assert limits.seconds is not None
        take(limits.seconds)
        return SearchReport(BLACK, ownership=np.zeros(25, np.float32))

    def start(given: Limits, *moves: Any) -> None:
        limits.append(given)
        begin(replace(given, playouts=20), *moves)

    begin = player.search.start
    monkeypatch.setattr(go, "ownership_by_rollouts", rollouts)
    monkeypatch.setattr(player.search, "run", run)
    monkeypatch.setattr(player.search, "start", start)
    clocks = {color: Clock.of(left) for color in (BLACK, WHITE)}
    assert player.decide(Request(game, clocks=clocks, start=now[0])).report.moves
    assert len(looks) == (budget.soft > 0.0)
    assert all(look <= CLEANUP_SHARE * budget.soft + 1e-6 for look in looks)
    assert limits[0].seconds is not None
    assert limits[0].seconds <= max(0.0, budget.hard - 0.05 * len(looks)) + 1e-6


def test_the_network_is_asked_without_a_search(make: Make, kind: str) -> None:
    player, game = make(kind), played("B4")
    if kind != "network":
        with pytest.raises(EvaluatorError, match="expected yomi to be started with --net"):
            player.evaluate(game, 0)
        return
    each = [player.evaluate(game, symmetry) for symmetry in range(8)]
    mean = player.evaluate(game, None)
    for raw in (*each, mean):
        assert raw.white_win + raw.white_loss + raw.no_result == pytest.approx(1.0, abs=1e-5)
        assert np.nansum(raw.policy) == pytest.approx(1.0, abs=1e-4)
        assert np.isnan(raw.policy[square(5).points.index(square(5).parse_vertex("B4"))])
        assert (np.abs(raw.white_ownership) <= 1).all()
    assert mean.white_lead == pytest.approx(np.mean([raw.white_lead for raw in each]), abs=1e-3)
    assert mean.policy == pytest.approx(np.mean([raw.policy for raw in each], axis=0), abs=1e-5, nan_ok=True)
    assert len({round(raw.white_lead, 4) for raw in each}) > 1
    # for either side
    game.turn_to(BLACK)
    black = player.evaluate(game, 0)
    assert black.white_lead != each[0].white_lead
    passed = played("B4")
    passed.play(BLACK, PASS)
    passed.turn_to(BLACK)
    assert player.evaluate(passed, 0).white_lead == pytest.approx(black.white_lead, abs=1e-4)
    assert player.evaluate(GoGame(square(9)), 0).policy.shape == (82,)  # another board is loaded
