"""`yomi serve`: games without a server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import yomi
from yomi.web import engines as engine_module
from yomi.web import games, links, reviews, tables
from yomi.web.engines import MAX_ENGINES, Engines
from yomi.web.games import Clocks
from yomi.web.reviews import PageReview, Reviews
from yomi.web.tables import Table, Tables, UnknownTableError, new_table


def table(game: str, **changes: Any) -> Table:
    given = {"size": 5, "handicap": 0, "record": None, "human": "black", "level": 1, "seconds": 0.1, **changes}
    return new_table(game, **given)


def test_the_first_position_of_shogi_may_have_any_move_number() -> None:
    sfen = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 31"
    game = table("shogi", record=f"position sfen {sfen} moves 7g7f", human="white")
    assert game.state()["sfen"] == sfen
    game.undo()
    assert game.state()["moves"] == [], "Black's move is the engine's: there is no earlier one to take back"


def test_moves_of_go_have_their_colors() -> None:
    state = table("go", record="(;GM[1]SZ[9];B[ee];B[gg];W[aa])").state()
    assert (state["first"], state["colors"]) == ("B", ["B", "B", "W"])
    assert table("go", record="(;GM[1]SZ[9];W[ee])").state()["colors"] == ["W"]


def test_notes_of_a_record_are_shown() -> None:
    (note,) = table("go", record="(;GM[1]SZ[9]KM[6.5];B[ee])").state()["notes"]
    assert note == "no rules (RU): japanese rules assumed, because the komi is 6.5"
    assert table("go").state()["notes"] == table("shogi", record="startpos moves 7g7f").state()["notes"] == []


def test_long_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "MAX_MOVES", 2)
    with pytest.raises(yomi.Error, match="a record of 3 moves found, expected at most 2"):
        table("go", record="(;GM[1]SZ[9];B[ee];W[gg];B[aa])")


def test_games_have_a_greatest_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_MOVES", 1)
    game = table("go", human="both")
    game.play("C3")
    with pytest.raises(yomi.Error, match="1 moves have been played"):
        game.play("D4")


def test_the_visitor_resigns_and_takes_it_back() -> None:
    game = table("go")
    game.play("C3")
    game.resign()
    assert game.state()["result"] == "W+R", "also at the engine's turn"
    game.undo()
    assert (game.state()["result"], game.state()["moves"]) == ("", [])
    game.resign()
    game.undo()
    assert game.state()["result"] == ""


def test_the_record_of_a_counted_game_has_its_result() -> None:
    game = table("go", human="both")
    game.play("pass")
    game.play("pass")
    assert game.state()["result"] == "", "dead stones are not marked yet"
    game.agree()
    assert "RE[W+7.5]" in game.record()[0]
    game.undo()
    assert game.state()["dead"] == []
    assert game.state()["counting"] == {"dead": None, "result": "W+7.5"}, "the agreement is taken back first"
    game.undo()
    assert game.state()["counting"] is None


def test_dead_stones_are_known_after_the_agreement() -> None:
    game = table("go", human="both", record="(;GM[1]SZ[5]AB[cc]AW[aa];B[];W[])")
    game.mark("A5")
    game.agree()
    assert (game.state()["counting"], game.state()["dead"]) == (None, ["A5"])


@pytest.mark.parametrize(
    ("kind", "record", "found"),
    [
        ("go", "(;GM[1]SZ[9]PB[Cho]PW[Otake];B[ee])", ["PB[Cho]", "PW[Otake]"]),
        ("go", "(;GM[1]SZ[9]PW[Otake];B[ee])", ["PW[Otake]"]),
        ("shogi", "先手：羽生\n後手：谷川\n手合割：平手\n1 ７六歩(77)\n", ["先手：羽生", "後手：谷川"]),
        ("shogi", "startpos moves 7g7f", ["先手：yomi"]),
    ],
)
def test_a_continued_record_keeps_its_names(kind: str, record: str, found: list[str]) -> None:
    text, _ = table(kind, record=record, human="white").record()
    assert all(name in text for name in found), text


def test_a_review_ends_with_the_server() -> None:
    engines = Engines({})
    review = PageReview(engines)
    review.tick()
    engines.end_searches()
    with pytest.raises(yomi.Error, match="the server ends"):
        review.tick()


def test_reviews_wait_for_each_other_and_old_ones_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "MAX_WAITING", 2)
    monkeypatch.setattr(reviews, "MAX_REVIEWS", 2)
    monkeypatch.setattr(Reviews, "_search", lambda _, review, text, suffix: _fail(text) if "PB[x]" in text else text)

    async def visit() -> None:
        kept = Reviews(Engines({}))
        games = [table("go", record=f"(;GM[1]SZ[9]PB[{name}];B[ee])") for name in "axbc"]
        first, second = kept.begin(games[0]), kept.begin(games[1])
        assert kept.begin(games[0]) is first
        with pytest.raises(yomi.Error, match="too many reviews wait"):
            kept.begin(games[2])
        lines = [[line async for line in kept.follow(each)][-1] for each in (first, second)]
        assert [(line["isFinished"], line["detail"]) for line in lines] == [(True, ""), (False, "broken")]
        assert "PB[a]" in kept.page(first.id)
        assert kept.begin(games[1]) is not second, "a review that failed can be repeated"
        with pytest.raises(UnknownTableError):
            kept.page(first.id)

    asyncio.run(visit())


def _fail(text: str) -> str:
    raise yomi.Error("broken")


def options(name: str) -> list[str]:
    """Return the values that the page offers for a setting of a new game."""
    page = (Path(tables.__file__).parent / "play.html").read_text("utf-8")
    (choices,) = re.findall(f'<select name="{name}">(.*?)</select>', page)
    return [value or text for value, text in re.findall(r'<option(?: value="([^"]*)"[^>]*)?>(\d*)', choices)]


def test_the_settings_of_a_new_game() -> None:
    state = table("go", size=9, rules="japanese", komi=-3.5).state()
    assert (state["rules"], state["komi"]) == ("japanese", -3.5)
    assert [table("go", size=9, handicap=n).state()["komi"] for n in (0, 2)] == [7.5, 0.5]
    for name in options("rules"):
        assert table("go", rules=name).state()["rules"] == name
    for stones in options("handicap"):
        assert len(table("go", size=9, handicap=int(stones)).state()["stones"]) == int(stones)
    for name in options("gives"):
        state = table("shogi", gives=name).state()
        assert (state["isHandicap"], state["toMove"]) == ((True, "W") if name else (False, "B"))
    assert "手合割：二枚落ち" in table("shogi", gives="2-piece").record()[0]
    with pytest.raises(yomi.Error, match="handicap 'king' found, expected one of lance"):
        table("shogi", gives="king")


def test_pages_follow_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(tables, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(tables, "MAX_FOLLOWERS", 1)

    async def visit() -> None:
        engines, game = Engines({}), table("go", human="both")
        async with contextlib.aclosing(game.follow(engines)) as states:
            first = await anext(states)
            assert await anext(states) is None, "a page notices that the connection is there"
            with pytest.raises(yomi.Error, match="too many windows"):
                await anext(game.follow(engines))
            for action in (lambda: game.play("pass"), lambda: game.play("pass"), game.agree, game.undo, game.undo):
                action()
                while (state := await anext(states)) is None:
                    pass
                assert first is not None
                assert state["version"] > first["version"]
                first = state
            engines.end_searches()
            assert [state async for state in states] == []
        assert game.followers == 0

    asyncio.run(visit())


class Site(BaseHTTPRequestHandler):
    """A site with records."""

    def do_GET(self) -> None:
        number = self.path.rpartition("/")[2]
        self.send_response({"2": 302, "3": 404}.get(number, 200))
        self.send_header("Location", "/game/1")
        self.end_headers()
        with contextlib.suppress(OSError):  # the visitor has left
            self.wfile.write(b"(;GM[1]SZ[9];B[ee])" if number == "1" else bytes(2000))

    def log_message(self, *_: object) -> None: ...


def test_records_of_other_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{site.server_port}"
        monkeypatch.setattr(links, "SITES", ((f"{address}/(.)", address + "/game/{}"),))
        monkeypatch.setattr(links, "MAX_BYTES", 1000)
        assert links.record_at(f" {address}/1\n") == "(;GM[1]SZ[9];B[ee])"
        for number, fault in (("2", "Found"), ("3", "Not Found"), ("4", "more than 1000 bytes")):
            with pytest.raises(yomi.Error, match=f"no record at {address}/game/{number} .*{fault}.*: save the game"):
                links.record_at(f"{address}/{number}")
        site.shutdown()
    with pytest.raises(yomi.Error, match="refused"):
        links.record_at(f"{address}/1")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("https://online-go.com/game/123", "https://online-go.com/api/v1/games/123/sgf"),
        ("https://online-go.com/api/v1/games/123/sgf", "https://online-go.com/api/v1/games/123/sgf"),
        ("https://lishogi.org/abcdEFGH/sente", "https://lishogi.org/game/export/abcdEFGH"),
        ("https://lishogi.org/game/export/abcdEFGH?clocks=0", "https://lishogi.org/game/export/abcdEFGH"),
        ("https://lishogi.org/abcdEFGHijkl", "https://lishogi.org/game/export/abcdEFGH"),
        ("https://online-go.com.evil.org/game/123", None),
        ("https://online-go.com@evil.org/game/123", None),
        ("http://127.0.0.1/game/123", None),
        ("file:///etc/passwd", None),
        ("(;GM[1]SZ[9]C[https://online-go.com/game/123])", None),
    ],
)
def test_only_some_sites_are_asked(monkeypatch: pytest.MonkeyPatch, text: str, asked: str | None) -> None:
    monkeypatch.setattr(links, "_download", lambda address: f"record of {address}")
    assert links.record_at(text) == (text if asked is None else f"record of {asked}")


class FakeEngine:
    """Records what is loaded and closed."""

    log: list[str]
    fails = False

    def __init__(self, game: str, **options: Any) -> None:
        if self.fails:
            raise yomi.Error("no network")
        self.name = f"{game} {options['level']}"
        self.log.append(f"load {self.name}")

    def close(self) -> None:
        self.log.append(f"close {self.name}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(yomi, "Engine", FakeEngine)
    monkeypatch.setattr(FakeEngine, "log", [], raising=False)
    return FakeEngine.log


SHOGI = table("shogi").position


async def use(engines: Engines, level: int, visitor: str = "") -> None:
    async with engines.use(SHOGI, level, visitor):
        pass


def test_the_engine_that_was_idle_longest_is_closed(log: list[str]) -> None:
    async def visit() -> None:
        engines = Engines({})
        async with engines.use(SHOGI, 0):
            for level in range(1, MAX_ENGINES + 1):
                await use(engines, level)
        engines.close()

    asyncio.run(visit())
    assert next(line for line in log if "close" in line) == "close shogi 1", "level 0 is in use"
    assert len(log) == 2 * (MAX_ENGINES + 1)


def test_visitors_wait_until_an_engine_is_idle(log: list[str]) -> None:
    async def visit() -> None:
        engines = Engines({})
        async with contextlib.AsyncExitStack() as stack:
            for level in range(MAX_ENGINES):
                await stack.enter_async_context(engines.use(SHOGI, level))
            waiting = [asyncio.create_task(use(engines, level)) for level in (8, 9)]
            await asyncio.wait(waiting, timeout=0.05)
            assert len(log) == MAX_ENGINES
            await use(engines, 1)
            assert len(log) == MAX_ENGINES, "a loaded engine needs no room"
        await asyncio.wait_for(asyncio.gather(*waiting), 300)

    asyncio.run(visit())
    assert log[-1] in ("load shogi 8", "load shogi 9")


def test_a_visitor_who_leaves_takes_no_room(log: list[str]) -> None:
    async def visit() -> None:
        engines = Engines({})
        for level in range(2 * MAX_ENGINES):
            task = asyncio.create_task(use(engines, level))
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait_for(use(engines, 10), 300)

    asyncio.run(visit())
    assert log[-1] == "load shogi 10"


def test_loading_is_tried_again_after_a_fault(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit() -> None:
        engines = Engines({})
        monkeypatch.setattr(FakeEngine, "fails", True)
        for _ in range(MAX_ENGINES + 1):
            with pytest.raises(yomi.Error, match="no network"):
                await use(engines, 1)
        monkeypatch.setattr(FakeEngine, "fails", False)
        await use(engines, 1)

    asyncio.run(visit())
    assert log == ["load shogi 1"]


class FakeAnalysis:
    """Reports numbers until it is stopped."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name, self.count, self.is_stopped = log, name, 0, False

    def stop(self) -> None:
        self.is_stopped = True

    async def __aenter__(self) -> FakeAnalysis:
        self.log.append(f"begin {self.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.log.append(f"end {self.name}")

    def __aiter__(self) -> FakeAnalysis:
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0.001)
        self.count += 1
        if self.is_stopped:
            raise StopAsyncIteration
        return self.count


