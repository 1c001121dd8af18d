"""What GTP and USI clients share: how an engine is started, waited for and ended, and what it answers."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yomi.engine.clients.limits import GameClock
from yomi.engine.clients.process import TIMEOUT, EngineError, EngineProcess
from yomi.engine.clients.spec import EngineSpec

OnStart: TypeAlias = Callable[[EngineProcess], None]
"""Called with the process of an engine before anything is asked of it, so that others can end it meanwhile."""
STOP_TIMEOUT = 10.0
"""Seconds that an engine may take to end a search or an analysis."""


RESIGN, WIN = "resign", "win"
"""Answers in place of a move; USI alone has the declaration of a win."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An engine's opinion of the position in which it chose its move, for the side to move."""

    winrate: float | None = None
    """In [0, 1]."""
    score: float | None = None
    """Go: points of lead; shogi: centipawns."""
    visits: int | None = None
    """Visits or nodes, as the engine counts them."""
    pv: tuple[str, ...] = ()
    mate: int | None = None
    """Shogi: plies to the mate; negative if the side to move is mated; None if the engine reports none."""

    def __str__(self) -> str:
        """Return it for a record of Go."""
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
    """A move that an engine chose."""

    move: str
    """As the protocol writes it; also RESIGN and WIN."""
    seconds: float
    """From the command to the answer."""
    evaluation: Evaluation | None = None
    """None if the engine reported none."""
    reply: str = ""
    """USI: the opponent's move that the engine expects; empty for none."""
    report: str = ""
    """GTP: the last line before the move, as the engine wrote it; empty for none."""


class EngineClient(abc.ABC):
    """One running engine. One thread calls it."""

    increment_first = False
    """Whether increments are added before each move, the first one included; else after it."""
    decimals = 2
    """Of a second, as the protocol counts time."""

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

    @abc.abstractmethod
    def choose(self, start: str, moves: Sequence[str], color: int, clocks: Mapping[int, GameClock]) -> EngineMove:
        """Have the engine choose a move in the game that it was told of last.

        Args:
            start: the initial position; only USI has words for it.
            moves: since then, of both sides in turn; the engine is told those that it does not know.
            color: the side to move, which the engine plays.
            clocks: of both colors.

        Raises:
            EngineError: it fails, or has no move within its time and the timeout.
        """

    @abc.abstractmethod
    def game_over(self, result: str) -> None:
        """Tell the engine how the game ended, if the protocol has a word for it: win, lose or draw.

        Raises:
            EngineError: the engine has gone.
        """

    def clock(self, margin: float) -> GameClock:
        """Return its clock for a game; `margin` as in GameClock."""
        return GameClock(self.spec.limits.clock(increment_first=self.increment_first), margin)

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
