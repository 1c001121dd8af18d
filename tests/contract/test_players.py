"""What players of all games owe to whoever asks them (yomi.engine.players.player, yomi.engine.players.request)."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest

from tests.contract.conftest import Make
from tests.fakes.evaluators import FaultyEvaluator, ScriptedEvaluator
from tests.waiting import in_background, wait_until
from yomi.engine.clock import Clock, Clocks
from yomi.engine.color import opponent
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.options import rows_for
from yomi.engine.players import player as players
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision, LoadingError, Request
from yomi.engine.search.types import Limits, SearchReport
from yomi.nets.errors import NetworkError

VISITS = 20


@pytest.fixture
def usual() -> dict[str, Any]:
    """Give the options of all players that are made."""
    return {"visits": VISITS, "precision": "fp32"}


@dataclass
class Table:
    """A player and a game that it is asked about."""

    player: Player[Any]
    game: Any

    def decide(self, **fields: Any) -> Decision:
        """Return the decision on a request with these fields."""
        return self.player.decide(Request(self.game, **fields))

    def report(self, **fields: Any) -> SearchReport:
        """Return the report of a decision."""
        return self.decide(**fields).report

    def seconds(self, **fields: Any) -> float:
        """Return the seconds that a decision takes."""
        begin = time.monotonic()
        assert self.report(**fields).moves
        return time.monotonic() - begin

    def search(self, visits: int, **fields: Any) -> SearchReport:
        """Search in the background until there are so many visits; return the report."""
        self.player.start(Request(self.game, **fields))
        wait_until(lambda: self.player.report().visits >= visits)
        self.player.stop()
        return self.player.report()

    def play(self, move: int | None = None) -> None:
        """Play a move; None for any."""
        self.game.push(self.game.legal_moves()[0] if move is None else move)

    def clocks(self, *times: float) -> Clocks:
        """Return clocks, of which the side's to move alone matters; main time, byo-yomi and increment are its own."""
        return {self.game.side_to_move: Clock.of(*times), opponent(self.game.side_to_move): Clock.of(0.01)}


@pytest.fixture
def sit(descriptor: Any, make: Make) -> Make:
    """Give what makes a table of a new game and a player: by its evaluator and options."""

    def seat(kind: str = "uniform", **values: Any) -> Table:
        player = make(kind, **values)
        return Table(player, descriptor.new_game(player.options))

    return seat


def module_of(player: Player[Any]) -> ModuleType:
    """Return the module of a game's player, where what it makes is replaced."""
    return sys.modules[type(player).__module__]


