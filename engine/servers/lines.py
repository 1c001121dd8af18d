"""Splits the bytes of a connection into lines."""

from __future__ import annotations

from yomi.engine.protocols.text import decode

MAX_LINE = 2**16
"""Bytes. A game of 1,000 moves with clocks takes 20,000. A longer line is dropped as a whole."""


class LineReader:
    """Splits bytes at line feeds, and holds at most MAX_LINE bytes."""

    def __init__(self) -> None:
        self.dropped = 0  # lines that were too long
        self._rest = b""
        self._is_dropping = False

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that end in `data`, without their ends. Empty lines are included."""
        *lines, rest = data.split(b"\n")
        found = []
        for line in lines:
            whole = self._rest + line
            self._rest = b""
            if self._is_dropping or len(whole) > MAX_LINE:
                self.dropped += not self._is_dropping
                self._is_dropping = False
                continue
            found.append(decode(whole, "replace"))
        if self._is_dropping or len(self._rest) + len(rest) > MAX_LINE:
            self.dropped += not self._is_dropping
            self._is_dropping, self._rest = True, b""
        else:
            self._rest += rest
        return found
