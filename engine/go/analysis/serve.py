"""The process around a session of the analysis protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yomi.engine.protocols.process import run_session

if TYPE_CHECKING:
    from yomi.engine.go.analysis.overrides import Settings
    from yomi.engine.go.players.analysis import Analyst


def serve(settings: Settings, make_analysts: Callable[[], Sequence[Analyst]], *, quit_without_waiting: bool) -> int:
    """Serve the client on stdin and stdout until it ends; return the exit status.

    Args:
        settings: what holds where a query says nothing.
        make_analysts: called in a background thread while the first actions are answered.
        quit_without_waiting: leave at the end of input although queries are open.
    """
    from yomi.engine.go.analysis.session import Session

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(settings, make_analysts, write, _say, quit_without_waiting=quit_without_waiting)
        session.load()
        return session

    return run_session(make_session)


def _say(line: str) -> None:
    """Show the user a line on stderr, where clients look for the one that begins with Started."""
    print(line, file=sys.stderr, flush=True)
