"""The engine: a player of one game, with its network, for programs."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

from yomi.engine.levels import LevelSwitch
from yomi.engine.options import Options, find, rows_for
from yomi.engine.registry import GAMES
from yomi.errors import Error, IllegalMove
from yomi.library import arguments
from yomi.library.analysis import Analysis, Turns, in_thread, keep_stderr_quiet, reported
from yomi.library.arguments import Progress, no_progress, plain
from yomi.library.position import Position
from yomi.library.values import Decision, Limit, Report, read
from yomi.settings import OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi import go, shogi
    from yomi.engine.go.players.player import GoPlayer
    from yomi.engine.players.player import Player
    from yomi.engine.players.request import Request
    from yomi.engine.shogi.players.player import ShogiPlayer
    from yomi.library.evaluation import Evaluation, Evaluator

_log = logging.getLogger("yomi.library")

RANKED_MOVES = 3  # by alpha-beta in an analysis, if the option multipv is not set

P = TypeVar("P", bound=Position[Any])
Value = bool | int | float | str | os.PathLike[str] | None


class Engine(Generic[P]):
    """An engine for Go or shogi.

    Several threads may use it: one call searches at a time, the others wait. A call ends an `analysis` without limit.
    Ctrl-C ends a search and is raised as KeyboardInterrupt; the engine can be used afterwards.
    """

    @overload
    def __init__(self: Engine[go.Game], game: Literal["go"], *, progress: Progress = ..., **options: Value) -> None: ...
    @overload
    def __init__(
        self: Engine[shogi.Game], game: Literal["shogi"], *, progress: Progress = ..., **options: Value
    ) -> None: ...
    @overload
    def __init__(self, game: str, *, progress: Progress = ..., **options: Value) -> None: ...
    def __init__(self, game: str, *, progress: Progress = no_progress, **options: Value) -> None:
        """Load the network; kernels that were never compiled on this machine are compiled first.

        Args:
            game: go or shogi.
            progress: receives a line of text from time to time while kernels are compiled and networks are compared.
            options: the options of `yomi help options` by name, such as net, size, visits, workers, level, seed.
                The user's file of options is not read.

        Raises:
            Error: an option is wrong, or the network or the device cannot be used.
        """
        arguments.one_of("game", game, GAMES)
        keep_stderr_quiet()
        self.game = game
        """Go or shogi."""
        self._descriptor = GAMES[game]
        self._options = Options.for_game(game)
        self._named: set[str] = set()  # as yomi names them: an option may have further names
        for name, value in options.items():
            row = find(name, game)
            self._options.set(row.name, plain(value))
            self._named.add(row.name)
        self._level = LevelSwitch(self._descriptor, self._options, self._named)
        with reported(progress):
            self._player = self._descriptor.load_player(self._options, progress)
        self._turns = Turns(self._player, progress)
        self._evaluator: Evaluator | None = None
        self._finalizer = weakref.finalize(self, self._turns.close)

    # -- life ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all searches and release network, memory and threads; later calls raise ClosedError."""
        self._turns.close()
        self._finalizer.detach()
        self._evaluator = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await in_thread(self.close, lambda: None)

    @property
    def name(self) -> str:
        """Network, device and precision on one line."""
        name: str = self._player.description
        return name

    @property
    def options(self) -> dict[str, bool | int | float | str | None]:
        """All options with their values: a copy."""
        return {row.name: self._options.get(row.name) for row in rows_for(self.game)}

    def configure(self, **options: Value) -> None:
        """Change options. A network, a device and other options marked `start` by `yomi help options` are loaded again.

        Raises:
            Error: an option is wrong or cannot be loaded; nothing has changed.
        """
        with self._turns.take() as player:
            before = self._level.state()
            try:
                for name, value in options.items():
                    self._level.set(find(name, self.game).name, plain(value), wins=True)
                player.load(self._descriptor.new_game(self._options))
            except Exception:
                self._level.restore(before)
                raise
            self._named.update(find(name, self.game).name for name in options)

    def new_game(self) -> P:
        """Return the beginning of a game by the options (size, rules, komi; entering_king, max_moves)."""
        return self._wrap(self._descriptor.new_game(self._options))

    def clear(self) -> None:
        """Forget the search tree and all evaluations."""
        with self._turns.take() as player:
            player.clear()

    # -- searching -----------------------------------------------------------------------------------------------------

    def play(
        self,
        position: P,
        limit: Limit | None = None,
        *,
        avoid: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        ponder: bool | None = None,
    ) -> Decision:
        """Choose a move; the position does not change.

        Args:
            position: the game so far, with its rules.
            limit: limits besides the options'.
            avoid: moves that are not chosen.
            allow: the only moves to choose from.
            ponder: afterwards search the position after the move in the background, until the next call of any method.
                None: as the option `ponder`.

        Raises:
            IllegalMove: `avoid` or `allow` contains an illegal move.
            Error: no move is left, the engine is closed, the position is of another game, or the network failed.
        """
        return self._play(position, self._request(position, limit, avoid, allow), ponder)

    def analyse(
        self, position: P, limit: Limit | None = None, *, avoid: Iterable[str] = (), allow: Iterable[str] | None = None
    ) -> Report:
        """Search a position and return the report; arguments and errors are those of `play`.

        The engine neither resigns nor plays from a book. An alpha-beta search (shogi) ranks three moves, or as many as
        the option `multipv` names. Go: the options `analysis_wide_root_noise` and `analysis_ignore_pre_root_history`
        decide how widely the moves are searched.
        """
        return self._analyse(position, self._for_analysis(position, limit, avoid, allow))

    def analysis(
        self,
        position: P,
        limit: Limit | None = None,
        *,
        interval: float = 0.5,
        avoid: Iterable[str] = (),
        allow: Iterable[str] | None = None,
    ) -> Analysis:
        """Search a position in the background and return an iterator of reports.

        Without a limit the search continues until it is stopped, memory is full or another call wants the engine.

        Args:
            position: the game so far; it may change afterwards.
            limit: limits besides the options'.
            interval: seconds between two reports.
            avoid: moves that are not searched.
            allow: the only moves to search.

        Raises:
            Error: see `play`; errors of the search are raised by the iterator.
        """
        position = self._copied(position)
        if not arguments.is_number(interval, 0):
            raise arguments.wrong("interval", interval, "seconds of at least 0")
        request = self._for_analysis(position, limit, avoid, allow)
        request.interval, request.infinite = interval, limit is None

        def search(publish: Callable[[Report], None]) -> Report:
            names = position._names
            request.on_report = lambda raw: publish(Report(raw, names))
            return self._analyse(position, request)

        return Analysis(request, search)

    async def aplay(
        self,
        position: P,
        limit: Limit | None = None,
        *,
        avoid: Iterable[str] = (),
        allow: Iterable[str] | None = None,
        ponder: bool | None = None,
    ) -> Decision:
        """Like `play`, without blocking the event loop; cancelling ends the search."""
        position = self._copied(position)
        request = self._request(position, limit, avoid, allow)
        return await in_thread(lambda: self._play(position, request, ponder), request.stop)

    async def aanalyse(
        self, position: P, limit: Limit | None = None, *, avoid: Iterable[str] = (), allow: Iterable[str] | None = None
    ) -> Report:
        """Like `analyse`, without blocking the event loop; cancelling ends the search. See also `analysis`."""
        position = self._copied(position)
        request = self._for_analysis(position, limit, avoid, allow)
        return await in_thread(lambda: self._analyse(position, request), request.stop)

    # -- opinions without search ---------------------------------------------------------------------------------------

    def evaluate(self, positions: P | Sequence[P]) -> Evaluation:
        """Return the network's opinion of positions, without search.

        Boards of Go must have one size; the rows of the result are in the order of the positions.

        Raises:
            Error: see `play`.
        """
        from yomi.library.evaluation import Evaluator

        expected = f"a yomi.{self.game}.Game or a list of them"
        games = [positions] if isinstance(positions, Position) else arguments.items("positions", positions, expected)
        raw = [self._raw(game) for game in games]
        sizes = sorted({game.board.side for game in raw}) if self.game == "go" else []
        if len(sizes) > 1:
            raise OptionError(f"boards of sizes {', '.join(map(str, sizes))} found, expected one size")
        with self._turns.take() as player:
            if raw:
                player.load(raw[0])
            search = player.policy_search
            if self._evaluator is None or self._evaluator.search is not search:
                self._evaluator = Evaluator(search)
            found = self._evaluator.evaluate(raw)
            form = dict(search.spec.position_flags).get("form", 0)
        if form:  # a network with other labels than dlshogi's
            from yomi.shogi import relabelled

            found = replace(found, policy=relabelled(raw, found.policy, form))
        return found

    async def aevaluate(self, positions: P | Sequence[P]) -> Evaluation:
        """Like `evaluate`, without blocking the event loop."""
        return await in_thread(lambda: self.evaluate(positions), lambda: None)

    def ownership(self: Engine[go.Game], position: go.Game) -> npt.NDArray[np.float32]:
        """Go: return the expected owner of each point at the end, float32[height, width]: +1 Black, -1 White."""
        self._only_for("go", "the owners of points")
        raw = self._raw(position)
        with self._turns.take() as player:
            go_player: GoPlayer = player  # type: ignore[assignment]  # the player of an engine for Go
            return go_player.final_ownership(raw).reshape(position.height, position.width)

    def dead_stones(self: Engine[go.Game], position: go.Game) -> list[str]:
        """Go: return the stones to remove before the board is counted, for `Game.result` and `Game.lead`."""
        from yomi.engine.go.scoring import removed_stones

        self._only_for("go", "dead stones")
        raw = self._raw(position)
        dead = removed_stones(raw, lambda: self.ownership(position).reshape(-1))
        return [position._text(point) for point in sorted(dead)]

    def find_mate(self: Engine[shogi.Game], position: shogi.Game, seconds: float = 10.0) -> tuple[str, ...]:
        """Shogi: return a mate by the side to move; no moves if there is none or the time did not suffice."""
        self._only_for("shogi", "a mate search")
        request = self._request(position, Limit(seconds=seconds))
        with self._turns.take(request) as player:
            shogi_player: ShogiPlayer = player  # type: ignore[assignment]  # the player of an engine for shogi
            found = shogi_player.find_mate(request)
        return tuple(map(position._text, found.moves))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _play(self, position: P, request: Request[Any], ponder: bool | None) -> Decision:
        with self._turns.take(request) as player:
            raw = player.decide(request)
            if (self._options.ponder if ponder is None else ponder) and raw.move is not None and not raw.resign:
                _start_pondering(player, request, raw.move)
            return read(raw, position._names)

    def _analyse(self, position: P, request: Request[Any]) -> Report:
        with self._turns.take(request) as player:
            return Report(player.decide(request).report, position._names)

    def _request(
        self, position: P, limit: Limit | None, avoid: Iterable[str] = (), allow: Iterable[str] | None = None
    ) -> Request[Any]:
        from yomi.engine.players.request import Request

        if limit is None:
            limit = Limit()
        elif not isinstance(limit, Limit):
            raise arguments.wrong("limit", limit, "a yomi.Limit such as yomi.Limit(visits=100)")
        raw = self._raw(position)
        request = Request(
            raw,
            clocks=limit._clocks(self.game),
            limits=limit._limits,
            hide_history=self._options.ignore_pre_root_history,
        )
        request.avoid = avoided = _legal("avoid", avoid, position)
        moves = raw.legal_moves() if allow is None else _legal("allow", allow, position)
        left = [move for move in moves if move not in avoided]
        if not left and (avoided or allow is not None):
            count = len(raw.legal_moves())
            raise OptionError(f"allow and avoid leave none of {count} legal moves, expected at least one")
        # Searches of shogi skip pointless waivers of promotion, unless they are asked for.
        is_waiver = bool(avoided) and self.game == "shogi" and set(raw.searched_moves()).issubset(avoided)
        request.allow = None if allow is None and not is_waiver else left
        return request

    def _for_analysis(
        self, position: P, limit: Limit | None, avoid: Iterable[str], allow: Iterable[str] | None
    ) -> Request[Any]:
        request = self._request(position, limit, avoid, allow)
        options = self._level.full()
        if self.game == "go":
            request.hide_history = options.analysis_ignore_pre_root_history
            options = replace(options, wide_root_noise=options.analysis_wide_root_noise)
        elif request.allow is None and request.game.can_declare:  # a declaration would take the place of the search
            request.allow = request.game.searched_moves()
        if "multipv" not in self._named:
            options = replace(options, multipv=RANKED_MOVES)
        request.options = replace(options, own_book=False)
        return request

    def _only_for(self, game: str, what: str) -> None:
        """Raise OptionError if this engine is not for `game`, the only game that has `what`."""
        if self.game != game:
            raise OptionError(f"an engine for {self.game} found, expected {game}: only {game} has {what}")

    def _copied(self, position: P) -> P:
        """Return a copy of a position. Raises OptionError if it belongs to another game."""
        self._raw(position)
        return position.copy()

    def _raw(self, position: P) -> Any:
        """Return the inner game of a position.

        Raises:
            OptionError: the position belongs to another game.
        """
        if getattr(position, "game", None) != self.game:
            found = position.game if isinstance(position, Position) else type(position).__name__
            raise OptionError(f"a position of {found} found, expected yomi.{self.game}.Game")
        return position._raw

    def _wrap(self, raw: Any) -> P:
        module: Any = __import__(f"yomi.{self.game}", fromlist=["Game"])
        game: P = module.Game._of(raw)
        return game

    def __repr__(self) -> str:
        state = "closed" if self._turns.is_closed else self.name
        return f"<yomi.Engine {self.game}: {state}>"


def _legal(name: str, moves: Iterable[str], position: Position[Any]) -> list[int]:
    """Return the moves of an argument as integers. Raises IllegalMove."""
    found = [(move, position._code(move)) for move in arguments.items(name, moves, "a list of moves")]
    for move, code in found:
        if not position._is_legal(code):
            raise IllegalMove(f"{name} {arguments.shown(move)} found, expected legal moves")
    return [code for _, code in found]


def _start_pondering(player: Player[Any], request: Request[Any], move: int) -> None:
    """Search the position after a request's `move` in the background."""
    game = request.game.copy()
    game.push(move)
    if game.is_over:
        return
    try:
        player.start(type(request)(game, request.options, hide_history=request.hide_history, ponder=True))
    except Error as error:  # of the network: the move is found anyway, and the next call reports it again
        _log.error("no pondering: %s", error)
