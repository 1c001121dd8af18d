"""The real engine in a process, mostly without a network: `yomi usi` as a graphical interface starts it."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.engine_process import UsiProcess

pytestmark = pytest.mark.slow

ENGINE = ("yomi", "usi", "--evaluator", "uniform", "--workers", "1", "--memory", "64M", "--seed", "1")
MOVE = r"([1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i])"
BESTMOVE = re.compile(rf"bestmove {MOVE}( ponder {MOVE})?")


@pytest.fixture(scope="module")
def engine() -> Iterator[UsiProcess]:
    with UsiProcess(*ENGINE) as process:
        process.ready()
        yield process


def test_a_game(engine: UsiProcess) -> None:
    engine.send("usinewgame")
    moves: list[str] = []
    for _ in range(20):
        line = " ".join(["position startpos moves", *moves])
        answer = engine.bestmove(line, "go nodes 50")
        found = BESTMOVE.fullmatch(answer)
        assert found, answer
        moves.append(found[1])
    engine.send("gameover draw", f"position startpos moves {' '.join(moves)}", "moves")
    assert re.match(r"info string \d+ moves: ", engine.until("info string")[-1])


def test_reports(engine: UsiProcess) -> None:
    engine.send("usinewgame", "position startpos", "setoption name MultiPV value 4", "go nodes 300")
    lines = engine.until("bestmove")
    engine.send("setoption name MultiPV value 1")
    form = re.compile(
        r"info depth \d+ seldepth \d+ multipv [1-4] score (cp -?\d+|mate -?\d+)( lowerbound| upperbound)?"
        rf" nodes \d+ nps \d+ hashfull \d+ time \d+ pv( {MOVE})+"
    )
    assert all(form.fullmatch(line) for line in lines[:-1])
    assert [line.split(" multipv ")[1][0] for line in lines[-5:-1]] == list("1234")


@pytest.mark.parametrize(
    "go",
    [
        "go btime 0 wtime 0 byoyomi 400",
        "go btime 0 wtime 0",
        "go btime 1000 wtime 1000 binc 100 winc 100",
        "go movetime 300",
    ],
)
def test_a_clock_ends_a_search(engine: UsiProcess, go: str) -> None:
    engine.send("position startpos moves 2g2f")
    assert BESTMOVE.fullmatch(engine.bestmove(go))


def test_analysis(engine: UsiProcess) -> None:
    engine.send("setoption name PvInterval value 50", "position startpos", "go infinite")
    for _ in range(5):
        assert engine.line().startswith("info depth")
    assert BESTMOVE.fullmatch(engine.bestmove("stop"))
    engine.send("setoption name PvInterval value 500")


def test_pondering(engine: UsiProcess) -> None:
    for stochastic in ("true", "false"):
        engine.send(f"setoption name Stochastic_Ponder value {stochastic}", "position startpos moves 7g7f 3c3d")
        for go, end in (
            ("go ponder btime 1000 wtime 1000 byoyomi 300", "ponderhit"),
            ("go ponder btime 1000 wtime 1000 byoyomi 300", "stop"),
            ("go ponder", "ponderhit btime 0 wtime 0 byoyomi 300"),
        ):
            engine.send(go)
            time.sleep(0.1)
            assert BESTMOVE.fullmatch(engine.bestmove(end))


def test_the_network_that_comes_with_yomi_plays() -> None:
    with UsiProcess("yomi", "usi", "--precision", "fp32", "--memory", "64M") as process:
        process.send("usi")
        assert "option name DNN_Model type filename default <empty>" in process.until("usiok")
        process.send("setoption name DNN_Model value <empty>", "isready")
        assert any("yomi-shogi" in line for line in process.until("readyok"))
        assert BESTMOVE.fullmatch(process.bestmove("position startpos", "go nodes 100"))


def test_a_repeated_position_is_searched(engine: UsiProcess) -> None:
    """The first repetition ends a line of the search, not the game."""
    cycle = "5i5h 5a5b 5h5i 5b5a"
    for times in (1, 2, 3):
        answer = engine.bestmove(f"position startpos moves {' '.join([cycle] * times)}", "go nodes 40")
        assert BESTMOVE.fullmatch(answer)


def test_a_network_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"nonsense")
    for found in (path, tmp_path / "missing.onnx"):
        with UsiProcess("yomi", "usi") as process:
            process.send(f"setoption name DNN_Model value {found}", "isready")
            lines = process.rest().splitlines()
            assert process.end(60) == 2
            assert lines[-1].startswith("info string Error! ")
            assert str(found) in lines[-1]
            assert "readyok" not in lines


def test_a_level_and_a_network_by_name() -> None:
    """A graphical interface sends all its options, in any order; the level goes before them."""
    with UsiProcess("yomi", "usi", "--memory", "64M") as engine:
        engine.send("usi")
        lines = engine.until("usiok")
        assert "option name Level type spin default 0 min -1 max 20" in lines
        kept = [line.split() for line in lines if line.startswith("option name UCT_") and " type spin " in line]
        engine.send("setoption name Level value 2")
        engine.send(*(f"setoption name {words[2]} value {words[6]}" for words in kept))
        engine.send("isready")
        lines = engine.until("readyok")
        assert any("suisho-petite" in line for line in lines)
        assert any(line.startswith("info string level 2 of 20 (") for line in lines)
        engine.send("position startpos", "go byoyomi 60000")  # some hundred nodes, and no minute
        lines = engine.until("bestmove")
        assert BESTMOVE.fullmatch(lines[-1])
        assert int(lines[-2].split(" nodes ")[1].split()[0]) < 500
        engine.send("usi")
        assert "option name UCT_NodeLimit type spin default 0 min 0 max 2147483647" in engine.until("usiok")
        engine.send("setoption name Level value 0", "setoption name DNN_Model value yomi-shogi-sparse", "isready")
        lines = engine.until("readyok")
        assert any("yomi-shogi-sparse" in line for line in lines)
        assert not any("level" in line for line in lines)
        engine.send("position startpos", "go nodes 100")
        assert int(engine.until("bestmove")[-2].split(" nodes ")[1].split()[0]) >= 50
        engine.send("setoption name Level value 21")
        assert "expected a number from -1 to 20" in engine.line()
