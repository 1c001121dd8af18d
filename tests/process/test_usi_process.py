"""The USI loop in a real process through real pipes, with a player without a search: every order of commands."""

import itertools
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.process.engine_process import ROOT, UsiProcess, check_end_without_reader
from yomi.engine.shogi.usi.session import GRACE, PATIENCE

FAKE = "tests.process.fake_usi_engine"
ANSWERS = re.compile(r"bestmove \S+( ponder \S+)?|checkmate .+")


Fakes = Callable[..., UsiProcess]


@pytest.fixture(scope="module")
def fakes() -> Iterator[Fakes]:
    """Give what returns an engine by its arguments: the same one to every test that leaves it without a search."""
    with ExitStack() as stack:
        started: dict[tuple[str, ...], UsiProcess] = {}

        def engine(*arguments: str) -> UsiProcess:
            if arguments not in started:
                started[arguments] = stack.enter_context(UsiProcess(FAKE, *arguments))
                started[arguments].ready()
            return started[arguments]

        yield engine


def answers(text: str) -> list[str]:
    """Return the answers to `go` in an output."""
    return [line for line in text.splitlines() if line.startswith(("bestmove", "checkmate"))]


def end(engine: UsiProcess, how: str) -> None:
    """End a session by `quit`, or by the end of its input."""
    if how == "quit":
        engine.send("quit")
    else:
        engine.close_input()


def test_introduction() -> None:
    with UsiProcess(FAKE) as engine:
        engine.send("usi")
        lines = engine.until("usiok")
        assert re.fullmatch(r"id name yomi \S+", lines[0])
        assert re.fullmatch(r"id author .+", lines[1])
        form = re.compile(
            r"option name [A-Za-z_]+ type (check default (true|false)|spin default -?\d+ min -?\d+ max -?\d+"
            r"|combo default (\S+)( var \S+)+|(string|filename) default \S+|button)"
        )
        for line in lines[2:-1]:
            assert form.fullmatch(line), line


LIMITED, HELD = "go byoyomi 100", ("go infinite", "go ponder byoyomi 100", "go ponder infinite")
MATE = "go mate infinite"
ENDS = ("stop", "ponderhit", "gameover lose", "usinewgame", "position startpos", "isready", "", "go nodes 1")


@pytest.mark.parametrize("seconds", ["0", "60"])
@pytest.mark.parametrize("go", [LIMITED, *HELD])
def test_every_order_gets_one_answer(go: str, seconds: str, fakes: Fakes) -> None:
    """Two commands after a `go`, in every order, with a search that ends at once and with one that does not."""
    engine = fakes(seconds)
    for first, second in itertools.product(ENDS, ENDS):
        engine.send("position startpos moves 7g7f", go, first, second, "stop", "isready")
        lines = engine.until("readyok")
        for _ in range([first, second].count("isready")):
            lines += engine.until("readyok")
        found = [line for line in lines if ANSWERS.fullmatch(line)]
        wanted = 1 + [first, second].count("go nodes 1")
        assert len(found) == wanted, (go, first, second, lines)


@pytest.mark.parametrize("seconds", ["0", "600"])
def test_answers_are_held_back(seconds: str) -> None:
    with UsiProcess(FAKE, seconds) as engine:
        engine.ready()
        engine.send("setoption name PvInterval value 50")
        middles = ((), ("isready",), ("setoption name MultiPV value 2",), ("nonsense",))
        for go, middle in itertools.product(HELD, middles):
            engine.send(go, *middle)
            time.sleep(0.1)
            engine.send("isready")
            lines = engine.until("readyok") + (engine.until("readyok") if middle == ("isready",) else [])
            assert answers("\n".join(lines)) == [], (go, middle)
            engine.send("stop")
            assert engine.until("bestmove")[-1].startswith("bestmove 1g1f ponder "), (go, middle)
        engine.send("quit")
        assert answers(engine.rest()) == []
        assert engine.end(60) == 0


@pytest.mark.parametrize("go", HELD)
def test_a_failure_is_told_at_once_and_its_answer_held_back(go: str, fakes: Fakes) -> None:
    engine = fakes("0", "0", "", "the device is gone")
    engine.send(go)
    assert engine.line() == "info string Error! the device is gone"
    engine.send("isready")
    assert engine.line() == "readyok"
    engine.send("stop" if "infinite" in go else "ponderhit")
    assert engine.line() == "bestmove resign"
    engine.send("go mate 100")
    assert engine.line() == "checkmate timeout"


