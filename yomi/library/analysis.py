"""Threads that share an engine: they take turns, and read reports of searches that run in the background."""

import asyncio
import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

from yomi import children
from yomi.engine.players.player import Player
from yomi.engine.players.request import Request
from yomi.errors import ClosedError
from yomi.library.values import Report
from yomi.system import changed_environment

T = TypeVar("T")


class _Search:
    def __init__(self, request: Request[Any]) -> None:
        self.request = request
        self.condition = threading.Condition()
        self.latest: Report | None = None
        self.is_unread = self.has_ended = False
        self.error: BaseException | None = None
        self.wakers: list[Callable[[], None]] = []
        """Functions that wake the coroutines which wait for a report."""

    def run(self, search: Callable[[Callable[[Report], None]], Report]) -> None:
        try:
            self.publish(search(self.publish))
        except BaseException as error:  # raised again where the reports are read
            self.error = error
        with self.condition:
            self.has_ended = True
            self._wake()

    def publish(self, report: Report) -> None:
        with self.condition:
            self.latest, self.is_unread = report, True
            self._wake()

    def take(self) -> Report | None:
        """Return the next report, or None to wait; StopIteration: no more reports. The caller holds the condition."""
        if self.is_unread:
            self.is_unread = False
            return self.latest
        if not self.has_ended:
            return None
        if self.error is not None:
            raise self.error
        raise StopIteration

    def _wake(self) -> None:
        self.condition.notify_all()
        for wake in self.wakers:
            wake()
        self.wakers.clear()


class Analysis:
    """Reports of a search in the background, as an iterator or asynchronous iterator.

    Each step waits for a new report and returns the newest one. The last report describes the finished search. Leaving
    the `with` block ends the search.
    """

    def __init__(
        self, request: Request[Any], search: Callable[[Callable[[Report], None]], Report], name: str = "analysis"
    ) -> None:
        """Start the search.

        Args:
            request: stopped by `stop`.
            search: searches, calls its argument with each report, and returns the last report.
            name: of the thread.
        """
        self._search = _Search(request)
        self._thread = threading.Thread(target=self._search.run, args=(search,), name=name, daemon=True)
        self._thread.start()
        weakref.finalize(self, request.stop)  # nobody reads the reports any more

    @property
    def report(self) -> Report | None:
        """The newest report; None before the first."""
        return self._search.latest

    @property
    def is_running(self) -> bool:
        """Whether the search continues."""
        return not self._search.has_ended

    def stop(self) -> None:
        """Ask the search to end soon. The iterator still returns the last reports."""
        self._search.request.stop()

    def wait(self) -> Report:
        """Wait for the end of the search and return its last report.

        Raises:
            Error: the search failed.
        """
        search = self._search
        with search.condition:
            search.condition.wait_for(lambda: search.has_ended)
        if search.error is not None:
            raise search.error
        assert search.latest is not None  # a search without error has published its last report
        return search.latest

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Report:
        search = self._search
        with search.condition:
            while (report := search.take()) is None:
                search.condition.wait()
        return report

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Report:
        search = self._search
        while True:
            with search.condition:
                try:
                    report = search.take()
                except StopIteration:
                    raise StopAsyncIteration from None
                if report is not None:
                    return report
                waiter = asyncio.get_running_loop().create_future()
                search.wakers.append(_waker(waiter))
            await waiter

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.stop()
        self._thread.join()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        self.stop()
        await in_thread(self._thread.join, lambda: None)


def _waker(waiter: asyncio.Future[None]) -> Callable[[], None]:
    """Return a function that completes a future of an event loop. Another thread may call it."""
    loop = waiter.get_loop()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(lambda: None if waiter.done() else waiter.set_result(None))

    return wake


async def in_thread(call: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run a call in a new thread and return its result. If the task is cancelled, `stop` is called."""
    ended = Future[T]()
    ended.set_running_or_notify_cancel()  # a cancelled task leaves the call to `stop`

    def run() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:  # raised again in the coroutine
            ended.set_exception(error)

    threading.Thread(target=run, name="engine-call", daemon=True).start()
    try:
        return await asyncio.wrap_future(ended)
    except asyncio.CancelledError:
        stop()
        raise


def keep_stderr_quiet() -> None:
    """Keep yomi's warnings off stderr if the program has not set up logging."""
    log = logging.getLogger("yomi")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


@contextlib.contextmanager
def reported(progress: Callable[[str], None]) -> Iterator[None]:
    """Send the messages of compiling and loading to `progress` instead of stderr."""
    from yomi.engine.evaluators.base import notices
    from yomi.native.precompile import has_bar

    token, bar = notices.set(progress), has_bar.set(False)
    try:
        yield
    finally:
        notices.reset(token)
        has_bar.reset(bar)


def safe_children() -> AbstractContextManager[None]:
    """Set the environment of processes that yomi starts (see `yomi.children`) inside the block."""
    wanted = children.environment()  # with all other variables, which the block may change
    return changed_environment({name: wanted[name] for name in (children.VARIABLE, "PYTHONPATH") if name in wanted})


class Turns:
    """Lets one call at a time use a player. A waiting call ends a search without limit."""

    def __init__(self, player: Player[Any], progress: Callable[[str], None]) -> None:
        """Take over a player that nobody uses. `progress` receives lines while networks are loaded."""
        self._player, self._progress = player, progress
        self._condition = threading.Condition()
        self._is_taken = self._is_closed = False
        self._request: Request[Any] | None = None
        self._waiting = 0

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @contextlib.contextmanager
    def take(self, request: Request[Any] | None = None) -> Iterator[Player[Any]]:
        """Wait for the player, and hold it inside the block. A waiting call may stop `request` if that has no limit.

        Raises:
            ClosedError: the engine is closed.
        """
        with self._condition:
            self._waiting += 1
            try:
                self._end_unlimited()
                self._condition.wait_for(lambda: self._is_closed or not self._is_taken)
            finally:
                self._waiting -= 1
            if self._is_closed:
                raise ClosedError("the engine is closed: create another one")
            self._is_taken, self._request = True, request
            if self._waiting:
                self._end_unlimited()
        try:
            with reported(self._progress):
                self._player.end_background()  # pondering
                yield self._player
        finally:
            with self._condition:
                self._is_taken, self._request = False, None
                self._condition.notify_all()

    def close(self) -> None:
        """End the current search and release the player; calls that wait raise ClosedError."""
        with self._condition:
            if self._is_closed:
                return
            self._is_closed = True
            self._condition.notify_all()
            if self._request is not None:
                self._request.stop()
            self._condition.wait_for(lambda: not self._is_taken)
        self._player.close()

    def _end_unlimited(self) -> None:
        if self._request is not None and self._request.infinite:
            self._request.stop()
