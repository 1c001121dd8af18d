"""Games of the page: how they begin and end, evaluations by the engine, and clocks."""

import time
from typing import Any

import yomi
from yomi.engine import play
from yomi.engine.clock import Clock, TimeSystem
from yomi.engine.color import COLOR_NAMES
from yomi.engine.go.game import score_text
from yomi.engine.go.points import Board, fixed_handicap
from yomi.engine.play import Ended
from yomi.engine.records import MAX_NOTES
from yomi.engine.shogi.game import describe
from yomi.engine.shogi.placement import format_sfen
from yomi.engine.shogi.records.japanese import ENGLISH_HANDICAPS, parse_handicap, sides_of
from yomi.language import tr
from yomi.library.arguments import shown
from yomi.library.position import Position
from yomi.library.values import Report

MAX_RECORD = 1_000_000  # characters of a record
MAX_MOVES = 1000  # moves of a game: 3.4 MB in Go
MARKS = {play.RESIGNATION: "+R", play.TIME: "+T"}


class UnknownIdError(yomi.Error):
    """This server never began such a game or review, or dropped it to make room for newer ones."""

    status = 404


def begin(
    game: str, board: Board, record: str | None, *, handicap: int, rules: str, komi: float | None, gives: str
) -> tuple[Position[Any], dict[str, Any], dict[int, str]]:
    """Return a new game, or the end of a record's main line. The second result describes the first position and the
    record for the page, the third contains the players' names in the record.

    Raises:
        Error: the record cannot be read or is too long, or the board cannot have this handicap, rules or komi.
    """
    read = None if record is None else (yomi.go if game == "go" else yomi.shogi).parse(record)[0]
    if read is not None and (n := len(read.moves)) > MAX_MOVES:
        raise yomi.Error(tr("a record of {n} moves found, expected at most {most}", n=n, most=MAX_MOVES))
    position, first = _go(board, handicap, rules, komi, read) if game == "go" else _shogi(gives, read)
    names = {yomi.BLACK: read.black, yomi.WHITE: read.white} if read else {}
    # Some notes end with the names of a command's flags, which the page lacks.
    first["notes"] = [note.partition(". --")[0] for note in read.notes[:MAX_NOTES]] if read else []
    first["isRecord"] = read is not None
    return position, first, {side: name for side, name in names.items() if name}


def letter(color: int) -> str:
    return {yomi.BLACK: "B", yomi.WHITE: "W"}.get(color, "")


def _go(
    board: Board, handicap: int, rules: str, komi: float | None, record: Any
) -> tuple[Position[Any], dict[str, Any]]:
    if record is not None:
        # As reviews read it: unknown rules are guessed, and a move that cannot be played ends the game, with notes.
        position = yomi.go.Game._of(record._raw.game(override_rules=record._raw.rules is None, cut=True))
        board = Board(position.width, position.height)
    else:
        points = [board.vertex(point) for point in fixed_handicap(handicap, board)] if handicap else []
        position = yomi.go.Game(
            board.width,
            height=board.height,
            rules=rules,
            komi=0.5 if handicap and komi is None else komi,
            handicap=points,
        )
    start = _start_of(position)
    stones = [
        (letter(color), board.vertex(board.point(x, y)))
        for y, row in enumerate(start.board)
        for x, color in enumerate(row)
        if color
    ]
    return position, {
        "width": board.width,
        "height": board.height,
        "stones": stones,
        "first": letter(start.side_to_move),
        "rules": position.rules,
        "komi": position.komi,
    }


def _shogi(gives: str, record: Any) -> tuple[Position[Any], dict[str, Any]]:
    placement = parse_handicap(gives)
    if placement is None:
        values = {"name": shown(gives), "names": ", ".join(ENGLISH_HANDICAPS)}
        raise yomi.Error(tr("handicap {name} found, expected one of {names}", **values))
    position = yomi.shogi.Game(format_sfen(placement)) if record is None else record.game()
    start = _start_of(position)
    return position, {"sfen": start.sfen, "isHandicap": sides_of(start._raw.placement)[yomi.BLACK] == "下手"}


