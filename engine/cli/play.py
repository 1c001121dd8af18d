"""`yomi play`: the flags of a game against the engine in the terminal; the game itself is in yomi.engine.terminal."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.flags import add_options, collect
from yomi.engine.cli.games import GAMES, add_flags, add_games
from yomi.engine.cli.make import load_player, loading_errors, prepare
from yomi.engine.cli.signals import ended_by_a_signal
from yomi.engine.color import BLACK, WHITE
from yomi.engine.levels import FULL, describe_level, level_settings
from yomi.engine.options import TABLE, Options
from yomi.engine.terminal import ENGINE, YOU, Terminal

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Value

COMMAND = "play"
USAGE = "yomi play GAME [options]"
EPILOG = """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play shogi --net model.onnx --color white
  yomi help play shogi
"""

COLORS = {"black": BLACK, "white": WHITE, "none": None}

AUTO = "auto"
"""For --save: a name made from date and time."""
ADVICE_SECONDS = 1.0
"""Time for a hint or a score where a level is played."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each game, with its flags."""
    for game, child in add_games(parser, COMMAND, "Play {} against the engine in the terminal"):
        child.add_argument(
            "--color",
            choices=list(COLORS),
            help="your color; none: watch (default: black, or that of the game that is resumed)",
        )
        child.add_argument(
            "--save",
            metavar="FILE",
            default=AUTO,
            help=f"save the game there, move by move; the ending tells the form: {' '.join(game.save_suffixes)}"
            " (default: the file that is resumed, or a name made from date and time)",
        )
        child.add_argument("--resume", metavar="FILE", help="go on with the game that was saved there")
        child.add_argument("--no-save", dest="save", action="store_const", const=None, help="do not save the game")
        add_flags(child, COMMAND, game)
        add_options(child, game, leave_out=("ponder", "stochastic_ponder"))


def with_level(args: argparse.Namespace, game: Game[Any, Any]) -> tuple[Options, str]:
    """Return the options with those of the level, and what the user is told of it."""
    options = collect(args, game)
    level = options.level
    if level == FULL:
        return options, ""
    settings = level_settings(game, level, options)
    options = collect(args, game, **settings)
    changed = [name for name, value in settings.items() if options.get(name) != value]
    text = describe_level(game, options, level)
    return options, f"{text}, changed by {', '.join(changed)}" if changed else text


def advice_settings(level: int, game: Game[Any, Any]) -> dict[str, Value]:
    """Return the options for hints and scores, where the engine plays at a level: those of full strength."""
    if level == FULL:
        return {}
    settings = level_settings(game, level, Options.for_game(game.name))
    defaults = {name: TABLE[name].default_for(game.name) for name in settings if TABLE[name].live}
    return defaults | {"visits": None, "seconds": ADVICE_SECONDS}


def file_to_save(name: str | None, suffixes: Sequence[str]) -> str | None:
    """Return the file that a game is to be saved in; `suffixes` are the endings that its name may have.

    Raises:
        CliError: an ending that tells no form, or a folder that does not exist.
    """
    if name is None:
        return None
    if name == AUTO:
        return time.strftime("yomi-%Y%m%d-%H%M%S") + suffixes[0]
    path = Path(name)
    if path.suffix.lower() not in suffixes:
        raise CliError(f"--save {name}: expected a name ending in {' '.join(suffixes)}")
    if not path.parent.is_dir():
        raise CliError(f"--save {name}: no folder {path.parent}")
    return name


def run(args: argparse.Namespace) -> int:
    """Play one game."""
    game = GAMES[args.game]
    options, level = with_level(args, game)
    resumed: str | None = args.resume
    for name in game.flags_fixed_by_record if resumed is not None else ():
        if vars(args).get(name):
            raise CliError(f"--{name} with --resume: the record tells it, expected one of the two")
    save = file_to_save(resumed if resumed is not None and args.save == AUTO else args.save, game.save_suffixes)
    logs.set_up(options)
    with loading_errors():
        prepare(game, options)
        begun, names = game.start_play(args, options)
    played = game.terminal(load_player(game, options), begun, args, advice_settings(options.level, game))
    is_draft = resumed is None and args.save == AUTO
    color = args.color or ("white" if names == (ENGINE, YOU) else "black")
    try:
        with ended_by_a_signal():
            Terminal(played, COLORS[color], input, print, save, level, is_draft=is_draft).run()
    finally:
        played.close()
    return 0
