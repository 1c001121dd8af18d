"""What the clients of GTP and USI engines share: how one is started, waited for and ended."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TypeAlias

from engine.matches.limits import GameClock, PlayerLimits
from engine.matches.players import PlayerSpec
from engine.matches.process import EngineFailure, EngineProcess

OnStart: TypeAlias = Callable[[EngineProcess], None]
"""Called with the process of an engine before anything is asked of it, so that others can end it meanwhile."""


class EngineClient(abc.ABC):
    """One running engine."""

    def __init__(
        self,
        spec: PlayerSpec,
        limits: PlayerLimits,
        *,
        timeout: float,
        cpus: frozenset[int] = frozenset(),
        on_start: OnStart | None = None,
    ) -> None:
        """Start the engine, ask what it is, and tell it its options and limits.

        Args:
            spec: the player.
            limits: for its moves and games, those of the match included.
            timeout: seconds that it may take to start, or be silent beyond its time.
            cpus: processors that it may use; empty for all.
            on_start: called once its process runs.

        Raises:
            EngineFailure: it does not start, or does not speak the protocol, or cannot be told its limits.
        """
        self.spec, self.limits, self.timeout = spec, limits, timeout
        self.title = spec.name
        """What it calls itself, once it has said so."""
        self.process = EngineProcess(spec.command, folder=spec.folder, environment=spec.environment, cpus=cpus)
        if on_start is not None:
            on_start(self.process)
        try:
            self._greet()
        except EngineFailure:
            self.process.close()
            raise

    @abc.abstractmethod
    def _greet(self) -> None:
        """Do what comes first once the engine runs."""

    def close(self) -> None:
        """End the engine."""
        self.process.close("quit")

    def _patience(self, clock: GameClock) -> float:
        """Return the seconds after which an engine that is thinking counts as hanging."""
        allowed = clock.allowed() + clock.margin if clock.is_limited else self.limits.seconds or 0.0
        return allowed + self.timeout
