"""What comes out of a game: as it was played, and as the journal keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Generic

from yomi.engine.clients.client import EngineClient, EngineMove
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.play import FAILURE, ILLEGAL, TIME, Ended, G
from yomi.nets.errors import LineError

ORDER = "wins-losses-draws"
"""Order of the numbers in every printed score, such as 7-2-1."""
FAULTS = (TIME, ILLEGAL, FAILURE)
"""Endings that are an engine's fault."""


class MatchError(LineError):
    """The match cannot go on, or cannot begin; one line that says what was expected."""


def key_of(text: str) -> str:
    """Return a key of a game by a text of its beginning and moves."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def fault_of(file: Path, error: Exception) -> str:
    """Return what is wrong with a file, which is named once."""
    text = str(error)
    return text if str(file) in text else f"{file}: {text}"


@dataclass(slots=True)
class Sheet(Generic[G]):
    """A game between two engines as its record tells it."""

    game: G
    clients: Mapping[int, EngineClient]
    """By color."""
    answers: list[EngineMove | None]
    """The answer that each move of the game was; None for the moves of the opening."""
    last: EngineMove | None = None
    """An answer in time that was not played: no move, or an illegal one."""


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A finished game as its referee hands it over; the defaults are those of one that could not begin."""

    ended: Ended
    moves: tuple[str, ...] = ()
    """Of the whole game, those of the opening included, as the protocol writes them."""
    seconds: tuple[float, float] = (0.0, 0.0)
    """Used by Black and by White."""
    chosen: tuple[int, int] = (0, 0)
    """Moves that Black and White chose themselves."""
    records: Mapping[str, bytes] = field(default_factory=dict)
    """Content of the record by ending of the file's name."""


class UnscoredError(MatchError):
    """A game was played to its end, and what scores it failed."""

    played: PlayedGame
    """The game, its result left open; set by the host."""


@dataclass(frozen=True, slots=True)
class GameResult:
    """A finished game as the journal keeps it."""

    number: int
    """From 0, in the order of the schedule."""
    black: str
    white: str
    winner: int
    ending: str
    detail: str = ""
    plies: int = 0
    seconds: tuple[float | None, float | None] = (None, None)
    """Used by Black and White; None where a record does not say."""
    chosen: tuple[int, int] = (0, 0)
    opening: int = 0
    key: str = ""
    """Equal keys: the same moves from the same opening."""
    finished: str = ""
    """Local time, ISO 8601."""
    files: tuple[str, ...] = field(default=())
    errors: str = ""
    """The end of the guilty engine's stderr, where an engine failed."""

    @property
    def blamed(self) -> str:
        """The player whose fault ended the game; empty for none."""
        if self.ending not in FAULTS:
            return ""
        return self.white if self.winner == BLACK else self.black

    @property
    def score(self) -> float:
        """Black's points: 1, 0.5 or 0."""
        return {BLACK: 1.0, WHITE: 0.0}.get(self.winner, 0.5)

    def to_json(self) -> dict[str, object]:
        """Return a form for the journal."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> GameResult:
        """Return a result that `to_json` made.

        Raises:
            ValueError: a field is missing or of another type, or the winner is none.
        """
        if "winner" in data and data["winner"] not in (BLACK, WHITE, DRAW):
            raise ValueError(f"winner {data['winner']!r}: expected {BLACK}, {WHITE} or {DRAW}")
        values: dict[str, Any] = {}
        for item in fields(cls):
            if item.name in data:
                value = data[item.name]
                values[item.name] = tuple(value) if isinstance(value, list) else value
                if not _has_type(values[item.name], str(item.type)):
                    raise ValueError(f"{item.name} {value!r}: expected {item.type}")
        if any("\0" in name for name in values.get("files", ())):
            raise ValueError("a name of a file with a zero byte")
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(str(error)) from None


def _has_type(value: object, wanted: str) -> bool:
    """Return whether a value of the journal is of the type of its field, given as it is written there."""
    if wanted.startswith("tuple["):
        inner = wanted.removeprefix("tuple[").removesuffix("]").split(", ")
        if not isinstance(value, tuple) or (inner[-1] != "..." and len(value) != len(inner)):
            return False
        return all(_has_type(each, inner[0]) for each in value)
    names = [name.strip() for name in wanted.split("|")]
    found = "None" if value is None else type(value).__name__
    return found in names or (found == "int" and "float" in names)
