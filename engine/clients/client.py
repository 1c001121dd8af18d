"""What GTP and USI clients share: how an engine is started, waited for and ended."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TypeAlias

from engine.clients.limits import GameClock
from engine.clients.process import TIMEOUT, EngineError, EngineProcess
from engine.clients.spec import EngineSpec

OnStart: TypeAlias = Callable[[EngineProcess], None]
"""Called with the process of an engine before anything is asked of it, so that others can end it meanwhile."""
STOP_TIMEOUT = 10.0
"""Seconds that an engine may take to end a search or an analysis."""


class EngineClient(abc.ABC):
    """One running engine. One thread calls it."""

    def __init__(
        self,
        spec: EngineSpec,
        *,
        timeout: float = TIMEOUT,
        cpus: frozenset[int] = frozenset(),
        on_start: OnStart | None = None,
    ) -> None:
        """Start the engine, ask for its name and options, and tell it its options and limits.

        Args:
            spec: the engine, with all limits for its moves and games.
            timeout: seconds that it may take to start, or be silent beyond its time.
            cpus: processors that it may use; empty for all.
            on_start: called once its process runs.

        Raises:
            EngineError: it does not start, or does not speak the protocol.
            RefusedError: it does not have an option, or a way to be told its limits.
        """
        self.spec, self.timeout = spec, timeout
        self.title = spec.name
        """Its own name, once it has said it."""
        self.process = EngineProcess(spec.command, folder=spec.folder, environment=spec.environment, cpus=cpus)
        if on_start is not None:
            on_start(self.process)
        try:
            self._greet()
        except EngineError:
            self.process.close()
            raise

    @abc.abstractmethod
    def _greet(self) -> None:
        """Say and ask what comes first once the engine runs."""

    def close(self) -> None:
        """End the engine."""
        self.process.close("quit")

    def _line(self, command: str, begin: float, timeout: float) -> tuple[float, str]:
        """Return the next line of the answer to a command that was sent at `begin`, and when it came."""
        try:
            return self.process.line(begin + timeout)
        except TimeoutError:
            raise EngineError(no_answer(command, timeout)) from None

    def _allowed(self, clock: GameClock) -> float:
        """Return the seconds that the engine may take for its next move; 0 if neither clock nor limits say."""
        return clock.allowed() + clock.margin if clock.is_limited else self.spec.limits.seconds or 0.0


def no_answer(command: str, seconds: float) -> str:
    """Return the fault of an engine that is silent."""
    return f"no answer to '{command}' within {seconds:.0f} s"
