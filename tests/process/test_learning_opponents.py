"""Engines from outside at the board of self-play and of the ladder: real processes, good ones and bad ones."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.process.match_process import scripted
from yomi.engine.cli.main import main
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.go.learning import LearnableGo
from yomi.engine.go.points import square
from yomi.engine.go.sgf_reader import each_sgf_game
from yomi.engine.learning import opponents
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.opponents import FAILURES, DroppedGame, anchor_specs, opponent_spec
from yomi.engine.learning.rows import rows_of
from yomi.engine.learning.selfplay import FinishedGame, SelfPlay
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.workers import SelfPlayWorker, Task
from yomi.engine.matches.duel import LearningMatch, play_match
from yomi.engine.options import Options
from yomi.engine.play import RESIGNATION
from yomi.engine.registry import GAMES
from yomi.settings import OptionError, make_settings

pytestmark = pytest.mark.slow

GO = GAMES["go"]
SETTINGS = {
    "search": "puct",
    "visits": 4,
    "cheap_visits": 2,
    "full_share": 0.5,
    "opening": 0.0,
    "forks": 0.0,
    "surprise": 0.0,
}
PLAIN = Options(size=5, evaluator="uniform", workers=1)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start engines anew at once."""
    monkeypatch.setattr(opponents, "PAUSE_SECONDS", 0.0)


def play(
    engine: str, share: float, games: int, **settings: object
) -> tuple[SelfPlay[Any], list[FinishedGame[Any] | DroppedGame]]:
    """Play Go, four games side by side, until some of them were played against an engine, or were spoilt by it."""
    made = make_settings(
        LearnSettings, {**SETTINGS, "games": 4, "opponent": engine, "opponent_share": share, **settings}
    )
    selfplay = SelfPlay(GO, PLAIN, made, 1)
    ended: list[FinishedGame[Any] | DroppedGame] = []
    try:
        while sum(isinstance(each, DroppedGame) or bool(each.engines) for each in ended) < games:
            ended += selfplay.play()
    finally:
        selfplay.close()
    return selfplay, ended


def test_a_share_of_the_games_is_played_by_an_engine_whose_moves_are_not_learned() -> None:
    engine = "yomi:evaluator=uniform,visits=2,workers=1,memory=64M ;; name=other"
    selfplay, ended = play(engine, 0.5, 4, opening=1.0, forks=0.3)
    finished = [each for each in ended if isinstance(each, FinishedGame)]
    assert finished == ended
    with_engine = [each for each in finished if each.engines]
    assert len(finished) > len(with_engine) > 3
    assert {name for each in with_engine for name in each.engines.values()} == {"other"}
    for each in with_engine:
        ((color, _),) = each.engines.items()
        own = [ply for ply in each.plies if ply.position["side_to_move"][0] != color]
        foreign = [ply for ply in each.plies if ply.position["side_to_move"][0] == color]
        assert any(ply.found is not None for ply in own)
        assert all(ply.found is None and not ply.full_search for ply in foreign)
        rows = rows_of(each, selfplay.learnable, 0.0, np.random.default_rng(1))
        assert len(rows["value"]) == sum(ply.full_search for ply in own)
        (record,) = each_sgf_game(selfplay.learnable.record(each, "net"))
        assert {color: "other", BLACK + WHITE - color: "net"} == {BLACK: record.black, WHITE: record.white}
        assert record.result == each.ended.detail


def test_a_resignation_ends_the_game() -> None:
    _, ended = play(scripted("gtp", "resign"), 1.0, 4)
    for each in ended:
        assert isinstance(each, FinishedGame)
        assert each.ended.ending == RESIGNATION
        assert each.ended.winner not in (*each.engines, DRAW)
        assert each.outcome.margin is None


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        (scripted("gtp", "crash"), "crash: exited with status 3; stderr: Traceback: out of luck"),
        (scripted("gtp", "nonsense"), "nonsense: illegal move: 'Z99' found, expected a vertex"),
        (scripted("gtp", "refuse"), "refuse: refused 'komi "),
        ("missing-engine", "missing-engine: cannot be started: missing-engine: No such file or directory"),
    ],
)
def test_a_game_that_an_engine_spoils_is_dropped_and_the_others_go_on(engine: str, why: str) -> None:
    _, ended = play(engine, 0.25, 2)
    dropped = [each.why for each in ended if isinstance(each, DroppedGame)]
    assert dropped
    assert all(each.startswith(why) for each in dropped)
    finished = [each for each in ended if isinstance(each, FinishedGame)]
    assert finished
    assert not any(each.engines for each in finished)


