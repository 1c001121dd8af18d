"""The engines that all visitors share. Games are searched first; analyses share the remaining time."""

import asyncio
import contextlib
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import yomi
from yomi.library.position import Position
from yomi.library.values import Report

MAX_ENGINES = 4
MAX_USERS = 64  # requests that search or wait for an engine
MAX_USERS_PER_VISITOR = 32
ENGINE_MEMORY = 1 << 28  # bytes of the tree
INTERVAL = 0.4  # seconds between two reports of an analysis
SLICE_SECONDS = 2.0  # of an analysis for which others wait
PATIENCE_SECONDS = 5.0  # after which an analysis searches beside games,
SHORT_SECONDS = 0.5  # but not for long
MAX_ANALYSIS_SECONDS = 1800.0  # a page that nobody closes must not search for ever

Key = tuple[str, tuple[int, int], int]  # game, columns and rows, level


class Engines:
    """Engines by game, board size and level. If all places are taken, the least recently used idle engine is closed.

    All methods except `close` run in one event loop. State therefore changes only at an `await`.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self._engines: OrderedDict[Key, asyncio.Task[yomi.Engine[Any]]] = OrderedDict()
        self._users: Counter[Key] = Counter()
        self._freed = asyncio.Event()
        self._visitors: Counter[str] = Counter()
        self._searches = 0  # of games
        self._has_pause = asyncio.Event()  # no game searches
        self._has_pause.set()
        self._turn = asyncio.Lock()  # of the analysis that runs
        self._analyses = 0  # that run or wait
        self._tasks: set[asyncio.Task[None]] = set()  # of analyses
        self.is_ending = False
        self._stop_analysis: Callable[[], None] = _no_analysis

    @contextlib.asynccontextmanager
    async def use(self, position: Position[Any], level: int, visitor: str = "") -> AsyncIterator[yomi.Engine[Any]]:
        """Lend an engine for the search of a game. It stays open inside the block, and analyses pause.

        Raises:
            Error: too many requests wait, or the engine cannot be loaded.
        """
        async with self._admit(visitor):
            self._searches += 1
            self._has_pause.clear()
            self._stop_analysis()
            try:
                async with self._lend(position, level) as engine:
                    yield engine
            finally:
                self._searches -= 1
                if not self._searches:
                    self._has_pause.set()

    async def analyse(self, position: Position[Any], visitor: str = "") -> AsyncGenerator[Report, None]:
        """Yield reports of a search at full strength, until the search is exhausted. A slow reader misses reports.

        Raises:
            Error: too many requests wait, or the engine failed.
        """
        newest: asyncio.Queue[Report | None] = asyncio.Queue()

        def publish(report: Report) -> None:
            while not newest.empty():
                newest.get_nowait()
            newest.put_nowait(report)

        async with self._admit(visitor):
            search = asyncio.create_task(self._analyse(position, publish))
            self._tasks.add(search)
            search.add_done_callback(lambda _: newest.put_nowait(None))
            try:
                while (report := await newest.get()) is not None:
                    yield report
                if not search.cancelled():
                    search.result()
            finally:
                self._tasks.discard(search)
                search.cancel()

    async def _analyse(self, position: Position[Any], publish: Callable[[Report], None]) -> None:
        """Search in slices. The engine keeps its tree if no other position is searched between two slices."""
        self._analyses += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(MAX_ANALYSIS_SECONDS):
                    while await self._analyse_slice(position, publish):
                        pass
        finally:
            self._analyses -= 1

    async def _analyse_slice(self, position: Position[Any], publish: Callable[[Report], None]) -> bool:
        """Search until a game or another analysis needs the engine. Return False if the search is exhausted."""
        has_to_wait = False

        def stop() -> None:
            nonlocal has_to_wait
            has_to_wait = True
            running.stop()

        async with self._turn:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._has_pause.wait()
            is_beside = not self._has_pause.is_set()
            async with self._lend(position, 0) as engine:
                end = time.monotonic() + (SHORT_SECONDS if is_beside else SLICE_SECONDS)
                async with engine.analysis(position, interval=INTERVAL) as running:
                    self._stop_analysis = _no_analysis if is_beside else stop
                    try:
                        async for report in running:
                            publish(report)
                            if (is_beside or self._analyses > 1) and time.monotonic() > end:
                                stop()
                    finally:
                        self._stop_analysis = _no_analysis
            # A game's search on the same engine ends an analysis, too.
            return has_to_wait or not self._has_pause.is_set()

    @contextlib.asynccontextmanager
    async def _admit(self, visitor: str) -> AsyncIterator[None]:
        """Count a waiting request inside the block, or raise Error if too many wait."""
        if self._visitors.total() >= MAX_USERS:
            raise yomi.Error("too many visitors wait for the engine: try again later")
        if self._visitors[visitor] >= MAX_USERS_PER_VISITOR:
            raise yomi.Error(f"{MAX_USERS_PER_VISITOR} of your requests wait for the engine: try again later")
        self._visitors[visitor] += 1
        try:
            yield
        finally:
            self._visitors[visitor] -= 1
            if not self._visitors[visitor]:
                del self._visitors[visitor]

    @contextlib.asynccontextmanager
    async def _lend(self, position: Position[Any], level: int) -> AsyncIterator[yomi.Engine[Any]]:
        """Lend an engine for a position. It stays open inside the block. A missing engine is loaded in a thread."""
        key = (position.game, (getattr(position, "width", 9), getattr(position, "height", 9)), level)
        self._users[key] += 1
        try:
            while not self._has_room(key):
                self._freed.clear()
                await self._freed.wait()
            if key not in self._engines:
                self._engines[key] = asyncio.create_task(self._load(key, self._evicted()))
            self._engines.move_to_end(key)
            # A visitor who leaves does not stop the loading: others may wait for it.
            yield await asyncio.shield(self._engines[key])
        finally:
            self._users[key] -= 1
            self._freed.set()

    def end_searches(self) -> None:
        """End all analyses. Set `is_ending`, so that other requests that search end, too."""
        self.is_ending = True
        for task in self._tasks:
            task.cancel()

    def close(self) -> None:
        """Close the engines, once the event loop has ended."""
        for task in self._engines.values():
            if task.done():
                task.result().close()
        self._engines.clear()

    def _idle(self) -> Key | None:
        return next((key for key, task in self._engines.items() if task.done() and not self._users[key]), None)

    def _has_room(self, key: Key) -> bool:
        return key in self._engines or len(self._engines) < MAX_ENGINES or self._idle() is not None

    def _evicted(self) -> yomi.Engine[Any] | None:
        """If all places are taken, remove an idle engine and return it."""
        idle = self._idle()
        return None if len(self._engines) < MAX_ENGINES or idle is None else self._engines.pop(idle).result()

    async def _load(self, key: Key, evicted: yomi.Engine[Any] | None) -> yomi.Engine[Any]:
        try:
            if evicted is not None:
                await asyncio.to_thread(evicted.close)
            return await asyncio.to_thread(self._make, *key)
        except BaseException:
            del self._engines[key]
            raise
        finally:
            self._freed.set()

    def _make(self, game: str, board: tuple[int, int], level: int) -> yomi.Engine[Any]:
        own: dict[str, Any] = {"memory": ENGINE_MEMORY, "level": level}
        if game == "go":
            own["size"], own["height"] = board
        engine: yomi.Engine[Any] = yomi.Engine(game, **own, **self.options)
        print(f"yomi: {game}: {engine.name}", file=sys.stderr, flush=True)
        return engine


def _no_analysis() -> None: ...
