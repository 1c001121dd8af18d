"""`yomi gtp`: serve a GUI or a server's bridge."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.flags import add_options, collect, named_options
from yomi.engine.cli.make import load_player
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.levels import LevelSwitch

if TYPE_CHECKING:
    from yomi.engine.go.players.player import GoPlayer

USAGE = "yomi gtp [options]"
EPILOG = """\
examples:
  yomi gtp --net b6c96.bin.gz --seconds 5
  yomi gtp --net b18.bin.gz --visits 800 --ponder --rules chinese
  yomi gtp --level 3                                   at a level of strength, from 1 to 10
  yomi gtp --evaluator rollouts --memory 256M          without a network
  yomi gtp --config yomi.toml --log-file yomi.log --log-level debug

In GoGui, Sabaki, Lizzie or q5go enter such a line as the engine's command. Options can also be changed while the
engine runs: kata-set-param visits 400, or GoGui's analyze command `Parameters`.
"""


def add(parser: argparse.ArgumentParser) -> None:
    add_options(parser, GO)


def run(args: argparse.Namespace) -> int:
    from yomi.engine.go.gtp.serve import serve
    from yomi.engine.protocols.process import LoadError

    options = collect(args, GO)
    level = LevelSwitch(GO, options, named_options(args, GO))
    logs.set_up(options)

    def make() -> GoPlayer:
        try:
            return load_player(GO, options)
        except CliError as error:
            raise LoadError(str(error)) from error

    return serve(options, make, level)
