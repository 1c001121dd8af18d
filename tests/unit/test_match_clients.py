"""What GTP and USI engines are told, by clients whose process is a script."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from engine.games.go.rules import PRESETS
from engine.matches import engine_client
from engine.matches.gtp_client import GtpClient
from engine.matches.limits import GameClock, PlayerLimits
from engine.matches.players import PlayerSpec
from engine.matches.process import EngineFailure, Refusal
from engine.matches.usi_client import UsiClient

BASIC = "name version list_commands boardsize clear_board komi play genmove quit time_settings time_left"
KATA = "kata-set-param kata-set-rules kata-time_settings kata-genmove_analyze"
CASES: list[tuple[PlayerLimits, str, str]] = [
    (PlayerLimits(main=60), "", "time_settings 60 0 0"),
    (PlayerLimits(main=60, byoyomi=10), "", "time_settings 60 10 1"),
    (PlayerLimits(main=60, byoyomi=10, periods=3), "", "time_settings 80 10 1"),
    (PlayerLimits(main=60, byoyomi=10, periods=3), "kgs-time_settings", "kgs-time_settings byoyomi 60 10 3"),
    (PlayerLimits(main=60, byoyomi=0.5, periods=3), KATA, "kata-time_settings byoyomi 60 0.5 3"),
    (PlayerLimits(byoyomi=30, stones=5), KATA, "time_settings 0 30 5"),
    (PlayerLimits(main=60, increment=1), KATA, "kata-time_settings fischer 60 1"),
    (PlayerLimits(seconds=2), "", "time_settings 0 2 1"),
    (PlayerLimits(seconds=0.25), "", "time_settings 0 1 4"),
    (PlayerLimits(seconds=0.25), KATA, "time_settings 0 1 0"),
    (PlayerLimits(), "", "time_settings 0 1 0"),
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
    monkeypatch: pytest.MonkeyPatch, known: str, limits: PlayerLimits, spec: PlayerSpec | None = None, **answers: str
) -> tuple[GtpClient, FakeProcess]:
    """Return a client of an engine that knows some commands and answers some in its own way."""

    def answer(line: str) -> list[str]:
        name = line.split()[0]
        if name == "list_commands":
            return [f"= {known.split()[0]}", *known.split()[1:], ""]
        return [*answers.get(name.replace("-", "_"), "=").split("\n"), ""]

    process = FakeProcess(answer)
    monkeypatch.setattr(engine_client, "EngineProcess", lambda *args, **kwargs: process)
    return GtpClient(spec or PlayerSpec("x", ("x",)), limits, timeout=1.0), process


@pytest.mark.parametrize(("limits", "known", "command"), CASES)
def test_time_settings_of_gtp(monkeypatch: pytest.MonkeyPatch, limits: PlayerLimits, known: str, command: str) -> None:
    client, process = gtp(monkeypatch, f"{BASIC} {known}", limits)
    client.new_game(9, 7.0, PRESETS["chinese"], limits.clock())
    assert process.sent[-1] == command
    assert ("kata-set-rules chinese" in process.sent) == (known == KATA)


def test_increments_need_an_engine_that_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = PlayerLimits(main=60, increment=1)
    client, _ = gtp(monkeypatch, BASIC, limits)
    with pytest.raises(Refusal, match="knows no command for increments"):
        client.new_game(9, 7.0, PRESETS["chinese"], limits.clock())


def test_limits_of_gtp(monkeypatch: pytest.MonkeyPatch) -> None:
    _, process = gtp(monkeypatch, f"{BASIC} {KATA}", PlayerLimits(visits=7, seconds=0.5))
    assert process.sent[-2:] == ["kata-set-param maxVisits 7", "kata-set-param maxTime 0.5"]
    _, process = gtp(monkeypatch, f"{BASIC} uct_param_player", PlayerLimits(playouts=5000))
    assert process.sent[-1] == "uct_param_player max_games 5000"
    with pytest.raises(Refusal, match="knows no command for playouts"):
        gtp(monkeypatch, BASIC, PlayerLimits(playouts=5000))
    with pytest.raises(Refusal, match="nodes and depth are limits of USI"):
        gtp(monkeypatch, BASIC, PlayerLimits(nodes=5000))
    spec = PlayerSpec("x", ("x",), commands=("komi 3", "set level 2"))
    assert gtp(monkeypatch, BASIC, PlayerLimits(), spec)[1].sent[-2:] == ["komi 3", "set level 2"]


def test_moves_of_gtp(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = GameClock(PlayerLimits(main=10.9, byoyomi=5).clock(), 0.0)
    client, process = gtp(monkeypatch, BASIC, PlayerLimits(), genmove="= D4")
    assert client.genmove("B", clock).move == "D4"
    assert process.sent[-2:] == ["time_left B 10 0", "genmove B"]
    clock.spend(12)
    client.genmove("B", clock)
    assert process.sent[-2] == "time_left B 5 1"
    report = "=\ninfo move C3 visits 9 winrate 0.75 scoreLead 2 pv C3\nplay C3"
    client, process = gtp(monkeypatch, f"{BASIC} {KATA}", PlayerLimits(), kata_genmove_analyze=report)
    answer = client.genmove("W", clock)
    assert (answer.move, str(answer.evaluation)) == ("C3", "75.0% +2.0 9 visits")
    assert process.sent[-2:] == ["time_left W 5.000 1", "kata-genmove_analyze W 20 maxmoves 1"]
    plain, process = gtp(
        monkeypatch, f"{BASIC} {KATA}", PlayerLimits(), PlayerSpec("x", ("x",), evaluations=False), genmove="= pass"
    )
    assert plain.genmove("W", clock).evaluation is None


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ("", ["21 0", "12 0", "10 0", "5 0", "5 1"]),
        ("kgs-time_settings", ["11 0", "2 0", "5 3", "5 2", "5 1"]),
    ],
)
def test_the_time_left_is_told_in_the_terms_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, known: str, told: list[str]
) -> None:
    """Engines that do not know periods are told of main time and one stone in the last period."""
    limits = PlayerLimits(main=11, byoyomi=5, periods=3)
    client, process = gtp(monkeypatch, f"{BASIC} {known}", limits, genmove="= D4")
    clock = GameClock(limits.clock(), 0.0)
    for seconds in (9, 2, 5, 5, 1):
        client.genmove("B", clock)
        clock.spend(seconds)
    assert [line for line in process.sent if line.startswith("time_left")] == [f"time_left B {text}" for text in told]


@pytest.mark.parametrize(
    ("limits", "known", "told"),
    [
        (PlayerLimits(main=1.5, byoyomi=5, periods=3), "kgs-time_settings", ["1 0", "5 3"]),
        (PlayerLimits(main=1.5, byoyomi=5), "", ["1 0", "5 1"]),
        (PlayerLimits(main=1.5, byoyomi=5, stones=4), "", ["1 0", "5 4"]),
        (PlayerLimits(main=1.5, byoyomi=5, stones=4), KATA, ["1.500 0", "0.500 0"]),
        (PlayerLimits(main=1.0004, byoyomi=5), KATA, ["1.000 0", "5.000 1"]),
        (PlayerLimits(main=1.5), "", ["1 0", "0 0"]),
    ],
)
def test_what_is_left_of_main_time_is_never_told_as_none_before_a_period(
    monkeypatch: pytest.MonkeyPatch, limits: PlayerLimits, known: str, told: list[str]
) -> None:
    client, process = gtp(monkeypatch, f"{BASIC} {known}", limits, genmove="= D4", kata_genmove_analyze="=\nplay D4")
    clock = GameClock(limits.clock(), 0.0)
    for seconds in (1, 0.1):
        client.genmove("B", clock)
        clock.spend(seconds)
    assert [line for line in process.sent if line.startswith("time_left")] == [f"time_left B {text}" for text in told]


@pytest.mark.parametrize(
    ("answer", "message"),
    [("? illegal move", "refused 'play B D4': illegal move"), ("hello", "answered 'hello' to 'play B D4'")],
)
def test_what_no_gtp_engine_answers(monkeypatch: pytest.MonkeyPatch, answer: str, message: str) -> None:
    client, _ = gtp(monkeypatch, BASIC, PlayerLimits(), play=answer)
    with pytest.raises(EngineFailure, match=message):
        client.play("B", "D4")


def usi(
    monkeypatch: pytest.MonkeyPatch, limits: PlayerLimits, options: str = "", spec: PlayerSpec | None = None
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
    return UsiClient(spec or PlayerSpec("x", ("x",)), limits, timeout=1.0), process


@pytest.mark.parametrize(
    ("black", "white", "command"),
    [
        (PlayerLimits(main=60, byoyomi=5), PlayerLimits(main=30, byoyomi=5), "go btime 60000 wtime 30000 byoyomi 5000"),
        (PlayerLimits(main=60), PlayerLimits(main=60), "go btime 60000 wtime 60000"),
        (
            PlayerLimits(main=60, increment=1),
            PlayerLimits(main=50, increment=2),
            "go btime 60000 wtime 50000 binc 1000 winc 2000",
        ),
        (PlayerLimits(seconds=0.5, nodes=9), PlayerLimits(main=60), "go movetime 500 nodes 9"),
        (PlayerLimits(nodes=9), PlayerLimits(), "go nodes 9"),
        (PlayerLimits(depth=3), PlayerLimits(), "go depth 3"),
        (PlayerLimits(), PlayerLimits(), "go btime 0 wtime 0 byoyomi 3600000"),
    ],
)
def test_what_usi_engines_are_told(
    monkeypatch: pytest.MonkeyPatch, black: PlayerLimits, white: PlayerLimits, command: str
) -> None:
    client, process = usi(monkeypatch, black)
    clocks = {1: GameClock(black.clock(increment_first=True), 0), 2: GameClock(white.clock(increment_first=True), 0)}
    answer = client.go("startpos", 1, clocks)
    assert process.sent[-2:] == ["position startpos", command]
    assert (answer.move, answer.evaluation and answer.evaluation.score) == ("7g7f", 30.0)


def test_options_of_usi(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = PlayerSpec("x", ("x",), options={"Threads": "2", "Clear Hash": ""})
    _, process = usi(monkeypatch, PlayerLimits(visits=100), "Threads,Clear Hash,UCT_NodeLimit", spec)
    assert process.sent[1:4] == [
        "setoption name Threads value 2",
        "setoption name Clear Hash",
        "setoption name UCT_NodeLimit value 100",
    ]
    with pytest.raises(Refusal, match="has no option for playouts"):
        usi(monkeypatch, PlayerLimits(playouts=100))
    with pytest.raises(Refusal, match="neither stones nor periods"):
        usi(monkeypatch, PlayerLimits(byoyomi=1, periods=2))
    with pytest.raises(Refusal, match="init commands are for GTP"):
        usi(monkeypatch, PlayerLimits(), spec=PlayerSpec("x", ("x",), commands=("a",)))
