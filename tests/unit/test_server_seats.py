"""What plays for the clients of servers: yomi's players, and other engines as processes."""

from __future__ import annotations

import io
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cli import floodgate
from engine.cli.servers import options_of
from engine.clock import Clock, Clocks, TimeSystem
from engine.color import BLACK, WHITE
from engine.games.go.game import IllegalMove
from engine.games.shogi.notation import format_usi, parse_usi
from engine.matches.answers import Evaluation
from engine.matches.process import EngineFailure
from engine.options import Options
from engine.own_network import network_file
from engine.players.request import Decision, Request
from engine.servers import usi_seat
from engine.servers.go_seat import RULES, GoStart, YomiGoSeat
from engine.servers.gtp_seat import GtpSeat, analysis_of
from engine.servers.passwords import Password
from engine.servers.reporter import Reporter
from engine.servers.seat import PATIENCE, GaveUpError
from engine.servers.settings import CGOS, CSA, Account, Server
from engine.servers.shogi_seat import Turn, YomiShogiSeat
from engine.servers.usi_seat import STOP_PATIENCE, UsiSeat, decision_of, go_line
from nets.models import default_network
from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer

START = GoStart(9, 7.0, 60.0, "gnu", "1800?", ((1, "e5"), (2, "c3")), True)


def clocks(black: float, white: float, byoyomi: float = 0.0, increment: float = 0.0) -> Clocks:
    return {BLACK: Clock.of(black, byoyomi, increment), WHITE: Clock.of(white, byoyomi, increment)}


CLOCKS = clocks(300.0, 290.0, increment=10.0)


def account(protocol: str, module: str, *arguments: str, **keys) -> Account:
    command = (sys.executable, "-m", f"tests.process.{module}", *arguments)
    return Account("one", Server("home", protocol, "localhost", 1), "one", "", "", command=command, **keys)


# -- Go ------------------------------------------------------------------------------------------------------------


def test_yomi_plays_by_the_rules_and_the_clock_of_cgos() -> None:
    player = FakePlayer(Options(lag=0.3))
    seat = YomiGoSeat(player)
    seat.begin(START)
    at = time.monotonic()
    reply = seat.genmove(1, 42.5, at, 0.2)
    request = player.requests[0]
    game, clock = request.game, request.clock
    assert (game.size, game.komi, game.rules, len(game.moves)) == (9, 7.0, RULES, 2)
    assert clock is not None
    assert (clock.settings.system, clock.left.main, request.start) == (TimeSystem.ABSOLUTE, 42.5, at)
    assert request.options is not None
    assert (request.options.lag, player.options.lag) == (pytest.approx(0.5), 0.3)
    with pytest.raises(IllegalMove):
        seat.play(2, reply.vertex)
    assert json.loads(reply.analysis)["moves"][0]["move"] == reply.vertex.upper()
    assert len(json.loads(reply.analysis)["ownership"]) == 81
    assert reply.comment == "50.0% +1.5 16 visits"
    calls = len(player.calls)
    seat.begin(replace(START, is_new=False))
    assert "new_game" not in player.calls[calls:]
    player.resign_at = 0
    assert seat.genmove(1, 40.0, time.monotonic(), 0.0).vertex == "resign"


def test_a_move_that_only_another_rule_of_ko_allows_is_played() -> None:
    seat = YomiGoSeat(FakePlayer())
    moves = ["e5", "e6", "d6", "d5", "d4", "c4", "f7", "c6", "a1", "b5"]  # Black's d6 and White's d5 cannot both be
    seat.begin(replace(START, moves=tuple((1 + i % 2, vertex) for i, vertex in enumerate(moves))))
    seat.play(1, "d7")


@pytest.mark.parametrize(("game", "protocol"), [("go", CGOS), ("shogi", CSA)])
def test_yomi_plays_with_its_own_network_where_an_account_names_none(game: str, protocol: str) -> None:
    account = Account("a", Server("s", protocol, "localhost", 1), "user", "password_env", "PASSWORD")
    assert network_file(options_of(account, game), game) == str(default_network(game))
    plain = replace(account, options={"evaluator": "rollouts" if game == "go" else "material"})
    assert network_file(options_of(plain, game), game) is None


def test_another_engine_plays_go() -> None:
    seat = GtpSeat(account(CGOS, "fake_engine"))
    try:
        assert seat.name.startswith("yomi ")
        seat.begin(START)
        seat.play(1, "g7")
        reply = seat.genmove(2, 5.0, time.monotonic(), 0.1)
        assert reply.vertex not in ("e5", "c3", "g7")
        assert json.loads(reply.analysis)["winrate"] == 0.5
        assert reply.comment == "50.0% +1.5 16 visits"
        with pytest.raises(EngineFailure, match="refused 'play b e5'"):
            seat.play(1, "e5")
    finally:
        seat.close()


