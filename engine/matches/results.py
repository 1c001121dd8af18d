"""Results of games: as played, and as the journal stores them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic

from yomi.engine.clients.client import EngineClient, EngineMove
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.game import Game
from yomi.engine.play import FAILURE, ILLEGAL, TIME, Ended, G
from yomi.engine.records import LeftOut
from yomi.errors import LineError, fault_of, reraised
from yomi.nets.files import append_object, complete_lines, sync_folder
from yomi.nets.text import first_difference, parse_json
from yomi.system import lock_file

ORDER = "wins-losses-draws"  # order of the numbers in every printed score, such as 7-2-1
FAULTS = (TIME, ILLEGAL, FAILURE)  # endings that are an engine's fault


class MatchError(LineError):
    """A match cannot begin or continue."""


def key_of(text: str) -> str:
    """Return a short hash of a game's opening and moves."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def local_time() -> str:
    """Return the time in the form of `GameResult.finished`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S")


@dataclass(frozen=True, slots=True)
class WinDrawLoss:
    """Wins, draws and losses, from the point of view of one player."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        return self.wins + self.draws / 2

    @property
    def share(self) -> float:
        """Points per game; 0 without games."""
        return self.points / max(1, self.games)

    @property
    def percent(self) -> float:
        return 100.0 * self.points / max(1, self.games)

    @property
    def turned(self) -> WinDrawLoss:
        """The score from the opponent's point of view."""
        return WinDrawLoss(self.losses, self.draws, self.wins)

    def __add__(self, other: WinDrawLoss) -> WinDrawLoss:
        return WinDrawLoss(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)

    def __str__(self) -> str:
        """Return wins, losses, draws and the share of points as text, such as `7-2-1 (75.0%)`."""
        return f"{self.wins}-{self.losses}-{self.draws} ({self.percent:.1f}%)"


@dataclass(slots=True)
class GameLog(Generic[G]):
    """The data from which the record of a game between two engines is made."""

    game: G
    clients: Mapping[int, EngineClient]  # by color
    answers: list[EngineMove | None]  # of each move; None for opening moves
    last: EngineMove | None = None  # the last answer in time that was not played: no move, or an illegal one


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A finished game, as the referee returns it. The defaults describe a game that could not begin."""

    ended: Ended
    moves: tuple[str, ...] = ()  # in the protocol's form, including the opening
    seconds: tuple[float, float] = (0.0, 0.0)  # used by Black and White
    chosen: tuple[int, int] = (0, 0)  # moves that Black and White chose themselves
    records: Mapping[str, bytes] = field(default_factory=dict)  # contents by file name extension


class UnscoredError(MatchError):
    """A game has ended, but could not be scored."""

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

    @property
    def points(self) -> int:
        """Points of the first player of a pair: 2 for a win, 1 for a draw, otherwise 0.

        The first player has Black in games of even number.
        """
        return round(2 * (self.score if self.number % 2 == 0 else 1 - self.score))

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> GameResult:
        """Convert the output of `dataclasses.asdict` back to a result.

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
        with reraised(TypeError, ValueError):
            return cls(**values)


def points_of(results: Iterable[GameResult]) -> dict[int, int]:
    """Return the first player's points in each game, by the number of the game."""
    return {game.number: game.points for game in results}


def _has_type(value: object, wanted: str) -> bool:
    """Return whether a value of the journal has a type, given as in the source text of the field."""
    if wanted.startswith("tuple["):
        inner = wanted.removeprefix("tuple[").removesuffix("]").split(", ")
        if not isinstance(value, tuple) or (inner[-1] != "..." and len(value) != len(inner)):
            return False
        return all(_has_type(item, inner[0]) for item in value)
    names = [name.strip() for name in wanted.split("|")]
    found = "None" if value is None else type(value).__name__
    return found in names or (found == "int" and "float" in names)


JOURNAL_NAME = "match.jsonl"
JOURNAL_FORMAT = 1


