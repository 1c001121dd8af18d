"""The base of GTP and USI clients: start, wait for and end an engine; its moves and evaluations."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yomi.engine.clients.limits import GameClock
from yomi.engine.clients.process import TIMEOUT, EngineError, EngineProcess
from yomi.engine.clients.spec import EngineSpec

OnStart: TypeAlias = Callable[[EngineProcess], None]
"""Called with the process of an engine before the first command, so that another thread can kill it."""
STOP_TIMEOUT = 10.0
"""Seconds that an engine may take to end a search or an analysis."""


RESIGN, WIN = "resign", "win"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An engine's evaluation of the position in which it chose its move, for the side to move."""

    winrate: float | None = None
    """In [0, 1]."""
    score: float | None = None
    """Go: points of lead; shogi: centipawns."""
    visits: int | None = None
    """Visits or nodes, as the engine counts them."""
    pv: tuple[str, ...] = ()
    mate: int | None = None
    """Shogi: plies to the mate, negative if the side to move is mated, None if the engine reports none."""

    def __str__(self) -> str:
        """Return the text for a record of Go."""
        parts = []
        if self.winrate is not None:
            parts.append(f"{100 * self.winrate:.1f}%")
        if self.score is not None:
            parts.append(f"{self.score:+.1f}")
        if self.visits is not None:
            parts.append(f"{self.visits} visits")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class EngineMove:
    move: str
    """In the protocol's notation; also RESIGN and WIN."""
    seconds: float
    """From the command to the answer."""
    evaluation: Evaluation | None = None
    """None if the engine reported none."""
    reply: str = ""
    """USI: the opponent's move that the engine expects, or empty."""
    report: str = ""
    """GTP: the last line before the move, as the engine wrote it, or empty."""


class EngineClient(abc.ABC):
    """One running engine. Only one thread may call it."""

    increment_first = False
    """Whether increments are added before each move, including the first, instead of after it."""
    decimals = 2
    """Decimals of a second that the protocol can express."""

    def __init__(
        self,
        spec: EngineSpec,
        *,
        timeout: float = TIMEOUT,
        cpus: frozenset[int] = frozenset(),
        on_start: OnStart | None = None,
    ) -> None:
        """Start the engine, ask for its name and options, and send its options and limits.

        Args:
            spec: the engine, with all limits for its moves and games.
            timeout: seconds that it may take to start, or to be silent beyond its time.
            cpus: processors that it may use; empty for all.
            on_start: called once its process runs.

        Raises:
            EngineError: the engine does not start, or does not speak the protocol.
            RefusedError: it lacks an option, or cannot limit its search in the wanted way.
        """
        self.spec, self.timeout = spec, timeout
        self.title = spec.name  # until the engine reports its own
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
        """Do what the protocol needs before the first game."""

    @abc.abstractmethod
    def choose(self, start: str, moves: Sequence[str], color: int, clocks: Mapping[int, GameClock]) -> EngineMove:
        """Let the engine choose a move in the current game.

        Args:
            start: initial position (USI only).
            moves: moves since then, of both sides in turn. Those that the engine lacks are sent.
            color: the side to move, which the engine plays.
            clocks: clocks of both colors.

        Raises:
            EngineError: the engine fails, or has no move within its time and the timeout.
        """

    @abc.abstractmethod
    def game_over(self, result: str) -> None:
        """Tell the engine the result (win, lose or draw), if the protocol has a command for it."""

    def clock(self, margin: float) -> GameClock:
        """Return the engine's clock for a game; `margin` as in GameClock."""
        return GameClock(self.spec.limits.clock(increment_first=self.increment_first), margin)

    def close(self) -> None:
        self.process.close("quit")

    def _line(self, command: str, begin: float, timeout: float) -> tuple[float, str]:
        """Return when the next line of the answer came, and the line. `begin`: when the command was sent."""
        try:
            return self.process.line(begin + timeout)
        except TimeoutError:
            raise EngineError(no_answer(command, timeout)) from None

    def _allowed(self, clock: GameClock) -> float:
        """Return the seconds that the engine may take for its next move, or 0 without clock and limits."""
        return clock.allowed() + clock.margin if clock.is_limited else self.spec.limits.seconds or 0.0


def no_answer(command: str, seconds: float) -> str:
    """Return the message for an engine that is silent."""
    return f"no answer to '{command}' within {seconds:.0f} s"
