"""A second copy of a run, at any place that fsspec can write to, such as a bucket."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from yomi.engine.learning.journal import LearningError, first_line

FIXED = ("settings.json", "rows", "games", "networks")  # files and folders whose files never change
CHANGING = ("journal.jsonl", "state.json")  # copied after them, so that everything they refer to has been copied
INTERVAL = 30.0  # between two searches for new files
LAST_SECONDS = 120.0  # maximum time that the end of a run waits for copies


class Mirror:
    """Copies shards, records, networks, journal and state on a thread of its own. It removes nothing.

    Pending games and the training checkpoint are not copied. Failures are reported and tried again.
    """

    def __init__(self, folder: Path, url: str, say: Callable[[str], None]) -> None:
        """Open the target, a URL of fsspec. `start` begins to copy.

        Raises:
            LearningError: the target is unknown, or its package is not installed.
        """
        self._folder, self._url, self._say = folder, url.rstrip("/"), say
        try:
            self._files, root = importlib.import_module("fsspec").core.url_to_fs(self._url)
        except (ImportError, ValueError, OSError) as error:
            raise LearningError(f"--mirror {url}: {error}; expected a URL that fsspec can write to") from None
        self._root: str = root.rstrip("/")
        self._there: dict[str, int] | None = None  # size of each file at the target before this start
        self._copied: dict[str, tuple[int, int]] = {}  # size and modification time of each file at its last copy
        self._failure = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Copy the rest and end. After LAST_SECONDS the rest is left to the next start."""
        self._ended.set()
        self._thread.join(LAST_SECONDS)
        if self._thread.is_alive():
            self._say(f"mirror {self._url}: not everything is copied yet; run the same command again to continue")

    def copy(self) -> int:
        """Copy new and changed files, and return their number.

        Raises:
            Exception: any error of the target's package.
        """
        if self._there is None:
            found: dict[str, dict[str, Any]] = self._files.find(self._root, detail=True)
            self._there = {name[len(self._root) :].lstrip("/"): facts["size"] for name, facts in found.items()}
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
        """Yield the files to copy, without temporary ones, whose names begin with a dot."""
        for top in (*FIXED, *CHANGING):
            path = self._folder / top
            if path.is_file():
                yield path
            for file in sorted(path.rglob("*")):
                hidden = any(part.startswith(".") for part in file.relative_to(self._folder).parts)
                if not hidden and file.is_file():
                    yield file

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ended.wait(INTERVAL)
            failure = ""
            try:
                self.copy()
            except Exception as error:  # each place has errors of its own, and none is a reason to stop learning
                failure = first_line(error)
            if failure and failure != self._failure:
                self._say(f"mirror {self._url}: {failure}; tried again every {INTERVAL:.0f} s")
            self._failure = failure
