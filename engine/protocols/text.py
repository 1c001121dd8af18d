"""Bytes and text of protocol lines, for GTP, USI and the servers' protocols."""

MAX_LINE = 2**20
"""Bytes. A longer line is refused as a whole."""

_REMOVED = bytes(c for c in range(32) if c not in (9, 10)) + b"\x7f"


def decode(line: bytes, errors: str = "surrogateescape") -> str:
    """Return a line without control characters and with spaces for tabs.

    `errors` is that of `bytes.decode`. As surrogates, bytes that are not UTF-8 survive in file names and echoes.
    """
    line = line.translate(None, _REMOVED).replace(b"\t", b" ")
    return line.decode("utf-8", errors).strip(" \n")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
