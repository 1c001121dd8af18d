"""What clients write: log, status line, events, and the records of games."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import IO

from yomi.engine.records import printable
from yomi.nets.files import write_atomically

log = logging.getLogger("yomi.servers")


class Reporter:
    """Shared by all clients. Any thread may call its methods.

    If the event file or the terminal cannot be written, the log reports it once, and games continue without.
    """

    def __init__(self, events: Path | None = None, terminal: IO[str] | None = None) -> None:
        """Append events to a file as lines of JSON, and write for people to `terminal`, by default stderr."""
        self._terminal: IO[str] | None = sys.stderr if terminal is None else terminal
        self._has_status = self._terminal is not None and self._terminal.isatty()
        self._events = None if events is None else events.open("a", encoding="utf-8", errors="backslashreplace")
        self._status: dict[str, str] = {}
        self._lock = threading.Lock()

    def event(self, account: str, kind: str, text: str = "", **data: object) -> None:
        """Report an event: `kind` (a word) and `data` for programs, `text` for people (empty if they need none)."""
        if text:
            log.info("%s: %s", account, text)
        with self._lock:
            if text:
                self._print(f"{time.strftime('%H:%M:%S')} {printable(f'{account}: {text}')}\n")
            if self._events is not None:
                fields = {"time": round(time.time(), 3), "account": account, "event": kind, **data}
                try:
                    self._events.write(json.dumps(fields, ensure_ascii=False) + "\n")
                    self._events.flush()
                except OSError as error:
                    log.error(
                        "cannot write events to %s: %s; games continue without", self._events.name, error.strerror
                    )
                    self._close_events()

    def status(self, account: str, text: str) -> None:
        """Set the text of an account in the status line, if there is one."""
        if self._has_status:
            with self._lock:
                self._status[account] = text
                self._print("")

    def close(self) -> None:
        with self._lock:
            if self._has_status:
                self._write("\n")
            self._close_events()

    def _close_events(self) -> None:
        if self._events is not None:
            with contextlib.suppress(OSError):  # the buffer may still hold what a full disk refused
                self._events.close()
            self._events = None

    def _print(self, line: str) -> None:
        """Print a line above the status line."""
        if self._has_status:
            width = shutil.get_terminal_size().columns - 1
            shown = " | ".join(f"{name}: {text}" for name, text in self._status.items())
            line = f"\r\x1b[K{line}{printable(shown)[:width]}"
        self._write(line)

    def _write(self, text: str) -> None:
        if self._terminal is None:
            return
        try:
            self._terminal.write(text)
            self._terminal.flush()
        except OSError as error:
            self._terminal, self._has_status = None, False
            log.error("cannot write to the terminal: %s; games continue without", error.strerror)


MAX_NAME = 150


class RecordFile:
    """The record of one game, written again after each move, so that a crash loses nothing."""

    def __init__(self, folder: Path, name: str, suffix: str) -> None:
        """Choose the file of a game, whose `name` is unique and begins with the day of its start (YYYYMMDD)."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (re.sub(r"[^\w.+@-]", "_", name)[:MAX_NAME] + suffix)

    def of_all_days(self) -> list[Path]:
        """Return existing files of this game with any day in the name, latest first."""
        day = len("YYYYMMDD")
        return sorted(self.path.parent.glob("[0-9]" * day + self.path.name[day:]), reverse=True)

    def write(self, data: bytes) -> None:
        write_atomically(self.path, data)
