"""The standard streams, as a command finds them."""

from __future__ import annotations

import io
import os
import sys


def open_closed() -> None:
    """Put the null device in place of standard streams that were closed when the program began (`2>&-`).

    Python has None for them. Opened in this order, each gets the descriptor that is its own.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (until the program ends)


def escape_unknown() -> None:
    """Let what the terminal's encoding lacks be printed as a code: a name of a player or a file must end nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
