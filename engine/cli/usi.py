"""`yomi usi`: serve a graphical interface for shogi."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from yomi.engine.cli.errors import CliError
from yomi.engine.cli.flags import add_options, collect, named_options
from yomi.engine.levels import LevelSwitch
from yomi.engine.shogi.descriptor import GAME as SHOGI

if TYPE_CHECKING:
    from yomi.engine.shogi.players.player import ShogiPlayer

USAGE = "yomi usi [options]"
EPILOG = """\
examples:
  yomi usi
  yomi usi --evaluator material                        without a network: material, exchanges and the safety of kings
  yomi usi --net model.onnx
  yomi usi --net model.onnx --playouts 800 --multipv 3
  yomi usi --level 3                                   at a level of strength, from 1 to 10; also the option Level
  yomi usi --config yomi.toml --log-file yomi.log --log-level debug

In ShogiGUI or ShogiHome register `yomi-usi`, which is `yomi usi` as a program of its own; the network (DNN_Model) and
everything else is set in the dialog of options.
"""


def add(parser: argparse.ArgumentParser) -> None:
    add_options(parser, SHOGI)


def run(args: argparse.Namespace) -> int:
    from yomi.engine.shogi.usi.serve import serve

    try:
        options = collect(args, SHOGI)
        level = LevelSwitch(SHOGI, options, named_options(args, SHOGI))
        if options.log_file is not None:
            from yomi.engine.cli import logs

            logs.set_up(options)
    except CliError as error:
        print(f"info string Error! {error}", flush=True)  # a graphical interface shows no stderr
        raise

    def make(say: Callable[[str], None]) -> ShogiPlayer:
        from yomi.engine.cli.make import make_player

        return make_player(SHOGI, options, say)

    return serve(options, make, level)
