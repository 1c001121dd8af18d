"""Self-play and matches on a Ray cluster. Start reading at `RayWorkers.take`.

A lost actor loses only its unfinished games.
"""

from __future__ import annotations

import dataclasses
import pickle
import time
from collections.abc import Mapping, Sequence
from typing import Any

from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clusters.actors import BEGIN, GATHER_SECONDS, Actors, Cluster, OnLoss, Parcel, Places, Recipe
from yomi.engine.game import Game
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.learning.workers import Delivery, SelfPlayWorker, Task
from yomi.engine.matches.duel import SIDE_BY_SIDE, LearningMatch, play_match
from yomi.engine.matches.score import DuelScore
from yomi.engine.options import Options
from yomi.nets.user_files import define_function, is_in_file, read_source

DELIVERIES_AHEAD = 2  # requested deliveries per actor: it plays one while another travels


class ActorPlayer:
    """The object of an actor."""

    def __init__(
        self,
        places: Places,
        game: Game[Any, Any],
        settings: SelfPlaySettings,
        sources: Mapping[str, str],
        seed: int,
    ) -> None:
        """Prepare. Slow on a node that has not compiled the game's kernels yet.

        `sources` are the texts of the Python files that the settings name by `FILE.py:NAME`, which nodes do not have.
        """
        for name, source in sources.items():
            define_function(name, source)
        self._game = game
        game.compile(lambda line: None)
        self._worker = SelfPlayWorker(game, settings, seed)

    def use(self, task: Task, parcel: Parcel | None) -> None:
        self._worker.use(dataclasses.replace(task, options=_unpacked(task.options, parcel)))

    def play(self) -> list[Delivery]:
        end = time.monotonic() + GATHER_SECONDS
        deliveries = [self._worker.play()]
        while time.monotonic() < end:
            deliveries.append(self._worker.play())
        return deliveries

    def match(self, match: LearningMatch, parcels: Sequence[Parcel | None]) -> DuelScore:
        first, second = (_unpacked(*player) for player in zip(match.players, parcels, strict=True))
        return play_match(self._game, dataclasses.replace(match, players=(first, second)))


def _unpacked(options: Any, parcel: Parcel | None) -> Any:
    """Replace the network of `options` by the node's copy of it."""
    return options if parcel is None else dataclasses.replace(options, net=parcel.unpack())


class RayWorkers:
    """Plays in actors. One thread may use it. Another one may call `match` at the same time."""

    def __init__(
        self, cluster: Cluster, game: Game[Any, Any], settings: SelfPlaySettings, seed: int, on_loss: OnLoss
    ) -> None:
        """Request the actors. They start as soon as there is room.

        `close` closes the cluster, too. `seed` is for the first actor; each start of an actor gets its own. `on_loss`
        is called with the number of each lost actor and the reason.
        """
        self._cluster = cluster
        self._task: tuple[Task, Parcel | None] | None = None
        sources = {name: read_source(name) for name in filter(is_in_file, (settings.search, settings.targets))}

        def recipe(start: int) -> Recipe:
            return Recipe(ActorPlayer, (game, settings, sources, seed + 7919 * start))

        self.actors = Actors(cluster, recipe, on_loss)
        self.count = self.actors.count

    def use(self, task: Task) -> None:
        self._task = task, self._parcel(task.options)
        for number in self.actors.ready:
            self.actors.call(number, "use", *self._task)

    def take(self, seconds: float) -> list[Delivery]:
        """Return the deliveries that have arrived (see `Workers`).

        Raises:
            ClusterError: the cluster is lost, or no actor can play.
        """
        deliveries: list[Delivery] = []
        for answer in self.actors.poll(seconds):
            if answer.name == BEGIN:
                if self._task is not None:
                    self.actors.call(answer.actor, "use", *self._task)
                for _ in range(DELIVERIES_AHEAD):
                    self.actors.call(answer.actor, "play")
            elif answer.name == "play":
                self.actors.note_success()
                deliveries += answer.value
                if answer.actor in self.actors.ready:
                    self.actors.call(answer.actor, "play")
        return deliveries

    def match(self, game: Game[Any, Any], match: LearningMatch) -> DuelScore:
        """Play `yomi.engine.matches.duel.play_match` in parts on all ready actors. Each part has its own seed.

        This process plays the parts of lost actors, and all of them if no actor is ready. `sprt` is evaluated after
        each round of parts.
        """
        parcels = [self._parcel(options) for options in match.players]
        scores, total = list[DuelScore](), DuelScore()
        left = (match.games + 1) // 2
        while left:
            actors = self.actors.handles
            parts = max(1, min(len(actors), left))
            now = left if match.sprt is None else min(left, parts * SIDE_BY_SIDE // 2)
            left -= now
            calls = []
            for part in range(parts):
                share = now * (part + 1) // parts - now * part // parts
                seed = match.seed + 1_000_003 * (len(scores) + part)
                own = dataclasses.replace(match, games=2 * share, seed=seed, sprt=None)
                calls.append((actors[part].call.remote("match", own, parcels) if actors else None, own))
            scores += [self._score(call) or play_match(game, own) for call, own in calls]
            total = _joined(scores)
            if total.is_decided(match.sprt):
                break
        return total

    def close(self) -> None:
        self.actors.close()

    def _score(self, call: Any) -> DuelScore | None:
        """Return the score of a part, or None if there is no actor or it is lost."""
        if call is None:
            return None
        while not self._cluster.ray.wait([call], timeout=1.0)[0]:
            self._cluster.check()
        try:
            score: DuelScore = pickle.loads(self._cluster.ray.get(call))
        except self._cluster.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._cluster.ray.exceptions.RayError:  # `take` reports the loss
            return None
        return score

    def _parcel(self, options: Options | EngineSpec) -> Parcel | None:
        if isinstance(options, EngineSpec) or options.net is None:
            return None
        return self._cluster.parcel(options.net)


def _joined(scores: Sequence[DuelScore]) -> DuelScore:
    wins, draws, losses = (sum(getattr(score, name) for score in scores) for name in ("wins", "draws", "losses"))
    pairs, colors = (
        tuple(map(sum, zip(*(getattr(score, name) for score in scores), strict=True))) for name in ("pairs", "colors")
    )
    return DuelScore(wins, draws, losses, pairs, tuple(why for score in scores for why in score.faults), colors)
