"""Positions and evaluations in the Japanese records KIF, KI2, BOD and JKF."""

import re
import unicodedata

from yomi.engine.color import BLACK, WHITE
from yomi.engine.records import MATE_SCORE
from yomi.engine.shogi.diagram import japanese_diagram
from yomi.engine.shogi.notation import JAPANESE_TYPES, csa_line, japanese_line, japanese_number, parse_line
from yomi.engine.shogi.placement import HAND_INDEX, Placement, code_of, format_sfen, parse_sfen, target_of
from yomi.engine.shogi.records.record import START, GameRecord, RecordedMove, RecordError, Texts, one_line
from yomi.language import tr

# CSA's names of headers.
KEYS = {"開始日時": "START_TIME", "終了日時": "END_TIME", "棋戦": "EVENT", "場所": "SITE", "持ち時間": "TIME_LIMIT"}
NAMES = {"先手": BLACK, "下手": BLACK, "後手": WHITE, "上手": WHITE}

# Boards of handicap games. White gives the pieces and moves first.
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

# Handicaps that all programs know by name. ShogiHome takes others for even games or refuses them.
COMMON_HANDICAPS = (
    *("香落ち", "右香落ち", "角落ち", "飛車落ち", "飛香落ち"),
    *("二枚落ち", "四枚落ち", "六枚落ち", "八枚落ち", "十枚落ち"),
)

OTHER = "その他"  # handicap of a game that begins with a diagram
EVEN = "平手"
ALIASES = {"左香": "香", "飛": "飛車", "右五枚": "五枚"}  # other names of handicaps, without 落ち
# Names for the command line.
ENGLISH_HANDICAPS = {
    "lance": "香落ち",
    "right-lance": "右香落ち",
    "bishop": "角落ち",
    "rook": "飛車落ち",
    "rook-lance": "飛香落ち",
    **{f"{count}-piece": f"{name}枚落ち" for count, name in zip((2, 3, 4, 5, 6, 8, 10), "二三四五六八十", strict=True)},
}
COUNTS = dict(zip("2345678", "二三四五六七八", strict=True)) | {"10": "十"}
HAND_ITEM = re.compile(r"([歩香桂銀金角飛])([一二三四五六七八九十]{1,3}|[0-9]{1,2})?枚?")
BLACK_MARKS, WHITE_MARKS = " ^+▲☗⛊", "vVｖ∨-△▽☖⛉"
EMPTY = "・．.　 *＊"


def set_header(record: GameRecord, texts: Texts, key: str, value: str) -> None:
    """Store a header: the name of a side, or a value under CSA's name for the key."""
    if NAMES.get(key) == BLACK:
        record.black = value
    elif NAMES.get(key) == WHITE:
        record.white = value
    else:
        texts.add(record.info, KEYS.get(key, key), value)


def parse_handicap(name: str) -> Placement | None:
    """Return the position of a handicap (with or without ち, or in English), or None for an unknown name."""
    # Half-width and full-width digits are equal.
    name = ENGLISH_HANDICAPS.get(name.lower(), name)
    key = unicodedata.normalize("NFKC", name).replace(" ", "")
    if key == "" or key.startswith(EVEN):
        return START
    key = re.sub(r"^([左右]?)(10|[2-8])枚", lambda match: f"{match[1]}{COUNTS[match[2]]}枚", key)
    key = re.sub(r"落(ち|し)?$", "", key)
    board = HANDICAPS.get(f"{ALIASES.get(key, key)}落ち")
    return parse_sfen(f"{board} w - 1") if board else None


def parse_hand(text: str) -> tuple[int, ...]:
    """Read a hand such as `飛二　歩十七` or `飛二歩17`. Raises RecordError for another text."""
    hand = [0] * 7
    rest = re.sub(r"[\s、,]+", "", unicodedata.normalize("NFKC", text))
    if rest in ("なし", "無し", "無"):
        return tuple(hand)
    while rest:
        match = HAND_ITEM.match(rest)
        count = _number(match[2]) if match else None
        if match is None or count is None:
            values = {"found": rest[:20], "hand": text[:40]}
            raise RecordError(tr("'{found}' in the hand '{hand}': expected pieces such as 歩三", **values))
        hand[HAND_INDEX[JAPANESE_TYPES[match[1]]]] += count
        rest = rest[match.end() :]
    return tuple(hand)


