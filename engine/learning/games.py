"""Games played side by side: each is a generator, written as if it were alone, that waits for its own search only.

Or for the answer of an engine from outside (yomi.engine.learning.opponents).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Generic, TypeAlias, TypeVar

from yomi.engine.learning.searches import Searches, SmallSearch

T = TypeVar("T")

Playing: TypeAlias = "Generator[Future[Any] | None, None, T]"
"""Yields after it has asked one of its searches for playouts, or an answer that it waits for; returns what became of
the game."""


class Table(Generic[T]):
    """As many games at once as its searches have trees; where one ends, the next begins."""

    def __init__(self, searches: Sequence[Searches], begin: Callable[[Sequence[SmallSearch]], Playing[T] | None]):
        """Begin the games.

        Args:
            searches: one, or one of each player.
            begin: returns the next game, to be played with the searches of one place; None if there is none.
        """
        self.searches = searches
        self._begin = begin
        self._ended: list[T] = []
        self._asked: dict[Future[Any], int] = {}
        """The answers that are waited for, with their games."""
        self._games: list[Playing[T] | None] = [begin(place) for place in self._places()]
        for number in range(len(self._games)):
            self._resume(number)

    @property
    def is_over(self) -> bool:
        """Whether no game goes on."""
        return not any(self._games)

    def play(self, seconds: float = math.inf) -> list[T]:
        """Play on until some games end, none is left, or the time is up; return what became of those that ended."""
        end = time.monotonic() + seconds
        while not self._ended and not self.is_over and time.monotonic() < end:
            self.advance()
        return self.take()

    def advance(self, *, waits: bool = True) -> bool:
        """Play one batch of each search.

        Args:
            waits: for an engine's answer if no search has anything to do.

        Returns:
            Whether any search had something to do.
        """
        is_busy = self._hear(waits)
        for searches in self.searches:
            if searches.is_busy:
                for number in searches.advance():
                    self._resume(number)
        return is_busy

    def take(self) -> list[T]:
        """Return what became of the games that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _hear(self, waits: bool) -> bool:
        """Let games continue whose answers have come, and return whether any search has something to do."""
        if self._asked:
            waits = waits and not any(searches.is_busy for searches in self.searches)
            for answer in wait(self._asked, None if waits else 0.0, FIRST_COMPLETED).done:
                self._resume(self._asked.pop(answer))
        return any(searches.is_busy for searches in self.searches)

    def _places(self) -> Iterator[Sequence[SmallSearch]]:
        return zip(*(searches.each for searches in self.searches), strict=True)

    def _resume(self, number: int) -> None:
        """Let a game go on until it waits again; where it ends the next one begins."""
        while (game := self._games[number]) is not None:
            try:
                answer = next(game)
            except StopIteration as end:
                self._ended.append(end.value)
                place = [searches.each[number] for searches in self.searches]
                self._games[number] = self._begin(place)
            else:
                if answer is not None:
                    self._asked[answer] = number
                return
