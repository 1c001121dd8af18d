"""A match with concurrent games. Each runs in a thread with its own engines."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.clients.client import EngineClient, EngineError, EngineProcess, OnStart
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.matches.games import GameRunner
from yomi.engine.matches.results import FAULTS, GameResult, MatchError, PlayedGame, UnscoredError, key_of, local_time
from yomi.engine.matches.schedule import Pairing
from yomi.engine.play import FAILURE, Ended
from yomi.errors import reraised
from yomi.nets.files import remove_drafts, write_atomically

UNSCORED = "-unscored"  # in the names of records whose game is not in the journal and will be played again


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """The settings of a match's games."""

    players: Sequence[EngineSpec]  # with all limits, including the limits of the match
    openings: Sequence[str]
    # Called with a function that must be called with each engine the GameRunner starts
    make_game_runner: Callable[[OnStart], GameRunner[Any]]
    folder: Path
    parallel: int = 1
    cpus: Sequence[frozenset[int]] = ()  # processors of each concurrent game; empty: engines are not pinned
    restart: bool = False  # start the engines again for each game


class MatchRunner:
    """Plays the games of a match."""

    def __init__(self, plan: MatchPlan) -> None:
        self.plan = plan
        self.started: set[str] = set()  # players that have started at least once
        self._slots = [_Slot(self, number) for number in range(plan.parallel)]
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.stopped = threading.Event()  # the match is over: results of unfinished games are ignored
        self._left: Iterator[Pairing] = iter(())
        # From the slots: a game, an error that ends the match, or None if the slot has no more games
        self.found: queue.Queue[GameResult | BaseException | None] = queue.Queue()

    def play(self, tasks: Sequence[Pairing]) -> Iterator[GameResult]:
        """Play games, and yield each as it ends. Engines stay for the next call.

        Raises:
            MatchError: an engine cannot be started at all, or nothing can be written.
        """
        remove_drafts(self.plan.folder)
        self._left = iter(tasks)
        self._threads = [threading.Thread(target=slot.run, name=f"game {slot.number}") for slot in self._slots]
        for thread in self._threads:
            thread.start()
        active = len(self._threads)
        while active:
            try:
                found = self.found.get(timeout=0.5)  # an interrupt at the keyboard gets through between two waits
            except queue.Empty:
                continue
            except BaseException as error:
                found = error
            if isinstance(found, BaseException):
                yield from self._ended()
                raise found
            if found is None:
                active -= 1
            else:
                yield found

    def _ended(self) -> Iterator[GameResult]:
        """Return the games that have ended and were not returned yet, so that an error or Ctrl-C loses none."""
        with contextlib.suppress(queue.Empty):
            while True:
                if isinstance(found := self.found.get_nowait(), GameResult):
                    yield found

    def close(self) -> None:
        """End the engines and all unfinished games. Thread-safe."""
        if any(thread.is_alive() for thread in self._threads):
            self.stopped.set()
            for slot in self._slots:
                slot.kill()
        for thread in self._threads:
            thread.join()
        closers = [threading.Thread(target=slot.close) for slot in self._slots]  # engines may take their time
        for thread in closers:
            thread.start()
        for thread in closers:
            thread.join()

    def next(self) -> Pairing | None:
        """Return the next game for a slot, or None if there is none."""
        with self._lock:
            return None if self.stopped.is_set() else next(self._left, None)


