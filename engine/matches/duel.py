"""Matches of two players in one process. Many concurrent games share the batches.

Gate and ladder of the learning loop, `yomi duel` and `yomi tune` are such matches. A game depends only on its number
and on the DuelConfig, if the evaluator is deterministic (rollouts are not) and independent of the batch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.game import Game
from yomi.engine.learning.opponents import DroppedGame, FailureLimit, Opponent, OpponentPool
from yomi.engine.learning.policies import puct
from yomi.engine.learning.searches import ConcurrentGames, GameCoroutine, GameSearch, Searches
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.machine import usable_cores
from yomi.engine.matches.rating import Sprt
from yomi.engine.matches.results import GameResult, key_of
from yomi.engine.matches.score import DuelScore, MatchState
from yomi.engine.options import Options
from yomi.engine.play import Ended
from yomi.engine.search.read_tree import COLD, move_order, utility_bounds

# The options of two players. The second one may be an external engine.
Players: TypeAlias = "tuple[Options, Options | EngineSpec]"
# Plays a match: `play_match`, or a function with the same arguments
Matches: TypeAlias = "Callable[[Game[Any, Any], LearningMatch], DuelScore]"
PLAYERS = "first", "second"  # their names in results
SIDE_BY_SIDE = 32  # maximum number of concurrent games
# Temperature of the first moves in gate and ladder, so that games differ; and the fraction of the board size after
# which a temperature is halved.
TEMPERATURE, HALF_LIFE = 0.6, 0.3
# Visits per move of a drawn opening. Moves are drawn by visits, so that openings follow the policy, without refuted
# moves.
OPENING_VISITS = 32
IDLE_SECONDS = 0.01  # pause if all games wait for an engine and the caller must not block
DUEL_SETTINGS = SelfPlaySettings(noise=0.0, forced_playouts=0.0)


@dataclass(frozen=True, slots=True)
class DuelConfig:
    """Settings of all games of a match."""

    visits: tuple[int, int]  # of the root per move, for each player
    seed: int
    # If set, games begin like self-play games (see `Learnable.new_game`), otherwise by the options
    lead: float | None = None
    # Used in turn, one per pair, in the form of Game.format_opening; empty: the game's initial position
    openings: Sequence[str] = ()
    opening_moves: int = 0  # moves drawn for each pair; both games of a pair begin with them
    temperature: float = 0.0  # of the first moves after the opening; it is halved again and again, see HALF_LIFE
    keep_tree: bool = True  # reuse the subtree of the played moves; its visits count


@dataclass(frozen=True, slots=True)
class DuelTask:
    """A game to play."""

    number: int  # Games 2n and 2n+1 are a pair with the same beginning. The first player is Black in game 2n.
    # Search settings of the two players that differ in this game, by name
    changes: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})


class Duel:
    """The games of two players, with the searches of both. Not thread-safe."""

    def __init__(self, game: Game[Any, Any], players: Players, config: DuelConfig, count: int) -> None:
        """Load the evaluators for at most `count` concurrent games. An engine plays at most one game per core.

        Raises:
            NetworkError, EvaluatorError: a player cannot be made.
        """
        self.game, self.config, self._options = game, config, players[0]
        self._learnable = game.learnable(players[0])
        self._searches: list[Searches] = []  # of each player that is not an engine
        self._opponents: OpponentPool[Any] | None = None
        self.tasks = deque[DuelTask]()  # games to play; a game that failed because of an engine becomes the first
        self.faults: list[str] = []  # the reasons of such games
        self.waits = True  # whether a round may block until an engine answers
        visits = max(*config.visits, OPENING_VISITS) * (2 if config.keep_tree else 1)
        with contextlib.ExitStack() as stack:
            if isinstance(players[1], EngineSpec):
                count = min(count, usable_cores())
                self._opponents = stack.enter_context(contextlib.closing(OpponentPool(players[1], game, count)))
            for number, options in enumerate(players):
                if isinstance(options, EngineSpec):
                    continue
                subject, queue, search = stack.enter_context(game.benchmark_setup(options))
                search = dataclasses.replace(search, cache_size=0, ownership=False)
                self._searches.append(Searches(subject.spec, queue, search, count, visits, config.seed + number))
            self._stack = stack.pop_all()

    def play(self, tasks: Iterable[DuelTask]) -> Iterator[GameResult]:
        """Play games and yield each as it ends.

        Raises:
            EvaluatorError: from the evaluator.
            LearningError: an engine fails again and again.
        """
        self.tasks = deque(tasks)
        for played in self.rounds():
            yield from played

    def rounds(self) -> Iterator[list[GameResult]]:
        """Play the games of `tasks`. After each round of batches yield a list of the finished games, which may be
        empty.

        Raises:
            EvaluatorError, LearningError: see `play`.
        """

        def begin(slot: Sequence[GameSearch]) -> GameCoroutine[GameResult | DroppedGame] | None:
            return self._host(slot, self.tasks.popleft()) if self.tasks else None

        table, failure_limit = ConcurrentGames(self._searches, begin), FailureLimit()
        ended = table.take()
        while ended or not table.is_over:
            played = [game for game in ended if isinstance(game, GameResult)]
            faults = [game.why for game in ended if isinstance(game, DroppedGame)]
            failure_limit.note(faults, len(played))
            self.faults += faults
            yield played
            table.refill()
            if not table.advance(waits=self.waits) and not self.waits:
                time.sleep(IDLE_SECONDS)
            ended = table.take()

    def close(self) -> None:
        self._stack.close()

    def _host(self, slot: Sequence[GameSearch], task: DuelTask) -> GameCoroutine[GameResult | DroppedGame]:
        """Play a game. If an engine fails, put the game back into the queue."""
        if self._opponents is None:
            return (yield from self._play_one(slot, task, None))
        engine = self._opponents.invite(BLACK if task.number % 2 else WHITE)
        assert engine is not None, "there is an engine for every game"
        found = yield from self._opponents.host(engine, self._play_one(slot, task, engine))
        if isinstance(found, DroppedGame):
            self.tasks.appendleft(task)
        return found

    def _play_one(
        self, slot: Sequence[GameSearch], task: DuelTask, engine: Opponent[Any] | None
    ) -> GameCoroutine[GameResult]:
        """Play a game. `engine` is the second player if that is an engine."""
        config, number = self.config, task.number
        rng, pair_rng = (np.random.default_rng([config.seed, part]) for part in (number, number // 2))
        for search, changes in zip(slot, task.changes, strict=False):
            search.configure(dataclasses.replace(search.owner.settings, **changes))  # type: ignore[arg-type]
        played = self._begin(pair_rng, number // 2)
        yield from self._open(slot[number // 2 % len(slot)], played, pair_rng)
        opening, begins = played.ply, played.side_to_move
        for search in slot:
            search.seed(int(rng.integers(2**63)))
        first = BLACK if number % 2 == 0 else WHITE
        by_color = {first: 0, opponent(first): 1}
        rooted: list[int | None] = [None, None]
        half_life = HALF_LIFE * slot[0].owner.side
        while (ended := self._learnable.judge(played)) is None:
            if engine is not None and played.side_to_move == engine.color:
                choice = yield from engine.choose(played)
                if isinstance(choice, Ended):
                    ended = choice
                    break
                played.push(choice)
                continue
            player = by_color[played.side_to_move]
            search = slot[player]
            move_root(search, played, rooted[player])
            if config.keep_tree:
                rooted[player] = len(played.moves)
            temperature = config.temperature * 0.5 ** (played.ply / half_life)
            found = yield from puct(search, DUEL_SETTINGS, rng, config.visits[player], temperature, False)
            played.push(found.move if temperature >= COLD else best_move(search))
        if engine is not None:
            engine.leave(ended.winner)
        black, white = PLAYERS if first == BLACK else reversed(PLAYERS)
        count = played.ply - opening
        chosen = count - count // 2, count // 2
        return GameResult(
            number,
            black,
            white,
            *(ended.winner, ended.ending, ended.detail),
            plies=played.ply,
            chosen=chosen if begins == BLACK else chosen[::-1],
            opening=number // 2,
            key=key_of(self.game.format_opening(played)),
        )

    def _begin(self, rng: np.random.Generator, pair: int) -> Any:
        config, options = self.config, self._options
        if config.lead is not None:
            return self._learnable.new_game(rng, config.lead)
        if not config.openings:
            return self.game.new_game(options)
        matches = self.game.matches()
        rules = matches.rules(options, None, options.max_moves or 0)
        return matches.begin(rules, config.openings[pair % len(config.openings)])

    def _open(self, search: GameSearch, played: Any, rng: np.random.Generator) -> Generator[None, None, None]:
        """Draw the opening moves of a game with the search of one player."""
        search.seed(int(rng.integers(2**63)))
        for _ in range(self.config.opening_moves):
            if self._learnable.judge(played) is not None:
                return
            search.begin(played)
            found = yield from puct(search, DUEL_SETTINGS, rng, OPENING_VISITS, 1.0, False)
            played.push(found.move)


def move_root(search: GameSearch, played: Any, rooted: int | None) -> None:
    """Make a game's position the root. Reuse the tree of the position after `rooted` moves, unless that is None."""
    search.begin(played, None if rooted is None else [move for _, move in played.moves[rooted:]])
    search.renew(search.owner.queue)


