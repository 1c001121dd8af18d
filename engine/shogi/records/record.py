"""Game records, and how they are read and written as lines of USI. For other forms see
`yomi.engine.shogi.records.files`.

Readers check every move by the plain rules of `yomi.engine.shogi.placement`. An error names the line of an impossible
move. A line that a reader does not understand becomes a note, and the moves are kept. cshogi is not used, because its
readers accept impossible moves silently.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from yomi.engine.color import DRAW, opponent
from yomi.engine.records import Note, record_score
from yomi.engine.search.types import Counts
from yomi.engine.shogi.notation import USI_MOVE, NotationError, csa_line, format_usi, guilty_of, parse_usi
from yomi.engine.shogi.placement import (
    START_WORD,
    STARTPOS,
    Placement,
    SfenError,
    check,
    format_sfen,
    is_move,
    parse_sfen,
)
from yomi.errors import IllegalMove, LineError, printable, reraised

if TYPE_CHECKING:
    from yomi.engine.players.request import Decision
    from yomi.engine.shogi.game import ShogiGame

START = parse_sfen(STARTPOS)

MOVER, WAITER, NOBODY = "mover", "waiter", "nobody"

# CSA's endings: KIF's word, and the winner (the side to move, the other side or nobody; None if unknown). The sign of
# an ILLEGAL_ACTION, such as perpetual check, is the guilty side's.
ENDINGS: dict[str, tuple[str, str | None]] = {
    "TORYO": ("投了", WAITER),
    "TSUMI": ("詰み", WAITER),
    "TIME_UP": ("切れ負け", WAITER),
    "ILLEGAL_MOVE": ("反則負け", WAITER),
    "KACHI": ("入玉勝ち", MOVER),
    "SENNICHITE": ("千日手", NOBODY),
    "JISHOGI": ("持将棋", NOBODY),
    "HIKIWAKE": ("持将棋", NOBODY),
    "MAX_MOVES": ("持将棋", NOBODY),
    "+ILLEGAL_ACTION": ("", None),
    "-ILLEGAL_ACTION": ("", None),
    "CHUDAN": ("中断", None),
    "MATTA": ("中断", None),
    "ERROR": ("中断", None),
    "FUZUMI": ("不詰", None),
}

INTERRUPTED = ("CHUDAN", "MATTA", "ERROR")  # games with these endings may continue
USI_ENDINGS = {"resign": "TORYO", "win": "KACHI"}  # words of USI in place of a last move
MAX_SECONDS = 10**8  # a longer time of a move is a fault
LABEL = "評価値"  # in comments that are evaluations
MAX_NOTES = 50  # further faults get one last note


class RecordError(LineError, ValueError):
    """A record cannot be read or written. The message is one line without control characters."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class ImpossibleMoveError(RecordError):
    """A recorded move is impossible in its position."""


@dataclass(slots=True)
class RecordedMove:
    move: int
    seconds: float | None = None  # time taken; None if unknown
    score: int | None = None  # centipawns for the side that played the move; None if unknown
    pv: str = ""  # the line expected after the move, in CSA, USI or Japanese
    comment: str = ""
    counts: Counts = ()  # visits of the search for the move; empty if unknown
    is_review: bool = False  # the score comes from a later review, not from the player


