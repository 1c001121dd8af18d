"""Results of games: as played, and as the journal stores them."""

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

ORDER = "wins-losses-draws"  # order of the numbers in every printed score, such as 7-2-1
FAULTS = (TIME, ILLEGAL, FAILURE)  # endings that are an engine's fault


class MatchError(LineError):
    """The match cannot begin or continue."""


def key_of(text: str) -> str:
    """Return a short hash of a game's opening and moves."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def fault_of(file: Path, error: Exception) -> str:
    """Return an error message that names the file exactly once."""
    text = str(error)
    return text if str(file) in text else f"{file}: {text}"


@dataclass(slots=True)
class GameLog(Generic[G]):
    """The data for a record of a game between two engines."""

    game: G
    clients: Mapping[int, EngineClient]  # by color
    answers: list[EngineMove | None]  # of each move; None for opening moves
    last: EngineMove | None = None  # the last answer in time that was not played: no move, or an illegal one


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A finished game from the referee. The defaults describe a game that could not begin."""

    ended: Ended
    moves: tuple[str, ...] = ()  # in the protocol's form, including the opening
    seconds: tuple[float, float] = (0.0, 0.0)  # used by Black and White
    chosen: tuple[int, int] = (0, 0)  # moves that Black and White chose themselves
    records: Mapping[str, bytes] = field(default_factory=dict)  # contents by file name extension


class UnscoredError(MatchError):
    """A finished game could not be scored."""

    played: PlayedGame  # the game without a result, set by the GameRunner


@dataclass(frozen=True, slots=True)
class GameResult:
    """A finished game in the journal."""

    number: int  # from 0, in the order of the schedule
    black: str
    white: str
    winner: int
    ending: str
    detail: str = ""
    plies: int = 0
    seconds: tuple[float | None, float | None] = (None, None)  # used by Black and White; None if unknown
    chosen: tuple[int, int] = (0, 0)
    opening: int = 0
    key: str = ""  # equal for the same opening and moves
    finished: str = ""  # local time, ISO 8601
    files: tuple[str, ...] = field(default=())
    errors: str = ""  # the end of the stderr of an engine that failed

    @property
    def blamed(self) -> str:
        """The player whose fault ended the game, or an empty string."""
        if self.ending not in FAULTS:
            return ""
        return self.white if self.winner == BLACK else self.black

    @property
    def score(self) -> float:
        """Black's points: 1, 0.5 or 0."""
        return {BLACK: 1.0, WHITE: 0.0}.get(self.winner, 0.5)

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> GameResult:
        """Parse a result from `to_json`.

        Raises:
            ValueError: a field is missing or has the wrong type, or the winner is invalid.
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
            raise ValueError("file name with a zero byte found")
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(str(error)) from None


def _has_type(value: object, wanted: str) -> bool:
    """Whether a value of the journal has the type of its field, given as source text."""
    if wanted.startswith("tuple["):
        inner = wanted.removeprefix("tuple[").removesuffix("]").split(", ")
        if not isinstance(value, tuple) or (inner[-1] != "..." and len(value) != len(inner)):
            return False
        return all(_has_type(each, inner[0]) for each in value)
    names = [name.strip() for name in wanted.split("|")]
    found = "None" if value is None else type(value).__name__
    return found in names or (found == "int" and "float" in names)
