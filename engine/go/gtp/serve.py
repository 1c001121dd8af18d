"""The process around a GTP session."""

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
    """Serve the controller on stdin and stdout until it ends; return the exit status.

    Args:
        options: Settings.
        make_player: Makes the player; called in a background thread while the first commands are answered.
        level: keeps the options at their level; None: made here.
    """

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(options, make_player, write, level)
        session.load()
        return session

    return run_session(make_session)
