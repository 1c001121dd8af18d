"""Reads and writes records in KIF and KI2, the forms of Japanese shogi programs, and diagrams (BOD)."""

import itertools
import re
from collections.abc import Iterator, Sequence

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.shogi.notation import (
    BLACK_MARKS,
    JAPANESE_MOVE,
    JAPANESE_NAMES,
    MARKED_MOVE,
    SIDE_MARKS,
    NotationError,
    format_kif,
    guilty_of,
    illegal_action,
    is_playable,
    parse_japanese,
)
from yomi.engine.shogi.placement import DROP_PAWN_MATE, MAX_NUMBER, RANKS, Placement, target_of
from yomi.engine.shogi.records import japanese
from yomi.engine.shogi.records.japanese import KEYS, NAMES
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
from yomi.language import tr

# KIF's words for an ending, ShogiHome's included. CSA has no word for a king that reaches the opponent's first square
# (トライ) or for an absent player (不戦敗): read as a resignation, because the side to move has lost.
WORDS = {word: name for name, (word, _) in reversed(ENDINGS.items()) if word} | {
    "詰": "TSUMI",
    "時間切れ": "TIME_UP",
    "時間切れ負け": "TIME_UP",
    "入玉宣言": "KACHI",
    "宣言勝ち": "KACHI",
    "不戦敗": "TORYO",
    "封じ手": "CHUDAN",
    "トライ": "TORYO",
    "最大手数": "MAX_MOVES",
    "引き分け": "HIKIWAKE",
}

PASSES = ("パス", "ﾊﾟｽ", "pass", "PASS")  # no moves of shogi
WINS = ("反則勝ち", "不戦勝")  # the side to move wins: the opponent broke a rule, or did not come (不戦勝)

# Headers that need no note. They keep their Japanese names.
KNOWN_HEADER = re.compile(
    "表題|対局日|戦型|秒読み|消費時間|掲載|備考|先手省略名|後手省略名|作品番号|作品名|作者|発表誌"
    "|発表年月|出典|手数|完全性|分類|受賞|図|詰手数|開始局面|対局ID|[A-Z_+-]+"
)
# KIF has one move a line, with its source square and time; KI2 has moves as players write them.
# Number, move, time, and a second time (東大将棋), which is not read.
MOVE_LINE = re.compile(
    r"\s*([0-9]{1,6})\s+(\S.*?)\s*"
    r"(?:[(（]\s*([0-9]+:[0-9:. ]*(?:/[0-9:. ]*)?|[0-9]+\s*/[0-9:. ]*)[)）]\s*(?:[(（][0-9:/. ]+[)）])?)?\s*\+?"
)
HALF_WIDTH = str.maketrans("０１２３４５６７８９：／．（）", "0123456789:/.()")
MAX_MOVE_LINE = 500
# Texts meant as moves.
LIKE_MOVE = re.compile(
    rf"[{SIDE_MARKS}]?\s*(?:同|[1-9１-９](?:[{RANKS}]|[1-9１-９][{''.join(JAPANESE_NAMES)}]))|.*[(（][1-9１-９]{{2}}[)）]"
)
HEADER = re.compile(r"([^：:]+)[：:](.*)")
SAFE_KEY = re.compile(r"(?!変化|まで|(?:手合割|手番|(?:先手|後手|上手|下手)(?:の?持ち?駒)?)$)[^\W\d][\w+-]*")
POSITION_HEADER = re.compile(r"手合割|手番|((先手|後手|上手|下手)の?持ち?駒)")
TURN = re.compile(r"(先手|後手|上手|下手)番")
COUNT = re.compile(r"手数[＝=]\s*([0-9]+).*")
# Lines around a diagram, and a line about its orientation.
FRAME = re.compile(r"\+-+\+|[９9]\s*[８8]\s*[７7]\s*[６6].*|盤面回転")
BOOKMARK = "&"  # begins the name of a position, which is kept in the comment
# Variations follow the game. A variation leaves the line before it after N - 1 moves.
VARIATION = re.compile(r"変化[：:]\s*([0-9]{1,6})手.*")
RESULT = re.compile(r"\s*まで、?\s*(?:\d+手で?)?(.*)")
SIDE_RESULT = re.compile(
    r"(先手|後手|上手|下手)[のが]?[^先後上下、。]*?"
    r"(反則負け|反則勝ち|入玉勝ち|時間切れ負け|切れ負け|時間切れ(?!勝ち|により|で)|勝ち|負け)"
)
# Results that need no note.
USUAL_RESULT = re.compile(
    r"(?:(?:時間切れ|反則|投了|詰み|入玉宣言|宣言)(?:により|で)?、?)?(?:先手|後手|上手|下手)の?"
    r"(?:反則負け|反則勝ち|入玉勝ち|時間切れ負け|切れ負け|時間切れ|勝ち|負け)"
)


