"""Records in KIF and KI2, the forms of Japanese shogi programs.

KIF has a move a line with the square it comes from and the time, KI2 moves as players write them. Behind the game stand
its variations, each headed by `変化：N手`: it leaves the line read last, of which the first N - 1 moves stay.
Evaluations are comments `*評価値 SCORE LINE` below the move, in centipawns for Black.
"""

import itertools
import re
from collections.abc import Callable

from engine.color import BLACK, WHITE, opponent
from engine.shogi.diagram import SHORT_NAMES, japanese_hand
from engine.shogi.moves import target_of
from engine.shogi.notation import (
    JAPANESE_TYPES,
    RANKS,
    NotationError,
    format_kif,
    guilty_of,
    illegal_action,
    japanese_number,
    parse_japanese,
)
from engine.shogi.pieces import HAND_INDEX, code_of, color_of, type_of
from engine.shogi.placement import DROP_PAWN_MATE, Placement
from engine.shogi.records.record import (
    ENDINGS,
    START,
    GameRecord,
    ImpossibleMoveError,
    RecordedMove,
    RecordError,
    rest_from,
)
from engine.shogi.sfen import SfenError, check, format_sfen, parse_sfen

HANDICAPS = {
    "香落ち": "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "右香落ち": "1nsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "角落ち": "lnsgkgsnl/1r7/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "飛車落ち": "lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "飛香落ち": "lnsgkgsn1/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "二枚落ち": "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "三枚落ち": "lnsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "四枚落ち": "1nsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "五枚落ち": "2sgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "左五枚落ち": "1nsgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "六枚落ち": "2sgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "左七枚落ち": "2sgkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "右七枚落ち": "3gkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "八枚落ち": "3gkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
    "十枚落ち": "4k4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL",
}
"""What White, who moves first then, gives as a handicap: the board of the start."""

KEYS = {"開始日時": "START_TIME", "終了日時": "END_TIME", "棋戦": "EVENT", "場所": "SITE", "持ち時間": "TIME_LIMIT"}
"""CSA's names of headers."""

NAMES = {"先手": BLACK, "下手": BLACK, "後手": WHITE, "上手": WHITE}

WORDS = {word: name for name, (word, _) in reversed(ENDINGS.items()) if word} | {
    "詰": "TSUMI",
    "時間切れ": "TIME_UP",
    "入玉宣言": "KACHI",
    "宣言勝ち": "KACHI",
    "不戦敗": "TORYO",
    "封じ手": "CHUDAN",
    "トライ": "TORYO",
    "最大手数": "MAX_MOVES",
    "引き分け": "HIKIWAKE",
}
"""KIF's words for an ending, those of ShogiHome included. CSA has none for a king on the other's first square (トライ),
nor for a player who has not come (不戦敗): there the side to move has lost, as when it resigns."""

WINS = ("反則勝ち", "不戦勝")
"""Words by which the side to move has won, since the other one has done what is forbidden, or has not come."""

MOVE_LINE = re.compile(
    r"\s*([0-9]+)\s+(\S.*?)\s*(?:[(（]\s*([0-9]+:[0-9:. ]*?)\s*(?:/[0-9:. ]*)?[)）]\s*(?:[(（][0-9:/. ]+[)）])?)?\s*\+?"
)
"""A number, a move, its time, and a second time (東大将棋), which is passed over."""
SIDE_MARKS = "▲△▽▼☗☖"
KI2_MOVE = re.compile(f"[{SIDE_MARKS}][^{SIDE_MARKS}]*")
UNKNOWN = re.compile(rf"(?![{SIDE_MARKS}]?同)\D+")
"""A word that is no move: moves have a digit, or begin with 同."""
HEADER = re.compile(r"([^：:]{1,12})[：:](.*)")
VARIATION = re.compile(r"変化[：:]\s*([0-9]+)手.*")
RESULT = re.compile(r"\s*まで、?\s*(?:\d+手で?)?(.*)")
SCORE = re.compile(r"[*#]*評価値[ =＝：:]*([+-]?[0-9]+)(?:\s+(.*))?$")


def looks_like_kif(lines: list[str]) -> bool:
    """Whether the lines of a text (none of them empty) are those of KIF or KI2."""
    return any(
        line.startswith(("#KIF", "手数----", "手合割", "開始日時"))
        or ((header := HEADER.fullmatch(line)) and header[1] in NAMES)
        or KI2_MOVE.match(line)
        or (MOVE_LINE.fullmatch(line) and re.search(f"[{RANKS}]|同", line))
        for line in map(str.strip, lines[:40])
    )


