"""Games of duels and matches in several processes or on a cluster. A unit of work is a pair of games."""

import dataclasses
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from yomi.engine.clients.spec import OWN, EngineSpec, is_own, networks_of
from yomi.engine.clusters.actors import GATHER_SECONDS, ClusterOptions, Places, Recipe, moved, sent_networks
from yomi.engine.clusters.units import Unit, UnitPool, UnitWorker
from yomi.engine.game import Game
from yomi.engine.matches.duel import Duel, DuelConfig, DuelTask
from yomi.engine.matches.parts import unit_of
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.runner import MatchPlan, MatchRunner
from yomi.engine.options import Options
from yomi.nets.files import write_atomically

PlayedUnit: TypeAlias = tuple[Sequence[GameResult], dict[str, bytes]]  # games, and contents of records by name


class DuelUnits(UnitWorker):
    """Plays duels in an actor. The payload of a unit is its tasks. All open games of the actor share batches."""

    def __init__(
        self, places: Places, game: Game[Any, Any], players: tuple[Options, Options], config: DuelConfig, count: int
    ) -> None:
        super().__init__()
        game.compile(lambda line: None, learning=True)
        first, second = (moved(player, places) for player in players)
        self._duel = Duel(game, (first, second), config, count)
        self._open: dict[int, list[DuelTask]] = {}
        self._played = defaultdict[int, list[GameResult]](list)
        self._rounds: Iterator[list[GameResult]] | None = None

    def step(self, units: Sequence[Unit]) -> list[Unit]:
        for unit, tasks in units:
            self._open[unit] = tasks
            self._duel.tasks += tasks
        done: list[Unit] = []
        end = time.monotonic() + GATHER_SECONDS
        while self._open and (not done or time.monotonic() < end):
            self._rounds = self._rounds or self._duel.rounds()
            played = next(self._rounds, None)
            if played is None:
                self._rounds = None
            for finished in played or ():
                unit = unit_of(finished.number)
                self._played[unit].append(finished)
                if len(self._played[unit]) == len(self._open[unit]):
                    del self._open[unit]
                    games = sorted(self._played.pop(unit), key=lambda game: game.number)
                    done.append((unit, (games, {})))
        return done

    def close(self) -> None:
        self._duel.close()


class MatchUnits(UnitWorker):
    """Plays games of a match in an actor. The payload of a unit is its pairings."""

    def __init__(self, places: Places, game: Game[Any, Any], plan: MatchPlan, owned: Sequence[bool]) -> None:
        """Store the arguments. `owned` tells for each player whether it is yomi, whose path differs between nodes."""
        super().__init__()
        game.compile(lambda line: None)
        players = [placed(player, places, is_yomi) for player, is_yomi in zip(plan.players, owned, strict=True)]
        self._plan = dataclasses.replace(plan, players=players)
        self._runner = MatchRunner(self._plan)

    def work(self, number: int, payload: Any) -> PlayedUnit:
        with tempfile.TemporaryDirectory(prefix="yomi-match-") as folder:
            self._runner.plan = dataclasses.replace(self._plan, folder=Path(folder))
            results = sorted(self._runner.play(payload), key=lambda result: result.number)
            files = {name: (Path(folder) / name).read_bytes() for result in results for name in result.files}
        return results, files

    def close(self) -> None:
        self._runner.close()


def placed(player: EngineSpec, places: Places, is_yomi: bool) -> EngineSpec:
    """Return a player for a node: with the node's copies of the networks, and if it is yomi, the node's yomi."""
    if not is_yomi:
        return player
    words = player.command[len(OWN) :]
    return dataclasses.replace(player, command=(*OWN, *(places.get(word, word) for word in words)))


class PooledGames:
    """Plays pairs of games on a cluster or in processes. `folder` receives the records."""

    def __init__(
        self,
        place: ClusterOptions | int,
        prepare: Callable[[int], tuple[Recipe, int]],
        say: Callable[[str], None],
        folder: Path = Path(),
    ) -> None:
        self._pool, self._folder = UnitPool(place, prepare, say), folder

    def close(self) -> None:
        self._pool.close()

    def play(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Play games. Yield each game once its pair is finished and its records are written.

        Raises:
            ClusterError: the cluster is lost, or a game fails again and again.
            OSError: a record cannot be written.
        """
        units: dict[int, list[Any]] = {}
        for task in tasks:
            units.setdefault(unit_of(task.number), []).append(task)
        for _, (games, files) in self._pool.run(units.items()):
            for name, content in files.items():
                write_atomically(self._folder / name, content)
            yield from games


def pooled_duel(
    place: ClusterOptions | int,
    game: Game[Any, Any],
    players: tuple[Options, Options],
    config: DuelConfig,
    games: int,
    at_once: int,
    say: Callable[[str], None],
) -> PooledGames:
    """Return a player for at most `games` games. Each actor of `place` plays up to `at_once` at the same time."""

    def prepare(actors: int) -> tuple[Recipe, int]:
        count = min(at_once, 2 * -(-games // (2 * actors)))  # of whole pairs
        return Recipe(DuelUnits, (game, players, config, count), sent_networks(players)), -(-count // 2)

    return PooledGames(place, prepare, say)


def match_on_cluster(
    options: ClusterOptions, game: Game[Any, Any], plan: MatchPlan, say: Callable[[str], None]
) -> PooledGames:
    """Return a player for a match on a cluster. Each actor plays one game at a time."""
    named = (file for player in plan.players for file in networks_of(player).values())
    networks = tuple(dict.fromkeys(file for file in named if Path(file).is_file()))
    owned = [is_own(player) for player in plan.players]
    recipe = Recipe(MatchUnits, (game, dataclasses.replace(plan, parallel=1), owned), networks)
    return PooledGames(options, lambda actors: (recipe, 1), say, plan.folder)
