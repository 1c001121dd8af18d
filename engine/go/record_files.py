"""Files of Go records: SGF, GIB (Tygem) and NGF (Cyberoro, WBaduk). The content determines the format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from yomi.engine.go.gib_ngf import looks_like_gib, looks_like_ngf, read_gib, read_ngf
from yomi.engine.go.sgf import GameRecord, SgfError, each_sgf_game, read_size
from yomi.engine.records import read_record_bytes


def each_record(data: bytes) -> Iterator[GameRecord | SgfError]:
    """Yield each game of a file, or the error that prevents reading it; at least one."""
    reader = read_gib if looks_like_gib(data) else read_ngf if looks_like_ngf(data) else None
    if reader is None:
        yield from each_sgf_game(data)
        return
    try:
        yield reader(data)
    except SgfError as error:
        yield error


def load_records(path: str | Path) -> list[GameRecord]:
    """Read all games of a file. An unreadable game becomes a note of the first game.

    Raises:
        SgfError: the file cannot be opened, or no game can be read.
    """
    records: list[GameRecord] = []
    faults: list[SgfError] = []
    for found in each_record(_bytes_of(path)):
        if isinstance(found, GameRecord):
            records.append(found)
        else:
            faults.append(found)
    if not records:
        raise faults[0]
    records[0].notes += [fault.note.extended("this game is left out") for fault in faults]
    return records


def load_record(path: str | Path) -> GameRecord:
    """Read the first game of a file.

    Raises:
        SgfError: the file cannot be opened, or the game cannot be read.
    """
    found = next(each_record(_bytes_of(path)))
    if isinstance(found, SgfError):
        raise found
    return found


def load_size(path: str | Path) -> int:
    """Return the board size of a file's first game. For SGF only the root is read.

    Raises:
        SgfError: see `load_record`.
    """
    data = _bytes_of(path)
    if looks_like_gib(data) or looks_like_ngf(data):
        return load_record(path).size
    return read_size(data)


def _bytes_of(path: str | Path) -> bytes:
    try:
        return read_record_bytes(path)
    except OSError as error:
        raise SgfError(f"cannot read {path}: {error.strerror}") from None
