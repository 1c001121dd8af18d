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

# loggers whose warnings the user sees
SHOWN = ("yomi.evaluators", "yomi.networks", "yomi.player", "yomi.search", "yomi.shogi")


class _InfoStrings(logging.Handler):
    """Shows warnings of the player as `info string`, because a graphical interface has no stderr."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OutputClosedError):  # the session's loop hears of it by itself
            self._note(f"{record.levelname.lower()}: {record.getMessage()}")


def serve(options: Options, make_player: MakePlayer, level: LevelSwitch | None = None) -> int:
    """Serve the controller on stdin and stdout until it ends; return the exit status.

    Args:
        options: the settings.
        make_player: makes the player after `isready`, in a thread of its own.
        level: keeps the options at their level; None: made here.
    """

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(options, make_player, write, level)
        handler = _InfoStrings(session.note)
        for name in SHOWN:
            logging.getLogger(name).addHandler(handler)
        return session

    return run_session(make_session)