def _number(text: str | None) -> int | None:
    """Return a Japanese or decimal number from 1 to 19. An empty text is 1, another text None."""
    return next((n for n in range(1, 20) if text in (japanese_number(n), str(n))), None) if text else 1


def parse_board(rows: list[str]) -> tuple[int, ...]:
    """Read the ranks of a diagram: nine lines such as `| ・v玉 歩|一`. Raises RecordError."""
    if len(rows) != 9:
        raise RecordError(tr("a diagram of {n} ranks: expected 9", n=len(rows)))
    board = [0] * 81
    for rank, row in enumerate(rows):
        for column, (mark, name) in enumerate(_squares(row)):
            if name in EMPTY:
                continue
            if name not in JAPANESE_TYPES:
                raise RecordError(tr("'{name}' in '{row}': expected a piece", name=name, row=row))
            board[9 * (8 - column) + rank] = code_of(JAPANESE_TYPES[name], WHITE if mark in WHITE_MARKS else BLACK)
    return tuple(board)


def _squares(row: str) -> list[tuple[str, str]]:
    inner = row.replace("｜", "|").strip()[1:].partition("|")[0]
    if len(inner) == 18:
        return [(inner[i], inner[i + 1]) for i in range(0, 18, 2)]
    cells = re.findall(
        rf"([{re.escape(BLACK_MARKS + WHITE_MARKS)}]?)([^{re.escape(BLACK_MARKS + WHITE_MARKS)}|])", inner
    )
    if len(cells) != 9:
        raise RecordError(tr("'{row}' has {n} squares: expected 9", row=row, n=len(cells)))
    return [(mark or " ", name) for mark, name in cells]


def sides_of(initial: Placement) -> dict[int, str]:
    """Return the Japanese names of the sides: 下手 and 上手 in handicap games, otherwise 先手 and 後手."""
    return {BLACK: "下手", WHITE: "上手"} if _handicap_of(initial) else {BLACK: "先手", WHITE: "後手"}


def _handicap_of(placement: Placement) -> str:
    """Return the name of a handicap position; empty if it has none."""
    bare = format_sfen(placement, number=False)
    return next((name for name, board in HANDICAPS.items() if bare == f"{board} w -"), "")


def format_position(placement: Placement) -> list[str]:
    """Return the header lines of a position: a handicap that all programs know, or a diagram."""
    if placement.number == 1 and placement == START:
        return [f"手合割：{EVEN}"]
    name = _handicap_of(placement)
    if name in COMMON_HANDICAPS:
        return [f"手合割：{name}"]
    sides = sides_of(placement)
    lines = [f"手合割：{OTHER}", *japanese_diagram(placement, sides)]
    return lines if placement.side == BLACK else [*lines, f"{sides[WHITE]}番"]


# -- evaluations -------------------------------------------------------------------------------------------------------

# Evaluations are comments, in centipawns for Black. In a KIF file a further star precedes these forms:
# ShogiHome: `*評価値=35` or `#詰み=先手勝ち:7手`, then a line `#読み筋=LINE`
# ShogiGUI, Shogidokoro: `*対局 時間 00:01.0 評価値 35 読み筋 LINE`, `*解析 0 候補1 評価値 +詰 7`
# Kishin Analytics: `* Engine NAME 評価値 35 読み筋 LINE`
# Piyo Shogi: `#指し手[35]LINE`
# Floodgate: `* 35 LINE`
# yomi 0.1: `評価値 35 LINE`
NUMBER = r"[+-]?[0-9]+(?:\.[0-9]+)?"
LABELLED = re.compile(
    r"(?:[*#]*|[*#]*(?P<kind>対局|解析|検討)\s.*?|\*\s.*?\s)評価値[ =＝：:]*"
    rf"(?:(?P<score>{NUMBER})|(?P<sign>[+-]?)詰\s*(?P<plies>[0-9]{{0,6}}))[↑↓]?"
    r"(?:\s+(?:読み筋[ =＝：:]*)?(?P<line>.*))?"
)
MATE = re.compile(r"[*#]*詰み=(?P<winner>先手|後手)勝ち(?::(?P<plies>[0-9]{1,6})手)?")
BRACKETED = re.compile(rf"#(?:形勢|指し手)\[(?P<score>{NUMBER})\](?P<line>.*)")
FLOODGATE = re.compile(rf"\*\s*(?P<score>{NUMBER})(?P<line>(?:\s+[+-][0-9]{{4}}[A-Z]{{2}})*(?:\s+#[0-9]+)?)")
LINE = re.compile(r"[*#]?読み筋[=＝](?P<line>.*)")
MAX_SCORE = 10**6  # greater scores are comments


