"""A second place for what a run keeps: any that fsspec can write to, such as a bucket."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from yomi.engine.learning.errors import LearningError

FIXED = ("settings.json", "rows", "games", "networks")
"""Files and folders of files that are not changed once they are there."""
CHANGING = ("journal.jsonl", "state.json")
"""Come after them, so that all of what they speak of is there."""
INTERVAL = 30.0
"""Seconds between two looks at what is new."""
LAST_SECONDS = 120.0
"""That the end of a run waits for what is left to copy."""


class Mirror:
    """Copies a run's shards, records, networks, journal and state, on a thread of its own, and removes nothing.

    Games that are in no shard yet and the checkpoint of the training stay behind. What fails is said, and tried again.
    """

    def __init__(self, folder: Path, url: str, say: Callable[[str], None]) -> None:
        """Name both places; copying begins with `start`.

        Args:
            folder: of the run.
            url: as fsspec has it.
            say: shows a line of progress.

        Raises:
            LearningError: no such kind of place, or what reaches it is not installed.
        """
        self._folder, self._url, self._say = folder, url.rstrip("/"), say
        try:
            self._files, root = importlib.import_module("fsspec").core.url_to_fs(self._url)
        except (ImportError, ValueError, OSError) as error:
            raise LearningError(f"--mirror {url}: {error}; expected a place that fsspec can write to") from None
        self._root: str = root.rstrip("/")
        self._there: dict[str, int] | None = None
        """Bytes of what had been copied before this start, by name."""
        self._copied: dict[str, tuple[int, int]] = {}
        """Size and time of change of each file as it was copied last."""
        self._failure = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Copy what is left, and end; what takes too long is left to the next start."""
        self._ended.set()
        self._thread.join(LAST_SECONDS)
        if self._thread.is_alive():
            self._say(f"mirror {self._url}: not all is copied yet; the same command goes on")

    def copy(self) -> int:
        """Copy what is new or has changed, and return the number of files.

        Raises:
            Exception: whatever the place raises.
        """
        if self._there is None:
            found: dict[str, dict[str, Any]] = self._files.find(self._root, detail=True)
            self._there = {name[len(self._root) :].lstrip("/"): each["size"] for name, each in found.items()}
        count = 0
        for path in self._found():
            name = path.relative_to(self._folder).as_posix()
            try:
                facts = path.stat()
            except FileNotFoundError:  # tidied away since it was listed
                continue
            mark = facts.st_size, facts.st_mtime_ns
            if self._copied.get(name) == mark:
                continue
            if name in CHANGING or self._there.get(name) != facts.st_size:
                target = f"{self._root}/{name}"
                self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(path), target)
                count += 1
            self._copied[name] = mark
        return count

    def _found(self) -> Iterator[Path]:
        """Find what is to be copied; drafts, whose names begin with a dot, are not."""
        for top in (*FIXED, *CHANGING):
            path = self._folder / top
            if path.is_file():
                yield path
            for each in sorted(path.rglob("*")):
                hidden = any(part.startswith(".") for part in each.relative_to(self._folder).parts)
                if not hidden and each.is_file():
                    yield each

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ended.wait(INTERVAL)
            failure = ""
            try:
                self.copy()
            except Exception as error:  # each place has errors of its own, and none is a reason to stop learning
                failure = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if failure and failure != self._failure:
                self._say(f"mirror {self._url}: {failure}; tried again every {INTERVAL:.0f} s")
            self._failure = failure