@dataclass(slots=True)
class GameRecord:
    initial: Placement = START
    moves: list[RecordedMove] = field(default_factory=list)
    black: str = ""
    white: str = ""
    ending: str = ""  # a key of ENDINGS; empty if unknown
    ending_seconds: float | None = None
    # Other headers by CSA's names, such as EVENT, SITE, START_TIME. A repeated header has several lines.
    info: dict[str, str] = field(default_factory=dict)
    comment: str = ""  # before the first move
    end_comment: str = ""  # after the end of the game, such as Floodgate's summary
    # Lines that leave the game, or the line before them, at their initial position, in the file's order (KIF).
    variations: list[GameRecord] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)  # lines that could not be read or were corrected
    is_csa3: bool = False  # CSA 3.0, whose times have decimals

    @property
    def winner(self) -> int | None:
        """BLACK, WHITE or DRAW; None for a game without a known result."""
        guilty = guilty_of(self.ending)
        if guilty is not None:
            return opponent(guilty)
        mover = self.initial.side if len(self.moves) % 2 == 0 else opponent(self.initial.side)
        who = ENDINGS[self.ending][1] if self.ending else None
        return None if who is None else {MOVER: mover, WAITER: opponent(mover), NOBODY: DRAW}[who]

    def add_note(self, text: str, line: int = 0) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(Note(printable(text), line))
        elif len(self.notes) == MAX_NOTES:
            self.notes.append(Note("there are more faults, which are not listed", line))

    def can_continue(self, move: str, line: int) -> bool:
        """Return whether a further move can follow, perhaps after an interruption. Otherwise add a note."""
        if self.ending in INTERRUPTED:
            self.add_note("the game continues after its interruption", line)
            self.ending, self.ending_seconds = "", None
        elif self.ending:
            self.add_note(f"the moves from '{move}' on, after the end of the game, are left out", line)
        return not self.ending

    def placements(self) -> list[Placement]:
        """Return the positions before each move, and the last position."""
        found = [self.initial]
        for recorded in self.moves:
            found.append(found[-1].after(recorded.move))
        return found

    def add(self, placement: Placement, move: int, name: str = "") -> Placement:
        """Append a move played in `placement`, the record's last position, and return the position after it.

        Raises ImpossibleMoveError. Its message calls the move `name`, by default its number and USI.
        """
        why = placement.why_not(move)
        if why:
            raise ImpossibleMoveError(f"move {name or f'{len(self.moves) + 1} {_name(move)}'}: {why}")
        self.moves.append(RecordedMove(move))
        return placement.after(move)

    def cut_at_fault(self) -> None:
        """Cut the game before the first move that the rules forbid, and add a note."""
        from yomi.engine.shogi.game import ShogiGame

        game = ShogiGame(format_sfen(self.initial))
        for count, recorded in enumerate(self.moves):
            try:
                game.play(recorded.move)
            except IllegalMove as error:
                del self.moves[count:]
                self.ending = ""
                self.add_note(cut_before(f"move {count + 1}: {error}"))
                return

    def game(self, moves: int | None = None, **rules: Any) -> ShogiGame:
        """Return the game after `moves` moves (None: all), under the rules of `ShogiGame`. Raises RecordError."""
        from yomi.engine.shogi.game import ShogiGame

        game = ShogiGame(format_sfen(self.initial), **rules)
        for number, recorded in enumerate(self.moves[:moves], 1):
            with reraised(IllegalMove, RecordError, f"move {number} of the record: "):
                game.play(recorded.move)
        return game

    def games(self, **rules: Any) -> list[ShogiGame]:
        """Return the game before each move, and after the last one, under the rules of `ShogiGame`."""
        games = [self.game(0, **rules)]
        for recorded in self.moves:
            games.append(games[-1].copy())
            games[-1].play(recorded.move)
        return games


def checked(placement: Placement, name: str = "the position") -> Placement:
    """Return a position if it is possible, otherwise raise RecordError."""
    with reraised(SfenError, RecordError, f"{name}: "):
        check(placement)
    return placement


def cut_before(fault: RecordError | str) -> str:
    """Return the note about a game that is cut before an impossible move."""
    return f"{fault}; the game is read up to there"


def lines_of(text: str) -> list[str]:
    # Other characters that Python's splitlines knows do not end a line.
    return re.split(r"\r\n|\r|\n", text)


def one_line(text: str) -> str:
    """Return text without line ends, for a header."""
    return " ".join(line.strip() for line in lines_of(text) if line.strip())


