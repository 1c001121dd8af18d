"""The journal of learning: a file to which every part appends what it has done, one JSON object a line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from engine.learning.errors import LearningError

NAME = "journal.jsonl"

Event = dict[str, Any]
"""`event`, its name; `time`, when it was appended, in Unix seconds; what FIELDS says, and maybe more."""

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
"""What an event says at least, by its name. Seconds are those that it took, and end at its `time`.

Wins are those of `network`. Self-play of games with scores also says `lead`, Black's mean lead. Its games, moves and
results are without earlier games that were searched anew, which `reanalyzed` counts if there are any; its rows are all.
Other events say what they like.
"""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("event", "version", "network", "against", "part", "for", "why"), str),
    **dict.fromkeys(("time", "seconds"), (int, float)),
    "settings": dict,
    "promoted": bool,
}
"""Of fields; the others are integers, but for training's losses: numbers by name."""


class Journal:
    """The journal of a folder; several threads and processes may append to it at once."""

    def __init__(self, path: Path) -> None:
        """Name the file, which the first event makes."""
        self.path = path

    def append(self, event: str, /, **fields: object) -> None:
        """Append an event; it is in the system's hands when this returns.

        What a killed process has left of a line is cut off first.

        Args:
            event: its name.
            fields: what FIELDS says, as JSON has it; `for` needs `**{"for": ...}`.

        Raises:
            LearningError: the file cannot be written.
            ValueError: a field is missing, or is not of its type.
        """
        found = {"event": event, "time": round(time.time(), 3), **fields}
        _check(found)
        line = json.dumps(found).encode() + b"\n"
        try:
            with self.path.open("a+b", buffering=0) as file:
                _lock(file)
                end = _complete(file)
                file.truncate(end)
                try:
                    while line:  # a disk that is almost full takes part of it
                        line = line[file.write(line) :]
                except OSError:
                    file.truncate(end)
                    raise
        except OSError as error:
            raise LearningError(f"{self.path}: {error.strerror}") from None

    def read(self) -> list[Event]:
        """Return all events, the oldest first; none without a file. A last line that was cut short is left out.

        Raises:
            LearningError: the file cannot be read, or a line is no event.
        """
        try:
            lines = self.path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LearningError(f"{self.path}: {error.strerror}") from None
        return [self._event(number, line) for number, line in enumerate(lines, 1)]

    def _event(self, number: int, line: bytes) -> Event:
        try:
            found = json.loads(line)
            _check(found)
        except ValueError as error:
            raise LearningError(f"{self.path}, line {number}: expected an event as JSON ({error})") from None
        event: Event = found
        return event


def _check(event: object) -> None:
    """Raise ValueError unless an event has the fields that it needs."""
    if not isinstance(event, dict):
        raise ValueError("no object")
    name = event.get("event")
    for field in ("event", "time", *FIELDS.get(str(name), "").split()):
        kind = dict if (name, field) == ("training", "losses") else _TYPES.get(field, int)
        if not isinstance(event.get(field), kind):
            raise ValueError(f"{name}: {field} is {event.get(field)!r}")


def _complete(file: BinaryIO) -> int:
    """Return how many bytes the complete lines of a file have."""
    end = file.seek(0, os.SEEK_END)
    if end == 0:
        return 0
    file.seek(end - 1)
    if file.read(1) == b"\n":
        return end
    file.seek(0)
    return file.read().rfind(b"\n") + 1


def _lock(file: BinaryIO) -> None:
    """Wait until no other line is being written, and let others wait until the file is closed, where locks exist."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
