"""Parsers for arguments of commands."""

from __future__ import annotations

import math
import re

from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.session import GtpError


def expect_count(command: Command, least: int, most: int | None, usage: str) -> None:
    """Check the number of arguments.

    Raises:
        GtpError: fewer than `least` or more than `most` (None: no limit); the message shows `usage`.
    """
    count = len(command.arguments)
    if count < least or (most is not None and count > most):
        raise GtpError(f"syntax error: expected {command.name} {usage}".rstrip())


def integer(text: str, what: str) -> int:
    """Parse an integer of at most 9 digits."""
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        raise GtpError(f"invalid {what} {text!r}: expected an integer")
    return int(text)


def real(text: str, what: str) -> float:
    """Parse a finite number."""
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
