"""Finished games of self-play, and the files of games that do not fill a shard yet."""

from __future__ import annotations

import io
import json
import logging
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yomi.nets.data.shards import Arrays
from yomi.nets.files import naming, write_atomically

_log = logging.getLogger("yomi.learning")

WORD = 8  # bytes of a number in a spool: 4 of the number, little-endian, and 4 of a CRC-32


@dataclass(frozen=True, slots=True)
class SelfPlayGame:
    """A finished game in the store."""

    rows: Arrays  # columns; `game` is set when the shard is written
    record: bytes
    winner: int  # BLACK, WHITE or DRAW
    margin: float  # Black's lead without komi; NaN in games without a score
    moves: int
    size: int  # board size
    network: str  # digest of the network at the end of the game; the evaluator's name before the first network
    reanalyzed: bool = False  # whether the network has searched a past game again: rows and a record of both are stored

    def to_bytes(self) -> bytes:
        """Serialise the game, for spools and for workers' messages."""
        stream = io.BytesIO()
        facts = {name: getattr(self, name) for name in ("winner", "margin", "moves", "size", "network", "reanalyzed")}
        record = np.frombuffer(self.record, np.uint8)
        arrays: dict[str, Any] = {f"row_{name}": column for name, column in self.rows.items()}
        np.savez(stream, facts=np.array(json.dumps(facts)), record=record, **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> SelfPlayGame:
        with np.load(io.BytesIO(content)) as arrays:
            facts = json.loads(str(arrays["facts"]))
            rows = {name.removeprefix("row_"): arrays[name] for name in arrays.files if name.startswith("row_")}
            return cls(rows, arrays["record"].tobytes(), **facts)


class Spool:
    """Finished games of one board size that do not fill a shard yet.

    The file begins with a word, the number of the newest shard. Then follows, for each game, a word with its length,
    and its content.
    """

    def __init__(self, path: Path, latest: int) -> None:
        """Read the games. Drop damaged games, and an incomplete game at the end.

        `latest` is the newest shard of this size, or 0. If the file contains another number, a shard already contains
        its games.
        """
        self.path, self.games = path, list[SelfPlayGame]()
        content = path.read_bytes() if path.exists() else b""
        number, is_sound = _number_of(content[:WORD])
        if content and not is_sound:
            _log.warning("%s: damaged shard number found at its beginning, its games are kept", path)
        elif number != latest:
            content = b""
        kept, end = [_word(latest)], WORD
        while end + WORD <= len(content):
            length, _ = _number_of(content[end : end + WORD])
            frame = content[end : end + WORD + length]
            if not length or len(frame) < WORD + length:
                break
            end += len(frame)
            if frame[:WORD] == _word(length, frame[WORD:]):
                self.games.append(SelfPlayGame.from_bytes(frame[WORD:]))
                kept.append(frame)
        whole = b"".join(kept)
        self._end = len(whole)
        if lost := max(0, len(content) - len(whole)):
            _log.warning("%s: %d damaged bytes dropped, %d games kept", path, lost, len(self.games))
        if whole != content:
            write_atomically(path, whole, sync=True)

    @property
    def rows(self) -> int:
        return sum(len(game.rows["value"]) for game in self.games)

    def add(self, played: SelfPlayGame) -> None:
        """Append a game. It overwrites the incomplete game that a full disk leaves."""
        content = played.to_bytes()
        with naming(self.path), self.path.open("r+b") as file:
            file.truncate(self._end)
            file.seek(self._end)
            file.write(_word(len(content), content) + content)
        self._end += WORD + len(content)
        self.games.append(played)


def _word(number: int, content: bytes = b"") -> bytes:
    """Return a number as 8 bytes, with the CRC-32 of the number and the content that follows it."""
    digits = number.to_bytes(WORD // 2, "little")
    return digits + zlib.crc32(digits + content).to_bytes(WORD // 2, "little")


def _number_of(word: bytes) -> tuple[int, bool]:
    """Return the number in a word, and whether the word is that of a number alone."""
    number = int.from_bytes(word[: WORD // 2], "little")
    return number, word == _word(number)