def read_comment(record: GameRecord, texts: Texts, text: str, *, by_black: bool, is_over: bool = False) -> None:
    """Store a comment line: before the first move, at the last move (Black's if `by_black`), or after the end."""
    if not record.moves:
        texts.add(record, "comment", text)
    elif record.ending or is_over:
        texts.add(record, "end_comment", text)
    elif not read_evaluation(record.moves[-1], texts, text, by_black=by_black):
        texts.add(record.moves[-1], "comment", text)


def read_evaluation(move: RecordedMove, texts: Texts, text: str, *, by_black: bool) -> bool:
    """If a comment line after `move` is an evaluation, store it in the move. Return whether it is one."""
    text = text.rstrip()
    if move.score is not None:
        match = LINE.fullmatch(text)
        # The line belongs to another evaluation that stayed a comment.
        if match is None or move.pv or texts.has_label(move):
            return False
        move.pv = match["line"].strip()
        return True
    evaluation = _evaluation_of(text)
    if evaluation is None:
        return False
    score, parts = evaluation
    move.score = score if by_black else -score
    move.pv = (parts.get("line") or "").strip()
    move.is_review = text.startswith("#") or parts.get("kind") in ("解析", "検討")
    return True


def is_read(move: RecordedMove, text: str) -> bool:
    """Return whether a comment line of `move` would be read as part of an evaluation."""
    if move.score is None:
        return _evaluation_of(text.rstrip()) is not None
    return not move.pv and LINE.fullmatch(text.rstrip()) is not None


def _evaluation_of(text: str) -> tuple[int, dict[str, str | None]] | None:
    """Return (centipawns for Black, parts of the text by name) if the text is an evaluation, otherwise None."""
    match = next(filter(None, (form.fullmatch(text) for form in (MATE, LABELLED, BRACKETED, FLOODGATE))), None)
    if match is None:
        return None
    parts = match.groupdict()
    number = parts.get("score")
    if number is not None:
        value = float(number)
        return (round(value), parts) if abs(value) <= MAX_SCORE else None
    score = MATE_SCORE - min(int(parts["plies"] or 0), MATE_SCORE // 2)
    is_white = parts.get("winner") == "後手" or parts.get("sign") == "-"
    return (-score if is_white else score), parts


def format_evaluation(recorded: RecordedMove, before: Placement) -> str:
    """Return the evaluation of a move, which must have a score, as a KIF comment with its first star."""
    # In ShogiGUI's form, because both ShogiGUI and ShogiHome draw its scores.
    assert recorded.score is not None
    score = recorded.score if before.side == BLACK else -recorded.score
    if recorded.is_review:
        head = "解析 0 候補1"
    elif recorded.seconds is None:
        head = "対局 候補1"  # ShogiHome wants a word before the score
    else:
        tenths = round(10 * recorded.seconds)
        head = f"対局 時間 {tenths // 600:02}:{tenths % 600 / 10:04.1f}"
    line = japanese_pv(recorded, before)
    return f"**{head} 評価値 {score}" + (f" 読み筋 {line}" if line else "")


def japanese_pv(recorded: RecordedMove, before: Placement) -> str:
    """Return the line expected after a move in KIF. A line that cannot be read stays unchanged."""
    moves = _moves_of(recorded, before)
    if moves is None:
        return one_line(recorded.pv)
    return " ".join(japanese_line(moves, before.after(recorded.move), target_of(recorded.move), kif=True))


def csa_pv(recorded: RecordedMove, before: Placement) -> str:
    moves = _moves_of(recorded, before)
    return one_line(recorded.pv) if moves is None else " ".join(csa_line(moves, before.after(recorded.move)))


def _moves_of(recorded: RecordedMove, before: Placement) -> list[int] | None:
    """Return the line expected after a move, or None if it cannot be read. Its text may begin with the move itself."""
    text, target = recorded.pv, target_of(recorded.move)
    # Most programs write the line after the move; some repeat the move first.
    moves = parse_line(text, before.after(recorded.move), target)
    if moves is None and (whole := parse_line(text, before)) and whole[0] == recorded.move:
        return whole[1:]
    return moves