class _Reader:
    """Reads a record, line by line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.number = 0
        """Of the line that is being read."""
        self.game = GameRecord()
        self.record = self.game
        """The game, or the variation that is being read."""
        self.path: list[tuple[Placement, int]] = []
        """(position, move) from the start of the game to where the reader is."""
        self.placement: Placement | None = None
        """The position after the moves so far; None before the first."""
        self.rows: list[str] = []
        self.hands: dict[int, tuple[int, ...]] = {BLACK: (0,) * 7, WHITE: (0,) * 7}
        self.side = BLACK
        self.handicap = ""
        self.is_over = False
        self.is_variation = False
        self.unknown: str | None = None
        """The word for the ending, where it is none of WORDS."""

    def read(self, line: str) -> None:
        if line.startswith("変化"):
            self._variation(line)
        elif self.is_over or line.startswith(("#", "&", "手数----")):
            return
        elif line.startswith("*"):
            self._comment(line[1:])
        elif line.startswith("|"):
            self.rows.append(line)
        elif match := RESULT.fullmatch(line):
            self._result(match[1].strip())
        elif KI2_MOVE.match(line):
            self._ki2_line(line)
        elif match := MOVE_LINE.fullmatch(line):
            self._move_line(match)
        elif match := HEADER.fullmatch(line):
            self._header(match[1].strip(), match[2].strip(" 　"))
        elif line in ("後手番", "上手番"):
            self.side = WHITE
        elif line in ("先手番", "下手番", "盤面回転") or re.match(r"\+-+\+|[９9]\s*[８8]|手数＝", line):
            pass  # what is drawn around a diagram, and how
        else:
            raise RecordError(f"'{line[:40]}': expected a line of KIF or KI2")

    def _header(self, key: str, value: str) -> None:
        if key in NAMES and NAMES[key] == BLACK:
            self.record.black = value
        elif key in NAMES:
            self.record.white = value
        elif key == "手合割":
            self.handicap = value
        elif key.endswith("持駒") and key[:2] in NAMES:
            self.hands[NAMES[key[:2]]] = _parse_hand(value)
        elif key == "手番":
            self.side = WHITE if value.startswith(("後", "上")) else BLACK
        else:
            self.record.info[KEYS.get(key, key)] = value

    def _begin(self) -> Placement:
        """Return the position of the next move; the first call puts up the initial one."""
        if self.placement is None:
            if self.rows:
                board = _parse_board(self.rows)
                self.placement = Placement(board, (self.hands[BLACK], self.hands[WHITE]), self.side)
            elif self.handicap in HANDICAPS:
                self.placement = parse_sfen(f"{HANDICAPS[self.handicap]} w - 1")
            elif self.handicap in ("", "平手"):
                self.placement = START
            else:
                names = ", ".join(("平手", *HANDICAPS))
                raise RecordError(f"手合割：{self.handicap} without a diagram: expected one of {names}")
            try:
                check(self.placement)
            except SfenError as error:
                raise RecordError(f"the position: {error}") from None
            self.record.initial = self.placement
        return self.placement

    def _variation(self, line: str) -> None:
        """Go back to before a move of the line read last, or on from its end."""
        placement = self._begin()
        self.is_variation = True
        match = VARIATION.fullmatch(line)
        last = len(self.path) + 1
        if not match or not 1 <= int(match[1]) <= last:
            raise RecordError(f"'{line[:40]}': expected a move from 1 to {last}, such as 変化：1手")
        number = int(match[1])
        self.placement = placement if number == last else self.path[number - 1][0]
        del self.path[number - 1 :]
        self.record = GameRecord(self.placement)
        self.game.variations.append(self.record)
        self.is_over = False
        self.unknown = None

    def leave_out(self, error: RecordError, *, cut: bool) -> bool:
        """Pass over the rest of a variation that cannot be read, or of a game that is to be cut; False for neither."""
        why = f"line {self.number}: {error}"
        if self.is_variation:
            self.game.left_out.append(f"the rest of the variation at {why}")
        elif cut and isinstance(error, ImpossibleMoveError):
            self.game.left_out.append(rest_from(why))
        else:
            return False
        self.is_over = True
        return True

    def _comment(self, text: str) -> None:
        record = self.record
        score = SCORE.match(text)
        if not record.moves:
            record.comment = f"{record.comment}\n{text}" if record.comment else text
        elif score and record.moves[-1].score is None and not record.ending:
            black = self._begin().side == WHITE  # who played the last move
            record.moves[-1].score = int(score[1]) if black else -int(score[1])
            record.moves[-1].pv = score[2] or ""
        else:
            last = record.moves[-1]
            last.comment = f"{last.comment}\n{text}" if last.comment else text

    def _move_line(self, match: re.Match[str]) -> None:
        seconds = _seconds(match[3]) if match[3] else None
        word = match[2].strip(" 　")
        if word in WORDS or word in WINS:
            self._end(word, seconds)
        elif UNKNOWN.fullmatch(word) and self._is_last():
            self.unknown = word
            self.game.left_out.append(f"the ending '{word[:40]}' at line {self.number}, which is unknown")
        else:
            self._move(word.replace("　", ""), seconds)

    def _ki2_line(self, line: str) -> None:
        """Read moves, the last of which may be a word for the ending (△投了)."""
        texts = [text.strip().replace("　", "") for text in KI2_MOVE.findall(line)]
        for text, following in itertools.pairwise([*texts, ""]):
            if not following and (text[1:] in WORDS or text[1:] in WINS):
                self._end(text[1:])
            else:
                self._move(text, following=following)

    def _is_last(self) -> bool:
        """Whether no numbered line follows in the game or the variation."""
        for line in self.lines[self.number :]:
            if line.startswith("変化") or RESULT.match(line):
                break
            if MOVE_LINE.fullmatch(line):
                return False
        return True

    def _move(self, text: str, seconds: float | None = None, *, following: str = "") -> None:
        """Read a move; an impossible one that ends the game is left out, and its side has lost.

        Args:
            text: the move.
            seconds: its time.
            following: the move or the ending behind it on its line.
        """
        placement, number = self._begin(), len(self.path) + 1
        if self.record.ending:
            raise RecordError(f"'{text}' after the end of the game")
        previous = target_of(self.path[-1][1]) if self.path else None
        try:
            move = parse_japanese(text, placement, previous, _is_possible(placement))
            if placement.is_drop_pawn_mate(move) and self._is_foul(placement.side, following):
                raise ImpossibleMoveError(f"move {number} '{text}': {DROP_PAWN_MATE}")
            self.placement = self.record.add(placement, move, f"{number} '{text}'")
        except NotationError as error:
            raise ImpossibleMoveError(f"move {number}: {error}") from None
        except ImpossibleMoveError as error:
            if self._is_foul(placement.side, following) is False:
                raise
            self.game.left_out.append(f"the illegal move at line {self.number}: {error}")
            self.game.ending, self.game.ending_seconds = illegal_action(placement.side), seconds
        else:
            self.record.moves[-1].seconds = seconds
            self.path.append((placement, move))

    def _is_foul(self, mover: int, following: str) -> bool | None:
        """Whether the game, and no variation, ends by a fault of `mover` here; None where only comments follow.

        Args:
            mover: whose fault it is.
            following: what stands behind the move on its line.
        """
        if self.is_variation:
            return False
        for line in (following, *self.lines[self.number :]):
            if line.startswith("変化"):
                break
            if RESULT.match(line) or MOVE_LINE.fullmatch(line) or KI2_MOVE.match(line):
                won = re.search("(先手|後手|上手|下手)の勝ち", line)
                return "反則" in line or (won is not None and NAMES[won[1]] != mover)
        return None

    def _end(self, word: str, seconds: float | None = None) -> None:
        """Note how the game has ended, unless a line before has said it: some programs add a second ending."""
        side = self._begin().side
        if not self.record.ending:
            self.record.ending = illegal_action(opponent(side)) if word in WINS else WORDS[word]
            self.record.ending_seconds = seconds

    def _result(self, text: str) -> None:
        """Read the line まで...; what it says counts only where no line of the moves has said it."""
        self.is_over = True
        placement = self._begin()
        if self.record.ending or text == self.unknown:
            return
        for word in (*WORDS, *WINS):
            if text.startswith(word):
                self._end(word)
                return
        match = re.fullmatch(r"(先手|後手|上手|下手)の(反則負け|反則勝ち|入玉勝ち|勝ち|時間切れ負け|.*)", text)
        if not match:
            raise RecordError(f"'{text}': expected how the game ended, such as 先手の勝ち or 千日手")
        color, what = NAMES[match[1]], match[2]
        if what.startswith("反則"):
            guilty = color if what == "反則負け" else opponent(color)
            self.record.ending = illegal_action(guilty)
        elif what == "入玉勝ち":
            self.record.ending = "KACHI"
        elif "時間切れ" in what or "切れ負け" in what:
            self.record.ending = "TIME_UP"
        elif color != placement.side:
            self.record.ending = "TORYO"
        else:
            raise RecordError(f"'{text}', but it is the winner's turn")


def _is_possible(placement: Placement) -> Callable[[int], bool]:
    return lambda move: placement.why_not(move) is None


def _seconds(text: str) -> float:
    """Return the seconds of `0:16` or `00:01:02`."""
    total = 0.0
    try:
        for part in text.replace(" ", "").split(":"):
            total = 60 * total + float(part)
    except ValueError:
        raise RecordError(f"time '{text}': expected minutes and seconds such as 0:16") from None
    return total


def _parse_hand(text: str) -> tuple[int, ...]:
    hand = [0] * 7
    for item in re.split(r"[\s　]+", text):
        if not item or item == "なし":
            continue
        index = HAND_INDEX.get(JAPANESE_TYPES.get(item[0], 0))
        count = _number(item[1:])
        if index is None or count is None:
            raise RecordError(f"'{item}' in the hand '{text}': expected pieces such as 歩三")
        hand[index] += count
    return tuple(hand)


def _number(text: str) -> int | None:
    """Return a number of 1 to 19 in Japanese; 1 for nothing, None for anything else."""
    return next((n for n in range(1, 20) if text in (japanese_number(n), str(n))), None) if text else 1


def _parse_board(rows: list[str]) -> tuple[int, ...]:
    if len(rows) != 9:
        raise RecordError(f"a diagram of {len(rows)} ranks: expected 9")
    board = [0] * 81
    for rank, row in enumerate(rows):
        cells = re.findall(r"([ v+^-]?)([^ v|+^-])", row.strip()[1:].partition("|")[0])
        if len(cells) != 9:
            raise RecordError(f"'{row}' has {len(cells)} squares: expected 9")
        for column, (mark, name) in enumerate(cells):
            if name in "・．.":
                continue
            if name not in JAPANESE_TYPES:
                raise RecordError(f"'{name}' in '{row}': expected a piece")
            board[9 * (8 - column) + rank] = code_of(JAPANESE_TYPES[name], WHITE if mark in ("v", "-") else BLACK)
    return tuple(board)


def read_kif(text: str, *, cut: bool = False) -> GameRecord:
    """Read the game of KIF or KI2 text. Of its variations what cannot be read is left out, and said to be.

    Args:
        text: the text.
        cut: leave the game out from any move on that cannot be, and say so in `left_out`.

    Raises:
        RecordError: a line that is neither's, an impossible position or, unless it is cut, move; it names the line.
    """
    reader = _Reader([line.strip() for line in text.splitlines()])
    for line in reader.lines:
        reader.number += 1
        try:
            if line:
                reader.read(line)
        except RecordError as error:
            if not reader.leave_out(error, cut=cut):
                raise RecordError(f"line {reader.number}: {error}") from None
    try:
        reader._begin()
    except RecordError as error:
        raise RecordError(f"line {reader.number}: {error}") from None
    reader.game.variations = [variation for variation in reader.game.variations if variation.moves]
    return reader.game


def format_position(placement: Placement) -> list[str]:
    """Return the header lines of a position: the name of a handicap, or a diagram."""
    bare = format_sfen(placement, number=False)
    if placement.number == 1 and placement == START:
        return ["手合割：平手"]
    for name, board in HANDICAPS.items():
        if bare == f"{board} w -":
            return [f"手合割：{name}"]
    lines = [f"後手の持駒：{japanese_hand(placement.hands[1])}", "  ９ ８ ７ ６ ５ ４ ３ ２ １"]
    lines.append("+---------------------------+")
    for rank in range(9):
        cells = ""
        for file in range(8, -1, -1):
            code = placement.board[9 * file + rank]
            cells += ("v" if color_of(code) == WHITE else " ") + SHORT_NAMES[type_of(code)] if code else " ・"
        lines.append(f"|{cells}|{RANKS[rank]}")
    lines += ["+---------------------------+", f"先手の持駒：{japanese_hand(placement.hands[0])}"]
    return lines if placement.side == BLACK else [*lines, "後手番"]


def _headers(record: GameRecord) -> list[str]:
    names = {name: key for key, name in KEYS.items()}
    lines = [f"{names.get(key, key)}：{_line(value)}" for key, value in record.info.items()]
    lines += format_position(record.initial)
    sides = _sides(record.initial)
    return [*lines, f"{sides[BLACK]}：{_line(record.black)}", f"{sides[WHITE]}：{_line(record.white)}"]


def _sides(initial: Placement) -> dict[int, str]:
    """Return what the sides of a game are called, which begins so; those of handicap games have names of their own."""
    return {BLACK: "下手", WHITE: "上手"} if "落ち" in format_position(initial)[0] else {BLACK: "先手", WHITE: "後手"}


def format_kif_record(record: GameRecord, encoding: str) -> str:
    """Return a game as KIF text, with times and variations, and with evaluations as comments.

    Args:
        record: the game.
        encoding: what the text will be encoded in, which its first line tells.
    """
    lines = [f"#KIF version=2.0 encoding={encoding}", *_headers(record)]
    lines += ["手数----指手---------消費時間--", *_comments(record.comment)]
    lines += _move_lines(record, 1)
    if record.ending:
        lines.append(_result_line(record, _word(record)))
    for variation in record.variations:
        first = variation.initial.number - record.initial.number + 1
        lines += ["", f"変化：{first}手", *_comments(variation.comment), *_move_lines(variation, first)]
    return "\n".join(lines) + "\n"


def _move_lines(record: GameRecord, first: int) -> list[str]:
    """Return the lines of a game's or a variation's moves, which are numbered from `first` on, and of its ending."""
    lines: list[str] = []
    placement, previous, totals = record.initial, None, {BLACK: 0, WHITE: 0}
    for number, recorded in enumerate(record.moves, first):
        text = format_kif(recorded.move, placement, previous)
        lines.append(_numbered(number, text, recorded.seconds, totals, placement.side))
        lines += _notes(recorded, placement.side)
        previous, placement = target_of(recorded.move), placement.after(recorded.move)
    if record.ending:
        number = first + len(record.moves)
        lines.append(_numbered(number, _word(record), record.ending_seconds, totals, placement.side))
    return lines


def _word(record: GameRecord) -> str:
    """Return KIF's word for how a game has ended."""
    word = ENDINGS[record.ending][0]
    if word:
        return word
    last = record.initial.side if len(record.moves) % 2 == 0 else opponent(record.initial.side)
    return "反則負け" if guilty_of(record.ending) == last else "反則勝ち"


