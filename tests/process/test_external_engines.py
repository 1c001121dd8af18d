"""`yomi.open_engine`: yomi itself by GTP and USI, and a GTP engine that misbehaves."""

from __future__ import annotations

import gc
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import yomi

FAST = "workers=1,memory=16M,cache_size=1M,seed=1"
# Answers each command with success, and those in its arguments, COMMAND=ANSWER, in another way.
FAKE = """
import sys, time
own = dict(word.split("=", 1) for word in sys.argv[1:])
for line in sys.stdin:
    name = line.split()[0]
    if "log" in own:
        open(own["log"], "a").write(line)
    if name == "quit":
        break
    answer = own.get(name, "= Fake" if name == "name" else "=")
    if answer == "die":
        sys.exit("out of memory")
    if answer != "hang":
        print(answer.replace("|", chr(10)), end=chr(10) * 2, flush=True)
"""


@pytest.fixture(scope="module")
def go() -> Iterator[yomi.ExternalEngine[yomi.go.Game]]:
    with yomi.open_engine(f"yomi:size=5,evaluator=rollouts,{FAST}", "go") as engine:
        yield engine


@pytest.fixture(scope="module")
def shogi() -> Iterator[yomi.ExternalEngine[yomi.shogi.Game]]:
    with yomi.open_engine(f"yomi:evaluator=material,search_engine=tree,{FAST}", "shogi") as engine:
        yield engine


@pytest.mark.process
def test_yomi_by_gtp(go: yomi.ExternalEngine[yomi.go.Game]) -> None:
    game = yomi.go.Game(5, komi=3.0)
    assert go.name.startswith("yomi")
    for _ in range(3):  # the engine's own moves are known to it
        decision = go.play(game, yomi.Limit(visits=30))
        assert decision.move is not None
        assert game.is_legal(decision.move)
        game.play(decision.move)
    report = go.analyse(game.undo(), yomi.Limit(visits=200))  # another position, so that the board is set up again
    assert report.side_to_move == game.side_to_move
    assert report.visits >= 200
    assert report.best is not None
    assert report.best.move == report.moves[0].variation[0]
    assert 0.0 <= report.score.winrate <= 1.0
    assert report.score.lead is not None
    assert all(game.is_legal(move.move) for move in report.moves)
    taken = yomi.go.Game(5, handicap=["B2", "D4"])
    assert go.play(taken, yomi.Limit(seconds=0.2)).move in taken.legal_moves()
    assert go.play(taken, yomi.Limit(clocks=yomi.Clock(5.0, byoyomi=1.0))).move in taken.legal_moves()


@pytest.mark.process
def test_yomi_by_usi(shogi: yomi.ExternalEngine[yomi.shogi.Game]) -> None:
    game = yomi.shogi.Game().play("7g7f")
    decision = shogi.play(game, yomi.Limit(nodes=50))
    assert decision.move in game.legal_moves()
    assert decision.report.visits >= 40
    report = shogi.analyse(game, yomi.Limit(seconds=0.2))
    assert report.unit == "nodes"
    assert report.best is not None
    assert report.best.move in game.legal_moves()
    assert report.score.lead is None
    mated = yomi.shogi.Game("4k4/4G4/4P4/9/9/9/9/9/4K4 w G2r2b2g4s4n4l17p 1")
    assert shogi.play(mated, yomi.Limit(nodes=50)).resign


def fake(tmp_path: Path, *answers: str, timeout: float = 5.0) -> yomi.ExternalEngine[yomi.go.Game]:
    path = tmp_path / "fake.py"
    path.write_text(FAKE)
    return yomi.open_engine(shlex.join([sys.executable, str(path), *answers]), timeout=timeout)


KNOWS = "list_commands== kata-analyze"
INFO = "= |info move C3 visits 7 winrate 0.7 scoreLead 2 prior 0.5 order 1 pv C3 D4 info move D4 visits 3 winrate 0.4"
# KataGo repeats the visits of a searched move at its symmetric moves.
SAME = " info move D2 visits 3 winrate 0.4 scoreLead -1 prior 0.2 isSymmetryOf D4 order 2 pv D2"


