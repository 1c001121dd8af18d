"""Workers in other processes of this machine, or on a Ray cluster. Start reading at `ActorWorkers`.

They play self-play in turns with the matches of gate and ladder. Each is asked for a few deliveries ahead. If nobody
takes them, self-play stops and matches continue.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clusters.actors import (
    BEGIN,
    GATHER_SECONDS,
    LOST,
    Actors,
    ActorTable,
    Answer,
    Cluster,
    OnLoss,
    Parcel,
    Places,
    Recipe,
)
from yomi.engine.clusters.processes import ProcessActors
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.game import Game
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.learning.workers import Delivery, SelfPlayWorker, Task
from yomi.engine.machine import usable_cores
from yomi.engine.matches.duel import SIDE_BY_SIDE, Duel, DuelTask, LearningMatch
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.score import DuelScore, MatchState
from yomi.nets.errors import NetworkError
from yomi.nets.user_files import define_function, is_in_file, read_source

AHEAD = 2  # requested deliveries of a worker: it plays for one while another waits to be taken
POLL_SECONDS = 0.2  # time one thread listens to the workers before another may
SLICE_SECONDS = 0.1  # minimum time for a match before self-play continues
# Maximum time between deliveries, even without games: matches and new networks must not wait for long games
DELIVER_SECONDS = 1.0

FindParcel: TypeAlias = Callable[[str], Parcel | None]  # the network of a path for other machines


@dataclasses.dataclass(frozen=True)
class MatchNews:
    """A worker's report about its part of a match."""

    match: int  # number of the match
    played: list[GameResult]
    faults: list[str]  # the reason for each game that an engine spoiled since the last report
    error: str = ""  # why the match cannot continue


class ActorPlayer:
    """A worker inside an actor. Its calls run one after the other."""

    def __init__(
        self,
        places: Places,
        game: Game[Any, Any],
        settings: SelfPlaySettings,
        sources: Mapping[str, str] | None,
        seed: int,
    ) -> None:
        """Prepare to play. This is slow on a node that has not compiled the game's kernels yet.

        On another machine `sources` are the texts of the Python files that the settings name by `FILE.py:NAME`.
        """
        if sources is not None:
            for name, source in sources.items():
                define_function(name, source)
            game.compile(lambda line: None)
        self._game = game
        self._selfplay = SelfPlayWorker(game, settings, seed)
        self._spent = 0.0  # seconds of self-play since the last slice of a match
        self._match = 0
        self._duel: Duel | None = None
        self._rounds: Iterator[list[GameResult]] = iter(())

    def use(self, task: Task, parcel: Parcel | None) -> None:
        self._selfplay.use(dataclasses.replace(task, options=_unpacked(task.options, parcel)))

    def play(self) -> list[Delivery]:
        begin, deliveries = time.monotonic(), list[Delivery]()
        while not deliveries or time.monotonic() - begin < GATHER_SECONDS:
            deliveries.append(self._selfplay.play(DELIVER_SECONDS))
        self._spent += time.monotonic() - begin
        return deliveries

    def begin_match(
        self, number: int, match: LearningMatch, parcels: Sequence[Parcel | None], games: Sequence[int], count: int
    ) -> MatchNews:
        """Load the players of a match, and begin some of its games, `count` at a time. `continue_match` plays them.

        `parcels` are the networks of the players; None: this worker can read the player's file.
        """
        self.end_match()
        self._match = number
        try:
            first, second = (_unpacked(*player) for player in zip(match.players, parcels, strict=True))
            self._duel = Duel(self._game, (first, second), match.config, count)
        except Exception as error:  # the thread that asked for the match raises it
            return MatchNews(number, [], [], _line(error))
        self._duel.tasks.extend(map(DuelTask, games))
        self._rounds = self._duel.rounds()
        return MatchNews(number, [], [])

    def continue_match(self) -> MatchNews:
        """Play for as long as self-play took since the last call. Without self-play wait for an engine's answer."""
        played, error = list[GameResult](), ""
        if self._duel is None:
            return MatchNews(self._match, played, [])
        end = time.monotonic() + max(SLICE_SECONDS, self._spent)
        self._duel.waits, self._spent = not self._spent, 0.0
        is_over = False
        while not is_over and time.monotonic() < end:
            try:
                found = next(self._rounds, None)
                played += found or ()
                is_over = found is None
            except Exception as fault:  # see begin_match
                error, is_over = _line(fault), True
        news = MatchNews(self._match, played, self._duel.faults[:], error)
        self._duel.faults.clear()
        if is_over:
            self.end_match()
        return news

    def end_match(self) -> None:
        if self._duel is not None:
            self._duel.close()
        self._duel, self._rounds = None, iter(())

    def close(self) -> None:
        self.end_match()
        self._selfplay.close()


