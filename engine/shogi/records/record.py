"""Game records: what a record holds, and lines of USI. Files of every form: `engine.shogi.records.files`.

Reading checks every move by the plain rules of `engine.shogi.placement`, so that a broken record is told by its
line. The text forms are read and written here and not by cshogi, whose readers take impossible moves without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.color import DRAW, opponent
from engine.search.report import Counts
from engine.shogi.notation import NotationError, format_usi, guilty_of, parse_usi
from engine.shogi.placement import Placement
from engine.shogi.sfen import START_WORD, STARTPOS, SfenError, format_sfen, parse_sfen

if TYPE_CHECKING:
    from engine.shogi.game import ShogiGame

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
"""Ways to end by CSA's names: KIF's word, and who wins, the side to move (mover), the other one or nobody. The guilty
side of an ILLEGAL_ACTION, perpetual check for example, stands in its sign."""


class RecordError(ValueError):
    """A record that cannot be read or written; the message is one line."""


class ImpossibleMoveError(RecordError):
    """A move that the position does not allow."""


@dataclass(slots=True)
class RecordedMove:
    """A move, and what was said of it."""

    move: int
    seconds: float | None = None
    """Time taken; None where the record does not say."""
    score: int | None = None
    """Centipawns for the side that played it; None where the record does not say."""
    pv: str = ""
    """The line expected after it, as the record writes it."""
    comment: str = ""
    counts: Counts = ()
    """Visits of the search for it; empty where the record does not say."""


@dataclass(slots=True)
class GameRecord:
    """One game."""

    initial: Placement = START
    moves: list[RecordedMove] = field(default_factory=list)
    black: str = ""
    white: str = ""
    ending: str = ""
    """One of ENDINGS; empty where the record does not say."""
    ending_seconds: float | None = None
    info: dict[str, str] = field(default_factory=dict)
    """CSA's names of what else is known, such as EVENT, SITE, START_TIME."""
    comment: str = ""
    """What stands before the first move."""
    variations: list[GameRecord] = field(default_factory=list)
    """Lines that leave the game, or the one before them, at their initial position, in the file's order (KIF)."""
    left_out: list[str] = field(default_factory=list)
    """What of the file could not be read, on one line each."""

    @property
    def winner(self) -> int | None:
        """BLACK, WHITE or DRAW; None for a game without an end."""
        guilty = guilty_of(self.ending)
        if guilty is not None:
            return opponent(guilty)
        mover = self.initial.side if len(self.moves) % 2 == 0 else opponent(self.initial.side)
        who = ENDINGS[self.ending][1] if self.ending else None
        return None if who is None else {MOVER: mover, WAITER: opponent(mover), NOBODY: DRAW}[who]

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
        """Leave the game out from the first move on that the rules forbid, and say so in `left_out`."""
        from engine.shogi.game import IllegalMove, ShogiGame

        game = ShogiGame(format_sfen(self.initial))
        for count, recorded in enumerate(self.moves):
            try:
                game.play(recorded.move)
            except IllegalMove as error:
                del self.moves[count:]
                self.ending = ""
                self.left_out.append(rest_from(f"move {count + 1}: {error}"))
                return

    def game(self, moves: int | None = None) -> ShogiGame:
        """Return the game after `moves` moves (all of them for None).

        Raises:
            RecordError: a move that the rules forbid.
        """
        from engine.shogi.game import IllegalMove, ShogiGame

        game = ShogiGame(format_sfen(self.initial))
        for number, recorded in enumerate(self.moves[:moves], 1):
            try:
                game.play(recorded.move)
            except IllegalMove as error:
                raise RecordError(f"move {number} of the record: {error}") from None
        return game


def rest_from(fault: RecordError | str) -> str:
    """Return what `left_out` says of a game that is cut at a move that cannot be."""
    return f"the game from its illegal move on ({fault})"


def _name(move: int) -> str:
    try:
        return format_usi(move)
    except IndexError:
        return str(move)


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

    Args:
        line: the line.
        cut: leave a game out from the first move on that cannot be, and say so in `left_out`.

    Raises:
        RecordError: neither, or, unless it is cut, a move that cannot be.
    """
    words = line.split()
    if words[:1] == ["position"]:
        words = words[1:]
    at = words.index("moves") if "moves" in words else len(words)
    head = words[:at]
    if head[:1] == ["sfen"]:
        head = head[1:]
    try:
        record = GameRecord(START if head == [START_WORD] else parse_sfen(" ".join(head)))
        placement = record.initial
        for word in words[at + 1 :]:
            placement = record.add(placement, parse_usi(word))
    except ImpossibleMoveError as error:
        if not cut:
            raise
        record.left_out.append(rest_from(error))
    except (SfenError, NotationError) as error:
        raise RecordError(str(error)) from None
    return record


def format_usi_line(record: GameRecord) -> str:
    """Return a game as `startpos moves ...` or `sfen ... moves ...`."""
    start = START_WORD if record.initial == START else f"sfen {format_sfen(record.initial)}"
    moves = " ".join(format_usi(recorded.move) for recorded in record.moves)
    return f"{start} moves {moves}" if moves else start


def read_usi_lines(text: str, *, cut: bool = False) -> list[GameRecord]:
    """Read a game from each line that is not empty and no comment (#); `cut` as in `parse_usi_line`.

    Raises:
        RecordError: a line that is none.
    """
    records = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            try:
                records.append(parse_usi_line(line, cut=cut))
            except RecordError as error:
                raise RecordError(f"line {number}: {error}") from None
    return records
