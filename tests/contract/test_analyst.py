"""What analysts of Go owe to the analysis protocol besides what players do (yomi.engine.go.players.setup)."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.conftest import GO, Make
from tests.fakes.evaluators import ScriptedEvaluator
from tests.unit.go_boards import played
from tests.waiting import in_background, wait_until
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.analysis.fields import Settings
from yomi.engine.go.analysis.query import read_query
from yomi.engine.go.analysis.results import response
from yomi.engine.go.game import GoGame
from yomi.engine.go.players import analyst as go_analyst
from yomi.engine.go.players import player as go
from yomi.engine.go.players.analyst import IDLE_QUEUES, GoAnalyst, QueuePool, make_analysts
from yomi.engine.go.players.setup import Analysis, models_of
from yomi.engine.go.points import square
from yomi.engine.options import Options
from yomi.engine.players.request import LoadingError, Request
from yomi.engine.search.read_tree import root_priors
from yomi.engine.search.types import Limits, MoveReport
from yomi.native.go.board import BLACK, PASS, WHITE
from yomi.native.go.rules import MAX_HISTORY

OPTIONS = Options(evaluator="uniform", size=5, workers=1, memory=2**24, seed=1)


def asked(game: GoGame | None = None, visits: int | None = 50, **fields: Any) -> Request[GoGame]:
    return Request(played() if game is None else game, **{"limits": Limits(visits), "keep_tree": False, **fields})


def nothing(analysis: Analysis) -> None:
    raise AssertionError("no report was asked for")


@pytest.fixture
def descriptor() -> Any:
    return GO


@pytest.fixture
def make_player() -> Make:
    return lambda options: GoAnalyst(options, QueuePool(options))


@pytest.fixture
def analyst(make: Make) -> Any:
    return make()


@pytest.fixture
def networked(make: Make) -> Any:
    return make("network", symmetry="none", precision="fp32")


def test_a_position_is_searched_to_its_limit(analyst: GoAnalyst) -> None:
    analysis = analyst.analyze(asked(), nothing)
    assert analysis.report.visits == 50
    assert analysis.policy.shape == (26,)
    assert np.nansum(analysis.policy) == pytest.approx(1.0, abs=1e-3)
    assert (analysis.raw, analyst.models) == (None, [])


def test_owners_after_a_move_are_told_for_the_side_that_played_it(analyst: GoAnalyst) -> None:
    game = played()
    before = (list(game.moves), game.position.tobytes())
    analysis = analyst.analyze(asked(game), nothing, all_owners=True)
    assert (list(game.moves), game.position.tobytes()) == before
    assert all(move.owners is not None for move in analysis.report.moves)
    for color in (BLACK, WHITE):
        game.turn_to(color)
        owners = analyst.owners_after(game, square(5).parse_vertex("C3"), 100)
        assert owners.mean.shape == owners.stdev.shape == (25,)
        assert owners.mean[12] > 0.2


def test_a_game_without_room_for_another_move(analyst: GoAnalyst) -> None:
    analyst.analyze(asked(), nothing)
    game = played()
    game.position["history_length"] = MAX_HISTORY - 1
    analysis = analyst.analyze(asked(game), nothing, all_owners=True)
    assert (analysis.report.visits, analysis.report.moves) == (0, ())
    assert np.isnan(analysis.policy).all()  # nothing of the search before


def test_a_wide_root_is_not_told(networked: GoAnalyst) -> None:
    told = []
    for changes in ({}, {"wideRootNoise": 0.25}, {"rootPolicyTemperature": 2.0}):
        fields = {"id": "a", "boardXSize": 5, "boardYSize": 5, "moves": [], "rules": "chinese", "includePolicy": True}
        fields |= {"maxVisits": 60, "overrideSettings": changes}
        (turn,), _ = read_query(fields, Settings(networked.options))
        answer = response(turn, networked.analyze(turn.request, nothing), is_during_search=False)
        told.append((answer["policy"], {info["move"]: info["prior"] for info in answer["moveInfos"]}))
    (policy, priors), (wide_policy, wide_priors), (warm_policy, warm_priors) = told
    assert max(policy) > 2 * min(policy) > 0
    assert wide_policy == policy
    assert warm_policy == pytest.approx(policy, rel=0.01)
    common = priors.keys() & wide_priors.keys() & warm_priors.keys()
    assert len(common) > 3
    for move in common:
        assert wide_priors[move] == priors[move]
    assert max(warm_priors.values()) < 0.95 * max(priors.values())


def without_owners(move: MoveReport) -> MoveReport:
    return replace(move, owners=None)


def test_nothing_of_an_earlier_search_shows_unless_the_tree_is_kept(analyst: GoAnalyst) -> None:
    first = analyst.analyze(asked(), nothing).report
    best = first.moves[0]
    after = played()
    after.play(BLACK, best.move)
    kept = analyst.analyze(asked(after, keep_tree=True), nothing).report
    assert (kept.visits, kept.playouts) == (50, 50 - best.visits)
    again = analyst.analyze(asked(), nothing).report
    assert [without_owners(move) for move in again.moves] == [without_owners(move) for move in first.moves]


def test_reports_come_if_they_are_asked_for(analyst: GoAnalyst) -> None:
    """The first one and then one every interval, which may be infinite."""
    for first, interval, count in ((0.001, 0.005, 3), (0.01, math.inf, 1)):
        reports: list[Analysis] = []
        request = asked(visits=None, infinite=True, first_report=first, interval=interval)
        wait = in_background(analyst.analyze, request, reports.append)
        wait_until(lambda reports=reports, count=count: len(reports) >= count)
        wait_until(lambda: analyst.report().visits > 1000)
        analyst.clear_cache()  # the search goes on
        request.stop()
        final = wait()
        assert all(each.report.visits > 0 and each.policy.shape == (26,) for each in reports)
        assert final.report.visits >= reports[-1].report.visits
        assert math.isfinite(interval) or len(reports) == 1


def judged(analysis: Analysis) -> list[float]:
    assert analysis.raw is not None
    raw = np.nan_to_num(analysis.raw.policy)
    return [analysis.report.winrate, analysis.raw.white_win, *np.nan_to_num(analysis.policy), *raw]


@pytest.mark.parametrize("symmetry", ["none", "average"])
def test_the_raw_winrate_is_that_of_the_root(networked: GoAnalyst, symmetry: str) -> None:
    options = replace(networked.options, symmetry=symmetry)
    analysis = networked.analyze(asked(played("C3 D3 B2"), 1, options=options, hide_history=True), nothing)
    assert analysis.raw is not None
    assert analysis.report.winrate == pytest.approx(0.5 + 0.5 * (analysis.raw.white_win - analysis.raw.white_loss))
    analysis = networked.analyze(asked(), nothing, all_owners=True)
    assert all(move.owners is not None for move in analysis.report.moves)


def test_the_network_is_reported_as_katago_reports_it(networked: GoAnalyst) -> None:
    (model,) = networked.models
    assert model.pop("version") > 0
    assert model.pop("maxBatchSize") > 0
    name = Path(networked.options.net).name
    assert model == {"name": name, "internalName": "random-net", "usesHumanSLProfile": False, "usingFP16": "false"}


def test_half_precision_is_reported_as_katago_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    info = SimpleNamespace(name="b18", model_version=14, meta_input=False)
    network = SimpleNamespace(info=info, batch_size=32, precision="fp16")
    monkeypatch.setattr("yomi.engine.go.players.setup.network_in", lambda evaluator: network)
    assert models_of(UniformEvaluator(), Options(net="nets/b18.bin.gz")) == [
        {
            "name": "b18.bin.gz",
            "internalName": "b18",
            "maxBatchSize": 32,
            "usesHumanSLProfile": False,
            "version": 14,
            "usingFP16": "true",
        }
    ]


def test_the_moves_before_the_root_are_hidden_if_that_is_asked_for(networked: GoAnalyst) -> None:
    game, bare = played("C3 C4 B3 B4"), played()
    bare.set_position(game.stones(), BLACK)
    expected, shown, hidden = (
        judged(networked.analyze(asked(each, 1, hide_history=hides), nothing))
        for each, hides in ((bare, False), (game, False), (game, True))
    )
    assert hidden == pytest.approx(expected, abs=1e-4)
    assert shown != pytest.approx(expected, abs=1e-4)
    game.play(BLACK, PASS)
    hidden, shown = (judged(networked.analyze(asked(game, 1, hide_history=hides), nothing)) for hides in (True, False))
    assert hidden != pytest.approx(shown, abs=1e-4)
    networked.start(asked(game, hide_history=True))
    wait_until(lambda: networked.report().visits >= 2)
    networked.stop()
    priors = sorted(root_priors(networked.search.tree).values())
    assert priors == pytest.approx(sorted(each for each in hidden[2:28] if each), abs=1e-4)


def test_hidden_moves_still_count_for_ko(networked: GoAnalyst) -> None:
    game, banned = played("B3 C3 A2 D2 B1 C1 C2 B2"), square(5).parse_vertex("C2")
    assert not game.is_legal(BLACK, banned)
    analysis = networked.analyze(asked(game, 100, hide_history=True), nothing)
    assert banned not in [move.move for move in analysis.report.moves]


def test_a_root_from_further_down_the_tree_is_evaluated_again_without_the_moves_before(networked: GoAnalyst) -> None:
    game, after = played("C3 C4"), played("C3 C4")
    first = networked.analyze(asked(game, 60, hide_history=True), nothing)
    after.play(BLACK, first.report.moves[0].move)
    anew = networked.analyze(asked(after, 1, hide_history=True), nothing)
    again = networked.analyze(asked(game, 60, hide_history=True), nothing)
    (kept,) = (move.visits for move in again.report.moves if move.move == first.report.moves[0].move)
    assert kept > 1
    later = networked.analyze(asked(after, 60, hide_history=True, keep_tree=True), nothing)
    assert later.report.playouts == 60 - kept
    assert np.nan_to_num(later.policy) == pytest.approx(np.nan_to_num(anew.policy), abs=1e-4)
    node = networked.search.tree.nodes[networked.search.tree.counters[0].root]
    stats = networked.search.tree.stats[int(node["stats"]) :][: int(node["tried"])]
    told = stats["weight"].astype(float) * stats["share"] @ stats["value"]
    own = (float(node["value_sum"]) - told) / float(node["own_weight"])
    assert own == pytest.approx(2 * anew.report.winrate - 1, abs=1e-4)
    shown = networked.analyze(asked(after, 30, keep_tree=True), nothing)
    assert shown.report.playouts == 30  # with other moves shown a tree is not continued


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
    monkeypatch.setattr("yomi.engine.players.setup.usable_cores", lambda: 3)
    if is_tuned:
        for module in (go, go_analyst):
            monkeypatch.setattr(module, "tuned", lambda given, _game, _size: replace(given, workers=given.workers or 3))
    analysts = make_analysts(replace(OPTIONS, workers=workers), count, prompt=prompt)
    settings = [analyst.search.settings for analyst in analysts]
    assert [each.workers for each in settings] == expected
    assert {each.memory for each in settings} == {OPTIONS.memory // len(expected)}
    for analyst in analysts:
        analyst.close()


def test_analysts_work_side_by_side() -> None:
    analysts = make_analysts(OPTIONS, 2)
    waits = [in_background(each.analyze, asked(visits=300), nothing) for each in analysts]
    assert [wait().report.visits for wait in waits] == [300, 300]
    for analyst in analysts:
        analyst.close()


def test_boards_of_all_sizes_share_few_evaluators(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ScriptedEvaluator] = []

    def make(*_: object) -> InlineQueue:
        made.append(ScriptedEvaluator())
        return InlineQueue(made[-1])

    monkeypatch.setattr(go_analyst, "make_queue", make)
    pool = QueuePool(OPTIONS)
    analysts = [GoAnalyst(OPTIONS, pool, 2) for _ in range(2)]
    assert len(made) == 1
    for size in (3, 4, 6, 7, 6):
        analysts[0].analyze(asked(played(size=size)), nothing)
    assert len(made) == 5
    assert sum(each.closed_in is None for each in made) <= 2 + IDLE_QUEUES
    for analyst in analysts:
        analyst.close()
    assert all(each.closed_in is not None for each in made)


def test_what_cannot_evaluate_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = ScriptedEvaluator(4, fail_at=3)
    monkeypatch.setattr(go_analyst, "make_queue", lambda *_: InlineQueue(evaluator))
    with pytest.raises(RuntimeError, match="the device is gone"):
        GoAnalyst(OPTIONS, QueuePool(OPTIONS))
    assert evaluator.closed_in is not None


def test_a_board_that_memory_does_not_suffice_for_is_tried_again(
    analyst: GoAnalyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("yomi.engine.players.player.Search", fail)
        with pytest.raises(LoadingError, match="memory"):
            analyst.analyze(asked(played(size=4)), nothing)
    assert analyst.search.spec.policy_size == 26
    assert analyst.analyze(asked(played(size=4)), nothing).report.visits == 50
    assert analyst.search.spec.policy_size == 17