@pytest.mark.process
def test_an_engine_that_misbehaves(tmp_path: Path) -> None:
    game = yomi.go.Game(5)
    cases = [
        (["genmove== Z9"], "answered 'Z9', expected a legal move"),
        (["genmove=die"], "exited with status 1; stderr: out of memory"),
        (["genmove=nonsense"], "answered 'nonsense' to 'genmove B': expected = or ?"),
        (["genmove=hang"], "no answer to 'genmove B' within 1 s"),
        (["genmove=="], "answered nothing to 'genmove B'"),
    ]
    for answers, expected in cases:
        with fake(tmp_path, *answers, timeout=1.0 if "hang" in answers[0] else 5.0) as engine:
            with pytest.raises(yomi.EngineError) as caught:
                engine.play(game)
            assert expected in str(caught.value)
            with pytest.raises(yomi.ClosedError, match="the engine has failed: open another one"):
                engine.play(game)
    refuses = fake(tmp_path, "boardsize=? unacceptable size")
    with refuses, pytest.raises(yomi.EngineError, match="refused 'boardsize 5': unacceptable size"):
        refuses.play(game)
    with pytest.raises(yomi.EngineError, match="refused 'name'"):
        fake(tmp_path, "name=? no")
    with pytest.raises(yomi.EngineError, match="cannot be started: /nowhere/engine"):
        yomi.open_engine("/nowhere/engine gtp")


@pytest.mark.process
def test_what_is_refused_leaves_the_engine_usable(tmp_path: Path) -> None:
    game = yomi.go.Game(5)
    with fake(tmp_path, "genmove== resign") as engine:
        for limit, expected in (
            (yomi.Limit(visits=5), "knows no command for visits"),
            (yomi.Limit(depth=5), "depth found, expected seconds"),
            (3, "limit 3 found, expected a yomi.Limit"),
        ):
            with pytest.raises(yomi.Error, match=expected):
                engine.play(game, limit)  # type: ignore[arg-type]
        with pytest.raises(yomi.EngineError, match="knows no command for analyses"):
            engine.analyse(game)
        with pytest.raises(yomi.Error, match=r"expected a yomi\.go\.Game"):
            engine.play(yomi.shogi.Game())  # type: ignore[arg-type]
        decision = engine.play(game)
        assert (decision.move, decision.resign, decision.report.moves) == (None, True, ())
    with pytest.raises(yomi.ClosedError, match="the engine is closed"):
        engine.play(game)


@pytest.mark.process
def test_a_limit_holds_for_one_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    own = ["list_commands== kata-set-param kata-get-param", "kata-get-param== 500", "genmove== pass", f"log={log}"]
    with fake(tmp_path, *own) as engine:
        engine.play(yomi.go.Game(5), yomi.Limit(visits=7))
        engine.play(yomi.go.Game(5))
    sent = [line for line in log.read_text().splitlines() if line.startswith("kata-set-param")]
    assert sent == ["kata-set-param maxVisits 7", "kata-set-param maxVisits 500"]


@pytest.mark.process
def test_reports_of_an_analysis(tmp_path: Path) -> None:
    with fake(tmp_path, KNOWS, f"kata-analyze={INFO} scoreLead -1 prior 0.2 order 0 pv D4 X9{SAME}") as engine:
        report = engine.analyse(yomi.go.Game(5), yomi.Limit(visits=10))
    assert [(move.move, move.visits, move.prior, move.variation, move.symmetry_of) for move in report.moves] == [
        ("D4", 3, 0.2, ("D4",), None),
        ("C3", 7, 0.5, ("C3", "D4"), None),
        ("D2", 3, 0.2, ("D2",), "D4"),
    ]
    assert (report.visits, report.score.winrate, report.score.lead) == (10, 0.4, -1.0)


@pytest.mark.process
def test_few_visits_are_reported_more_often(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with fake(tmp_path, KNOWS, f"kata-analyze={INFO}", f"log={log}") as engine:
        for visits in (5, 1000):
            engine.analyse(yomi.go.Game(5), yomi.Limit(visits=visits))
    sent = [line for line in log.read_text().splitlines() if line.startswith("kata-analyze")]
    assert sent == ["kata-analyze B 1", "kata-analyze B 20"]


@pytest.mark.process
def test_an_engine_ends_with_its_object(tmp_path: Path) -> None:
    engine = fake(tmp_path)
    process = engine._client.process
    assert process.is_running
    del engine
    gc.collect()
    assert not process.is_running


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_copy_of_the_program_leaves_the_engine_alone(tmp_path: Path) -> None:
    script = """
import os, sys, warnings, yomi
warnings.simplefilter("ignore")
engine = yomi.open_engine("yomi:evaluator=rollouts,visits=2", "go")
child = os.fork()
if not child:
    del engine
    sys.exit(0)
os.waitpid(child, 0)
print(engine.play(yomi.go.Game(5)).move is not None)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (0, "True\n"), found.stderr


@pytest.mark.process
def test_what_an_engine_does_not_report_is_unknown(tmp_path: Path) -> None:
    with fake(tmp_path, "genmove== D4") as engine:
        report = engine.play(yomi.go.Game(5)).report
    assert math.isnan(report.score.winrate)
    assert (report.score.lead, str(report.score)) == (None, "Black unknown")
    assert math.isnan(report.score.centipawns())