def test_a_worker_tells_of_engines_in_what_it_delivers() -> None:
    workers = SelfPlayWorker(
        GO, make_settings(LearnSettings, {**SETTINGS, "games": 2, "opponent": scripted("gtp", "resign")}), 1
    )
    workers.use(Task(PLAIN, "uniform", {}))
    end = time.monotonic() + 60.0  # other games go on, and may be many, until the engine has started
    try:
        taken = iter(lambda: workers.take(1.0) if time.monotonic() < end else [], [])
        delivery = next(each for deliveries in taken for each in deliveries if each.points)
    finally:
        workers.close()
    assert delivery.points == [1.0]
    assert b"[resign]" in delivery.games[-1].record + delivery.games[0].record


def test_an_engine_is_told_of_handicap_stones_and_rules() -> None:
    from yomi.engine.go.matches import GoMatches

    class Client:
        told: Sequence[object] = ()

        def new_game(self, *words: object) -> None:
            self.told = words

    learnable = LearnableGo(Options(size=9), handicap=1.0, any_rules=True)
    game, client = learnable.new_game(np.random.default_rng(1), 3.0), Client()
    GoMatches().set_up(client, game, None)  # type: ignore[arg-type]
    stones = [square(9).vertex(point) for _, point in game.setup]
    assert len(stones) >= 2
    assert client.told == (9, game.komi, str(game.rules), None, stones)


def test_a_match_against_an_engine() -> None:
    (spec,) = anchor_specs([scripted("gtp", "resign")], GO, ["uniform"])
    score = play_match(GO, LearningMatch((PLAIN, spec), 5, 2, 1, 0.0))
    assert (score.wins, score.draws, score.losses, score.faults) == (6, 0, 0, ())
    assert score.pairs[-1] == 3


def test_a_match_against_an_engine_that_fails_again_and_again_ends_with_the_reason() -> None:
    spec = opponent_spec(scripted("gtp", "crash"), GO)
    with pytest.raises(
        LearningError, match=f"{FAILURES} games in a row failed because of an engine: crash: exited with"
    ):
        play_match(GO, LearningMatch((PLAIN, spec), 4, 2, 1, 0.0))


def test_shogi_is_played_by_engines_of_usi() -> None:
    shogi = GAMES["shogi"]
    options = replace(Options.for_game("shogi"), evaluator="uniform", workers=1, max_moves=12)
    spec = opponent_spec(f"{scripted('usi', 'resign')} nodes=10", shogi)
    score = play_match(shogi, LearningMatch((options, spec), 2, 2, 1, 0.0))
    assert (score.wins, score.faults) == (2, ())


@pytest.mark.parametrize(
    ("game", "engine", "message"),
    [
        ("go", "gnugo ;; main=60", "engine gnugo with main 60: expected no clock, such as seconds=1 (a move)"),
        ("shogi", "fairy-stockfish", "engine fairy-stockfish has no limit: add one"),
        ("go", "gnugo ;; level", "'level' after ;;: expected KEY=VALUE"),
        ("go", "gnugo ;; name=uniform", "anchor uniform: another player has this name"),
    ],
)
def test_engines_that_cannot_be_are_refused(game: str, engine: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        anchor_specs([engine], GAMES[game], ["uniform"])
    assert str(caught.value).startswith(message)


def test_a_run_ends_with_the_strength_that_was_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    net = tmp_path / "net.toml"
    net.write_text('[network]\nkind = "go"\nblocks = 1\nchannels = 16\npooled = 8\npooling_blocks = []\n')
    # so many rows that the engine, a process that has to start, plays in some of the games
    settings = "--size 3 --processes 0 --rows 1500 --visits 4 --cheap-visits 2 --window 2000 --match-visits 2"
    settings += f" --ladder 20 --ladder-every 1 --network {net} --out {tmp_path / 'run'}"
    words = ["learn", "go", *settings.split()]
    engine = scripted("gtp", "resign", name="quitter")
    words += ["--opponent", engine, "--opponent-share", "0.2", "--anchor", engine, "--until", "quitter", "0.9"]
    assert main(words) == 0
    assert "network 1 against quitter: 20-0-0" in capfd.readouterr().err
    events = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert events[-1]["why"] == "the goal is reached"
    assert sum(each.get("engine_games", 0) for each in events) > 0
    assert [each["against"] for each in events if each["event"] == "match"] == ["uniform", "rollouts", "quitter"]
    assert main(words) == 0  # it is reached, whenever it is asked again
    again = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert [each["event"] for each in again[len(events) :]] == ["start", "stop"]
    assert main(["learn", "status", str(tmp_path / "run")]) == 0
    assert "quitter 20-0-0" in capfd.readouterr().out
