"""Files of game records that are complete at every moment."""

from __future__ import annotations

import re
from pathlib import Path

from yomi.nets.files import write_atomically

MAX_NAME = 150


class RecordFile:
    """The record of one game, written again after each move, so that a crash loses nothing."""

    def __init__(self, folder: Path, name: str, suffix: str) -> None:
        """Choose the file of a game. An existing file of the same name belongs to the same game.

        Args:
            folder: created if missing.
            name: unique name of the game, beginning with the day of its start (YYYYMMDD).
            suffix: file name ending, such as `.sgf`.

        Raises:
            OSError: the folder cannot be created.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (re.sub(r"[^\w.+@-]", "_", name)[:MAX_NAME] + suffix)

    def of_all_days(self) -> list[Path]:
        """Return existing files of this game with any day in the name, latest first."""
        day = len("YYYYMMDD")
        return sorted(self.path.parent.glob("[0-9]" * day + self.path.name[day:]), reverse=True)

    def write(self, data: bytes) -> None:
        """Replace the file's content in one step. Raises OSError."""
        write_atomically(self.path, data)