def _numbered_move(line: str) -> re.Match[str] | None:
    """Return a match with number, move and time of a line, or None."""
    # The expression takes quadratic time, and no line with a move is long.
    if len(line) > MAX_MOVE_LINE or FRAME.fullmatch(line):
        return None
    found = MOVE_LINE.fullmatch(line)
    if found is not None and (found[3] or line.isascii()):
        return found
    other = MOVE_LINE.fullmatch(line.translate(HALF_WIDTH))  # for numbers and times in full width
    return other if found is None or (other and other[3]) else found


def _unmarked_moves(line: str) -> list[str]:
    """Return the moves in a line of KI2 without marks, such as `７六歩　３四歩`; empty for other lines."""
    words = re.sub(r"同\s+", "同", line).split() if line[:1] in "同123456789１２３４５６７８９" else []
    return words if all(map(JAPANESE_MOVE.fullmatch, words)) else []


def looks_like_kif(lines: list[str]) -> bool:
    """Return whether the lines of a text, without empty lines, are KIF, KI2 or BOD."""
    return any(
        line.startswith(("#KIF", "手数----", "手合割", "開始日時"))
        or ((header := HEADER.fullmatch(line)) and (header[1] in NAMES or POSITION_HEADER.fullmatch(header[1])))
        or MARKED_MOVE.match(line)
        or _unmarked_moves(line)
        or (_numbered_move(line) and re.search(f"[{RANKS}]|同", line))
        for line in map(str.strip, lines)
    )


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.number = 0  # of the current line
        self.game = GameRecord()
        self.texts = Texts()
        self.record = self.game  # the game, or the current variation
        self.path: list[tuple[Placement, int]] = []  # (position, move) from the start of the game to the current line
        self.placement: Placement | None = None  # after the moves so far; None before the first
        self.rows: list[str] = []
        self.hands: dict[int, tuple[int, ...]] = {BLACK: (0,) * 7, WHITE: (0,) * 7}
        self.side: int | None = None
        self.count = 0  # moves before a diagram
        self.handicap = ""
        self.is_over = False  # まで... has been read
        self.is_skipped = False  # ignore the rest of the game or variation
        self.is_variation = False
        self.unknown: str | None = None  # the ending's word, if it is not one of WORDS

    def note(self, text: str) -> None:
        self.game.add_note(text, self.number)

    def read(self, line: str) -> None:
        if line.startswith("変化"):
            self._variation(line)
        elif self.is_skipped or line.startswith(("#", "手数----")):
            return
        elif line.startswith(("*", BOOKMARK)):
            self._comment(line.removeprefix("*"))
        elif match := RESULT.fullmatch(line):
            self._result(match[1].strip())
        elif self.is_over:
            self.note("the lines from here on, after the end of the game, are left out")
            self.is_skipped = True
        elif MARKED_MOVE.match(line):
            self._ki2_line([text.strip().replace("　", "") for text in MARKED_MOVE.findall(line)])
        elif moves := _unmarked_moves(line):
            self._ki2_line(moves)
        elif match := _numbered_move(line):
            self._move_line(match)
        elif not self._position_line(line) and not FRAME.fullmatch(line):
            match = HEADER.fullmatch(line)
            if match:
                self._header(match[1].strip(), match[2].strip(" 　"))
            else:
                self.note(tr("'{line}' is no line of KIF or KI2 and left out", line=line[:40]))

    def _position_line(self, line: str) -> bool:
        """Read a line of the initial position. Return False for other lines."""
        header = HEADER.fullmatch(line)
        key, value = (header[1].strip(), header[2].strip(" 　")) if header else ("", "")
        turn, count = TURN.fullmatch(line), COUNT.fullmatch(line)
        is_row = line.startswith(("|", "｜"))
        if not (is_row or turn or count or POSITION_HEADER.fullmatch(key)):
            return False
        if self.placement is not None:
            self.note(f"'{line[:40]}' after the first move is left out")
        elif is_row:
            self.rows.append(line)
        elif turn:
            self.side = NAMES[turn[1]]
        elif count:
            # Longer numbers are nonsense and would only cost time.
            self.count = int(count[1][:8])
        elif key == "手合割":
            self.handicap = value
        elif key == "手番":
            self.side = WHITE if value.startswith(("後", "上")) else BLACK
        else:
            self.hands[NAMES[key[:2]]] = japanese.parse_hand(value)
        return True

    def _header(self, key: str, value: str) -> None:
        japanese.set_header(self.record, self.texts, key, value)
        if not (key in NAMES or key in KEYS or KNOWN_HEADER.fullmatch(key)):
            self.note(f"the header '{key[:40]}' is unknown and kept as it is")

    def begin(self) -> Placement:
        """Return the position before the next move. The first call sets up the initial position."""
        if self.placement is None:
            named = japanese.parse_handicap(self.handicap)
            if self.rows:
                side = self.side or (named or START).side
                hands = (self.hands[BLACK], self.hands[WHITE])
                # A diagram shows the moves that were made before it.
                number = self.count + 1 if self.count < MAX_NUMBER else 1
                self.placement = Placement(japanese.parse_board(self.rows), hands, side, number)
            elif named is not None:
                self.placement = named
            elif self.handicap.endswith("将棋"):
                raise RecordError(tr("{name} is another game: expected shogi on 9x9", name=self.handicap))
            else:
                values = {"name": self.handicap, "names": ", ".join(("平手", *japanese.HANDICAPS))}
                raise RecordError(tr("手合割：{name} without a diagram: expected one of {names}", **values))
            self.record.initial = checked(self.placement)
        return self.placement

    def _variation(self, line: str) -> None:
        placement = self.begin()
        self.is_variation = True
        match = VARIATION.fullmatch(line)
        last = len(self.path) + 1
        if not match or not 1 <= int(match[1]) <= last:
            raise RecordError(
                tr("'{line}': expected a move from 1 to {last}, such as 変化：1手", line=line[:40], last=last)
            )
        number = int(match[1])
        self.placement = placement if number == last else self.path[number - 1][0]
        del self.path[number - 1 :]
        self.record = GameRecord(self.placement)
        self.game.variations.append(self.record)
        self.is_over = self.is_skipped = False
        self.unknown = None

    def leave_out(self, error: RecordError, *, cut: bool) -> bool:
        """Skip the rest of a broken variation, or of a game that is cut. Return False if it is neither."""
        if self.is_variation:
            self.note(f"{error}; the rest of the variation is left out")
        elif cut and isinstance(error, ImpossibleMoveError):
            self.note(cut_before(error))
        else:
            return False
        self.is_skipped = True
        return True

    def _comment(self, text: str) -> None:
        by_black = bool(self.record.moves) and self.begin().side == WHITE
        is_over = self.is_over or self.unknown is not None
        japanese.read_comment(self.record, self.texts, text, by_black=by_black, is_over=is_over)

    def _move_line(self, match: re.Match[str]) -> None:
        seconds = self._seconds(match[3].partition("/")[0]) if match[3] else None
        word = match[2].strip(" 　")
        if word in WORDS or word in WINS:
            self._end(word, seconds)
        elif word in PASSES:
            self._pass(word)
        elif LIKE_MOVE.match(word):
            self._move(word.replace("　", ""), seconds)
        elif (following := self._next_number()) is None:
            self._unknown_ending(word)
        # The moves before and after have this place already.
        elif int(match[1]) == len(self.path) or following <= int(match[1]):
            self.note(f"'{word[:40]}' is no move and left out")
        else:
            self._move(word, seconds)

    def _pass(self, word: str) -> None:
        self.note(f"move {len(self.path) + 1} '{word}' is no move of shogi; the game is read up to there")
        self.begin()
        self.is_skipped = True

    def _unknown_ending(self, word: str) -> None:
        self.unknown = word
        self.note(f"the ending '{word[:40]}' is unknown and left out")

    def _ki2_line(self, texts: list[str]) -> None:
        """Read moves. The last text may be an ending (△投了)."""
        for text, following in itertools.pairwise([*texts, ""]):
            if text[1:] in PASSES:
                self._pass(text[1:])
                return
            # Only the last word of a line can be an ending.
            if not following and (text[1:] in WORDS or text[1:] in WINS):
                self._end(text[1:])
            elif not following and not LIKE_MOVE.match(text) and self._next_number() is None:
                self._unknown_ending(text)
            else:
                self._move(text, following=following)

    def _following(self) -> Iterator[str]:
        """Yield the lines after the current one. Copying them for each line would take too long."""
        return (self.lines[number] for number in range(self.number, len(self.lines)))

    def _next_number(self) -> int | None:
        """Return the number of the next move in the file; 0 in KI2, None if no move follows."""
        for line in self._following():
            if line.startswith("変化") or RESULT.match(line):
                break
            if MARKED_MOVE.match(line):
                return 0
            if match := _numbered_move(line):
                return int(match[1])
        return None

    def _move(self, text: str, seconds: float | None = None, *, following: str = "") -> None:
        """Read a move. An impossible move that ends the game is left out: its side has lost.

        `following` is the text after the move on its line.
        """
        placement, number = self.begin(), len(self.path) + 1
        self.is_skipped = not self.record.can_continue(text, self.number)
        if self.is_skipped:
            return
        previous = target_of(self.path[-1][1]) if self.path else None
        try:
            move = parse_japanese(text, placement, previous, is_playable(placement))
            if placement.is_drop_pawn_mate(move) and self._is_foul(placement.side, following):
                raise ImpossibleMoveError(f"move {number} '{text}': {DROP_PAWN_MATE}")
            self.placement = self.record.add(placement, move, f"{number} '{text}'")
        except (NotationError, ImpossibleMoveError) as error:
            fault, is_text = str(error), isinstance(error, NotationError)
            is_foul = self._is_foul(placement.side, following, is_named=is_text)
            if is_text:
                # It is a foul only if the ending says so, and not if the other side moves: who is guilty then?
                is_others = text[0] in SIDE_MARKS and (text[0] in BLACK_MARKS) != (placement.side == BLACK)
                fault, is_foul = f"move {number}: {error}", bool(is_foul) and not is_others
            if is_foul is False:
                raise ImpossibleMoveError(fault) from None
            self.note(f"{fault}; the illegal move is left out")
            self.game.ending, self.game.ending_seconds = illegal_action(placement.side), seconds
        else:
            self.record.moves[-1].seconds = seconds
            self.path.append((placement, move))

    def _is_foul(self, mover: int, following: str, *, is_named: bool = False) -> bool | None:
        """Return whether the game (not a variation) ends here by a foul of `mover`; None if only comments follow.

        `following` is the text after the move on its line. With `is_named` the ending itself must be a foul.
        """
        if self.is_variation:
            return False
        for line in itertools.chain([following], self._following()):
            if line.startswith("変化"):
                break
            if RESULT.match(line) or _numbered_move(line) or MARKED_MOVE.match(line):
                # A win of the other side after an impossible move means a foul, too.
                won = re.search("(先手|後手|上手|下手)の勝ち", line)
                return "反則" in line or (not is_named and won is not None and NAMES[won[1]] != mover)
        return None

    def _end(self, word: str, seconds: float | None = None) -> None:
        # Some programs add a second ending.
        side = self.begin().side
        if not self.record.ending:
            self.record.ending = illegal_action(opponent(side)) if word in WINS else WORDS[word]
            self.record.ending_seconds = seconds

    def _result(self, text: str) -> None:
        """Read the line まで..., which decides the result only if the moves have no ending."""
        self.is_over = True
        mover = self.begin().side
        if self.record.ending or text == self.unknown:
            return
        match = SIDE_RESULT.search(text)
        if match is None:
            word = next((word for word in (*WORDS, *WINS) if text.startswith(word)), None)
            if word is None:
                self.note(f"the ending '{text[:40]}' is unknown and left out")
            else:
                self._end(word)
            return
        color = NAMES[match[1]]
        winner = color if match[2].endswith("勝ち") else opponent(color)
        if "反則" in text or "連続王手" in text:
            # The sign of the ending is the loser's.
            ending = illegal_action(opponent(winner))
        elif "入玉" in text or "宣言" in text:
            ending = "KACHI"
        elif "切れ" in text:
            ending = "TIME_UP"
        else:
            ending = "TSUMI" if text.startswith("詰") else "TORYO"
        self.record.ending = ending
        # Every ending implies which side won; a contradiction drops the ending.
        if self.record.winner != winner:
            self.record.ending = ""
            why = "it is the winner's turn" if winner == mover else "it is the loser's turn"
            self.note(f"the ending '{text[:40]}' is left out: {why}")
        elif not USUAL_RESULT.fullmatch(text):
            self.note(f"the ending '{text[:40]}' is read as {ending}")

    def _seconds(self, text: str) -> float | None:
        total = 0.0
        try:
            for part in text.replace(" ", "").split(":"):
                total = 60 * total + float(part)
            if total > MAX_SECONDS:
                raise ValueError
        except ValueError:
            self.note(f"time '{text}' is left out: expected minutes and seconds such as 0:16")
            return None
        return total


