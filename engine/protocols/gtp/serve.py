"""The process around a GTP session: descriptors, the reader's thread, and an orderly end."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.options import Options
from engine.protocols.gtp.session import LoadError, Session
from engine.protocols.gtp.streams import Output, OutputClosedError, claim_stdout, read_lines

if TYPE_CHECKING:
    from engine.players.base import Player

FAILED = 2


def serve(options: Options, make_player: Callable[[], Player]) -> int:
    """Serve the controller on stdin and stdout until it ends; return the exit status.

    Args:
        options: Settings.
        make_player: Makes the player; called in a background thread while the first commands are answered.
    """
    output = Output(claim_stdout())
    session = Session(options, make_player, output.write)
    loader = session.load()
    is_script = stat.S_ISREG(os.fstat(0).st_mode)
    threading.Thread(
        target=read_lines,
        args=(0, session.receive, lambda: session.receive_end(is_script)),
        name="input",
        daemon=True,
    ).start()
    status = 0
    try:
        session.run()
        if not loader.is_alive():
            session.close()
    except OutputClosedError:
        pass  # the controller has gone: nothing is left to do
    except LoadError as error:
        print(f"yomi: error: {error}", file=sys.stderr)
        status = FAILED
    except KeyboardInterrupt:
        status = 130
    sys.stderr.flush()
    # Threads that compile kernels or search cannot be stopped from here; the interpreter's own end would wait for them.
    os._exit(status)
