"""The engines behind clients of servers: yomi's players, and other engines as processes."""

import io
import json
import math
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer
from yomi.engine.cli import engines
from yomi.engine.cli.engines import account_options
from yomi.engine.clients.client import EngineError, EngineMove, Evaluation
from yomi.engine.clock import Clock, Clocks, TimeSettings, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.default_network import network_file
from yomi.engine.game import Game
from yomi.engine.go.cgos.codec import Setup
from yomi.engine.go.cgos.game import RULES, GtpSeat, YomiGoSeat, analysis_of
from yomi.engine.go.points import square
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.registry import GAMES
from yomi.engine.servers.game import GaveUpError, MoveTask
from yomi.engine.servers.runner import Reporter
from yomi.engine.servers.settings import CGOS, CSA, Account, Password, Server
from yomi.engine.shogi.floodgate.game import UsiSeat, YomiShogiSeat, decision_of, go_words
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.errors import IllegalMove
from yomi.nets.models import default_network

SETUP = Setup("1", square(9), 7.0, 60.0, {BLACK: "one", WHITE: "gnu"}, {BLACK: "", WHITE: "1800?"}, ())


def clocks(black: float, white: float, byoyomi: float = 0.0, increment: float = 0.0) -> Clocks:
    return {BLACK: Clock.of(black, byoyomi, increment), WHITE: Clock.of(white, byoyomi, increment)}


CLOCKS = clocks(300.0, 290.0, increment=10.0)


def account(protocol: str, module: str, *arguments: str, **keys) -> Account:
    command = (sys.executable, "-m", f"tests.process.{module}", *arguments)
    return Account("one", Server("home", protocol, "localhost", 1), "one", "", "", command=command, **keys)


# -- Go ------------------------------------------------------------------------------------------------------------


def go_task(seat: YomiGoSeat | GtpSeat, moves: str, left: float, lag: float = 0.0) -> MoveTask:
    """Return the task to choose a move after some moves."""
    request = Request[Any](None)
    settings = TimeSettings(TimeSystem.ABSOLUTE, 60.0)
    seat.set_clocks(request, dict.fromkeys((BLACK, WHITE), Clock(settings, left)), lag)
    return MoveTask("", moves.split(), request, len(moves.split()))


def test_yomi_plays_by_the_rules_and_the_clock_of_cgos() -> None:
    player = FakePlayer(Options(lag=0.3))
    seat = YomiGoSeat(player)
    seat.begin(SETUP, WHITE)
    task = go_task(seat, "e5 c3", 42.5, 0.2)
    reply = seat.think(task)
    request = player.requests[0]
    game, clock = request.game, request.clock
    assert (game.board.side, game.komi, game.rules, len(game.moves)) == (9, 7.0, RULES, 2)
    assert clock is not None
    assert (clock.settings.system, clock.main, request.start) == (TimeSystem.ABSOLUTE, 42.5, task.request.start)
    assert request.options is not None
    assert (request.options.lag, player.options.lag) == (pytest.approx(0.5), 0.3)
    assert json.loads(reply.analysis)["moves"][0]["move"] == reply.vertex.upper()
    assert len(json.loads(reply.analysis)["ownership"]) == 81
    assert reply.comment == "50.0% +1.5 16 visits"
    with pytest.raises(IllegalMove):
        seat.think(go_task(seat, f"e5 c3 {reply.vertex} {reply.vertex}", 42.0))
    player.resign_at = 0
    assert seat.think(go_task(seat, "e5 c3", 40.0)).vertex == "resign"


def test_a_move_that_only_another_rule_of_ko_allows_is_played() -> None:
    seat = YomiGoSeat(FakePlayer())
    seat.begin(SETUP, WHITE)
    # Black's d6 and White's d5 cannot both be
    seat.think(go_task(seat, "e5 e6 d6 d5 d4 c4 f7 c6 a1 b5 d7", 60.0))


@pytest.mark.parametrize(("game", "protocol"), [("go", CGOS), ("shogi", CSA)])
def test_yomi_plays_with_its_own_network_where_an_account_names_none(game: str, protocol: str) -> None:
    account = Account("a", Server("s", protocol, "localhost", 1), "user", "password_env", "PASSWORD")
    own = {str(default_network(game, on_processor=here)) for here in (False, True)}
    assert network_file(account_options(account, GAMES[game]), game) in own
    plain = replace(account, options={"evaluator": "rollouts" if game == "go" else "material"})
    assert network_file(account_options(plain, GAMES[game]), game) is None


def test_another_engine_plays_go() -> None:
    seat = GtpSeat(account(CGOS, "fake_engine"))
    try:
        assert seat.name.startswith("yomi ")
        seat.begin(SETUP, WHITE)
        reply = seat.think(go_task(seat, "e5 c3 g7", 5.0, 0.1))
        assert reply.vertex not in ("e5", "c3", "g7")
        assert json.loads(reply.analysis)["winrate"] == 0.5
        assert reply.comment == "50.0% +1.5 16 visits"
        again = seat.think(go_task(seat, "e5 c3 g7", 5.0))  # the server lacks the move
        assert again.vertex == reply.vertex
        with pytest.raises(EngineError, match=r"refused 'play [BW] e5'"):
            seat.think(go_task(seat, f"e5 c3 g7 {again.vertex} e5", 5.0))
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
    decision = seat.think(MoveTask("startpos", ("7g7f",), Request(None)))
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
        assert seat._game.max_moves == (expected or 0)
        assert player.options.max_moves == own


