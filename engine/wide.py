"""Texts with characters of two columns, such as Japanese: their width, columns and lines."""

from __future__ import annotations

NOT_FIRST = "、。，．）」』：；？！ー…ぁぃぅぇぉっゃゅょァィゥェォッャュョ)"  # never at the start of a line
NOT_LAST = "（「『("


def width(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    return len(text) if text.isascii() else sum(1 + _is_wide(letter) for letter in text)


def ljust(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def rjust(text: str, columns: int) -> str:
    return " " * (columns - width(text)) + text


def wrap(text: str, columns: int) -> list[str]:
    """Return the lines of a paragraph. Lines break at blanks and beside wide characters."""
    lines, line = [], ""
    for piece in _pieces(" ".join(text.split())):
        if line and width(line) + width(piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: str) -> list[str]:
    """Return the parts of a line between which it may break."""
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
