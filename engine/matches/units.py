"""Matches and duels on a cluster. A unit is a pair of games with one opening."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.clients.spec import OWN, EngineSpec, is_own, networks_of
from yomi.engine.clusters.actors import GATHER_SECONDS, ClusterOptions, Places, Recipe, moved, sent_networks
from yomi.engine.clusters.units import Report, UnitPool, UnitWorker
from yomi.engine.game import Game
from yomi.engine.matches.duel import Duel, DuelConfig, DuelGame, DuelTask
from yomi.engine.matches.parts import unit_of
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.runner import MatchPlan, MatchRunner
from yomi.engine.matches.schedule import Pairing
from yomi.engine.options import Options
from yomi.engine.play import Ended
from yomi.nets.files import write_atomically

NAMES = ("first", "second")  # of the players, in reports of duels


class DuelUnits(UnitWorker):
    """Plays duels in an actor. The payload of a unit is its tasks. All open games share batches."""

    def __init__(
        self, places: Places, game: Game[Any, Any], players: tuple[Options, Options], config: DuelConfig, count: int
    ) -> None:
        super().__init__()
        game.compile(lambda line: None, learning=True)
        first, second = (moved(player, places) for player in players)
        self._duel = Duel(game, (first, second), config, count)
        self._tasks = deque[DuelTask]()
        self._open: dict[int, list[DuelTask]] = {}
        self._played = defaultdict[int, list[DuelGame]](list)
        self._rounds: Iterator[list[DuelGame]] | None = None

    def step(self, units: Sequence[tuple[int, Any]]) -> list[tuple[int, bytes]]:
        for unit, tasks in units:
            self._open[unit] = tasks
            self._tasks += tasks
        done: list[tuple[int, bytes]] = []
        end = time.monotonic() + GATHER_SECONDS
        while self._open and (not done or time.monotonic() < end):
            self._rounds = self._rounds or self._duel.rounds(_Taken(self._tasks))
            played = next(self._rounds, None)
            if played is None:
                self._rounds = None
            for finished in played or ():
                unit = unit_of(finished.number)
                self._played[unit].append(finished)
                if len(self._played[unit]) == len(self._open[unit]):
                    del self._open[unit]
                    games = sorted(self._played.pop(unit), key=lambda game: game.number)
                    data = [game.result(NAMES).to_json() for game in games]
                    done.append((unit, Report(data).to_bytes()))
        return done

    def close(self) -> None:
        self._duel.close()


class _Taken:
    # An iterator of tasks that may get more after its end.

    def __init__(self, tasks: deque[DuelTask]) -> None:
        self._tasks = tasks

    def __iter__(self) -> _Taken:
        return self

    def __next__(self) -> DuelTask:
        if not self._tasks:
            raise StopIteration
        return self._tasks.popleft()


class ClusterDuel:
    """Plays duels on a cluster, as `DuelProcesses` does on processes. A context manager."""

    def __init__(
        self,
        cluster: ClusterOptions,
        game: Game[Any, Any],
        players: tuple[Options, Options],
        config: DuelConfig,
        games: int,
        at_once: int,
        say: Callable[[str], None],
    ) -> None:
        """Request the actors, for at most `games` games. Each actor plays at most `at_once` at the same time.

        Raises:
            ClusterError: the cluster cannot be used.
        """
        networks = sent_networks(players)

        def prepare(actors: int) -> tuple[Recipe, int]:
            count = min(at_once, -(-games // actors))
            return Recipe(DuelUnits, (game, players, config, count), networks), -(-count // 2)

        self._pool = UnitPool(cluster, prepare, say)

    def play(self, tasks: Sequence[DuelTask]) -> Iterator[DuelGame]:
        """Play games and yield each, pair by pair.

        Raises:
            ClusterError: the cluster is lost, or no actor can play.
        """
        units: dict[int, list[DuelTask]] = {}
        for task in tasks:
            units.setdefault(unit_of(task.number), []).append(task)

        def check(unit: int, report: Report) -> list[DuelGame]:
            results = _checked(report, {task.number: NAMES[:: 1 - 2 * (task.number % 2)] for task in units[unit]})
            if report.files:
                raise ValueError("files found, expected none")
            return [_duel_game(result) for result in results]

        for _, games in self._pool.run(units, units.__getitem__, check):
            yield from games

    def __enter__(self) -> ClusterDuel:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.close()


def _checked(report: Report, wanted: Mapping[int, Sequence[str]]) -> list[GameResult]:
    """Return the results of a report: the `wanted` games, with the players by color. Raises ValueError."""
    results = [GameResult.from_json(game) for game in report.data]
    if [result.number for result in results] != sorted(wanted):
        raise ValueError(f"games {[result.number for result in results]!r:.80} found, expected {sorted(wanted)}")
    for result in results:
        if (result.black, result.white) != tuple(wanted[result.number]):
            raise ValueError(f"{result.black!r:.40} against {result.white!r:.40} found, expected other players")
    return results


def _duel_game(result: GameResult) -> DuelGame:
    ended = Ended(result.winner, result.ending, result.detail)
    return DuelGame(result.number, ended, result.plies, result.plies - sum(result.chosen), result.key)


class MatchUnits(UnitWorker):
    """Plays games of a match in an actor. The payload of a unit is its pairings."""

    def __init__(self, places: Places, game: Game[Any, Any], plan: MatchPlan, owned: Sequence[bool]) -> None:
        """`owned` has whether each player is yomi, whose program is another one on each node."""
        super().__init__()
        game.compile(lambda line: None)
        self.results: list[GameResult] = []
        players = [placed(player, places, is_yomi) for player, is_yomi in zip(plan.players, owned, strict=True)]
        self._plan = dataclasses.replace(plan, players=players)
        self._runner = MatchRunner(self._plan, self, lambda result: False)

    def add(self, result: GameResult) -> None:
        self.results.append(result)

    def work(self, unit: int, payload: Any) -> Report:
        self.results.clear()
        with tempfile.TemporaryDirectory(prefix="yomi-match-") as folder:
            self._runner.plan = dataclasses.replace(self._plan, folder=Path(folder))
            self._runner.play(payload)
            names = [name for result in self.results for name in result.files]
            files = {name: (Path(folder) / name).read_bytes() for name in names}
        return Report([result.to_json() for result in self.results], files)

    def close(self) -> None:
        self._runner.close()


def placed(player: EngineSpec, places: Places, is_yomi: bool) -> EngineSpec:
    """Return a player with the node's own yomi, if it is yomi, and the node's copies of the networks."""
    if not is_yomi:
        return player
    words = player.command[len(OWN) :]
    return dataclasses.replace(player, command=(*OWN, *(places.get(word, word) for word in words)))


def play_on_cluster(
    cluster: ClusterOptions,
    game: Game[Any, Any],
    plan: MatchPlan,
    add: Callable[[GameResult], bool],
    say: Callable[[str], None],
    *,
    in_order: bool,
) -> None:
    """Play the games of a plan, each actor one at a time.

    Args:
        cluster: the cluster.
        game: of the match.
        plan: the match, with the games to play.
        add: stores a result, whose records are written. It returns True to end the match.
        say: receives a line for each lost actor.
        in_order: whether `add` gets the results in the order of the games.

    Raises:
        ClusterError: the cluster is lost, or a game fails again and again.
        OSError: a record cannot be written.
    """
    units: dict[int, list[Pairing]] = {}
    for pairing in plan.pairings:
        units.setdefault(unit_of(pairing.number), []).append(pairing)
    if not units:
        return
    files = (file for player in plan.players for file in networks_of(player).values())
    networks = tuple(dict.fromkeys(file for file in files if Path(file).is_file()))
    owned = [is_own(player) for player in plan.players]
    named = dataclasses.replace(plan, pairings=())
    names = [player.name for player in plan.players]

    def check(unit: int, report: Report) -> tuple[list[GameResult], Report]:
        results = _checked(report, {each.number: (names[each.black], names[each.white]) for each in units[unit]})
        files = [name for result in results for name in result.files]
        stems = {f"game-{result.number + 1:05d}" for result in results}
        if sorted(files) != sorted(report.files) or not all(Path(name).stem in stems for name in files):
            raise ValueError(f"files {sorted(report.files)!r:.80} found, expected the records of {sorted(stems)}")
        return results, report

    with UnitPool(cluster, lambda actors: (Recipe(MatchUnits, (game, named, owned), networks), 1), say) as pool:
        for _, (results, report) in pool.run(units, units.__getitem__, check, in_order=in_order):
            for name, content in report.files.items():
                write_atomically(plan.folder / name, content)
            for result in results:
                if add(result):
                    return
