"""A match: games in parallel, each in a thread with engines of its own, each result on the disk before the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.clients.client import EngineClient, EngineError, EngineProcess, OnStart
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.matches.games import Host
from yomi.engine.matches.journal import Journal
from yomi.engine.matches.results import FAULTS, GameResult, MatchError, PlayedGame, UnscoredError, key_of
from yomi.engine.matches.schedule import Pairing
from yomi.engine.play import FAILURE, Ended
from yomi.nets.files import remove_drafts, write_atomically

UNSCORED = "-unscored"
"""Marks the record of a game that is not in the journal and will be played again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A match as it is to be played."""

    players: Sequence[EngineSpec]
    """With all their limits, those of the match included."""
    pairings: Sequence[Pairing]
    openings: Sequence[str]
    make_host: Callable[[OnStart], Host[Any]]
    """Called with what the host is to call with every engine that it starts besides the players."""
    folder: Path
    parallel: int = 1
    cpus: Sequence[frozenset[int]] = ()
    """Processors of each game that runs at the same time; empty: no engine is pinned."""
    restart: bool = False
    """Start engines anew for every game."""


class Runner:
    """Plays what is left of a match."""

    def __init__(self, plan: Plan, journal: Journal, on_result: Callable[[GameResult], bool]) -> None:
        """Prepare.

        Args:
            plan: the match.
            journal: where finished games are, and go.
            on_result: called for each game once it is on the disk, one call at a time; true ends the match.
        """
        self.plan, self.journal, self.on_result = plan, journal, on_result
        done = {result.number for result in journal.results}
        self._left = iter([pairing for pairing in plan.pairings if pairing.number not in done])
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        self._started: set[str] = set()
        """Players that have started at least once."""
        self._slots = [_Slot(self, number) for number in range(plan.parallel)]

    def run(self) -> None:
        """Play until all games are played or `on_result` says that it is enough.

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

    # -- for the slots -----------------------------------------------------------------------------------------------

    def next(self) -> Pairing | None:
        """Return the next game; None when there is none."""
        with self._lock:
            return None if self._stopped.is_set() else next(self._left, None)

    @property
    def is_stopped(self) -> bool:
        """Whether the match is over; what is being played does not count any more."""
        return self._stopped.is_set()

    def note_start(self, player: EngineSpec) -> None:
        """Remember that a player can be started."""
        self._started.add(player.name)

    def has_started(self, player: EngineSpec) -> bool:
        """Whether a player has ever started in this match."""
        return player.name in self._started

    def add(self, result: GameResult) -> None:
        """Write a result down and announce it."""
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
    """One of the games that run at the same time, with engines that stay for the next one."""

    def __init__(self, runner: Runner, number: int) -> None:
        self.runner, self.number = runner, number
        plan = runner.plan
        self.cpus = plan.cpus[number % len(plan.cpus)] if plan.cpus else frozenset[int]()
        self._clients: dict[int, EngineClient] = {}
        """By player."""
        self._processes: list[EngineProcess] = []
        """Of all engines that run or start, those that score among them."""

    def run(self) -> None:
        """Play games until there are no more."""
        host = self.runner.plan.make_host(self._watch)
        try:
            for pairing in self._pairings():
                self._play(host, pairing)
        except BaseException as error:
            self.runner.fail(error)
        finally:
            host.close()
            for player in list(self._clients):
                self._drop(player)

    def kill(self) -> None:
        """End the engines at once, from any thread; whoever waits for them sees it."""
        for process in self._processes:
            process.kill()

    def _watch(self, process: EngineProcess) -> None:
        """Take note of an engine that starts."""
        self._processes = [*(each for each in self._processes if each.is_running), process]
        if self.runner.is_stopped:  # `kill` may have come before
            process.kill()

    def _pairings(self) -> Iterator[Pairing]:
        while (pairing := self.runner.next()) is not None:
            yield pairing

    def _play(self, host: Host[Any], pairing: Pairing) -> None:
        """Play one game, write its record, and hand in the result."""
        plan, runner = self.runner.plan, self.runner
        players = {BLACK: pairing.black, WHITE: pairing.white}
        opening = plan.openings[pairing.opening]
        played: PlayedGame | None = None
        clients: dict[int, EngineClient] = {}
        for color, player in players.items():
            try:
                clients[color] = self._client(host, player)
            except EngineError as failure:
                played = PlayedGame(Ended(opponent(color), FAILURE, str(failure)))
                break
        if runner.is_stopped:  # an engine that was starting may have been killed
            return
        try:
            played = played or host.play(clients, opening, f"game {pairing.number + 1}")
        except UnscoredError as error:
            if runner.is_stopped:  # what scores was killed
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

    def _client(self, host: Host[Any], player: int) -> EngineClient:
        """Return the engine of a player, started where it does not run.

        Raises:
            EngineError: it does not start, this time.
            MatchError: it has never started: the match is not well set up.
        """
        spec = self.runner.plan.players[player]
        if player in self._clients and not self._clients[player].process.is_running:
            self._drop(player)
        if player not in self._clients:
            try:
                self._clients[player] = host.kind.client(
                    spec, timeout=host.settings.timeout, cpus=self.cpus, on_start=self._watch
                )
            except EngineError as error:
                if not self.runner.has_started(spec):
                    raise MatchError(f"player {spec.name}: {error}") from None
                raise
            self.runner.note_start(spec)
        return self._clients[player]

    def _drop(self, player: int) -> None:
        self._clients.pop(player).close()

    def _write(self, pairing: Pairing, played: PlayedGame, mark: str = "") -> tuple[str, ...]:
        """Write the records of a game; a name appears only once its content is complete."""
        names = []
        for suffix, data in played.records.items():
            path = self.runner.plan.folder / f"game-{pairing.number + 1:05d}{mark}{suffix}"
            try:
                write_atomically(path, data)
            except OSError as error:
                raise MatchError(f"{path}: {error.strerror}") from None
            names.append(path.name)
        return tuple(names)