def read_kif(text: str, *, cut: bool = False) -> GameRecord:
    """Read the game of KIF or KI2 text, or the position of a diagram. Unknown lines become notes.

    A variation is read up to its first fault. With `cut` the game ends before an impossible move, with a note.
    Otherwise, or for an impossible position, RecordError names the line.
    """
    reader = _Reader([line.strip() for line in lines_of(text)])
    for line in reader.lines:
        reader.number += 1
        try:
            if line:
                reader.read(line)
        except RecordError as error:
            if not reader.leave_out(error, cut=cut):
                raise RecordError(tr("line {n}: {text}", n=reader.number, text=error)) from None
    try:
        reader.begin()
    except RecordError as error:
        raise RecordError(tr("line {n}: {text}", n=reader.number, text=error)) from None
    reader.texts.store()
    reader.game.variations = [variation for variation in reader.game.variations if variation.moves]
    return reader.game


def _headers(record: GameRecord) -> list[str]:
    names = {name: key for key, name in KEYS.items()}
    lines = []
    for key, value in record.info.items():
        # A key of CSA may be any text, and a line must not be read as another kind of line.
        name = names.get(key, key) if SAFE_KEY.fullmatch(key) else f"備考：{key}"
        lines += [f"{name}：{line}" for line in lines_of(value)]
    lines += japanese.format_position(record.initial)
    sides = japanese.sides_of(record.initial)
    return [*lines, f"{sides[BLACK]}：{one_line(record.black)}", f"{sides[WHITE]}：{one_line(record.white)}"]


