"""Clients of GTP and USI engines: what they tell the engine, and what they make of its answers."""

import itertools
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from yomi.engine.clients import client as engine_client
from yomi.engine.clients import usi as usi_client
from yomi.engine.clients.client import STOP_TIMEOUT, TIMEOUT, EngineError, EngineMove, Evaluation, RefusedError
from yomi.engine.clients.gtp import GtpClient, read_evaluation
from yomi.engine.clients.spec import EngineLimits, EngineSpec
from yomi.engine.clients.usi import POLL, UsiClient, UsiSearch, read_info
from yomi.engine.clock import Clock
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.matches import ShogiMatches

BASIC = "name version list_commands boardsize clear_board komi play genmove quit time_settings time_left"
SPEC = EngineSpec("x", ("x",))
SFEN = "4k4/9/9/9/9/9/9/9/4K4 b G 1"
KATA = "kata-set-param kata-set-rules kata-time_settings kata-genmove_analyze"
CASES: list[tuple[EngineLimits, str, str]] = [
    (EngineLimits(main=60), "", "time_settings 60 0 0"),
    (EngineLimits(main=60, byoyomi=10), "", "time_settings 60 10 1"),
    (EngineLimits(main=60, byoyomi=10, periods=3), "", "time_settings 80 10 1"),
    (EngineLimits(main=60, byoyomi=10, periods=3), "kgs-time_settings", "kgs-time_settings byoyomi 60 10 3"),
    (EngineLimits(main=60, byoyomi=0.5, periods=3), KATA, "kata-time_settings byoyomi 60 0.5 3"),
    (EngineLimits(byoyomi=30, stones=5), KATA, "time_settings 0 30 5"),
    (EngineLimits(main=60, increment=1), KATA, "kata-time_settings fischer 60 1"),
    (EngineLimits(seconds=2), "", "time_settings 0 2 1"),
    (EngineLimits(seconds=0.25), "", "time_settings 0 1 4"),
    (EngineLimits(seconds=0.25), KATA, "time_settings 0 1 0"),
    (EngineLimits(), "", "time_settings 0 1 0"),
]


class FakeProcess:
    """Answers lines by a function and keeps them."""

    def __init__(self, answer: Callable[[str], list[str]]) -> None:
        self.answer = answer
        self.sent: list[str] = []
        self.lines: list[str] = []
        self.is_running = True

    def send(self, *lines: str) -> float:
        for line in lines:
            self.sent.append(line)
            self.lines += self.answer(line)
        return time.monotonic()

    def line(self, deadline: float) -> tuple[float, str]:
        if not self.lines:
            raise TimeoutError
        return time.monotonic(), self.lines.pop(0)

    def close(self, farewell: str = "") -> None:
        self.is_running = False


def gtp(
    monkeypatch: pytest.MonkeyPatch, known: str, limits: EngineLimits, spec: EngineSpec = SPEC, **answers: str
) -> tuple[GtpClient, FakeProcess]:
    """Return a client of an engine that knows some commands and answers some in its own way."""

    def answer(line: str) -> list[str]:
        name = line.split()[0]
        if name == "list_commands":
            return [f"= {known.split()[0]}", *known.split()[1:], ""]
        return [*answers.get(name.replace("-", "_"), "=").split("\n"), ""]

    process = FakeProcess(answer)
    monkeypatch.setattr(engine_client, "EngineProcess", lambda *args, **kwargs: process)
    return GtpClient(replace(spec, limits=limits), timeout=1.0), process


@pytest.mark.parametrize(("limits", "known", "command"), CASES)
def test_time_settings_of_gtp(monkeypatch: pytest.MonkeyPatch, limits: EngineLimits, known: str, command: str) -> None:
    client, process = gtp(monkeypatch, f"{BASIC} {known}", limits)
    client.new_game(9, 7.0, "chinese", limits.clock())
    assert process.sent[-1] == command
    assert ("kata-set-rules chinese" in process.sent) == (known == KATA)


def test_increments_need_an_engine_that_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = EngineLimits(main=60, increment=1)
    client, _ = gtp(monkeypatch, BASIC, limits)
    with pytest.raises(RefusedError, match="knows no command for increments"):
        client.new_game(9, 7.0, "chinese", limits.clock())


