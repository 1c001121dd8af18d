"""A game on a server, and the engines that play it: the parts that both protocols share."""

from __future__ import annotations

import abc
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from yomi.engine.clients.client import EngineClient, EngineError
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import opponent
from yomi.engine.players.player import Player
from yomi.engine.servers.settings import Account
from yomi.errors import LineError
from yomi.nets.files import write_atomically

log = logging.getLogger("yomi.servers")

MAX_NAME = 150  # characters of a record's file name

D = TypeVar("D")
R = TypeVar("R")
T = TypeVar("T")
P = TypeVar("P", bound=Player[Any])
C = TypeVar("C", bound=EngineClient)


class RecordFile:
    """The record of one game, written again after each move, so that a crash loses nothing."""

    def __init__(self, folder: Path, name: str, suffix: str) -> None:
        """Choose the file of a game, whose `name` is unique and begins with the day of its start (YYYYMMDD)."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (re.sub(r"[^\w.+@-]", "_", name)[:MAX_NAME] + suffix)

    def of_all_days(self) -> list[Path]:
        # The game may have begun on another day. Latest first.
        day = len("YYYYMMDD")
        return sorted(self.path.parent.glob("[0-9]" * day + self.path.name[day:]), reverse=True)

    def write(self, data: bytes) -> None:
        write_atomically(self.path, data)


class ServerGame(abc.ABC, Generic[T, D]):
    """A game as the client knows it. `T` is the engine's task for a move, `D` its decision."""

    turn: T | None = None  # the engine's current task: our move, or pondering
    decided: tuple[int, D] | None = None  # (ply, our decision for it)
    max_seconds = 0.0  # longest time of one of our moves, measured here

    def __init__(self, identity: str, color: int, names: Mapping[int, str], file: RecordFile) -> None:
        self.id = identity
        self.color = color
        self.names = names
        self.file = file

    @property
    def opponent(self) -> str:
        return self.names[opponent(self.color)]

    @property
    @abc.abstractmethod
    def ply(self) -> int: ...

    @abc.abstractmethod
    def save(self) -> None:
        """Write the record. Raises OSError."""

    def find_record(self, load: Callable[[Path], R], is_ours: Callable[[R], bool]) -> R | None:
        """Return the record of this game that an earlier run wrote, and continue its file; None if there is none."""
        for path in self.file.of_all_days():
            try:
                record = load(path)
            except LineError as error:
                log.warning("an earlier record of this game is ignored: %s", error)
                continue
            if is_ours(record):
                self.file.path = path
                return record
        return None


class GaveUpError(Exception):
    """A client cannot continue. The message is one line with what to correct."""


class Seat(Protocol):
    """yomi's player or another engine. Its methods block and are called by one thread."""

    @property
    def name(self) -> str:
        """Name of the engine, on one line."""

    @property
    def ponders(self) -> bool: ...

    def end(self, result: str) -> None: ...

    def close(self) -> None: ...


class YomiSeat(Generic[P]):
    def __init__(self, player: P) -> None:
        self._player = player

    @property
    def name(self) -> str:
        return f"yomi ({self._player.description})"

    @property
    def ponders(self) -> bool:
        return self._player.options.ponder

    def close(self) -> None:
        self._player.close()


class EngineSeat(Generic[C]):
    def __init__(self, account: Account, kind: type[C], **spec: Any) -> None:
        """Start the engine in `account.command`; `spec` are further fields of EngineSpec. Raises GaveUpError."""
        try:
            self._client = kind(EngineSpec(account.name, account.command, **spec))
        except EngineError as error:
            raise GaveUpError(f"{account.name}: {account.command[0]}: {error}") from None

    @property
    def name(self) -> str:
        return self._client.title

    def close(self) -> None:
        self._client.close()
