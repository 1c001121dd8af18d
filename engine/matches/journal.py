"""The journal of a match: one line per finished game, which survives a power cut.

The first line contains the description of the match and the `kept` data, such as its openings. Each other line is a
game, or new `kept` data. A line is flushed to the disk before the game is announced. An incomplete last line, left by a
crash, is removed when the journal is opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from yomi.engine.matches.results import GameResult, MatchError
from yomi.nets.files import lock_file, sync_folder
from yomi.nets.text import parse_json

NAME = "match.jsonl"
FORMAT = 1


class Journal:
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
            description: the match, as JSON. An existing journal must have the same.
            make_kept: returns the data of a new match that is made once and kept, such as the openings, as JSON.
            as_described_now: converts the description of an existing journal to the form of `description`.

        Raises:
            MatchError: the folder contains another match, or cannot be written.
        """
        self.path = folder / NAME
        self.results: list[GameResult] = []
        self.kept: Any  # from make_kept, or the last argument of `keep`
        described = json.loads(json.dumps(dict(description)))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)  # nothing is left to be written by `close`
        except OSError as error:
            raise MatchError(f"{self.path}: {error.strerror}") from None
        try:
            if not lock_file(self._file.fileno(), wait=False):
                raise MatchError(f"{self.path} is in use by another match: end it, or use another --out")
            self._file.seek(0)
            lines, complete = _split(self._file.read())
            if len(lines) <= 1:  # no game yet: the match may be another one now
                lines, complete = [], 0
            self._file.truncate(complete)
            if lines:
                found, self.results = _read(self.path, lines)
                _compare(self.path, as_described_now(found), described)
                self.kept = found["kept"]
            else:
                self.kept = json.loads(json.dumps(dict(make_kept())))
                self._append({"yomi-match": FORMAT, **described, "kept": self.kept})
                sync_folder(folder)
        except OSError as error:
            self._file.close()
            raise MatchError(f"{self.path}: {error.strerror}") from None
        except BaseException:
            self._file.close()
            raise

    def add(self, result: GameResult) -> None:
        """Append a finished game, and flush it to the disk.

        Raises:
            MatchError: the file cannot be written.
        """
        self._write(result.to_json())
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

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self, data: Mapping[str, object]) -> None:
        try:
            self._append(data)
        except OSError as error:
            raise MatchError(f"{self.path}: {error.strerror}") from None

    def _append(self, data: Mapping[str, object]) -> None:
        line = json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        try:
            while line:  # a disk that is almost full takes part of it
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)  # a line after part of one would be lost with it
            raise


def read_journal(path: Path) -> tuple[Mapping[str, Any], list[GameResult]]:
    """Return the description and the games of a journal.

    Raises:
        MatchError: the file cannot be read, or is no journal.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MatchError(f"{path}: {error.strerror}") from None
    return _read(path, _split(data)[0])


def _split(data: bytes) -> tuple[list[bytes], int]:
    """Return the complete lines, and their total length in bytes."""
    complete = data.rfind(b"\n") + 1
    return data[:complete].splitlines(), complete


def _read(path: Path, lines: Sequence[bytes]) -> tuple[Mapping[str, Any], list[GameResult]]:
    """Return the description, with the last kept data, and the games."""
    games = []
    try:
        description, *entries = (parse_json(line) for line in lines)
        if description.pop("yomi-match") != FORMAT:
            raise ValueError("another format")
        for entry in entries:
            if not isinstance(entry, dict):
                raise ValueError(f"{entry!r} found, expected a game")
            if "kept" in entry:
                description["kept"] = entry["kept"]
            else:
                games.append(GameResult.from_json(entry))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise MatchError(f"{path}: expected the journal of a match ({error})") from None
    return description, games


def _compare(path: Path, found: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    """Check that a journal belongs to the match to be played. The number of games may differ."""
    for key in sorted({*found, *wanted} - {"kept"}):
        if found.get(key) != wanted.get(key):
            name, *values = _first_difference(key, found.get(key), wanted.get(key))
            old, new = (json.dumps(value)[:80] for value in values)
            raise MatchError(
                f"{path} belongs to another match: {name} was {old}, now {new}; use the same settings, or another --out"
            )


def _first_difference(name: str, old: object, new: object) -> tuple[str, object, object]:
    """Return the innermost differing part of two values: its name, such as `players.0.folder`, and both values."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*old, *new):
            if old.get(key) != new.get(key):
                return _first_difference(f"{name}.{key}", old.get(key), new.get(key))
    return name, old, new
