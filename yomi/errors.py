"""The errors of yomi. Every error that yomi raises on purpose is an `Error`."""

import unicodedata
from collections.abc import Callable

# Characters to keep of a longer text. Its beginning names the file, and its end the expected value.
_HEAD, _TAIL = 700, 400

# Characters that change the direction of the following text.
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Error(Exception):
    """Base class of yomi's errors. The message contains the fault, the expected value and a way out."""


class ClosedError(Error):
    """An engine was used after `close`."""


class IllegalMove(Error, ValueError):  # noqa: N818  (the name that players and GTP use)
    """A move that cannot be read, or that the rules forbid. The message is one line."""


class CompileError(Error, RuntimeError):
    """Kernels cannot be compiled or cached. The message is one line."""


class LineError(Error):
    """An error whose text is one printable line, even if it quotes a hostile file."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class reraised:  # noqa: N801  (it reads like a statement)
    """Raise errors of this block as another kind: `with reraised(OSError, NetworkError, f"{path}: "): ...`.

    The new text is `before` and the old text. The text of an OSError is its reason, without its number and file.
    """

    def __init__(
        self, caught: type[Exception] | tuple[type[Exception], ...], kind: Callable[[str], Exception], before: str = ""
    ) -> None:
        self._caught, self._kind, self._before = caught, kind, before

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, self._caught):
            reason = error.strerror if isinstance(error, OSError) else None
            raise self._kind(f"{self._before}{reason or error}") from None


def fault_of(file: object, error: object) -> str:
    """Return an error message that names the file exactly once."""
    text = str(error)
    return text if str(file) in text else f"{file}: {text}"


def is_control(character: str) -> bool:
    """Return whether a terminal may interpret a character: a control, a line separator, or a change of direction."""
    if " " <= character <= "~":
        return False
    return character in _DIRECTIONS or unicodedata.category(character) in ("Cc", "Zl", "Zp")


def one_line(text: str) -> str:
    """Return `text` on one line: control characters are escaped, and a very long text loses its middle."""
    if len(text) > _HEAD + _TAIL + 50:
        text = f"{text[:_HEAD]} ... ({len(text)} characters) ... {text[-_TAIL:]}"
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    # UTF-8 cannot encode a lone surrogate. The low ones are bytes of a file's name, which are printed as they were
    # read.
    is_lone = unicodedata.category(character) == "Cs" and not "\udc80" <= character <= "\udcff"
    if is_lone or is_control(character):
        return character.encode("unicode_escape").decode("ascii")
    return character


def printable(text: object, keep: str = "") -> str:
    """Return text for a terminal, with U+FFFD for control characters (except `keep`), line ends and bidi marks."""
    return "".join(c if c in keep or not is_control(c) else "\ufffd" for c in str(text))
