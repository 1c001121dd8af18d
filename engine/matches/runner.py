"""A match: concurrent games, each in a thread with its own engines. Each result is stored before it is announced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from yomi.engine.clients.client import EngineClient, EngineError, EngineProcess, OnStart
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.matches.games import GameRunner
from yomi.engine.matches.results import FAULTS, GameResult, MatchError, PlayedGame, UnscoredError, key_of
from yomi.engine.matches.schedule import Pairing
from yomi.engine.play import FAILURE, Ended
from yomi.nets.files import remove_drafts, write_atomically

UNSCORED = "-unscored"  # in the names of records whose game is not in the journal and will be played again


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """The settings of a match."""

    players: Sequence[EngineSpec]  # with all limits, including those of the match
    pairings: Sequence[Pairing]
    openings: Sequence[str]
    # Called with a function that must be called with each engine the GameRunner starts
    make_game_runner: Callable[[OnStart], GameRunner[Any]]
    folder: Path
    parallel: int = 1
    cpus: Sequence[frozenset[int]] = ()  # processors of each concurrent game; empty: engines are not pinned
    restart: bool = False  # start the engines again for each game


class Journal(Protocol):
    """Receives the results of games. A `MatchJournal` is one."""

    results: list[GameResult]

    def add(self, result: GameResult) -> None: ...


class MatchRunner:
    """Plays the games of a match that are not in its journal."""

    def __init__(self, plan: MatchPlan, journal: Journal, on_result: Callable[[GameResult], bool]) -> None:
        """Prepare. `on_result` is called with each game after it was stored, one call at a time. It returns True to end
        the match.
        """
        self.plan, self.journal, self.on_result = plan, journal, on_result
        done = {result.number for result in journal.results}
        self._left = iter([pairing for pairing in plan.pairings if pairing.number not in done])
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self.started: set[str] = set()  # players that have started at least once
        self._slots = [_Slot(self, number) for number in range(plan.parallel)]

    def run(self) -> None:
        """Play until all games are played, or `on_result` ends the match.

        Raises:
            MatchError: an engine cannot be started at all, or nothing can be written.
        """
        remove_drafts(self.plan.folder)
        threads = [threading.Thread(target=slot.run, name=f"game {slot.number}") for slot in self._slots]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():  # an interrupt at the keyboard gets through between two waits
                    thread.join(0.5)
        except BaseException:
            self._stopped.set()
            for slot in self._slots:
                slot.kill()
            for thread in threads:
                thread.join()
            raise
        if self._error is not None:
            raise self._error

    def play(self, pairings: Iterable[Pairing]) -> None:
        """Play games in this thread, one after the other. The engines stay for the next call, until `close`.

        Raises:
            MatchError: as `run`.
        """
        for pairing in pairings:
            self._slots[0].play(pairing)

    def close(self) -> None:
        """End the engines of `play`."""
        self._slots[0].close()

    # -- for the slots -----------------------------------------------------------------------------------------------

    def next(self) -> Pairing | None:
        """Return the next game, or None."""
        with self._lock:
            return None if self._stopped.is_set() else next(self._left, None)

    @property
    def is_stopped(self) -> bool:
        """Whether the match is over. Unfinished games do not count any more."""
        return self._stopped.is_set()

    def add(self, result: GameResult) -> None:
        """Store a result and announce it."""
        with self._lock:
            if self._stopped.is_set():
                return
            self.journal.add(result)
            if self.on_result(result):
                self._stop()

    def fail(self, error: BaseException) -> None:
        """End the match with an error."""
        with self._lock:
            if self._error is None and not self._stopped.is_set():
                self._error = error
            self._stop()

    def _stop(self) -> None:
        self._stopped.set()
        for slot in self._slots:
            slot.kill()


class _Slot:
    """One of the concurrent games, with engines that stay for the next game."""

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
                self.play(pairing)
        except BaseException as error:
            self.runner.fail(error)
        finally:
            self.close()

    def close(self) -> None:
        if self._game_runner is not None:
            self._game_runner.close()
        for player in list(self._clients):
            self._drop(player)

    def kill(self) -> None:
        """End the engines at once, from any thread. Threads that wait for them get an error."""
        for process in self._processes:
            process.kill()

    def _watch(self, process: EngineProcess) -> None:
        """Register an engine that starts."""
        self._processes = [*(engine for engine in self._processes if engine.is_running), process]
        if self.runner.is_stopped:  # `kill` may have come before
            process.kill()

    def play(self, pairing: Pairing) -> None:
        """Play one game, write its record, and add the result."""
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
        if runner.is_stopped:  # an engine that was starting may have been killed
            return
        try:
            played = played or game_runner.play(clients, opening, f"game {pairing.number + 1}")
        except UnscoredError as error:
            if runner.is_stopped:  # `kill` has ended the scoring engine, too
                return
            files = self._write(pairing, error.played, UNSCORED)
            raise MatchError(f"{error}; the game is in {plan.folder / files[0]}") from None
        if runner.is_stopped:
            return
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
            finished=time.strftime("%Y-%m-%dT%H:%M:%S"),
            files=self._write(pairing, played),
            errors=errors,
        )
        runner.add(result)
        if plan.restart:
            for player in list(self._clients):
                self._drop(player)

    def _client(self, game_runner: GameRunner[Any], player: int) -> EngineClient:
        """Return the engine of a player; start it if it is not running.

        Raises:
            EngineError: it did not start this time.
            MatchError: it has never started: the match is set up wrongly.
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
        """Write the records of a game. Each file appears only when it is complete."""
        names = []
        for suffix, data in played.records.items():
            path = self.runner.plan.folder / f"game-{pairing.number + 1:05d}{mark}{suffix}"
            try:
                write_atomically(path, data)
            except OSError as error:
                raise MatchError(f"{path}: {error.strerror}") from None
            names.append(path.name)
        return tuple(names)
