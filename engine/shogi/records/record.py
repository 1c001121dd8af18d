"""Game records: the content of a record, and lines of USI. Files of every form: `yomi.engine.shogi.records.files`.

Readers check every move by the plain rules of `yomi.engine.shogi.placement`. An error names the line of an impossible
move. A line that a reader does not understand is a note, and the moves are kept. cshogi is not used, because its
readers accept impossible moves silently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from yomi.engine.color import DRAW, opponent
from yomi.engine.records import Note, printable
from yomi.engine.search.types import Counts
from yomi.engine.shogi.moves import is_move
from yomi.engine.shogi.notation import NotationError, format_usi, guilty_of, parse_usi
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.sfen import START_WORD, STARTPOS, SfenError, format_sfen, parse_sfen
from yomi.nets.errors import LineError

if TYPE_CHECKING:
    from yomi.engine.shogi.game import ShogiGame

START = parse_sfen(STARTPOS)

MOVER, WAITER, NOBODY = "mover", "waiter", "nobody"

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
"""Endings by CSA's names: KIF's word, and the winner (the side to move, the other side or nobody; None if unknown).

The sign of an ILLEGAL_ACTION, such as perpetual check, is that of the guilty side.
"""

INTERRUPTED = ("CHUDAN", "MATTA", "ERROR")
"""Endings of games that may continue."""
USI_ENDINGS = {"resign": "TORYO", "win": "KACHI"}
"""Words of USI in place of a last move."""
MAX_SECONDS = 10**8
"""Time of a move. A longer one is a fault."""
MAX_NOTES = 50
"""Notes of a record. A last note says that there are more."""


class RecordError(LineError, ValueError):
    """A record that cannot be read or written; the message is one line without control characters."""

    def __init__(self, message: str) -> None:
        """Make an error."""
        super().__init__(printable(message))


class ImpossibleMoveError(RecordError):
    """A move that the position does not allow."""


@dataclass(slots=True)
class RecordedMove:
    """A move with its time, evaluation and comment."""

    move: int
    seconds: float | None = None
    """Time taken; None if unknown."""
    score: int | None = None
    """Centipawns for the side that played the move; None if unknown."""
    pv: str = ""
    """The line expected after the move, as text in CSA, USI or Japanese."""
    comment: str = ""
    counts: Counts = ()
    """Visits of the search for the move; empty if unknown."""
    is_review: bool = False
    """The score is that of a later review, not of the player."""


@dataclass(slots=True)
class GameRecord:
    """One game."""

    initial: Placement = START
    moves: list[RecordedMove] = field(default_factory=list)
    black: str = ""
    white: str = ""
    ending: str = ""
    """One of ENDINGS; empty if unknown."""
    ending_seconds: float | None = None
    info: dict[str, str] = field(default_factory=dict)
    """Other headers by CSA's names, such as EVENT, SITE, START_TIME. A header that is repeated has several lines."""
    comment: str = ""
    """Comment before the first move."""
    end_comment: str = ""
    """Comment after the end of the game, such as Floodgate's summary."""
    variations: list[GameRecord] = field(default_factory=list)
    """Lines that leave the game, or the one before them, at their initial position, in the file's order (KIF)."""
    notes: list[Note] = field(default_factory=list)
    """Lines that could not be read or were corrected."""
    is_csa3: bool = False
    """The record is CSA 3.0, whose times have decimals."""

    @property
    def winner(self) -> int | None:
        """BLACK, WHITE or DRAW; None for a game without an end."""
        guilty = guilty_of(self.ending)
        if guilty is not None:
            return opponent(guilty)
        mover = self.initial.side if len(self.moves) % 2 == 0 else opponent(self.initial.side)
        who = ENDINGS[self.ending][1] if self.ending else None
        return None if who is None else {MOVER: mover, WAITER: opponent(mover), NOBODY: DRAW}[who]

    def add_note(self, text: str, line: int = 0) -> None:
        """Add a note, up to MAX_NOTES."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(Note(printable(text), line))
        elif len(self.notes) == MAX_NOTES:
            self.notes.append(Note("there are more faults, which are not listed", line))

    def placements(self) -> list[Placement]:
        """Return the position before each move, and the last one."""
        found = [self.initial]
        for recorded in self.moves:
            found.append(found[-1].after(recorded.move))
        return found

    def add(self, placement: Placement, move: int, name: str = "") -> Placement:
        """Append a move played in `placement`, the record's last position, and return the position after it.

        Args:
            placement: the position before the move.
            move: the move.
            name: what an error calls it; its number and USI where this is empty.

        Raises:
            ImpossibleMoveError: the move cannot be played.
        """
        why = placement.why_not(move)
        if why:
            raise ImpossibleMoveError(f"move {name or f'{len(self.moves) + 1} {_name(move)}'}: {why}")
        self.moves.append(RecordedMove(move))
        return placement.after(move)

    def cut_at_fault(self) -> None:
        """Cut the game before the first move that the rules forbid, and add a note."""
        from yomi.engine.shogi.game import IllegalMove, ShogiGame

        game = ShogiGame(format_sfen(self.initial))
        for count, recorded in enumerate(self.moves):
            try:
                game.play(recorded.move)
            except IllegalMove as error:
                del self.moves[count:]
                self.ending = ""
                self.add_note(cut_before(f"move {count + 1}: {error}"))
                return

    def game(self, moves: int | None = None) -> ShogiGame:
        """Return the game after `moves` moves (all of them for None).

        Raises:
            RecordError: a move that the rules forbid.
        """
        from yomi.engine.shogi.game import IllegalMove, ShogiGame

        game = ShogiGame(format_sfen(self.initial))
        for number, recorded in enumerate(self.moves[:moves], 1):
            try:
                game.play(recorded.move)
            except IllegalMove as error:
                raise RecordError(f"move {number} of the record: {error}") from None
        return game


def cut_before(fault: RecordError | str) -> str:
    """Return the text of a note about a game that is cut before an impossible move."""
    return f"{fault}; the game is read up to there"


def lines_of(text: str) -> list[str]:
    """Return the lines of a record. CR, LF and CR LF end a line, no other character does."""
    return re.split(r"\r\n|\r|\n", text)


def one_line(text: str) -> str:
    """Return text without line ends, for a header."""
    return " ".join(line.strip() for line in lines_of(text) if line.strip())


def joined(text: str, line: str) -> str:
    """Return a comment with a further line."""
    return f"{text}\n{line}" if text else line


def _name(move: int) -> str:
    return format_usi(move) if is_move(move) else str(move)


def record_of(game: ShogiGame, notes: Sequence[RecordedMove] = (), **info: str) -> GameRecord:
    """Return the record of a game.

    Args:
        game: its initial position and moves.
        notes: what is known of each move (the move itself is taken from the game); may be shorter.
        info: fields of `GameRecord`, such as black="A", ending="TORYO".
    """
    record = GameRecord(parse_sfen(game.initial_sfen))
    for name, value in info.items():
        setattr(record, name, value)
    for number, (_, move) in enumerate(game.moves):
        note = notes[number] if number < len(notes) else RecordedMove(move)
        record.moves.append(replace(note, move=move))
    return record


# -- lines of USI --------------------------------------------------------------------------------------------------


def parse_usi_line(line: str, *, cut: bool = False) -> GameRecord:
    """Read `[position] startpos [moves ...]` or `[position] sfen SFEN [moves ...]`; a bare SFEN is a position, too.

    A last word `resign` or `win` is the game's ending; another word is a note.

    Args:
        line: the line.
        cut: cut a game before an impossible move and add a note.

    Raises:
        RecordError: not such a line, or, without `cut`, an impossible move.
    """
    words = line.split()
    if words[:1] == ["position"]:
        words = words[1:]
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
    """Read a game from each line, except empty ones and comments (#); `cut` as in `parse_usi_line`.

    Raises:
        RecordError: a line that is no game.
    """
    records = []
    for number, line in enumerate(lines_of(text), 1):
        if line.strip() and not line.startswith("#"):
            try:
                records.append(parse_usi_line(line, cut=cut))
            except RecordError as error:
                raise RecordError(str(Note(str(error), number))) from None
            records[-1].notes = [replace(note, line=number) for note in records[-1].notes]
    return records
