"""The clients of CGOS and of CSA servers against servers on loopback: whole games, and everything that goes wrong."""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.clients import Running
from tests.fakes.game_servers import CgosServer, CsaServer, FakeServer
from tests.fakes.proxy import Proxy
from tests.fakes.seats import FakeGoSeat, FakeShogiSeat
from tests.sgf import read_sgf
from yomi.engine.go.cgos import client as cgos_client
from yomi.engine.go.cgos.game import GoReply
from yomi.engine.players.request import Decision
from yomi.engine.servers import client, connection
from yomi.engine.servers.game import GaveUpError, MoveTask
from yomi.engine.shogi.floodgate import client as csa_client
from yomi.engine.shogi.records.files import read_records

SERVERS: list[type[CgosServer] | type[CsaServer]] = [CgosServer, CsaServer]


def seat_for(server: FakeServer, **keys) -> FakeGoSeat | FakeShogiSeat:
    return FakeGoSeat(**keys) if isinstance(server, CgosServer) else FakeShogiSeat(**keys)


def record_in(folder: Path) -> Path:
    """Return the one record of a client that still plays, beside which there may be the file that will replace it."""
    (record,) = (path for path in folder.iterdir() if path.suffix in (".sgf", ".csa"))
    return record


def moves_of(record: str) -> int:
    """Return the number of moves of a record of either game."""
    if record.startswith("("):
        return sum(node.move is not None for node in read_sgf(record).line())
    return len(read_records(record)[0].moves)


@pytest.fixture(autouse=True)
def _quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(connection, "MAX_PAUSE", 0.1)
    monkeypatch.setattr(client, "BETWEEN_SESSIONS", (0.0, 0.01))


@pytest.fixture(params=SERVERS, ids=["cgos", "csa"])
def make_server(request: pytest.FixtureRequest) -> Iterator[Callable[..., FakeServer]]:
    made: list[FakeServer] = []

    def make(**keys) -> FakeServer:
        made.append(request.param(**keys))
        return made[-1]

    yield make
    for server in made:
        server.close()