def test_an_engine_that_is_none() -> None:
    other = replace(account(CGOS, ""), command=(sys.executable, "-c", "print('hello', flush=True); input()"))
    with pytest.raises(GaveUpError, match="expected = or"):
        GtpSeat(other)
    with pytest.raises(GaveUpError, match=r"one: .*: exited with status 0"):
        UsiSeat(replace(other, server=replace(other.server, protocol=CSA)))


def test_analysis_from_other_forms() -> None:
    found = json.loads(analysis_of("d4", Evaluation(0.25, -3.5, 100, ("D4", "E5", "C3"))))
    assert found["winrate"] == 0.25
    assert found["moves"] == [{"move": "D4", "winrate": 0.25, "score": -3.5, "visits": 100, "pv": "E5 C3"}]
    assert analysis_of("d4", None) == ""


# -- shogi ---------------------------------------------------------------------------------------------------------


def test_yomi_keeps_the_lag_in_reserve() -> None:
    player = FakeShogiPlayer(Options.for_game("shogi"))
    player.options.lag = 0.3
    seat = YomiShogiSeat(player)
    byoyomi = clocks(10.0, 10.0, 2.0)
    for given, lag, expected, kept in (
        (CLOCKS, 0.2, CLOCKS, 0.5),
        (byoyomi, 0.4, clocks(10.0, 10.0, 1.6), 0.3),
        (byoyomi, 5.0, clocks(10.0, 10.0, 0.0), 0.3),
        (None, 0.2, None, 0.5),
    ):
        request = Request[Any](None)
        seat.set_clocks(request, given, lag)
        assert request.clocks == expected
        assert request.options is not None
        assert (request.options.lag, player.options.lag) == (pytest.approx(kept), 0.3)
    seat.begin(256)
    decision = seat.think(Turn("startpos", ("7g7f",), Request(None)))
    assert decision.move is not None
    seat.close()


def told_by(seat: YomiShogiSeat, lag: float = 0.0) -> Options:
    """Return the options that a seat puts into requests."""
    request = Request[Any](None)
    seat.set_clocks(request, CLOCKS, lag)
    assert request.options is not None
    return request.options


@pytest.mark.parametrize("own", [None, 320])
def test_a_servers_limit_of_moves_holds_for_its_game(own: int | None) -> None:
    player = FakeShogiPlayer(Options.for_game("shogi"))
    player.options.max_moves = own
    seat = YomiShogiSeat(player)
    for told, expected in ((256, 256), (0, own), (10_000, 10_000), (10_001, own), (1, 1), (0, own)):
        seat.begin(told)
        assert told_by(seat).max_moves == expected
        assert player.options.max_moves == own


def test_an_engine_that_is_started_again_has_the_users_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeShogiPlayer] = []
    monkeypatch.setattr(
        floodgate, "load_player", lambda game, options: made.append(FakeShogiPlayer(options)) or made[-1]
    )
    own = {"evaluator": "material", "max_moves": 320, "lag": 0.5}
    one = Account("one", Server("home", CSA, "localhost", 1), "one", "", "", options=own)
    client = floodgate.make_client(one, Password("secret1"), tmp_path, Reporter(None, io.StringIO()))
    for _ in range(2):
        seat = client._open_seat()
        for told, expected in ((0, 320), (256, 256)):
            seat.begin(told)
            options = told_by(seat, 3.0)
            assert (options.max_moves, options.lag) == (expected, 3.5)
            assert (made[-1].options.max_moves, made[-1].options.lag) == (320, 0.5)
    client.mailbox.close()


def test_another_engine_plays_shogi_and_ponders() -> None:
    seat = UsiSeat(account(CSA, "fake_usi_engine", "0.2", usi_options={"USI_Ponder": "true"}))
    try:
        assert seat.ponders
        seat.begin(256)
        request = Request[Any](None)
        seat.set_clocks(request, CLOCKS, 0.1)
        decision = seat.think(Turn("startpos", (), request))
        assert decision.move is not None
        assert decision.ponder is not None
        assert decision.report.moves[0].pv[0] == decision.move
        guess = (format_usi(decision.move), format_usi(decision.ponder))
        for stop in (False, True):
            request = Request[Any](None, clocks=CLOCKS, ponder=True)
            change = request.stop if stop else request.ponderhit
            timer = threading.Timer(0.1, change)
            begin = time.monotonic()
            timer.start()
            assert seat.think(Turn("startpos", guess, request)).move is not None
            assert time.monotonic() - begin >= 0.09
            timer.join()
        seat.end("win")
    finally:
        seat.close()


def test_a_request_that_was_stopped_before_it_began() -> None:
    seat = UsiSeat(account(CSA, "fake_usi_engine", "30"))
    try:
        request = Request[Any](None, clocks=CLOCKS)
        request.stop()
        assert seat.think(Turn("startpos", (), request)).move is not None
    finally:
        seat.close()


