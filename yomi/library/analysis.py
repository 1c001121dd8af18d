"""A search in the background whose reports are read while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from yomi.engine.players.request import Request
    from yomi.library.values import Report

T = TypeVar("T")


class _Search:
    """The state that the search's thread and the readers share."""

    def __init__(self, request: Request[Any]) -> None:
        self.request = request
        self.condition = threading.Condition()
        self.latest: Report | None = None
        self.is_unread = self.has_ended = False
        self.error: BaseException | None = None
        self.wakers: list[Callable[[], None]] = []
        """Wake the coroutines that wait for a report."""

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
        """Return the report to read next, or None to wait; StopIteration at the end. The condition is held."""
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
    """Reports of a search that runs in the background: an iterator, also an asynchronous one.

    Each step waits for a report that was not read before and returns the newest one; the last one is the report at the
    end of the search. Leaving the `with` block ends the search.
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
        """End the search soon; the reports that follow are the last ones."""
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
        """Return this iterator."""
        return self

    def __next__(self) -> Report:
        """Wait for the next report."""
        search = self._search
        with search.condition:
            while (report := search.take()) is None:
                search.condition.wait()
        return report

    def __aiter__(self) -> Self:
        """Return this iterator."""
        return self

    async def __anext__(self) -> Report:
        """Wait for the next report without blocking the event loop."""
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
        """Return this iterator."""
        return self

    def __exit__(self, *details: object) -> None:
        """End the search and wait until it has ended."""
        self.stop()
        self._thread.join()

    async def __aenter__(self) -> Self:
        """Return this iterator."""
        return self

    async def __aexit__(self, *details: object) -> None:
        """End the search and wait until it has ended."""
        self.stop()
        await in_thread(self._thread.join, lambda: None)


def _waker(waiter: asyncio.Future[None]) -> Callable[[], None]:
    """Return a function that completes a future of an event loop, to be called by another thread."""
    loop = waiter.get_loop()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(lambda: None if waiter.done() else waiter.set_result(None))

    return wake


async def in_thread(call: Callable[[], T], stop: Callable[[], None]) -> T:
    """Return the result of a call in a thread of its own; `stop` is called if the task is cancelled."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wake = _waker(ended)
    result: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as error:  # raised again in the coroutine
            errors.append(error)
        wake()

    threading.Thread(target=run, name="engine-call", daemon=True).start()
    try:
        await ended
    except asyncio.CancelledError:
        stop()
        raise
    if errors:
        raise errors[0]
    return result[0]
