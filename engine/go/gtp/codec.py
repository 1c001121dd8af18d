"""GTP 2 as text: lines into commands, answers into bytes. No state, no streams.

Source: GTP version 2 draft 2, sections 2.5 to 2.7 (syntax) and 3 (preprocessing).
"""

from dataclasses import dataclass

from yomi.engine.protocols.streams import MAX_LINE, decode

MAX_ERROR = 500
"""Characters of an error message; it quotes what was sent."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the controller."""

    id: str | None
    """Digits as they were sent; None where the line had none."""
    name: str
    """In lower case; empty where the line had nothing after the id."""
    arguments: tuple[str, ...]

    @property
    def text(self) -> str:
        """The arguments as one text, single blanks between them."""
        return " ".join(self.arguments)


def clean(line: bytes) -> str:
    """Return a line without control characters and comment, HT turned into blanks."""
    return decode(line).partition("#")[0].rstrip(" ")


def parse_line(line: bytes) -> Command | None:
    """Read one line of input; None where there is nothing to answer (empty, or only a comment)."""
    words = [word for word in clean(line[: MAX_LINE + 1]).split(" ") if word]
    if not words:
        return None
    number = None
    if words[0].isascii() and words[0].isdigit():
        number = words.pop(0)
    name = words.pop(0).lower() if words else ""
    return Command(number, name, tuple(words))


def is_interrupt(line: bytes) -> bool:
    """Whether a line is GoGui's comment that interrupts the command in progress."""
    return line.strip().lower() in (b"# interrupt", b"#interrupt")


def header(number: str | None, ok: bool = True) -> str:
    """Return how an answer begins."""
    return ("=" if ok else "?") + (number or "")


def format_response(number: str | None, text: str = "", ok: bool = True) -> str:
    """Return an answer with the empty line that ends it.

    An empty line inside the text would end the answer early: such lines are left out, but a first one puts the text
    below the header. An error is one line.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    kept = [line for i, line in enumerate(lines) if line or (i == 0 and ok and len(lines) > 1)]
    if not ok:
        message = "; ".join(kept)
        kept = [message if len(message) <= MAX_ERROR else message[:MAX_ERROR] + "..."]
    body = "\n".join(kept)
    gap = "" if not body or body.startswith("\n") else " "
    return f"{header(number, ok)}{gap}{body}\n\n"
