"""External engines: opponents in self-play, and anchors of the ladder.

An engine thinks in a thread of its own. Its game waits for the answer, and the other games of the process continue.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from yomi.engine.clients.client import EngineClient, EngineError, EngineProcess
from yomi.engine.clients.spec import EngineLimits, EngineSpec, SpecError, parse_spec, with_unique_names
from yomi.engine.clients.usi import UsiClient
from yomi.engine.color import BLACK, DRAW
from yomi.engine.game import Game
from yomi.engine.learning.journal import EARLIER, LearningError
from yomi.engine.learning.searches import GameCoroutine
from yomi.engine.matches.games import EngineSides, FaultError, MatchGame
from yomi.engine.play import Ended, G, end_by
from yomi.errors import reraised
from yomi.settings import OptionError

T = TypeVar("T")

FAILURES = 5  # games in a row lost to engine failures that end a run
PAUSE_SECONDS = 2.0  # before a failed engine is restarted, so that a broken one does not keep the machine busy


@dataclass(frozen=True, slots=True)
class DroppedGame:
    """A game without a result, because an engine failed."""

    why: str  # engine and fault, on one line


class FailureLimit:
    """Counts games in a row that have failed."""

    def __init__(self) -> None:
        self._failures = 0

    def note(self, faults: Sequence[str], played: int) -> None:
        """Count failed games (`faults` are their reasons) and `played` finished games.

        Raises:
            LearningError: FAILURES games in a row have failed.
        """
        self._failures = 0 if played else self._failures + len(faults)
        if self._failures >= FAILURES:
            raise LearningError(f"{self._failures} games in a row failed because of an engine: {faults[-1]}")


def opponent_spec(text: str, game: Game[Any, Any]) -> EngineSpec:
    """Parse an engine in the form of `yomi match` (see `yomi.engine.clients.spec.parse_spec`).

    Raises:
        OptionError: there is no such engine, or its limits do not suit learning.
    """
    with reraised(SpecError, OptionError):
        spec = parse_spec(text, game.name, game.protocol)
    if spec.limits.has_clock:
        raise OptionError(f"engine {spec.name} with {spec.limits}: expected no clock, such as seconds=1 (a move)")
    if spec.limits == EngineLimits() and issubclass(game.matches().client, UsiClient):
        raise OptionError(f"engine {spec.name} has no limit: add one, such as ' ;; nodes=1000'")
    return spec


def anchor_specs(texts: Sequence[str], game: Game[Any, Any], taken: Sequence[str]) -> list[EngineSpec]:
    """Parse the engines that are anchors of the ladder. Engines with the same name are numbered.

    Raises:
        OptionError: from `opponent_spec`, or a name belongs to another player (`taken`).
    """
    specs = with_unique_names([opponent_spec(text, game) for text in texts])
    for spec in specs:
        if spec.name in taken or spec.name.startswith(EARLIER):
            raise OptionError(f"anchor {spec.name}: another player has this name: add ' ;; name=NAME'")
    return specs


class Opponent(Generic[G]):
    """An engine that plays one game at a time. Its process starts at its first move, and again after a failure."""

    def __init__(self, spec: EngineSpec, kind: MatchGame[G], threads: ThreadPoolExecutor) -> None:
        self.spec, self._kind, self._threads = spec, kind, threads
        self.color = BLACK
        self._client: EngineClient | None = None
        self._process: EngineProcess | None = None
        self._sides: EngineSides[G] | None = None  # of the current game, once the engine knows it
        self._has_failed = False
        self._closed = threading.Event()

    def begin(self, color: int) -> None:
        """Join a new game with this color."""
        self.color, self._sides = color, None

    def choose(self, game: G) -> Generator[Future[int | Ended], None, int | Ended]:
        """Wait for the engine, and return its move or the end of the game. `game` must not change until then.

        Raises:
            EngineError: the engine failed, or its move is illegal.
        """
        answer = self._threads.submit(self._ask, game)
        yield answer
        return answer.result()

    def leave(self, winner: int) -> None:
        """Report the result to the engine."""
        if self._client is not None:
            with contextlib.suppress(EngineError):  # an engine that has ended by then is noticed in the next game
                self._client.game_over("draw" if winner == DRAW else "win" if winner == self.color else "lose")

    def give_up(self) -> None:
        """End a failed engine. No thread may be waiting for it."""
        self._has_failed = True
        self.kill()
        if self._client is not None:
            self._client.process.close()
        self._client = None

    def kill(self) -> None:
        """End the process at once. Thread-safe."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the engine for good."""
        self._closed.set()
        self.kill()

    def _ask(self, game: G) -> int | Ended:
        color = game.side_to_move
        client = self._started()
        if self._sides is None:
            self._sides = EngineSides(self._kind, game, {color: client})
            self._sides.set_up(color)
        try:
            decision = self._sides.choose(game)
        except FaultError as error:
            raise EngineError(f"{error.ending}: {error}") from None
        ended = end_by(decision, color)
        if ended is not None:
            return ended
        assert decision.move is not None  # otherwise the game has ended
        return decision.move

    def _started(self) -> EngineClient:
        if self._client is None:
            if self._has_failed:
                self._closed.wait(PAUSE_SECONDS)
            self._client = self._kind.client(self.spec, on_start=self._watch)
            self._has_failed = False
        return self._client

    def _watch(self, process: EngineProcess) -> None:
        self._process = process
        if self._closed.is_set():  # `kill` may have come before
            process.kill()


class OpponentPool(Generic[G]):
    """Several processes of one engine, which play some of the games. Not thread-safe."""

    def __init__(self, spec: EngineSpec, game: Game[G, Any], count: int, share: float = 1.0) -> None:
        """Prepare `count` engines for a `share` of all games. They start when they are needed."""
        kind = game.matches()
        self.spec, self._share = spec, share
        self._threads = ThreadPoolExecutor(count, f"engine {spec.name}")
        self._all = [Opponent(spec, kind, self._threads) for _ in range(count)]
        self._free = list(self._all)
        self._games = self._joined = 0

    def invite(self, color: int) -> Opponent[G] | None:
        """Return an engine for a new game, to pass to `host`; None if the share is reached or all engines play."""
        self._games += 1
        if not self._free or self._joined >= self._share * self._games:
            return None
        self._joined += 1
        engine = self._free.pop()
        engine.begin(color)
        return engine

    def host(self, engine: Opponent[G], playing: GameCoroutine[T]) -> GameCoroutine[T | DroppedGame]:
        """Play a game with an engine from `invite`. If the engine fails, drop the game and restart it later."""
        try:
            return (yield from playing)
        except EngineError as error:
            engine.give_up()
            return DroppedGame(f"{self.spec.name}: {error}")
        finally:
            self._free.append(engine)

    def close(self) -> None:
        for engine in self._all:
            engine.close()
        self._threads.shutdown()
        for engine in self._all:
            engine.give_up()