class Texts:
    """Collects comments and headers while a record is read. Joining their lines only once saves copies of the texts."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str], tuple[Any, list[str]]] = {}
        self._labelled: set[int] = set()

    def add(self, owner: GameRecord | RecordedMove | dict[str, str], name: str, line: str) -> None:
        """Add a line to a field of a record or move, or to the value of a header."""
        self._lines.setdefault((id(owner), name), (owner, []))[1].append(line)
        if LABEL in line:
            self._labelled.add(id(owner))

    def has_label(self, move: RecordedMove) -> bool:
        """Return whether the comment of a move contains an evaluation."""
        return id(move) in self._labelled

    def store(self) -> None:
        """Write all texts into their records and moves."""
        for (_, name), (owner, lines) in self._lines.items():
            text = "\n".join(itertools.dropwhile(operator.not_, lines))
            if isinstance(owner, dict):
                owner[name] = text
            else:
                setattr(owner, name, text)


def _name(move: int) -> str:
    return format_usi(move) if is_move(move) else str(move)


def record_of(game: ShogiGame, notes: Sequence[RecordedMove] = (), **info: Any) -> GameRecord:
    """Return a game as a record. `notes` are times, scores and comments of its first moves, `info` other fields."""
    record = GameRecord(parse_sfen(game.initial_sfen))
    for name, value in info.items():
        setattr(record, name, value)
    for number, (_, move) in enumerate(game.moves):
        note = notes[number] if number < len(notes) else RecordedMove(move)
        record.moves.append(replace(note, move=move))
    return record


# -- lines of USI --------------------------------------------------------------------------------------------------


def parse_usi_line(line: str, *, cut: bool = False) -> GameRecord:
    """Read `[position] startpos [moves ...]` or `[position] sfen SFEN [moves ...]`, or a bare SFEN.

    A last word `resign` or `win` is the game's ending; another word becomes a note. With `cut` the game ends before an
    impossible move, with a note; otherwise RecordError is raised.
    """
    words = line.split()
    if words[:1] == ["position"]:
        words = words[1:]
    if words and all(map(USI_MOVE.fullmatch, words)):
        words = [START_WORD, "moves", *words]  # bare moves
    elif words[:1] == ["moves"]:
        words = [START_WORD, *words]
    at = words.index("moves") if "moves" in words else len(words)
    head = words[:at]
    if head[:1] == ["sfen"]:
        head = head[1:]
    moves, last = words[at + 1 :], ""
    if len(moves) > 1 and re.fullmatch("[a-z_]+", moves[-1]):
        last = moves.pop()
    try:
        record = GameRecord(START if head == [START_WORD] else parse_sfen(" ".join(head)))
        placement = record.initial
        for word in moves:
            placement = record.add(placement, parse_usi(word))
        record.ending = USI_ENDINGS.get(last, "")
        if last and not record.ending:
            record.add_note(f"the ending '{last[:40]}' is unknown and left out")
    except ImpossibleMoveError as error:
        if not cut:
            raise
        record.add_note(cut_before(error))
    except NotationError as error:
        if not cut:
            raise RecordError(str(error)) from None
        record.add_note(cut_before(f"move {len(record.moves) + 1}: {error}"))
    except SfenError as error:
        raise RecordError(str(error)) from None
    return record


def format_usi_line(record: GameRecord) -> str:
    """Return a game as `startpos moves ...` or `sfen ... moves ...`."""
    start = START_WORD if record.initial == START else f"sfen {format_sfen(record.initial)}"
    moves = " ".join(format_usi(recorded.move) for recorded in record.moves)
    return f"{start} moves {moves}" if moves else start


def read_usi_lines(text: str, *, cut: bool = False) -> list[GameRecord]:
    """Read a game from each line, except from empty lines and comments (#). Raises RecordError."""
    records = []
    lines = lines_of(text)
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if len(found) > 1 and all(map(USI_MOVE.fullmatch, found)):  # a move on each line
        lines = [" ".join(found)]
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            try:
                records.append(parse_usi_line(line, cut=cut))
            except RecordError as error:
                raise RecordError(str(Note(str(error), number))) from None
            records[-1].notes = [replace(note, line=number) for note in records[-1].notes]
    return records


LINE_MOVES = 8  # moves of the expected line that a record keeps


def note_of(decision: Decision, placement: Placement, seconds: float, scale: float) -> RecordedMove:
    """Return a decision's move with its evaluation and the expected line. `scale` is the centipawns of a logit."""
    assert decision.move is not None
    lines = [move for move in decision.report.moves if move.move == decision.move]
    note = RecordedMove(decision.move, seconds, comment=decision.note)
    if lines and (decision.report.playouts or lines[0].mate):
        note.score = record_score(lines[0].winrate, lines[0].mate, scale)
        note.pv = " ".join(csa_line(lines[0].pv[:LINE_MOVES], placement)[1:])
    return note
