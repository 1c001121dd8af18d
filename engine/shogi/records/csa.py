"""Records in CSA's form (the standard's versions 2 to 3), with times, evaluations and comments.

Evaluations are the comments that Floodgate writes, `'** SCORE LINE` after a move, in centipawns for Black. The visits
of a search are a comment of our own, `'visits +7776FU:40 +2726FU:9`, without the star that asks programs to show it.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from engine.color import BLACK, WHITE
from engine.shogi.notation import (
    CSA_NAMES,
    CSA_SIGNS,
    CSA_TYPES,
    NotationError,
    csa_square,
    format_csa,
    illegal_action,
    parse_csa,
)
from engine.shogi.pieces import COUNTS, HAND_INDEX, HAND_TYPES, code_of, color_of, type_of, unpromoted
from engine.shogi.placement import DROP_PAWN_MATE, Placement
from engine.shogi.records.record import ENDINGS, START, GameRecord, ImpossibleMoveError, RecordError, rest_from
from engine.shogi.sfen import SfenError, check

COLORS = {"+": BLACK, "-": WHITE}
LINE = re.compile(r"V[0-9.]+|N[+-].*|\$.*|P[I1-9+-].*|[+-]|[+-][0-9]{4}[A-Z]{2}.*|T[0-9.]+|%.*|/|'.*")
VISITS = re.compile(r"visits((?: [+-][0-9]{4}[A-Z]{2}:[0-9]+)+)\s*")
SCORE = re.compile(r"\*\*\s*(-?[0-9]+)(?:\s+(.*))?$")


def looks_like_csa(lines: list[str]) -> bool:
    """Whether the first lines of a text (none of them empty) are CSA's."""
    return bool(LINE.fullmatch(lines[0].rstrip()))


