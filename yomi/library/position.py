"""The common part of `yomi.go.Game` and `yomi.shogi.Game`."""

from __future__ import annotations

import abc
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from yomi.engine.color import DRAW
from yomi.errors import IllegalMove
from yomi.library.arguments import shown, text
from yomi.settings import OptionError

if TYPE_CHECKING:
    from yomi.library.values import Names

Raw = TypeVar("Raw", bound=Any)


def place_of(index: object) -> int:
    """Return an index into a policy as an integer, or raise IllegalMove."""
    try:
        return operator.index(index)  # type: ignore[arg-type]  # TypeError if it is no integer
    except TypeError:
        raise IllegalMove(f"move {shown(index)} found, expected text or an integer") from None


def move_text(move: object) -> str:
    """Return a move if it is text, otherwise raise IllegalMove."""
    if not isinstance(move, str):
        raise IllegalMove(f"move {shown(move)} found, expected text")
    return move


@dataclass(frozen=True, slots=True)
class Result:
    """How a game ended."""

    winner: int
    """BLACK, WHITE, or 0 for a draw or a game without result."""
    text: str
    """The result in words or as in SGF."""

    def points(self, side: int) -> float:
        """Return 1 if `side` won, 0 if it lost, otherwise 0.5."""
        return 0.5 if self.winner == DRAW else float(self.winner == side)


class Position(abc.ABC, Generic[Raw]):
    """A game: an initial position and the moves played since.

    A move is text, or its index in the policy of `Engine.evaluate`.
    """

    game: str
    """go or shogi."""
    _raw: Raw

    # -- the position --------------------------------------------------------------------------------------------------

    @property
    def side_to_move(self) -> int:
        """BLACK or WHITE."""
        return int(self._raw.side_to_move)

    @property
    def ply(self) -> int:
        """Moves played since the start of the game."""
        return int(self._raw.ply)

    @property
    def moves(self) -> list[str]:
        """The moves since the initial position."""
        return [self._text(move) for _, move in self._raw.moves]

    @property
    @abc.abstractmethod
    def key(self) -> int:
        """A hash of the position without its history. Equal positions have equal keys."""

    def __eq__(self, other: object) -> bool:
        """Whether both games have the same initial position, the same moves and the same rules."""
        if not isinstance(other, Position) or type(other) is not type(self):
            return NotImplemented
        same = self._raw.search_key == other._raw.search_key and self._raw.moves == other._raw.moves
        return bool(same) and self.side_to_move == other.side_to_move

    __hash__ = None  # type: ignore[assignment]  # games change; use `key`

    # -- playing -------------------------------------------------------------------------------------------------------

    def legal_moves(self) -> list[str]:
        """Return the legal moves of the side to move as text; in Go the pass is one of them."""
        return [self._text(move) for move in self._raw.legal_moves()]

    def is_legal(self, move: str | int) -> bool:
        """Return whether the side to move may play a move."""
        try:
            code = self._code(move)
        except IllegalMove:
            return False
        return bool(self._is_legal(code))

    def play(self, move: str | int) -> Self:
        """Play a move of the side to move and return this game.

        Raises:
            IllegalMove: the move cannot be read or is illegal; the game has not changed.
        """
        self._raw.push(self._code(move))
        return self

    def undo(self) -> Self:
        """Take the last move back and return this game.

        Raises:
            IllegalMove: no move has been played since the initial position.
        """
        self._raw.undo()
        return self

    def copy(self) -> Self:
        """Return an independent copy."""
        return self._of(self._raw.copy())

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    # -- the end -------------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the rules have ended the game."""
        return bool(self._raw.is_over)

    # -- moves as integers ---------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def move_index(self, move: str) -> int:
        """Return the index of a move in the policy of `Engine.evaluate`."""

    @abc.abstractmethod
    def move_at(self, index: int) -> str:
        """Return the move with an index in the policy.

        Raises:
            IllegalMove: no move of this position has the index.
        """

    # -- for subclasses ------------------------------------------------------------------------------------------------

    @classmethod
    def _of(cls, raw: Raw) -> Self:
        game = cls.__new__(cls)
        game._raw = raw
        return game

    def _code(self, move: str | int) -> int:
        return self._parse(move if isinstance(move, str) else self.move_at(move))

    def _is_legal(self, code: int) -> bool:
        return bool(self._raw.is_legal(code))

    @abc.abstractmethod
    def _parse(self, text: str) -> int: ...

    @abc.abstractmethod
    def _text(self, code: int) -> str: ...

    @property
    @abc.abstractmethod
    def _names(self) -> Names: ...

    # -- to look at ----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return str(self._raw)

    @abc.abstractmethod
    def svg(self) -> str:
        """Return the board as SVG."""

    def _repr_svg_(self) -> str:
        """Return the board as SVG, for notebooks."""
        return self.svg()


class FileRecord(Generic[Raw]):
    """The common part of `yomi.go.Record` and `yomi.shogi.Record`."""

    _raw: Raw

    def __init__(self, raw: Raw) -> None:
        self._raw = raw

    @property
    def black(self) -> str:
        """Black's (sente's) name."""
        return str(self._raw.black)

    @property
    def white(self) -> str:
        """White's (gote's) name."""
        return str(self._raw.white)

    @property
    def notes(self) -> list[str]:
        """Faults of the file that did not stop the reader."""
        return [str(note) for note in self._raw.notes]


def with_info(record: Raw, info: Mapping[str, Any], *names: str) -> Raw:
    """Set text fields of a record, and return the record. `names` are the known fields. Raises OptionError."""
    for name, value in info.items():
        if name not in names:
            raise OptionError(f"{name!r} found, expected {', '.join(names[:-1])} or {names[-1]}")
        setattr(record, name, text(name, value))
    return record
