"""Worker processes: they play self-play in turns with the matches of gate and ladder.

Each has credit for a few deliveries. If nobody takes them, self-play stops and matches continue.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias, cast

from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clusters.processes import ChildProcess
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.game import Game
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.learning.workers import Delivery, SelfPlayWorker, Task
from yomi.engine.machine import usable_cores
from yomi.engine.matches.duel import SIDE_BY_SIDE, Duel, DuelConfig, DuelTask, LearningMatch, Players
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.score import DuelScore, MatchState
from yomi.nets.errors import NetworkError

FAILURES = 3  # losses per worker, on average, that end a run without games
RESTART_SECONDS = 5.0  # between two starts of a worker, so that a broken one does not keep the machine busy
CREDIT = 2  # deliveries of a worker that may be waiting to be taken
POLL_SECONDS = 0.2  # time one thread listens to the workers before another may
SLICE_SECONDS = 0.1  # minimum time for a match before self-play continues
# Maximum time between deliveries, even without games: matches and new networks must not wait for long games
DELIVER_SECONDS = 1.0

OnLoss: TypeAlias = Callable[[int, str], None]  # gets the number of a lost worker, and the reason


@dataclasses.dataclass(frozen=True)
class MatchPart:
    """The games of a match that one worker plays."""

    match: int  # number of the match
    players: Players
    config: DuelConfig
    tasks: Sequence[DuelTask]  # empty if the match is decided: give up the rest
    count: int  # concurrent games


@dataclasses.dataclass(frozen=True)
class MatchNews:
    """A worker's report on its part of a match."""

    match: int
    played: list[GameResult]
    faults: list[str]  # the reason for each game that an engine spoiled since the last report
    error: str = ""  # why the match cannot continue


class _Match:
    def __init__(self, number: int, match: LearningMatch) -> None:
        self.number, self.match = number, match
        self.state = MatchState(match.sprt)
        self.faults: list[str] = []
        self.error = ""
        self.open = {task.number for task in match.tasks}  # unfinished games
        self.given: dict[int, set[int]] = {}  # games by worker

    def part(self, tasks: Sequence[DuelTask], count: int) -> MatchPart:
        return MatchPart(self.number, self.match.players, self.match.config, tasks, count)

    @property
    def is_over(self) -> bool:
        return self.error != "" or self.state.is_decided or not self.open

    def note(self, report: MatchNews) -> None:
        self.faults += report.faults
        self.error = self.error or report.error
        for played in report.played:
            if played.number in self.open:
                self.open.remove(played.number)
                self.state.note(played.number, played.points)