def format_kif_record(record: GameRecord, encoding: str) -> str:
    """Return a game as KIF text, with times, variations, and evaluations as comments.

    The first line names `encoding`.
    """
    lines = [f"#KIF version=2.0 encoding={encoding}", *_headers(record)]
    lines += ["手数----指手---------消費時間--", *_comments(record.comment)]
    lines += _move_lines(record, 1, {BLACK: 0, WHITE: 0})
    if record.ending:
        lines.append(_result_line(record, _word(record)))
    before = record.moves  # the moves of the line that was written last, from the start of the game
    for variation in record.variations:
        first = variation.initial.number - record.initial.number + 1
        before = [*before[: first - 1], *variation.moves]
        lines += ["", f"変化：{first}手", *_comments(variation.comment)]
        lines += _move_lines(variation, first, _totals(before[: first - 1], record.initial.side))
    return "\n".join(lines) + "\n"


def _totals(moves: Sequence[RecordedMove], side: int) -> dict[int, int]:
    """Return the seconds that each side has used in `moves`. `side` plays the first one."""
    return {
        color: sum(int(move.seconds or 0) for move in moves[start::2])
        for start, color in enumerate((side, opponent(side)))
    }


def _move_lines(record: GameRecord, first: int, totals: dict[int, int]) -> list[str]:
    lines: list[str] = []
    placement, previous = record.initial, None
    for number, recorded in enumerate(record.moves, first):
        text = format_kif(recorded.move, placement, previous)
        lines.append(_numbered(number, text, recorded.seconds, totals, placement.side))
        lines += _notes(recorded, placement)
        previous, placement = target_of(recorded.move), placement.after(recorded.move)
    if record.ending:
        number = first + len(record.moves)
        lines.append(_numbered(number, _word(record), record.ending_seconds, totals, placement.side))
    return lines + _comments(record.end_comment)


def _word(record: GameRecord) -> str:
    word = ENDINGS[record.ending][0]
    if word:
        return word
    last = record.initial.side if len(record.moves) % 2 == 0 else opponent(record.initial.side)
    return "反則負け" if guilty_of(record.ending) == last else "反則勝ち"


def _result_line(record: GameRecord, word: str) -> str:
    """Return the last line of a KIF record, such as まで...手で..."""
    sides = japanese.sides_of(record.initial)
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


def _notes(recorded: RecordedMove, before: Placement) -> list[str]:
    # A blank prevents that a comment is read as an evaluation.
    comments = [
        f"* {line[1:]}" if japanese.is_read(recorded, line[1:]) else line for line in _comments(recorded.comment)
    ]
    return comments if recorded.score is None else [japanese.format_evaluation(recorded, before), *comments]


def _comments(text: str) -> list[str]:
    return [line if line.startswith(BOOKMARK) else f"*{line}" for line in lines_of(text)] if text else []