def test_limits_of_gtp(monkeypatch: pytest.MonkeyPatch) -> None:
    _, process = gtp(monkeypatch, f"{BASIC} {KATA}", EngineLimits(visits=7, seconds=0.5))
    assert process.sent[-2:] == ["kata-set-param maxVisits 7", "kata-set-param maxTime 0.5"]
    _, process = gtp(monkeypatch, f"{BASIC} uct_param_player", EngineLimits(playouts=5000))
    assert process.sent[-1] == "uct_param_player max_games 5000"
    with pytest.raises(RefusedError, match="knows no command for playouts"):
        gtp(monkeypatch, BASIC, EngineLimits(playouts=5000))
    with pytest.raises(RefusedError, match="nodes and depth are limits of USI"):
        gtp(monkeypatch, BASIC, EngineLimits(nodes=5000))
    spec = EngineSpec("x", ("x",), commands=("komi 3", "set level 2"))
    assert gtp(monkeypatch, BASIC, EngineLimits(), spec)[1].sent[-2:] == ["komi 3", "set level 2"]


def test_gtp_engines_are_told_the_moves_that_they_do_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    client, process = gtp(monkeypatch, BASIC, EngineLimits(), genmove="= D4")
    clocks = {color: client.clock() for color in (1, 2)}
    for _ in range(2):
        client.new_game(9, 7.0, "chinese", clocks[2].settings)
        process.sent.clear()
        client.choose("", ["A1", "B2", "C3"], 2, clocks)
        client.choose("", ["A1", "B2", "C3", "D4", "E5"], 2, clocks)
        assert process.sent == ["play B A1", "play W B2", "play B C3", "genmove W", "play B E5", "genmove W"]


