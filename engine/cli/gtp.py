"""`yomi gtp`: serve a GUI or a server's bridge."""

from __future__ import annotations

import argparse

from engine.cli import logs
from engine.cli.flags import add_options, collect
from engine.cli.make import make_player

HELP = "speak GTP on stdin and stdout, for a GUI or a server's bridge to start"
EPILOG = """\
examples:
  yomi gtp --net b6c96.bin.gz --seconds 5
  yomi gtp --net b18.bin.gz --visits 800 --ponder --rules chinese
  yomi gtp --evaluator rollouts --memory 256M          without a network
  yomi gtp --config yomi.toml --log-file yomi.log --log-level debug

In GoGui, Sabaki, Lizzie or q5go enter such a line as the engine's command. Options can also be changed while the
engine runs: kata-set-param visits 400, or GoGui's analyze command `Parameters`.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until the controller ends."""
    from engine.protocols.gtp.serve import serve

    options = collect(args)
    logs.set_up(options)
    return serve(options, lambda: make_player(options))
