"""The user's terminal: whether a game is drawn in place and in color, and the styles of a board.

A board has a background of its own, so that stones and pieces are readable on dark and on light terminals.
"""

from __future__ import annotations

import os
import sys

CLEAR = "\x1b[H\x1b[J"  # to the top, and erase what is below
PLAIN = "\x1b[0m"
WOOD, LAST = "\x1b[48;5;137m", "\x1b[48;5;31m"  # backgrounds of the board and of the last move
BLACK_INK, WHITE_INK, PROMOTED_INK, LINES = (f"\x1b[38;5;{color}m" for color in (16, 231, 52, 238))


def is_interactive() -> bool:
    """Whether a person types and reads here, at a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def has_colors() -> bool:
    return is_interactive() and not os.environ.get("NO_COLOR")


def column(number: int) -> str:
    """Return the sequence that moves the cursor to a column of its line, from 1."""
    return f"\x1b[{number}G"