def _unpacked(options: Any, parcel: Parcel | None) -> Any:
    """Return options in which the node's copy replaces the network."""
    return options if parcel is None else dataclasses.replace(options, net=parcel.unpack())


def _line(error: Exception) -> str:
    is_ours = isinstance(error, NetworkError | EvaluatorError | LearningError)
    return str(error) if is_ours else f"{type(error).__name__}: {error}"


class _Match:
    def __init__(self, number: int, match: LearningMatch, parcels: Sequence[Parcel | None]) -> None:
        self.number, self.match, self.parcels = number, match, parcels
        self.state = MatchState(match.sprt)
        self.faults: list[str] = []
        self.error = ""
        self.open = {task.number for task in match.tasks}  # unfinished games
        self.given: dict[int, set[int]] = {}  # games by worker

    def has_open_games(self, worker: int) -> bool:
        return bool(self.given.get(worker, set()) & self.open)

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


class ActorWorkers:
    """Workers in actors. If an actor is lost, only its unfinished games are lost, and it is started again.

    Two threads may use it: one that takes games, and one that plays matches.
    """

    def __init__(self, actors: ActorTable, parcel: FindParcel = lambda path: None) -> None:
        """Use `actors`, which make ActorPlayers. `parcel` returns the copy of a network that is sent to the actors."""
        self.actors = actors
        self.count = actors.count
        self._find_parcel = parcel
        self._task: tuple[Task, Parcel | None] | None = None
        self._arrived: list[tuple[int, int, list[Delivery]]] = []  # not taken: actor, number of its start, deliveries
        self._begun = [0] * actors.count  # starts of each actor
        self._playing: set[int] = set()  # actors that have been asked for deliveries since their start
        self._matches = 0
        self._match: _Match | None = None
        self._lock = threading.RLock()  # held by the thread that communicates with the actors

    def use(self, task: Task) -> None:
        with self._lock:
            self._task = task, self._parcel(task.options)
            for number in self.actors.ready:
                self._give_task(number)

    def take(self, seconds: float) -> list[Delivery]:
        """Return the deliveries that have arrived (see `Workers`).

        Raises:
            ClusterError: the cluster is lost, or no actor can play.
        """
        self._listen(seconds, lambda: bool(self._arrived))
        with self._lock:
            arrived, self._arrived = self._arrived, []
            for number, start, _ in arrived:
                if start == self._begun[number] and number in self.actors.ready:
                    self.actors.call(number, "play")
        return [delivery for _, _, deliveries in arrived for delivery in deliveries]

    def match(self, game: Game[Any, Any], match: LearningMatch) -> DuelScore:
        """Play a match (see `yomi.engine.matches.duel.play_match`) on all actors, in turns with self-play.

        Other actors play the games of a lost actor.

        Raises:
            LearningError: a player cannot be made or fails.
            ClusterError: the cluster is lost, or no actor can play.
        """
        with self._lock:
            self._matches += 1
            parcels = [self._parcel(options) for options in match.players]
            state = self._match = _Match(self._matches, match, parcels)
        try:
            while not state.is_over:
                with self._lock:
                    self._distribute(state)
                self._listen(POLL_SECONDS, lambda: state.is_over)
        finally:
            with self._lock:
                self._match = None
                for number in set(state.given).intersection(self.actors.ready):
                    self.actors.call(number, "end_match")
        if state.error:
            raise LearningError(state.error)
        return dataclasses.replace(state.state.score, faults=tuple(state.faults))

    def close(self) -> None:
        with self._lock:
            self.actors.close()

    def _distribute(self, match: _Match) -> None:
        """Send open games that no actor plays to idle actors, which have no open game of the match."""
        left = sorted(match.open - set[int]().union(*match.given.values()))
        idle = [number for number in self.actors.ready if not match.has_open_games(number)]
        if not left or not idle:
            return
        is_engine = isinstance(match.match.players[1], EngineSpec)
        count = max(1, usable_cores() // self.count) if is_engine else max(8, SIDE_BY_SIDE // self.count)
        for place, number in enumerate(idle):
            share = [each for each in left if each // 2 % len(idle) == place]  # both games of a pair
            if share:
                match.given[number] = set(share)
                part = match.number, match.match, match.parcels, share, min(count, len(share))
                self.actors.call(number, "begin_match", *part)

    def _listen(self, seconds: float, is_enough: Callable[[], bool]) -> None:
        # Two threads may wait here: each receives for both.
        end = time.monotonic() + seconds
        while not is_enough() and (left := end - time.monotonic()) > 0.0:
            if self._lock.acquire(timeout=left):
                try:
                    if not is_enough():
                        for answer in self.actors.poll(min(left, POLL_SECONDS)):
                            self._receive(answer)
                finally:
                    self._lock.release()

    def _receive(self, answer: Answer) -> None:
        number = answer.actor
        if answer.name in (BEGIN, LOST):
            self._playing.discard(number)
            if self._match is not None:
                self._match.given.pop(number, None)
        if answer.name == BEGIN:
            self._begun[number] += 1
            self._give_task(number)
        elif answer.name == "play":
            self.actors.note_success()
            self._arrived.append((number, self._begun[number], answer.value))
        elif isinstance(answer.value, MatchNews):
            self._note_match(number, answer.value)

    def _note_match(self, number: int, news: MatchNews) -> None:
        match = self._match
        if match is None or news.match != match.number:  # it has ended meanwhile
            return
        self.actors.note_success()
        match.note(news)
        if not match.is_over and match.has_open_games(number) and number in self.actors.ready:
            self.actors.call(number, "continue_match")

    def _give_task(self, number: int) -> None:
        if self._task is not None:
            self.actors.call(number, "use", *self._task)
            if number not in self._playing:
                self._playing.add(number)
                for _ in range(AHEAD):
                    self.actors.call(number, "play")

    def _parcel(self, options: Any) -> Parcel | None:
        return None if isinstance(options, EngineSpec) or options.net is None else self._find_parcel(options.net)


def process_workers(
    count: int, game: Game[Any, Any], settings: SelfPlaySettings, seed: int, on_loss: OnLoss
) -> ActorWorkers:
    """Return workers in processes of this machine. They wait for a task.

    `seed` is for the first process; each start of a process gets its own. `on_loss` is called with the number of each
    lost worker and the reason.
    """
    return ActorWorkers(ProcessActors(lambda start: _recipe(game, settings, None, seed, start), count, on_loss))


def cluster_workers(
    cluster: Cluster, game: Game[Any, Any], settings: SelfPlaySettings, seed: int, on_loss: OnLoss
) -> ActorWorkers:
    """Return workers on a Ray cluster, which start once there is room. For the arguments see `process_workers`."""
    sources = {name: read_source(name) for name in filter(is_in_file, (settings.search, settings.targets))}
    actors = Actors(cluster, lambda start: _recipe(game, settings, sources, seed, start), on_loss)
    return ActorWorkers(actors, cluster.parcel)


def _recipe(
    game: Game[Any, Any], settings: SelfPlaySettings, sources: Mapping[str, str] | None, seed: int, start: int
) -> Recipe:
    return Recipe(ActorPlayer, (game, settings, sources, seed + 7919 * start))
