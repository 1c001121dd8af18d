"""The process around a USI session."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

import yomi.engine.shogi.usi.commands  # noqa: F401  (registers the handlers)
from yomi.engine.levels import LevelSwitch
from yomi.engine.options import Options
from yomi.engine.protocols.process import run_session
from yomi.engine.protocols.streams import OutputClosedError
from yomi.engine.shogi.usi.session import MakePlayer, Session

SHOWN = ("yomi.evaluators", "yomi.networks", "yomi.player", "yomi.search", "yomi.shogi")
"""Logs whose warnings the user sees."""


class _InfoStrings(logging.Handler):
    """Shows the user what the player and what it is made of warn of: a graphical interface has no stderr."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OutputClosedError):  # the session's loop hears of it by itself
            self._note(f"{record.levelname.lower()}: {record.getMessage()}")


def serve(options: Options, make_player: MakePlayer, level: LevelSwitch | None = None) -> int:
    """Serve the controller on stdin and stdout until it ends; return the exit status.

    Args:
        options: Settings.
        make_player: Makes the player when `isready` comes, in a thread of its own.
        level: Keeps the options at their level; None: made here.
    """

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(options, make_player, write, level)
        handler = _InfoStrings(session.note)
        for name in SHOWN:
            logging.getLogger(name).addHandler(handler)
        return session

    return run_session(make_session)
