"""Positions that an interrupted `yomi review` has searched, as lines of JSON. The finished command removes the file.

The file's name contains a digest of the settings, each line a digest of the record. If either changes, the search
starts again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import IO, Any

from yomi.engine.cli.output import say
from yomi.engine.records import read_record_bytes
from yomi.engine.review import Judgement, KnownPositions, Opinion
from yomi.engine.version import VERSION


class ReviewJournal:
    def __init__(self, folder: Path, settings: str) -> None:
        """Read the positions left by a command with the same `settings`: the options that change a search."""
        digest = hashlib.sha256(f"{VERSION} {settings}".encode("utf-8", "backslashreplace")).hexdigest()
        self.path = folder / f".yomi-analyze-{digest[:12]}.jsonl"
        self._known: dict[str, dict[int, Judgement]] = {}
        self._stream: IO[str] | None = None
        self._is_kept = True
        with contextlib.suppress(OSError):  # `append` reports a file that cannot be used
            for line in self.path.read_bytes().splitlines():
                self._read(line)

    def __len__(self) -> int:
        """Return the number of positions that an earlier run has searched."""
        return sum(map(len, self._known.values()))

    def game(self, path: Path, number: int) -> KnownPositions:
        """Return the known positions of game `number` of a file. Positions added to them are written to the journal."""
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
            say(f"cannot write {self.path}: {error.strerror}; an interrupted review will start again")

    def interrupted(self) -> str:
        """Return a message for the user who interrupts the command."""
        return f"interrupted: the same command continues ({self.path})" if self.path.exists() else "interrupted"

    def remove(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self, line: bytes) -> None:
        """Read a line. A line that a crash has damaged is ignored: its position is searched again."""
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