class _Slot:
    """A place for one of the concurrent games, with engines that stay for the next game."""

    def __init__(self, runner: MatchRunner, number: int) -> None:
        self.runner, self.number = runner, number
        plan = runner.plan
        self.cpus = plan.cpus[number % len(plan.cpus)] if plan.cpus else frozenset[int]()
        self._clients: dict[int, EngineClient] = {}  # by player
        self._processes: list[EngineProcess] = []  # of all running and starting engines, including scorers
        self._game_runner: GameRunner[Any] | None = None

    def run(self) -> None:
        try:
            while (pairing := self.runner.next()) is not None:
                if (result := self._play(pairing)) is not None:
                    self.runner.found.put(result)
        except BaseException as error:
            if not self.runner.stopped.is_set():  # otherwise it has lost its engines
                self.runner.found.put(error)
        finally:
            self.runner.found.put(None)

    def close(self) -> None:
        if self._game_runner is not None:
            self._game_runner.close()
        for player in list(self._clients):
            self._drop(player)

    def kill(self) -> None:
        """End the engines at once. Thread-safe. Threads that wait for an engine get an error."""
        for process in self._processes:
            process.kill()

    def _watch(self, process: EngineProcess) -> None:
        """Register an engine that is starting, so that `kill` ends it, too."""
        self._processes = [*(engine for engine in self._processes if engine.is_running), process]
        if self.runner.stopped.is_set():  # `kill` may have come before
            process.kill()

    def _play(self, pairing: Pairing) -> GameResult | None:
        """Play one game and write its record. Return the result, or None if the match is over."""
        plan, runner = self.runner.plan, self.runner
        game_runner = self._game_runner = self._game_runner or plan.make_game_runner(self._watch)
        players = {BLACK: pairing.black, WHITE: pairing.white}
        opening = plan.openings[pairing.opening]
        played: PlayedGame | None = None
        clients: dict[int, EngineClient] = {}
        for color, player in players.items():
            try:
                clients[color] = self._client(game_runner, player)
            except EngineError as failure:
                played = PlayedGame(Ended(opponent(color), FAILURE, str(failure)))
                break
        if runner.stopped.is_set():  # an engine that was starting may have been killed
            return None
        try:
            played = played or game_runner.play(clients, opening, f"game {pairing.number + 1}")
        except UnscoredError as error:
            if runner.stopped.is_set():  # `kill` has ended the scoring engine, too
                return None
            files = self._write(pairing, error.played, UNSCORED)
            raise MatchError(f"{error}; the game is in {plan.folder / files[0]}") from None
        if runner.stopped.is_set():
            return None
        ended, errors = played.ended, ""
        if ended.ending in FAULTS:
            guilty = players[opponent(ended.winner)]
            if guilty in self._clients:
                errors = self._clients[guilty].process.error_tail()
                self._clients[guilty].process.kill()  # it may hang
                self._drop(guilty)
        result = GameResult(
            number=pairing.number,
            black=plan.players[pairing.black].name,
            white=plan.players[pairing.white].name,
            winner=ended.winner,
            ending=ended.ending,
            detail=ended.detail,
            plies=len(played.moves),
            seconds=played.seconds,
            chosen=played.chosen,
            opening=pairing.opening,
            key=key_of(f"{opening}|{' '.join(played.moves)}"),
            finished=local_time(),
            files=self._write(pairing, played),
            errors=errors,
        )
        if plan.restart:
            for player in list(self._clients):
                self._drop(player)
        return result

    def _client(self, game_runner: GameRunner[Any], player: int) -> EngineClient:
        """Return the engine of a player, after starting it if it is not running.

        Raises:
            EngineError: it did not start this time.
            MatchError: it has never started, so the match is set up wrongly.
        """
        spec = self.runner.plan.players[player]
        if player in self._clients and not self._clients[player].process.is_running:
            self._drop(player)
        if player not in self._clients:
            try:
                self._clients[player] = game_runner.kind.client(
                    spec,
                    timeout=game_runner.settings.timeout + game_runner.settings.margin,
                    cpus=self.cpus,
                    on_start=self._watch,
                )
            except EngineError as error:
                if spec.name not in self.runner.started:
                    raise MatchError(f"player {spec.name}: {error}") from None
                raise
            self.runner.started.add(spec.name)
        return self._clients[player]

    def _drop(self, player: int) -> None:
        self._clients.pop(player).close()

    def _write(self, pairing: Pairing, played: PlayedGame, mark: str = "") -> tuple[str, ...]:
        """Write the records of a game. A file appears only when it is complete."""
        names = []
        for suffix, data in played.records.items():
            path = self.runner.plan.folder / f"game-{pairing.number + 1:05d}{mark}{suffix}"
            with reraised(OSError, MatchError, f"{path}: "):
                write_atomically(path, data)
            names.append(path.name)
        return tuple(names)
