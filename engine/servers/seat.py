"""The engine of a client: yomi's own player or another engine, for both games."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from yomi.engine.clients.process import EngineError
from yomi.engine.clients.spec import EngineSpec

if TYPE_CHECKING:
    from yomi.engine.clients.client import EngineClient
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
    def ponders(self) -> bool:
        """Whether the engine ponders in the opponent's time."""

    def end(self, result: str) -> None: ...

    def close(self) -> None: ...


P = TypeVar("P", bound="Player[Any]")
C = TypeVar("C", bound="EngineClient")


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
        """Start the engine in `account.command`. `spec`: further fields of EngineSpec.

        Raises:
            GaveUpError: the engine cannot be started, or lacks an option.
        """
        try:
            self._client = kind(EngineSpec(account.name, account.command, **spec))
        except EngineError as error:
            raise GaveUpError(f"{account.name}: {account.command[0]}: {error}") from None

    @property
    def name(self) -> str:
        return self._client.title

    def close(self) -> None:
        self._client.close()