class _Reader:
    """Reads one game, line by line."""

    def __init__(self, statements: Sequence[tuple[int, str]]) -> None:
        self.statements = statements
        """Of the whole file, each with the number of its line."""
        self.index = 0
        """Of the statement that is being read."""
        self.record = GameRecord()
        self.board = [0] * 81
        self.hands = ([0] * 7, [0] * 7)
        self.has_board = False
        self.placement: Placement | None = None
        """The position after the moves so far, once the side to move is known."""
        self.before: Placement | None = None
        """The one before the last move."""

    def read(self, line: str) -> None:
        match line[0]:
            case "'":
                self._comment(line[1:])
            case "N":
                if line[1:2] == "+":
                    self.record.black = line[2:]
                else:
                    self.record.white = line[2:]
            case "$":
                key, _, value = line[1:].partition(":")
                self.record.info[key] = value
            case "P":
                self._pieces(line)
            case "+" | "-":
                self._move(line) if len(line) > 1 else self._side(COLORS[line])
            case "T":
                self._time(line)
            case "%":
                self._end(line[1:].strip())

    @property
    def is_empty(self) -> bool:
        return self.placement is None and not self.has_board

    def ends_by_foul(self) -> bool:
        """Give the game up for the side to move, whose move is impossible, if only an ending by its fault follows."""
        if self._is_foul() is False:
            return False
        self.record.ending = illegal_action(self._mover())
        return True

    def _is_foul(self) -> bool | None:
        """Whether the game ends by a fault of the side to move here; None where only comments follow."""
        for _, statement in itertools.islice(self.statements, self.index + 1, None):
            if statement == "/":
                break
            if statement[0] in COLORS:
                return False
            if statement[0] == "%":
                return statement[1:] in ("ILLEGAL_MOVE", illegal_action(self._mover()))
        return None

    def _comment(self, text: str) -> None:
        record = self.record
        score = SCORE.match(text)
        if record.moves and score and not record.ending:
            last = record.moves[-1]
            black = self._mover() == WHITE  # who played the last move
            last.score = int(score[1]) if black else -int(score[1])
            last.pv = score[2] or ""
            return
        counts = VISITS.fullmatch(text)
        if record.moves and counts and not record.ending:
            pairs = [word.split(":") for word in counts[1].split()]
            record.moves[-1].counts = tuple((self._parse(move), int(visits)) for move, visits in pairs)
            return
        if not record.moves and not self.has_board and text.startswith("CSA encoding="):
            return
        text = text.removeprefix("*")
        if record.moves:
            last = record.moves[-1]
            last.comment = f"{last.comment}\n{text}" if last.comment else text
        else:
            record.comment = f"{record.comment}\n{text}" if record.comment else text

    def _parse(self, text: str) -> int:
        """Return a move of the position before the last one.

        Raises:
            RecordError: it cannot be.
        """
        assert self.before is not None
        try:
            return parse_csa(text, self.before)
        except NotationError as error:
            raise RecordError(f"visits of {text}: {error}") from None

    def _mover(self) -> int:
        assert self.placement is not None
        return self.placement.side

    def _pieces(self, line: str) -> None:
        if self.placement is not None:
            raise RecordError(f"'{line}' after the side to move: expected a move")
        self.has_board = True
        if line.startswith("PI"):
            self.board = list(START.board)
            for square, name in _pairs(line[2:]):
                if type_of(self.board[square]) != CSA_TYPES[name]:
                    raise RecordError(f"'{line}' takes away {name} on {csa_square(square)}, which is not there")
                self.board[square] = 0
        elif line[1] in "+-":
            self._put(line)
        else:
            self._row(int(line[1]) - 1, line)

    def _row(self, rank: int, line: str) -> None:
        cells = line[2:].ljust(27)
        for column in range(9):
            cell = cells[3 * column : 3 * column + 3]
            square = 9 * (8 - column) + rank
            if cell.strip() in ("*", ""):
                self.board[square] = 0
            elif cell[0] in COLORS and cell[1:] in CSA_TYPES:
                self.board[square] = code_of(CSA_TYPES[cell[1:]], COLORS[cell[0]])
            else:
                raise RecordError(f"'{cell}' in '{line}': expected ' * ' or a piece such as +FU")
        if len(line) > 29 and line[29:].strip():
            raise RecordError(f"'{line}' has more than 9 squares")

    def _put(self, line: str) -> None:
        color = COLORS[line[1]]
        if line[2:] == "00AL":
            left = dict(COUNTS)
            for code in self.board:
                if code:
                    left[unpromoted(type_of(code))] -= 1
            for hand in self.hands:
                for piece_type, count in zip(HAND_TYPES, hand, strict=True):
                    left[piece_type] -= count
            for piece_type, index in HAND_INDEX.items():
                self.hands[color - 1][index] += max(left[piece_type], 0)
            return
        for match in re.finditer(r".{1,4}", line[2:]):
            digits, name = match[0][:2], match[0][2:]
            if digits == "00" and CSA_TYPES.get(name) in HAND_INDEX:
                self.hands[color - 1][HAND_INDEX[CSA_TYPES[name]]] += 1
            else:
                for square, _ in _pairs(match[0]):
                    if self.board[square]:
                        raise RecordError(f"'{line}' puts two pieces on {digits}")
                    self.board[square] = code_of(CSA_TYPES[name], color)

    def _side(self, color: int) -> None:
        if self.placement is not None:
            raise RecordError(f"a second side to move '{CSA_SIGNS[color]}'")
        board = self.board if self.has_board else START.board
        hands = (tuple(self.hands[0]), tuple(self.hands[1]))
        self.placement = self.record.initial = Placement(tuple(board), hands, color)
        try:
            check(self.placement)
        except SfenError as error:
            raise RecordError(f"the position: {error}") from None

    def _move(self, line: str) -> None:
        if self.placement is None:
            self._side(COLORS[line[0]])  # some programs leave the line of the side to move out
        assert self.placement is not None
        if self.record.ending:
            raise RecordError(f"'{line}' after the end of the game")
        number = len(self.record.moves) + 1
        try:
            move = parse_csa(line.strip(), self.placement)
        except NotationError as error:
            raise RecordError(f"move {number}: {error}") from None
        name = f"{number} '{line}'"
        if self.placement.is_drop_pawn_mate(move) and self._is_foul():
            raise ImpossibleMoveError(f"move {name}: {DROP_PAWN_MATE}")
        self.before, self.placement = self.placement, self.record.add(self.placement, move, name)

    def _time(self, line: str) -> None:
        try:
            seconds = float(line[1:])
        except ValueError:
            raise RecordError(f"time '{line}': expected T and seconds") from None
        if self.record.ending:
            self.record.ending_seconds = seconds
        elif self.record.moves:
            self.record.moves[-1].seconds = seconds

    def _end(self, name: str) -> None:
        if name not in ENDINGS:
            raise RecordError(f"'%{name}': expected one of %{', %'.join(ENDINGS)}")
        if self.placement is None:
            self._side(BLACK)
        if not self.record.ending:
            self.record.ending = name


def _pairs(text: str) -> list[tuple[int, str]]:
    """Return (square, name) of pieces written as `82HI22KA`."""
    found = []
    for match in re.finditer(r".{1,4}", text.strip()):
        piece = re.fullmatch(r"([1-9])([1-9])([A-Z]{2})", match[0])
        if not piece or piece[3] not in CSA_TYPES:
            raise RecordError(f"'{match[0]}' in '{text}': expected a square and a piece such as 82HI")
        found.append((9 * (int(piece[1]) - 1) + int(piece[2]) - 1, piece[3]))
    return found


