"""GTP 2 as text: converts lines to commands, arguments to values, and answers to text. Also the table of commands.

Source: GTP version 2 draft 2, sections 2.5 to 2.7 (syntax) and 3 (preprocessing).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yomi.engine.protocols.session import CommandTable
from yomi.engine.protocols.streams import MAX_LINE, decode
from yomi.errors import Error

if TYPE_CHECKING:
    from yomi.engine.go.gtp.session import Answer, Session

MAX_ERROR = 500  # maximum characters of an error message, which quotes its input


class GtpError(Error):
    """A command failed. The message is one line for the controller."""


@dataclass(frozen=True, slots=True)
class Command:
    id: str | None  # digits as sent; None if the line has no id
    name: str  # lower case; empty if the line has only an id
    arguments: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.arguments)


# `engine` is imported with the session. The other modules need numba, and their order is that of `list_commands`.
COMMANDS: CommandTable[Callable[[Session, Command], Answer]] = CommandTable(
    *(f"yomi.engine.go.gtp.{module}" for module in ("board", "moves", "params", "maps"))
)
command = COMMANDS.command


def parse_line(line: bytes) -> Command | None:
    """Parse a line. Return None if it is empty or only a comment."""
    words = [word for word in decode(line[: MAX_LINE + 1]).partition("#")[0].split(" ") if word]
    if not words:
        return None
    number = None
    if words[0].isascii() and words[0].isdigit():
        number = words.pop(0)
    name = words.pop(0).lower() if words else ""
    return Command(number, name, tuple(words))


def is_interrupt(line: bytes) -> bool:
    """Return whether a line is the comment by which GoGui interrupts the current command."""
    return line.strip().lower() in (b"# interrupt", b"#interrupt")


def header(number: str | None, ok: bool = True) -> str:
    return ("=" if ok else "?") + (number or "")


def format_response(number: str | None, text: str = "", ok: bool = True) -> str:
    """Return an answer, with the empty line that ends it. An error becomes one line.

    Empty lines inside the text would end the answer, so they are dropped. If the first line of `text` is empty, the
    text begins below the header.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    kept = [line for i, line in enumerate(lines) if line or (i == 0 and ok and len(lines) > 1)]
    if not ok:
        message = "; ".join(kept)
        kept = [message if len(message) <= MAX_ERROR else message[:MAX_ERROR] + "..."]
    body = "\n".join(kept)
    gap = "" if not body or body.startswith("\n") else " "
    return f"{header(number, ok)}{gap}{body}\n\n"


def check_count(request: Command, usage: str) -> None:
    """Raise GtpError if the number of arguments is wrong.

    `usage` names each argument: `[NAME]` may be missing, and after `NAME...` further words may follow.
    """
    words = usage.split()
    least = sum(not word.startswith("[") for word in words)
    has_too_many = len(request.arguments) > len(words) and "..." not in usage
    if len(request.arguments) < least or has_too_many:
        raise GtpError(f"syntax error: expected {request.name} {usage.replace('...', '')}".rstrip())


def integer(text: str, what: str) -> int:
    """Parse an integer of at most 9 digits."""
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        raise GtpError(f"invalid {what} {text!r}: expected an integer")
    return int(text)


def real(text: str, what: str) -> float:
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise GtpError(f"invalid {what} {text!r}: expected a number")
    return value


def boolean(text: str, what: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise GtpError(f"invalid {what} {text!r}: expected true or false")
    return text.lower() in ("true", "1")