def _result_line(record: GameRecord, word: str) -> str:
    """Return the last line, まで...手で..."""
    sides = _sides(record.initial)
    how = word
    if record.winner:
        winner, loser = sides[record.winner], sides[opponent(record.winner)]
        special = {"入玉勝ち": f"{winner}の入玉勝ち", "切れ負け": f"{loser}の切れ負け"}
        how = f"{loser}の反則負け" if word.startswith("反則") else special.get(word, f"{winner}の勝ち")
    return f"まで{len(record.moves)}手で{how}"


def _numbered(number: int, text: str, seconds: float | None, totals: dict[int, int], side: int) -> str:
    if seconds is None:
        return f"{number:4} {text}"
    width = sum(2 if ord(letter) > 0x7F else 1 for letter in text)
    taken = int(seconds)
    totals[side] += taken
    total = totals[side]
    clock = f"({taken // 60:2}:{taken % 60:02}/{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02})"
    return f"{number:4} {text}{' ' * max(13 - width, 1)}{clock}"


def _notes(recorded: RecordedMove, side: int) -> list[str]:
    """Return a move's evaluation and comment; without one, what would be read as one is moved on by a blank."""
    comments = _comments(recorded.comment)
    if recorded.score is None:
        return [f"* {line[1:]}" if SCORE.match(line[1:]) else line for line in comments]
    score = recorded.score if side == BLACK else -recorded.score
    return [f"*評価値 {score} {_line(recorded.pv)}".rstrip(), *comments]


def _line(text: str) -> str:
    return " ".join(text.split())


def _comments(text: str) -> list[str]:
    return [f"*{line}" for line in text.splitlines()]
