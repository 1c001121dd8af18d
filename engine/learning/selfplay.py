"""Self-play: from a network to finished games. Start reading at `SelfPlay.play_one`, which plays one game."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.game import Game
from yomi.engine.learning.opponents import DroppedGame, Opponent, OpponentPool, opponent_spec
from yomi.engine.learning.policies import Searching, SearchResult, find_policy
from yomi.engine.learning.searches import ConcurrentGames, GameCoroutine, GameSearch, Searches
from yomi.engine.learning.settings import SelfPlaySettings
from yomi.engine.options import Options
from yomi.engine.play import RESIGNATION, Ended, G, Referee
from yomi.engine.search.types import SearchSettings

if TYPE_CHECKING:
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Arrays

RECENT = 5  # searches in a row that must see the game decided before visits are reduced
FORKABLE = 64  # latest games from which others branch off
REANALYZABLE = 500  # latest games kept for reanalysis: 0.1 MB each in Go, more for long games
OPENING_SHARE = 0.3  # mean number of opening moves drawn from the policy, per unit of board size
# Bytes of each game's cache: 4,096 evaluations on 9x9. Searches of successive moves need many positions twice. With the
# cache a row of PUCT takes 103 evaluations, without it 156 (9x9, a network of 4 blocks of 48 channels).
CACHE = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The labels that follow from a finished game. The score includes komi."""

    winner: int  # BLACK, WHITE or DRAW
    margin: float | None = None  # Black's lead in points
    # [area], +1 for Black. The points are in the order of `yomi.native.game.add_ownership`.
    owners: npt.NDArray[np.float32] | None = None


class Learnable(Generic[G]):
    """What a game must provide so that it can be learned. The bodies here are those of a game without a score."""

    features: str  # feature set of the rows, a name of yomi.nets.metadata
    spec: GameSpec  # its planes are the planes of the feature set
    # The default table [network] of the training configuration.
    network: Mapping[str, Any]
    suffix: str  # of the records; one file holds many games
    has_score = False  # whether the game has a score
    # One set of option values per board. Games are played on all of them; the options' own board comes first.
    boards: Sequence[Mapping[str, Any]] = ({},)
    # Settings of the game besides the options. A run can only continue with the same values.
    fixed_settings: Mapping[str, Any]
    encode: Callable[[npt.NDArray[np.void], npt.NDArray[Any]], Arrays]
    """Returns the inputs of positions of one game as columns of a data set. The positions have their flags set."""

    def __init__(self, referee: Referee[G]) -> None:
        self.referee = referee

    def new_game(self, rng: np.random.Generator, lead: float) -> G:
        """Return a new game. The komi is drawn around `lead`, Black's mean score without komi in recent games."""
        raise NotImplementedError

    def restart(self, game: G) -> G:
        """Return a game that begins like `game`, without its moves."""
        raise NotImplementedError

    def first_position(self, game: G) -> dict[str, Any]:
        """Return the first position for boards of pages (`replay` in board.js); empty if pages show text only."""
        return {}

    def judge(self, game: G) -> Ended | None:
        """Return the end of a game, or None while it continues."""
        return self.referee.judge(game)

    def outcome(self, game: G, ended: Ended) -> Outcome:
        return Outcome(ended.winner)

    def komi(self, game: G) -> float:
        return 0.0

    def record(self, finished: FinishedGame[G], name: str) -> bytes:
        """Return the record of a game with the search results of its moves. `name` is the network's name."""
        raise NotImplementedError


@dataclass(slots=True)
class Ply:
    """One move of a game."""

    position: Any  # records[1], before the move
    found: SearchResult | None = None  # None for a move without a search
    full_search: bool = False  # full search or cheap


@dataclass(slots=True)
class FinishedGame(Generic[G]):
    game: G
    ended: Ended
    outcome: Outcome
    first: int  # moves before the first ply
    plies: list[Ply] = field(default_factory=list)
    # For a game played on after a resignation: whether the resigning side did not lose.
    resigned_wrongly: bool | None = None
    engines: Mapping[int, str] = field(default_factory=dict)  # names of players other than the network, by color
    reanalyzed: bool = False  # whether the network has searched a past game again

    def names(self, network: str) -> tuple[str, str]:
        own = f"{network} reanalyzing" if self.reanalyzed else network
        return self.engines.get(BLACK, own), self.engines.get(WHITE, own)


@dataclass(frozen=True, slots=True)
class PastGame(Generic[G]):
    """A finished game that is kept for reanalysis. Its positions, which need most memory, are dropped."""

    finished: FinishedGame[G]  # its game has no moves, and it has no plies
    moves: list[int]  # all moves of the game
    found: list[SearchResult | None]  # of each ply, without targets