@pytest.fixture
def analyses(log: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    begun: list[str] = []
    monkeypatch.setattr(
        FakeEngine, "analysis", lambda _, position, interval: FakeAnalysis(begun, position.moves[0]), raising=False
    )
    return begun


async def first_reports(engines: Engines, move: str, count: int) -> None:
    async with contextlib.aclosing(engines.analyse(SHOGI.copy().play(move))) as reports:
        async for _ in reports:
            count -= 1
            if not count:
                return


def test_an_analysis_gives_way_to_a_game(analyses: list[str]) -> None:
    async def visit() -> None:
        engines = Engines({})
        analysis = asyncio.create_task(first_reports(engines, "7g7f", 1000))
        while not analyses:
            await asyncio.sleep(0.001)
        async with engines.use(SHOGI, 3):
            await asyncio.sleep(0.05)
            assert analyses == ["begin 7g7f", "end 7g7f"]
        while len(analyses) < 3:
            await asyncio.sleep(0.001)
        engines.end_searches()
        await asyncio.wait_for(analysis, 300)

    asyncio.run(visit())
    assert analyses == ["begin 7g7f", "end 7g7f"] * 2


def test_analyses_take_turns_and_search_beside_games_at_last(
    analyses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLICE_SECONDS", "SHORT_SECONDS", "PATIENCE_SECONDS"):
        monkeypatch.setattr(engine_module, name, 0.0)

    async def visit() -> None:
        engines = Engines({})
        await asyncio.gather(*(first_reports(engines, move, 3) for move in ("7g7f", "2g2f")))
        begun = [line for line in analyses if "begin" in line]
        assert begun[:4] == ["begin 7g7f", "begin 2g2f"] * 2
        async with engines.use(SHOGI, 3):
            await asyncio.wait_for(first_reports(engines, "7g7f", 3), 300)

    asyncio.run(visit())


def test_too_many_visitors_are_refused(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MAX_USERS", 1)

    async def visit() -> None:
        engines = Engines({})
        async with engines.use(SHOGI, 1):
            with pytest.raises(yomi.Error, match="too many visitors"):
                await use(engines, 1)
        await use(engines, 1)

    asyncio.run(visit())
    assert log == ["load shogi 1"]


def test_a_visitor_has_a_limit_of_searches_and_games(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "MAX_USERS_PER_VISITOR", 1)
    monkeypatch.setattr(tables, "MAX_TABLES_PER_VISITOR", 2)

    async def visit() -> None:
        engines = Engines({})
        async with engines.use(SHOGI, 1, "10.0.0.1"):
            with pytest.raises(yomi.Error, match="1 of your requests wait"):
                await use(engines, 1, "10.0.0.1")
            await use(engines, 1, "10.0.0.2")
        await use(engines, 1, "10.0.0.1")

    asyncio.run(visit())
    kept = Tables()
    other, *own = (table("go", visitor=visitor) for visitor in ("b", "a", "a", "a"))
    assert [kept.add(each) for each in (other, *own)] == [[], [], [], [own[0].id]], "they do not vanish silently"
    with pytest.raises(tables.UnknownTableError, match="closed for later ones: 2 games of one address"):
        kept.get(own[0].id)
    assert [kept.get(each.id) for each in (other, *own[1:])] == [other, *own[1:]]


def test_dead_stones_are_marked_and_counted() -> None:
    game = table(
        "go", record="(;GM[1]SZ[5]KM[0.5];B[cb];W[bb];B[cc];W[bc];B[cd];W[bd];B[ca];W[ba];B[ce];W[be];B[ad];W[])"
    )
    with pytest.raises(yomi.Error, match="both sides have passed"):
        game.mark("A2")
    game.play("pass")
    assert game.state()["counting"]["result"] == "B+10.5", "the stone on A2 leaves White no territory"
    game.mark("a2")
    assert game.state()["counting"] == {"dead": ["A2"], "result": "B+4.5"}
    game.mark("A2")
    assert game.state()["counting"]["dead"] == []
    with pytest.raises(yomi.Error, match="no stone on A5"):
        game.mark("A5")
    with pytest.raises(yomi.Error, match="invalid vertex"):
        game.mark("Q9")
    game.agree()
    with pytest.raises(yomi.Error, match="the game is over"):
        game.play("A1")


class Time:
    """A clock that tests move on."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("yomi.web.games.time", time)
    return time


def times(game: Table) -> list[float]:
    clocks = game.state()["clocks"]
    return [clocks["B"]["main"], clocks["W"]["main"]]


def test_moves_take_time_and_return_it(clock: Time) -> None:
    game = table("go", human="both", clock={"main": 60, "byoyomi": 0, "periods": 1, "increment": 5})
    clock.now += 10
    assert game.state()["clocks"]["used"] == 10
    game.play("C3")
    clock.now += 3
    game.play("D4")
    assert times(game) == [55, 62]
    game.undo()
    assert times(game) == [55, 60]
    assert game.state()["clocks"]["used"] == 0


def test_a_visitor_without_time_loses(clock: Time) -> None:
    game = table("shogi", clock={"main": 10, "byoyomi": 5, "periods": 2, "increment": 0})
    clock.now += 19.9
    assert game.state()["result"] == ""
    clock.now += 0.2
    assert (game.state()["result"], game.state()["ending"]["reason"]) == ("W+T", "time")
    with pytest.raises(yomi.Error, match="the game is over"):
        game.play("7g7f")
    assert "切れ負け" in game.record()[0]
    game.undo()
    assert game.state()["clocks"]["used"] == 0
    game.play("7g7f")


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, "a clock without time"), ({"byoyomi": 3, "increment": 3}, "exclude|expected one of")]
)
def test_impossible_clocks_are_refused(changes: dict[str, float], expected: str) -> None:
    with pytest.raises(yomi.Error, match=expected):
        Clocks("go", **{"main": 0, "byoyomi": 0, "periods": 1, "increment": 0, **changes})


@pytest.mark.parametrize(("seconds", "result"), [(4.0, ""), (6.0, "B+T")])
def test_the_engine_has_a_clock_too(
    log: list[str], monkeypatch: pytest.MonkeyPatch, clock: Time, seconds: float, result: str
) -> None:
    limits: list[yomi.Limit] = []

    async def aplay(engine: FakeEngine, position: object, limit: yomi.Limit) -> SimpleNamespace:
        clock.now += 99  # waiting for other visitors costs no time
        limits.append(limit)
        return SimpleNamespace(move="C3", win=False, resign=False, report=SimpleNamespace(seconds=seconds))

    monkeypatch.setattr(FakeEngine, "aplay", aplay, raising=False)
    game = table("go", clock={"main": 5, "byoyomi": 0, "periods": 1, "increment": 0})
    game.play("A1")
    asyncio.run(game.answer(Engines({})))
    assert limits[0].clocks == {color: yomi.Clock(5.0) for color in (yomi.BLACK, yomi.WHITE)}
    assert game.state()["result"] == result


@pytest.mark.parametrize(("win", "result"), [(True, "Black wins: declaration"), (False, "W+R")])
def test_an_engine_that_declares_a_win_has_not_resigned(
    log: list[str], monkeypatch: pytest.MonkeyPatch, win: bool, result: str
) -> None:
    async def aplay(engine: FakeEngine, *_: object) -> SimpleNamespace:
        return SimpleNamespace(move=None, win=win, resign=not win)

    monkeypatch.setattr(FakeEngine, "aplay", aplay, raising=False)
    game = table("shogi", human="white")
    asyncio.run(game.answer(Engines({})))
    assert game.state()["result"] == result


# -- requests that never end -------------------------------------------------------------------------------------------


@pytest.fixture
def web_app() -> Any:
    """Return the module of the application, which needs an extra."""
    pytest.importorskip("fastapi", reason="the extra web is not installed")
    from yomi.web import app

    return app


def protocol_of(web_app: Any, connection: Any) -> Any:
    import uvicorn

    protocol = web_app.Protocol(
        uvicorn.Config(web_app.make_app(Engines({}))), uvicorn.server.ServerState(), {}, connection
    )
    protocol.connection_made(connection)
    return protocol


class Connection:
    """Stands for asyncio's loop and transport: it records timers and the end of the connection."""

    def __init__(self) -> None:
        self.timers: list[Any] = []
        self.is_closed = False

    def call_later(self, seconds: float, action: Any) -> Any:
        timer = SimpleNamespace(action=action, cancel=lambda: self.timers.remove(timer))
        self.timers.append(timer)
        return timer

    def create_task(self, work: Any) -> Any:
        work.close()  # the application does not answer
        return self

    def add_done_callback(self, action: Any) -> None: ...

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> None: ...


@pytest.mark.parametrize("pieces", [[], [b"POST /api"], [b"P", b"OST / HTTP/1.1\r\nHost: local", b"host\r\nX: 1"]])
def test_half_sent_heads_have_a_limited_time(pieces: list[bytes], web_app: Any) -> None:
    connection = Connection()
    protocol = protocol_of(web_app, connection)
    for piece in pieces:
        protocol.data_received(piece)
    (timer,) = connection.timers  # the first one: more bytes win no time
    timer.action()
    assert connection.is_closed


def test_whole_heads_have_no_limit(web_app: Any) -> None:
    connection = Connection()
    protocol_of(web_app, connection).data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert not connection.timers


def test_half_sent_bodies_have_a_limited_time(web_app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_app, "REQUEST_SECONDS", 0.0)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"type": "http", "method": "POST", "path": "/api/games", "scheme": "http", "headers": headers}
    asyncio.run(web_app.make_app(Engines({}))({**scope, "query_string": b"", "server": None}, receive, send))
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    ("language", "broken", "unknown"),
    [
        ("ja", "別のゲームです", "この対局はもう残っていません"),
        ("en", "is another game", "this game is not known"),
    ],
)
def test_errors_have_the_language_of_the_page(language: str, broken: str, unknown: str, web_app: Any) -> None:
    app = web_app.make_app(Engines({}))

    def ask(path: str, body: object = None) -> Any:
        sent: list[Any] = []
        data = b"" if body is None else json.dumps(body).encode()

        async def receive() -> Any:
            return {"type": "http.request", "body": data}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        headers.append((b"accept-language", language.encode()))
        method = "GET" if body is None else "POST"
        scope = {"type": "http", "method": method, "path": path, "scheme": "http", "headers": headers}
        asyncio.run(app({**scope, "query_string": b"", "server": None}, receive, send))
        return json.loads(b"".join(message.get("body", b"") for message in sent))

    assert unknown in ask("/api/games/none")["detail"]
    record = "手合割：5五将棋\n   1 ５四歩(55)\n"
    assert broken in ask("/api/games", {"game": "shogi", "record": record})["detail"]
    name = ask("/api/games", {"game": "shogi"})["id"]
    for move in ("7g7e", "xx"):
        detail = ask(f"/api/games/{name}/move", {"move": move})["detail"]
        assert bool(re.search("[ぁ-ん]", detail)) == (language == "ja"), detail