class MatchJournal(contextlib.AbstractContextManager["MatchJournal"]):
    """The journal of a running match."""

    def __init__(
        self,
        folder: Path,
        description: Mapping[str, object],
        make_kept: Callable[[], Mapping[str, object]] = dict,
        as_described_now: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> None:
        """Create a journal in a folder, or continue the existing one.

        Args:
            folder: folder of the match; created if needed.
            description: the match, as JSON. An existing journal must have the same description.
            make_kept: called once for a new match. Returns data to keep in the journal, as JSON, such as the openings.
            as_described_now: converts the description in an older journal to the current form.

        Raises:
            MatchError: the folder contains another match, or cannot be written.
        """
        self.path = folder / JOURNAL_NAME
        self.results: list[GameResult] = []
        self.kept: Any  # from make_kept, or the last argument of `keep`
        described = json.loads(json.dumps(dict(description)))
        with reraised(OSError, MatchError, f"{self.path}: "), contextlib.ExitStack() as on_failure:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)  # nothing is left to be written by `close`
            on_failure.callback(self._file.close)
            if not lock_file(self._file.fileno(), wait=False):
                raise MatchError(f"{self.path} is in use by another match: end it, or use another --out")
            self._file.seek(0)
            lines = complete_lines(self._file.read())
            if len(lines) > 1:
                found, games = parse_journal(self.path, lines)
                self.results = [game for _, game in games]
                _compare(self.path, as_described_now(found), described)
                self.kept = found["kept"]
            else:  # no game yet: the match may be another one now
                self._file.truncate(0)
                try:
                    self.kept = json.loads(json.dumps(dict(make_kept())))
                    header = {"yomi-match": JOURNAL_FORMAT, **described, "kept": self.kept}
                    append_object(self._file, header, sync=True)
                except BaseException:
                    with contextlib.suppress(OSError):  # Windows keeps an open file
                        self.path.unlink()
                    raise
                sync_folder(folder)
            on_failure.pop_all()

    def add(self, result: GameResult) -> None:
        """Append a finished game, and flush it to the disk.

        Raises:
            MatchError: the file cannot be written.
        """
        self._write(asdict(result))
        self.results.append(result)

    def keep(self, kept: Mapping[str, object]) -> None:
        """Replace the kept data, and flush them to the disk.

        Raises:
            MatchError: the file cannot be written.
        """
        kept = json.loads(json.dumps(dict(kept)))
        self._write({"kept": kept})
        self.kept = kept

    def close(self) -> None:
        self._file.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, data: Mapping[str, object]) -> None:
        with reraised(OSError, MatchError, f"{self.path}: "):
            append_object(self._file, data, sync=True)


def read_journal(path: Path) -> tuple[Mapping[str, Any], list[GameResult]]:
    """Return the description and the games of a journal.

    Raises:
        MatchError: the file cannot be read, or is no journal.
    """
    with reraised(OSError, MatchError, f"{path}: "):
        data = path.read_bytes()
    description, games = parse_journal(path, complete_lines(data))
    return description, [game for _, game in games]


def write_journal(folder: Path, description: Mapping[str, Any], results: Iterable[GameResult]) -> None:
    """Write the journal of a match into a folder that has none. `description` is in the form of `read_journal`.

    Raises:
        OSError: it cannot be written.
    """
    with (folder / JOURNAL_NAME).open("a+b", buffering=0) as file:
        append_object(file, {"yomi-match": JOURNAL_FORMAT, **description})
        for result in results:
            append_object(file, asdict(result))


def parse_journal(path: Path, lines: Sequence[bytes]) -> tuple[dict[str, Any], list[tuple[int, GameResult]]]:
    """Return the match's description with the newest kept data, and each game with the number of its line.

    Raises:
        MatchError: it is no journal.
    """
    games = []
    place = f"{path}"
    try:
        if not lines:
            raise ValueError("an empty file")
        description = _journal_object(lines[0])
        if description.pop("yomi-match", None) != JOURNAL_FORMAT:
            raise ValueError("another format")
        for number, line in enumerate(lines[1:], 2):
            place = f"{path}, line {number}"
            entry = _journal_object(line)
            if set(entry) == {"kept"}:
                description["kept"] = entry["kept"]
            else:
                games.append((number, GameResult.from_json(entry)))
    except ValueError as error:
        raise MatchError(f"{place}: expected the journal of a match ({error})") from None
    return description, games


