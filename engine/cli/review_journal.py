"""Positions that an interrupted `yomi review` has searched: lines of JSON in a file that the finished command removes.

The file's name has a digest of the command's settings, a line has a digest of the record: other settings or a changed
record begin again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import IO, Any

from yomi import __version__
from yomi.engine.cli.logs import say
from yomi.engine.records import read_record_bytes
from yomi.engine.review import Judgement, KnownPositions, Opinion


class ReviewJournal:
    """The searched positions of one command."""

    def __init__(self, folder: Path, settings: str) -> None:
        """Read the positions that the same command has left in a folder.

        Args:
            folder: which the journal is kept in.
            settings: text of all options that change a search.
        """
        digest = hashlib.sha256(f"{__version__} {settings}".encode("utf-8", "backslashreplace")).hexdigest()
        self.path = folder / f".yomi-analyze-{digest[:12]}.jsonl"
        self._known: dict[str, dict[int, Judgement]] = {}
        self._stream: IO[str] | None = None
        self._is_kept = True
        with contextlib.suppress(OSError):  # `append` reports a file that cannot be used
            for line in self.path.read_bytes().splitlines():
                self._read(line)

    def __len__(self) -> int:
        """Return the positions that an earlier run has searched."""
        return sum(map(len, self._known.values()))

    def game(self, path: Path, number: int) -> KnownPositions:
        """Return the known positions of game `number` of a file. Positions that are added to them are kept."""
        try:
            digest = hashlib.sha256(read_record_bytes(path)).hexdigest()[:16]
        except OSError:  # a pipe that was read once, or a file that has gone
            return KnownPositions()
        return _KeptPositions(self, f"{digest}-{number}", self._known.get(f"{digest}-{number}", {}))

    def append(self, game: str, turn: int, judgement: Judgement) -> None:
        """Write a position. A folder that cannot be written is reported once."""
        if not self._is_kept:
            return
        opinion, evaluations = judgement
        fields = None if opinion is None else dataclasses.asdict(opinion)
        line = json.dumps({"game": game, "turn": turn, "evaluations": evaluations, "opinion": fields})
        try:
            if self._stream is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self.path.open("a", encoding="ascii")
                self._stream.write("\n")  # ends a line that a crash has cut
            self._stream.write(line + "\n")
            self._stream.flush()
        except OSError as error:
            self._is_kept = False
            say(f"{self.path}: {error.strerror}: an interrupted review will begin again")

    def interrupted(self) -> str:
        """Return a line for the user who interrupts the command."""
        return f"interrupted: the same command continues ({self.path})" if self.path.exists() else "interrupted"

    def remove(self) -> None:
        """Remove the journal of a finished command."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self, line: bytes) -> None:
        """Take up a line, unless a crash has damaged it: that position is searched again."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found: dict[str, Any] = json.loads(line)
            fields = found["opinion"]
            opinion = None if fields is None else Opinion(**fields | {"pv": tuple(fields["pv"])})
            self._known.setdefault(found["game"], {})[found["turn"]] = opinion, found["evaluations"]


class _KeptPositions(KnownPositions):
    def __init__(self, journal: ReviewJournal, game: str, found: dict[int, Judgement]) -> None:
        super().__init__(found)
        self._journal, self._game = journal, game

    def add(self, index: int, judgement: Judgement) -> None:
        super().add(index, judgement)
        self._journal.append(self._game, index, judgement)