def test_games_in_a_row(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(games=3, plies=9)
    running = Running(tmp_path, server.port, seat_for(server), games=3)
    running.join()
    assert server.errors == []
    assert len(server.results) == 3
    assert [moves_of(record) for record in running.records()] == [9, 9, 9]
    assert len(running.events("over")) == 3
    assert running.client.won == 3
    assert [event["ply"] for event in running.events("move")] == [*range(1, 10)] * 3


def test_evaluations_and_clocks_are_in_records_and_on_the_wire(tmp_path: Path) -> None:
    go, shogi = CgosServer(plies=5), CsaServer(plies=5)
    first = Running(tmp_path / "go", go.port, FakeGoSeat()) if (tmp_path / "go").mkdir() is None else None
    assert first is not None
    first.join()
    assert set(go.analyses) == {'{"winrate":0.5}'}
    nodes = [node for node in read_sgf(first.records()[0]).line() if node.move]
    assert [node.comment for node in nodes] == ["50.0%", "", "50.0%", "", "50.0%"]
    assert nodes[0].other["BL"] == ["59.990"]
    assert nodes[1].other["WL"] == ["60.000"]
    (tmp_path / "shogi").mkdir()
    second = Running(tmp_path / "shogi", shogi.port, FakeShogiSeat())
    second.join()
    assert shogi.comments == ["'* 659 -8272HI", "'* 659 -7282HI", "'* 659 -8272HI"]
    record = read_records(second.records()[0])[0]
    assert [move.score for move in record.moves] == [659, None, 659, None, 659]
    assert [move.seconds for move in record.moves] == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert (record.black, record.white, record.ending) == ("yomi-1", "fake", "TORYO")
    go.close()
    shogi.close()


def test_a_server_of_cgos_without_analysis(tmp_path: Path) -> None:
    server = CgosServer(plies=5, analysis=False)
    Running(tmp_path, server.port, FakeGoSeat()).join()
    assert (server.errors, server.analyses) == ([], [])
    server.close()


def test_comments_can_be_kept_back(tmp_path: Path) -> None:
    server = CsaServer(plies=5)
    Running(tmp_path, server.port, FakeShogiSeat(), comments=False).join()
    assert (server.errors, server.comments) == ([], [])
    server.close()


# -- faults --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_connection_is_cut_at_random_moments(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    """The game goes on where it was, no move is sent twice or lost, and the record is complete."""
    server = make_server(plies=41)
    take = server.take

    def cut_what_was_cut_too_seldom(link: socket.socket, line: str) -> bool:
        """Where the machine is busy the game would be over before."""
        return (link is server.link and server.ply >= 38 and server.logins <= 3) or take(link, line)

    server.take = cut_what_was_cut_too_seldom  # type: ignore[method-assign]
    proxy = Proxy(server.port, delay=0.004)
    rng = random.Random(7)
    running = Running(tmp_path, proxy.port, seat_for(server, seconds=0.03, ponders=True))
    cuts = 0
    while running.is_running and cuts < 12:
        time.sleep(rng.uniform(0.0, 0.15))
        if proxy.is_used:
            proxy.cut()
            cuts += 1
    running.join()
    proxy.close()
    assert server.errors == []
    assert len(server.results) == 1
    assert server.logins > 3
    assert [moves_of(record) for record in running.records()] == [41]


def test_the_server_is_restarted(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    """It forgets the game, which is kept as far as it came; the next one is played."""
    server = make_server(plies=60)
    proxy = Proxy(server.port)
    came = threading.Event()

    def wait_for_the_end() -> None:
        came.set()
        server.wait(lambda: server.is_closed)

    server.at_ply(6, wait_for_the_end)
    running = Running(tmp_path, proxy.port, seat_for(server, seconds=0.01), games=2)
    assert came.wait(60.0)
    server.close()
    time.sleep(0.1)
    other = make_server(plies=7)
    other.number, other.games = 50, 51  # type: ignore[attr-defined]
    other.results[:] = ["old"] * 50
    proxy.server_port = other.port
    running.join()
    proxy.close()
    assert other.errors == []
    assert len(running.events("dropped")) == 1
    dropped = Path(str(running.events("dropped")[0]["record"]))
    assert moves_of(dropped.read_text()) >= 6
    assert moves_of(Path(str(running.events("over")[0]["record"])).read_text()) == 7


def said_of_own_moves(record: str) -> list[object]:
    """Return the evaluations of Black's moves in a record of either game."""
    if record.startswith("("):
        return [node.comment for node in read_sgf(record).line() if node.move][::2]
    return [move.score for move in read_records(record)[0].moves][::2]


@pytest.mark.parametrize("day", ["", "20200229"], ids=["today", "yesterday"])
def test_a_record_is_continued_by_a_program_that_was_killed_and_started_again(
    day: str, make_server: Callable[..., FakeServer], tmp_path: Path
) -> None:
    server = make_server(plies=13)
    left_behind, killed = tmp_path / "two" / "one", tmp_path / "first"
    killed.mkdir()

    def kill() -> None:
        """What a kill leaves is the files as they are now."""
        left_behind.mkdir(parents=True)
        record = record_in(killed / "one")
        (left_behind / f"{day or record.name[:8]}{record.name[8:]}").write_bytes(record.read_bytes())
        running.client.leave()

    with server.lock:
        running = Running(killed, server.port, seat_for(server))
        server.at_ply(6, kill)
    running.join()
    again = Running(tmp_path / "two", server.port, seat_for(server))
    again.join()
    assert server.errors == []
    (record,) = again.records()
    assert moves_of(record) == 13
    said = said_of_own_moves(record)
    del said[3]  # that move was on its way
    assert said == [("50.0%" if isinstance(server, CgosServer) else 659)] * 6
    assert [path.name[:8] for path in left_behind.iterdir()] == [day or time.strftime("%Y%m%d")]


@pytest.mark.parametrize("change", ["ended", "moves", "broken"])
def test_the_record_of_another_game_is_left_alone(
    change: str, make_server: Callable[..., FakeServer], tmp_path: Path
) -> None:
    server = make_server(plies=13)
    other, killed = tmp_path / "two" / "one", tmp_path / "first"
    killed.mkdir()

    def kill() -> None:
        other.mkdir(parents=True)
        record = record_in(killed / "one")
        is_go = record.suffix == ".sgf"
        text = record.read_text()
        if change == "ended":
            text = text.replace("GM[1]", "GM[1]RE[B+R]") if is_go else text + "%CHUDAN\n"
        elif change == "moves":
            text = text.replace(";B[aa]", ";B[ii]") if is_go else text.replace("+2838HI", "+2878HI")
        else:
            text = "(;"
        (other / f"20200229{record.name[8:]}").write_text(text)
        before.append(text)
        running.client.leave()

    before: list[str] = []
    with server.lock:
        running = Running(killed, server.port, seat_for(server))
        server.at_ply(6, kill)
    running.join()
    again = Running(tmp_path / "two", server.port, seat_for(server))
    again.join()
    old, new = again.records()
    assert old == before[0]
    assert moves_of(new) == 13


def test_a_move_that_is_lost_on_its_way_is_sent_again(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    """What is thought about ahead begins anew with it, and does not wait for what was begun before."""
    server = make_server(plies=9)
    take, lost = server.take, []

    def lose_the_second_move(link: socket.socket, line: str) -> bool:
        if len(server.moves) == 2 and not lost and line.startswith(("b9", "+3828HI")):  # type: ignore[attr-defined]
            lost.append(line)
            time.sleep(0.05)  # the client begins to think about the answer
            return True
        return take(link, line)

    server.take = lose_the_second_move  # type: ignore[method-assign]
    Running(tmp_path, server.port, seat_for(server, ponders=True)).join()
    assert server.errors == []
    assert len(lost) == 1
    assert server.received.count(lost[0]) >= 2


def test_the_move_that_was_decided_without_a_connection_is_sent(
    make_server: Callable[..., FakeServer], tmp_path: Path
) -> None:
    server = make_server(plies=5)
    seat = seat_for(server, seconds=0.3)
    running = Running(tmp_path, server.port, seat)
    server.wait(lambda: running.client.game is not None and any(call[:2] == "th" for call in seat.calls))
    server.cut()
    running.join()
    assert server.errors == []
    thoughts = [call for call in seat.calls if call.startswith("think")]
    assert len(thoughts) == len(set(thoughts)) == 3  # nothing was thought about twice


def test_a_game_that_ended_while_there_was_no_connection(
    make_server: Callable[..., FakeServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cgos_client, csa_client):
        monkeypatch.setattr(module, "RESUME_TIMEOUT", 0.1)
    server = make_server(games=1, plies=1000)

    def end_the_game() -> None:
        server.results.append("lost")
        server.cut()

    server.at_ply(4, end_the_game)
    running = Running(tmp_path, server.port, seat_for(server, seconds=0.01))
    running.join()
    assert len(running.events("dropped")) == 1
    assert "it ended while there was no connection" in running.terminal.getvalue()
    assert moves_of(running.records()[0]) >= 4


def test_lines_come_in_pieces_and_with_noise(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(plies=9)
    server.extra = b"x" * 70_000 + b"\n\xff\xfe\x00 noise\n" + b"#what is this\n"
    Running(tmp_path, server.port, seat_for(server)).join()
    assert server.errors == []
    assert len(server.results) == 1


def test_endless_noise_is_not_listened_to(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(plies=9)
    server.extra = b"noise\n" * 300
    running = Running(tmp_path, server.port, seat_for(server))
    server.wait(lambda: len(running.events("lost")) > 2)
    server.extra = b""
    running.join()
    assert "more than 200 meaningless lines" in str(running.events("lost")[0]["why"])
    assert len(server.results) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("setup 1 99 7 60000 fake yomi-1", "a game that cannot be played: board size 99: expected 2 to 19"),
        ("setup 1 1 7 60000 fake yomi-1", "a game that cannot be played: board size 1: expected 2 to 19"),
        ("setup 1 9 999 60000 fake yomi-1", "a game that cannot be played: komi 999: expected -400 to 400"),
        ("setup 1 9 7 60000 fake yomi-1 z9 1", "a game that cannot be played: move 1: invalid vertex 'z9'"),
        ("setup 1 9 7 60000 fake yomi-1 e5 1 e5 1", "out of step with the server: move 2: illegal move W E5: occupied"),
        ("setup 1 9 7 60000 fake somebody", "a game of fake and somebody, not of yomi-1"),
        ("setup 2 9 7 60000 fake yomi-1\nplay w e5 1", "out of step with the server: White plays e5 out of turn"),
        ("setup 2 9 7 60000 yomi-1 fake\nplay b z9 1", "out of step with the server: move 1: invalid vertex 'z9'"),
        ("setup 2 9 7 60000 yomi-1 fake\ngenmove w 1", "out of step with the server: a move of White is requested"),
    ],
)
def test_a_game_that_cannot_be_played_is_not_the_fault_of_the_engine(line: str, why: str, tmp_path: Path) -> None:
    """The session is lost, the pauses grow, and the account plays on when the server makes sense again."""
    server = CgosServer(plies=9)
    begin = server.begin
    server.begin = lambda: server.send(server.link, line)  # type: ignore[method-assign]
    running = Running(tmp_path, server.port, FakeGoSeat(), games=0)
    server.wait(lambda: len(running.events("lost")) >= 4)
    with server.lock:
        server.begin = begin  # type: ignore[method-assign]
    server.wait(lambda: len(server.results) == 1)
    running.client.finish()
    running.join()
    server.close()
    assert running.events("engine_failed") == running.events("error") == []
    pauses = [float(str(event["pause"])) for event in running.events("lost")]
    assert pauses[3] > pauses[0]
    assert {str(event["why"])[: len(why)] for event in running.events("lost")[:4]} == {why}


@pytest.mark.parametrize("vertex", ["a9", "e10"])
def test_an_illegal_move_of_the_engine_is_not_sent(vertex: str, tmp_path: Path) -> None:
    server = CgosServer(plies=9)
    seat = FakeGoSeat()
    decide = seat.decide

    def choose_badly_once(turn: MoveTask) -> GoReply:
        return GoReply(vertex) if len(turn.moves) == 2 and "close" not in seat.calls else decide(turn)

    seat.decide = choose_badly_once  # type: ignore[method-assign]
    running = Running(tmp_path, server.port, seat)
    running.join()
    server.close()
    assert server.errors == []
    assert [str(event["why"]) for event in running.events("engine_failed")] != []
    assert [moves_of(record) for record in running.records()] == [9]


def test_ratings_that_sgf_has_signs_for_are_recorded(tmp_path: Path) -> None:
    server = CgosServer(plies=5)
    server.send = lambda link, *lines: FakeServer.send(  # type: ignore[method-assign]
        server, link, *(line.replace("fake(1800?)", "fake(18]0\\)") for line in lines)
    )
    running = Running(tmp_path, server.port, FakeGoSeat())
    running.join()
    server.close()
    assert "WR[18\\]0\\\\]" in running.records()[0]


def test_a_connection_that_has_gone_silent(
    make_server: Callable[..., FakeServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half open: it takes what is sent and never answers."""
    monkeypatch.setattr(csa_client, "ANSWER_TIMEOUT", 1.0)
    for module in (cgos_client, csa_client):
        monkeypatch.setattr(module, "OPPONENT_GRACE", 0.2)
        monkeypatch.setattr(module, "LOGIN_TIMEOUT", 1.0)  # of the log-in that is swallowed, too
    server = make_server(plies=41, seconds=0.5)
    proxy = Proxy(server.port)
    take, lost_before = server.take, []

    def freeze_in_mid_game(link: socket.socket, line: str) -> bool:
        if not lost_before and len(server.moves) > 5:  # type: ignore[attr-defined]
            lost_before.append(len(running.events("lost")))
            proxy.freeze()
        return take(link, line)

    with server.lock:
        running = Running(tmp_path, proxy.port, seat_for(server, seconds=0.01))
        server.take = freeze_in_mid_game  # type: ignore[method-assign]
    server.wait(lambda: lost_before and len(running.events("lost")) > lost_before[0])
    proxy.freeze(False)
    running.join()
    proxy.close()
    assert server.errors == []
    assert server.logins >= 2
    assert [moves_of(record) for record in running.records()] == [41]


def test_a_server_that_never_speaks(
    make_server: Callable[..., FakeServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (cgos_client, csa_client):
        monkeypatch.setattr(module, "LOGIN_TIMEOUT", 0.05)
    monkeypatch.setattr(cgos_client.CgosClient, "logout", ("quit", 0.1))
    monkeypatch.setattr(csa_client.CsaClient, "logout", ("LOGOUT", 0.1))
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        server = make_server()
        running = Running(tmp_path, deaf.getsockname()[1], seat_for(server))
        server.wait(lambda: len(running.events("lost")) > 2)
        running.client.finish()
        running.join()
    assert running.events("lost")[0]["why"] == "no answer to the log-in"


def test_a_wrong_password_ends_it_and_is_shown_nowhere(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(password="another")
    running = Running(tmp_path, server.port, seat_for(server))
    with pytest.raises(GaveUpError, match="one: refused 5 times"):
        running.join()
    assert "secret1" in " ".join(server.received)
    shown = running.terminal.getvalue() + (tmp_path / "events").read_text() + str(running.error)
    assert "secret1" not in shown


def test_a_server_that_is_gone_after_a_game_is_not_pestered(
    make_server: Callable[..., FakeServer], tmp_path: Path
) -> None:
    """An orderly end makes the first pause short, not those of the attempts that fail after it."""
    server = make_server(games=1, plies=5)
    running = Running(tmp_path, server.port, seat_for(server), games=2)
    server.wait(lambda: len(server.results) == 1)
    server.close()
    server.wait(lambda: len(running.events("lost")) >= 5)
    running.client.finish()
    running.join()
    pauses = [float(str(event["pause"])) for event in running.events("lost")]
    assert max(pauses[:5]) >= 0.05


def test_nothing_is_sent_between_log_in_and_start(tmp_path: Path) -> None:
    """A move that is decided meanwhile waits for the server to start the game again."""
    server = CsaServer(plies=5)
    seat, released = FakeShogiSeat(), threading.Event()
    think, take = seat.think, server.take

    def think_until_released(turn: MoveTask) -> Decision:
        decision = think(turn)
        released.wait(60.0)
        return decision

    def decide_before_the_log_in(link: socket.socket, line: str) -> bool:
        if line.startswith("LOGIN ") and server.logins == 1:
            game = running.client.game  # type: ignore[attr-defined]
            released.set()
            server.wait(lambda: game.decided is not None)
        return take(link, line)

    seat.think = think_until_released  # type: ignore[method-assign]
    server.take = decide_before_the_log_in  # type: ignore[method-assign]
    running = Running(tmp_path, server.port, seat)
    server.wait(lambda: "think 0" in seat.calls)
    server.cut()
    running.join()
    assert server.errors == []
    assert (server.logins, server.results) == (2, ["#WIN"])
    assert [call for call in seat.calls if call.startswith("think")] == ["think 0", "think 2", "think 4"]
    server.close()


def test_the_engine_fails_once(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(plies=9)
    seat = seat_for(server, failures=1)
    running = Running(tmp_path, server.port, seat)
    running.join()
    assert server.errors == []
    assert [moves_of(record) for record in running.records()] == [9]
    assert "close" in seat.calls[:-1]


def test_the_engine_fails_for_good(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(plies=9)
    running = Running(tmp_path, server.port, seat_for(server, failures=100))
    with pytest.raises(GaveUpError, match="the engine failed 3 times in a row: out of order"):
        running.join()
    server.wait(lambda: len(server.results) == 1)
    assert server.results[0] in ("W+Resign Resignation", "#LOSE")


def test_the_engine_fails_while_it_thinks_ahead(tmp_path: Path) -> None:
    """The move that is due then is thought about by the engine that was started anew."""
    server = CsaServer(plies=9)
    seat = FakeShogiSeat(ponders=True)
    think = seat.think

    def fail_at_the_second_guess(turn: MoveTask) -> Decision:
        decision = think(turn)
        if len(turn.moves) == 4 and turn.request.ponder and "close" not in seat.calls:
            raise RuntimeError("out of order")
        return decision

    seat.think = fail_at_the_second_guess  # type: ignore[method-assign]
    running = Running(tmp_path, server.port, seat)
    running.join()
    assert server.errors == []
    assert len(running.events("engine_failed")) == 1
    assert "think 4" in seat.calls
    server.close()


# -- ending --------------------------------------------------------------------------------------------------------


def test_the_first_ctrl_c_finishes_the_game_in_hand(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(games=100, plies=21)
    take, finished = server.take, threading.Event()

    def finish_in_the_second_game(link: socket.socket, line: str) -> bool:
        if server.number == 2 and len(server.moves) > 3 and not finished.is_set():  # type: ignore[attr-defined]
            finished.set()
            running.client.finish()
        return take(link, line)

    with server.lock:
        running = Running(tmp_path, server.port, seat_for(server, seconds=0.005), games=0)
        server.take = finish_in_the_second_game  # type: ignore[method-assign]
    running.join()
    assert len(server.results) == 2
    assert [moves_of(record) for record in running.records()] == [21, 21]


def test_the_second_ctrl_c_leaves_at_once(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(games=100, plies=10_000)

    def interrupt_twice() -> None:
        running.client.finish()
        running.client.leave()

    with server.lock:
        running = Running(tmp_path, server.port, seat_for(server, seconds=0.05), games=0)
        server.at_ply(4, interrupt_twice)
    running.join()  # the game has no end
    assert moves_of(running.records()[0]) >= 3


def test_finish_while_no_game_is_there(make_server: Callable[..., FakeServer], tmp_path: Path) -> None:
    server = make_server(games=0)
    running = Running(tmp_path, server.port, seat_for(server), games=0)
    server.wait(lambda: server.logins == 1)
    running.client.finish()
    running.join()
    assert server.errors == []


# -- CGOS ----------------------------------------------------------------------------------------------------------


def test_the_lag_is_what_the_clock_of_cgos_loses(tmp_path: Path) -> None:
    """The machine may be busy: one of twenty."""

    def once(folder: Path) -> float:
        folder.mkdir()
        server = CgosServer(plies=9)
        move = server._move
        server._move = lambda line: (server.left.__setitem__("b", server.left["b"] - 90), move(line))
        seat = FakeGoSeat()
        Running(folder, server.port, seat).join()
        assert seat.lags[0] == 0.0
        server.close()
        return seat.lags[-1]

    assert any(once(tmp_path / str(i)) == pytest.approx(0.1, abs=0.03) for i in range(20))


@pytest.mark.parametrize("is_thrown_out", [True, False])
@pytest.mark.parametrize("is_cut", [True, False])
def test_another_log_in(is_thrown_out: bool, is_cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is thrown out by it stays away for a while; there are servers that refuse it instead."""
    monkeypatch.setattr(cgos_client, "ANOTHER_LOGIN_PAUSE", 0.3)
    monkeypatch.setattr(cgos_client, "THROW_OUT_TIMEOUT", 60.0 if is_thrown_out else 0.05)
    server = CgosServer(plies=41)
    running = Running(tmp_path, server.port, FakeGoSeat(seconds=0.05))
    server.wait(lambda: len(server.moves) > 3)
    with server.lock:
        server.send(server.link, "info another login is being attempted using this user name")
        server.wait(lambda: bool(running.events("another_login")))
        if is_cut:
            time.sleep(0.0 if is_thrown_out else 0.1)
            server.cut()
    running.join()
    assert server.errors == []
    assert [event["user"] for event in running.events("another_login")] == ["yomi-1"]
    assert [event["pause"] == 0.3 for event in running.events("lost")] == [is_thrown_out] * is_cut
    assert [moves_of(record) for record in running.records()] == [41]
    server.close()


def test_pondering_begins_when_the_move_is_out(tmp_path: Path) -> None:
    server = CgosServer(plies=5)
    seat = FakeGoSeat(ponders=True)
    Running(tmp_path, server.port, seat).join()
    calls = [call.split()[0] for call in seat.calls if call.startswith(("think", "ponder"))]
    assert calls == ["think", "ponder"] * 3
    server.close()


def test_a_move_that_the_server_did_not_take_is_not_in_the_record(tmp_path: Path) -> None:
    server = CsaServer(plies=100)
    move = server._move

    def lose_on_time(line: str) -> None:
        if len(server.moves) < 4:
            move(line)
        else:
            server._over("#TIME_UP", "#LOSE")

    server._move = lose_on_time  # type: ignore[method-assign]
    running = Running(tmp_path, server.port, FakeShogiSeat())
    running.join()
    record = read_records(running.records()[0])[0]
    assert (len(record.moves), record.ending, record.winner) == (4, "TIME_UP", 2)
    server.close()


@pytest.mark.parametrize("games", [1, 0])
def test_no_further_game_begins_after_the_last(games: int, tmp_path: Path) -> None:
    """In place of the last game, which was asked for (1) or is in hand at Ctrl-C (0), the server proposes another."""
    server = CsaServer(games=2, plies=1000)
    running = Running(tmp_path, server.port, FakeShogiSeat(seconds=0.01), games=games)
    server.wait(lambda: len(server.moves) > 3)
    with server.lock:
        if not games:
            running.client.finish()
            server.wait(lambda: bool(running.events("finish")))
        server.results.append("lost")
        server.cut()
    running.join()
    assert server.errors == []
    assert [line for line in server.received if line.startswith("REJECT")] == ["REJECT:game-2"]
    assert len(running.events("dropped")) == 1
    assert running.events("over") == []
    server.close()


# -- CSA -----------------------------------------------------------------------------------------------------------


def test_what_was_expected_is_a_ponderhit(tmp_path: Path) -> None:
    server = CsaServer(plies=9)
    seat = FakeShogiSeat(ponders=True)
    Running(tmp_path, server.port, seat).join()
    assert server.errors == []
    assert [call for call in seat.calls if call.startswith("think")] == ["think 0"]
    hit = [turn for turn in seat.turns if turn.request.ponder and not turn.request.is_pondering]
    assert len(hit) == 4
    assert all(turn.request.clocks is not None for turn in hit)


def test_a_wrong_guess_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.game_servers.THEIR_MOVES", ("-8262HI", "-6282HI"))
    server = CsaServer(plies=9)
    seat = FakeShogiSeat(ponders=True)
    Running(tmp_path, server.port, seat).join()
    assert server.errors == []
    assert [call for call in seat.calls if call.startswith("think")] == [f"think {ply}" for ply in range(0, 9, 2)]
    assert all(turn.request.is_stopped for turn in seat.turns if turn.request.ponder)
    server.close()


@pytest.mark.parametrize(
    ("ending", "result", "ended"),
    [
        (("#RESIGN", "#WIN"), 1, "TORYO"),
        (("#TIME_UP", "#WIN"), 1, "TIME_UP"),
        (("#ILLEGAL_MOVE", "#WIN"), 1, "ILLEGAL_MOVE"),
        (("#SENNICHITE", "#DRAW"), 0, "SENNICHITE"),
        (("#OUTE_SENNICHITE", "#WIN"), 1, "-ILLEGAL_ACTION"),
        (("#OUTE_SENNICHITE", "#LOSE"), -1, "+ILLEGAL_ACTION"),
        (("%KACHI", "#JISHOGI", "#LOSE"), -1, "KACHI"),
        (("#MAX_MOVES", "#CENSORED"), 0, "MAX_MOVES"),
        (("#CHUDAN",), None, "CHUDAN"),
    ],
)
def test_endings(tmp_path: Path, ending: tuple[str, ...], result: int | None, ended: str) -> None:
    server = CsaServer(plies=5)
    server.ending = ending
    running = Running(tmp_path, server.port, FakeShogiSeat())
    running.join()
    record = read_records(running.records()[0])[0]
    assert record.ending == ended
    words = "ended without judgement" if "#CENSORED" in ending else client.OUTCOME_NAMES[result]
    assert f": {words} against fake: " in running.terminal.getvalue()
    counts = (running.client.won, running.client.lost, running.client.drawn)
    assert counts == ((result == 1) * 1, (result == -1) * 1, (result == 0) * 1)
    if result is not None:
        assert record.winner == {1: 1, -1: 2, 0: 0}[result]
    server.close()


@pytest.mark.parametrize(
    ("decision", "sent"), [(Decision(None, win=True), "%KACHI"), (Decision(None, resign=True), "%TORYO")]
)
def test_decisions_that_are_no_moves(tmp_path: Path, decision: Decision, sent: str) -> None:
    server = CsaServer(plies=5)
    seat = FakeShogiSeat()
    seat.decision = decision
    running = Running(tmp_path, server.port, seat)
    server.wait(lambda: sent in server.received)
    if sent == "%KACHI":
        server.send(server.link, "%KACHI", "#JISHOGI", "#WIN")
        server.results.append("#WIN")
    running.join()
    server.close()


@pytest.mark.parametrize(
    ("line", "rule"), [("", None), ("Declaration:Jishogi 1.1", "27"), ("Declaration:Jishogi 24", None)]
)
def test_the_servers_rule_of_the_declaration_win(
    line: str, rule: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = CsaServer(plies=3, games=2)
    server.declaration = line
    seat = FakeShogiSeat()
    Running(tmp_path, server.port, seat, games=2).join()
    assert [call for call in seat.calls if call.startswith("begin")] == [f"begin 0 {rule or 'own rule'}"] * 2
    warnings = [record.getMessage() for record in caplog.records if "Declaration" in record.getMessage()]
    words = "expected Jishogi 1.1; the engine's own rule of the declaration win holds"
    assert warnings == [f"one: Declaration:Jishogi 24: {words}"] * line.endswith("24")
    server.close()


def test_keep_alive_lines_find_a_dead_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csa_client, "ANSWER_TIMEOUT", 1.0)
    monkeypatch.setattr(csa_client, "LOGIN_TIMEOUT", 1.0)  # of the log-in that is swallowed, too
    server = CsaServer(games=0)
    proxy = Proxy(server.port)
    running = Running(tmp_path, proxy.port, FakeShogiSeat(), games=0, keepalive=0.05)
    server.wait(lambda: server.received.count("") > 3)
    before = len(running.events("lost"))
    proxy.freeze()
    server.wait(lambda: len(running.events("lost")) > before)
    assert any(event["why"] == "no answer to a keep-alive" for event in running.events("lost"))
    proxy.freeze(False)
    server.wait(lambda: server.logins >= 2)
    running.client.finish()
    running.join()
    proxy.close()
    server.close()
