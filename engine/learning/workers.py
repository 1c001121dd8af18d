"""Who plays the games: this process in turns with training, or processes of this machine beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol

from engine.color import BLACK, DRAW
from engine.learning.errors import LearningError
from engine.learning.opponents import Dropped
from engine.learning.rows import rows_of
from engine.learning.selfplay import Finished, SelfPlay
from engine.learning.store import Played

if TYPE_CHECKING:
    from engine.game import Game
    from engine.learning.settings import SelfPlaySettings
    from engine.options import Options

SHOWN_SECONDS = 30.0
"""Between two games that a worker shows."""
FAILURES = 3
"""Times that each worker may be lost, on average, before there is any game."""
RESTART_SECONDS = 5.0
"""Between two starts of a worker that is lost: one that cannot start does not keep the machine busy."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What workers play with, until told otherwise."""

    options: Options
    """Its network, or what judges without one."""
    network: str
    """Its name, or that of what judges without one."""
    leads: Mapping[int, float]
    """By board size: see Learnable.begin."""


@dataclasses.dataclass(frozen=True)
class Delivery:
    """Games that have ended."""

    games: list[Played]
    evaluations: int
    """Positions evaluated since the last delivery."""
    resigned_wrongly: list[bool] = dataclasses.field(default_factory=list)
    """Of the games that were played on although one side would have resigned: whether it did not lose."""
    points: list[float] = dataclasses.field(default_factory=list)
    """Of the network in each game against an engine: 1 for a win, 0.5 for a draw."""
    faults: list[str] = dataclasses.field(default_factory=list)
    """Of each game that an engine has spoilt: why."""
    shown: dict[str, Any] | None = None
    """Now and then a game for the page of the run, see engine.learning.page.read_games."""


class Producer:
    """Self-play as a worker does it: from tasks to deliveries."""

    def __init__(self, game: Game[Any, Any], settings: SelfPlaySettings, seed: int) -> None:
        """Wait for a task."""
        self._game, self._settings, self._seed = game, settings, seed
        self._boards: list[SelfPlay[Any]] = []
        self._task: Task | None = None
        self._shown_at = -SHOWN_SECONDS

    def use(self, task: Task) -> None:
        """Play on with another network.

        Raises:
            NetworkError, EvaluatorError: it cannot be used.
        """
        if not self._boards:
            for board in self._game.learnable(task.options).boards:
                options = dataclasses.replace(task.options, **board)
                self._boards.append(SelfPlay(self._game, options, self._settings, self._seed + len(self._boards)))
        elif self._task is None or task.options != self._task.options:
            for selfplay in self._boards:
                selfplay.use(dataclasses.replace(task.options, **selfplay.learnable.boards[0]))
        self._task = task
        for selfplay in self._boards:
            selfplay.lead = task.leads.get(selfplay.searches.side, 0.0)

    def play(self) -> Delivery:
        """Play until games have ended, on the board that has had the fewest evaluations.

        Raises:
            EvaluatorError: what the evaluator raised.
        """
        begin = time.monotonic()
        selfplay = min(self._boards, key=lambda each: each.searches.evaluations)
        before = selfplay.searches.evaluations
        ended = selfplay.play()
        finished = [each for each in ended if isinstance(each, Finished)]
        fresh = [each for each in finished if not each.reanalyzed]
        games = [self._played(selfplay, each) for each in finished]
        evaluated = selfplay.searches.evaluations
        wrong = [each.resigned_wrongly for each in finished if each.resigned_wrongly is not None]
        shown = None
        if fresh and begin - self._shown_at > SHOWN_SECONDS:
            self._shown_at, shown = begin, self._shown(selfplay, fresh[-1])
        points = [_points(each.outcome.winner, color) for each in fresh for color in each.guests]
        faults = [each.why for each in ended if isinstance(each, Dropped)]
        return Delivery(games, evaluated - before, wrong, points, faults, shown)

    def close(self) -> None:
        """Release the evaluator, and end the engines."""
        for selfplay in self._boards:
            selfplay.close()

    def _shown(self, selfplay: SelfPlay[Any], finished: Finished[Any]) -> dict[str, Any]:
        """Return a game as the page shows it: its board before each move and at the end."""
        learnable, game = selfplay.learnable, finished.game
        board = learnable.again(game)
        boards = [str(board)]
        for _, move in game.moves[board.ply :]:
            board.push(move)
            boards.append(str(board))
        words = self._game.format_opening(game).split()
        moves = words[len(words) - len(game.moves) :]  # in shogi the beginning stands before them
        values = [None] * finished.first + [
            None if ply.found is None else round(ply.found.value if side == BLACK else -ply.found.value, 3)
            for ply in finished.plies
            for side in ply.position["side_to_move"]
        ]
        ended = finished.ended
        result = f"{ended.ending} {ended.detail}".strip()
        title = f"{len(moves)} moves" + (f", komi {learnable.komi(game):g}" if learnable.points else "")
        for color, name in finished.guests.items():
            title += f", {name} has {'Black' if color == BLACK else 'White'}"
        return {
            "title": title,
            "result": result,
            "moves": moves,
            "boards": boards,
            "values": values,
        }

    def _played(self, selfplay: SelfPlay[Any], finished: Finished[Any]) -> Played:
        assert self._task is not None
        learnable, searches = selfplay.learnable, selfplay.searches
        rows = rows_of(finished, learnable, self._settings.surprise, selfplay.rng)
        margin = finished.outcome.margin
        return Played(
            rows=rows,
            record=learnable.record(finished, self._task.network),
            winner=finished.outcome.winner,
            margin=float("nan") if margin is None else margin + learnable.komi(finished.game),
            moves=finished.game.ply,
            size=searches.side,
            network=self._task.network,
            reanalyzed=finished.reanalyzed,
        )


