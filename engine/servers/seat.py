"""The engine of a client: yomi's own player or another engine, and the thread in which it works."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from yomi.engine.clients.client import EngineClient, EngineError
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.players.player import Player
from yomi.engine.servers.settings import Account


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


P = TypeVar("P", bound=Player[Any])
C = TypeVar("C", bound=EngineClient)


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
        """Start the engine in `account.command`, with further fields of EngineSpec. Raises GaveUpError."""
        try:
            self._client = kind(EngineSpec(account.name, account.command, **spec))
        except EngineError as error:
            raise GaveUpError(f"{account.name}: {account.command[0]}: {error}") from None

    @property
    def name(self) -> str:
        return self._client.title

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True, slots=True)
class Done:
    tag: Any
    """The tag given to `submit`."""
    result: object = None
    error: Exception | None = None


class Worker:
    """Runs one call after the other in a thread of its own, and posts a `Done` for each."""

    def __init__(self, post: Callable[[object], None], name: str) -> None:
        self._post = post
        self._work: queue.SimpleQueue[tuple[object, Callable[[], object]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        self._work.put((tag, call))

    def close(self, timeout: float) -> bool:
        """End the thread after the queued calls. Return False if this takes longer than `timeout` seconds."""
        self._work.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            tag, call = item
            try:
                done = Done(tag, call())
            except Exception as error:  # handed to the loop, which knows what it means
                done = Done(tag, error=error)
            self._post(done)
