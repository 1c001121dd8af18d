"""Game records of both games: safe reading of files, notes about faults, and scores in centipawns.

A logit of the winrate is worth `scale` centipawns.
"""

import errno
import math
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from yomi.errors import fault_of
from yomi.language import tr

MAX_RECORD_BYTES = 2**28  # of a file of records; also of a compressed file after decompression
MAX_NOTES = 5  # printed for a file; a last line counts the others
MAX_NAMED = 20  # omitted files that are named; a last line counts all
MATE_SCORE = 30_000  # centipawns of a mate in a record, less its plies
MAX_USI_CENTIPAWNS = 30_000  # in USI, of a sure win without a known mate
CENTIPAWNS = 600.0  # of a logit of the winrate, in the scores of all engines: a winrate w is 600 ln(w / (1 - w))
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True, slots=True)
class Note:
    """A fault in a record that the reader could work around, with the remedy."""

    text: str
    line: int = 0  # from 1; 0: the whole file
    column: int = 0  # in characters, from 1; 0: the whole line

    @classmethod
    def at(cls, source: str, offset: int, text: str) -> "Note":
        """Return a note about the character at `offset` of `source`. CR, LF and CR LF end a line."""
        before = source[:offset].replace("\r\n", "\n").replace("\r", "\n")
        return cls(text, before.count("\n") + 1, len(before) - before.rfind("\n"))

    def extended(self, text: str) -> "Note":
        """Return the note with more text at its end, such as the remedy."""
        return Note(f"{self.text}: {text}", self.line, self.column)

    @property
    def place(self) -> str:
        """Return `:LINE:COLUMN` to append to a file name; empty if the note concerns the whole file."""
        return "".join(f":{number}" for number in (self.line, self.column) if number)

    def __str__(self) -> str:
        """Return `line 3, column 14: text`."""
        if self.line and not self.column:
            return tr("line {n}: {text}", n=self.line, text=self.text)
        places = [f"{name} {n}" for name, n in (("line", self.line), ("column", self.column)) if n]
        return f"{', '.join(places)}: {self.text}" if places else self.text


def report_notes(say: Callable[[str], None], path: str | Path, notes: Iterable[Note]) -> None:
    """Pass the notes of a file to `say` as lines `FILE:LINE:COLUMN: text`, at most MAX_NOTES of them."""
    lines = [f"{path}{note.place}: {note.text}" for note in notes]
    for line in lines[:MAX_NOTES]:
        say(line)
    if len(lines) > MAX_NOTES:
        say(f"{path}: {len(lines) - MAX_NOTES} further notes")


class LeftOut:
    """Collects the files that a command omits, so that one bad record does not stop the reading of a folder."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Report omitted files to `say`, at most MAX_NAMED of them."""
        self._say = say
        self.faults: list[str] = []  # a line for each file
        self._noted = 0

    def add(self, path: str | Path, error: object) -> None:
        """Count an omitted file, or an omitted game of a file, and its error."""
        self.faults.append(fault_of(path, error))
        if len(self.faults) <= MAX_NAMED:
            self._say(f"{self.faults[-1]}: left out")

    def report_notes(self, path: str | Path, notes: Iterable[Note]) -> None:
        """Report faults in a file that is used in spite of them. At most MAX_NAMED files are reported."""
        found = list(notes)
        self._noted += bool(found)
        if self._noted <= MAX_NAMED:
            report_notes(self._say, path, found)

    def report(self, files: int) -> None:
        """Report the number of omitted files and games, out of `files` files."""
        if self.faults:
            self._say(f"{len(self.faults)} left out, of {files} files")
        if self._noted > MAX_NAMED:
            self._say(f"{self._noted} files have faults and are used all the same")


def refuse_special(path: str | Path, mode: int | None = None) -> None:
    """Raise OSError if a path is not a regular file, since reading a device or a pipe may never end.

    The reason is in `strerror`. `mode` is the file's `st_mode` if the file is open.
    """
    mode = os.stat(path).st_mode if mode is None else mode
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        raise OSError(errno.EINVAL, f"{kind}, expected a file", str(path))


def read_record_bytes(path: str | Path, limit: int | None = MAX_RECORD_BYTES) -> bytes:
    """Return the content of a file of records of at most `limit` bytes.

    Raises:
        OSError: the file cannot be read, is no regular file, or is larger. `strerror` has the reason.
    """
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        refuse_special(path, status.st_mode)
        if limit is None:
            return stream.read()
        data = b"" if status.st_size > limit else stream.read(limit + 1)
        if status.st_size > limit or len(data) > limit:
            raise OSError(errno.EFBIG, f"larger than {limit >> 20} MiB, expected a smaller file", str(path))
        return data


@dataclass(frozen=True, slots=True)
class Score:
    unit: str  # in tables
    digits: int  # after the point
    axis: str  # label in pictures
    limit: float = math.inf  # greatest score in pictures
    mean_limit: float = math.inf  # greatest score and loss that count: a mate is 30,000 centipawns
    whole: float = math.inf  # a loss that equals 100% of winrate; inf: losses of score have no weight


def record_score(winrate: float, mate: int | None, scale: float) -> int:
    """Return one number for a winrate or a mate, as records store it: centipawns for the side to move.

    The centipawns are those of USI, but at most MATE_SCORE / 2, so that they are never taken for a mate. `mate` is the
    number of plies to a mate, negative if the side to move is mated. `scale` is the number of centipawns of a logit.
    """
    if mate:
        return MATE_SCORE - mate if mate > 0 else -MATE_SCORE - mate
    return max(-MATE_SCORE // 2, min(MATE_SCORE // 2, usi_centipawns(winrate, scale)))


def usi_centipawns(winrate: float, scale: float) -> int:
    """Return a winrate in [0, 1] as centipawns for USI, at most MAX_USI_CENTIPAWNS. Mates have another form in USI."""
    if winrate <= 0.0 or winrate >= 1.0:
        return MAX_USI_CENTIPAWNS if winrate >= 1.0 else -MAX_USI_CENTIPAWNS
    score = scale * math.log(winrate / (1.0 - winrate))
    return max(-MAX_USI_CENTIPAWNS, min(MAX_USI_CENTIPAWNS, round(score)))


def winrate_of(score: float, scale: float) -> float:
    """Return the winrate 1 / (1 + exp(-score / scale)) of a score in centipawns."""
    return 0.5 + 0.5 * math.tanh(score / (2.0 * scale))
