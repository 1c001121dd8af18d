"""What is shown while a match runs: a line for each game, and on a terminal the table below them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from engine.color import DRAW
from engine.matches.results import GameResult

if TYPE_CHECKING:
    from engine.matches.journal import Journal
    from engine.matches.sprt import Sprt

INTERVAL = 1.0
"""Seconds between two tables."""
SHARE = 200
"""The time between two tables is at least this many times the time that one takes; with 10,000 games that is 0.2 s."""


class Progress:
    """The display of one match."""

    def __init__(
        self, journal: Journal, players: Sequence[str], total: int, test: Sprt | None, stream: TextIO | None = None
    ) -> None:
        """Prepare it.

        Args:
            journal: holds the games.
            players: names.
            total: games of the whole match.
            test: that ends the match, or None.
            stream: where to write; None is stderr.
        """
        self.journal, self.players, self.total, self.test = journal, players, total, test
        self.stream = sys.stderr if stream is None else stream
        self.is_terminal = self.stream.isatty()
        self._height = 0
        """Lines of the table that stands on the terminal."""
        self._due = 0.0

    @property
    def is_decided(self) -> bool:
        """Whether the test has ended the match."""
        return self.test is not None and self.test.verdict(self._pairs()) != ""

    def show(self, result: GameResult) -> bool:
        """Show a game that has ended, and return whether the match has."""
        self._erase()
        done = len(self.journal.results)
        winner = "drawn" if result.winner == DRAW else f"{(result.black, result.white)[result.winner - 1]} wins"
        faulty = f" [fault of {result.blamed}]" if result.blamed else ""
        text = f"{done}/{self.total}  game {result.number + 1}  {result.black} - {result.white}: {winner}"
        self._write(f"{text}, {result.ending} {result.detail}".rstrip() + faulty)
        if self.test is not None:
            self._write(self.test.line(self._pairs()))
        if self.is_terminal and time.monotonic() >= self._due:
            begin = time.monotonic()
            self._draw()
            spent = time.monotonic() - begin  # the next games wait meanwhile
            self._due = begin + max(INTERVAL, SHARE * spent)
        return self.is_decided

    def _pairs(self) -> list[int]:
        from engine.matches.sprt import pair_counts

        return pair_counts(self.journal.results, self.players[0])

    def _draw(self) -> None:
        from engine.matches.report import report
        from engine.matches.table import to_text

        table = to_text(report(self.journal.results)).split("\n\n")[:2]
        width = shutil.get_terminal_size().columns  # a line that is wrapped would be two
        lines = [line[:width] for line in "\n\n".join(table).splitlines()]
        self._write("\n".join(["", *lines]))
        self._height = len(lines) + 1

    def _erase(self) -> None:
        if self._height:
            self.stream.write(f"\x1b[{self._height}A\x1b[J")
            self._height = 0

    def _write(self, text: str) -> None:
        print(text, file=self.stream, flush=True)

    def __enter__(self) -> Progress:
        """Say what was there before."""
        before = len(self.journal.results)
        if before:
            self._write(f"{before} of {self.total} games are in {self.journal.path}; going on")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Take the table away: it comes on stdout."""
        self._erase()