def best_move(search: GameSearch) -> int:
    """Return the best move of a finished search. If no move has a visit, return the move with the highest prior."""
    children = search.children()
    tried = children[children["visits"] > 0]
    if not len(tried):
        return int(children["move"][children["prior"].argmax()])
    return int(tried["move"][move_order(tried, utility_bounds(tried), search.settings.use_lcb)[0]])


@dataclass(frozen=True, slots=True)
class LearningMatch:
    """A match of the gate or the ladder. Its games begin like self-play games."""

    players: Players  # the first one sets the board
    games: int  # rounded up to an even number
    visits: int  # per move of both players; an engine has its own limits
    seed: int
    lead: float  # see Learnable.new_game
    sprt: Sprt | None = None  # ends the match when it is decided

    @property
    def tasks(self) -> list[DuelTask]:
        return [DuelTask(number) for number in range(self.games + self.games % 2)]

    @property
    def config(self) -> DuelConfig:
        visits = self.visits, self.visits
        return DuelConfig(visits, self.seed, self.lead, temperature=TEMPERATURE, keep_tree=False)


def play_match(game: Game[Any, Any], match: LearningMatch) -> DuelScore:
    """Play a match in this process. Return the score of the first player.

    Raises:
        NetworkError, EvaluatorError: a player cannot be made.
        LearningError: an engine fails again and again.
    """
    tasks, state = match.tasks, MatchState(match.sprt)
    with contextlib.closing(Duel(game, match.players, match.config, min(SIDE_BY_SIDE, len(tasks)))) as duel:
        for played in duel.play(tasks):
            state.note(played.number, played.points)
            if state.is_decided:
                break
        return dataclasses.replace(state.score, faults=tuple(duel.faults))
