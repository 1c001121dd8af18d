"""Other engines as objects: a GTP or USI engine as a process, with the methods and results of `yomi.Engine`."""

import contextlib
import math
import os
import re
import threading
import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from yomi.engine.clients.client import RESIGN, TIMEOUT, WIN, EngineClient, EngineError, Evaluation, RefusedError
from yomi.engine.clients.gtp import ANALYSES, KATA_LIMITS, REPORT_INTERVAL, GtpClient, own_visits, read_moves
from yomi.engine.clients.spec import EngineLimits, parse_spec
from yomi.engine.clients.usi import UsiClient, clock_words, read_info
from yomi.engine.clock import Clock, TimeSettings
from yomi.engine.go.points import format_color
from yomi.engine.search.types import MoveReport as RawMove
from yomi.engine.search.types import SearchReport
from yomi.engine.shogi.placement import START_WORD, STARTPOS
from yomi.errors import ClosedError, IllegalMove
from yomi.library import arguments
from yomi.library.position import Position
from yomi.library.values import Decision, Limit, LimitError, Report
from yomi.settings import OptionError

P = TypeVar("P", bound=Position[Any])
C = TypeVar("C", bound=EngineClient)

SECONDS = 5.0  # of an analysis, and of a move of USI, without a limit
NO_COUNT, NO_SECONDS = 10**12, 10**6  # to lift a limit of GTP


class ExternalEngine(Generic[P]):
    """Another engine for Go or shogi. `yomi.open_engine` starts one.

    Several threads may use it: their calls take turns. An engine that failed is closed; open another one.
    """

    def __init__(self, client: Any, game: str) -> None:
        self._client, self.game = client, game
        self._lock = threading.Lock()
        self._end = ""  # why the engine is closed
        self._finalizer = weakref.finalize(self, _end_process, client.process, os.getpid())
        self._finalizer.atexit = False  # an engine ends with its input

    @property
    def name(self) -> str:
        """Name and version, as the engine reports them."""
        return str(self._client.title)

    def play(self, position: P, limit: Limit | None = None) -> Decision:
        """Choose a move; the position does not change.

        Args:
            position: the game so far.
            limit: without one, a GTP engine uses its own settings, a USI engine gets 5 seconds.

        Raises:
            EngineError: the engine failed, refused a command, or answered with an illegal move.
            Error: the engine is closed, or the position is of another game.
        """
        with self._turn(position, limit) as raw:
            text, reply, found, seconds = self._choose(position, raw, limit or Limit())
            report = _report(position, {1: found} if found.pv else {}, seconds, self._unit)
            if text.lower() in (RESIGN, WIN):
                return Decision(None, None, text.lower() == RESIGN, text.lower() == WIN, "", report)
            if not position.is_legal(text):
                raise EngineError(f"answered '{text[:40]}', expected a legal move")
            move = position._text(position._code(text))
            return Decision(move, reply or None, False, False, "", report)

    def analyse(self, position: P, limit: Limit | None = None) -> Report:
        """Search a position until the limit, which GTP engines may exceed, or for 5 seconds. Errors: see `play`."""
        with self._turn(position, limit) as raw:
            lines, seconds = self._analyse(position, raw, limit or Limit(seconds=SECONDS))
            if not lines:
                raise RefusedError("reported no move, expected an analysis")
            return _report(position, lines, seconds, self._unit)

    def close(self) -> None:
        """End the process; later calls raise ClosedError."""
        self._end = self._end or "the engine is closed"
        self._finalizer.detach()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<yomi.ExternalEngine {self.game}: {self._end or self.name}>"

    # -- inside --------------------------------------------------------------------------------------------------------

    _unit = "visits"

    @abstractmethod
    def _choose(self, position: P, raw: Any, limit: Limit) -> tuple[str, str, Evaluation, float]:
        """Return the move or RESIGN or WIN, the expected answer, the evaluation, and the seconds."""

    @abstractmethod
    def _analyse(self, position: P, raw: Any, limit: Limit) -> tuple[dict[int, Evaluation], float]:
        """Return the reports of moves by rank, and the seconds."""

    @contextlib.contextmanager
    def _turn(self, position: P, limit: Limit | None) -> Iterator[Any]:
        """Hold the engine for one call. A failure closes it: the rest of an answer may come late."""
        if not isinstance(position, Position) or position.game != self.game:
            raise arguments.wrong("position", position, f"a yomi.{self.game}.Game")
        if not isinstance(limit, Limit | None):
            raise arguments.wrong("limit", limit, "a yomi.Limit such as yomi.Limit(visits=100)")
        with self._lock:
            if self._end:
                raise ClosedError(f"{self._end}: open another one")
            try:
                yield position._raw
            except (RefusedError, OptionError, LimitError) as error:
                raise self._named(error) from None
            except BaseException as error:
                self._end = "the engine has failed"
                self._client.process.close()
                if isinstance(error, EngineError):
                    raise self._named(error) from None
                raise

    def _named(self, error: Exception) -> Exception:
        return type(error)(f"{self._client.spec.name}: {error}")