class SelfPlay(Generic[G]):
    """An endless series of games of a network against itself, some of them against an engine. Not thread-safe."""

    def __init__(self, game: Game[G, Any], options: Options, settings: SelfPlaySettings, seed: int) -> None:
        """Load the evaluator. `play` starts the games.

        Raises:
            NetworkError, EvaluatorError: from the game.
            OptionError: the settings contain an unusable engine.
        """
        self.game, self.settings = game, settings
        self.learnable: Learnable[G] = game.learnable(options)
        self.lead = 0.0  # passed to new_game
        self.rng = np.random.default_rng(seed)
        self._policy = find_policy(settings.search)
        self._stack = contextlib.ExitStack()
        subject, queue, search = self._stack.enter_context(game.benchmark_setup(options))
        visits = max(settings.visits, settings.cheap_visits) * (2 if settings.keep_tree else 1)
        draws = int(self.rng.integers(2**32))
        self.searches = Searches(subject.spec, queue, self._adapted(search), settings.games, visits, draws)
        self._table: ConcurrentGames[FinishedGame[G] | DroppedGame] | None = None
        self._opponents: OpponentPool[G] | None = None
        if settings.opponent and settings.opponent_share:
            spec, count = opponent_spec(settings.opponent, game), math.ceil(settings.games * settings.opponent_share)
            self._opponents = OpponentPool(spec, game, count, settings.opponent_share)
        self._recent: deque[tuple[G, list[int]]] = deque(maxlen=FORKABLE)
        self._earlier: deque[PastGame[G]] = deque(maxlen=REANALYZABLE)  # played before the current network
        # Games of the current network, which would find the same results again
        self._latest: deque[PastGame[G]] = deque(maxlen=REANALYZABLE)

    def use(self, options: Options) -> None:
        """Continue with another network, also in unfinished games.

        Raises:
            NetworkError, EvaluatorError: from the game. Nothing has changed then.
        """
        with contextlib.ExitStack() as stack:
            _, queue, search = stack.enter_context(self.game.benchmark_setup(options))
            self.searches.use(queue, self._adapted(search))
            self._stack.close()
            self._stack = stack.pop_all()
        self._earlier.extend(self._latest)
        self._latest.clear()

    def play(self, seconds: float = math.inf) -> list[FinishedGame[G] | DroppedGame]:
        """Play until a game ends or `seconds` have passed. Return the games that have ended or were dropped.

        Raises:
            EvaluatorError: from the evaluator.
        """
        if self._table is None:
            self._table = ConcurrentGames([self.searches], lambda slot: self._begin_one(slot[0]))
        return self._table.play(seconds)

    def close(self) -> None:
        """Release the evaluator and end the engines."""
        self._stack.close()
        if self._opponents is not None:
            self._opponents.close()

    def _begin_one(self, search: GameSearch) -> GameCoroutine[FinishedGame[G] | DroppedGame]:
        """Return the next game: against itself, against an engine, or a reanalysis of a past game."""
        search.clear_cache()
        if self._earlier and self.rng.random() < self.settings.reanalyze:
            return self.reanalyze_one(search, self._earlier[int(self.rng.integers(len(self._earlier)))])
        if self._opponents is None or (engine := self._opponents.invite(int(self.rng.choice((BLACK, WHITE))))) is None:
            return self.play_one(search)
        return self._opponents.host(engine, self.play_one(search, engine))

    def play_one(self, search: GameSearch, engine: Opponent[G] | None = None) -> GameCoroutine[FinishedGame[G]]:
        """Play one game. If `engine` is given, it chooses the moves of its color after the opening."""
        settings, rng, learnable = self.settings, self.rng, self.learnable
        game, avoided = self._begin()
        first = game.ply
        drawn_moves = first + int(rng.exponential(settings.opening * OPENING_SHARE * search.owner.side))
        plays_on = rng.random() < settings.played_out
        plies: list[Ply] = []
        values: list[float] = []  # Black's value of each search
        loser = 0  # the side that would have resigned
        last: int | None = None  # the previous move, if its subtree may be kept
        while (ended := learnable.judge(game)) is None:
            color = game.side_to_move
            ply = Ply(search.owner.spec.positions(1))
            ply.position[0] = game.position
            plies.append(ply)
            if avoided is not None or game.ply < drawn_moves:
                search.begin(game)
                search.search(1)
                yield None
                move, last, avoided = self._draw(search, avoided), None, None
            elif engine is not None and color == engine.color:
                choice = yield from engine.choose(game)
                if isinstance(choice, Ended):
                    ended = choice
                    break
                move, last = choice, None
            else:
                search.begin(game, None if last is None else [last])
                ply.full_search = rng.random() < settings.full_share
                ply.found = yield from self._search(search, game.ply, values, ply.full_search)
                values.append(ply.found.value if color == BLACK else -ply.found.value)
                if settings.resign and not loser and ply.found.value < 2.0 * settings.resign - 1.0:
                    loser = color
                    if not plays_on:
                        ended = Ended(opponent(loser), RESIGNATION)
                        break
                move = ply.found.move
                last = move if settings.keep_tree else None
            game.push(move)
        self._recent.append((game, [move for _, move in game.moves]))
        outcome = learnable.outcome(game, ended)
        wrong = outcome.winner != opponent(loser) if loser and plays_on else None
        finished = FinishedGame(game, ended, outcome, first, plies, wrong)
        if engine is not None:
            engine.leave(ended.winner)
            finished.engines = {engine.color: engine.spec.name}
        if settings.reanalyze:
            self._latest.append(self._kept(finished))
        return finished

    def reanalyze_one(self, search: GameSearch, earlier: PastGame[G]) -> GameCoroutine[FinishedGame[G]]:
        """Search some positions of a past game again. The moves and the result of the game stay.

        Only positions whose move came from a search are candidates. The other positions keep their old result and are
        not learned. MuZero Reanalyze: Schrittwieser et al., Mastering Atari, Go, chess and shogi by planning with a
        learned model (2020), appendix H.
        """
        game = self.learnable.restart(earlier.finished.game)
        for move in earlier.moves[game.ply : earlier.finished.first]:
            game.push(move)
        plies: list[Ply] = []
        values: list[float] = []  # Black's value of each search
        for found in earlier.found:
            ply = Ply(search.owner.spec.positions(1), found)
            ply.position[0] = game.position
            plies.append(ply)
            if found is not None:
                ply.full_search = self.rng.random() < self.settings.full_share
                if ply.full_search:
                    search.begin(game)
                    found = ply.found = yield from self._search(search, game.ply, values, full_search=True)
                values.append(found.value if game.side_to_move == BLACK else -found.value)
            if game.ply < len(earlier.moves):  # who resigned has searched without a move
                game.push(earlier.moves[game.ply])
        return dataclasses.replace(earlier.finished, game=game, plies=plies, reanalyzed=True)

    def _kept(self, finished: FinishedGame[G]) -> PastGame[G]:
        moves, target = np.zeros(0, np.int64), np.zeros(0)
        found = [ply.found and dataclasses.replace(ply.found, moves=moves, target=target) for ply in finished.plies]
        game = self.learnable.restart(finished.game)
        start = dataclasses.replace(finished, game=game, plies=[], resigned_wrongly=None)
        return PastGame(start, [move for _, move in finished.game.moves], found)

    def _search(self, search: GameSearch, ply: int, values: Sequence[float], full_search: bool) -> Searching:
        settings = self.settings
        visits = settings.visits if full_search else settings.cheap_visits
        if self._is_decided(values):
            visits = max(2, int(visits * settings.won_visits))
        temperature = self._temperature(ply, search.owner.side)
        return self._policy(search, settings, self.rng, visits, temperature, full_search)

    def _adapted(self, search: SearchSettings) -> SearchSettings:
        settings = self.settings
        noise, total = settings.noise, settings.noise_total
        return dataclasses.replace(search, cache_size=CACHE, ownership=False, root_noise=noise, root_noise_total=total)

    def _begin(self) -> tuple[G, int | None]:
        """Return (new game, None), or (game with the first moves of an earlier one, next move to avoid)."""
        rng = self.rng
        if not self._recent or rng.random() >= self.settings.forks:
            return self.learnable.new_game(rng, self.lead), None
        earlier, moves = self._recent[int(rng.integers(len(self._recent)))]
        game = self.learnable.restart(earlier)
        start = game.ply
        # The earlier of two random positions, so that early ones are more frequent.
        end = min(start + int(number) for number in rng.integers(0, max(1, len(moves) - start), 2))
        for move in moves[start:end]:
            game.push(move)
        return game, moves[end] if end < len(moves) else None

    def _draw(self, search: GameSearch, avoided: int | None) -> int:
        """Draw a move from the policy of a root. Passes and `avoided` are drawn only if there are no other moves."""
        children = search.children()
        unwanted = np.isin(children["move"], [*self.game.pass_moves, *([] if avoided is None else [avoided])])
        shares = np.where(unwanted & ~unwanted.all(), 0.0, children["prior"].astype(np.float64) + 1e-6)
        return int(self.rng.choice(children["move"], p=shares / shares.sum()))

    def _is_decided(self, values: Sequence[float]) -> bool:
        """Return whether all of the latest searches saw the same side winning."""
        bound = 2.0 * self.settings.won - 1.0
        latest = values[-RECENT:]
        return len(latest) == RECENT and (min(latest) > bound or max(latest) < -bound)

    def _temperature(self, ply: int, side: int) -> float:
        """Return the temperature at a ply. It falls exponentially towards `end_temperature`."""
        settings = self.settings
        share: float = 0.5 ** (ply / (settings.half_life or side))
        return settings.end_temperature + (settings.temperature - settings.end_temperature) * share