def test_ponderhit_starts_the_clock() -> None:
    with UsiProcess(FAKE, "0.2") as engine:
        engine.ready()
        engine.send("go ponder btime 1000 wtime 1000")
        time.sleep(0.5)
        engine.send("ponderhit")
        assert engine.until("bestmove", 60)
        engine.send("ponderhit")
        assert engine.line().startswith("info string Error! ponderhit: not pondering")
        engine.send("go infinite", "ponderhit")
        assert engine.until("info string")[-1].startswith("info string Error! ponderhit: not pondering")
        engine.bestmove("stop")


def test_no_info_follows_an_answer() -> None:
    with UsiProcess(FAKE, "60") as engine:
        engine.ready()
        engine.send("setoption name PvInterval value 1")
        for _ in range(20):
            engine.send("go infinite")
            time.sleep(0.02)
            engine.bestmove("stop")
            time.sleep(0.02)
            engine.send("isready")
            assert engine.line() == "readyok"


@pytest.mark.parametrize(
    "go",
    ["", "go infinite", "go byoyomi 60000", *(pytest.param(go, marks=pytest.mark.slow) for go in (HELD[1], MATE))],
)
@pytest.mark.parametrize("how", ["quit", "close"])
def test_the_end_comes_within_a_second(go: str, how: str) -> None:
    """The machine may be busy: one of twenty has its answer in this time."""
    assert GRACE + PATIENCE < 1

    def once() -> int:
        with UsiProcess(FAKE, "600") as engine:
            engine.ready()
            if go:
                engine.send(go)
                engine.ready()
            end(engine, how)
            assert engine.end(60) == 0
            rest = engine.rest()
            assert rest.endswith("\n") or not rest
            return len(answers(rest))

    assert any(once() == bool(go) for _ in range(20))


@pytest.mark.parametrize("how", ["quit", "close"])
def test_the_end_while_loading(how: str) -> None:
    with UsiProcess(FAKE, "0", "600") as engine:
        engine.send("usi", "isready")
        engine.until("usiok")
        time.sleep(0.3)
        end(engine, how)
        assert engine.end(60) == 0
        assert engine.rest() == ""


def test_what_cannot_be_loaded() -> None:
    with UsiProcess(FAKE, "0", "0", "no such network") as engine:
        engine.send("usi", "isready")
        engine.until("usiok")
        lines = engine.until("info string Error! no such network")
        assert all(line.startswith("info string loading, ") for line in lines[:-1])
        assert engine.end(60) == 2
        assert b"".join(engine.errors) == b"yomi: error: no such network\n"
        assert engine.rest() == ""


def test_wrong_flags_are_seen_by_a_graphical_interface() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "yomi", "usi", "--net", "no/such/file"], cwd=ROOT, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert found.stdout.startswith("info string Error! --net no/such/file: no such file")
    assert found.stdout.count("\n") == 1
    assert found.stderr.startswith("yomi: error: --net no/such/file: no such file")


SCRIPT = "usi\nisready\nposition startpos\ngo byoyomi 100\ngo nodes 5\ngo mate 400\ngo infinite\nquit\n"


