"""Records in CSA's form (versions 2 to 3), with times, evaluations and comments."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.shogi.notation import (
    CSA_NAMES,
    CSA_SIGNS,
    CSA_TYPES,
    NotationError,
    csa_square,
    format_csa,
    illegal_action,
    parse_csa,
)
from yomi.engine.shogi.placement import (
    COUNTS,
    DROP_PAWN_MATE,
    HAND_INDEX,
    Placement,
    code_of,
    color_of,
    ranks_of,
    type_of,
    unpromoted,
)
from yomi.engine.shogi.records.japanese import csa_pv, is_read, read_evaluation
from yomi.engine.shogi.records.record import (
    ENDINGS,
    MAX_SECONDS,
    START,
    GameRecord,
    ImpossibleMoveError,
    RecordedMove,
    RecordError,
    Texts,
    checked,
    cut_before,
    lines_of,
    one_line,
)
from yomi.native.shogi.pieces import HAND_TYPES

COLORS = {"+": BLACK, "-": WHITE}
LINE = re.compile(r"V[0-9.]+|N[+-].*|\$.*|P[I1-9+-].*|[+-]|[+-][0-9]{4}[A-Z]{2}.*|T.*|%.*|/|'.*")
MOVE_START = re.compile(r"[+-][0-9]")
# Lines that only CSA has.
BEGINNING = re.compile(
    r"V[123](\.[0-9])?|N[+-].*|PI.*|P[1-9](?:[+-][A-Z]{2}| ?\*).*|P[+-][0-9]{2}[A-Z]{2}.*|[+-]|[+-][0-9]{4}[A-Z]{2}.*"
    r"|%[+-]?[A-Z_]+|'CSA encoding=.*"
)
# Comments of Floodgate for programs, which begin without a star.
PROGRAM_LINE = re.compile(r"\$[A-Z_]+:.*|(summary|rating|black_rate|white_rate|Max_Moves|Least_Time_Unit|Increment):.*")
# A search's visits are a comment of our own, `'visits +7776FU:40 +2726FU:9`. Programs show only comments with a star.
VISITS = re.compile(r"visits((?: [+-][0-9]{4}[A-Z]{2}:[0-9]{1,12})+)\s*")
CELL = re.compile(r"[+-][A-Z]{2}| [* ] |\*  |  \*")
LAST_MOVE = re.compile(r"[+-][0-9]{4}[A-Z]{2}\s*$")
# Evaluations are comments `'** SCORE LINE` after a move, as Floodgate writes them, in centipawns for Black.
SCORE = re.compile(r"\*\*\s*(-?[0-9]{1,9})(?:\s+(.*))?$")


def looks_like_csa(lines: list[str]) -> bool:
    """Return whether the lines of a text, without empty lines, are CSA."""
    return any(BEGINNING.fullmatch(line.rstrip()) for line in lines)


class _Reader:
    def __init__(self, statements: Sequence[tuple[int, str]]) -> None:
        self.statements = statements  # of the whole file, each with its line number
        self.index = 0  # of the current statement
        self.record = GameRecord()
        self.texts = Texts()
        self.board = [0] * 81
        self.hands = ([0] * 7, [0] * 7)
        self.has_board = False
        self.is_collapsed = False
        self.placement: Placement | None = None  # after the moves so far, once the side to move is known
        self.before: Placement | None = None  # before the last move
        self.last_comment = ""  # since the last move
        self.is_over = False  # ignore the rest of the game

    @property
    def number(self) -> int:
        return self.statements[self.index][0]

    def note(self, text: str) -> None:
        self.record.add_note(text, self.number)

    def read(self, line: str) -> None:
        if not LINE.fullmatch(line):
            if MOVE_START.match(line):
                raise RecordError(f"'{line}': expected a statement of CSA, such as +7776FU or %TORYO")
            self.note(f"'{line[:40]}' is no statement of CSA and left out")
            return
        match line[0]:
            case "V":
                self.record.is_csa3 = line[1:2] == "3"
            case "'":
                self._comment(line[1:])
            case "N":
                if line[1:2] == "+":
                    self.record.black = line[2:]
                else:
                    self.record.white = line[2:]
            case "$":
                key, _, value = line[1:].partition(":")
                self.texts.add(self.record.info, key, value)
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
        """End the game by a foul of the side to move, unless moves or another ending follow its impossible move."""
        if self._is_foul() is False:
            return False
        self.record.ending = illegal_action(self.at.side)
        return True

    def _is_foul(self) -> bool | None:
        """Return whether the game ends here by a foul of the side to move; None if only comments follow."""
        for index in range(self.index + 1, len(self.statements)):
            _, statement = self.statements[index]
            if statement == "/":
                break
            if statement[0] in COLORS:
                return False
            if statement[0] == "%":
                return statement[1:] in ("ILLEGAL_MOVE", illegal_action(self.at.side))
        return None

    def _comment(self, text: str) -> None:
        record = self.record
        self.last_comment = text
        if not record.moves:
            # The encoding is a property of the file, not a comment.
            if self.has_board or not text.startswith("CSA encoding="):
                self.texts.add(record, "comment", text.removeprefix("*"))
        elif record.ending:
            self.texts.add(record, "end_comment", text.removeprefix("*"))
        elif not self._evaluation(text) and not self._visits(text):
            self.texts.add(record.moves[-1], "comment", text.removeprefix("*"))

    def _evaluation(self, text: str) -> bool:
        """Read a comment if it is the evaluation of the last move. A later evaluation replaces an earlier one."""
        last, by_black = self.record.moves[-1], self.at.side == WHITE
        score = SCORE.match(text)
        # Other programs write their evaluations into CSA as they do into KIF.
        if score is None:
            return text.startswith("*") and read_evaluation(last, self.texts, text[1:], by_black=by_black)
        last.score = int(score[1]) if by_black else -int(score[1])
        last.pv = score[2] or ""
        return True

    def _visits(self, text: str) -> bool:
        counts = VISITS.fullmatch(text)
        if counts is None:
            return False
        assert self.before is not None
        pairs = []
        for move, visits in (word.split(":") for word in counts[1].split()):
            try:
                pairs.append((parse_csa(move, self.before), int(visits)))
            except NotationError as error:
                self.note(f"visits of {move}: {error}; the visits are kept as a comment")
                return False
        self.record.moves[-1].counts = tuple(pairs)
        return True

    @property
    def at(self) -> Placement:
        """The position after the moves read so far. It exists once the side to move is known."""
        assert self.placement is not None
        return self.placement

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
        found = [cells[i : i + 3] for i in range(0, 27, 3)]
        if cells[27:].strip() or not all(CELL.fullmatch(cell) for cell in found):
            # Blanks may be lost: nine cells are accepted without them.
            collapsed = re.findall(r"[+-][A-Z]{2}|\*", line[2:])
            if len(collapsed) == 9 and "".join(collapsed) == "".join(line[2:].split()):
                if not self.is_collapsed:
                    self.note(f"'{line}' has too few blanks, as other ranks of the board may have")
                self.is_collapsed, found = True, collapsed
            elif cells[27:].strip():
                raise RecordError(f"'{line}' has more than 9 squares")
        for column, cell in enumerate(found):
            square = 9 * (8 - column) + rank
            if cell.strip() in ("*", ""):
                self.board[square] = 0
            elif cell[0] in COLORS and cell[1:] in CSA_TYPES:
                self.board[square] = code_of(CSA_TYPES[cell[1:]], COLORS[cell[0]])
            else:
                raise RecordError(f"'{cell}' in '{line}': expected ' * ' or a piece such as +FU")

    def _put(self, line: str) -> None:
        color = COLORS[line[1]]
        if line[2:] == "00AL":
            # 00AL: all pieces that are not placed yet go to this hand.
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
        for match in re.finditer(r".{1,4}", "".join(line[2:].split())):
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
            self.note(f"a second side to move '{CSA_SIGNS[color]}' is left out")
            return
        board = self.board if self.has_board else START.board
        hands = (tuple(self.hands[0]), tuple(self.hands[1]))
        self.placement = self.record.initial = checked(Placement(tuple(board), hands, color))

    def _move(self, line: str) -> None:
        if self.placement is None:
            self._side(COLORS[line[0]])  # some programs leave the line of the side to move out
        self.is_over = not self.record.can_continue(line, self.number)
        if self.is_over:
            return
        # The wrong side moves: a move is hidden in a comment, or the side to move is wrong.
        if COLORS[line[0]] != self.at.side and not self._take_from_comment() and not self.record.moves:
            self.placement = self.record.initial = self._other_side()
        number = len(self.record.moves) + 1
        try:
            move = parse_csa(line.strip(), self.at)
        except NotationError as error:
            # It is a foul only if the ending says so, and not if the other side moves: who is guilty then?
            is_foul = COLORS[line[0]] == self.at.side and self._is_foul()
            raise (ImpossibleMoveError if is_foul else RecordError)(f"move {number}: {error}") from None
        name = f"{number} '{line}'"
        # Plain rules allow drop-pawn mate; it is illegal if the record ends with a foul.
        if self.at.is_drop_pawn_mate(move) and self._is_foul():
            raise ImpossibleMoveError(f"move {name}: {DROP_PAWN_MATE}")
        self._play(move, name)

    def _play(self, move: int, name: str) -> None:
        self.before, self.placement = self.placement, self.record.add(self.at, move, name)
        self.last_comment = ""

    def _take_from_comment(self) -> bool:
        # A lost line end has joined the move to the comment before it.
        found = LAST_MOVE.search(self.last_comment)
        if found is None:
            return False
        try:
            move = parse_csa(found[0], self.at)
        except NotationError:
            return False
        if self.at.why_not(move) is not None:
            return False
        self._play(move, "")
        self.note(f"move {len(self.record.moves)} '{found[0]}' is taken from the end of the comment before it")
        return True

    def _other_side(self) -> Placement:
        """Return the initial position with the other side to move, which makes the first move. Add a note."""
        turned = replace(self.at, side=opponent(self.at.side))
        sign = CSA_SIGNS[turned.side]
        checked(turned, f"the position, whose first move is {sign}")
        self.note(f"the first move is {sign}, which is taken for the side to move")
        return turned

    def _time(self, line: str) -> None:
        try:
            seconds = float(line[1:])
            if not 0.0 <= seconds <= MAX_SECONDS:
                raise ValueError
        except ValueError:
            self.note(f"time '{line[:40]}' is left out: expected T and seconds")
            return
        if self.record.ending:
            self.record.ending_seconds = seconds
        elif self.record.moves or (self.placement is not None and self._take_from_comment()):
            self.record.moves[-1].seconds = seconds
        else:
            self.note(f"time '{line[:40]}' before the first move is left out")

    def _end(self, name: str) -> None:
        if name not in ENDINGS:
            self.note(f"the ending '%{name[:40]}' is unknown and left out")
            return
        if self.placement is None:
            self._side(BLACK)
        if not self.record.ending:
            self.record.ending = name


def _pairs(text: str) -> list[tuple[int, str]]:
    found = []
    for match in re.finditer(r".{1,4}", "".join(text.split())):
        piece = re.fullmatch(r"([1-9])([1-9])([A-Z]{2})", match[0])
        if not piece or piece[3] not in CSA_TYPES:
            raise RecordError(f"'{match[0]}' in '{text}': expected a square and a piece such as 82HI")
        found.append((9 * (int(piece[1]) - 1) + int(piece[2]) - 1, piece[3]))
    return found


def read_csa(text: str, *, cut: bool = False) -> list[GameRecord]:
    """Read the games of CSA text, separated by lines `/`. Unknown lines become notes.

    An illegal last move is left out, with a note. With `cut` a game ends before any impossible move, with a note.
    Otherwise, or for an impossible position, RecordError names the line.
    """
    statements = list(_statements(text))
    records, reader = [], _Reader(statements)
    number = 0
    try:
        for index, (line, statement) in enumerate(statements):
            number = line
            if statement == "/":
                records.append(_finished(reader))
                reader = _Reader(statements)
                continue
            if reader.is_over:
                continue
            reader.index = index
            try:
                reader.read(statement)
            except RecordError as error:
                # A foul ends a game, so an impossible last move is no broken file.
                if isinstance(error, ImpossibleMoveError) and reader.ends_by_foul():
                    reader.note(f"{error}; the illegal move is left out")
                elif cut and MOVE_START.match(statement) and reader.placement is not None:
                    reader.is_over = True
                    reader.note(cut_before(error))
                else:
                    raise
        if not (records and reader.is_empty):  # a last "/" ends a game as well as it begins one
            records.append(_finished(reader))
    except RecordError as error:
        raise RecordError(f"line {number}: {error}") from None
    return records


def _statements(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines_of(text), 1):
        # Statements may share a line, except comments, names and headers, which may contain a comma.
        for part in [line] if line[:1] in ("'", "N", "$", "#") else line.split(","):
            statement = part.rstrip() if part[:1] == "P" else part.strip()
            if statement:
                yield number, statement


def _finished(reader: _Reader) -> GameRecord:
    if reader.is_empty:
        raise RecordError("the record ends without a position: expected PI or P1 to P9, and + or -")
    if reader.placement is None:
        raise RecordError("the record ends without the side to move: expected + or -")
    reader.texts.store()
    return reader.record


def format_position(placement: Placement) -> list[str]:
    """Return a position as lines. The last line contains the side to move."""
    if placement.board == START.board and not any(map(any, placement.hands)):
        return ["PI", CSA_SIGNS[placement.side]]
    lines = []
    for number, rank in enumerate(ranks_of(placement.board), 1):
        cells = [CSA_SIGNS[color_of(code)] + CSA_NAMES[type_of(code)] if code else " * " for code in rank]
        lines.append(f"P{number}{''.join(cells)}")
    for hand, sign in zip(placement.hands, "+-", strict=True):
        pieces = "".join(
            f"00{CSA_NAMES[piece_type]}" * count for piece_type, count in zip(HAND_TYPES, hand, strict=True)
        )
        if pieces:
            lines.append(f"P{sign}{pieces}")
    return [*lines, CSA_SIGNS[placement.side]]


def format_csa_record(record: GameRecord) -> str:
    """Return a game as CSA text: version 3.0 if the record has decimals, otherwise 2.2 with whole seconds."""
    lines = [f"V{'3.0' if record.is_csa3 else '2.2'}", f"N+{one_line(record.black)}", f"N-{one_line(record.white)}"]
    lines += [f"${key}:{line}" for key, value in record.info.items() for line in lines_of(value)]
    lines += _comments(record.comment)
    lines += format_position(record.initial)
    for recorded, placement in zip(record.moves, record.placements(), strict=False):
        lines.append(format_csa(recorded.move, placement))
        lines += _time(recorded.seconds, record.is_csa3)
        if recorded.score is not None:
            score = recorded.score if placement.side == BLACK else -recorded.score
            lines.append(f"'** {score} {csa_pv(recorded, placement)}".rstrip())
        if recorded.counts:
            lines.append(f"'visits {' '.join(f'{format_csa(move, placement)}:{n}' for move, n in recorded.counts)}")
        lines += _comments(recorded.comment, recorded)
    if record.ending:
        lines.append(f"%{record.ending}")
        lines += _time(record.ending_seconds, record.is_csa3)
    lines += _comments(record.end_comment)
    return "\n".join(lines) + "\n"


def format_csa_records(records: list[GameRecord]) -> str:
    """Return games separated by lines `/`."""
    text = "/\n".join(format_csa_record(record) for record in records)
    return text if text.isascii() else f"'CSA encoding=UTF-8\n{text}"


def _time(seconds: float | None, has_decimals: bool) -> list[str]:
    if seconds is None:
        return []
    return [f"T{f'{seconds:.3f}'.rstrip('0').rstrip('.')}" if has_decimals else f"T{int(seconds)}"]


def _comments(text: str, recorded: RecordedMove | None = None) -> list[str]:
    lines = []
    for line in lines_of(text) if text else []:
        is_number = line.startswith("*") or (recorded is not None and is_read(recorded, line))
        lines.append(f"'{line}" if PROGRAM_LINE.fullmatch(line) else f"'*{' ' if is_number else ''}{line}")
    return lines
