"""Runs a GTP session on stdin and stdout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from yomi.engine.go.gtp.session import Session
from yomi.engine.options import Options
from yomi.engine.protocols.process import run_session

if TYPE_CHECKING:
    from yomi.engine.go.players.player import GoPlayer
    from yomi.engine.levels import LevelSwitch


def serve(options: Options, make_player: Callable[[], GoPlayer], level: LevelSwitch | None = None) -> int:
    """Serve the controller until the session ends; return the exit status.

    Args:
        options: the settings.
        make_player: called in a background thread; the session already answers commands.
        level: keeps the options at their level; None to make one.
    """

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(options, make_player, write, level)
        session.load()
        return session

    return run_session(make_session)
