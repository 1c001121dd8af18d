"""Bytes of a connection into lines. Pure: no socket, no protocol."""

from __future__ import annotations

from yomi.engine.protocols.text import decode

MAX_LINE = 2**16
"""Bytes; a game of 1,000 moves with clocks takes 20,000. A longer line is dropped as a whole."""


class LineReader:
    """Cuts what comes in at line feeds; holds no more than MAX_LINE bytes, whatever comes."""

    def __init__(self) -> None:
        """Begin with a connection."""
        self.dropped = 0
        """Lines that were too long."""
        self._rest = b""
        self._is_dropping = False

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that end in `data`, without their ends; empty ones, too.

        What is not UTF-8 is replaced: names go into logs and records, and nothing but ASCII is sent back.
        """
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
