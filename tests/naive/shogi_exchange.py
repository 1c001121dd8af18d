"""Slow twin of exchanges on one square: every capture is tried, the cheapest piece first, and each side may stop."""

from tests.naive.shogi_rules import KING, SlowShogi
from yomi.native.shogi.effects import CAPTURE, VALUE

# Ranks of piece types as kernels capture: golds and what moves like them are one kind, as are bishops and rooks with
# their promoted forms.
GROUP = {
    kind: rank
    for rank, kinds in enumerate([[1], [2], [3], [4], [7, 9, 10, 11, 12], [5, 13], [6, 14], [8]])
    for kind in kinds
}


def exchange(board: list[int], target: int, color: int) -> int:
    """Return what `color` (1 or 2) gains at most by capturing on a square, 0 if it had better not."""
    slow = SlowShogi(board, [[0] * 7, [0] * 7], color)
    origins = [s for s, code in enumerate(board) if code and 1 + (code >= 16) == color and target in slow.reach(s)]
    if not origins:
        return 0
    origin = min(origins, key=lambda s: (GROUP[board[s] % 16], s))
    after = list(board)
    after[target], after[origin] = after[origin], 0
    if board[origin] % 16 == KING:
        other = SlowShogi(after, [[0] * 7, [0] * 7], 3 - color)
        if any(code and 1 + (code >= 16) != color and target in other.reach(s) for s, code in enumerate(after)):
            return 0
    return max(0, int(CAPTURE[board[target] % 16]) - exchange(after, target, 3 - color))


def gain(board: list[int], move: int, color: int) -> int:
    """Return what a legal move gains when the exchange on its target goes on."""
    target, origin, promotes = move & 127, move >> 7 & 127, move >> 14
    after = list(board)
    if origin > 80:
        after[target] = origin - 80 + 16 * (color == 2)
        return -exchange(after, target, 3 - color)
    code = board[origin] + 8 * promotes
    after[target], after[origin] = code, 0
    won = int(CAPTURE[board[target] % 16]) + int(VALUE[code % 16]) - int(VALUE[board[origin] % 16])
    return won - (0 if code % 16 == KING else exchange(after, target, 3 - color))
