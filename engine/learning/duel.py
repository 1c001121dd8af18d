"""Matches of networks and anchors with few visits, many games side by side: gate and ladder."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from engine.color import BLACK, DRAW, WHITE
from engine.learning.games import Playing, Table
from engine.learning.policies import puct
from engine.learning.searches import Searches, SmallSearch
from engine.learning.settings import SelfPlaySettings
from engine.matches.sprt import PAIR_SCORES, Sprt

if TYPE_CHECKING:
    from engine.game import Game
    from engine.options import Options

Matches: TypeAlias = "Callable[[Game[Any, Any], Sequence[Options], int, int, int, float, Sprt | None], Score]"
"""What plays a match: `play_match`, or what does the same elsewhere."""
SIDE_BY_SIDE = 32
"""Games at once, at most."""
TEMPERATURE, HALF_LIFE = 0.6, 0.3
"""Of the first moves, so that games differ; and the part of a board's side after which half of it is left."""


@dataclass(frozen=True, slots=True)
class Score:
    """A match as the first player sees it."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    pairs: tuple[int, ...] = ()
    """How many have each of sprt.PAIR_SCORES."""

    @property
    def games(self) -> int:
        """How many there were."""
        return self.wins + self.draws + self.losses

    @property
    def share(self) -> float:
        """Points for a game, a draw is half of one."""
        return (self.wins + self.draws / 2.0) / max(1, self.games)


def play_match(
    game: Game[Any, Any],
    players: Sequence[Options],
    games: int,
    visits: int,
    seed: int,
    lead: float,
    sprt: Sprt | None = None,
) -> Score:
    """Return how the first of two players fared in games of pairs with the same beginning and the colors exchanged.

    Args:
        game: the descriptor.
        players: what judges positions for each of the two.
        games: how many, rounded up to an even number.
        visits: of a move, of both.
        seed: of what is drawn.
        lead: see Learnable.begin.
        sprt: where given, ends the match as soon as it is decided.

    Raises:
        NetworkError, EvaluatorError: a player cannot be made.
    """
    learnable = game.learnable(players[0])
    settings = SelfPlaySettings(noise=0.0, forced_playouts=0.0)
    total = games + games % 2
    results: dict[int, int] = {}
    numbers = iter(range(total))

    def begin(place: Sequence[SmallSearch]) -> Playing[None] | None:
        number = next(numbers, None)
        return None if number is None else play_one(place, number)

    def play_one(place: Sequence[SmallSearch], number: int) -> Playing[None]:
        """Play a game; its result is 2 if the first player has won it, 1 for a draw, else 0."""
        rng = np.random.default_rng([seed, number])
        played = learnable.begin(np.random.default_rng([seed, number // 2]), lead)
        first = BLACK if number % 2 == 0 else WHITE
        half_life = HALF_LIFE * place[0].owner.side
        while (ended := learnable.judge(played)) is None:
            search = place[0] if played.side_to_move == first else place[1]
            search.begin(played)
            heat = TEMPERATURE * 0.5 ** (played.ply / half_life)
            found = yield from puct(search, settings, rng, visits, heat, False)
            played.push(found.move)
        results[number] = 1 if ended.winner == DRAW else 2 if ended.winner == first else 0

    with contextlib.ExitStack() as stack:
        searches = []
        for number, options in enumerate(players):
            subject, queue, search = stack.enter_context(game.measured(options))
            search = dataclasses.replace(search, cache_size=0, ownership=False)
            count = min(SIDE_BY_SIDE, total)
            searches.append(Searches(subject.spec, queue, search, count, visits, seed + number))
        table = Table(searches, begin)
        while not table.is_over:
            table.play()
            if sprt is not None and sprt.verdict(_pairs(results)):
                break
    counts = Counter(results.values())
    return Score(counts[2], counts[1], counts[0], tuple(_pairs(results)))


def _pairs(results: Mapping[int, int]) -> list[int]:
    """Return how many pairs of games have each of sprt.PAIR_SCORES."""
    whole = (number for number in results if number % 2 == 0 and number + 1 in results)
    counts = Counter(results[number] + results[number + 1] for number in whole)
    return [counts[points] for points in range(len(PAIR_SCORES))]