def _journal_object(line: bytes) -> dict[str, Any]:
    entry = parse_json(line)
    if not isinstance(entry, dict):
        raise ValueError(f"{entry!r:.80} found, expected an object")
    if len(json.loads(line, object_pairs_hook=tuple)) != len(entry):
        raise ValueError("a field twice")
    return entry


def _compare(path: Path, found: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    """Check that a journal belongs to the match that is to be played. Only the number of games may differ."""
    for key in sorted({*found, *wanted} - {"kept"}):
        if found.get(key) != wanted.get(key):
            name, *values = first_difference(key, found.get(key), wanted.get(key))
            old, new = (json.dumps(value)[:80] for value in values)
            raise MatchError(
                f"{path} belongs to another match: {name} was {old}, now {new}; use the same settings, or another --out"
            )


def read_results(
    paths: Iterable[Path], games: Collection[Game[Any, Any]], left_out: LeftOut | None = None
) -> list[GameResult]:
    """Return the games in journals, in records, and in folders of journals or records.

    Records that a journal lists are not read. In a folder with a journal and in its subfolders, no record is read. A
    game in several forms (game.csa, game.kifu) counts once. Games without a result are left out.

    Args:
        paths: files and folders.
        games: descriptors of the games that the records may belong to.
        left_out: collects unreadable files; if None, the first one raises.

    Raises:
        MatchError: a file cannot be read, or there is no game with a result.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        for file in _inside(path, games) if path.is_dir() else [path]:
            files.setdefault(_place(file, games), file)
    journals: dict[Path, list[GameResult]] = {}
    broken: set[Path] = set()
    for file in files.values():
        if file.suffix == ".jsonl":
            try:
                journals[file] = read_journal(file)[1]
            except MatchError as error:
                _leave_out(file, error, left_out)
                broken.add(file)
    listed = {
        _place(file.parent / name, games) for file in journals for result in journals[file] for name in result.files
    }
    found: list[GameResult] = []
    for place, file in files.items():
        if place in listed or file in broken:
            continue
        if file in journals:
            found += sorted(journals[file], key=lambda result: result.number)
            continue
        try:
            found += _read_record(file, games, left_out)
        except MatchError as error:
            _leave_out(file, error, left_out)
    if left_out is not None:
        left_out.report(len(files))
        if not found and left_out.faults:
            raise MatchError(left_out.faults[0])
    if not found:
        raise MatchError("no game with a result in these files: expected journals (match.jsonl), SGF, CSA or KIF")
    return found


def _leave_out(file: Path, error: MatchError, left_out: LeftOut | None) -> None:
    if left_out is None:
        raise error
    left_out.add(file, error)


def _of_suffix(file: Path, games: Collection[Game[Any, Any]]) -> Game[Any, Any] | None:
    return next((game for game in games if file.suffix.lower() in game.rated_suffixes), None)


def _place(file: Path, games: Collection[Game[Any, Any]]) -> Path:
    """Return a path that identifies a record in any format: resolved, and with the game's first suffix."""
    place, game = file.resolve(), _of_suffix(file, games)
    return place if game is None else place.with_suffix(game.rated_suffixes[0])


def _inside(folder: Path, games: Collection[Game[Any, Any]]) -> list[Path]:
    """Return the journals in a folder and below, and the records outside the folders of journals."""
    journals = sorted(folder.rglob(JOURNAL_NAME))
    matches = {journal.parent for journal in journals}
    records = (file for file in folder.rglob("*") if _of_suffix(file, games) is not None)
    return journals + sorted(record for record in records if matches.isdisjoint(record.parents))


def _read_record(file: Path, games: Collection[Game[Any, Any]], left_out: LeftOut | None) -> list[GameResult]:
    """Return the games of a record. If several games have its suffix, the first that can parse the file decides."""
    known = _of_suffix(file, games)
    fault = ""
    for game in [game for game in games if game.rated_suffixes] if known is None else [known]:
        try:
            kind = game.matches()
            records = kind.load_records(file)
            results = [kind.result_of(record) for record in records]
        except ValueError as error:
            fault = fault_of(file, error)
            continue
        if left_out is not None:
            left_out.report_notes(file, kind.notes_of(records))
        return [
            replace(result, black=result.black or "Black", white=result.white or "White", files=(str(file),))
            for result in results
            if result is not None
        ]
    raise MatchError(fault)
