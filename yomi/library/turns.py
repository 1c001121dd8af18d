"""One player shared by the threads that call an engine: each call has its turn."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from yomi.errors import ClosedError

if TYPE_CHECKING:
    from yomi.engine.players.player import Player
    from yomi.engine.players.request import Request


def keep_stderr_quiet() -> None:
    """Keep Python from printing yomi's warnings on stderr if the program has not set up logging."""
    log = logging.getLogger("yomi")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


@contextlib.contextmanager
def reported(progress: Callable[[str], None]) -> Iterator[None]:
    """Send what compiling and loading report to `progress`; otherwise stderr shows it."""
    from yomi.engine.players.precision import notices
    from yomi.native.compile_progress import has_bar

    token, bar = notices.set(progress), has_bar.set(False)
    try:
        yield
    finally:
        notices.reset(token)
        has_bar.reset(bar)


class Turns:
    """Gives a player to one call at a time. A call that waits ends a search without limit."""

    def __init__(self, player: Player[Any], progress: Callable[[str], None]) -> None:
        """Begin with a player that nobody uses; `progress` receives lines while networks are loaded."""
        self._player, self._progress = player, progress
        self._condition = threading.Condition()
        self._is_taken = self._is_closed = False
        self._request: Request[Any] | None = None
        self._waiting = 0

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @contextlib.contextmanager
    def take(self, request: Request[Any] | None = None) -> Iterator[Player[Any]]:
        """Wait for the player and hold it; `request` is stopped if a search without limit is in the way.

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
