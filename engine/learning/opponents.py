"""Engines from outside: they play one side of a share of the games of self-play, and are anchors of the ladder.

An engine thinks in a thread of its own. Its game waits for the answer as others wait for their searches, and the other
games of the process go on meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from yomi.engine.clients.client import RESIGN, EngineClient, EngineError, EngineProcess
from yomi.engine.clients.spec import EngineLimits, EngineSpec, GameClock, SpecError, parse_spec, with_unique_names
from yomi.engine.clients.usi import UsiClient
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.learning.errors import LearningError
from yomi.engine.learning.ratings import EARLIER
from yomi.engine.option_row import OptionError
from yomi.engine.play import DECLARATION, RESIGNATION, Ended, G

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.learning.games import Playing
    from yomi.engine.matches.games import MatchGame

T = TypeVar("T")

FAILURES = 5
"""Games in a row that engines may spoil."""
PAUSE_SECONDS = 2.0
"""Before an engine that has failed is started anew: one that cannot start does not keep the machine busy."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A game that an engine has spoilt."""

    why: str
    """The engine and its fault, on one line."""


class Patience:
    """Has an end once engines have spoilt FAILURES games in a row."""

    def __init__(self) -> None:
        """Begin anew."""
        self._failures = 0

    def note(self, faults: Sequence[str], played: int) -> None:
        """Count games.

        Args:
            faults: of each that an engine has spoilt, why.
            played: number of those that were played to their end.

        Raises:
            LearningError: it has an end.
        """
        self._failures = 0 if played else self._failures + len(faults)
        if self._failures >= FAILURES:
            raise LearningError(f"{self._failures} games in a row were spoilt by an engine: {faults[-1]}")


def opponent_spec(text: str, game: Game[Any, Any]) -> EngineSpec:
    """Read an engine as `yomi match` does (yomi.engine.clients.spec.parse_spec).

    Raises:
        OptionError: there is no such engine, or it has no limit that learning can do with.
    """
    try:
        spec = parse_spec(text, game.name, game.protocol)
    except SpecError as error:
        raise OptionError(str(error)) from None
    if spec.limits.has_clock:
        raise OptionError(f"engine {spec.name} with {spec.limits}: expected no clock, such as seconds=1 (a move)")
    if spec.limits == EngineLimits() and issubclass(game.matches().client, UsiClient):
        raise OptionError(f"engine {spec.name} has no limit: expected one behind it, such as ' ;; nodes=1000'")
    return spec


def anchor_specs(texts: Sequence[str], game: Game[Any, Any], taken: Sequence[str]) -> list[EngineSpec]:
    """Read engines that the ladder has as anchors; those of one name are numbered.

    Args:
        texts: of each.
        game: that they play.
        taken: names of other anchors.

    Raises:
        OptionError: see `opponent_spec`; or one has a name that stands for something else.
    """
    specs = with_unique_names([opponent_spec(text, game) for text in texts])
    for spec in specs:
        if spec.name in taken or spec.name.startswith(EARLIER):
            raise OptionError(f"anchor {spec.name}: this name has another player, expected ' ;; name=NAME' behind it")
    return specs


