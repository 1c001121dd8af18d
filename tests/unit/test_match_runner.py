"""The end of a match while engines are waited for that say nothing."""

import functools
import shlex
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.process.match_process import scripted
from yomi.engine.clients.client import EngineProcess
from yomi.engine.clients.spec import EngineSpec, parse_spec
from yomi.engine.go.game import GoGame
from yomi.engine.go.matches import AREA, GoMatches, ScoringReferee
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.matches.games import GameRunner, RefereeSettings
from yomi.engine.matches.results import GameResult, MatchError
from yomi.engine.matches.runner import MatchPlan, MatchRunner
from yomi.engine.matches.schedule import pairs_of, schedule
from yomi.engine.options import Options

PATIENCE = 300.0
"""Seconds that a silent engine is waited for unless something ends it."""
SILENT = "import pathlib, time; pathlib.Path('asked').touch(); time.sleep(1000)"
SILENT_AT_THE_END = f"""\
for line in iter(input, "final_score"):
    print("= final_score\\n" if line == "list_commands" else "=\\n", flush=True)
{SILENT}
"""


def python(script: str) -> str:
    """Return the command line of an engine that is a script."""
    return shlex.join([sys.executable, "-S", "-E", "-c", script])


def test_a_scorer_that_died_between_two_games_is_started_again() -> None:
    game = GoGame(square(9), PRESETS["tromp-taylor"], 7.5)
    started: list[EngineProcess] = []
    scorer = ScoringReferee(scripted("gtp", "fine"), on_start=started.append)
    try:
        for number in range(1, 3):
            for _ in range(2):  # one that runs stays
                scorer.start(game)
                scorer.score(game)
            assert len(started) == number
            started[-1].kill()
    finally:
        scorer.close()


@pytest.mark.parametrize("who", ["player", "scorer", "scorer at the end"])
def test_nobody_waits_for_engines_that_are_ended(who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for one that starts nor for one that scores."""
    monkeypatch.chdir(tmp_path)
    fine = parse_spec(scripted("gtp", "fine"), "go", "gtp")
    players = [fine, EngineSpec("silent", tuple(shlex.split(python(SILENT)))) if who == "player" else fine]
    scorer = {"player": AREA, "scorer": python(SILENT)}.get(who, python(SILENT_AT_THE_END))
    rules = GoMatches().rules(Options(size=9), scorer, 0)
    host = functools.partial(GameRunner, GoMatches(), rules, RefereeSettings(timeout=PATIENCE))
    pairings = list(schedule(pairs_of(2), 2, 1))
    played: list[GameResult] = []
    (tmp_path / "match").mkdir()
    runner = MatchRunner(MatchPlan(players, [""], host, tmp_path / "match"))
    thread = threading.Thread(target=lambda: played.extend(runner.play(pairings)))
    thread.start()
    while thread.is_alive() and not Path("asked").exists():
        time.sleep(0.01)
    runner.close()
    thread.join(PATIENCE / 10)
    assert not thread.is_alive()
    assert played == []
    assert list((tmp_path / "match").iterdir()) == []


def test_an_error_loses_no_game_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does Ctrl-C: the caller gets it before the error, and stores it."""
    ended = GameResult(0, "A", "B", 1, "score")
    runner = MatchRunner(MatchPlan([], [""], lambda on_start: pytest.fail("no engine starts"), tmp_path))

    def run() -> None:
        runner.found.put(MatchError("on purpose"))
        runner.found.put(ended)

    monkeypatch.setattr(runner._slots[0], "run", run)
    played = runner.play([])
    assert next(played) == ended
    with pytest.raises(MatchError, match="on purpose"):
        next(played)
