"""Matches of two players in one process, many games side by side: the leaves of all of them share batches.

Gate and ladder of the learning loop are such matches, and so are `yomi duel` and `yomi tune`. Each game depends on its
number and on the terms alone, not on the games beside it, as long as the evaluator has no chance of its own (rollouts
have) and judges a position the same in every batch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.learning.games import Playing, Table
from yomi.engine.learning.opponents import Dropped, Opponent, Opponents, Patience
from yomi.engine.learning.policies import puct
from yomi.engine.learning.searches import Searches, SmallSearch
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.machine import usable_cores
from yomi.engine.matches.results import ORDER, GameResult, key_of
from yomi.engine.matches.sprt import PAIR_SCORES, Sprt, difference
from yomi.engine.play import Ended
from yomi.engine.search.read_tree import move_order, utility_bounds

if TYPE_CHECKING:
    from types import TracebackType

    from yomi.engine.game import Game
    from yomi.engine.options import Options

Players: TypeAlias = "tuple[Options, Options | EngineSpec]"
"""What judges positions for each of two players, and how it searches; the second may be an engine from outside."""
Matches: TypeAlias = "Callable[[Game[Any, Any], Players, int, int, int, float, Sprt | None], Score]"
"""What plays a match: `play_match`, or what does the same elsewhere."""
SIDE_BY_SIDE = 32
"""Games at once, at most."""
TEMPERATURE, HALF_LIFE = 0.6, 0.3
"""Of the first moves in the learning loop, so that games differ; and the part of a board's side after which half of a
temperature is left."""
COLD = 0.01
"""Temperature below which a player takes the move that it thinks best."""
OPENING_VISITS = 32
"""Of the search before each move of an opening that is drawn. Visits are the chances: openings follow the policy, but
for moves that the next one refutes."""
IDLE_SECONDS = 0.01
"""Seconds to wait if all games wait for an engine but the caller must not block."""
PLAYED_BY = SelfPlaySettings(noise=0.0, forced_playouts=0.0)


@dataclass(frozen=True, slots=True)
class Terms:
    """What all games of a match have in common."""

    visits: tuple[int, int]
    """Of the root for a move, of each player."""
    seed: int
    """Of what is drawn."""
    lead: float | None = None
    """Where given, games begin as those that are learned do, by this lead: see Learnable.begin; else by the options."""
    openings: Sequence[str] = ()
    """Of the pairs, in turn, as `Game.format_opening` writes them; without any the game's own beginning."""
    opening_moves: int = 0
    """Moves of each pair that are drawn; both games of the pair have the same ones."""
    temperature: float = 0.0
    """Of the moves behind the opening; it is halved again and again, see HALF_LIFE."""
    keep_tree: bool = True
    """Go on with what was searched below the moves that were played; its visits count."""


@dataclass(frozen=True, slots=True)
class Task:
    """One game to play."""

    number: int
    """Games 2n and 2n+1 are a pair: the same beginning, the first player has Black in the first of them."""
    changes: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})
    """Settings of the search that are others for the two players in this game, by name."""


