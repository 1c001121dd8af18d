"""Working memory that threads take turns with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Spares(Generic[T]):
    """Things of one kind, each lent to one thread at a time; list.pop and append are atomic."""

    def __init__(self, make: Callable[[], T]) -> None:
        """Begin without any; `make` makes one where none is left."""
        self._make = make
        self._idle: list[T] = []

    def take(self) -> T:
        """Return one that nobody else uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def give_back(self, thing: T) -> None:
        """Take one that is not used any more."""
        self._idle.append(thing)

    def clear(self) -> None:
        """Drop those that are not lent."""
        self._idle.clear()
