"""Lines of a text protocol as bytes: what GTP and USI have in common. No state, no streams."""

MAX_LINE = 2**20
"""Bytes; a longer line is refused as a whole."""

_REMOVED = bytes(c for c in range(32) if c not in (9, 10)) + b"\x7f"


def decode(line: bytes, errors: str = "surrogateescape") -> str:
    """Return a line without control characters, HT turned into blanks.

    Args:
        line: what came in.
        errors: what becomes of bytes that are not UTF-8, as `bytes.decode` has it; as surrogates they survive, so that
            file names and echoes come through unchanged.
    """
    line = line.translate(None, _REMOVED).replace(b"\t", b" ")
    return line.decode("utf-8", errors).strip(" \n")


def encode(text: str) -> bytes:
    """Return the bytes of an answer."""
    return text.encode("utf-8", "surrogateescape")
