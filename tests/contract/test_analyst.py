"""The analyst of Go keeps what engine.players.analyst promises, with a real search."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.evaluators.queue import InlineQueue
from engine.games.go.game import GoGame
from engine.games.go.rules import PRESETS
from engine.games.go.vertex import parse_vertex
from engine.options import Options
from engine.players import go_analyst
from engine.players.analyst import Analysis, Assignment
from engine.players.go_analyst import IDLE_QUEUES, GoAnalyst, QueuePool, make_analysts
from engine.protocols.analysis.overrides import Settings
from engine.protocols.analysis.query import read_query
from engine.protocols.analysis.results import response
from engine.search.limits import Limits
from native.go.board import BLACK, PASS, WHITE
from tests.contract.networks import write_small_network
from tests.fakes.evaluators import ScriptedEvaluator

OPTIONS = Options(evaluator="uniform", size=5, workers=1, memory=2**24, seed=1)


def assignment(size: int = 5, visits: int | None = 50, **fields: object) -> Assignment:
    game = GoGame(size, PRESETS["tromp-taylor"], 0.5)
    return replace(Assignment(game, OPTIONS, Limits(visits=visits)), **fields)  # type: ignore[arg-type]


def nothing(analysis: Analysis) -> None:
    raise AssertionError("no report was asked for")


@pytest.fixture
def analyst() -> GoAnalyst:
    return GoAnalyst(OPTIONS, QueuePool(OPTIONS))


def test_what_cannot_evaluate_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = ScriptedEvaluator(4, fail_at=3)
    monkeypatch.setattr(go_analyst, "make_queue", lambda *_: InlineQueue(evaluator))
    with pytest.raises(RuntimeError, match="the device is gone"):
        GoAnalyst(OPTIONS, QueuePool(OPTIONS))
    assert evaluator.closed_in is not None


def test_a_position_is_searched_to_its_limit(analyst: GoAnalyst) -> None:
    analysis = analyst.analyze(assignment(), nothing)
    assert analysis.report.visits == 50
    assert analysis.policy.shape == (26,)
    assert np.nansum(analysis.policy) == pytest.approx(1.0, abs=1e-3)
    assert analysis.raw is None
    assert analyst.model is None


def test_the_game_stays_as_it_is(analyst: GoAnalyst) -> None:
    task = assignment(moves_ownership=True)
    before = (list(task.game.moves), task.game.position.tobytes())
    analysis = analyst.analyze(task, nothing)
    assert (list(task.game.moves), task.game.position.tobytes()) == before
    assert set(analysis.moves_ownership) == {move.move for move in analysis.report.moves}
    assert all(owners.shape == (25,) for owners in analysis.moves_ownership.values())


def test_owners_after_a_move_are_told_for_the_side_that_played_it(analyst: GoAnalyst) -> None:
    for color in (BLACK, WHITE):
        task = assignment(moves_ownership=True, allow=(parse_vertex("C3", 5),))
        task.game.turn_to(color)
        (owners,) = analyst.analyze(task, nothing).moves_ownership.values()
        assert owners[12] > 0.2


def test_a_game_without_room_for_another_move(analyst: GoAnalyst) -> None:
    task = assignment(2, moves_ownership=True)
    while not task.game.is_full:
        task.game.play(task.game.side_to_move, PASS)
    assert analyst.analyze(task, nothing).moves_ownership == {}


def test_a_wide_root_is_not_told(tmp_path: Path) -> None:
    options = OPTIONS.copy()
    options.evaluator, options.net, options.symmetry = "auto", str(write_small_network(tmp_path)), "none"
    analyst = GoAnalyst(options, QueuePool(options))
    told = []
    for changes in ({}, {"wideRootNoise": 0.25}, {"rootPolicyTemperature": 2.0}):
        fields = {"boardXSize": 5, "boardYSize": 5, "moves": [], "rules": "chinese", "includePolicy": True}
        query = read_query(fields | {"maxVisits": 60, "overrideSettings": changes}, Settings(options))
        task = query.turns[0].assignment
        analysis = analyst.analyze(task, nothing)
        answer = response("a", 0, task.game, analysis, query.style, is_during_search=False)
        told.append((answer["policy"], {info["move"]: info["prior"] for info in answer["moveInfos"]}))
    (policy, priors), (wide_policy, wide_priors), (warm_policy, warm_priors) = told
    assert max(policy) > 2 * min(policy) > 0
    assert wide_policy == pytest.approx(policy, rel=0.01)
    assert warm_policy == pytest.approx(policy, rel=0.01)
    common = priors.keys() & wide_priors.keys() & warm_priors.keys()
    assert len(common) > 3
    for move in common:
        assert wide_priors[move] == pytest.approx(priors[move], rel=0.01)
    assert max(warm_priors.values()) < 0.95 * max(priors.values())
    analyst.close()


def test_nothing_of_an_earlier_search_shows(analyst: GoAnalyst) -> None:
    first = analyst.analyze(assignment(), nothing).report
    other = assignment()
    other.game.play(BLACK, first.moves[0].move)
    analyst.analyze(other, nothing)
    again = analyst.analyze(assignment(), nothing).report
    assert replace(again, seconds=0.0, ownership=None) == replace(first, seconds=0.0, ownership=None)


def test_a_tree_is_kept_where_that_is_asked_for(analyst: GoAnalyst) -> None:
    first = analyst.analyze(assignment(), nothing).report
    after = assignment(keep_tree=True)
    after.game.play(BLACK, first.moves[0].move)
    report = analyst.analyze(after, nothing).report
    assert report.visits == 50
    assert report.playouts == 50 - first.moves[0].visits


def test_the_network_is_asked_only_where_that_is_wanted(tmp_path: Path) -> None:
    options = OPTIONS.copy()
    options.evaluator, options.net, options.device = "auto", str(write_small_network(tmp_path)), "cpu"
    analyst = GoAnalyst(options, QueuePool(options))
    assert analyst.analyze(assignment(visits=2, options=options), nothing).raw is not None
    assert analyst.analyze(assignment(visits=2, options=options, raw=False), nothing).raw is None
    analyst.close()


@pytest.mark.parametrize("is_tuned", [False, True])
@pytest.mark.parametrize(
    ("count", "prompt", "workers", "expected"),
    [
        (None, True, None, [3]),
        (None, False, None, [1, 1, 1]),
        (None, False, 2, [1, 1]),
        (3, True, None, [1, 1, 1]),
        (None, True, 16, [3]),  # more than cores would take time from each other
        (2, True, 16, [3, 3]),
    ],
)
def test_threads_of_analysts_on_a_processor(
    count: int | None,
    prompt: bool,
    workers: int | None,
    expected: list[int],
    is_tuned: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(go_analyst, "usable_cores", lambda: 3)
    monkeypatch.setattr("engine.players.setup.usable_cores", lambda: 3)
    options = OPTIONS.copy()
    options.workers = workers
    if is_tuned:
        monkeypatch.setattr(go_analyst, "tuned", lambda given, _game, _size: replace(given, workers=given.workers or 3))
    analysts = make_analysts(options, count, prompt=prompt)
    assert [analyst.search.settings.workers for analyst in analysts] == expected


def test_stopped_before_it_began(analyst: GoAnalyst) -> None:
    task = assignment(visits=None)
    task.stopped.set()
    assert analyst.analyze(task, nothing).report.visits > 0


def test_interrupted_while_it_runs(analyst: GoAnalyst) -> None:
    reports: list[Analysis] = []

    def interrupt(analysis: Analysis) -> None:
        reports.append(analysis)
        if len(reports) == 3:
            threading.Thread(target=analyst.interrupt).start()

    task = assignment(visits=None, first_report=0.001, report_every=0.005)
    final = analyst.analyze(task, interrupt)
    assert final.report.visits >= reports[-1].report.visits > 0


def test_one_report_only(analyst: GoAnalyst) -> None:
    reports: list[Analysis] = []

    def interrupt(analysis: Analysis) -> None:
        reports.append(analysis)
        threading.Timer(0.1, analyst.interrupt).start()

    task = assignment(visits=None, first_report=0.01)
    analyst.analyze(task, interrupt)
    assert len(reports) == 1


def test_settings_hold_for_one_search(analyst: GoAnalyst) -> None:
    narrow = OPTIONS.copy()
    narrow.c_puct = 0.01
    narrow.fpu_reduction = narrow.root_fpu_reduction = 2.0
    wide = len(analyst.analyze(assignment(), nothing).report.moves)
    assert len(analyst.analyze(assignment(options=narrow), nothing).report.moves) < wide
    assert len(analyst.analyze(assignment(), nothing).report.moves) == wide


def test_moves_of_the_root(analyst: GoAnalyst) -> None:
    moves = tuple(parse_vertex(text, 5) for text in ("C3", "D4"))
    allowed = analyst.analyze(assignment(allow=moves), nothing).report
    assert {move.move for move in allowed.moves} == set(moves)
    avoided = analyst.analyze(assignment(avoid=moves), nothing).report
    assert not {move.move for move in avoided.moves} & set(moves)
    assert PASS in {move.move for move in avoided.moves}


def test_boards_of_all_sizes_share_few_evaluators(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ScriptedEvaluator] = []

    def make(options: Options, size: int, rules: object) -> go_analyst.InlineQueue:
        made.append(ScriptedEvaluator())
        return go_analyst.InlineQueue(made[-1])

    monkeypatch.setattr(go_analyst, "make_queue", make)
    pool = QueuePool(OPTIONS)
    analysts = [GoAnalyst(OPTIONS, pool, 2) for _ in range(2)]
    assert len(made) == 1
    for size in (3, 4, 6, 7, 6):
        analysts[0].analyze(assignment(size), nothing)
    assert len(made) == 5
    assert sum(each.closed_in is None for each in made) <= 2 + IDLE_QUEUES
    for analyst in analysts:
        analyst.close()
    assert all(each.closed_in is not None for each in made)


def test_a_board_that_memory_does_not_suffice_for_is_tried_again(
    analyst: GoAnalyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(go_analyst, "Search", fail)
        with pytest.raises(MemoryError):
            analyst.analyze(assignment(4), nothing)
    assert analyst.search.spec.policy_size == 26
    assert analyst.analyze(assignment(4), nothing).report.visits == 50
    assert analyst.search.spec.policy_size == 17


def test_analysts_work_side_by_side() -> None:
    analysts = make_analysts(OPTIONS, 2)
    found: dict[int, Analysis] = {}

    def work(index: int) -> None:
        found[index] = analysts[index].analyze(assignment(visits=300), nothing)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index].report.visits for index in range(2)] == [300, 300]
    assert len(make_analysts(OPTIONS, None)) == 1  # a processor's cores all search one position


@pytest.fixture
def networked(tmp_path: Path) -> Iterator[GoAnalyst]:
    options = OPTIONS.copy()
    options.evaluator, options.net, options.device = "auto", str(write_small_network(tmp_path)), "cpu"
    options.symmetry, options.precision = "none", "fp32"
    analyst = GoAnalyst(options, QueuePool(options))
    yield analyst
    analyst.close()


def ignoring(analyst: GoAnalyst, ignores: bool, game: GoGame, visits: int = 1, **fields: object) -> Assignment:
    options = analyst.options.copy()
    options.ignore_pre_root_history = ignores
    return assignment(visits=visits, options=options, game=game, **fields)


def played(*vertices: str) -> GoGame:
    game = GoGame(5, PRESETS["tromp-taylor"], 0.5)
    for vertex in vertices:
        game.play(game.side_to_move, parse_vertex(vertex, 5))
    return game


def judged(analysis: Analysis) -> list[float]:
    assert analysis.raw is not None
    raw = np.nan_to_num(analysis.raw.policy)
    return [analysis.report.winrate, analysis.raw.white_win, *np.nan_to_num(analysis.policy), *raw]


def test_the_moves_before_the_root_are_hidden_where_that_is_asked_for(networked: GoAnalyst) -> None:
    game = played("C3", "C4", "B3", "B4")
    bare = GoGame(5, PRESETS["tromp-taylor"], 0.5)
    bare.set_position(game.stones(), BLACK)
    expected = judged(networked.analyze(ignoring(networked, False, bare), nothing))
    shown = judged(networked.analyze(ignoring(networked, False, game), nothing))
    hidden = judged(networked.analyze(ignoring(networked, True, game), nothing))
    assert hidden == pytest.approx(expected, abs=1e-4)
    assert shown != pytest.approx(expected, abs=1e-4)
    game.play(BLACK, PASS)
    options = [ignoring(networked, ignores, game) for ignores in (True, False)]
    assert networked.analyze(options[0], nothing).raw != networked.analyze(options[1], nothing).raw


def test_hidden_moves_still_count_for_ko(networked: GoAnalyst) -> None:
    game = played("B3", "C3", "A2", "D2", "B1", "C1", "C2", "B2")
    banned = parse_vertex("C2", 5)
    assert not game.is_legal(BLACK, banned)
    analysis = networked.analyze(ignoring(networked, True, game, visits=100), nothing)
    assert banned not in [move.move for move in analysis.report.moves]


def test_a_tree_is_not_continued_with_other_moves_shown(networked: GoAnalyst) -> None:
    game = played("C3", "C4")
    networked.analyze(ignoring(networked, True, game, visits=30), nothing)
    again = networked.analyze(ignoring(networked, False, game, visits=30, keep_tree=True), nothing)
    assert again.report.playouts == 30


def test_a_root_from_further_down_the_tree_is_evaluated_again_without_the_moves_before(networked: GoAnalyst) -> None:
    first = networked.analyze(ignoring(networked, True, played("C3", "C4"), visits=60), nothing)
    after = played("C3", "C4")
    after.play(BLACK, first.report.moves[0].move)
    anew = networked.analyze(ignoring(networked, True, after), nothing)
    again = networked.analyze(ignoring(networked, True, played("C3", "C4"), visits=60), nothing)
    (kept,) = (move.visits for move in again.report.moves if move.move == first.report.moves[0].move)
    assert kept > 1
    later = networked.analyze(ignoring(networked, True, after, visits=60, keep_tree=True), nothing)
    assert later.report.playouts == 60 - kept
    assert np.nan_to_num(later.policy) == pytest.approx(np.nan_to_num(anew.policy), abs=1e-4)
    node = networked.search.tree.nodes[networked.search.tree.counters[0].root]
    told = sum(move.visits * (2 * move.winrate - 1) for move in later.report.candidates)
    assert float(node["value_sum"]) - told == pytest.approx(2 * anew.report.winrate - 1, abs=1e-4)


@pytest.mark.parametrize("symmetry", ["none", "average"])
def test_the_raw_winrate_is_that_of_the_root(networked: GoAnalyst, symmetry: str) -> None:
    task = ignoring(networked, True, played("C3", "D3", "B2"))
    task.options.symmetry = symmetry
    analysis = networked.analyze(task, nothing)
    assert analysis.raw is not None
    assert analysis.report.winrate == pytest.approx(0.5 + 0.5 * (analysis.raw.white_win - analysis.raw.white_loss))


def test_what_the_network_says_without_a_search(tmp_path: Path) -> None:
    options = OPTIONS.copy()
    options.evaluator, options.net = "auto", str(write_small_network(tmp_path))
    analyst = GoAnalyst(options, QueuePool(options))
    analysis = analyst.analyze(assignment(moves_ownership=True, options=options), nothing)
    assert analysis.raw is not None
    assert analysis.raw.white_win + analysis.raw.white_loss + analysis.raw.no_result == pytest.approx(1.0)
    assert analyst.model is not None
    assert analyst.model.version >= 8
    assert len(analysis.moves_ownership) == len(analysis.report.moves)
    analyst.clear_cache()
    analyst.close()
