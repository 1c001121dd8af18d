"""What every player of Go owes to the protocols (engine.players.go_base.GoThinker)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.clock import TimeSettings, TimeSystem
from engine.evaluators.base import EvaluatorError
from engine.evaluators.queue import InlineQueue
from engine.games.go.game import GoGame
from engine.games.go.handicap import fixed_handicap
from engine.games.go.rules import PRESETS
from engine.games.go.vertex import board_points, parse_vertex
from engine.options import TABLE, Options, rows_for
from engine.players import go
from engine.players.go import CLEANUP_SHARE, ROLLOUTS_A_SECOND, GoPlayer
from engine.players.go_time import Clock
from engine.search.limits import Limits
from engine.search.report import SearchReport
from engine.search.reports import root_priors
from native.go.board import BLACK, PASS, WHITE
from native.go.rules import MAX_HISTORY
from tests.contract.networks import write_small_network
from tests.fakes.evaluators import ScriptedEvaluator
from tests.unit.go_boards import game_of
from tests.waiting import wait_until

KINDS = ["uniform", "rollouts", "network"]
Make = Callable[..., GoPlayer]

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
    game = GoGame(9, PRESETS["chinese"])
    words = TRIPLE_KO.split()
    colors = (BLACK if word == "B" else WHITE for word in words[::2])
    game.set_position(list(zip(colors, (parse_vertex(word, 9) for word in words[1::2]), strict=True)))
    for vertex in 2 * ["A3", "A7", "J3", "A2", "A8", "J2"]:
        game.play(game.side_to_move, parse_vertex(vertex, 9))
    return game


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_network(tmp_path_factory.mktemp("net"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def make(network: Path) -> Iterator[Make]:
    """Give what makes players, by the kind of their evaluator; all are closed at the end."""
    made: list[GoPlayer] = []

    def maker(kind: str = "uniform", **options: Any) -> GoPlayer:
        judge = {"net": str(network), "device": "cpu"} if kind == "network" else {"evaluator": kind}
        chosen = {"size": 5, "memory": 2**24, "cache_size": 2**20, "workers": 1, "seed": 1, "visits": 20}
        made.append(GoPlayer(Options(**{**chosen, **judge, **options})))
        return made[-1]

    yield maker
    for player in made:
        player.close()
        player.close()  # twice is harmless


def play_on(player: GoPlayer, moves: int) -> None:
    """Let the player play both sides."""
    for _ in range(moves):
        color = player.game.side_to_move
        player.game.play(color, player.genmove(color).move)


@pytest.mark.parametrize("size", [2, 3, 7, 13, 19])
def test_moves_are_legal_on_every_board(make: Make, kind: str, size: int) -> None:
    player = make(kind, size=size, visits=12)
    assert player.description
    play_on(player, 6)
    # out of turn
    color = 3 - player.game.side_to_move
    move = player.genmove(color).move
    assert player.game.is_legal(color, move)


def test_a_game_that_passes_have_ended_is_played_on(make: Make, kind: str) -> None:
    player = make(kind)
    for color in (BLACK, WHITE):
        player.game.play(color, PASS)
    assert player.game.is_over
    decision = player.genmove(BLACK)
    assert decision.report.visits == 20
    player.game.play(BLACK, decision.move)
    player.ponder()
    assert player.search.is_running is not player.game.is_over
    player.stop()


def test_a_game_without_result_is_played_on(make: Make, kind: str) -> None:
    player = make(kind, size=9)
    player.game = triple_ko()
    assert player.game.is_no_result
    decision = player.genmove(BLACK)
    assert decision.report.visits == 20
    assert player.game.is_legal(BLACK, decision.move)
    player.ponder()
    assert player.search.is_running
    player.stop()


def test_no_move_is_found_where_none_can_be_stored(make: Make) -> None:
    player = make()
    player.game.position["history_length"] = MAX_HISTORY - 1
    decision = player.genmove(BLACK, cleanup=True)
    assert (decision.move, decision.resign) == (PASS, False)


def test_a_search_reports_on_its_decision(make: Make, kind: str) -> None:
    player = make(kind)
    report = player.genmove(BLACK).report
    assert report.side_to_move == BLACK
    assert report.visits == 20
    assert 0 <= report.winrate <= 1
    assert sum(move.visits for move in report.moves) == 19
    assert [move.order for move in report.moves] == list(range(len(report.moves)))
    assert report.ownership is None or report.ownership.shape == (25,)


@pytest.mark.parametrize("visits", [1, 2, 30])
def test_avoid_and_allow_are_honoured(make: Make, kind: str, visits: int) -> None:
    player = make(kind, visits=visits)
    points = board_points(5)
    assert player.genmove(BLACK, allow=points[3:6]).move in points[3:6]
    assert player.genmove(BLACK, avoid=points).move == PASS
    assert player.genmove(BLACK, avoid=[PASS, *points[1:]]).move == points[0]
    # a tree that has searched all moves before
    player.start_analysis(BLACK)
    wait_until(lambda: player.report().visits >= 100)
    player.stop()
    best = player.report().moves[0].move
    assert player.genmove(BLACK, avoid=[best], limits=Limits(visits=1)).move != best
    assert player.genmove(BLACK, allow=[best]).move == best
    assert player.genmove(BLACK, avoid=[best, PASS], allow=[best, PASS]).move == PASS


def test_lost_games_are_resigned_after_some_moves(make: Make) -> None:
    player = make("rollouts", komi=90.0, resign_moves=3, resign_threshold=0.1)

    def resignations(count: int) -> list[bool]:
        answers = []
        for _ in range(count):
            decision = player.genmove(BLACK)
            answers.append(decision.resign)
            player.game.play(BLACK, parse_vertex("pass", 5) if decision.move == PASS else decision.move)
            white = player.genmove(WHITE)
            assert not white.resign
            player.game.play(WHITE, PASS if white.move == PASS else white.move)
            if player.game.is_over:
                break
        return answers

    assert resignations(4) == [False, False, True, True]
    # asked twice for one move, a player has still lost it once
    player.new_game()
    player.game.set_position([])
    assert [player.genmove(BLACK).resign for _ in range(4)] == [False] * 4
    player.new_game()
    player.set_option("resign", False)
    assert resignations(4) == [False] * 4
    player.new_game()
    player.game.set_position([])
    player.set_option("resign", True)
    player.game.set_komi(-90.0)
    assert not player.genmove(BLACK).resign


@pytest.mark.parametrize(("size", "stones"), [(19, 9), (9, 2), (9, 4)])
def test_white_does_not_resign_a_handicap_game_early(make: Make, size: int, stones: int) -> None:
    player = make("rollouts", size=size, visits=4, resign_threshold=1.0)  # every move counts as lost
    player.game.place_handicap(fixed_handicap(stones, size))
    for _ in range(4):
        assert not player.genmove(WHITE).resign
        for color in (WHITE, BLACK):
            player.game.play(color, player.game.legal_moves()[0])


def test_white_resigns_a_handicap_game_that_it_does_not_catch_up_in(make: Make) -> None:
    player = make("rollouts", size=9, resign_threshold=1.0)
    player.game.place_handicap(fixed_handicap(2, 9))
    player.game.play(WHITE, parse_vertex("A9", 9))
    answers = []
    for _ in range(10):
        player.game.play(BLACK, player.game.legal_moves()[30])
        answers.append(player.genmove(WHITE).resign)
        player.game.play(WHITE, PASS)
    assert answers == [False] * 8 + [True] * 2  # the first that may comes after 17 moves


@pytest.mark.parametrize("workers", [1, 2])
def test_seconds_for_a_move_are_kept(make: Make, kind: str, workers: int) -> None:
    player = make(kind, visits=None, seconds=0.01, workers=workers, size=9)
    player.genmove(BLACK)  # whatever is loaded late is loaded
    begin = time.perf_counter()
    for _ in range(3):
        decision = player.genmove(BLACK)
        assert decision.report.moves
    assert time.perf_counter() - begin < 60  # without them it has no end


def test_a_clock_is_obeyed(make: Make, kind: str) -> None:
    player = make(kind, visits=None, lag=0.01, size=9)
    player.genmove(BLACK, limits=Limits(visits=5))
    for settings in (
        TimeSettings(TimeSystem.ABSOLUTE, 2.0),
        TimeSettings(TimeSystem.BYOYOMI, 0.0, 0.1, 5),
        TimeSettings(TimeSystem.FISCHER, 0.5, increment=0.05),
        TimeSettings(TimeSystem.ABSOLUTE, 0.0),
    ):
        player.clock.set(settings)
        for color in (BLACK, WHITE):
            player.clock.start(color)
            budget = player.clock.budget(color, 81, 0, 0.01)
            assert budget is not None
            begin = time.perf_counter()
            decision = player.genmove(color)
            assert time.perf_counter() - begin < budget.hard + 60  # without it, it has no end
            assert decision.report.moves
            player.clock.stop()


def test_a_late_move_does_not_take_the_time_of_the_rest(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    player = make("uniform", visits=None, size=9)
    limits: list[Limits] = []

    def start(given: Limits, **keywords: Any) -> None:
        limits.append(given)
        begin(replace(given, playouts=20), **keywords)

    begin = player.search.start
    monkeypatch.setattr(player.search, "start", start)
    monkeypatch.setattr(go, "watch", lambda *_, **__: 0.5)  # the machine stood still for so long
    for _ in range(2):
        player.clock.set(TimeSettings(TimeSystem.ABSOLUTE, 20.0))
        player.clock.start(BLACK)
        player.genmove(BLACK)
    quiet, late = (each.seconds for each in limits)
    assert quiet is not None
    assert late is not None
    assert 0.8 * quiet < late < quiet


def test_pondering_helps_the_next_move(make: Make, kind: str) -> None:
    player = make(kind)
    player.game.play(BLACK, parse_vertex("C3", 5))
    player.ponder()
    wait_until(lambda: player.report().visits >= 200)
    # the opponent's move comes while the player ponders
    player.stop()
    visits = player.report().visits
    assert visits >= 200
    reply = player.report().moves[0]
    player.game.play(WHITE, reply.move)
    report = player.genmove(BLACK).report
    assert report.visits >= min(reply.visits, 20)
    assert report.visits - report.playouts == reply.visits
    # no move is to come in a game that passes have ended
    for color in (BLACK, WHITE):
        player.game.play(color, PASS)
    player.ponder()
    assert not player.search.is_running


def test_genmove_ends_pondering_by_itself(make: Make) -> None:
    player = make()
    player.ponder()
    assert player.genmove(BLACK).move in [*board_points(5), PASS]
    assert not player.search.is_running


def test_analysis_runs_until_it_is_stopped(make: Make, kind: str) -> None:
    player = make(kind, workers=2)
    assert player.report().moves == ()
    player.start_analysis(WHITE, avoid=[PASS])
    seen: list[SearchReport] = []

    def look() -> bool:
        seen.append(player.report())
        return len(seen) > 3 and seen[-1].visits >= 50

    wait_until(look)
    player.stop()
    assert [report.visits for report in seen] == sorted(report.visits for report in seen)
    last = player.report()
    assert last.visits >= seen[-1].visits
    assert last.side_to_move == WHITE
    assert PASS not in [move.move for move in last.moves]
    time.sleep(0.05)
    assert player.report().visits == last.visits
    player.stop()


def test_analysis_hides_the_moves_before_and_moves_do_not(make: Make) -> None:
    priors = {}
    for hides in (True, False):
        player = make("network", analysis_ignore_pre_root_history=hides, symmetry="none", precision="fp32")
        for vertex in ("C3", "C4", "B3", "B4"):
            player.game.play(player.game.side_to_move, parse_vertex(vertex, 5))
        player.start_analysis(BLACK)
        wait_until(lambda player=player: player.report().visits >= 10)  # type: ignore[misc]
        player.stop()
        priors["analysis", hides] = root_priors(player.search.tree)
        kept = player.report().visits
        report = player.genmove(BLACK, limits=Limits(playouts=5)).report
        assert report.visits == (5 if hides else kept + 5)  # another tree, or the same
        priors["move", hides] = root_priors(player.search.tree)
    assert priors["move", True] == priors["move", False] == priors["analysis", False]
    assert priors["analysis", True] != priors["analysis", False]
    shown = make("network", ignore_pre_root_history=True, analysis_ignore_pre_root_history=True)
    shown.genmove(BLACK)
    shown.start_analysis(BLACK)
    shown.stop()
    assert shown.report().visits >= 20  # the same tree


def test_reports_during_a_move(make: Make, kind: str) -> None:
    player = make(kind, visits=None, seconds=600.0)
    reports: list[SearchReport] = []

    def interrupt(report: SearchReport) -> None:
        reports.append(report)
        if len(reports) == 3:
            player.interrupt()

    begin = time.perf_counter()
    player.genmove(BLACK, on_report=interrupt, interval=0.05)
    assert 3 <= len(reports) <= (time.perf_counter() - begin) / 0.05

    def fail(_report: SearchReport) -> None:
        raise KeyError("nobody reads this")

    with pytest.raises(KeyError, match="nobody reads this"):
        player.genmove(BLACK, on_report=fail, interval=0.02)
    assert not player.search.is_running
    assert player.genmove(BLACK, limits=Limits(visits=5)).report.moves


def test_interrupt_ends_a_move(make: Make, kind: str) -> None:
    player = make(kind, visits=None, seconds=600.0)
    timers: list[threading.Timer] = []

    def interrupt(_report: SearchReport) -> None:
        if not timers:
            timers.append(threading.Timer(0.1, player.interrupt))
            timers[0].start()

    begin = time.perf_counter()
    decision = player.genmove(BLACK, on_report=interrupt, interval=0.05)
    assert time.perf_counter() - begin < 60
    assert decision.report.moves


def test_an_interrupt_before_the_search_is_not_lost(make: Make, kind: str) -> None:
    player = make(kind, visits=None, seconds=600.0)
    player.interrupt()
    begin = time.perf_counter()
    assert player.genmove(BLACK, is_stopped=lambda: True).report.moves
    assert time.perf_counter() - begin < 60


def test_the_owners_at_the_end(make: Make, kind: str) -> None:
    player = make(kind)
    owners = player.final_ownership()
    assert owners.shape == (25,)
    assert (np.abs(owners) <= 1 + 1e-6).all()
    if kind == "network":
        return
    player.game = game_of(DECIDED, side=WHITE)
    stones = {point: color for color, point in player.game.stones()}
    owners = player.final_ownership()
    for point, owner in zip(board_points(5), owners, strict=True):
        if point in stones:
            assert owner > 0.9 if stones[point] == BLACK else owner < -0.9


def test_dead_stones_are_captured_before_passing(make: Make) -> None:
    board = """
    . X . X .
    X X X X X
    . X X O .
    X X X X X
    . X . X .
    """
    player = make("rollouts", visits=60)
    player.game = game_of(board)
    decision = player.genmove(BLACK, cleanup=True)
    assert decision.move != PASS
    for color in (BLACK, WHITE):
        player.game.play(color, PASS)
    assert player.genmove(BLACK, cleanup=True).move != PASS
    player.set_option("cleanup", True)
    assert player.genmove(BLACK).move != PASS
    player.game = game_of(board.replace("O", "."))
    assert player.genmove(WHITE, cleanup=True).move in [*board_points(5), PASS]


@pytest.mark.parametrize("left", [0.4, 10.0])
def test_cleaning_up_keeps_the_time_for_a_move(
    make: Make, kind: str, left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = make(kind, visits=None, cleanup=True)
    now = [time.monotonic()]
    monkeypatch.setattr(go, "time", SimpleNamespace(monotonic=lambda: now[0]))
    player.clock = Clock(lambda: now[0])
    player.clock.set(TimeSettings(TimeSystem.ABSOLUTE, left))
    budget = player.clock.budget(BLACK, 25, 0, player.options.lag + player.search.latency)
    assert budget is not None
    looks: list[float] = []
    limits: list[Limits] = []

    def take(seconds: float) -> None:
        looks.append(seconds)
        now[0] += 0.05

    def rollouts(game: GoGame, count: int = 1000) -> Any:
        take(count / ROLLOUTS_A_SECOND)
        return np.zeros(25, np.float32)

    def run(limits: Limits) -> SearchReport:
        assert limits.seconds is not None
        take(limits.seconds)
        return replace(player.search.report(), ownership=np.zeros(25, np.float32))

    def start(given: Limits, **keywords: Any) -> None:
        limits.append(given)
        begin(replace(given, playouts=20), **keywords)

    begin = player.search.start
    monkeypatch.setattr(go, "ownership_by_rollouts", rollouts)
    monkeypatch.setattr(player.search, "run", run)
    monkeypatch.setattr(player.search, "start", start)
    player.clock.start(BLACK)
    assert player.genmove(BLACK).report.moves
    assert len(looks) == (budget.soft > 0.0)
    assert all(look <= CLEANUP_SHARE * budget.soft + 1e-6 for look in looks)
    assert limits[0].seconds is not None
    assert limits[0].seconds <= max(0.0, budget.hard - 0.05 * len(looks)) + 1e-6


OTHER_VALUES: dict[str, Any] = {
    "visits": 15,
    "playouts": 10,
    "seconds": 0.05,
    "symmetry": "average",
    "root_noise": 0.25,
    "seed": 4,
    "rollout_weight": 0.5,
}


@pytest.mark.parametrize("name", [row.name for row in rows_for("go") if row.live])
def test_every_live_option_can_be_set(make: Make, kind: str, name: str) -> None:
    player = make(kind)
    player.genmove(BLACK)
    row = TABLE[name]
    old = player.options.get(name)
    if name in OTHER_VALUES:
        values = [OTHER_VALUES[name]]
    elif row.kind == "flag":
        values = [not old]
    else:
        values = [row.check(row.low), row.check(row.high)]
    if name == "rollout_weight" and kind != "network":
        with pytest.raises(EvaluatorError, match="expected evaluator auto or onnx"):
            player.set_option(name, values[0])
        values = []
    for each in (*values, old):
        player.set_option(name, each)
        assert player.options.get(name) == each
        decision = player.genmove(BLACK, limits=Limits(playouts=15))
        assert player.game.is_legal(BLACK, decision.move)
        assert decision.report.playouts == 15


def test_the_seed_decides(make: Make) -> None:
    player = make("rollouts", visits=60, size=9)
    found = []
    for seed in (5, 6, 5):
        player.set_option("seed", seed)
        found.append([(move.move, move.visits) for move in player.genmove(BLACK).report.moves])
    assert found[0] == found[2] != found[1]


def test_a_temperature_varies_the_moves(make: Make) -> None:
    player = make("uniform", visits=30, temperature=1.0, temperature_moves=1)
    assert len({player.genmove(BLACK).move for _ in range(12)}) > 3
    player.game.play(BLACK, parse_vertex("C3", 5))
    assert len({player.genmove(WHITE).move for _ in range(5)}) == 1


def test_other_boards_and_rules(make: Make, kind: str) -> None:
    player = make(kind)
    player.genmove(BLACK)
    for size in (9, 5, 13):
        player.game = GoGame(size, PRESETS["chinese"], 6.5)
        report = player.genmove(BLACK).report
        assert report.visits == 20
        assert player.final_ownership().shape == (size * size,)
    player.game.set_rules(PRESETS["japanese"])
    assert player.genmove(BLACK).report.visits == 20
    player.game.set_komi(-3.5)
    report = player.genmove(BLACK).report
    assert (report.visits, report.playouts) == (20, 20)
    player.clear_cache()
    player.new_game()
    assert player.genmove(BLACK).report.playouts == 20


def test_a_new_game_loads_what_its_board_needs(make: Make, kind: str) -> None:
    player = make(kind)
    player.game = GoGame(9, PRESETS["tromp-taylor"], 6.5)
    player.new_game()
    search = player.search
    assert search.spec.policy_size == 82
    player.game.set_rules(PRESETS["aga"])  # which differ in nothing that an evaluator is made for
    player.genmove(BLACK)
    assert player.search is search
    player.game.set_rules(PRESETS["japanese"])
    player.prepare()
    assert player.search is not search
    search = player.search
    player.genmove(BLACK)
    assert player.search is search


def test_a_board_that_cannot_be_had_leaves_the_tree(make: Make, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EvaluatorError("not for this board")

    player = make(kind)
    player.genmove(BLACK)
    game = player.game
    player.game = GoGame(13, PRESETS["tromp-taylor"], 6.5)
    with monkeypatch.context() as patch:
        patch.setattr(go, "make_queue", fail)
        with pytest.raises(EvaluatorError):
            player.new_game()
    player.game = game
    assert player.genmove(BLACK).report.playouts == 0  # the visits of the first search still count


def test_a_board_that_memory_does_not_suffice_for_is_tried_again(
    make: Make, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[InlineQueue] = []

    def fail(_spec: object, queue: InlineQueue, _settings: object) -> None:
        monkeypatch.setattr(queue, "close", lambda: closed.append(queue))
        raise MemoryError

    player = make(kind)
    player.game = GoGame(9, PRESETS["tromp-taylor"], 6.5)
    with monkeypatch.context() as patch:
        patch.setattr(go, "Search", fail)
        with pytest.raises(MemoryError):
            player.prepare()
    assert len(closed) == 1
    player.prepare()
    assert player.search.spec.policy_size == 82
    assert player.genmove(BLACK).report.visits == 20


def test_another_board_is_warmed_up_for_before_a_clock_runs(make: Make) -> None:
    player = make("rollouts", size=9)
    first = player.search
    assert first.latency > 0.0
    player.game = GoGame(13, PRESETS["tromp-taylor"], 6.5)
    player.new_game()
    assert player.search is not first
    assert player.search.latency > 0.0


def test_what_cannot_evaluate_is_closed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluators: list[ScriptedEvaluator] = []

    def broken(*_: object) -> InlineQueue:
        evaluators.append(ScriptedEvaluator(4, fail_at=3))
        return InlineQueue(evaluators[-1])

    player = make()
    player.genmove(BLACK)
    game = player.game
    player.game = GoGame(13, PRESETS["tromp-taylor"], 6.5)
    with monkeypatch.context() as patch:
        patch.setattr(go, "make_queue", broken)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="the device is gone"):
                player.new_game()
        with pytest.raises(RuntimeError, match="the device is gone"):
            make()
    assert [evaluator.closed_in is not None for evaluator in evaluators] == [True] * 3
    player.game = game
    assert player.genmove(BLACK).report.playouts == 0  # the old search still counts


def test_an_option_whose_evaluator_cannot_be_had_stays(make: Make, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    player = make(kind)

    def fail(*_: object) -> None:
        raise EvaluatorError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(go, "make_queue", fail)
        for name, value in OTHER_VALUES.items():
            if name in ("seed", "rollout_weight"):
                before = player.options.get(name)
                with pytest.raises(EvaluatorError):
                    player.set_option(name, value)
                assert player.options.get(name) == before
    assert player.genmove(BLACK).report.visits == 20


def test_a_tree_is_kept_from_move_to_move(make: Make, kind: str) -> None:
    player = make(kind, visits=200)
    report = player.genmove(BLACK).report
    line = report.moves[0].pv
    player.game.play(BLACK, line[0])
    kept = player.genmove(WHITE).report
    assert kept.visits == 200
    assert kept.visits - kept.playouts == report.moves[0].visits
    player.game.undo()
    assert player.genmove(BLACK).report.playouts == 200


def test_the_network_is_asked_without_a_search(make: Make, kind: str) -> None:
    player = make(kind)
    player.game.play(BLACK, parse_vertex("B4", 5))
    if kind != "network":
        with pytest.raises(EvaluatorError, match="expected yomi to be started with --net"):
            player.evaluate(0)
        return
    each = [player.evaluate(symmetry) for symmetry in range(8)]
    mean = player.evaluate(None)
    for raw in (*each, mean):
        assert raw.white_win + raw.white_loss + raw.no_result == pytest.approx(1.0, abs=1e-5)
        assert np.nansum(raw.policy) == pytest.approx(1.0, abs=1e-4)
        assert np.isnan(raw.policy[board_points(5).index(parse_vertex("B4", 5))])
        assert (np.abs(raw.white_ownership) <= 1).all()
    assert mean.white_lead == pytest.approx(np.mean([raw.white_lead for raw in each]), abs=1e-3)
    assert mean.policy == pytest.approx(np.mean([raw.policy for raw in each], axis=0), abs=1e-5, nan_ok=True)
    assert len({round(raw.white_lead, 4) for raw in each}) > 1


def test_the_network_is_asked_for_either_side(make: Make) -> None:
    player = make("network")
    player.game.play(BLACK, parse_vertex("B4", 5))
    white = player.evaluate(0, color=WHITE)
    assert white.white_lead == player.evaluate(0).white_lead
    black = player.evaluate(0, color=BLACK)
    assert black.white_lead != white.white_lead
    assert player.game.side_to_move == WHITE
    player.game.play(BLACK, PASS)
    player.game.turn_to(BLACK)
    assert player.evaluate(0).white_lead == pytest.approx(black.white_lead, abs=1e-4)


def test_the_network_is_told(make: Make, kind: str) -> None:
    model = make(kind).model
    if kind != "network":
        assert model is None
        return
    assert model is not None
    assert model.version >= 8
    assert model.batch_size >= 1
    assert model.precision in ("fp32", "int16")


def test_a_report_may_be_asked_for_at_any_time(make: Make, kind: str) -> None:
    player = make(kind)
    for change in (
        lambda: None,
        lambda: player.genmove(BLACK),
        player.clear_cache,
        player.new_game,
        lambda: player.set_option("rollout_weight", 0.5 if kind == "network" else 0.0),
        lambda: player.set_option("seed", 3),
        lambda: setattr(player, "game", GoGame(9)),
        player.new_game,
    ):
        change()
        report = player.report()
        assert (report.visits > 0) == (len(report.moves) > 0)
    assert player.genmove(BLACK).report.visits == 20


@pytest.mark.parametrize(
    "options",
    [
        {"evaluator": "uniform", "net": "x.bin"},
        {"evaluator": "material"},
        {"evaluator": "rollouts", "rollout_weight": 0.5},
    ],
)
def test_contradictory_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(EvaluatorError, match=r"expected|leave out"):
        GoPlayer(Options(size=5, memory=2**22, **options))
