"""`yomi serve`: engines that visitors share, their limits, and clocks."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

import yomi
from tests.unit.test_web_tables import table
from yomi.web import engines as engine_module
from yomi.web import tables
from yomi.web.engines import MAX_ENGINES, Engines
from yomi.web.games import Clocks, UnknownIdError
from yomi.web.tables import Table, Tables


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
    with pytest.raises(UnknownIdError, match="closed for later ones: 2 games of one address"):
        kept.get(own[0].id)
    assert [kept.get(each.id) for each in (other, *own[1:])] == [other, *own[1:]]


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