def test_moves_of_gtp(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock.full(EngineLimits(main=10.9, byoyomi=5).clock())
    client, process = gtp(monkeypatch, BASIC, EngineLimits(), genmove="= D4")
    assert client.genmove("B", clock).move == "D4"
    assert process.sent[-2:] == ["time_left B 10 0", "genmove B"]
    clock = clock.after(12)
    client.genmove("B", clock)
    assert process.sent[-2] == "time_left B 5 1"
    report = "=\ninfo move A1 visits 1 winrate 0.5\ninfo move C3 visits 9 winrate 0.75 scoreLead 2 pv C3\nplay C3"
    client, process = gtp(monkeypatch, f"{BASIC} {KATA}", EngineLimits(), kata_genmove_analyze=report)
    answer = client.genmove("W", clock)
    assert (answer.move, str(answer.evaluation)) == ("C3", "75.0% +2.0 10 visits")
    assert process.sent[-2:] == ["time_left W 5.000 1", "kata-genmove_analyze W 20"]
    plain, process = gtp(
        monkeypatch, f"{BASIC} {KATA}", EngineLimits(), EngineSpec("x", ("x",), evaluations=False), genmove="= pass"
    )
    assert plain.genmove("W", clock).evaluation is None


PERIODS = EngineLimits(main=11, byoyomi=5, periods=3)


@pytest.mark.parametrize(
    ("limits", "known", "seconds", "told"),
    [
        (PERIODS, "", (9, 2, 5, 5, 1), ["21 0", "12 0", "10 0", "5 0", "5 1"]),  # periods are main time and one stone
        (PERIODS, "kgs-time_settings", (9, 2, 5, 5, 1), ["11 0", "2 0", "5 3", "5 2", "5 1"]),
        (EngineLimits(main=1.5, byoyomi=5, periods=3), "kgs-time_settings", (1, 0.1), ["1 0", "5 3"]),
        (EngineLimits(main=1.5, byoyomi=5), "", (1, 0.1), ["1 0", "5 1"]),
        (EngineLimits(main=1.5, byoyomi=5, stones=4), "", (1, 0.1), ["1 0", "5 4"]),
        (EngineLimits(main=1.5, byoyomi=5, stones=4), KATA, (1, 0.1), ["1.500 0", "0.500 0"]),
        (EngineLimits(main=1.0004, byoyomi=5), KATA, (1, 0.1), ["1.000 0", "5.000 1"]),
        (EngineLimits(main=1.5), "", (1, 0.1), ["1 0", "0 0"]),
    ],
)
def test_the_time_left_is_never_told_as_none_before_a_period(
    monkeypatch: pytest.MonkeyPatch, limits: EngineLimits, known: str, seconds: tuple[float, ...], told: list[str]
) -> None:
    client, process = gtp(monkeypatch, f"{BASIC} {known}", limits, genmove="= D4", kata_genmove_analyze="=\nplay D4")
    clock = Clock.full(limits.clock())
    for spent in seconds:
        client.genmove("B", clock)
        clock = clock.after(spent)
    assert [line for line in process.sent if line.startswith("time_left")] == [f"time_left B {text}" for text in told]


@pytest.mark.parametrize(
    ("answer", "message"),
    [("? illegal move", "refused 'play B D4': illegal move"), ("hello", "answered 'hello' to 'play B D4'")],
)
def test_what_no_gtp_engine_answers(monkeypatch: pytest.MonkeyPatch, answer: str, message: str) -> None:
    client, _ = gtp(monkeypatch, BASIC, EngineLimits(), play=answer)
    with pytest.raises(EngineError, match=message):
        client.play("B", "D4")


def test_evaluations_of_gtp_engines() -> None:
    kata = "info move D4 visits 7 winrate 0.625 scoreLead 1.5 pv D4 E5 info move C3 visits 1 winrate 0.1 pv C3"
    command = "kata-genmove_analyze B 20"
    assert read_evaluation(kata, command) == Evaluation(0.625, 1.5, 9, ("D4", "E5"))
    copy = " info move Q4 visits 7 edgeVisits 7 winrate 0.6 isSymmetryOf D4 order 1 pv Q4"
    shared = " info move C3 visits 90 edgeVisits 2 winrate 0.1 order 2 pv C3 rootInfo visits 10 winrate 0.6"
    whole = f"info move D4 visits 7 edgeVisits 7 winrate 0.625 order 0 pv D4{copy}{shared}"
    assert read_evaluation(whole, command) == Evaluation(0.625, None, 10, ("D4",))
    assert read_evaluation(whole.replace("0.625", "nan"), command) is None
    won = "info move D4 visits 7 winrate 1 scoreLead 1.5 pv D4"
    assert read_evaluation(won, command) == Evaluation(1.0, 1.5, 8, ("D4",))
    lz = "info move D4 visits 7 winrate {} prior 1 order 0 pv D4"
    for winrate, expected in ((6250, 0.625), (1, 0.0001)):
        found = read_evaluation(lz.format(winrate), "lz-genmove_analyze B 20")
        assert found == Evaluation(expected, None, 8, ("D4",), prior=0.0001)
    command = "cgos-genmove_analyze B"
    cgos = json.dumps({"winrate": 0.5, "score": -2.0, "visits": 9, "moves": [{"move": "D4", "pv": "E5 PASS"}]})
    assert read_evaluation(cgos, command) == Evaluation(0.5, -2.0, 9, ("D4", "E5", "PASS"))
    hostile = ('{"visits": 1e999}', f'{{"winrate": {"[" * 5000}{"]" * 5000}}}')
    for report in ("{broken", "info of another kind", "", *hostile):
        assert read_evaluation(report, command) is None
    for number in ("NaN", "Infinity", "-1e999", '"x"', "[1]"):  # as Python reads JSON
        assert read_evaluation(f'{{"winrate":{number},"score":1,"visits":1}}', command) is None
        assert read_evaluation(f'{{"winrate":0.5,"score":{number},"visits":1}}', command) is None
        assert read_evaluation(f'{{"winrate":0.5,"score":1,"visits":{number}}}', command) is None
    assert read_evaluation('{"moves":' + "[" * 100_000, command) is None
    for number in ("nan", "inf", "1e999", "x"):
        assert read_evaluation(f"info move D4 visits 7 winrate {number} pv D4", "kata-genmove_analyze B 20") is None
        assert read_evaluation(f"info move D4 visits {number} winrate 1 pv D4", "kata-genmove_analyze B 20") is None


def analysis(monkeypatch: pytest.MonkeyPatch, *lines: str) -> tuple[GtpClient, FakeProcess]:
    """Return a client of an engine whose analysis has some lines."""
    client, process = gtp(monkeypatch, BASIC, EngineLimits(), lz_analyze="\n".join(["=", *lines]))
    answer = process.answer
    process.answer = lambda line: answer(line)[:-1] if line == "lz-analyze B" else ["", *answer(line)]
    process.sent.clear()
    return client, process


def test_an_analysis_of_gtp(monkeypatch: pytest.MonkeyPatch) -> None:
    client, process = analysis(monkeypatch, "info move A1 visits 1", "info move A1 visits 2")
    found = list(client.analyse("lz-analyze B", 0.0))
    assert [line for _, line in found] == ["=", "info move A1 visits 1", "info move A1 visits 2"]
    assert all(0.0 <= seconds < 60.0 for seconds, _ in found)
    assert process.sent == ["lz-analyze B", "name"]  # any command ends it
    assert process.lines == []
    client, process = analysis(monkeypatch, "info move A1 visits 1", "")
    assert len(list(client.analyse("lz-analyze B", 0.0))) == 2
    assert process.sent == ["lz-analyze B"]  # the engine has ended it


def test_an_analysis_of_gtp_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    client, process = analysis(monkeypatch)
    process.answer = lambda line: ["? unknown command", ""]
    with pytest.raises(RefusedError, match="refused 'lz-analyze B': unknown command"):
        list(client.analyse("lz-analyze B", 0.0))
    process.lines.clear()
    process.answer = lambda line: ["="] if line == "lz-analyze B" else []
    with pytest.raises(EngineError, match=f"no answer to 'name' within {STOP_TIMEOUT:.0f} s"):
        list(client.analyse("lz-analyze B", 0.0))


def usi(
    monkeypatch: pytest.MonkeyPatch, limits: EngineLimits, options: str = "", spec: EngineSpec = SPEC
) -> tuple[UsiClient, FakeProcess]:
    """Return a client of an engine with some options."""

    def answer(line: str) -> list[str]:
        if line == "usi":
            return ["id name Fake 1", *(f"option name {name} type spin" for name in options.split(",")), "usiok"]
        if line.startswith("go"):
            return ["info depth 1 score cp 30 nodes 5 pv 7g7f", "bestmove 7g7f ponder 3c3d"]
        return ["readyok"] if line == "isready" else []

    process = FakeProcess(answer)
    monkeypatch.setattr(engine_client, "EngineProcess", lambda *args, **kwargs: process)
    return UsiClient(replace(spec, limits=limits), timeout=1.0), process


@pytest.mark.parametrize(
    ("black", "white", "command"),
    [
        (EngineLimits(main=60, byoyomi=5), EngineLimits(main=30, byoyomi=5), "go btime 60000 wtime 30000 byoyomi 5000"),
        (EngineLimits(main=60), EngineLimits(main=60), "go btime 60000 wtime 60000 byoyomi 0"),
        (
            EngineLimits(main=60, increment=1),
            EngineLimits(main=50, increment=2),
            "go btime 60000 wtime 50000 binc 1000 winc 2000",
        ),
        (EngineLimits(seconds=0.5, nodes=9), EngineLimits(main=60), "go movetime 500 nodes 9"),
        (EngineLimits(nodes=9), EngineLimits(), "go nodes 9"),
        (EngineLimits(depth=3), EngineLimits(), "go depth 3"),
        (EngineLimits(), EngineLimits(), "go btime 0 wtime 0 byoyomi 3600000"),
    ],
)
def test_what_usi_engines_are_told(
    monkeypatch: pytest.MonkeyPatch, black: EngineLimits, white: EngineLimits, command: str
) -> None:
    client, process = usi(monkeypatch, black)
    clocks = {1: Clock.full(black.clock(increment_first=True)), 2: Clock.full(white.clock(increment_first=True))}
    answer = client.choose("startpos", (), 1, clocks)
    assert process.sent[-2:] == ["position startpos", command]
    assert (answer.move, answer.evaluation and answer.evaluation.score) == ("7g7f", 30.0)


def test_options_of_usi(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EngineSpec("x", ("x",), options={"Threads": "2", "Clear Hash": ""})
    _, process = usi(monkeypatch, EngineLimits(visits=100), "Threads,Clear Hash,UCT_NodeLimit", spec)
    assert process.sent[1:4] == [
        "setoption name Threads value 2",
        "setoption name Clear Hash",
        "setoption name UCT_NodeLimit value 100",
    ]
    with pytest.raises(RefusedError, match="has no option for playouts"):
        usi(monkeypatch, EngineLimits(playouts=100))
    with pytest.raises(RefusedError, match="neither stones nor periods"):
        usi(monkeypatch, EngineLimits(byoyomi=1, periods=2))
    with pytest.raises(RefusedError, match="init commands are for GTP"):
        usi(monkeypatch, EngineLimits(), spec=EngineSpec("x", ("x",), commands=("a",)))


def test_a_match_lowers_the_margins_that_an_engine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options and flags of the user stay."""
    margins = "NetworkDelay type spin default 120 min 0 max 9000,NetworkDelay2 type spin default 20"
    margins += ",Time_Margin type string,ByoyomiMargin type spin default 100 min 50"

    def sent(spec: EngineSpec, clock: EngineLimits) -> list[str]:
        client, process = usi(monkeypatch, EngineLimits(), margins, spec)
        begin = len(process.sent)
        ShogiMatches().set_up(client, ShogiGame(), clock.clock())
        return process.sent[begin:]

    clock, new = EngineLimits(byoyomi=1), ["isready", "usinewgame"]
    low = ["setoption name NetworkDelay value 30", "setoption name ByoyomiMargin value 50"]
    assert sent(SPEC, clock) == [*low, *new]
    assert sent(SPEC, EngineLimits(nodes=5)) == new
    assert sent(replace(SPEC, options={"NetworkDelay": "0"}), clock) == [low[1], *new]
    assert sent(replace(SPEC, command=("yomi", "usi", "--lag", "1")), clock) == new


class Machine:
    """A clock, and the process of an engine; while it is waited for first, the machine stands still."""

    def __init__(self, still: float = 0.0, lines: Iterable[str] = ()) -> None:
        self.now, self._still, self._lines = 0.0, still, iter(lines)
        self.sent: list[str] = []

    def monotonic(self) -> float:
        return self.now

    def send(self, *lines: str) -> float:
        self.sent += lines
        return self.now

    def line(self, deadline: float) -> tuple[float, str]:
        if self._still:
            self.now, self._still = self._still, 0.0
            raise TimeoutError
        for line in self._lines:
            self.now += 0.1
            return self.now, line
        self.now = max(self.now, deadline)
        raise TimeoutError


def usi_on(machine: Machine, monkeypatch: pytest.MonkeyPatch, limits: EngineLimits | None = None) -> UsiClient:
    monkeypatch.setattr(usi_client, "time", machine)
    client = object.__new__(UsiClient)
    client.spec = EngineSpec("x", (), limits or EngineLimits())
    client.process, client.timeout = machine, TIMEOUT  # type: ignore[assignment]
    return client


def search_on(machine: Machine, is_stopped: bool, monkeypatch: pytest.MonkeyPatch) -> UsiSearch:
    """Start a search of 30 s, or one that is stopped at once."""
    search = usi_on(machine, monkeypatch).start("startpos", (), "infinite" if is_stopped else "btime 30000", 30.0)
    if is_stopped:
        search.stop()
    return search


@pytest.mark.parametrize(("is_stopped", "seconds"), [(True, STOP_TIMEOUT), (False, 30.0 + TIMEOUT)])
def test_a_move_that_waits_behind_a_late_report_is_taken(
    is_stopped: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = "info score cp 5 pv 7g7f"
    machine = Machine(seconds + 5.0, [report, report, "bestmove 7g7f ponder 3c3d"])
    found = search_on(machine, is_stopped, monkeypatch).wait()
    assert found == EngineMove("7g7f", pytest.approx(seconds + 5.3), read_info(report, None), "3c3d")


@pytest.mark.parametrize(("is_stopped", "seconds"), [(True, STOP_TIMEOUT), (False, 30.0 + TIMEOUT)])
@pytest.mark.parametrize("lines", [(), ("info string still here",)])
def test_an_engine_without_a_move_fails(
    is_stopped: bool, seconds: float, lines: Iterable[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(0.0, itertools.cycle(lines))
    command = "stop" if is_stopped else "go btime 30000"
    with pytest.raises(EngineError, match=f"no answer to '{command}' within {seconds:.0f} s"):
        search_on(machine, is_stopped, monkeypatch).wait()
    assert seconds < machine.now < seconds + 5.0


def test_a_clock_that_started_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.now = 50.0
    search = usi_on(machine, monkeypatch).start("startpos", (), "btime 5000", 5.0, 20.0)
    machine.now = 80.0
    search.stop()  # gives it no more time
    with pytest.raises(EngineError, match="no answer to 'go btime 5000' within 65 s"):
        search.wait()
    assert machine.now == pytest.approx(85.0, abs=2 * POLL)


@pytest.mark.parametrize(
    ("limits", "seconds"), [(EngineLimits(main=2), 2.0), (EngineLimits(seconds=3), 3.0), (EngineLimits(nodes=9), 0.0)]
)
def test_reports_without_end_are_no_move_in_a_match(
    limits: EngineLimits, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(lines=itertools.repeat("info nodes 5"))
    clocks = {color: Clock.full(limits.clock(increment_first=True)) for color in (1, 2)}
    with pytest.raises(EngineError, match="no answer to 'go "):
        usi_on(machine, monkeypatch, limits).choose("startpos", (), 1, clocks)
    assert machine.now == pytest.approx(seconds + TIMEOUT, abs=2 * POLL)


def test_an_engine_may_ponder_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(lines=["info nodes 5"])
    search = usi_on(machine, monkeypatch).start("startpos", ["7g7f"], "ponder btime 5000")
    assert list(search.reports(10_000.0)) == [(0.1, "info nodes 5")]
    search.ponderhit(5.0, machine.now - 1.0)
    with pytest.raises(EngineError, match="no answer to 'ponderhit' within 65 s"):
        search.wait()
    assert machine.now == pytest.approx(10_064.0, abs=3 * POLL)
    assert machine.sent == ["position startpos moves 7g7f", "go ponder btime 5000", "ponderhit"]


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (["ponderhit", "ponderhit", "stop", "stop"], ["ponderhit", "stop"]),
        (["stop", "ponderhit", "stop"], ["stop"]),
        (["wait", "stop", "ponderhit"], []),
    ],
)
def test_words_are_said_once_and_in_time(calls: list[str], words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(lines=["bestmove 7g7f"])
    search = usi_on(machine, monkeypatch).start("startpos", (), "ponder")
    for call in calls:
        getattr(search, call)(*(1.0, 0.0) if call == "ponderhit" else ())
    assert machine.sent[2:] == words
    assert search.wait() is search.wait()


def test_an_engine_that_cannot_be_told_fails_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops it goes on; what waits for its move has it started again."""

    def gone(*lines: str) -> float:
        raise EngineError("exited with status 3")

    machine = Machine(lines=itertools.repeat("info nodes 1"))
    search = search_on(machine, False, monkeypatch)
    monkeypatch.setattr(machine, "send", gone)
    search.stop()
    with pytest.raises(EngineError, match="exited with status 3"):
        search.wait()


def test_an_analysis_of_usi(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [f"info nodes {count}" for count in range(1, 8)]
    machine = Machine(lines=[*reports, "bestmove 7g7f"])
    found = list(usi_on(machine, monkeypatch).analyse(SFEN, (), 0.35))
    assert [line for _, line in found] == reports
    assert [seconds for seconds, _ in found] == pytest.approx([0.1 * count for count in range(1, 8)])
    assert machine.sent == [f"position sfen {SFEN}", "go infinite", "stop"]


def test_evaluations_of_usi_engines() -> None:
    found = read_info("info depth 3 multipv 1 score cp -60 nodes 100 pv 7g7f 3c3d", None)
    assert found is not None
    assert (found.score, found.visits, found.pv) == (-60.0, 100, ("7g7f", "3c3d"))
    assert found.winrate == pytest.approx(0.475, abs=0.001)
    assert read_info("info multipv 2 score cp 500", found) is found
    assert read_info("info score cp 500 lowerbound nodes 7 pv 2g2f", found) is found
    assert read_info("info string score", found) is found
    for nodes in ("9" * 5000, "٣", "-1", "x"):
        odd = read_info(f"info score cp 5 nodes {nodes}", None)
        assert odd is not None
        assert odd.visits is None
    for digits, winrate in ((6, 0.0), (18, 0.0), (400, found.winrate)):  # so many are no score
        answer = read_info(f"info score cp -{'9' * digits}", found)
        assert answer is not None
        assert answer.winrate == pytest.approx(winrate)
    mates = {text: read_info(f"info score mate {text}", None) for text in ("5", "-4", "+", "-")}
    assert [each and each.score for each in mates.values()] == [29995.0, -29996.0, 30000.0, -30000.0]
    assert [each and each.mate for each in mates.values()] == [5, -4, 1, -1]
    near = read_info("info score cp 29995", mates["5"])
    assert near is not None
    assert near.mate is None
    assert read_info("info score cp", None) is None
