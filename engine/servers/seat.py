"""What sits at a client's board: what yomi's own players and other engines have in common in both games."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from yomi.engine.clients.process import EngineError
from yomi.engine.clients.spec import EngineSpec

if TYPE_CHECKING:
    from yomi.engine.clients.client import EngineClient
    from yomi.engine.players.player import Player
    from yomi.engine.servers.settings import Account


class GaveUpError(Exception):
    """A client cannot go on; one line that says what has to be put right."""


class Seat(Protocol):
    """What plays: yomi itself, or another engine. Its methods block and are called by one thread."""

    @property
    def name(self) -> str:
        """What plays, on one line."""

    @property
    def ponders(self) -> bool:
        """Whether it is to think in the opponent's time."""

    def end(self, result: str) -> None:
        """Take note that a game is over."""

    def close(self) -> None:
        """Release it."""


P = TypeVar("P", bound="Player[Any]")
C = TypeVar("C", bound="EngineClient")


class YomiSeat(Generic[P]):
    """yomi's own player."""

    def __init__(self, player: P) -> None:
        """Play with `player`."""
        self._player = player

    @property
    def name(self) -> str:
        """What plays."""
        return f"yomi ({self._player.description})"

    @property
    def ponders(self) -> bool:
        """Whether to think in the opponent's time."""
        return self._player.options.ponder

    def close(self) -> None:
        """Release devices and threads."""
        self._player.close()


class EngineSeat(Generic[C]):
    """Another engine."""

    def __init__(self, account: Account, kind: type[C], **spec: Any) -> None:
        """Start the engine.

        Args:
            account: whose `command` it is.
            kind: its client.
            spec: further fields of EngineSpec.

        Raises:
            GaveUpError: it cannot be started, or does not have its options.
        """
        try:
            self._client = kind(EngineSpec(account.name, account.command, **spec))
        except EngineError as error:
            raise GaveUpError(f"{account.name}: {account.command[0]}: {error}") from None

    @property
    def name(self) -> str:
        """What the engine calls itself."""
        return self._client.title

    def close(self) -> None:
        """End the engine."""
        self._client.close()
