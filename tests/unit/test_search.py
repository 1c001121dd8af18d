"""The search's threads: limits, stopping, repeating itself, and evaluators that fail."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import RootedEvaluator, ScriptedEvaluator
from tests.looping import looped
from tests.unit.trees import check_tree, new_game, new_search, search_at
from yomi.bench import signature
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue, Job
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.go.networks import RolloutEvaluator
from yomi.engine.go.points import square
from yomi.engine.search import root as root_module
from yomi.engine.search import search as search_module
from yomi.engine.search.read_tree import read_report, root_priors
from yomi.engine.search.search import Search
from yomi.engine.search.types import ALL_MOVES, Limits, RootMoves
from yomi.native.go.board import PASS
from yomi.native.go.spec import go_spec
from yomi.native.spec import Inputs
from yomi.native.tree import arrays
from yomi.native.tree.arrays import Batch
from yomi.native.tree.buffers import make_batch
from yomi.native.tree.memory import clear_tree, compact
from yomi.native.tree.searcher import Searcher

PATIENCE = 300.0
"""Seconds after which a search that should have ended is taken to hang; the first one may compile kernels."""


def run(search: Search, limits: Limits, moves: RootMoves = ALL_MOVES) -> Any:
    """Search to the limits, but fail where that takes for ever."""
    search.start(limits, moves)
    ended = search.wait(PATIENCE)
    search.stop()
    assert ended, "the search did not end by itself"
    return search.report()


def visits_of(search: Search) -> dict[int, int]:
    return {move.move: move.visits for move in search.report().moves}


@pytest.mark.parametrize(("workers", "rows", "flying"), [(1, 1, 1), (1, 16, 3), (2, 8, 2), (4, 8, 1)])
def test_limits_of_visits_and_playouts_are_exact(workers: int, rows: int, flying: int) -> None:
    search = new_search(UniformEvaluator(rows), workers=workers, batches_in_flight=flying)
    game = new_game()
    search.set_position(game)
    for playouts in (1, 2, 7, 500):
        search.set_position(new_game(9, "E5"))
        search.set_position(game)
        report = run(search, Limits(playouts=playouts))
        assert (report.playouts, report.visits) == (playouts, playouts)
        assert report.evaluations <= playouts
    report = run(search, Limits(visits=1000))
    assert (report.playouts, report.visits) == (500, 1000)
    report = run(search, Limits(visits=900, playouts=50))
    assert (report.playouts, report.visits) == (0, 1000)
    report = run(search, Limits(visits=1200, playouts=50, seconds=PATIENCE))
    assert (report.playouts, report.visits) == (50, 1050)
    check_tree(search)


@pytest.mark.parametrize(("workers", "playouts", "most"), [(1, 320, 8), (2, 96, 3), (2, 20, 1), (2, 2000, 8)])
def test_workers_of_a_short_search_do_not_wait_long_for_each_other(workers: int, playouts: int, most: int) -> None:
    evaluator = ScriptedEvaluator(8)
    search = search_at(evaluator, workers=workers)
    run(search, Limits(playouts=playouts))
    assert max(evaluator.rows) == most


def test_even_no_time_at_all_is_enough_for_a_move() -> None:
    search = search_at(ScriptedEvaluator(8, seconds=0.01))
    assert run(search, Limits(seconds=0.0)).moves


def test_an_interrupt_while_a_search_starts_leaves_it_a_move(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_at(UniformEvaluator(8), 5)
    run(search, Limits(visits=50))

    def interrupt_and_clear(tree: Any) -> None:
        search.interrupt()
        clear_tree(tree)

    monkeypatch.setattr(root_module, "clear_tree", interrupt_and_clear)
    assert run(search, Limits(visits=50), RootMoves(avoid=[PASS])).moves


def test_reports_hang_together_while_the_search_runs() -> None:
    search = search_at(UniformEvaluator(8), 5, workers=2)
    search.start(Limits())
    for _ in range(30):
        search.wait(0.005)
        report = search.report()
        assert sum(move.visits for move in report.moves) <= search.root_visits + 64
        assert all(move.pv[0] == move.move and len(move.pv) == len(move.pv_visits) for move in report.moves)
        assert len({move.move for move in report.moves}) == len(report.moves)
    search.stop()


@pytest.mark.parametrize("limits", [Limits(visits=100), Limits(seconds=0.2), Limits()])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_search_with_all_moves_banned_ends(limits: Limits, workers: int) -> None:
    search = search_at(UniformEvaluator(8), 5, workers=workers)
    report = run(search, limits, RootMoves(allow=[]))
    assert (report.visits, report.moves) == (1, ())
    report = run(search, Limits(visits=50), RootMoves(avoid=[PASS], allow=[PASS]))
    assert report.moves == ()
    report = run(search, Limits(visits=50), RootMoves(allow=[PASS]))
    assert [move.move for move in report.moves] == [PASS]
    check_tree(search)


class BatchClock:
    """Stands in for the module `time`: time passes by evaluated batches alone, a millisecond for each."""

    sleep = staticmethod(time.sleep)
    monotonic = staticmethod(time.monotonic)
    batches = 0

    def perf_counter(self) -> float:
        return self.batches * 1e-3


def test_the_latency_is_that_of_a_batch_however_many_a_call_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = BatchClock()
    claimed_elsewhere = [1]

    original = Searcher.advance
    search = new_search(UniformEvaluator(1), 5)
    counters = search.tree.counters[0]

    def advance_with_others(searcher: Searcher, *given: Any) -> Any:
        """Make the last playout wait for another worker, which has claimed it and takes it back."""
        before = int(counters.evaluated)
        counters.claimed += claimed_elsewhere[0]
        rows = original(searcher, *given)
        counters.claimed -= claimed_elsewhere[0]
        clock.batches += int(counters.evaluated) - before
        claimed_elsewhere[0] *= rows > 0
        return rows

    monkeypatch.setattr(search_module, "time", clock)
    monkeypatch.setattr(Searcher, "advance", advance_with_others)
    search.set_position(new_game(5))
    run(search, Limits(playouts=1000))
    assert claimed_elsewhere == [0]
    assert search.latency == pytest.approx(1e-3)


@pytest.mark.slow
def test_nobody_reads_a_tree_whose_nodes_are_moving(monkeypatch: pytest.MonkeyPatch) -> None:
    moving, asked, seen = threading.Event(), threading.Event(), []

    def compact_slowly(tree: Any, root: int, min_visits: int) -> int:
        moving.set()
        assert asked.wait(PATIENCE)  # the first time; whoever asks then waits for the end of it
        time.sleep(0.05)
        kept = compact(tree, root, min_visits)
        moving.clear()
        return kept

    def read(*given: Any, **named: Any) -> Any:
        seen.append(moving.is_set())
        return read_report(*given, **named)

    monkeypatch.setattr(search_module, "compact", compact_slowly)
    monkeypatch.setattr(search_module, "read_report", read)
    search = search_at(UniformEvaluator(8), memory=200_000)
    search.start(Limits(playouts=6000))
    reports_while_moving = 0
    while not search.wait(0.001):
        if moving.is_set():
            reports_while_moving += 1
            asked.set()
        search.report()
    search.stop()
    assert reports_while_moving
    assert not any(seen)


@pytest.mark.parametrize("change", ["compact", "clear_tree", "recenter"])
def test_any_thread_may_report_while_the_root_moves(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changing, ended, reports = threading.Event(), threading.Event(), []
    actual = getattr(root_module, change)

    def change_slowly(*given: Any, **named: Any) -> Any:
        changing.set()
        time.sleep(0.05)  # long enough for a report that does not wait
        result = actual(*given, **named)
        changing.clear()
        return result

    def read(*given: Any, **named: Any) -> Any:
        assert not changing.is_set(), "read while it changed"
        return read_report(*given, **named)

    def report_in_a_loop() -> None:
        while not ended.is_set():
            reports.append(search.report())

    search = new_search(ScriptedEvaluator(), 9, dynamic_score_utility=0.9)
    game = new_game(9, "E5 C4")
    search.set_position(game)
    search.run(Limits(playouts=200))
    monkeypatch.setattr(root_module, change, change_slowly)
    monkeypatch.setattr(search_module, "read_report", read)
    with ThreadPoolExecutor(1) as pool:
        reporting = pool.submit(report_in_a_loop)
        try:
            for _ in range(3):
                game.play(game.side_to_move, search.report().moves[0].move)
                search.set_position(game, keep_tree=change != "clear_tree")
                search.run(Limits(playouts=100))
        finally:
            ended.set()
        reporting.result(PATIENCE)
    assert {report.side_to_move for report in reports} == {1, 2}


def test_a_network_is_shown_positions_as_it_asks() -> None:
    marks: list[int] = []

    class Watching(ScriptedEvaluator):
        inputs = Inputs.POSITIONS

        def evaluate(self, batch: Batch, rows: int) -> None:
            marks.extend(batch.positions[:rows]["suicide_areas"])
            super().evaluate(batch, rows)

    game = new_game()
    settings = new_search(UniformEvaluator(8)).settings
    for asked in (0, 1):
        marks.clear()
        search = Search(go_spec(9, suicide_areas=bool(asked)), InlineQueue(Watching(8)), settings)
        search.set_position(game)
        run(search, Limits(playouts=20))
        assert set(marks) == {asked}
    assert game.position["suicide_areas"] == 0


@pytest.mark.parametrize("renew", [True, False])
def test_a_root_from_further_down_the_tree_gets_the_priors_of_a_root(renew: bool) -> None:
    search, game = new_search(RootedEvaluator(), 5, renew_root=renew), new_game(5)
    search.set_position(game)
    best = run(search, Limits(visits=200)).moves[0]
    game.push(best.move)
    search.set_position(game, keep_tree=False)
    run(search, Limits(visits=1))
    expected = root_priors(search.tree)
    game.undo()
    search.set_position(game)
    assert run(search, Limits(visits=200)).moves[0] == best
    game.push(best.move)
    search.set_position(game)
    node = search.tree.nodes[search.tree.counters[0].root]
    sums = [float(node[name]) for name in ("weight_sum", "utility_sum", "value_sum", "score_sum")]
    assert search.root_visits == best.visits
    assert sums[0] == pytest.approx(best.weight)
    assert sums[2] == pytest.approx(-best.weight * (2 * best.winrate - 1))
    assert (root_priors(search.tree) == expected) == renew
    later = run(search, Limits(visits=300))
    assert later.playouts == 300 - best.visits
    check_tree(search)


def test_a_search_of_other_moves_does_not_decide_the_next_one() -> None:
    search = search_at(ScriptedEvaluator(), 5)
    free = run(search, Limits(visits=200)).moves
    report = run(search, Limits(visits=200), RootMoves(avoid=[free[0].move]))
    assert report.visits == report.playouts == 200
    assert free[0].move not in [move.move for move in report.moves]
    run(search, Limits(visits=400), RootMoves(allow=[free[-1].move]))
    assert run(search, Limits(visits=200)).moves == free


def test_the_side_to_move_may_be_the_other_one() -> None:
    # after Black's pass it is Black again: a second pass does not end the game
    search = new_search(UniformEvaluator(1), 2)
    game = new_game(2, "pass")
    game.turn_to(1)
    search.set_position(game)
    report = run(search, Limits(visits=30))
    assert report.side_to_move == 1
    after_pass = next(move for move in report.moves if move.move == PASS)
    assert len(after_pass.pv) > 1


@pytest.mark.parametrize("kind", ["uniform", "rollouts", "noise"])
def test_one_worker_and_one_seed_repeat_the_search(kind: str) -> None:
    found = []
    for seed in (7, 7, 8):
        evaluator = UniformEvaluator(4) if kind == "uniform" else RolloutEvaluator(1, 4, seed)
        search = new_search(evaluator, seed=seed, root_noise=0.25 if kind == "noise" else 0.0)
        game = new_game()
        runs = []
        for line in ("", "E5", "E5 C4"):
            game = new_game(9, line)
            search.set_position(game)
            run(search, Limits(playouts=150), RootMoves(noise=kind == "noise"))
            runs.append(visits_of(search))
        found.append(runs)
    assert found[0] == found[1]
    assert (found[0] == found[2]) == (kind == "uniform")


def test_the_signature_of_the_benchmark_repeats_itself() -> None:
    first = signature.run(120)
    assert signature.run(120) == first
    assert len({row["signature"] for row in first}) == 7
    assert signature.run(121) != first


def test_settings_may_change_between_searches() -> None:
    # averaging takes eight rows a leaf, more than the evaluator asks for
    search = search_at(ScriptedEvaluator(2, asymmetrical=True), 5)
    run(search, Limits(playouts=20))
    settings = search.settings
    search.configure(type(settings)(workers=1, symmetry="average", c_puct=3.0, seed=1))
    assert run(search, Limits(playouts=20)).evaluations == 160
    search.configure(settings)
    assert run(search, Limits(playouts=20)).evaluations == 20
    check_tree(search)


# -- evaluators in threads of their own, and evaluators that fail -----------------------------------------------------


def workers_of(count: int, **how: Any) -> tuple[EvaluationWorkers, list[ScriptedEvaluator]]:
    made: list[ScriptedEvaluator] = []

    def factory() -> ScriptedEvaluator:
        made.append(ScriptedEvaluator(4, **how))
        return made[-1]

    return EvaluationWorkers([factory] * count), made


def test_each_evaluator_lives_in_one_thread() -> None:
    queue, made = workers_of(3, seconds=0.002)
    search = search_at(queue, workers=2, batches_in_flight=3)
    report = run(search, Limits(playouts=600))
    assert report.visits == 600
    check_tree(search)
    queue.close()
    queue.close()
    assert len({evaluator.made_in for evaluator in made}) == 3
    for evaluator in made:
        assert evaluator.used_in == {evaluator.made_in}
        assert evaluator.closed_in == evaluator.made_in
    assert sum(sum(evaluator.rows) for evaluator in made) == report.evaluations


def test_a_young_tree_has_few_batches_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    queue, _ = workers_of(2, seconds=0.001)
    search = search_at(queue, workers=4, batches_in_flight=2)
    flying: list[Job] = []
    seen: list[tuple[int, int]] = []  # batches in flight, and the root's visits, at each new batch
    submit = queue.submit

    def count_and_submit(job: Job) -> None:
        done = job.done

        def put(job: Job) -> None:
            flying.pop()
            done.put(job)

        flying.append(job)
        seen.append((len(flying), search.root_visits))
        job.done = SimpleNamespace(put=put)  # type: ignore[assignment]
        submit(job)

    monkeypatch.setattr(queue, "submit", count_and_submit)
    run(search, Limits(visits=1000))
    assert all(count <= max(2, visits // (search_module.VISITS_PER_FLYING_LEAF * 4)) for count, visits in seen)
    assert max(count for count, _ in seen) > 2
    queue.close()


def test_threads_that_evaluate_their_own_batches_do_not_wait_in_a_young_tree() -> None:
    evaluator = ScriptedEvaluator(8, seconds=0.005)
    search = search_at(evaluator, workers=4)
    run(search, Limits(visits=400))
    assert len(evaluator.used_in) == 4


def test_workers_that_are_closed_say_so() -> None:
    queue, _ = workers_of(1)
    queue.close()
    with pytest.raises(RuntimeError, match="workers are closed"):
        queue.submit(Job(make_batch(go_spec(5), 4, Inputs.NOTHING), 4, SimpleQueue()))
    queue.close()


def test_there_must_be_an_evaluator() -> None:
    with pytest.raises(ValueError, match="at least one"):
        EvaluationWorkers([])


def test_a_factory_that_fails_closes_the_others() -> None:
    made: list[ScriptedEvaluator] = []

    def good() -> ScriptedEvaluator:
        made.append(ScriptedEvaluator())
        return made[-1]

    def bad() -> ScriptedEvaluator:
        raise OSError("no such device")

    before = set(threading.enumerate())
    with pytest.raises(OSError, match="no such device"):
        EvaluationWorkers([good, bad, good])
    assert set(threading.enumerate()) <= before
    assert len(made) == 2
    assert all(evaluator.closed_in == evaluator.made_in for evaluator in made)


@looped("fail_at", [1, 2, 20])
@looped(("workers", "flying"), [(1, 1), (1, 3), (3, 2)])
def test_an_evaluator_that_fails_is_heard_of(workers: int, flying: int, fail_at: int) -> None:
    search = search_at(ScriptedEvaluator(4, fail_at=fail_at), workers=workers, batches_in_flight=flying)
    search.start(Limits(visits=5000))
    assert search.wait(PATIENCE)
    with pytest.raises(RuntimeError, match="the device is gone"):
        search.stop()
    search.stop()
    # the search can be used again, without a leaf that waits for ever
    search.set_position(new_game())
    assert run(search, Limits(visits=300)).visits == 300
    check_tree(search)
    search.queue.close()


def test_an_evaluator_that_fails_is_heard_of_from_run_and_set_position() -> None:
    search = search_at(ScriptedEvaluator(4, fail_at=3))
    with pytest.raises(RuntimeError, match="the device is gone"):
        search.run(Limits(visits=300))
    search.queue.evaluator.fail_at = 8  # type: ignore[attr-defined]
    search.start(Limits(visits=300))
    assert search.wait(PATIENCE)
    with pytest.raises(RuntimeError, match="the device is gone"):
        search.set_position(new_game(9, "E5"))
    search.set_position(new_game(9, "E5"))
    assert run(search, Limits(visits=300)).visits == 300


def test_an_evaluator_that_fails_at_the_noise_is_heard_of() -> None:
    search = search_at(ScriptedEvaluator(4, fail_at=1), root_noise=0.25)
    with pytest.raises(RuntimeError, match="the device is gone"):
        search.start(Limits(visits=300), RootMoves(noise=True))
    assert not search.is_running
    assert run(search, Limits(visits=300), RootMoves(noise=True)).visits == 300
    check_tree(search)


def test_every_evaluation_is_counted() -> None:
    queue, made = workers_of(2)
    search = search_at(queue, workers=3, batches_in_flight=2)
    report = run(search, Limits(playouts=800))
    nodes = search.tree.nodes[: search.tree.counters[0].node_top]
    finished = int(nodes["visits"][nodes["state"] == arrays.TERMINAL].sum())
    assert report.evaluations == sum(sum(evaluator.rows) for evaluator in made) == 800 - finished
    assert search.moves_made >= report.playouts - 1
    queue.close()


def test_a_solved_position_is_judged_right() -> None:
    search = new_search(RolloutEvaluator(4, 4, 1), 3, seed=1)
    search.set_position(new_game(3, "B2", komi=0.5))
    report = run(search, Limits(visits=800))
    assert report.winrate < 0.2  # White's view: Black owns everything after the center
    assert len(report.moves) <= len(square(3).points) + 1


def test_a_wide_root_is_searched_widely_and_judged_as_if_it_were_not() -> None:
    reports = []
    for noise in (0.0, 0.3):
        search = search_at(ScriptedEvaluator(), 5, "C3", wide_root_noise=noise)
        reports.append(run(search, Limits(visits=400)))
        check_tree(search)
    narrow, wide = reports
    assert len(wide.moves) == 25 > len(narrow.moves)
    for report in reports:
        assert all(0.0 <= move.wanted <= move.weight + 1e-6 for move in report.moves)
    excess = sum(move.weight - move.wanted for move in wide.moves)
    assert excess > 0.1 * wide.weight
    node = search.tree.nodes[search.tree.counters[0].root]
    noisy = 0.5 + 0.5 * float(node["value_sum"]) / wide.weight
    led = sum((move.weight - move.wanted) * move.winrate for move in wide.moves)
    assert wide.winrate == pytest.approx((noisy * wide.weight - led) / (wide.weight - excess), abs=1e-6)
    assert wide.utility > float(node["utility_sum"]) / wide.weight  # noise leads to bad moves
    common = {move.move: move.prior for move in narrow.moves}
    assert all(move.prior == common[move.move] for move in wide.moves if move.move in common)


@pytest.mark.parametrize("name", ["utility_sum", "weight_sum", "score_sum"])
@pytest.mark.parametrize("place", ["a child", "the root"])
def test_sums_that_are_not_finite_end_the_search_with_a_move(
    place: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    search = search_at(ScriptedEvaluator(), 5)
    before = search.run(Limits(visits=100))
    tree = search.tree
    root = int(tree.counters[0].root)
    index = root if place == "the root" else int(tree.stats[int(tree.nodes[root]["stats"])]["child"])
    tree.nodes[index][name] = np.nan
    after = search.run(Limits(visits=1000))
    assert caplog.text.count("values are not finite") == 1
    assert after.visits < 1000
    assert after.moves[0].move in {move.move for move in before.moves}
    for figure in (after.winrate, *(move.winrate for move in after.moves)):
        assert 0.05 < figure < 0.95
    assert np.isfinite([after.utility, after.score_lead, after.score_stdev, after.weight]).all()
    for slot in range(int(tree.nodes[root]["tried"])):
        assert tree.stats[int(tree.nodes[root]["stats"]) + slot]["in_flight"] == 0
    assert search.run(Limits(visits=100)).visits == 100  # in an empty tree
    check_tree(search)