def _start_of(position: Any) -> Any:
    """Return the initial position. In shogi its `ply` may be greater than 0: an SFEN has a move number."""
    start = position.copy()
    for _ in position.moves:
        start.undo()
    return start


def result_text(ended: Ended | None) -> str:
    """Return a result as in SGF, or as a sentence if SGF has no word; empty for a game that has not ended."""
    if ended is None:
        return ""
    if ended.ending == play.NO_RESULT:
        return "Void"
    if ended.score is not None:
        return score_text(ended.score)
    if ended.ending in MARKS:
        return letter(ended.winner) + MARKS[ended.ending]
    return f"{COLOR_NAMES[ended.winner]} wins: declaration" if ended.ending == play.DECLARATION else describe(ended)


def opinion(position: Position[Any], report: Report) -> dict[str, Any]:
    """Convert a report for the page. play.js describes the fields (type Opinion)."""
    ownership = report.ownership
    return {
        "ply": len(position.moves),
        "visits": report.visits,
        "unit": report.unit,
        "winrate": report.score.black.winrate,
        "score": report.score.black.lead,
        "candidates": [
            [move.move, move.visits, move.prior, move.winrate, move.score.lead, list(move.variation[:12])]
            for move in report.moves[:8]
        ],
        "ownership": None if ownership is None else [round(float(owner), 2) for owner in ownership.reshape(-1)],
    }


# -- clocks: both sides have the same settings -------------------------------------------------------------------------


class Clocks:
    """The clocks before each move. Taking back a move restores its time."""

    def __init__(self, game: str, *, main: float, byoyomi: float, periods: int, increment: float) -> None:
        """Start Black's clock; all times are seconds.

        Raises:
            Error: byo-yomi and increment together, or no time at all.
        """
        given = yomi.Clock(max(main, increment), byoyomi, periods if byoyomi else 1, increment=increment)
        if not given.main + byoyomi:
            raise yomi.Error("a clock without time found: set main time, byo-yomi or an increment")
        self._given = given
        self._before = [dict.fromkeys((yomi.BLACK, yomi.WHITE), given._for_engine(game))]
        self.restart()

    @property
    def used(self) -> float:
        """Seconds that the current move has taken so far."""
        return time.monotonic() - self._begin

    def restart(self) -> None:
        """Restart the current move: the side to move gets back the time that it had before this move."""
        self._begin = time.monotonic()

    def has_run_out(self, color: int, used: float) -> bool:
        """Return whether a move of `used` seconds is too slow."""
        return used > self._before[-1][color].allowed

    def move(self, color: int, used: float) -> None:
        """Count a move, and start the next one."""
        now = self._before[-1]
        self._before.append({**now, color: now[color].after(used)})
        self.restart()

    def undo(self) -> None:
        """Take back the last move with its time. Times of moves before the clocks were started are unknown."""
        if len(self._before) > 1:
            self._before.pop()
        self.restart()

    def limit(self) -> yomi.Limit:
        """Return the limit of the engine's move."""
        return yomi.Limit(clocks={color: _left(clock) for color, clock in self._before[-1].items()})

    def state(self, *, is_running: bool) -> dict[str, Any]:
        """Return the clocks for the page: time left when the current move began, and seconds used since then."""
        now = self._before[-1]
        return {
            "B": _shown(now[yomi.BLACK]),
            "W": _shown(now[yomi.WHITE]),
            "increment": self._given.increment,
            "used": self.used if is_running else 0.0,
        }


def _shown(clock: Clock) -> dict[str, float]:
    return {"main": clock.main, "period": clock.settings.period, "periods": clock.count}


def _left(clock: Clock) -> yomi.Clock:
    if clock.settings.system is TimeSystem.BYOYOMI:
        return yomi.Clock(clock.main, clock.settings.period, clock.count)
    return yomi.Clock(clock.main, increment=clock.settings.increment)
