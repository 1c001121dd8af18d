"""The journal of a run: one JSON object per line and event. All parts append to it."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from yomi.nets.errors import LineError
from yomi.nets.files import lock_file, sync_file, write_atomically


class LearningError(LineError):
    """A run cannot begin, continue or be displayed."""


_log = logging.getLogger("yomi.learning")

NAME = "journal.jsonl"

Event = dict[str, Any]  # has `event`, `time` in Unix seconds, the fields of FIELDS, and maybe more

FIELDS: Mapping[str, str] = {
    "start": "version settings",
    "selfplay": "generation network games rows moves evaluations seconds black white drawn",
    "training": "generation steps seconds window losses",
    "gate": "generation network against wins losses draws seconds promoted",
    "promotion": "generation network",
    "match": "generation network against wins losses draws seconds",
    "wait": "part for seconds",
    "lost": "part why",
    "stop": "why",
}
"""Required fields of an event, by its name. `seconds` is its duration; it ended at its `time`.

Wins are those of `network`. Self-play of games with a score also has `lead`, Black's mean score. Its rows include those
of reanalyzed games, which `reanalyzed` counts; its other numbers do not. Events with other names may have any fields.
"""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("event", "version", "network", "against", "part", "for", "why"), str),
    **dict.fromkeys(("time", "seconds"), (int, float)),
    "settings": dict,
    "promoted": bool,
}  # Other fields are integers. The losses of training are numbers by name.
_NUMBERS = frozenset(("lead", "reanalyzed", "engine_games", "engine_points"))  # optional numbers


def append_line(file: FileIO, end: int, line: bytes, *, sync: bool = False) -> None:
    """Append a line to a file of length `end`. If that fails, nothing of it stays: it would spoil the next line."""
    try:
        while line:  # a disk that is almost full takes part of it
            line = line[file.write(line) :]
        if sync:
            os.fsync(file.fileno())
    except OSError:
        file.truncate(end)
        raise


class Journal:
    """The journal of a run. Threads and processes may append at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, event: str, /, **fields: object) -> None:
        """Append an event. It is not flushed to the disk, but survives a kill.

        An incomplete last line, which a killed process may leave, is removed first.

        Args:
            event: name of the event.
            fields: the fields of FIELDS; `for` needs `**{"for": ...}`.

        Raises:
            LearningError: the file cannot be written.
            ValueError: a field is missing or has the wrong type.
        """
        found = {"event": event, "time": round(time.time(), 3), **fields}
        _check(found)
        line = json.dumps(found).encode() + b"\n"
        try:
            with self.path.open("a+b", buffering=0) as file:
                lock_file(file.fileno(), wait=True)
                end = _complete(file)
                file.truncate(end)
                append_line(file, end, line)
        except OSError as error:
            raise LearningError(f"{self.path}: {error.strerror}") from None

    def read(self) -> list[Event]:
        """Return all events, oldest first, without an incomplete last line; none if there is no file.

        Raises:
            LearningError: the file cannot be read, or a line is no event.
        """
        return [self._event(number, line) for number, line in enumerate(self._lines(), 1)]

    def mend(self) -> None:
        """Remove damaged lines, with a warning. No other process may use the journal.

        Raises:
            LearningError: the file cannot be read.
            OSError: it cannot be written.
        """
        kept, damaged = [], []
        for number, line in enumerate(self._lines(), 1):
            try:
                self._event(number, line)
                kept.append(line)
            except LearningError as error:
                damaged.append(str(error))
        if damaged:
            write_atomically(self.path, b"".join(line + b"\n" for line in kept), sync=True)
            more = f"; {len(damaged)} damaged lines in total" if len(damaged) > 1 else ""
            _log.warning("%s%s: left out", damaged[0], more)

    def sync(self) -> None:
        """Flush the journal to the disk.

        Raises:
            OSError: the disk failed.
        """
        if self.path.exists():
            sync_file(self.path)

    def _lines(self) -> list[bytes]:
        try:
            return self.path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LearningError(f"{self.path}: {error.strerror}") from None

    def _event(self, number: int, line: bytes) -> Event:
        try:
            found = json.loads(line)
            _check(found)
        except (ValueError, RecursionError) as error:
            raise LearningError(f"{self.path}, line {number}: expected an event as JSON ({error})") from None
        event: Event = found
        return event


def _check(event: object) -> None:
    """Raise ValueError unless the event has its required fields."""
    if not isinstance(event, dict):
        raise ValueError("no object")
    name = event.get("event")
    for field in ("event", "time", *FIELDS.get(str(name), "").split()):
        kind = dict if (name, field) == ("training", "losses") else _TYPES.get(field, int)
        value: Any = event.get(field)
        if not isinstance(value, kind) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{name}: {field} is {value!r}")
    for field in _NUMBERS & set(event):
        if not isinstance(event[field], int | float):
            raise ValueError(f"{name}: {field} is {event[field]!r}")
    losses = event.get("losses", {}).values() if name == "training" else ()
    if not all(isinstance(value, int | float) for value in losses):
        raise ValueError(f"{name}: losses are {event['losses']!r}")


def _complete(file: BinaryIO) -> int:
    """Return the length of the complete lines of a file, in bytes."""
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        return 0
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return end
    file.seek(0)
    return file.read().rfind(b"\n") + 1
