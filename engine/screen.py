"""The user's terminal: whether boards are redrawn in place and in color, their styles, and the width of texts.

A board has a background of its own, so that stones and pieces are readable on dark and on light terminals.
"""

import os
import sys

from yomi.system import enable_sequences

CLEAR = "\x1b[H\x1b[J"  # to the top, and erase what is below
PLAIN = "\x1b[0m"
WOOD, LAST = "\x1b[48;5;137m", "\x1b[48;5;31m"  # backgrounds of the board and of the last move
BLACK_INK, WHITE_INK, PROMOTED_INK, LINES = (f"\x1b[38;5;{color}m" for color in (16, 231, 52, 238))
NOT_FIRST = "、。，．）」』：；？！ー…ぁぃぅぇぉっゃゅょァィゥェォッャュョ)"  # never at the start of a line
NOT_LAST = "（「『("


def is_interactive() -> bool:
    """Return whether a person uses this process at a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and enable_sequences()


def has_colors() -> bool:
    return is_interactive() and not os.environ.get("NO_COLOR")


def column(number: int) -> str:
    """Return the escape sequence that moves the cursor to a column (from 1) of its line."""
    return f"\x1b[{number}G"


# -- texts with characters of two columns, such as Japanese ------------------------------------------------------------


def width(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    return len(text) if text.isascii() else sum(1 + _is_wide(letter) for letter in text)


def ljust(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def rjust(text: str, columns: int) -> str:
    return " " * (columns - width(text)) + text


def wrap(text: str, columns: int) -> list[str]:
    """Break a paragraph into lines of at most `columns` columns, at blanks and beside wide characters."""
    lines, line = [], ""
    for piece in _pieces(" ".join(text.split())):
        if line and width(line) + width(piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: str) -> list[str]:
    """Split a line into parts. A line break is allowed between two parts."""
    pieces: list[str] = []
    for letter in text:
        before = pieces[-1][-1] if pieces else ""
        is_free = before == " " or (before != "" and (_is_wide(before) or _is_wide(letter)))
        if not pieces or (is_free and letter not in NOT_FIRST and letter != " " and before not in NOT_LAST):
            pieces.append(letter)
        else:
            pieces[-1] += letter
    return pieces


def _is_wide(letter: str) -> bool:
    import unicodedata  # not above: English help starts without it

    return unicodedata.east_asian_width(letter) in "WF"
