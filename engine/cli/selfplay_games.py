"""What the games of `yomi selfplay` have in common, whichever they are (selfplay_go, selfplay_shogi)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Played:
    """One finished game."""

    winner: int
    """1 Black, 2 White, 0 for a draw or a game without result."""
    moves: int
    files: dict[str, bytes]
    """Content of its record by ending of the file's name."""


class Series(Protocol):
    """Games that are played one after the other."""

    def play(self, number: int) -> Played:
        """Play the game of this number, counted from 0."""

    def close(self) -> None:
        """Release the engine."""
