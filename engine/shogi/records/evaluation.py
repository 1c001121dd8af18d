"""Evaluations in comments of KIF and JKF, which shogi programs write in several forms.

All scores are centipawns for Black. These forms are read; in a KIF file a further star stands before them:

- ShogiHome: `*評価値=35` or `#詰み=先手勝ち:7手`, then a line `#読み筋=LINE`
- ShogiGUI and Shogidokoro: `*対局 時間 00:01.0 評価値 35 読み筋 LINE`, `*解析 0 候補1 評価値 +詰 7`
- Kishin Analytics: `* Engine NAME 評価値 35 読み筋 LINE`
- Piyo Shogi: `#指し手[35]LINE`
- Floodgate: `* 35 LINE`
- yomi 0.1: `評価値 35 LINE`

ShogiGUI's form is written, because both ShogiGUI and ShogiHome draw its scores.
"""

import re

from yomi.engine.color import BLACK
from yomi.engine.records import MATE_SCORE
from yomi.engine.shogi.moves import target_of
from yomi.engine.shogi.notation import csa_line, format_kif_line, parse_line
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.record import RecordedMove, one_line

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
MAX_SCORE = 10**6
"""Scores beyond this are comments."""


def read_evaluation(move: RecordedMove, text: str, *, by_black: bool) -> bool:
    """Read a line of a comment into `move`, and return whether the line is its evaluation.

    Args:
        move: the move before the comment.
        text: one line.
        by_black: Black played the move.
    """
    text = text.rstrip()
    if move.score is not None:
        match = LINE.fullmatch(text)
        if match is None or move.pv or "評価値" in move.comment:
            return False
        move.pv = match["line"].strip()
        return True
    score = _score_of(text)
    if score is None:
        return False
    found = next(filter(None, (form.fullmatch(text) for form in (LABELLED, BRACKETED, FLOODGATE))), None)
    move.score = score if by_black else -score
    move.pv = (found["line"] or "").strip() if found else ""
    move.is_review = text.startswith("#") or (found is not None and found.groupdict().get("kind") in ("解析", "検討"))
    return True


def is_read(move: RecordedMove, text: str) -> bool:
    """Whether a line of the comment of `move` would be read as a part of its evaluation."""
    if move.score is None:
        return _score_of(text.rstrip()) is not None
    return not move.pv and LINE.fullmatch(text.rstrip()) is not None


def _score_of(text: str) -> int | None:
    """Return the centipawns for Black of an evaluation; None for another text."""
    if mate := MATE.fullmatch(text):
        return (1 if mate["winner"] == "先手" else -1) * (MATE_SCORE - min(int(mate["plies"] or 0), MATE_SCORE // 2))
    for form in (LABELLED, BRACKETED, FLOODGATE):
        match = form.fullmatch(text)
        if match is None:
            continue
        if match["score"] is None:
            score = MATE_SCORE - min(int(match["plies"] or 0), MATE_SCORE // 2)
            return -score if match["sign"] == "-" else score
        value = float(match["score"])
        return round(value) if abs(value) <= MAX_SCORE else None
    return None


def format_evaluation(recorded: RecordedMove, before: Placement) -> str:
    """Return the comment of a KIF file, with its first star, for a move's evaluation.

    Args:
        recorded: the move; it has a score.
        before: the position before the move.
    """
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
    """Return the line expected after a move as KIF writes it, or as it is if it cannot be read."""
    moves = _moves_of(recorded, before)
    if moves is None:
        return one_line(recorded.pv)
    return " ".join(format_kif_line(moves, before.after(recorded.move), target_of(recorded.move)))


def csa_pv(recorded: RecordedMove, before: Placement) -> str:
    """Return the line expected after a move in CSA, or as it is if it cannot be read."""
    moves = _moves_of(recorded, before)
    return one_line(recorded.pv) if moves is None else " ".join(csa_line(moves, before.after(recorded.move)))


def _moves_of(recorded: RecordedMove, before: Placement) -> list[int] | None:
    """Return the line expected after a move, whose text may begin with the move; None if a move cannot be read."""
    text, target = recorded.pv, target_of(recorded.move)
    after = before.after(recorded.move)
    moves = parse_line(text, after, target)
    if moves is None:
        moves = parse_line(text, before)
        if moves is not None and moves[:1] != [recorded.move]:
            return None
        return None if moves is None else moves[1:]
    return moves
