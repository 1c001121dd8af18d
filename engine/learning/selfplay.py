"""Self-play: from a network to finished games with what is to be learned of them.

Begin reading at `SelfPlay.play_one`, which is one game.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.learning.games import Playing, Table
from yomi.engine.learning.opponents import Dropped, Opponent, Opponents, opponent_spec
from yomi.engine.learning.policies import POLICIES, Found, Searching
from yomi.engine.learning.searches import Searches, SmallSearch
from yomi.engine.play import RESIGNATION, Ended, G

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.learning.learnable import Learnable, Outcome
    from yomi.engine.learning.settings import SelfPlaySettings
    from yomi.engine.options import Options
    from yomi.engine.search.settings import SearchSettings

RECENT = 5
"""Moves in which both sides have seen the game decided before it gets fewer visits."""
FORKABLE = 64
"""Games of late from which others branch off."""
REANALYZABLE = 500
"""Games of late that are kept to be searched anew: 0.1 MB each in Go, whatever the board, and more with many moves."""
OPENING_SHARE = 0.3
"""Of a board's side: moves drawn from the policy at the beginning of a game, on average."""


@dataclass(slots=True)
class Ply:
    """One move of a game."""

    position: Any
    """records[1]: before the move."""
    found: Found | None = None
    """What its search found; None for a move without one."""
    learned: bool = False
    """Whether it was searched in full."""


@dataclass(slots=True)
class Finished(Generic[G]):
    """A finished game."""

    game: G
    ended: Ended
    outcome: Outcome
    first: int
    """Moves that it began with; those of `plies` come after them."""
    plies: list[Ply] = field(default_factory=list)
    resigned_wrongly: bool | None = None
    """For a game that was played on after one side would have resigned: whether that side did not lose."""
    guests: Mapping[int, str] = field(default_factory=dict)
    """Names of the players other than the network, by color."""
    reanalyzed: bool = False
    """Whether it is an earlier game whose positions the network has searched anew."""

    def names(self, network: str) -> tuple[str, str]:
        """Return the names of Black and White, one or both of which are the network's."""
        own = f"{network} reanalyzing" if self.reanalyzed else network
        return self.guests.get(BLACK, own), self.guests.get(WHITE, own)


@dataclass(frozen=True, slots=True)
class Earlier(Generic[G]):
    """A finished game as it is kept to be searched anew: without its positions, which take most of the memory."""

    finished: Finished[G]
    """With the game at its beginning, and without plies."""
    moves: list[int]
    """All of them."""
    found: list[Found | None]
    """Of each ply, without targets."""