class Opponent(Generic[G]):
    """An engine that plays one game at a time. It is started when it is first asked, and anew after a failure."""

    def __init__(self, spec: EngineSpec, kind: MatchGame[G], threads: ThreadPoolExecutor) -> None:
        """Wait for a game; a thread of `threads` asks the engine."""
        self.spec, self._kind, self._threads = spec, kind, threads
        self.color = BLACK
        """Which it plays."""
        self._client: EngineClient | None = None
        self._process: EngineProcess | None = None
        self._clocks: dict[int, GameClock] = {}
        """Of the game that it was told of; none as long as it was told of none."""
        self._has_failed = False
        self._closed = threading.Event()

    def begin(self, color: int) -> None:
        """Take a seat in a game that begins."""
        self.color, self._clocks = color, {}

    def choose(self, game: G) -> Generator[Future[int | Ended], None, int | Ended]:
        """Return the move that it chooses, or how the game ends in place of one; `game` is not to change meanwhile.

        Raises:
            EngineError: it fails, or its move is illegal.
        """
        answer = self._threads.submit(self._ask, game)
        yield answer
        return answer.result()

    def leave(self, winner: int) -> None:
        """Tell it how the game has ended."""
        if self._client is not None:
            with contextlib.suppress(EngineError):  # one that has gone meanwhile is noticed in the next game
                self._client.game_over("draw" if winner == DRAW else "win" if winner == self.color else "lose")

    def give_up(self) -> None:
        """End an engine that has failed; no thread asks it."""
        self._has_failed = True
        self.kill()
        if self._client is not None:
            self._client.process.close()
        self._client = None

    def kill(self) -> None:
        """End its process at once, whatever it does; callable from any thread."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End it for good, and whatever waits for it."""
        self._closed.set()
        self.kill()

    def _ask(self, game: G) -> int | Ended:
        """Return the answer; in a thread of its own."""
        client, color, kind = self._started(), game.side_to_move, self._kind
        if not self._clocks:
            self._clocks = {each: client.clock(0.0) for each in (BLACK, WHITE)}
            kind.set_up(client, game, self._clocks[color].settings)
        moves = [kind.format_move(game, move) for _, move in game.moves]
        answer = client.choose(kind.start_of(game), moves, color, self._clocks)
        if answer.move.lower() == RESIGN:
            return Ended(opponent(color), RESIGNATION)
        try:
            decision = kind.read_answer(game, answer.move)
        except ValueError as error:
            raise EngineError(f"illegal move: {str(error)[:200]}") from None
        return Ended(color, DECLARATION) if decision.move is None else decision.move

    def _started(self) -> EngineClient:
        if self._client is None:
            if self._has_failed:
                self._closed.wait(PAUSE_SECONDS)
            self._client = self._kind.client(self.spec, on_start=self._watch)
            self._has_failed = False
        return self._client

    def _watch(self, process: EngineProcess) -> None:
        """Take note of the process that starts."""
        self._process = process
        if self._closed.is_set():  # `kill` may have come before
            process.kill()


class Opponents(Generic[G]):
    """Processes of one engine, for as many games side by side, in a share of all games. One thread uses them."""

    def __init__(self, spec: EngineSpec, game: Game[G, Any], count: int, share: float = 1.0) -> None:
        """Wait for games; the engines are started when they are needed.

        Args:
            spec: the engine.
            game: that it plays.
            count: of games at once, at most.
            share: of the games that it is invited to.
        """
        kind = game.matches()
        self.spec, self._share = spec, share
        self._threads = ThreadPoolExecutor(count, f"engine {spec.name}")
        self._all = [Opponent(spec, kind, self._threads) for _ in range(count)]
        self._free = list(self._all)
        self._games = self._joined = 0

    def invite(self, color: int) -> Opponent[G] | None:
        """Return an engine for a game that begins, which is handed to `host`; None if it has its share, or all play."""
        self._games += 1
        if not self._free or self._joined >= self._share * self._games:
            return None
        self._joined += 1
        guest = self._free.pop()
        guest.begin(color)
        return guest

    def host(self, guest: Opponent[G], playing: Playing[T]) -> Playing[T | Dropped]:
        """Play a game with an engine; if that fails the game is dropped, and the engine is started anew for the next.

        Args:
            guest: from `invite`.
            playing: the game, which asks the engine and raises what it raises.
        """
        try:
            return (yield from playing)
        except EngineError as error:
            guest.give_up()
            return Dropped(f"{self.spec.name}: {error}")
        finally:
            self._free.append(guest)

    def close(self) -> None:
        """End the engines."""
        for each in self._all:
            each.close()
        self._threads.shutdown()
        for each in self._all:
            each.give_up()
