"""Requests, when a search on a clock has its answer, and warming up."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.unit.trees import check_tree, new_game, new_search
from yomi.engine.clock import Budget, Clock
from yomi.engine.color import BLACK, WHITE
from yomi.engine.players.request import Request
from yomi.engine.players.time_management import WARM_UP, is_settled, warm_up
from yomi.engine.search import search as search_module
from yomi.engine.search.types import Limits, MoveReport, SearchReport
from yomi.native.tree.arrays import Batch

PLAN = Budget(start=0.0, soft=10.0, hard=30.0)


def report_of(*visits: int, lost: int = 0) -> SearchReport:
    """Return a report of moves that were visited so often; before them, one with `lost` visits is proven to lose."""
    moves = [MoveReport(number, each) for number, each in enumerate(visits, 1)]
    if lost:
        moves.append(MoveReport(99, lost, proven=-1))
    total = sum(visits) + lost
    return SearchReport(visits=total + 1, playouts=total, moves=tuple(moves))


def test_a_request_changes_while_it_is_answered() -> None:
    game, woken = new_game(), []
    clocks = {BLACK: Clock.of(5.0), WHITE: Clock()}
    request = Request(game, ponder=True)
    request.listen(lambda: woken.append(1))
    assert (request.is_pondering, request.clock) == (True, None)
    assert not request.wait(0.01)
    request.ponderhit(clocks, at=7.0)
    assert request.wait(0)
    assert (request.start, request.is_pondering, request.is_stopped) == (7.0, False, False)
    assert request.clock == Clock.of(5.0)
    game.turn_to(WHITE)
    assert request.clock is None  # of no limit
    request.ponderhit()
    assert (request.clocks, request.start > 7.0) == (clocks, True)
    request.stop()
    assert request.is_stopped
    assert len(woken) == 3


def test_no_change_reaches_a_player_that_has_stopped_listening() -> None:
    request, inside, may_end, woken = Request(new_game()), threading.Event(), threading.Event(), []

    def wake() -> None:
        inside.set()
        may_end.wait(20)
        woken.append(1)

    request.listen(wake)
    stopper, listener = threading.Thread(target=request.stop), threading.Thread(target=request.listen, args=[None])
    stopper.start()
    assert inside.wait(20)
    listener.start()
    listener.join(0.05)
    assert listener.is_alive(), "the call has not returned"
    may_end.set()
    stopper.join()
    listener.join()
    request.stop()
    assert woken == [1]


@pytest.mark.parametrize("lost", [0, 36_000])
def test_level_moves_are_not_settled_before_their_time(lost: int) -> None:
    report = report_of(7_000, 6_900, lost=lost)
    assert not is_settled(report, 0.0, 7.0, PLAN)
    assert is_settled(report, 0.0, 10.0, PLAN)


@pytest.mark.parametrize("lost", [0, 36_000])
def test_a_leader_that_is_not_the_most_visited_is_not_settled(lost: int) -> None:
    assert not is_settled(report_of(6_900, 7_000, lost=lost), 0.0, 10.0, PLAN)


def test_a_lead_that_cannot_be_caught_up_with_is_settled() -> None:
    assert is_settled(report_of(9_000, 100), 0.0, 7.0, PLAN)
    assert not is_settled(report_of(9_000, 100), 0.0, 0.5, PLAN)  # too early to know


def test_alpha_beta_is_not_settled_by_its_nodes() -> None:
    report = replace(report_of(9_000, 100), depth=12)
    assert not is_settled(report, 0.0, 7.0, PLAN)
    assert is_settled(report, 0.0, 10.0, PLAN)
    # Of several lines the best may have fewer nodes than another.
    assert is_settled(replace(report_of(100, 9_000), depth=12), 0.0, 10.0, PLAN)
    assert not is_settled(replace(report_of(100, 9_000), depth=12), 0.0, 7.0, PLAN)


def test_alpha_beta_ends_after_its_share_of_the_time() -> None:
    report = replace(report_of(9_000, 100), depth=12, time_share=0.6)
    assert not is_settled(report, 0.0, 5.9, PLAN)
    assert is_settled(report, 0.0, 6.0, PLAN)
    assert not is_settled(report, 0.0, 9.1, replace(PLAN, free=8.0)), "time that would be lost is used first"
    assert is_settled(report, 0.0, 9.2, replace(PLAN, free=8.0))
    hesitant = replace(report, time_share=2.0)
    assert not is_settled(hesitant, 0.0, 19.0, PLAN)
    assert not is_settled(hesitant, 0.0, 9.9, replace(PLAN, free=15.0)), "a limit of seconds within the byo-yomi"
    assert is_settled(hesitant, 0.0, 10.0, replace(PLAN, free=15.0))


def test_a_single_move_is_settled_once_no_other_can_catch_up() -> None:
    assert is_settled(report_of(500), 0.0, 7.0, PLAN)
    assert not is_settled(report_of(500), 0.0, 3.0, PLAN)
    assert not is_settled(report_of(500, lost=9_000), 0.0, 7.0, PLAN)
    assert is_settled(report_of(500, lost=9_000), 0.0, 10.0, PLAN)
    assert not is_settled(report_of(), 0.0, 10.0, PLAN)


@pytest.mark.parametrize("rows", [1, 4])
def test_the_warm_up_tells_the_latency_of_full_batches(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row takes a second, and loading five, of a clock that only they move."""
    seconds = [0.0]

    class Loading(ScriptedEvaluator):
        def evaluate(self, batch: Batch, rows: int) -> None:
            super().evaluate(batch, rows)
            seconds[0] += rows + (5.0 if self.calls == 1 else 0.0)

    clock = SimpleNamespace(perf_counter=lambda: seconds[0], monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(search_module, "time", clock)
    search = new_search(Loading(rows))
    game = new_game()
    warm_up(search, game)
    assert search.latency == rows
    assert search.root_visits == 0
    assert seconds[0] <= 5.0 + WARM_UP + 1 + rows


@pytest.mark.parametrize("batches_in_flight", [1, 2])
def test_the_warm_up_has_a_full_batch_for_each_worker(batches_in_flight: int) -> None:
    evaluator = ScriptedEvaluator(4)
    search = new_search(evaluator, workers=3, batches_in_flight=batches_in_flight)
    game = new_game(line="C3 D4")
    warm_up(search, game)
    assert evaluator.rows[-3:] == [4, 4, 4]
    search.set_position(game)
    assert search.run(Limits(visits=100)).visits == 100
    check_tree(search)


def test_a_warm_up_that_fails_leaves_a_quiet_search() -> None:
    evaluator = ScriptedEvaluator(4, fail_at=WARM_UP + 2)
    search = new_search(evaluator)
    game = new_game()
    with pytest.raises(RuntimeError, match="the device is gone"):
        warm_up(search, game)
    assert evaluator.rows[-1] == 4
    search.set_position(game)
    assert search.run(Limits(visits=20)).visits == 20
