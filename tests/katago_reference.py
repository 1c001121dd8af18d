"""Positions of KataGo's reference files, set up with the native kernels alone."""

from typing import Any

from yomi.native.go.board import (
    BLACK,
    KO_POSITIONAL,
    KO_SIMPLE,
    KO_SITUATIONAL,
    PASS,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    TAX_SEKI,
    WHITE,
    clear,
    place_stone,
)
from yomi.native.go.rules import begin, play

COLUMNS = "ABCDEFGHJKLMNOPQRST"
COLORS = {"B": BLACK, "W": WHITE}
KO = {"SIMPLE": KO_SIMPLE, "POSITIONAL": KO_POSITIONAL, "SITUATIONAL": KO_SITUATIONAL}
SCORING = {"AREA": SCORING_AREA, "TERRITORY": SCORING_TERRITORY}
TAX = {"NONE": TAX_NONE, "SEKI": TAX_SEKI, "ALL": TAX_ALL}


def is_supported(row: dict[str, Any]) -> bool:
    """Whether the position is on a square board, outside clean-up phases, without a button or playout doubling."""
    return bool(row["boardXSize"] == row["boardYSize"] and not row.get("override") and not row["rules"]["hasButton"])


def point(vertex: str, size: int) -> int:
    if vertex.lower() == "pass":
        return PASS
    return (size - int(vertex[1:]) + 1) * (size + 1) + COLUMNS.index(vertex[0]) + 1


def set_up(pos: Any, history: Any, row: dict[str, Any]) -> None:
    """Set `pos` and `history` to a reference position: rules, set-up stones, moves, the side to move.

    Where the reference asks for the side that has just moved, KataGo forgets the history, and so does this.
    """
    rules = row["rules"]
    size = row["boardXSize"]
    pos["ko_rule"] = KO[rules["ko"]]
    pos["scoring"] = SCORING[rules["scoring"]]
    pos["tax"] = TAX[rules["tax"]]
    pos["suicide"] = rules["suicide"]
    pos["friendly_pass"] = rules["friendlyPassOk"]
    clear(pos, size, size)
    stones = [("B", vertex) for vertex in row["handicap"]]
    setup = row.get("set_position", [])
    stones += list(zip(setup[::2], setup[1::2], strict=True))
    for color, vertex in stones:
        place_stone(pos, point(vertex, size), COLORS[color])
        if pos["scoring"] == SCORING_TERRITORY:
            pos["white_bonus"] += 1 if color == "B" else -1
    moves = [(COLORS[color], point(vertex, size)) for color, vertex in row["moves"]]
    pos["komi"] = row["komi"] + handicap_bonus(rules["whiteHandicapBonus"], stones, moves)
    to_move = COLORS[row["toMove"]]
    pos["side_to_move"] = moves[0][0] if moves else to_move
    begin(pos, history)
    for color, move in moves:
        if color != pos["side_to_move"]:
            forget_history(pos, history, color)
        play(pos, history, move)
    if to_move != pos["side_to_move"]:
        forget_history(pos, history, to_move)


def forget_history(pos: Any, history: Any, side_to_move: int) -> None:
    """Start over from the present board with another side to move."""
    pos["side_to_move"] = side_to_move
    pos["recent_valid"] = 0
    pos["previous_count"] = 0
    pos["passes"] = 0
    pos["simple_ko"] = 0
    begin(pos, history)


def handicap_bonus(rule: str, stones: list[tuple[str, str]], moves: list[tuple[int, int]]) -> int:
    """Return White's compensation: for Black set-up stones alone, or for Black's moves before White's first."""
    if rule == "0" or any(color == "W" for color, _ in stones):
        return 0
    black = len(stones)
    for color, move in moves:
        if color == WHITE and move != PASS:
            break
        if color == BLACK and move != PASS:
            black += 1
    if black < 2:
        return 0
    return black if rule == "N" else black - 1
