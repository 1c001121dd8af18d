"""The process around a USI session."""

from __future__ import annotations

from collections.abc import Callable

import engine.protocols.usi.commands  # noqa: F401  (registers the handlers)
from engine.options import Options
from engine.protocols.process import run_session
from engine.protocols.usi.session import MakePlayer, Session


def serve(options: Options, make_player: MakePlayer) -> int:
    """Serve the controller on stdin and stdout until it ends; return the exit status.

    Args:
        options: Settings.
        make_player: Makes the player when `isready` comes, in a thread of its own.
    """

    def make_session(write: Callable[[str], None]) -> Session:
        return Session(options, make_player, write)

    return run_session(make_session)