@dataclass(frozen=True, slots=True)
class Played:
    """A finished game."""

    number: int
    ended: Ended
    plies: int
    opening: int
    """Plies of the opening."""
    key: str
    """Equal keys: the same moves."""

    @property
    def first(self) -> int:
        """The first player's color."""
        return BLACK if self.number % 2 == 0 else WHITE

    def result(self, names: Sequence[str]) -> GameResult:
        """Return it as journals of matches keep it, with the players' names."""
        black, white = names if self.first == BLACK else reversed(names)
        chosen = self.plies - self.opening
        return GameResult(
            self.number,
            black,
            white,
            *(self.ended.winner, self.ended.ending, self.ended.detail),
            plies=self.plies,
            chosen=(chosen - chosen // 2, chosen // 2),
            opening=self.number // 2,
            key=self.key,
        )

    @property
    def points(self) -> int:
        """2 if the first player has won, 1 for a draw, else 0."""
        return 1 if self.ended.winner == DRAW else 2 if self.ended.winner == self.first else 0


class Duel:
    """Two players and their searches. One thread uses it; leave it as a context."""

    def __init__(self, game: Game[Any, Any], players: Players, terms: Terms, count: int) -> None:
        """Load the evaluators.

        Args:
            game: the descriptor.
            players: the two. The first says the board; an engine plays as many games at once as there are cores.
            terms: of the match; an engine has its own limits.
            count: games side by side, at most.

        Raises:
            NetworkError, EvaluatorError: a player cannot be made.
        """
        self.game, self.terms, self._options = game, terms, players[0]
        self._learnable = game.learnable(players[0])
        self._searches: list[Searches] = []
        """Of each player that is no engine."""
        self._opponents: Opponents[Any] | None = None
        self._again: deque[Task] = deque()
        """Games that an engine has spoilt; they are played before others."""
        self.faults: list[str] = []
        """Of each of them: why."""
        self.waits = True
        """Whether a round lasts until an engine answers, if all games wait for one."""
        visits = max(*terms.visits, OPENING_VISITS) * (2 if terms.keep_tree else 1)
        with contextlib.ExitStack() as stack:
            if isinstance(players[1], EngineSpec):
                count = min(count, usable_cores())
                self._opponents = stack.enter_context(contextlib.closing(Opponents(players[1], game, count)))
            for number, options in enumerate(players):
                if isinstance(options, EngineSpec):
                    continue
                subject, queue, search = stack.enter_context(game.benchmark_setup(options))
                search = dataclasses.replace(search, cache_size=0, ownership=False)
                self._searches.append(Searches(subject.spec, queue, search, count, visits, terms.seed + number))
            self._stack = stack.pop_all()

    def play(self, tasks: Iterable[Task]) -> Iterator[Played]:
        """Play games and yield each as it ends; a task is taken when there is a place for its game.

        Raises:
            EvaluatorError: what the evaluator raised.
            LearningError: an engine fails again and again.
        """
        for played in self.rounds(tasks):
            yield from played

    def rounds(self, tasks: Iterable[Task]) -> Iterator[list[Played]]:
        """Play games, and yield after each round of batches the games that have ended, if any.

        Raises:
            EvaluatorError, LearningError: see `play`.
        """
        left = iter(tasks)

        def begin(place: Sequence[SmallSearch]) -> Playing[Played | Dropped] | None:
            task = self._again.popleft() if self._again else next(left, None)
            return None if task is None else self._host(place, task)

        table, patience = Table(self._searches, begin), Patience()
        ended = table.take()
        while ended or not table.is_over:
            played = [each for each in ended if isinstance(each, Played)]
            spoilt = [each.why for each in ended if isinstance(each, Dropped)]
            patience.note(spoilt, len(played))
            self.faults += spoilt
            yield played
            if not table.advance(waits=self.waits) and not self.waits:
                time.sleep(IDLE_SECONDS)
            ended = table.take()

    def close(self) -> None:
        """Release the evaluators."""
        self._stack.close()

    def __enter__(self) -> Duel:
        """Return it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Release the evaluators."""
        self.close()

    def _host(self, place: Sequence[SmallSearch], task: Task) -> Playing[Played | Dropped]:
        """Play a game, which is played again if an engine spoils it."""
        if self._opponents is None:
            return (yield from self._play_one(place, task, None))
        guest = self._opponents.invite(BLACK if task.number % 2 else WHITE)
        assert guest is not None, "there is an engine for every game"
        found = yield from self._opponents.host(guest, self._play_one(place, task, guest))
        if isinstance(found, Dropped):
            self._again.append(task)
        return found

    def _play_one(self, place: Sequence[SmallSearch], task: Task, guest: Opponent[Any] | None) -> Playing[Played]:
        """Play a game; `guest` is the second player, if that is an engine."""
        terms, number = self.terms, task.number
        rng, of_pair = (np.random.default_rng([terms.seed, each]) for each in (number, number // 2))
        for search, changes in zip(place, task.changes, strict=False):
            search.configure(dataclasses.replace(search.owner.settings, **changes))  # type: ignore[arg-type]
        played = self._begin(of_pair, number // 2)
        yield from self._open(place[number // 2 % len(place)], played, of_pair)
        opening = played.ply
        for search in place:
            search.seed(int(rng.integers(2**63)))
        first = BLACK if number % 2 == 0 else WHITE
        by_color = {first: 0, opponent(first): 1}
        rooted: list[int | None] = [None, None]
        half_life = HALF_LIFE * place[0].owner.side
        while (ended := self._learnable.judge(played)) is None:
            if guest is not None and played.side_to_move == guest.color:
                choice = yield from guest.choose(played)
                if isinstance(choice, Ended):
                    ended = choice
                    break
                played.push(choice)
                continue
            player = by_color[played.side_to_move]
            search = place[player]
            move_root(search, played, rooted[player])
            if terms.keep_tree:
                rooted[player] = len(played.moves)
            heat = terms.temperature * 0.5 ** (played.ply / half_life)
            found = yield from puct(search, PLAYED_BY, rng, terms.visits[player], heat, False)
            played.push(found.move if heat >= COLD else best_move(search))
        if guest is not None:
            guest.leave(ended.winner)
        return Played(number, ended, played.ply, opening, key_of(self.game.format_opening(played)))

    def _begin(self, rng: np.random.Generator, pair: int) -> Any:
        """Return the beginning of a pair's games."""
        terms, options = self.terms, self._options
        if terms.lead is not None:
            return self._learnable.begin(rng, terms.lead)
        if not terms.openings:
            return self.game.new_game(options)
        matches = self.game.matches()
        rules = matches.rules(options, None, options.max_moves or 0)
        return matches.begin(rules, terms.openings[pair % len(terms.openings)])

    def _open(self, search: SmallSearch, played: Any, rng: np.random.Generator) -> Generator[None, None, None]:
        """Draw the opening's moves, with one of the players."""
        search.seed(int(rng.integers(2**63)))
        for _ in range(self.terms.opening_moves):
            if self._learnable.judge(played) is not None:
                return
            search.begin(played)
            found = yield from puct(search, PLAYED_BY, rng, OPENING_VISITS, 1.0, False)
            played.push(found.move)


def move_root(search: SmallSearch, played: Any, rooted: int | None) -> None:
    """Make a game's position the root, with what is known of it where the root stood after so many of its moves."""
    search.begin(played, [] if rooted is None else [move for _, move in played.moves[rooted:]])
    search.renew()


def best_move(search: SmallSearch) -> int:
    """Return the move that a player chooses after this search: see yomi.engine.search.read_tree.move_order."""
    children = search.children()
    tried = children[children["visits"] > 0]
    return int(tried["move"][move_order(tried, utility_bounds(tried), search.settings.use_lcb)[0]])


@dataclass(frozen=True, slots=True)
class Score:
    """A match as the first player sees it."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    pairs: tuple[int, ...] = ()
    """How many have each of sprt.PAIR_SCORES."""
    faults: tuple[str, ...] = ()
    """The reason for each game that an engine spoilt; such games were played again."""

    @property
    def games(self) -> int:
        """How many there were."""
        return self.wins + self.draws + self.losses

    @property
    def share(self) -> float:
        """Points for a game, a draw is half of one."""
        return (self.wins + self.draws / 2.0) / max(1, self.games)

    def __str__(self) -> str:
        """Return the numbers in the order of all scores, with its name."""
        return f"{self.wins}-{self.losses}-{self.draws} ({ORDER})"


def score_of(points: Mapping[int, int]) -> Score:
    """Return the score of games by their numbers; see Played.points."""
    counts = Counter(points.values())
    whole = (number for number in points if number % 2 == 0 and number + 1 in points)
    pairs = Counter(points[number] + points[number + 1] for number in whole)
    return Score(counts[2], counts[1], counts[0], tuple(pairs[each] for each in range(len(PAIR_SCORES))))


class Standing:
    """How a match stands while games end in any order.

    A test sees the pairs in the order of their numbers and none behind one that still goes on: short games would come
    first else, and the end would depend on the machine.
    """

    def __init__(self, test: Sprt | None = None) -> None:
        """Begin a match, which `test` may end."""
        self.points: dict[int, int] = {}
        """Of the games by number; see Played.points."""
        self._test, self._seen = test, 0
        self.is_decided = False

    def note(self, number: int, points: int) -> None:
        """Take a game."""
        self.points[number] = points
        while not self.is_decided and self._seen in self.points and self._seen + 1 in self.points:
            self._seen += 2
            if self._test is not None:
                self.is_decided = self._test.verdict(score_of(self._tested()).pairs) != ""

    @property
    def score(self) -> Score:
        """Of all games; of those that decided a test, once they have."""
        return score_of(self._tested() if self.is_decided else self.points)

    def line(self) -> str:
        """Return how it stands on one line."""
        score = self.score
        text = f"{score}, {score.share:.1%}, {difference(score.pairs)}"
        return text if self._test is None else f"{text}; {self._test.line(score_of(self._tested()).pairs)}"

    def _tested(self) -> dict[int, int]:
        return {number: self.points[number] for number in range(self._seen)}


def learning_terms(visits: int, seed: int, lead: float) -> Terms:
    """Return the terms of gate and ladder; see play_match."""
    return Terms((visits, visits), seed, lead, temperature=TEMPERATURE, keep_tree=False)


def play_match(
    game: Game[Any, Any],
    players: Players,
    games: int,
    visits: int,
    seed: int,
    lead: float,
    sprt: Sprt | None = None,
) -> Score:
    """Return how the first of two players fared in games that begin as those that are learned do.

    Args:
        game: the descriptor.
        players: the two; see Duel.
        games: how many, rounded up to an even number.
        visits: of a move, of both; an engine has its own limits.
        seed: of what is drawn.
        lead: see Learnable.begin.
        sprt: where given, ends the match as soon as it is decided.

    Raises:
        NetworkError, EvaluatorError: a player cannot be made.
        LearningError: an engine fails again and again.
    """
    terms = learning_terms(visits, seed, lead)
    total = games + games % 2
    standing = Standing(sprt)
    with Duel(game, players, terms, min(SIDE_BY_SIDE, total)) as duel:
        for played in duel.play([Task(number) for number in range(total)]):
            standing.note(played.number, played.points)
            if standing.is_decided:
                break
        return dataclasses.replace(standing.score, faults=tuple(duel.faults))