def _points(winner: int, guest: int) -> float:
    """Return the points of the network in a game whose other side, a color, an engine has played."""
    return 0.5 if winner == DRAW else float(winner != guest)


class Workers(Protocol):
    """Those who play."""

    def use(self, task: Task) -> None:
        """Let all of them play with another network from now on."""

    def take(self, seconds: float) -> list[Delivery]:
        """Return what has been played; wait at most so long for something. Who is not asked stops playing soon."""

    def close(self) -> None:
        """End them; games in hand are lost."""


class InTurns:
    """Plays in this process whenever it is asked: the same seed gives the same games."""

    def __init__(self, game: Game[Any, Any], settings: SelfPlaySettings, seed: int) -> None:
        """Wait for a task."""
        self._producer = Producer(game, settings, seed)

    def use(self, task: Task) -> None:
        """See Workers."""
        self._producer.use(task)

    def take(self, seconds: float) -> list[Delivery]:
        """See Workers; takes as long as games take."""
        return [self._producer.play()]

    def close(self) -> None:
        """See Workers."""
        self._producer.close()


class Processes:
    """Plays in processes of this machine; one that is lost is started anew."""

    def __init__(
        self,
        count: int,
        game: Game[Any, Any],
        settings: SelfPlaySettings,
        seed: int,
        on_loss: Callable[[int, str], None],
    ) -> None:
        """Start them; they wait for a task.

        Args:
            count: of processes.
            game: the descriptor.
            settings: how games are played.
            seed: of the first; each start of each worker has one of its own.
            on_loss: told of each worker that is lost, and why.
        """
        self._context = multiprocessing.get_context("spawn")
        self._arguments = game, settings
        self._seed, self._on_loss = seed, on_loss
        self._task: Task | None = None
        self._starts = self._failures = 0
        self._started = [0.0] * count
        self._links: list[Connection | None] = [None] * count
        self._processes: list[Any] = [None] * count
        for number in range(count):
            self._start(number)

    def use(self, task: Task) -> None:
        """See Workers."""
        self._task = task
        for number, link in enumerate(self._links):
            if link is not None:
                self._send(number, link)

    def take(self, seconds: float) -> list[Delivery]:
        """See Workers.

        Raises:
            LearningError: no process can play.
        """
        for number, link in enumerate(self._links):
            if link is None and time.monotonic() - self._started[number] > RESTART_SECONDS:
                self._start(number)
        links = {link: number for number, link in enumerate(self._links) if link is not None}
        if not links:
            time.sleep(min(seconds, RESTART_SECONDS))
            return []
        deliveries = []
        for ready in wait(list(links), seconds):
            assert isinstance(ready, Connection)
            try:
                found = ready.recv()
            except (EOFError, OSError):
                self._lose(links[ready], "")
                continue
            if isinstance(found, Delivery):
                self._failures = 0
                deliveries.append(found)
            else:
                self._lose(links[ready], str(found))
        return deliveries

    def close(self) -> None:
        """See Workers."""
        for number, link in enumerate(self._links):
            if link is not None:
                link.close()
                self._end(number)

    def _start(self, number: int) -> None:
        link, other = self._context.Pipe()
        seed = self._seed + 7919 * self._starts
        self._starts += 1
        self._started[number] = time.monotonic()
        process = self._context.Process(target=serve, args=(other, *self._arguments, seed), daemon=True)
        process.start()
        other.close()
        self._links[number], self._processes[number] = link, process
        if self._task is not None:
            self._send(number, link)

    def _send(self, number: int, link: Connection) -> None:
        try:
            link.send(self._task)
        except OSError:
            self._lose(number, "")

    def _lose(self, number: int, why: str) -> None:
        link = self._links[number]
        if link is not None:
            link.close()
        self._links[number] = None
        status = self._end(number)
        why = why or f"ended with status {status}"
        self._on_loss(number, why)
        self._failures += 1
        if self._failures >= FAILURES * len(self._links):
            raise LearningError(f"no process can play: {why}")

    def _end(self, number: int) -> int | None:
        process = self._processes[number]
        process.join(1.0)
        if process.is_alive():
            process.kill()
            process.join()
        status: int | None = process.exitcode
        return status


def serve(link: Connection, game: Game[Any, Any], settings: SelfPlaySettings, seed: int) -> None:
    """Be a worker: take tasks, send deliveries, until the other end is closed. A pipe that is full makes it wait."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes to the whole group; the other end will close
    producer = Producer(game, settings, seed)
    try:
        producer.use(link.recv())
        while True:
            while link.poll():
                producer.use(link.recv())
            link.send(producer.play())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        with contextlib.suppress(OSError):
            link.send(f"{type(error).__name__}: {error}")
    finally:
        producer.close()