def read_csa(text: str, *, cut: bool = False) -> list[GameRecord]:
    """Read the games of CSA text, which a line `/` separates. A last move that is illegal is left out, and said to be.

    Args:
        text: the text.
        cut: leave a game out from any move on that cannot be, and say so in its `left_out`.

    Raises:
        RecordError: a line that is not CSA's, an impossible position or, unless it is cut, move; it names the line.
    """
    statements = list(_statements(text))
    records, reader = [], _Reader(statements)
    number = 0
    is_cut = False
    try:
        for index, (number, statement) in enumerate(statements):
            if not LINE.fullmatch(statement):
                raise RecordError(f"'{statement}': expected a statement of CSA, such as +7776FU or %TORYO")
            if statement == "/":
                records.append(_finished(reader))
                reader, is_cut = _Reader(statements), False
                continue
            if is_cut:
                continue
            reader.index = index
            try:
                reader.read(statement)
            except RecordError as error:
                if isinstance(error, ImpossibleMoveError) and reader.ends_by_foul():
                    reader.record.left_out.append(f"the illegal move at line {number}: {error}")
                elif cut and statement[0] in COLORS and len(statement) > 1:
                    is_cut = True
                    reader.record.left_out.append(rest_from(f"line {number}: {error}"))
                else:
                    raise
        if not (records and reader.is_empty):  # a last "/" ends a game as well as it begins one
            records.append(_finished(reader))
    except RecordError as error:
        raise RecordError(f"line {number}: {error}") from None
    return records


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of its line."""
    for number, line in enumerate(text.splitlines(), 1):
        # statements may share a line, but for comments, names, and what else may hold a comma
        for part in [line] if line[:1] in ("'", "N", "$") else line.split(","):
            statement = part.rstrip() if part[:1] == "P" else part.strip()
            if statement:
                yield number, statement


def _finished(reader: _Reader) -> GameRecord:
    if reader.is_empty:
        raise RecordError("the record ends without a position: expected PI or P1 to P9, and + or -")
    if reader.placement is None:
        raise RecordError("the record ends without the side to move: expected + or -")
    return reader.record


def format_position(placement: Placement) -> list[str]:
    """Return the lines of a position, the side to move last."""
    if placement.board == START.board and not any(map(any, placement.hands)):
        return ["PI", CSA_SIGNS[placement.side]]
    lines = []
    for rank in range(9):
        cells = []
        for file in range(8, -1, -1):
            code = placement.board[9 * file + rank]
            cells.append(CSA_SIGNS[color_of(code)] + CSA_NAMES[type_of(code)] if code else " * ")
        lines.append(f"P{rank + 1}{''.join(cells)}")
    for hand, sign in zip(placement.hands, "+-", strict=True):
        pieces = "".join(
            f"00{CSA_NAMES[piece_type]}" * count for piece_type, count in zip(HAND_TYPES, hand, strict=True)
        )
        if pieces:
            lines.append(f"P{sign}{pieces}")
    return [*lines, CSA_SIGNS[placement.side]]


def format_csa_record(record: GameRecord) -> str:
    """Return a game as CSA text (version 2.2): names, times in whole seconds, evaluations and comments."""
    lines = ["V2.2", f"N+{_line(record.black)}", f"N-{_line(record.white)}"]
    lines += [f"${key}:{_line(value)}" for key, value in record.info.items()]
    lines += _comments(record.comment)
    lines += format_position(record.initial)
    for recorded, placement in zip(record.moves, record.placements(), strict=False):
        lines.append(format_csa(recorded.move, placement))
        if recorded.seconds is not None:
            lines.append(f"T{int(recorded.seconds)}")
        if recorded.score is not None:
            score = recorded.score if placement.side == BLACK else -recorded.score
            lines.append(f"'** {score} {_line(recorded.pv)}".rstrip())
        if recorded.counts:
            lines.append(f"'visits {' '.join(f'{format_csa(move, placement)}:{n}' for move, n in recorded.counts)}")
        lines += _comments(recorded.comment)
    if record.ending:
        lines.append(f"%{record.ending}")
        if record.ending_seconds is not None:
            lines.append(f"T{int(record.ending_seconds)}")
    return "\n".join(lines) + "\n"


def format_csa_records(records: list[GameRecord]) -> str:
    """Return several games, separated by a line `/`."""
    text = "/\n".join(format_csa_record(record) for record in records)
    return text if text.isascii() else f"'CSA encoding=UTF-8\n{text}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _comments(text: str) -> list[str]:
    """Return the lines of a comment; one that begins with a star is moved on: two stars are an evaluation."""
    return [f"'*{' ' if line.startswith('*') else ''}{line}" for line in text.splitlines()]
