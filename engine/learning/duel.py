"""Matches of networks, anchors and engines with few visits, many games side by side: gate and ladder."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from engine.clients.spec import EngineSpec
from engine.color import BLACK, DRAW, WHITE, opponent
from engine.learning.games import Playing, Table
from engine.learning.opponents import Dropped, Opponent, Opponents, Patience
from engine.learning.policies import puct
from engine.learning.searches import Searches, SmallSearch
from engine.learning.settings import SelfPlaySettings
from engine.machine import usable_cores
from engine.matches.sprt import PAIR_SCORES, Sprt
from engine.play import Ended

if TYPE_CHECKING:
    from engine.game import Game
    from engine.options import Options

Players: TypeAlias = "tuple[Options, Options | EngineSpec]"
"""What judges positions for each of two players; the second may be an engine from outside."""
Matches: TypeAlias = "Callable[[Game[Any, Any], Players, int, int, int, float, Sprt | None], Score]"
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
    faults: tuple[str, ...] = ()
    """Of each game that an engine has spoilt, and that was played again: why."""

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
    players: Players,
    games: int,
    visits: int,
    seed: int,
    lead: float,
    sprt: Sprt | None = None,
) -> Score:
    """Return how the first of two players fared in games of pairs with the same beginning and the colors exchanged.

    Args:
        game: the descriptor.
        players: the two; an engine plays as many games at once as there are cores.
        games: how many, rounded up to an even number.
        visits: of a move, of both; an engine has its own limits.
        seed: of what is drawn.
        lead: see Learnable.begin.
        sprt: where given, ends the match as soon as it is decided.

    Raises:
        NetworkError, EvaluatorError: a player cannot be made.
        LearningError: an engine fails again and again.
    """
    with contextlib.ExitStack() as stack:
        match = _Match(game, players, games + games % 2, visits, seed, lead, stack)
        table, patience = Table(match.searches, match.begin), Patience()
        while not table.is_over:
            ended = table.play()
            spoilt = [each.why for each in ended if each is not None]
            patience.note(spoilt, len(ended) - len(spoilt))
            match.faults += spoilt
            if sprt is not None and sprt.verdict(_pairs(match.results)):
                break
    counts = Counter(match.results.values())
    return Score(counts[2], counts[1], counts[0], tuple(_pairs(match.results)), tuple(match.faults))


class _Match:
    """The games of a match."""

    def __init__(
        self,
        game: Game[Any, Any],
        players: Players,
        games: int,
        visits: int,
        seed: int,
        lead: float,
        stack: contextlib.ExitStack,
    ) -> None:
        """Load the players, which `stack` releases; see `play_match`."""
        self._learnable = game.learnable(players[0])
        self._settings = SelfPlaySettings(noise=0.0, forced_playouts=0.0)
        self._visits, self._seed, self._lead = visits, seed, lead
        self._left = deque(range(games))
        self._opponents: Opponents[Any] | None = None
        self.searches: list[Searches] = []
        """Of each player that is no engine."""
        self.results: dict[int, int] = {}
        """By a game's number, which tells its beginning and its colors: twice the first player's points."""
        self.faults: list[str] = []
        count = min(SIDE_BY_SIDE, games)
        if isinstance(players[1], EngineSpec):
            count = min(count, usable_cores())
            self._opponents = stack.enter_context(contextlib.closing(Opponents(players[1], game, count)))
        for number, options in enumerate(players):
            if not isinstance(options, EngineSpec):
                subject, queue, search = stack.enter_context(game.measured(options))
                search = dataclasses.replace(search, cache_size=0, ownership=False)
                self.searches.append(Searches(subject.spec, queue, search, count, visits, seed + number))

    def begin(self, place: Sequence[SmallSearch]) -> Playing[Dropped | None] | None:
        """Return the next game; None if there is none."""
        if not self._left:
            return None
        number = self._left.popleft()
        first = BLACK if number % 2 == 0 else WHITE
        if self._opponents is None:
            return self._play(place, number, first, None)
        return self._host(self._opponents, place, number, first)

    def _host(
        self, opponents: Opponents[Any], place: Sequence[SmallSearch], number: int, first: int
    ) -> Playing[Dropped | None]:
        """Play a game with an engine, which is played again if the engine spoils it."""
        guest = opponents.invite(opponent(first))
        assert guest is not None, "there is an engine for every game"
        dropped = yield from opponents.host(guest, self._play(place, number, first, guest))
        if dropped is not None:
            self._left.appendleft(number)
        return dropped

    def _play(
        self, place: Sequence[SmallSearch], number: int, first: int, guest: Opponent[Any] | None
    ) -> Playing[None]:
        """Play a game in which the first player is `first`, a color, and `guest` the other one, if there is one."""
        rng = np.random.default_rng([self._seed, number])
        game = self._learnable.begin(np.random.default_rng([self._seed, number // 2]), self._lead)
        half_life = HALF_LIFE * place[0].owner.side
        while (ended := self._learnable.judge(game)) is None:
            if guest is not None and game.side_to_move == guest.color:
                choice = yield from guest.choose(game)
                if isinstance(choice, Ended):
                    ended = choice
                    break
                game.push(choice)
                continue
            search = place[0] if game.side_to_move == first else place[1]
            search.begin(game)
            heat = TEMPERATURE * 0.5 ** (game.ply / half_life)
            found = yield from puct(search, self._settings, rng, self._visits, heat, False)
            game.push(found.move)
        if guest is not None:
            guest.leave(ended.winner)
        self.results[number] = 1 if ended.winner == DRAW else 2 if ended.winner == first else 0


def _pairs(results: Mapping[int, int]) -> list[int]:
    """Return how many pairs of games have each of sprt.PAIR_SCORES."""
    whole = (number for number in results if number % 2 == 0 and number + 1 in results)
    counts = Counter(results[number] + results[number + 1] for number in whole)
    return [counts[points] for points in range(len(PAIR_SCORES))]