DEAF = """\
import os, pathlib, time
for line in iter(input, "go btime 0 wtime 0 byoyomi 60000"):
    print({"usi": "usiok", "isready": "readyok"}.get(line, ""), flush=True)
os.close(0)
pathlib.Path("deaf").touch()
time.sleep(60)
"""
"""A USI engine that does not listen any more once it thinks."""


def test_an_engine_that_cannot_be_told_fails_where_it_thinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stops it goes on; what waits for its move has it started again."""
    monkeypatch.chdir(tmp_path)
    seat = UsiSeat(replace(account(CSA, ""), command=(sys.executable, "-S", "-E", "-c", DEAF)))
    request = Request[Any](None)
    failures: list[Exception] = []

    def think() -> None:
        try:
            seat.think(Turn("startpos", (), request))
        except EngineFailure as failure:
            failures.append(failure)

    thread = threading.Thread(target=think)
    thread.start()
    try:
        while thread.is_alive() and not (tmp_path / "deaf").exists():
            time.sleep(0.01)
        request.stop()
        thread.join(STOP_PATIENCE / 2)
        assert len(failures) == 1
    finally:
        seat._client.process.kill()
        seat.close()
        thread.join()


class Machine:
    """A clock, and the process of an engine; while it is waited for first, the machine stands still."""

    def __init__(self, still: float, lines: Iterable[str] = ()) -> None:
        self.now, self._still, self._lines = 0.0, still, iter(lines)

    def monotonic(self) -> float:
        return self.now

    def send(self, *lines: str) -> None:
        pass

    def line(self, deadline: float) -> tuple[float, str]:
        if self._still:
            self.now, self._still = self._still, 0.0
            raise TimeoutError
        for line in self._lines:
            self.now += 0.1
            return self.now, line
        self.now = max(self.now, deadline)
        raise TimeoutError


def think_on(machine: Machine, is_stopped: bool, monkeypatch: pytest.MonkeyPatch) -> Decision:
    """Have the engine choose a move within 30 s, or at once."""
    monkeypatch.setattr(usi_seat, "time", machine)
    seat = object.__new__(UsiSeat)
    seat._client, seat._limit = SimpleNamespace(process=machine), ""  # type: ignore[assignment]
    request = Request[Any](None, clocks=clocks(30.0, 30.0), start=0.0)
    if is_stopped:
        request.stop()
    return seat.think(Turn("startpos", (), request))


@pytest.mark.parametrize(("is_stopped", "seconds"), [(True, STOP_PATIENCE), (False, 30.0 + PATIENCE)])
def test_a_move_that_waits_behind_a_late_report_is_taken(
    is_stopped: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = think_on(Machine(seconds + 5.0, ["info score cp 5 pv 7g7f", "bestmove 7g7f"]), is_stopped, monkeypatch)
    assert decision.move == parse_usi("7g7f")
    assert decision.report.moves[0].winrate > 0.5


@pytest.mark.parametrize(("is_stopped", "seconds"), [(True, STOP_PATIENCE), (False, 30.0 + PATIENCE)])
@pytest.mark.parametrize("lines", [(), itertools.repeat("info string still here")])
def test_an_engine_without_a_move_fails(
    is_stopped: bool, seconds: float, lines: Iterable[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(0.0, lines)
    with pytest.raises(EngineFailure, match=f"no bestmove within {seconds:.0f} s"):
        think_on(machine, is_stopped, monkeypatch)
    assert seconds < machine.now < seconds + 5.0


def test_times_for_another_engine() -> None:
    assert go_line(Request(None, clocks=CLOCKS)) == "go btime 300000 wtime 290000 binc 10000 winc 10000"
    assert (
        go_line(Request(None, clocks=clocks(1.5, 0.0, 2.0), ponder=True)) == "go ponder btime 1500 wtime 0 byoyomi 2000"
    )
    assert go_line(Request(None, clocks=CLOCKS), "nodes 100") == "go nodes 100"
    assert go_line(Request(None)) == "go btime 0 wtime 0 byoyomi 60000"


def test_what_other_engines_decide() -> None:
    assert decision_of(["resign"], None).resign
    assert decision_of(["win"], None).win
    found = decision_of(["7g7f", "ponder", "3c3d"], Evaluation(0.5, 0.0, 10, ("7g7f", "3c3d", "nonsense", "2g2f")))
    assert found.ponder is not None
    assert [format_usi(move) for move in found.report.moves[0].pv] == ["7g7f", "3c3d"]
    mated = decision_of(["7g7f"], Evaluation(0.0, -29_997.0, None, mate=-3))
    assert (mated.report.moves[0].mate, mated.ponder) == (-3, None)
    with pytest.raises(EngineFailure, match="bestmove: not a move: 'none'"):
        decision_of(["none"], None)
