"""Positions in KIF, KI2 and BOD: names of handicaps, or a diagram with both hands."""

import re
import unicodedata

from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.diagram import SHORT_NAMES, japanese_hand
from yomi.engine.shogi.notation import JAPANESE_TYPES, RANKS, japanese_number
from yomi.engine.shogi.pieces import HAND_INDEX, code_of, color_of, type_of
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.record import START, RecordError
from yomi.engine.shogi.sfen import format_sfen, parse_sfen

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
COUNTS = dict(zip("2345678", "二三四五六七八", strict=True)) | {"10": "十"}
HAND_ITEM = re.compile(r"([歩香桂銀金角飛])([一二三四五六七八九十]{1,3}|[0-9]{1,2})?枚?")
BLACK_MARKS, WHITE_MARKS = " ^+▲", "vVｖ∨-△▽"
EMPTY = "・．.　 *＊"


def parse_handicap(name: str) -> Placement | None:
    """Return the position of a handicap (with or without ち), or None for an unknown name."""
    key = unicodedata.normalize("NFKC", name).replace(" ", "")
    if key == "" or key.startswith(EVEN):
        return START
    key = re.sub(r"^([左右]?)(10|[2-8])枚", lambda match: f"{match[1]}{COUNTS[match[2]]}枚", key)
    key = re.sub(r"落(ち|し)?$", "", key)
    board = HANDICAPS.get(f"{ALIASES.get(key, key)}落ち")
    return parse_sfen(f"{board} w - 1") if board else None


def parse_hand(text: str) -> tuple[int, ...]:
    """Read a hand such as `飛二　歩十七` or `飛二歩17`.

    Raises:
        RecordError: another text.
    """
    hand = [0] * 7
    rest = re.sub(r"[\s、,]+", "", unicodedata.normalize("NFKC", text))
    if rest in ("なし", "無し", "無"):
        return tuple(hand)
    while rest:
        match = HAND_ITEM.match(rest)
        count = _number(match[2]) if match else None
        if match is None or count is None:
            raise RecordError(f"'{rest[:20]}' in the hand '{text[:40]}': expected pieces such as 歩三")
        hand[HAND_INDEX[JAPANESE_TYPES[match[1]]]] += count
        rest = rest[match.end() :]
    return tuple(hand)


def _number(text: str | None) -> int | None:
    """Return a Japanese or decimal number from 1 to 19; 1 for an empty text, None for another text."""
    return next((n for n in range(1, 20) if text in (japanese_number(n), str(n))), None) if text else 1


def parse_board(rows: list[str]) -> tuple[int, ...]:
    """Read a diagram's ranks, lines such as `| ・v玉 歩|一`.

    Raises:
        RecordError: not nine ranks of nine squares.
    """
    if len(rows) != 9:
        raise RecordError(f"a diagram of {len(rows)} ranks: expected 9")
    board = [0] * 81
    for rank, row in enumerate(rows):
        for column, (mark, name) in enumerate(_squares(row)):
            if name in EMPTY:
                continue
            if name not in JAPANESE_TYPES:
                raise RecordError(f"'{name}' in '{row}': expected a piece")
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
        raise RecordError(f"'{row}' has {len(cells)} squares: expected 9")
    return [(mark or " ", name) for mark, name in cells]


def sides_of(initial: Placement) -> dict[int, str]:
    """Return Japanese names of the sides: 下手 and 上手 in handicap games, otherwise 先手 and 後手."""
    return {BLACK: "下手", WHITE: "上手"} if _handicap_of(initial) else {BLACK: "先手", WHITE: "後手"}


def _handicap_of(placement: Placement) -> str:
    """Return the name of a handicap position, or an empty text."""
    bare = format_sfen(placement, number=False)
    return next((name for name, board in HANDICAPS.items() if bare == f"{board} w -"), "")


def format_position(placement: Placement) -> list[str]:
    """Return a position's header lines: a handicap that all programs know, or a diagram."""
    if placement.number == 1 and placement == START:
        return [f"手合割：{EVEN}"]
    name = _handicap_of(placement)
    if name in COMMON_HANDICAPS:
        return [f"手合割：{name}"]
    sides = sides_of(placement)
    lines = [f"手合割：{OTHER}", f"{sides[WHITE]}の持駒：{japanese_hand(placement.hands[1])}"]
    lines += ["  ９ ８ ７ ６ ５ ４ ３ ２ １", "+---------------------------+"]
    for rank in range(9):
        cells = ""
        for file in range(8, -1, -1):
            code = placement.board[9 * file + rank]
            cells += ("v" if color_of(code) == WHITE else " ") + SHORT_NAMES[type_of(code)] if code else " ・"
        lines.append(f"|{cells}|{RANKS[rank]}")
    lines += ["+---------------------------+", f"{sides[BLACK]}の持駒：{japanese_hand(placement.hands[0])}"]
    return lines if placement.side == BLACK else [*lines, f"{sides[WHITE]}番"]