@pytest.mark.parametrize("is_file", [True, False])
def test_a_script_gets_its_searches_in_full(is_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(SCRIPT)
    start = time.monotonic()
    with path.open() as file:
        source = {"stdin": file} if is_file else {"input": SCRIPT}
        found = subprocess.run(
            [sys.executable, "-m", FAKE, "0.4", "0.3"], cwd=ROOT, capture_output=True, text=True, **source
        )
    assert found.returncode == 0
    assert answers(found.stdout) == [
        *["bestmove 1g1f ponder 1a1b"] * 2,
        "checkmate timeout",
        "bestmove 1g1f ponder 1a1b",
    ]
    assert time.monotonic() - start > 1.2


def test_mate(fakes: Fakes) -> None:
    engine = fakes("60")
    engine.send("go mate 100")
    assert engine.line() == "checkmate timeout"
    engine.send("go mate infinite", "stop")
    assert engine.line() == "checkmate timeout"
    engine.send("go mate", "position startpos", "isready")
    assert engine.line() == "checkmate timeout"
    assert engine.line() == "readyok"


def diagram(engine: UsiProcess) -> str:
    """Return the last line of the answer to `d`: the SFEN."""
    return [engine.line() for _ in range(14)][-1]


def test_faults_are_reported_and_do_not_end_the_session(fakes: Fakes) -> None:
    engine = fakes()
    engine.send("position startpos moves 7g7f 3c3d")
    for line, start in {
        "position startpos moves 7g7f 7g7f": "position: move 2: illegal move 7g7f: ",
        "position startpos moves 7g7f xyz": "position: move 2: not a move",
        "position sfen nonsense b - 1": "position: ",
        "position sfen 9/9/9/9/9/9/9/9/9 b - 1": "position: ",
        "position": "position: expected startpos or sfen",
        "position fen": "position: expected startpos or sfen",
        "setoption name No_Such value 1": "setoption: unknown option 'No_Such'",
        "setoption name Levl value 3": "setoption: unknown option 'Levl'; did you mean Level?",
        "setoption name MultiPV value many": "setoption: MultiPV: expected a number from 1 to 593, found 'many'",
        "setoption name MultiPV value 0": "setoption: MultiPV: expected a number from 1 to 593, found '0'",
        "setoption name EnteringKingRule value HalfRule": "setoption: EnteringKingRule: expected one of No",
        "setoption": "setoption: expected name NAME value VALUE",
        "bestmove": "bestmove: unknown command",
        "x" * 1_100_000: "x" * 50,
    }.items():
        engine.send(line)
        assert engine.line().startswith(f"info string Error! {start}")
    engine.send("d")
    assert engine.line().startswith("info string Error! d: there is no position: the last one was refused (expected")
    engine.send("position startpos moves 7g7f 3c3d", "d")
    assert diagram(engine).endswith("b - 3")
    engine.send("go byoyomi many nodes")
    lines = engine.until("bestmove")
    assert lines[0] == "info string Error! go: byoyomi: expected a number, found 'many'"


def test_options_take_effect() -> None:
    with UsiProcess(FAKE) as engine:
        engine.ready()
        engine.send(
            "setoption name multipv value 3", "SetOption Name USI_Ponder Value true", "setoption name Clear_Tree"
        )
        engine.send(
            "setoption name EnteringKingRule value CSARule24", "setoption name Eval Coef value 600", "go nodes 1"
        )
        lines = engine.until("bestmove")
        assert [line.split("score")[0].split()[-2:] for line in lines[:-1]] == [["multipv", f"{i}"] for i in (1, 2, 3)]
        assert "score cp 306 " in lines[1]
        engine.send("usi")
        lines = engine.until("usiok")
        assert any(line.startswith("option name EnteringKingRule type combo default CSARule24 ") for line in lines)
        # a network is loaded by the next isready, with the position kept
        engine.send("position startpos moves 7g7f", "setoption name DNN_Model value a b.onnx", "isready", "d")
        engine.until("readyok")
        assert diagram(engine).endswith("w - 2")


def test_searchmoves(fakes: Fakes) -> None:
    engine = fakes()
    engine.send("position startpos")
    assert engine.bestmove("go nodes 5 searchmoves 7g7f 2g2f").split()[:2] == ["bestmove", "2g2f"]
    engine.send("go searchmoves huh 7g7f nodes 5")
    assert engine.line().startswith("info string Error! go: searchmoves: not a move: 'huh'")
    assert engine.bestmove().split()[:2] == ["bestmove", "7g7f"]
    engine.send("go searchmoves 7g7e nodes 5")
    assert engine.line() == "info string Error! go: searchmoves: 7g7e is no legal move here"
    assert engine.line().endswith("searchmoves: expected at least one legal move; all moves are searched")
    assert engine.bestmove().split()[:2] == ["bestmove", "1g1f"]


@pytest.mark.parametrize("last", [b"usi\nusi\n", b"go infinite\n", b"foo\n"])
def test_nobody_reads_the_answers(last: bytes) -> None:
    check_end_without_reader(FAKE, "60", hello=b"isready\n", answer=b"readyok\n", last=last)
