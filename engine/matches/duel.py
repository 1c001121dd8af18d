"""Matches of two players in one process. Many concurrent games share the batches.

Gate and ladder of the learning loop, `yomi duel` and `yomi tune` are such matches. A game depends only on its number
and on the DuelConfig, if the evaluator is deterministic (rollouts are not) and independent of the batch.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.game import Game
from yomi.engine.learning.opponents import DroppedGame, FailureLimit, Opponent, OpponentPool
from yomi.engine.learning.policies import puct
from yomi.engine.learning.searches import ConcurrentGames, GameCoroutine, GameSearch, Searches
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.machine import usable_cores
from yomi.engine.matches.rating import PAIR_SCORES, Sprt, color_note, difference
from yomi.engine.matches.results import ORDER, GameResult, MatchError, WinDrawLoss, key_of
from yomi.engine.options import Options
from yomi.engine.play import Ended
from yomi.engine.search.read_tree import COLD, move_order, utility_bounds

# The options of two players. The second one may be an external engine.
Players: TypeAlias = "tuple[Options, Options | EngineSpec]"
# Plays a match: `play_match`, or a function with the same arguments
Matches: TypeAlias = "Callable[[Game[Any, Any], LearningMatch], DuelScore]"
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
    # If set, games begin like those of self-play (see `Learnable.new_game`), otherwise by the options
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


@dataclass(frozen=True, slots=True)
class DuelGame:
    """A finished game of a duel."""

    number: int
    ended: Ended
    plies: int
    opening: int  # plies of the opening
    key: str  # equal for equal moves

    @property
    def first(self) -> int:
        """Color of the first player."""
        return BLACK if self.number % 2 == 0 else WHITE

    def result(self, names: Sequence[str]) -> GameResult:
        """Return the game in the form of the journal."""
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
        """Points of the first player: 2 for a win, 1 for a draw, otherwise 0."""
        return 1 if self.ended.winner == DRAW else 2 if self.ended.winner == self.first else 0


class Duel:
    """Two players and their searches. Not thread-safe. A context manager."""

    def __init__(self, game: Game[Any, Any], players: Players, config: DuelConfig, count: int) -> None:
        """Load the evaluators for at most `count` concurrent games. An engine plays at most one game per core.

        Raises:
            NetworkError, EvaluatorError: a player cannot be made.
        """
        self.game, self.config, self._options = game, config, players[0]
        self._learnable = game.learnable(players[0])
        self._searches: list[Searches] = []  # of each player that is not an engine
        self._opponents: OpponentPool[Any] | None = None
        self._again: deque[DuelTask] = deque()  # games that failed because of an engine; they are played first
        self.faults: list[str] = []  # their reasons
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

    def play(self, tasks: Iterable[DuelTask]) -> Iterator[DuelGame]:
        """Play games and yield each as it ends. Takes a task only when there is a free slot.

        Raises:
            EvaluatorError: from the evaluator.
            LearningError: an engine fails again and again.
        """
        for played in self.rounds(tasks):
            yield from played

    def rounds(self, tasks: Iterable[DuelTask]) -> Iterator[list[DuelGame]]:
        """Play games. Yield a list of the finished games, maybe empty, after each round of batches.

        An iterator of tasks that has ended is asked again while games are played.

        Raises:
            EvaluatorError, LearningError: as in `play`.
        """
        left = iter(tasks)

        def begin(slot: Sequence[GameSearch]) -> GameCoroutine[DuelGame | DroppedGame] | None:
            task = self._again.popleft() if self._again else next(left, None)
            return None if task is None else self._host(slot, task)

        table, failure_limit = ConcurrentGames(self._searches, begin), FailureLimit()
        ended = table.take()
        while ended or not table.is_over:
            played = [game for game in ended if isinstance(game, DuelGame)]
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

    def __enter__(self) -> Duel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _host(self, slot: Sequence[GameSearch], task: DuelTask) -> GameCoroutine[DuelGame | DroppedGame]:
        """Play a game. If an engine fails, the game is queued again."""
        if self._opponents is None:
            return (yield from self._play_one(slot, task, None))
        engine = self._opponents.invite(BLACK if task.number % 2 else WHITE)
        assert engine is not None, "there is an engine for every game"
        found = yield from self._opponents.host(engine, self._play_one(slot, task, engine))
        if isinstance(found, DroppedGame):
            self._again.append(task)
        return found

    def _play_one(
        self, slot: Sequence[GameSearch], task: DuelTask, engine: Opponent[Any] | None
    ) -> GameCoroutine[DuelGame]:
        """Play a game. `engine` is the second player if that is an engine."""
        config, number = self.config, task.number
        rng, pair_rng = (np.random.default_rng([config.seed, part]) for part in (number, number // 2))
        for search, changes in zip(slot, task.changes, strict=False):
            search.configure(dataclasses.replace(search.owner.settings, **changes))  # type: ignore[arg-type]
        played = self._begin(pair_rng, number // 2)
        yield from self._open(slot[number // 2 % len(slot)], played, pair_rng)
        opening = played.ply
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
        return DuelGame(number, ended, played.ply, opening, key_of(self.game.format_opening(played)))

    def _begin(self, rng: np.random.Generator, pair: int) -> Any:
        """Return the initial game of a pair."""
        config, options = self.config, self._options
        if config.lead is not None:
            return self._learnable.new_game(rng, config.lead)
        if not config.openings:
            return self.game.new_game(options)
        matches = self.game.matches()
        rules = matches.rules(options, None, options.max_moves or 0)
        return matches.begin(rules, config.openings[pair % len(config.openings)])

    def _open(self, search: GameSearch, played: Any, rng: np.random.Generator) -> Generator[None, None, None]:
        """Draw the opening moves with the search of one player."""
        search.seed(int(rng.integers(2**63)))
        for _ in range(self.config.opening_moves):
            if self._learnable.judge(played) is not None:
                return
            search.begin(played)
            found = yield from puct(search, DUEL_SETTINGS, rng, OPENING_VISITS, 1.0, False)
            played.push(found.move)


def move_root(search: GameSearch, played: Any, rooted: int | None) -> None:
    """Set the root to the position of a game. Reuses the tree of the position after `rooted` moves, unless None."""
    search.begin(played, None if rooted is None else [move for _, move in played.moves[rooted:]])
    search.renew(search.owner.queue)


def best_move(search: GameSearch) -> int:
    """Return the move that a player would choose after this search, or the likeliest if one visit tried none."""
    children = search.children()
    tried = children[children["visits"] > 0]
    if not len(tried):
        return int(children["move"][children["prior"].argmax()])
    return int(tried["move"][move_order(tried, utility_bounds(tried), search.settings.use_lcb)[0]])


@dataclass(frozen=True, slots=True)
class DuelScore(WinDrawLoss):
    """The score of a duel, from the point of view of the first player."""

    pairs: tuple[int, ...] = ()  # number of pairs with each of PAIR_SCORES
    # The reason for each game that failed because of an engine; such games were played again
    faults: tuple[str, ...] = ()
    colors: tuple[int, ...] = (0, 0)  # number of pairs in which Black, and White, won both games

    @property
    def verdict(self) -> str:
        """The difference of the players, or the reason why the games do not show it."""
        return color_note(sum(self.pairs), self.colors) or str(difference(self.pairs))

    def is_decided(self, test: Sprt | None) -> bool:
        """Whether a test has ended. It does not end while the colors decide the games."""
        return test is not None and not color_note(sum(self.pairs), self.colors) and test.verdict(self.pairs) != ""

    def __str__(self) -> str:
        """Return the numbers in the order ORDER."""
        return f"{self.wins}-{self.losses}-{self.draws} ({ORDER})"


def score_of(points: Mapping[int, int]) -> DuelScore:
    """Return the score of games, given their points by number (see `DuelGame.points`)."""
    counts = Counter(points.values())
    # The first player has Black in the first game of a pair
    whole = Counter(
        (points[number], points[number + 1]) for number in points if number % 2 == 0 and number + 1 in points
    )
    pairs = tuple(sum(n for pair, n in whole.items() if sum(pair) == score) for score in range(len(PAIR_SCORES)))
    return DuelScore(counts[2], counts[1], counts[0], pairs, colors=(whole[2, 0], whole[0, 2]))


class MatchState:
    """The state of a match whose games end in any order.

    A test gets the pairs in the order of their numbers, and none after an unfinished one. Otherwise short games would
    count first, and the end would depend on the machine.
    """

    def __init__(self, test: Sprt | None = None) -> None:
        self.points: dict[int, int] = {}  # by number, see DuelGame.points
        self._test, self._seen = test, 0
        self.is_decided = False

    def note(self, number: int, points: int) -> None:
        self.points[number] = points
        while not self.is_decided and self._seen in self.points and self._seen + 1 in self.points:
            self._seen += 2
            self.is_decided = score_of(self._tested()).is_decided(self._test)

    @property
    def score(self) -> DuelScore:
        """Score of all games. Once a test is decided, only of the games that decided it."""
        return score_of(self._tested() if self.is_decided else self.points)

    def line(self) -> str:
        score = self.score
        text = f"{score}, {score.share:.1%}, {score.verdict}"
        tested = score_of(self._tested())
        if self._test is None or color_note(sum(tested.pairs), tested.colors):
            return text
        return f"{text}; {self._test.line(tested.pairs)}"

    def _tested(self) -> dict[int, int]:
        return {number: self.points[number] for number in range(self._seen)}


@dataclass(frozen=True, slots=True)
class LearningMatch:
    """A match of gate or ladder. Its games begin like those of self-play."""

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
    with Duel(game, match.players, match.config, min(SIDE_BY_SIDE, len(tasks))) as duel:
        for played in duel.play(tasks):
            state.note(played.number, played.points)
            if state.is_decided:
                break
        return dataclasses.replace(state.score, faults=tuple(duel.faults))


END_SECONDS = 1.0  # time for a process to end by itself after its connection is closed


class DuelPlayer(Protocol):
    """Plays games: a Duel, or DuelProcesses."""

    def play(self, tasks: Sequence[DuelTask]) -> Iterator[DuelGame]:
        """Play games and yield each as it ends."""


class ChildProcess:
    """A process with a connection to this one. It works until the connection is closed."""

    def __init__(self, main: Callable[..., None], *arguments: Any) -> None:
        """Start the process. It calls `main` with its end of the connection and the arguments."""
        context = multiprocessing.get_context("spawn")
        self.link, other = context.Pipe()
        self.process = context.Process(target=_run_child, args=(main, other, *arguments), daemon=True)
        self.process.start()
        other.close()

    def end(self) -> int | None:
        """Close the connection, end the process, and return its status."""
        self.link.close()
        self.process.join(END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return self.process.exitcode


def _run_child(main: Callable[..., None], link: Connection, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes to the whole group; the other end will close
    try:
        main(link, *arguments)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        with contextlib.suppress(OSError):
            link.send(f"{type(error).__name__}: {error}")


class DuelProcesses:
    """Processes that play the games of a match. A context manager.

    The result of a game does not depend on the process that plays it.
    """

    def __init__(
        self, processes: int, game: Game[Any, Any], players: tuple[Options, Options], config: DuelConfig, count: int
    ) -> None:
        """Start the processes. The other arguments are those of Duel."""
        # The next task that no process has taken, counted over all lists of tasks
        self._next = multiprocessing.get_context("spawn").Value("q", 0)
        self._sent = 0  # tasks of all lists so far
        arguments = self._next, game, players, config, count
        self._children = [ChildProcess(play_tasks, *arguments) for _ in range(processes)]

    def play(self, tasks: Sequence[DuelTask]) -> Iterator[DuelGame]:
        """Play games and yield each as it ends.

        Raises:
            MatchError: a process cannot play or is lost.
        """
        children = {child.link: child for child in self._children}
        for child in self._children:
            try:
                child.link.send((self._sent, tasks))
            except OSError:
                raise _lost(child) from None
        left = len(tasks)
        self._sent += left
        while left:
            for ready in cast("list[Connection]", wait(list(children))):  # on Windows they are PipeConnections
                try:
                    found = ready.recv()
                except (EOFError, OSError):
                    raise _lost(children[ready]) from None
                if not isinstance(found, DuelGame):
                    raise MatchError(f"a playing process has failed: {found}")
                left -= 1
                yield found

    def close(self) -> None:
        """End the processes. Unfinished games are lost."""
        for child in self._children:
            child.process.terminate()
        for child in self._children:
            child.end()

    def __enter__(self) -> DuelProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _lost(child: ChildProcess) -> MatchError:
    return MatchError(f"a playing process has ended with status {child.end()}; run the same command again to continue")


def play_tasks(
    link: Connection,
    counter: Any,
    game: Game[Any, Any],
    players: tuple[Options, Options],
    config: DuelConfig,
    count: int,
) -> None:
    """Play lists of tasks, in a process, until the connection is closed."""
    game.compile(lambda line: None, learning=True)
    with Duel(game, players, config, count) as duel:
        while True:
            begin, tasks = link.recv()
            for played in duel.play(_taken(begin, tasks, counter)):
                link.send(played)


def _taken(begin: int, tasks: Sequence[DuelTask], counter: Any) -> Iterator[DuelTask]:
    """Yield the tasks that no other process has taken. The first task has the number `begin`."""
    while True:
        with counter.get_lock():
            number = counter.value - begin
            if number >= len(tasks):
                return
            counter.value += 1
        yield tasks[number]