class _GtpEngine(ExternalEngine[P]):
    _client: GtpClient

    def __init__(self, client: GtpClient, game: str) -> None:
        super().__init__(client, game)
        self._board: tuple[object, list[str]] | None = None  # what the engine's board shows
        self._own_limits: dict[str, float] = {}  # before a call changed them

    def _choose(self, position: P, raw: Any, limit: Limit) -> tuple[str, str, Evaluation, float]:
        color, clock = self._set_up(position, raw), self._limit(limit, raw.side_to_move)
        answer = self._client.genmove(color, clock)
        assert self._board is not None
        self._board[1].append(answer.move)
        found = answer.evaluation or Evaluation()
        return answer.move, "".join(found.pv[1:2]), found, answer.seconds

    def _analyse(self, position: P, raw: Any, limit: Limit) -> tuple[dict[int, Evaluation], float]:
        color = self._set_up(position, raw)
        if limit.clocks is not None or limit.depth is not None:
            raise OptionError("clocks or depth found, expected seconds, visits or playouts for an analysis by GTP")
        limits = limit._limits
        visits = min(limits.visits or NO_COUNT, limits.playouts or NO_COUNT)
        # KataGo 1.14 knows no rootInfo.
        interval = "1" if visits < 1000 else REPORT_INTERVAL  # centiseconds: few visits take less time
        command = self._client.first_known(dict.fromkeys(ANALYSES, interval), color)
        if not command:
            raise RefusedError(f"knows no command for analyses, expected one of {', '.join(ANALYSES)}")
        seconds = NO_SECONDS if limits.seconds is None else limits.seconds
        lines: dict[int, Evaluation] = {}

        def is_enough(line: str) -> bool:
            if found := {move.rank: move for move in read_moves(line, command) if move.pv}:
                lines.clear()  # each line has all moves
                lines.update(found)
            return own_visits(lines.values()) >= visits

        times = [at for at, _ in self._client.analyse(command, seconds, is_enough)]
        return lines, times[-1] if times else 0.0

    def _set_up(self, position: P, raw: Any) -> str:
        """Show the engine a position. Return the letter of the side to move."""
        client, moves, start = self._client, position.moves, raw.search_key
        if raw.setup and not raw.handicap:
            raise OptionError("a position with set-up stones found, expected an empty board or handicap stones")
        if self._board is None or self._board[0] != start or moves[: len(self._board[1])] != self._board[1]:
            stones = [raw.board.vertex(point) for _, point in raw.setup]
            self._board = None
            client.new_game(raw.board.side, raw.komi, str(raw.rules), TimeSettings(), stones)
            self._board = start, []
        known = self._board[1]
        for (color, _), move in zip(raw.moves[len(known) :], moves[len(known) :], strict=True):
            client.play(format_color(color), move)
            known.append(move)
        return format_color(raw.side_to_move)

    def _limit(self, limit: Limit, color: int) -> Clock:
        """Send the limits of the next move. Return its clock."""
        limits, clocks = limit._limits, limit._clocks(self.game)
        given = {name: value for name in KATA_LIMITS if (value := getattr(limits, name)) is not None}
        if limits.depth is not None:
            raise OptionError("depth found, expected seconds, visits, playouts or clocks for GTP")
        own = self._own_limits | {name: self._own_limit(name) for name in given.keys() - self._own_limits.keys()}
        clock = Clock.full(TimeSettings()) if clocks is None else clocks[color]
        wanted: Mapping[str, Any] = own | given
        self._client.set_limits(EngineLimits(**wanted), clock.settings)
        self._own_limits = own
        return clock

    def _own_limit(self, name: str) -> float:
        """Return the engine's own limit; without one a number that lifts the limit."""
        found: float | None = getattr(self._client.spec.limits, name)
        if self._client.knows("kata-get-param"):
            with contextlib.suppress(RefusedError, ValueError, OverflowError):
                found = float(self._client.ask(f"kata-get-param {KATA_LIMITS[name]}"))
        if name == "seconds":
            return NO_SECONDS if found is None else min(found, NO_SECONDS)
        return NO_COUNT if found is None else int(min(found, NO_COUNT))


