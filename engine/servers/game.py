"""A game on a server and the engines that play it, as far as both protocols share them."""

import abc
import itertools
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from yomi.engine.clients.client import EngineClient, EngineError
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clock import Clock, Clocks, TimeSystem
from yomi.engine.color import opponent
from yomi.engine.players.player import Player
from yomi.engine.players.request import Request
from yomi.engine.servers.settings import Account
from yomi.errors import LineError, reraised

log = logging.getLogger("yomi.servers")

MAX_NAME = 150  # characters of a record's file name

D = TypeVar("D")
R = TypeVar("R")
P = TypeVar("P", bound=Player[Any])
C = TypeVar("C", bound=EngineClient)


@dataclass(slots=True, eq=False)
class MoveTask:
    """A task for the engine: choose a move, or ponder on a position."""

    start: str  # the initial position in USI; empty in Go
    moves: Sequence[str]  # moves since, as text; the last one may be a guess if the request ponders
    # Other threads stop it or confirm the guess here. The seat sets its game.
    request: Request[Any]
    ply: int = 0  # number of moves before the move


class ServerGame(abc.ABC, Generic[D]):
    """A game as the client knows it. `D` is the type of its engine's decisions."""

    suffix: str  # of the record's file
    turn: MoveTask | None = None  # the engine's current task: our move, or pondering
    decided: tuple[int, D] | None = None  # (ply, our decision for it)
    max_seconds = 0.0  # longest time of one of our moves, measured here

    def __init__(self, identity: str, color: int, names: Mapping[int, str], records: Path, name: str) -> None:
        """Choose the record's file in the folder `records`. `name` is unique; the day of the start is put before it.

        Raises OSError if the folder cannot be made.
        """
        self.id = identity
        self.color = color
        self.names = names
        records.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^\w.+@-]", "_", f"{time.strftime('%Y%m%d')}-{name}")[:MAX_NAME]
        self.path = records / f"{stem}{self.suffix}"  # the record's file

    @property
    def opponent(self) -> str:
        return self.names[opponent(self.color)]

    @property
    @abc.abstractmethod
    def ply(self) -> int: ...

    @property
    @abc.abstractmethod
    def asked_at(self) -> float | None:
        """Time (time.monotonic()) when our clock started; None if the server does not wait for our move."""

    @abc.abstractmethod
    def task(self, request: Request[Any], *guess: str) -> MoveTask:
        """Return the task to choose our next move, or our move after a guessed reply."""

    @abc.abstractmethod
    def clocks(self, spent: float = 0.0) -> Clocks | None:
        """Return the clocks of our next move, or None without a time limit. The server will charge `spent` seconds for
        our last move.
        """

    @abc.abstractmethod
    def save(self) -> None:
        """Write the record, after each move, so that a crash loses nothing. Raises OSError."""

    def find_record(self, load: Callable[[Path], R], is_ours: Callable[[R], bool], *, has_moves: bool) -> R | None:
        """Return the record that an earlier run wrote of this game, and continue its file; None if there is none.

        Finished records with the same id and names stay. A game without moves continues only a record of today.
        """
        day, folder, stem = len("YYYYMMDD"), self.path.parent, self.path.stem
        # The game may have begun on another day. Latest first.
        found = folder.glob(("[0-9]" * day if has_moves else stem[:day]) + f"{stem[day:]}*{self.suffix}")
        for path in sorted(found, key=lambda path: (path.name[:day], len(path.name), path.name), reverse=True):
            try:
                record = load(path)
            except LineError as error:
                log.warning("an earlier record of this game is ignored: %s", error)
                continue
            if is_ours(record):
                self.path = path
                return record
        numbers = itertools.count(2)
        while self.path.exists():
            self.path = folder / f"{stem}-{next(numbers)}{self.suffix}"
        return None


class GaveUpError(Exception):
    """A client cannot continue. The message is one line with what to correct."""


class Seat(Protocol):
    """The engine of an account: yomi's player, or another engine. One thread calls its methods, which block."""

    @property
    def name(self) -> str:
        """The engine's name, as one line."""

    @property
    def ponders(self) -> bool: ...

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        """Put the server's clocks into the request of a task. Each move loses `lag` seconds. Thread-safe."""

    def think(self, turn: MoveTask) -> Any:
        """Choose a move. Return when it is chosen or the request is stopped."""

    def end(self, result: str) -> None: ...

    def close(self) -> None: ...


class YomiSeat(Generic[P]):
    def __init__(self, player: P) -> None:
        self._player = player
        self._options = player.options  # for the current game

    @property
    def name(self) -> str:
        return f"yomi ({self._player.description})"

    @property
    def ponders(self) -> bool:
        return self._player.options.ponder

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        # The player reserves only a share of a byo-yomi, so the lag is taken off the byo-yomi itself.
        if clocks is not None and any(clock.settings.system is TimeSystem.BYOYOMI for clock in clocks.values()):
            clocks = {
                color: Clock.of(clock.main, max(clock.settings.period - lag, 0.0)) for color, clock in clocks.items()
            }
            lag = 0.0
        request.clocks, request.options = clocks, replace(self._options, lag=self._options.lag + lag)

    def end(self, result: str) -> None:
        """Do nothing: yomi needs no cleanup after a game."""

    def close(self) -> None:
        self._player.close()


class EngineSeat(Generic[C]):
    def __init__(self, account: Account, kind: type[C], **spec: Any) -> None:
        """Start the engine in `account.command`. `spec` contains further fields of EngineSpec. Raises GaveUpError."""
        with reraised(EngineError, GaveUpError, f"{account.name}: {account.command[0]}: "):
            self._client = kind(EngineSpec(account.name, account.command, **spec))

    @property
    def name(self) -> str:
        return self._client.title

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        # The engine does not know the lag, so all times are reduced.
        request.clocks = None if clocks is None else {color: _less(clock, lag) for color, clock in clocks.items()}

    def close(self) -> None:
        self._client.close()


def _less(clock: Clock, lag: float) -> Clock:
    """Return a clock on which each kind of time is reduced by `lag`."""
    settings = clock.settings
    if settings.system is TimeSystem.ABSOLUTE:
        return Clock(settings, max(clock.main - lag, 0.0))
    return Clock.of(*(max(seconds - lag, 0.0) for seconds in (clock.main, settings.period, settings.increment)))
