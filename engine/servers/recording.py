"""Files of game records that are complete at every moment."""

from __future__ import annotations

import re
from pathlib import Path

from yomi.nets.files import write_atomically

MAX_NAME = 150


class RecordFile:
    """The record of one game, written anew after each move, so that nothing is lost whatever happens."""

    def __init__(self, folder: Path, name: str, suffix: str) -> None:
        """Choose a file; one that is there is continued only by the same game (the names tell games apart).

        Args:
            folder: made where it is missing.
            name: what tells the game from all others; the day that it began, YYYYMMDD, comes first.
            suffix: such as `.sgf`.

        Raises:
            OSError: the folder cannot be made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (re.sub(r"[^\w.+@-]", "_", name)[:MAX_NAME] + suffix)

    def of_all_days(self) -> list[Path]:
        """Return the files that are there for a game of this name, whatever day it began, the latest first."""
        day = len("YYYYMMDD")
        return sorted(self.path.parent.glob("[0-9]" * day + self.path.name[day:]), reverse=True)

    def write(self, data: bytes) -> None:
        """Replace the file's content in one step.

        Raises:
            OSError: it cannot be written.
        """
        write_atomically(self.path, data)