class _UsiEngine(ExternalEngine[P]):
    _client: UsiClient
    _unit = "nodes"

    def _choose(self, position: P, raw: Any, limit: Limit) -> tuple[str, str, Evaluation, float]:
        search = self._search(position, raw, limit)
        answer = search.wait()
        return answer.move, answer.reply, answer.evaluation or Evaluation(), answer.seconds

    def _analyse(self, position: P, raw: Any, limit: Limit) -> tuple[dict[int, Evaluation], float]:
        search, found = self._search(position, raw, limit), dict[int, Evaluation | None]()
        for _, line in search.reports():
            rank = re.search(r" multipv ([0-9]{1,4})\b", line)
            number = int(rank[1]) if rank else 1
            found[number] = read_info(re.sub(r" multipv \S+", "", line), found.get(number))
        lines = {number: evaluation for number, evaluation in found.items() if evaluation is not None}
        return lines, search.wait().seconds

    def _search(self, position: P, raw: Any, limit: Limit) -> Any:
        limits, clocks, words = limit._limits, limit._clocks(self.game), list[str]()
        nodes = [count for count in (limits.visits, limits.playouts) if count is not None]
        seconds = SECONDS if limit == Limit() else limits.seconds
        allowed = float(NO_SECONDS) if seconds is None else seconds
        if clocks is not None:
            allowed = clocks[raw.side_to_move].allowed
            words.append(clock_words(clocks, raw.side_to_move))
        elif seconds is not None:
            words.append(f"movetime {int(1000 * seconds)}")
        words += [f"nodes {min(nodes)}"] if nodes else []
        words += [f"depth {limits.depth}"] if limits.depth is not None else []
        start = START_WORD if raw.initial_sfen == STARTPOS else raw.initial_sfen
        return self._client.start(start, position.moves, " ".join(words), allowed)


def _end_process(process: Any, owner: int) -> None:
    if os.getpid() == owner:  # no copy of it after a fork
        process.kill()
        process.close_input()


def open_engine(command: str, game: str = "go", *, timeout: float = TIMEOUT) -> ExternalEngine[Any]:
    """Start another engine: a GTP engine for Go, a USI engine for shogi.

    Args:
        command: its command line, as in `yomi match`: "katago gtp -model FILE ;; name=KataGo". "yomi:visits=100" is
            yomi itself.
        game: go or shogi.
        timeout: seconds that the engine may take to start, and beyond its time for a move.

    Raises:
        EngineError: the engine cannot be started, or does not answer.
        Error: the command line cannot be read.
    """
    arguments.one_of("game", game, KINDS)
    protocol, client, kind = KINDS[game]
    spec = parse_spec(arguments.text("command", command, "a command line"), game, protocol)
    if not arguments.is_number(timeout, 0):
        raise arguments.wrong("timeout", timeout, "seconds of at least 0")
    try:
        engine: ExternalEngine[Any] = kind(client(spec, timeout=float(timeout)), game)
        return engine
    except EngineError as error:
        raise type(error)(f"{spec.name}: {error}") from None


KINDS: Mapping[str, Any] = {"go": ("gtp", GtpClient, _GtpEngine), "shogi": ("usi", UsiClient, _UsiEngine)}


def _report(position: Position[Any], lines: Mapping[int, Evaluation], seconds: float, unit: str) -> Report:
    """Return the reports of moves as a Report. Moves of a variation that cannot be read are left out."""
    moves = [
        RawMove(
            variation[0],
            found.visits or 0,
            winrate=_known(found.winrate),
            score_lead=_known(found.score),
            prior=found.prior,
            lcb=_known(found.winrate),
            pv=tuple(variation),
            mate=found.mate,
            symmetry_of=next(iter(_codes(position, (found.symmetry_of,))), None),
        )
        for _, found in sorted(lines.items())
        if (variation := _codes(position, found.pv))
    ]
    counts = [found.visits or 0 for found in lines.values()]
    visits = max(counts, default=0) if unit == "nodes" else own_visits(lines.values())
    best = moves[0] if moves else RawMove(0, winrate=math.nan, score_lead=math.nan)
    raw = SearchReport(
        position.side_to_move,
        visits,
        visits,
        seconds=seconds,
        winrate=best.winrate,
        score_lead=best.score_lead,
        moves=tuple(replace(move, order=order) for order, move in enumerate(moves)),
        deepest=max((len(move.pv) for move in moves), default=0),
        unit=unit,
    )
    return Report(raw, position._names)


def _known(number: float | None) -> float:
    return math.nan if number is None else number


def _codes(position: Position[Any], texts: tuple[str, ...]) -> list[int]:
    codes: list[int] = []
    with contextlib.suppress(IllegalMove):
        for text in texts:
            codes.append(position._parse(text))
    return codes
