"""Prior logits of moves without a network: captures, atari, patterns, distance to the last moves, lines."""

import numpy as np

from native.bits import U
from native.go.board import NO_POINT, PASS, is_eye
from native.go.patterns import is_pattern_move, pattern_code
from native.go.rules import is_legal
from native.go.tactics import liberties_after, self_atari_stones
from native.jit import kernel

CAPTURE = 2.5
CAPTURE_STONE = 0.4
ESCAPE = 2.0
ESCAPE_STONE = 0.3
EXTENSION = 0.6
ATARI = 0.9
SELF_ATARI = -2.0
SELF_ATARI_STONE = -0.5
PATTERN = 1.0
OWN_EYE = -5.0
PASS_LOGIT = -3.0
MAX_STONES = 6
"""Stones of a chain that count."""

NEAR_LAST = np.array([0, 0, 1.2, 1.2, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0], np.float32)
"""Bonus by distance to the last move, dx + dy + max(dx, dy)."""
NEAR_SECOND = np.array([0, 0, 0.6, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0], np.float32)
"""Bonus by distance to the move before."""
LINE = np.array([-0.6, -0.1, 0.3, 0.3, 0.1], np.float32)
"""Bonus by line from the edge (0 is the first line), the last entry for all further ones."""
LONELY_LINE = np.array([-2.0, -0.8, 0.0, 0.2, 0.0], np.float32)
"""The same on top where no stone is next to the point."""


@kernel
def _near(table, distance):  # type: ignore[no-untyped-def]
    return table[U(np.int64(min(distance, 11)))]


@kernel
def _distance(stride, a, b):  # type: ignore[no-untyped-def]
    """Return dx + dy + max(dx, dy) between two points."""
    dx = abs(a % stride - b % stride)
    dy = abs(a // stride - b // stride)
    return dx + dy + max(dx, dy)


@kernel
def _has_stone(code):  # type: ignore[no-untyped-def]
    """Whether a pattern code holds a stone: one of its fields is BLACK or WHITE."""
    return (code ^ (code >> U(1))) & U(0x5555) != U(0)


@kernel
def move_logit(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the logit of a legal board move by its tactics and surroundings (not its distance to other moves)."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    own = U(color)
    if is_eye(pos, point, color):
        return np.float32(OWN_EYE)
    logit = np.float32(0.0)
    touches = False
    danger = self_atari_stones(pos, point, color)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = U(pos.color[q])
        if c == own:
            touches = True
            slot = U(pos.chain[q])
            stones = np.int64(min(pos.stones[slot], MAX_STONES))
            if danger == 0:
                if pos.liberties[slot] == 1:
                    logit += np.float32(ESCAPE + ESCAPE_STONE * stones)
                elif pos.liberties[slot] == 2 and liberties_after(pos, point, color) > 2:
                    logit += np.float32(EXTENSION)
        elif c == U(3) - own:
            touches = True
            slot = U(pos.chain[q])
            stones = np.int64(min(pos.stones[slot], MAX_STONES))
            if pos.liberties[slot] == 1:
                logit += np.float32(CAPTURE + CAPTURE_STONE * stones)
            elif pos.liberties[slot] == 2 and danger == 0:
                logit += np.float32(ATARI)
    if danger > 0:
        logit += np.float32(SELF_ATARI + SELF_ATARI_STONE * np.int64(min(danger, MAX_STONES)))
    elif touches and is_pattern_move(pos, point, color):
        logit += np.float32(PATTERN)
    x = i % stride - 1
    y = i // stride - 1
    size = np.int64(pos.size)
    line = U(np.int64(min(x, y, size - 1 - x, size - 1 - y, 4)))
    logit += LINE[line]
    if not _has_stone(pattern_code(pos, point)):
        logit += LONELY_LINE[line]
    return logit


@kernel
def prior_logit(pos, move):  # type: ignore[no-untyped-def]
    """Return the logit of a legal move of the side to move (a point or PASS)."""
    if move == PASS:
        return np.float32(PASS_LOGIT)
    stride = np.int64(pos.stride)
    last = np.int64(pos.recent_move[0])
    second = np.int64(pos.recent_move[1])
    logit = move_logit(pos, U(move), pos.side_to_move)
    if last != NO_POINT and last != PASS:
        logit += _near(NEAR_LAST, _distance(stride, np.int64(move), last))
    if second != NO_POINT and second != PASS:
        logit += _near(NEAR_SECOND, _distance(stride, np.int64(move), second))
    return logit


@kernel
def heuristic_logits(pos, history, logits):  # type: ignore[no-untyped-def]
    """Write a logit for every legal move of the side to move.

    Args:
        pos: The position; unchanged.
        history: Its boards (superko).
        logits: float32[area + 1] in board order, y * size + x, pass last. Illegal moves are left as they are.
    """
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    for k in range(U(pos.empty_count)):
        point = np.int64(pos.empties[k])
        if is_legal(pos, history, U(point), pos.side_to_move):
            logits[U((point // stride - 1) * size + point % stride - 1)] = prior_logit(pos, point)
    logits[U(size * size)] = prior_logit(pos, PASS)