class SelfPlay(Generic[G]):
    """Games of a network against itself, and some against an engine, without end. One thread uses it; `close` it."""

    def __init__(self, game: Game[G, Any], options: Options, settings: SelfPlaySettings, seed: int) -> None:
        """Load the evaluator; games begin with `play`.

        Args:
            game: the descriptor.
            options: what judges positions, and the board.
            settings: how games are played.
            seed: of what is drawn.

        Raises:
            NetworkError, EvaluatorError: see yomi.engine.game.Game.benchmark_setup.
            OptionError: the engine that the settings name cannot be.
        """
        self.game, self.settings = game, settings
        self.learnable: Learnable[G] = game.learnable(options)
        self.lead = 0.0
        """See Learnable.begin."""
        self.rng = np.random.default_rng(seed)
        self._policy = POLICIES[settings.search]
        self._stack = contextlib.ExitStack()
        subject, queue, search = self._stack.enter_context(game.benchmark_setup(options))
        visits = max(settings.visits, settings.cheap_visits) * (2 if settings.keep_tree else 1)
        draws = int(self.rng.integers(2**32))
        self.searches = Searches(subject.spec, queue, self._adapted(search), settings.games, visits, draws)
        self._table: Table[Finished[G] | Dropped] | None = None
        self._opponents: Opponents[G] | None = None
        if settings.opponent and settings.opponent_share:
            spec, count = opponent_spec(settings.opponent, game), math.ceil(settings.games * settings.opponent_share)
            self._opponents = Opponents(spec, game, count, settings.opponent_share)
        self._recent: deque[tuple[G, list[int]]] = deque(maxlen=FORKABLE)
        self._earlier: deque[Earlier[G]] = deque(maxlen=REANALYZABLE)
        """Ended before this network was used."""
        self._latest: deque[Earlier[G]] = deque(maxlen=REANALYZABLE)
        """Ended since then: the same network would find the same."""

    def use(self, options: Options) -> None:
        """Go on with another network; games that are under way are played on with it.

        Raises:
            NetworkError, EvaluatorError: see yomi.engine.game.Game.benchmark_setup; all stays as it was.
        """
        with contextlib.ExitStack() as stack:
            _, queue, search = stack.enter_context(self.game.benchmark_setup(options))
            self.searches.use(queue, self._adapted(search))
            self._stack.close()
            self._stack = stack.pop_all()
        self._earlier.extend(self._latest)
        self._latest.clear()

    def play(self, seconds: float = math.inf) -> list[Finished[G] | Dropped]:
        """Play until at least one game has ended, and return those that have, or were dropped.

        Args:
            seconds: after which it returns, even if no game has ended.

        Raises:
            EvaluatorError: what the evaluator raised.
        """
        if self._table is None:
            self._table = Table([self.searches], lambda place: self._begin_one(place[0]))
        return self._table.play(seconds)

    def close(self) -> None:
        """Release the evaluator, and end the engines."""
        self._stack.close()
        if self._opponents is not None:
            self._opponents.close()

    def _begin_one(self, search: SmallSearch) -> Playing[Finished[G] | Dropped]:
        """Return the next game, of the network alone or against an engine; or an earlier one, to be searched anew."""
        if self._earlier and self.rng.random() < self.settings.reanalyze:
            return self.reanalyze_one(search, self._earlier[int(self.rng.integers(len(self._earlier)))])
        if self._opponents is None or (guest := self._opponents.invite(int(self.rng.choice((BLACK, WHITE))))) is None:
            return self.play_one(search)
        return self._opponents.host(guest, self.play_one(search, guest))

    def play_one(self, search: SmallSearch, guest: Opponent[G] | None = None) -> Playing[Finished[G]]:
        """Play one game, in which `guest` has the moves of its color that are not drawn."""
        settings, rng, learnable = self.settings, self.rng, self.learnable
        game, avoided = self._begin()
        first = game.ply
        drawn_moves = first + int(rng.exponential(settings.opening * OPENING_SHARE * search.owner.side))
        plays_on = rng.random() < settings.played_out
        plies: list[Ply] = []
        values: list[float] = []
        """Black's, of each search."""
        loser = 0
        """Who would have resigned."""
        last: int | None = None
        """The move before, if what was searched below it may be kept."""
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
            elif guest is not None and color == guest.color:
                choice = yield from guest.choose(game)
                if isinstance(choice, Ended):
                    ended = choice
                    break
                move, last = choice, None
            else:
                search.begin(game, [] if last is None else [last])
                ply.learned = rng.random() < settings.full_share
                ply.found = yield from self._search(search, game.ply, values, ply.learned)
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
        finished = Finished(game, ended, outcome, first, plies, wrong)
        if guest is not None:
            guest.leave(ended.winner)
            finished.guests = {guest.color: guest.spec.name}
        if settings.reanalyze:
            self._latest.append(self._kept(finished))
        return finished

    def reanalyze_one(self, search: SmallSearch, earlier: Earlier[G]) -> Playing[Finished[G]]:
        """Search a share of the positions of an earlier game anew; its moves and its result stay.

        Only positions are searched whose move a search has chosen; those left out keep what that one found, and are
        not learned. Schrittwieser et al., Mastering Atari, Go, chess and shogi by planning with a learned model (2020),
        appendix H: MuZero Reanalyze.
        """
        game = self.learnable.again(earlier.finished.game)
        for move in earlier.moves[game.ply : earlier.finished.first]:
            game.push(move)
        plies: list[Ply] = []
        values: list[float] = []
        """Black's, of each search."""
        for found in earlier.found:
            ply = Ply(search.owner.spec.positions(1), found)
            ply.position[0] = game.position
            plies.append(ply)
            if found is not None:
                ply.learned = self.rng.random() < self.settings.full_share
                if ply.learned:
                    search.begin(game)
                    found = ply.found = yield from self._search(search, game.ply, values, learned=True)
                values.append(found.value if game.side_to_move == BLACK else -found.value)
            if game.ply < len(earlier.moves):  # who resigned has searched without a move
                game.push(earlier.moves[game.ply])
        return dataclasses.replace(earlier.finished, game=game, plies=plies, reanalyzed=True)

    def _kept(self, finished: Finished[G]) -> Earlier[G]:
        """Return a game that has ended as it is kept to be searched anew."""
        moves, target = np.zeros(0, np.int64), np.zeros(0)
        found = [ply.found and dataclasses.replace(ply.found, moves=moves, target=target) for ply in finished.plies]
        game = self.learnable.again(finished.game)
        start = dataclasses.replace(finished, game=game, plies=[], resigned_wrongly=None)
        return Earlier(start, [move for _, move in finished.game.moves], found)

    def _search(self, search: SmallSearch, ply: int, values: Sequence[float], learned: bool) -> Searching:
        """Search a position, in full if it is learned; `values` are Black's of the searches before."""
        settings = self.settings
        visits = settings.visits if learned else settings.cheap_visits
        if self._is_decided(values):
            visits = max(2, int(visits * settings.won_visits))
        heat = self._temperature(ply, search.owner.side)
        return self._policy(search, settings, self.rng, visits, heat, learned)

    def _adapted(self, search: SearchSettings) -> SearchSettings:
        """Return a player's settings as self-play has them."""
        settings = self.settings
        noise, total = settings.noise, settings.noise_total
        return dataclasses.replace(search, cache_size=0, ownership=False, root_noise=noise, root_noise_total=total)

    def _begin(self) -> tuple[G, int | None]:
        """Return a game at its beginning; or as an earlier one was at some time, and the move that was played there."""
        rng = self.rng
        if not self._recent or rng.random() >= self.settings.forks:
            return self.learnable.begin(rng, self.lead), None
        earlier, moves = self._recent[int(rng.integers(len(self._recent)))]
        game = self.learnable.again(earlier)
        start = game.ply
        # An early position: what is drawn from all of them is drawn twice, and the earlier one counts.
        end = min(start + int(each) for each in rng.integers(0, max(1, len(moves) - start), 2))
        for move in moves[start:end]:
            game.push(move)
        return game, moves[end] if end < len(moves) else None

    def _draw(self, search: SmallSearch, avoided: int | None) -> int:
        """Return a move drawn from the policy of a root; not `avoided`, nor one such as a pass, if there are others."""
        children = search.children()
        unwanted = np.isin(children["move"], [*self.game.pass_moves, *([] if avoided is None else [avoided])])
        shares = np.where(unwanted & ~unwanted.all(), 0.0, children["prior"].astype(np.float64) + 1e-6)
        return int(self.rng.choice(children["move"], p=shares / shares.sum()))

    def _is_decided(self, values: Sequence[float]) -> bool:
        """Whether the game has looked decided for some time."""
        bound = 2.0 * self.settings.won - 1.0
        latest = values[-RECENT:]
        return len(latest) == RECENT and (min(latest) > bound or max(latest) < -bound)

    def _temperature(self, ply: int, side: int) -> float:
        """Return the temperature of a move: it falls from the first to the last by half-lives."""
        settings = self.settings
        share: float = 0.5 ** (ply / (settings.half_life or side))
        return settings.end_temperature + (settings.temperature - settings.end_temperature) * share
