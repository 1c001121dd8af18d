from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Generic, TypeAlias, TypeVar

from yomi.engine.learning.searches import GameSearch, Searches

T = TypeVar("T")

GameCoroutine: TypeAlias = "Generator[Future[Any] | None, None, T]"
"""A game as a generator. It yields None after it has requested playouts, or the Future of an engine's answer. It
returns the finished game.
"""


class ConcurrentGames(Generic[T]):
    """Plays one game per tree at the same time. The next game starts when one ends."""

    def __init__(self, searches: Sequence[Searches], begin: Callable[[Sequence[GameSearch]], GameCoroutine[T] | None]):
        """Start the games.

        Args:
            searches: one `Searches`, or one for each player.
            begin: returns the next game, given the searches of its slot; None if there is none.
        """
        self.searches = searches
        self._begin = begin
        self._ended: list[T] = []
        self._asked: dict[Future[Any], int] = {}  # the pending answers, with the number of their game
        self._games: list[GameCoroutine[T] | None] = [begin(slot) for slot in self._slots()]
        for number in range(len(self._games)):
            self._resume(number)

    @property
    def is_over(self) -> bool:
        return not any(self._games)

    def play(self, seconds: float = math.inf) -> list[T]:
        """Play until a game ends, no game is left, or the time is up. Return the finished games."""
        end = time.monotonic() + seconds
        while not self._ended and not self.is_over and time.monotonic() < end:
            self.advance()
        return self.take()

    def advance(self, *, waits: bool = True) -> bool:
        """Play one batch of each search.

        Args:
            waits: whether to wait for an engine's answer if no search has playouts to make.

        Returns:
            Whether a search had playouts to make.
        """
        is_busy = self._hear(waits)
        for searches in self.searches:
            if searches.is_busy:
                for number in searches.advance():
                    self._resume(number)
        return is_busy

    def take(self) -> list[T]:
        """Return the games that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _hear(self, waits: bool) -> bool:
        # Resume the games whose answers have come.
        if self._asked:
            waits = waits and not any(searches.is_busy for searches in self.searches)
            for answer in wait(self._asked, None if waits else 0.0, FIRST_COMPLETED).done:
                self._resume(self._asked.pop(answer))
        return any(searches.is_busy for searches in self.searches)

    def _slots(self) -> Iterator[Sequence[GameSearch]]:
        return zip(*(searches.each for searches in self.searches), strict=True)

    def _resume(self, number: int) -> None:
        while (game := self._games[number]) is not None:
            try:
                answer = next(game)
            except StopIteration as end:
                self._ended.append(end.value)
                slot = [searches.each[number] for searches in self.searches]
                self._games[number] = self._begin(slot)
            else:
                if answer is not None:
                    self._asked[answer] = number
                return