@pytest.mark.parametrize("own", ["24", "27"])
def test_a_servers_rule_of_the_declaration_win_holds_for_its_game(own: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "yomi.servers")
    player = FakeShogiPlayer(Options.for_game("shogi"))
    player.options.entering_king = own
    seat = YomiShogiSeat(player)
    for rule, expected in (("27", "27"), (None, own)):
        seat.begin(256, rule)
        assert (seat._game.entering_king, player.options.entering_king) == (expected, own)
    line = "the server's rule of the declaration win is 27: it replaces 24 for this game"
    assert caplog.messages == [line] * (own == "24")


def test_another_engine_gets_the_servers_rule_of_the_declaration_win(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "yomi.servers")
    seat = UsiSeat(account(CSA, "fake_usi_engine", usi_options={"EnteringKingRule": "CSARule24"}))
    entered = "KGGGGSSSS/9/NNNN5/9/9/9/9/9/4k4 b RB8P 1"  # 30 points
    try:
        for rule in (None, "27", None):
            seat.begin(0, rule)
            assert seat.think(MoveTask(entered, (), Request(None, clocks=CLOCKS))).win == (rule == "27")
    finally:
        seat.close()
    assert caplog.messages == [f"EnteringKingRule {new} replaces {old} for this game" for new, old in
                               (("CSARule27", "CSARule24"), ("CSARule24", "CSARule27"))]  # fmt: skip


def test_an_engine_that_is_started_again_has_the_users_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeShogiPlayer] = []
    monkeypatch.setattr(
        Game, "load_player", lambda game, options, say: made.append(FakeShogiPlayer(options)) or made[-1]
    )
    own = {"evaluator": "material", "max_moves": 320, "lag": 0.5}
    one = Account("one", Server("home", CSA, "localhost", 1), "one", "", "", options=own)
    client = engines.make_csa_client(one, Password("secret1"), tmp_path, Reporter(None, io.StringIO()))
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
        decision = seat.think(MoveTask("startpos", (), request))
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
            assert seat.think(MoveTask("startpos", guess, request)).move is not None
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
        assert seat.think(MoveTask("startpos", (), request)).move is not None
    finally:
        seat.close()


@pytest.mark.parametrize("ponder", [False, True])
def test_an_engine_has_what_the_clocks_of_a_turn_leave_it(ponder: bool) -> None:
    """From the clock's start on, be it that of the turn or of a guess that came true."""
    search = SimpleNamespace(wait=lambda: EngineMove("7g7f", 0.0), ponderhit=lambda *words: told.append(words))
    told: list[tuple[object, ...]] = []

    def start(*words: object) -> SimpleNamespace:
        told.append(words)
        return search

    seat = object.__new__(UsiSeat)
    seat._client, seat._limit = SimpleNamespace(start=start), ""  # type: ignore[assignment]
    request = Request[Any](None, clocks=clocks(300.0, 290.0, 1.0), ponder=ponder, start=5.0)
    if ponder:
        search.wait = lambda: request.ponderhit(clocks(300.0, 400.0, 1.0), 9.0) or EngineMove("7g7f", 0.0)
    assert seat.think(MoveTask("startpos", (), request)).move == parse_usi("7g7f")
    words = "btime 300000 wtime 290000 byoyomi 1000"
    assert told == (
        [("startpos", (), f"ponder {words}", math.inf, 5.0), (401.0, 9.0)]
        if ponder
        else [("startpos", (), words, 301.0, 5.0)]
    )


def test_times_for_another_engine() -> None:
    assert go_words(Request(None, clocks=CLOCKS)) == "btime 300000 wtime 290000 binc 10000 winc 10000"
    pondering = Request[Any](None, clocks=clocks(1.5, 0.0, 2.0), ponder=True)
    assert go_words(pondering) == "ponder btime 1500 wtime 0 byoyomi 2000"
    assert go_words(Request(None, clocks=CLOCKS), "nodes 100") == "nodes 100"
    assert go_words(Request(None)) == "btime 0 wtime 0 byoyomi 60000"


def test_what_other_engines_decide() -> None:
    assert decision_of(EngineMove("resign", 0.0)).resign
    assert decision_of(EngineMove("win", 0.0)).win
    evaluation = Evaluation(0.5, 0.0, 10, ("7g7f", "3c3d", "nonsense", "2g2f"))
    found = decision_of(EngineMove("7g7f", 0.0, evaluation, "3c3d"))
    assert found.ponder is not None
    assert [format_usi(move) for move in found.report.moves[0].pv] == ["7g7f", "3c3d"]
    mated = decision_of(EngineMove("7g7f", 0.0, Evaluation(0.0, -29_997.0, None, mate=-3)))
    assert (mated.report.moves[0].mate, mated.ponder) == (-3, None)
    with pytest.raises(EngineError, match="bestmove: not a move: 'none'"):
        decision_of(EngineMove("none", 0.0))
