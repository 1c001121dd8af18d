"""Worker processes: failures to start, and lost ones."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until
from yomi.bench.selfplay import _play
from yomi.engine.clusters.actors import FAILURES, ClusterError
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.processes import ActorWorkers, process_workers
from yomi.engine.learning.selfplay import SelfPlay
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.workers import Delivery, Task
from yomi.engine.matches.duel import LearningMatch, play_match
from yomi.engine.matches.rating import Sprt
from yomi.engine.matches.score import DuelScore
from yomi.engine.options import Options
from yomi.engine.registry import GAMES
from yomi.settings import make_settings

pytestmark = pytest.mark.slow


def take_often(processes: ActorWorkers) -> None:
    for _ in range(1000):
        processes.take(1.0)


def test_where_no_process_can_play_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.clusters.actors.RESTART_SECONDS", 0.0)
    lost: list[str] = []
    missing = Options(size=5, evaluator="onnx", net=str(tmp_path / "missing.bin.gz"), workers=1)
    processes = process_workers(1, GAMES["go"], LearnSettings(), 1, lambda number, why: lost.append(why))
    try:
        processes.use(Task(missing, "missing", {}))
        with pytest.raises(ClusterError, match=r"no process can play: .*missing\.bin\.gz"):
            take_often(processes)
    finally:
        processes.close()
    assert len(lost) == FAILURES


SMALL = make_settings(LearnSettings, {"visits": 8, "cheap_visits": 4, "games": 2})
UNIFORM = Options(size=3, evaluator="uniform", workers=1)


class PipeConnection:
    """Stands for the class of pipes that a system has."""


@pytest.fixture
def players() -> Iterator[ActorWorkers]:
    """Two processes that play on 3×3."""
    processes = process_workers(2, GAMES["go"], SMALL, 1, lambda number, why: None)
    try:
        processes.use(Task(UNIFORM, "uniform", {}))
        yield processes
    finally:
        processes.close()


def first_of(processes: ActorWorkers) -> list[Delivery]:
    """Return the deliveries that come first, some of which have games."""
    deliveries: list[Delivery] = []
    end = time.monotonic() + 120.0
    while not any(each.games for each in deliveries) and time.monotonic() < end:
        deliveries += processes.take(0.5)
    return deliveries


def test_pipes_of_any_class_will_do(players: ActorWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.clusters.processes.Connection", PipeConnection)  # as on Windows, no link is one
    assert any(each.games for each in first_of(players))


def test_workers_play_a_match_as_one_process_does_while_nobody_takes_their_games(players: ActorWorkers) -> None:
    first_of(players)
    for sprt in (None, Sprt(-20.0, 20.0)):
        match = LearningMatch((UNIFORM, UNIFORM), 12, 6, 3, 0.0, sprt)
        assert players.match(GAMES["go"], match) == play_match(GAMES["go"], match)
    assert any(each.games for each in first_of(players))


def test_the_games_of_a_lost_worker_are_played_by_another(players: ActorWorkers) -> None:
    first_of(players)
    scores: list[DuelScore] = []
    games = 300  # so many that the match outlasts the loss of a worker by far
    thread = threading.Thread(
        target=lambda: scores.append(players.match(GAMES["go"], LearningMatch((UNIFORM, UNIFORM), games, 6, 3, 0.0)))
    )
    thread.start()
    wait_until(lambda: players._match is not None and 0 in players._match.given)  # it has its share
    players.actors._there[0].process.kill()
    assert thread.is_alive(), "the match ended before the worker was lost"
    deliveries = 0
    while thread.is_alive():
        deliveries += len(players.take(0.1))
    thread.join()
    assert scores[0].games == games
    assert deliveries > 0


def test_a_match_that_cannot_be_played_is_one_line(players: ActorWorkers, tmp_path: Path) -> None:
    missing = Options(size=3, evaluator="onnx", net=str(tmp_path / "missing.bin.gz"), workers=1)
    with pytest.raises(LearningError, match=r"missing\.bin\.gz"):
        players.match(GAMES["go"], LearningMatch((missing, UNIFORM), 4, 6, 3, 0.0))
    assert any(each.games for each in first_of(players))


def test_self_play_returns_in_time_even_if_no_game_has_ended() -> None:
    selfplay = SelfPlay(GAMES["go"], Options(size=9, evaluator="uniform", workers=1), LearnSettings(), 1)
    try:
        begin = time.monotonic()
        assert selfplay.play(0.0) == []
        assert time.monotonic() - begin < 300.0
        assert selfplay.play(0.5) == [] or time.monotonic() - begin < 300.0
    finally:
        selfplay.close()


def test_games_do_not_share_evaluations() -> None:
    """Komi is no part of the keys of the cache."""
    selfplay = SelfPlay(GAMES["go"], Options(size=9, evaluator="uniform", workers=1), LearnSettings(games=1), 1)
    try:
        (search,) = selfplay.searches.slots
        while not search.tree.cache_keys.any():  # moves share them
            selfplay.play(0.001)
        selfplay._begin_one(search)
        assert not search.tree.cache_keys.any()
    finally:
        selfplay.close()


def test_the_benchmark_of_self_play_keeps_to_its_time() -> None:
    options = Options(size=19, evaluator="uniform", workers=1)
    found = _play(GAMES["go"], options, 64, 1, time.monotonic() + 300.0, 600)  # half a second of the five minutes
    assert found is not None
    assert found["evaluations_per_second"] > 0.0
    assert _play(GAMES["go"], options, 64, 1, time.monotonic(), 1) is None
