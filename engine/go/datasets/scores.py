"""Labels of points for positions of Go: the komi at which both sides win equally often, as COSUMI found it.

A search says how often Black wins at a komi. The komi moves by steps to where the winrate comes nearer to one half
until it has crossed it; a straight line between the last two tells where. Each stage begins at what the one before has
found, with smaller steps and more playouts.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from yomi.engine.color import BLACK
from yomi.engine.datasets.making import Columns
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.datasets.rows import Row
from yomi.engine.go.datasets.teacher import NetworkTeacher, Searchable, memory_for, seed_of
from yomi.engine.go.networks.rollouts import RolloutEvaluator
from yomi.engine.go.players.setup import ROLLOUT_BATCH, ROLLOUT_C_PUCT, ROLLOUTS_A_LEAF
from yomi.engine.search.search import Search
from yomi.engine.search.settings import SearchSettings
from yomi.engine.search.types import Limits
from yomi.native.go.spec import go_spec
from yomi.nets.errors import NetworkError

STAGES = "10:2000,4:20000,2:50000"
"""COSUMI's."""
START_KOMI = 6.5

Winrate = Callable[[float], float]
"""Black's winrate, [0, 1], at a komi."""


@dataclass(frozen=True, slots=True)
class Stage:
    """How far the komi moves at a time, and how long each search is."""

    points: int
    playouts: int


def parse_stages(text: str) -> tuple[Stage, ...]:
    """Read `POINTS:PLAYOUTS,...`.

    Raises:
        NetworkError: anything else.
    """
    if not re.fullmatch(r"[1-9]\d{0,2}:[1-9]\d{0,8}(,[1-9]\d{0,2}:[1-9]\d{0,8})*", text):
        raise NetworkError(f"score stages '{text}' found, expected POINTS:PLAYOUTS,... such as {STAGES}")
    pairs = (word.split(":") for word in text.split(","))
    return tuple(Stage(int(points), int(playouts)) for points, playouts in pairs)


def fair_komi(winrate: Callable[[int, float], float], stages: Sequence[Stage], area: int) -> float:
    """Return the komi at which Black's winrate is one half.

    Args:
        winrate: of Black, by a number of playouts at a komi.
        stages: one after the other.
        area: points of the board; the komi is not moved beyond them.
    """
    komi = START_KOMI
    for stage in stages:
        # No draws: a komi of n + 1/2.
        begin = math.floor(komi) + 0.5
        komi = crossing(functools.partial(winrate, stage.playouts), begin, stage.points, area)
    return komi


def crossing(winrate: Winrate, komi: float, step: float, area: int) -> float:
    """Return where the winrate crosses one half, searched from a komi on by steps; see `fair_komi`."""
    share = winrate(komi)
    while share != 0.5:
        following = komi + (step if share > 0.5 else -step)
        if abs(following) > area + step:
            return math.copysign(area, following)
        other = winrate(following)
        if (share - 0.5) * (other - 0.5) <= 0.0:
            return komi + (following - komi) * (share - 0.5) / (share - other)
        komi, share = following, other
    return komi


class KomiScorer:
    """Labels positions with the points that one side leads by."""

    def __init__(self, teacher: NetworkTeacher | None, stages: Sequence[Stage], seed: int) -> None:
        """Score by searches, several threads at once.

        Args:
            teacher: holds the network that judges; None for rollouts.
            stages: of the search for each position.
            seed: of the searches.
        """
        self.teacher = teacher
        self.stages = tuple(stages)
        self.seed = seed
        self._settings = _settings(teacher is not None, max(stage.playouts for stage in stages))

    def black_lead(self, row: Row) -> float:
        """Return the points that Black leads by without komi.

        Raises:
            NetworkError, EvaluatorError: the network cannot be used.
        """
        position = row.position.copy()
        search = self._new_search(position)
        black = int(position["side_to_move"]) == BLACK

        def winrate(playouts: int, komi: float) -> float:
            position["komi"] = komi
            search.clear()
            search.set_position(Searchable(position, row.history))
            share = search.run(Limits(visits=playouts)).winrate
            return share if black else 1.0 - share

        return fair_komi(winrate, self.stages, int(position["size"]) ** 2)

    def label(self, row: Row, sign: float, columns: Columns, index: int) -> None:
        """Write the lead into a row of `columns`, komi included; `sign` is 1 where they are Black's, else -1."""
        lead = sign * (self.black_lead(row) - float(row.position["komi"]))
        columns["lead"][index] = columns["score_mean"][index] = lead

    def _new_search(self, position: Any) -> Search:
        """Return the search for one position."""
        settings = replace(self._settings, seed=seed_of(position, self.seed))
        if self.teacher is not None:
            return self.teacher.new_search(position, settings)
        rollouts = RolloutEvaluator(ROLLOUTS_A_LEAF, ROLLOUT_BATCH, settings.seed)
        return Search(go_spec(int(position["size"])), InlineQueue(rollouts), settings)


def _settings(has_network: bool, playouts: int) -> SearchSettings:
    """Return the settings of a search for which a win counts and its size does not."""
    settings = SearchSettings(
        memory=memory_for(playouts),
        cache_size=0,
        score_utility=0.0,
        dynamic_score_utility=0.0,
        ownership=False,
    )
    if has_network:
        return settings
    return replace(
        settings,
        symmetry="none",
        c_puct=ROLLOUT_C_PUCT,
        fpu_from_mean=True,
        spread_scale=0.0,
        bias_correction=0.0,
        noise_pruning=0.0,
        value_weighting=0.0,
    )