def test_settings_of_the_search_are_derived_when_options_change(sit: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table, derived = sit(), []
    derive = table.player._search_settings

    def count(*args: Any) -> Any:
        derived.append(args)
        return derive(*args)

    table.decide()
    monkeypatch.setattr(table.player, "_search_settings", count)
    table.decide()
    assert not derived
    table.player.options.c_puct = 3.25
    table.decide()
    table.decide()
    assert len(derived) == 1
    assert table.player.search.settings.c_puct == 3.25


def test_moves_are_legal_and_told(sit: Make, kind: str) -> None:
    table = sit(kind)
    game = table.game
    assert len(table.player.description.splitlines()) == 1
    for _ in range(6):
        before = list(game.moves), game.position.tobytes(), game.history.tobytes()
        decision = table.decide()
        assert (list(game.moves), game.position.tobytes(), game.history.tobytes()) == before
        assert decision.move in game.legal_moves()
        assert (decision.resign, decision.win, decision.note) == (False, False, "")
        report = decision.report
        assert (report.side_to_move, report.visits) == (game.side_to_move, VISITS)
        assert sum(move.visits for move in report.moves if move.symmetry_of is None) == VISITS - 1
        assert [move.order for move in report.moves] == list(range(len(report.moves)))
        assert all(0 <= each.winrate <= 1 for each in (report, *report.moves))
        assert decision.move == report.moves[0].move == report.moves[0].pv[0]
        assert decision.ponder == next(iter(report.moves[0].pv[1:]), None)
        assert report.deepest >= 1
        assert 0 < report.fullness < 1
        table.play(decision.move)


@pytest.mark.parametrize("visits", [1, 2, 30])
def test_avoid_and_allow_are_honoured(sit: Make, kind: str, visits: int) -> None:
    table = sit(kind, visits=visits)
    moves = table.game.legal_moves()
    for restrictions, left in (
        ({"allow": moves[3:6]}, moves[3:6]),
        ({"avoid": moves[:3]}, moves[3:]),
        ({"avoid": moves[1:]}, moves[:1]),
        ({"allow": moves[:2], "avoid": moves[1:]}, moves[:1]),
    ):
        decision = table.decide(**restrictions)
        assert decision.move in left
        for report in (decision.report, table.search(30, **restrictions)):
            assert {move.move for move in report.moves} <= set(left)
    # a tree that has searched all moves before
    best = table.search(100).moves[0].move
    assert table.decide(avoid=[best]).move != best
    assert table.decide(allow=[best]).move == best


def test_a_temperature_varies_the_first_moves(sit: Make) -> None:
    table = sit(visits=30, temperature=1.0, temperature_moves=1)
    assert len({table.decide().move for _ in range(12)}) > 3
    table.play()
    assert len({table.decide().move for _ in range(5)}) == 1


def test_the_least_of_all_limits_counts(sit: Make, kind: str) -> None:
    table = sit(kind, visits=None)
    for name in ("visits", "playouts"):
        for option, limit in ((20, None), (None, 20), (20, 30), (30, 20)):
            options = replace(table.player.options, **{name: option})
            report = table.report(options=options, limits=Limits(**{name: limit}), keep_tree=False)
            assert (report.visits, report.playouts) == (20, 20)
    for option, depth in ((3, None), (None, 3), (600, 3), (3, 600)):
        options = replace(table.player.options, depth=option)
        assert (
            table.report(options=options, limits=Limits(depth=depth), keep_tree=False).deepest >= 3
        )  # without it there is no end


@pytest.mark.parametrize("workers", [1, 2])
def test_seconds_are_kept(sit: Make, kind: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From when the player is asked. Without a limit there is one."""
    monkeypatch.setattr("yomi.engine.players.player.DEFAULT_SECONDS", 0.1)
    table = sit(kind, visits=None, workers=workers)
    for option, limit in ((0.1, None), (600.0, 0.1), (None, None)):
        table.player.options.seconds = option
        assert 0.09 < table.seconds(limits=Limits(seconds=limit), start=0.0) < 300.0


@pytest.mark.parametrize("workers", [1, 2])
def test_clocks_are_obeyed(sit: Make, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sit("bare", visits=None, workers=workers, lag=0.01)
    limits = seconds_of_searches(table, monkeypatch)
    for times, most in (((0.0, 0.3), 0.3), ((0.0,), 0.1), ((2.0,), 0.6), ((0.5, 0.0, 0.1), 0.5)):
        table.play()
        clocks = table.clocks(*times)
        assert table.report(clocks=clocks).moves
        # what has gone by before the player is asked counts
        assert table.report(clocks=clocks, start=time.monotonic() - 10).moves
        assert limits[-2] <= most
        assert limits[-1] <= 0.1


def seconds_of_searches(table: Table, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list that gets the limit in seconds of each search, of which only a few playouts are made."""
    limits: list[float] = []

    def start(given: Limits, *moves: Any) -> None:
        assert given.seconds is not None
        limits.append(given.seconds)
        begin(replace(given, playouts=20), *moves)

    begin = table.player.search.start
    monkeypatch.setattr(table.player.search, "start", start)
    return limits


def test_the_search_gets_no_more_than_the_clock_has(sit: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the machine has stood still for so long that a move was late it gets less."""
    table = sit(visits=None)
    limits = seconds_of_searches(table, monkeypatch)
    monkeypatch.setattr("yomi.engine.players.player.watch", lambda *_, **__: 0.0)
    for limit in (None, 600.0, 0.05):
        table.decide(clocks=table.clocks(20.0), limits=Limits(seconds=limit))
    monkeypatch.setattr("yomi.engine.players.player.watch", lambda *_, **__: 0.5)
    for _ in range(2):
        table.decide(clocks=table.clocks(20.0))
    quiet, wide, narrow, _, late = limits
    assert 0.5 < quiet < 20
    assert abs(wide - quiet) < 0.3
    assert narrow <= 0.05 + 1e-6  # a difference of times: rounding
    assert 0.6 * quiet < late < quiet


def test_reports_come_as_they_are_asked_for(sit: Make, kind: str) -> None:
    table, reports = sit(kind, visits=None, seconds=600.0), list[SearchReport]()

    def take(report: SearchReport) -> None:
        reports.append(report)
        if len(reports) == 3:
            request.stop()

    request = Request(table.game, on_report=take, interval=0.05, pv_length=1)
    begin = time.monotonic()
    reports.append(table.player.decide(request).report)
    elapsed = time.monotonic() - begin
    assert 4 <= len(reports) <= 1 + elapsed / 0.05
    assert [report.visits for report in reports] == sorted(report.visits for report in reports)
    assert max(len(move.pv) for report in reports for move in report.moves) == 2
    reports.clear()
    table.decide(limits=Limits(seconds=0.2), on_report=reports.append, first_report=0.02, interval=math.inf)
    assert len(reports) == 1


def test_what_a_report_raises_ends_the_search(sit: Make, kind: str) -> None:
    table = sit(kind, visits=None, seconds=600.0)

    def fail(_report: SearchReport) -> None:
        raise KeyError("nobody reads this")

    for ponder in (False, True):
        with pytest.raises(KeyError, match="nobody reads this"):
            table.decide(on_report=fail, interval=0.02, ponder=ponder)
        assert not table.player.search.is_running
        assert table.report(limits=Limits(visits=5), keep_tree=False).visits == 5


@pytest.mark.parametrize(("infinite", "ponder"), [(False, False), (True, False), (False, True), (True, True)])
def test_stop_is_obeyed_before_and_during_a_search(sit: Make, kind: str, infinite: bool, ponder: bool) -> None:
    table = sit(kind, visits=None, seconds=600.0, playouts=30 if infinite or ponder else None)
    table.play()
    for is_early in (True, False):
        request = Request(table.game, infinite=infinite, ponder=ponder)
        if is_early:
            request.stop()
        wait = in_background(table.player.decide, request)
        if not is_early:
            wait_until(lambda: table.player.report().visits > 50)
            request.stop()
        decision = wait()
        assert decision.report.moves
        assert decision.move in table.game.legal_moves()


def test_interrupt_ends_the_search_that_runs(sit: Make, kind: str) -> None:
    table = sit(kind, visits=None, seconds=600.0)
    wait = in_background(table.decide)
    wait_until(lambda: table.player.search.is_running)
    table.player.interrupt()
    assert wait().report.moves
    table.player.start(Request(table.game))
    table.player.interrupt()
    wait_until(lambda: not table.player.search.is_running)


def test_ponderhit_turns_pondering_into_a_move(sit: Make, kind: str) -> None:
    table = sit(kind, visits=None)
    table.play()
    for limit in ({"playouts": 50}, {"seconds": 0.01}):
        request = Request(table.game, replace(table.player.options, **limit), ponder=True, keep_tree=False)
        wait = in_background(table.player.decide, request)
        wait_until(lambda: table.player.search.is_running and table.player.report().playouts >= 100)
        request.ponderhit()
        decision = wait()  # the playouts made while pondering count
        assert decision.report.playouts >= 100
        assert decision.move in table.game.legal_moves()


def test_the_clock_counts_from_ponderhit_on(sit: Make) -> None:
    table = sit("bare", visits=None, lag=0.01)
    table.play()
    request = Request(table.game, ponder=True, clocks=table.clocks(0.0, 600.0))
    wait = in_background(table.player.decide, request)
    time.sleep(0.7)
    begin = time.monotonic()
    request.ponderhit(table.clocks(0.0, 0.6))
    assert wait().move in table.game.legal_moves()
    assert time.monotonic() - begin > 0.02  # no move is settled in the first tenth of its time


def test_a_search_in_the_background_runs_until_it_is_stopped(sit: Make, kind: str) -> None:
    table, visits = sit(kind, workers=2), list[int]()
    assert table.player.report() == SearchReport()

    def look() -> bool:
        visits.append(table.player.report().visits)
        return len(visits) > 3 and visits[-1] > 5 * VISITS

    table.player.start(Request(table.game))
    wait_until(look)
    table.player.stop()
    last = table.player.report()
    assert [*visits, last.visits] == sorted([*visits, last.visits])
    assert last.side_to_move == table.game.side_to_move
    time.sleep(0.05)
    table.player.stop()
    assert table.player.report().visits == last.visits
    # the next decision ends it by itself
    table.player.start(Request(table.game))
    assert table.decide().move in table.game.legal_moves()
    assert not table.player.search.is_running


def test_a_tree_is_kept_from_move_to_move(sit: Make, kind: str) -> None:
    table = sit(kind, visits=200)
    best = table.report().moves[0]
    table.play(best.move)
    kept = table.report()
    assert (kept.visits, kept.playouts) == (200, 200 - best.visits)
    for forget in (table.player.clear, lambda: table.player.new_game(table.game), table.game.undo):
        forget()
        assert table.report().playouts == 200
    assert table.report(keep_tree=False).playouts == 200
    # also after thinking in the opponent's time
    table.play()
    pondered = table.search(500, ponder=True, keep_tree=False)
    assert pondered.visits == pondered.playouts
    table.play(pondered.moves[0].move)
    report = table.report()
    assert report.visits - report.playouts == pondered.moves[0].visits


def test_options_of_a_request_do_not_outlive_it(sit: Make) -> None:
    table = sit(visits=50)
    search, narrow = table.player.search, replace(table.player.options, c_puct=0.01, fpu_reduction=2.0)
    narrow.visits, narrow.root_fpu_reduction = 40, 2.0
    narrow.seed, narrow.memory = 7, 2**25  # take effect with `load`
    wide = table.report(keep_tree=False)
    for _ in range(2):
        report = table.report(options=narrow, keep_tree=False)
        assert report.visits == 40
        assert len(report.moves) < len(wide.moves)
        assert len(table.report(keep_tree=False).moves) == len(wide.moves)
        table.search(50, options=narrow, keep_tree=False)
        assert (search.settings.seed, search.settings.memory) == (1, 2**24)
    assert table.player.search is search
    assert not table.player.needs_loading(table.game)


def test_every_live_option_may_be_changed(descriptor: Any, sit: Make, kind: str) -> None:
    table = sit(kind)
    options, legal = table.player.options, table.game.legal_moves()
    for row in rows_for(descriptor.name):
        if not row.live or row.name.startswith("human_"):  # needs a human-SL network: test_human_networks
            continue
        old, values = options.get(row.name), [*row.choices]
        if not values:
            values = [not old] if row.kind == "flag" else [row.check(row.low), row.check(row.high)]
        for value in (*values, old):
            options.set(row.name, value)
            if not table.player.needs_loading(table.game):
                assert table.decide(limits=Limits(playouts=10)).move in legal, (row.name, value)


def test_what_is_loaded(sit: Make, kind: str) -> None:
    """The seed, for one; what has it decides alike."""
    table, found = sit(kind, root_noise=0.5), []
    player, game = table.player, table.game
    for seed in (1, 7, 1):
        search, is_new = player.search, seed != player.options.seed
        player.options.seed = seed
        player.options.visits = 60
        assert player.needs_loading(game) == is_new
        player.new_game(game)
        assert player.report() == SearchReport()
        assert not player.needs_loading(game)
        assert (player.search is not search) == is_new
        assert player.search.latency > 0.0  # it is warmed up
        found.append([(move.move, move.visits) for move in table.report(limits=Limits(playouts=60)).moves])
    assert found[1] != found[2]
    player.options.seed = 7
    player.load(game)
    assert [(move.move, move.visits) for move in table.report(limits=Limits(playouts=60)).moves] == found[1]


@pytest.mark.parametrize(
    ("place", "error", "told"),
    [
        ("make_queue", EvaluatorError("the device is gone"), "the device is gone"),
        ("make_queue", NetworkError("no such file"), "no such file"),
        ("evaluate", EvaluatorError("the device is gone"), "the device is gone"),
        ("evaluate", RuntimeError("a fault of ours"), "a fault of ours"),
        (
            "Search",
            MemoryError("Unable to allocate\n14.9 TiB"),
            "memory .* and cache_size .*: not enough memory",
        ),
    ],
)
def test_what_cannot_be_loaded_leaves_what_was(
    sit: Make, place: str, error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluators: list[ScriptedEvaluator] = []

    def fail(*_: object) -> Any:
        raise error

    def queue(*_: object) -> InlineQueue:
        evaluators.append(ScriptedEvaluator(4, fail_at=3 if place == "evaluate" else 0))
        evaluators[-1].error = error
        return InlineQueue(evaluators[-1])

    table = sit()
    player, game = table.player, table.game
    table.decide()
    search, before = player.search, player.options
    player.options = changed = replace(before, seed=2)
    expected = RuntimeError if type(error) is RuntimeError else LoadingError
    with monkeypatch.context() as patch:
        patch.setattr(module_of(player), "make_queue", queue)
        if place != "evaluate":
            patch.setattr(players if place == "Search" else module_of(player), place, fail)
        for attempt in (lambda: player.load(game), lambda: player.new_game(game), sit):
            with pytest.raises(expected, match=told) as caught:
                attempt()
            assert "\n" not in str(caught.value)
    assert [each.closed_in is not None for each in evaluators] == ([] if place == "make_queue" else [True] * 3)
    assert player.needs_loading(game)
    player.options = before
    assert table.report().playouts == 0  # the visits of the first search still count
    assert player.search is search
    player.options = changed
    player.load(game)
    assert player.search is not search
    assert table.report().visits == VISITS


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"evaluator": "uniform", "net": "x.bin"}, "expected no --net"),
        ({"evaluator": "auto", "net": "missing"}, "missing"),
        ({"evaluator": "auto", "net": __file__}, "test_players"),
        ({"evaluator": "the other game's"}, "expected auto"),
    ],
)
def test_what_is_contradictory_or_missing_is_refused(descriptor: Any, make: Make, values: Any, told: str) -> None:
    if told == "expected auto":
        values = {"evaluator": "rollouts" if descriptor.default_evaluator == "material" else "material"}
    with pytest.raises(LoadingError, match=told) as caught:
        make(**values)
    assert "\n" not in str(caught.value)


def fail_in(evaluator: FaultyEvaluator, calls: int) -> None:
    """Let a call fail, counted from now on."""
    evaluator.faulty_calls = range(evaluator.calls + calls, evaluator.calls + calls + 1)


@pytest.fixture
def faulty(sit: Make, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Table, FaultyEvaluator]]:
    """Give a player whose evaluator fails, or takes as long, as the test wants."""
    evaluator = FaultyEvaluator(ScriptedEvaluator(1), "raise", range(0), seconds=60.0)
    monkeypatch.setattr(module_of(sit().player), "make_queue", lambda *_: InlineQueue(evaluator))
    yield sit(root_mate_search=0, symmetry="none"), evaluator
    evaluator.released.set()


def test_a_failure_is_told_unless_something_was_found(
    faulty: tuple[Table, FaultyEvaluator], caplog: pytest.LogCaptureFixture
) -> None:
    table, evaluator = faulty
    fail_in(evaluator, 1)
    with pytest.raises(RuntimeError, match="the device is gone"):
        table.decide()
    assert not caplog.records
    fail_in(evaluator, 10)
    decision = table.decide()
    assert decision.report.moves
    assert decision.move in table.game.legal_moves()
    assert [record.getMessage() for record in caplog.records] == ["the search ended early: the device is gone"]
    assert table.report().playouts == VISITS


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_a_failure_in_the_background_leaves_the_next_move(
    faulty: tuple[Table, FaultyEvaluator], noise: float, caplog: pytest.LogCaptureFixture
) -> None:
    table, evaluator = faulty
    table.player.options.root_noise = noise
    for end in (table.decide, table.decide, table.player.stop):
        fail_in(evaluator, 5)
        table.player.start(Request(table.game, keep_tree=False))
        assert table.player.search.wait(60)
        if end == table.player.stop:
            with pytest.raises(RuntimeError, match="the device is gone"):
                end()
        else:
            assert end().report.playouts == VISITS
    table.player.stop()
    assert len(caplog.records) == caplog.text.count("RuntimeError: the device is gone") == 2


@pytest.mark.parametrize("times", [(), (600.0,)])
def test_the_first_evaluation_is_waited_for(faulty: tuple[Table, FaultyEvaluator], times: tuple[float, ...]) -> None:
    table, evaluator = faulty
    while (favourite := table.decide(limits=Limits(2), keep_tree=False).move) == table.game.legal_moves()[0]:
        table.play()
    table.player.new_game(table.game)
    evaluator.fault = "hang"
    fail_in(evaluator, 1)
    clocks = table.clocks(*times) if times else None
    wait = in_background(lambda: table.decide(clocks=clocks, limits=Limits(2, seconds=0.01)))
    time.sleep(0.3)
    evaluator.released.set()
    decision = wait()
    assert decision.report.moves
    assert decision.move == favourite


def test_moves_in_a_row_that_look_lost_are_resigned(sit: Make) -> None:
    table = sit(resign_threshold=1.0, resign_moves=2)  # every move looks lost
    options = table.player.options

    def resignations(count: int) -> list[bool]:
        answers = []
        for _ in range(count):
            answers.append(table.decide().resign)
            assert table.decide().resign == answers[-1]  # asked twice for one move, a player has still lost it once
            table.play()
        return answers

    assert resignations(5) == [False, False, True, True, True]
    for infinite in (True, False):
        request = Request(table.game, infinite=infinite, ponder=not infinite)
        request.stop()
        assert not table.player.decide(request).resign
    assert not table.decide(options=replace(options, resign=False)).resign
    assert not table.decide(options=replace(options, resign_threshold=0.0)).resign  # it counts anew from here
    assert resignations(3) == [False, True, True]
    table.player.new_game(table.game)
    assert resignations(3) == [False, False, True]


def test_lost_games_are_resigned_and_won_ones_are_not(sit: Make, lopsided: Callable[[bool], Any]) -> None:
    table = sit("bare", resign_threshold=0.1, resign_moves=1, playouts=60, visits=None)
    for is_lost in (True, False):
        table.game = lopsided(is_lost)
        decision = table.decide()
        assert decision.resign == is_lost
        assert (decision.report.winrate < 0.5) == is_lost
