"""What comes out of a game: as it was played, and as the journal keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

from engine.clients.process import EngineError
from engine.color import BLACK, DRAW, WHITE
from engine.play import FAILURE, ILLEGAL, TIME, Ended

FAULTS = (TIME, ILLEGAL, FAILURE)
"""Endings that are an engine's fault."""


class MatchError(Exception):
    """The match cannot go on, or cannot begin; one line that says what was expected."""


class Forfeit(Exception):  # noqa: N818  (a result, not a fault of the program)
    """A player loses on the spot."""

    def __init__(self, color: int, ending: str, detail: str) -> None:
        """Blame a color; `ending` is one of FAULTS."""
        super().__init__(detail)
        self.color, self.ending, self.detail = color, ending, detail


class Blame:
    """A block in which every failure of an engine is that of one color."""

    def __init__(self, color: int) -> None:
        """Blame a color."""
        self.color = color

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Turn an engine's failure into a loss."""
        if isinstance(error, EngineError):
            raise Forfeit(self.color, FAILURE, str(error)) from None


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A finished game as its referee hands it over."""

    ended: Ended
    moves: tuple[str, ...]
    """Of the whole game, those of the opening included, as the protocol writes them."""
    seconds: tuple[float, float]
    """Used by Black and by White."""
    chosen: tuple[int, int]
    """Moves that Black and White chose themselves."""
    records: Mapping[str, bytes]
    """Content of the record by ending of the file's name."""


class UnscoredError(MatchError):
    """A game was played to its end, and what scores it failed."""

    def __init__(self, why: str, played: PlayedGame) -> None:
        """Hand over the game, its result left open."""
        super().__init__(why)
        self.played = played


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
            ValueError: something is missing, or the winner is none.
        """
        known = {each.name for each in fields(cls)}
        try:
            values = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items() if name in known}
            result = cls(**values)  # type: ignore[arg-type]  # what we wrote
        except TypeError as error:
            raise ValueError(str(error)) from None
        if result.winner not in (BLACK, WHITE, DRAW):
            raise ValueError(f"winner {result.winner!r}: expected {BLACK}, {WHITE} or {DRAW}")
        return result
