"""Runs a session of the analysis protocol on stdin and stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yomi.engine.protocols.process import run_session

if TYPE_CHECKING:
    from yomi.engine.go.analysis.overrides import Settings
    from yomi.engine.go.players.analysis import Analyst


def serve(settings: Settings, make_analysts: Callable[[], Sequence[Analyst]], *, quit_without_waiting: bool) -> int:
    """Serve the client until the session ends; return the exit status.

    Args:
        settings: defaults for all queries.
        make_analysts: called in a background thread; the session already answers actions.
        quit_without_waiting: at the end of input, leave without finishing open queries.
    """
    from yomi.engine.go.analysis.session import Session

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(settings, make_analysts, write, _say, quit_without_waiting=quit_without_waiting)
        session.load()
        return session

    return run_session(make_session)


def _say(line: str) -> None:
    """Print a line to stderr. Clients wait for the line that begins with "Started"."""
    print(line, file=sys.stderr, flush=True)