class ProcessWorkers:
    """Plays in processes of this machine. A lost one is started again.

    Two threads may use it: one that takes games, and one that plays matches.
    """

    def __init__(
        self, count: int, game: Game[Any, Any], settings: SelfPlaySettings, seed: int, on_loss: OnLoss
    ) -> None:
        """Start the processes. They wait for a task.

        `seed` is for the first process; each start of a process gets its own. `on_loss` is called with the number of
        each lost worker and the reason.
        """
        self._arguments = game, settings
        self._seed, self._on_loss = seed, on_loss
        self._task: Task | None = None
        self._starts = self._failures = self._matches = 0
        self._started = [0.0] * count
        self._children: list[ChildProcess | None] = [None] * count  # None: lost, and not started again yet
        self._arrived: list[tuple[int, int, Delivery]] = []  # untaken deliveries: worker, number of its start, delivery
        self._starts_of = [0] * count
        self._match: _Match | None = None
        self._lock = threading.RLock()  # held by the thread that communicates with the workers
        for number in range(count):
            self._start(number)

    def use(self, task: Task) -> None:
        with self._lock:
            self._task = task
            for number in range(len(self._children)):
                self._send(number, task)

    def take(self, seconds: float) -> list[Delivery]:
        """Return the deliveries that have arrived (see `Workers`).

        Raises:
            LearningError: no process can play.
        """
        self._listen(seconds, lambda: bool(self._arrived))
        with self._lock:
            arrived, self._arrived = self._arrived, []
            for number, start, _ in arrived:
                if start == self._starts_of[number]:
                    self._send(number, None)
        return [delivery for _, _, delivery in arrived]

    def match(self, game: Game[Any, Any], match: LearningMatch) -> DuelScore:
        """Play `yomi.engine.matches.duel.play_match` on all workers, in turns with self-play.

        Other workers play the games of a lost one.

        Raises:
            LearningError: a player cannot be made or fails, or no process can play.
        """
        with self._lock:
            self._matches += 1
            state = self._match = _Match(self._matches, match)
        try:
            while not state.is_over:
                with self._lock:
                    self._distribute(state)
                self._listen(POLL_SECONDS, lambda: state.is_over)
        finally:
            with self._lock:
                self._match = None
                for number in state.given:
                    self._send(number, state.part((), 0))
        if state.error:
            raise LearningError(state.error)
        return dataclasses.replace(state.state.score, faults=tuple(state.faults))

    def _distribute(self, match: _Match) -> None:
        """Send the open games that no worker plays to the idle workers, which have no open game of the match."""
        given = set[int]().union(*match.given.values())
        left = sorted(match.open - given)
        idle = [
            number
            for number, child in enumerate(self._children)
            if child is not None and not match.given.get(number, set()) & match.open
        ]
        if not left or not idle:
            return
        is_engine = isinstance(match.match.players[1], EngineSpec)
        count = (
            max(1, usable_cores() // len(self._children)) if is_engine else max(8, SIDE_BY_SIDE // len(self._children))
        )
        for place, number in enumerate(idle):
            share = [each for each in left if each // 2 % len(idle) == place]  # both games of a pair
            if share:
                match.given[number] = set(share)
                tasks = [DuelTask(game) for game in share]
                self._send(number, match.part(tasks, min(count, len(share))))

    def close(self) -> None:
        with self._lock:
            for child in (left := [child for child in self._children if child is not None]):
                child.link.close()
            for child in left:
                child.end()
            self._children = [None] * len(self._children)

    def _listen(self, seconds: float, is_enough: Callable[[], bool]) -> None:
        # Two threads may wait here: each receives for both.
        end = time.monotonic() + seconds
        while not is_enough() and (left := end - time.monotonic()) > 0.0:
            if self._lock.acquire(timeout=left):
                try:
                    if not is_enough():
                        self._receive(min(left, POLL_SECONDS))
                finally:
                    self._lock.release()

    def _receive(self, seconds: float) -> None:
        """Receive messages for at most `seconds`, and restart lost workers."""
        for number, child in enumerate(self._children):
            if child is None and time.monotonic() - self._started[number] > RESTART_SECONDS:
                self._start(number)
        links = {child.link: number for number, child in enumerate(self._children) if child is not None}
        if not links:
            time.sleep(min(seconds, RESTART_SECONDS))
            return
        # On Windows the links are PipeConnections.
        for link in cast("list[Connection]", wait(list(links), seconds)):
            try:
                found = link.recv()
            except (EOFError, OSError):
                self._lose(links[link], "")
                continue
            if isinstance(found, Delivery):
                self._failures = 0
                self._arrived.append((links[link], self._starts_of[links[link]], found))
            elif not isinstance(found, MatchNews):
                self._lose(links[link], str(found))
            elif self._match is not None and self._match.number == found.match:
                self._failures = 0
                self._match.note(found)

    def _start(self, number: int) -> None:
        seed = self._seed + 7919 * self._starts
        self._starts += 1
        self._starts_of[number] = self._starts
        self._started[number] = time.monotonic()
        self._children[number] = ChildProcess(work, *self._arguments, seed)
        if self._task is not None:
            self._send(number, self._task)

    def _send(self, number: int, message: Task | MatchPart | None) -> None:
        """Send a worker a task, a part of a match, or None: credit for one more delivery."""
        if (child := self._children[number]) is not None:
            try:
                child.link.send(message)
            except OSError:
                self._lose(number, "")

    def _lose(self, number: int, why: str) -> None:
        child = self._children[number]
        assert child is not None
        self._children[number] = None
        if self._match is not None:
            self._match.given.pop(number, None)
        status = child.end()
        why = why or f"ended with status {status}"
        self._on_loss(number, why)
        self._failures += 1
        if self._failures >= FAILURES * len(self._children):
            raise LearningError(f"no process can play: {why}")


class _Worker:
    """A worker process: self-play while it has credit, in turns with its part of a match."""

    def __init__(self, link: Connection, game: Game[Any, Any], settings: SelfPlaySettings, seed: int) -> None:
        self._link, self._game = link, game
        self._selfplay = SelfPlayWorker(game, settings, seed)
        self._credit = CREDIT
        self._has_task = False
        self._part: MatchPart | None = None
        self._duel: Duel | None = None
        self._rounds: Iterator[list[GameResult]] | None = None

    def run(self) -> None:
        while True:
            plays = self._has_task and self._credit > 0
            while (not plays and self._rounds is None) or self._link.poll():
                self._take(self._link.recv())
                plays = self._has_task and self._credit > 0
            seconds = SLICE_SECONDS
            if plays:
                begin = time.monotonic()
                self._link.send(self._selfplay.play(DELIVER_SECONDS))
                self._credit -= 1
                seconds = max(seconds, time.monotonic() - begin)
            if self._rounds is not None:
                self._play_match(seconds, waits=not plays)

    def close(self) -> None:
        self._end_match()
        self._selfplay.close()

    def _take(self, message: Task | MatchPart | None) -> None:
        if isinstance(message, Task):
            self._selfplay.use(message)
            self._has_task = True
        elif isinstance(message, MatchPart):
            self._end_match()
            if message.tasks:
                self._begin_match(message)
        else:
            self._credit += 1

    def _begin_match(self, part: MatchPart) -> None:
        try:
            self._duel = Duel(self._game, part.players, part.config, part.count)
        except Exception as error:  # the thread that asked for the match raises it
            self._link.send(MatchNews(part.match, [], [], _line(error)))
            return
        self._duel.tasks.extend(part.tasks)
        self._part, self._rounds = part, self._duel.rounds()

    def _play_match(self, seconds: float, waits: bool) -> None:
        """Play for some time. Wait for an engine's answer only if `waits` is set."""
        assert self._part is not None
        assert self._duel is not None
        assert self._rounds is not None
        end, played, is_over = time.monotonic() + seconds, list[GameResult](), False
        error = ""
        self._duel.waits = waits
        while not is_over and time.monotonic() < end:
            try:
                played += next(self._rounds)
            except StopIteration:
                is_over = True
            except Exception as found:  # see _begin_match
                error, is_over = _line(found), True
        if played or self._duel.faults or error:
            self._link.send(MatchNews(self._part.match, played, self._duel.faults[:], error))
            self._duel.faults.clear()
        if is_over:
            self._end_match()

    def _end_match(self) -> None:
        if self._duel is not None:
            self._duel.close()
        self._part = self._duel = self._rounds = None


def _line(error: Exception) -> str:
    is_ours = isinstance(error, NetworkError | EvaluatorError | LearningError)
    return str(error) if is_ours else f"{type(error).__name__}: {error}"


def work(link: Connection, game: Game[Any, Any], settings: SelfPlaySettings, seed: int) -> None:
    """Play, in a process, until the connection is closed."""
    worker = _Worker(link, game, settings, seed)
    try:
        worker.run()
    finally:
        worker.close()
