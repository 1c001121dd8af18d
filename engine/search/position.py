"""What the search is told of the game: the position to search, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from yomi.engine.color import opponent

if TYPE_CHECKING:
    import numpy.typing as npt


class SearchableGame(Protocol):
    """A game as the search sees it."""

    position: Any
    """Position record."""
    history: npt.NDArray[Any]
    """uint64[>= history_length of the record]"""
    moves: list[tuple[int, int]]
    """(color, move) from the beginning."""

    @property
    def search_key(self) -> object:
        """Equal keys: equal games but for the moves; a tree may be kept from one to the other."""


@dataclass(frozen=True, slots=True)
class Root:
    """Identity of the position that a tree stands for."""

    key: object
    moves: tuple[tuple[int, int], ...]
    side_to_move: int

    def line_to(self, other: Root) -> list[int] | None:
        """Return the moves that lead from here to `other` with the sides taking turns, or None where none do."""
        count = len(self.moves)
        if self.key != other.key or other.moves[:count] != self.moves:
            return None
        side = self.side_to_move
        line = []
        for color, move in other.moves[count:]:
            if color != side:
                return None
            line.append(move)
            side = opponent(side)
        return line if side == other.side_to_move else None
