"""`yomi play`: a game against the engine in the terminal. The game itself is in yomi.engine.terminal."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import add_settings, settings_of
from yomi.engine.cli.games import add_games, ending_fault
from yomi.engine.cli.loading import add_options, collect
from yomi.engine.cli.output import say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.color import BLACK, WHITE
from yomi.engine.levels import FULL, describe_level, level_settings
from yomi.engine.options import TABLE, Options
from yomi.engine.registry import GAMES
from yomi.engine.screen import is_interactive
from yomi.engine.signals import ended_by_a_signal
from yomi.engine.terminal import ENGINE, YOU, Terminal
from yomi.language import tr
from yomi.nets.files import check_file

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

AUTO = "auto"  # Value of --save: a name made from date and time
ADVICE_SECONDS = 1.0
NOT_SAVED = 2  # exit status


def add(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, COMMAND, "Play {} against the engine in the terminal"):
        text = "set your color; none: watch (default: black, or the resumed game's)"
        child.add_argument("--color", choices=list(COLORS), help=text)
        default = "the resumed file, or a name made from date and time"
        text = f"save the game, move by move; ending: {' '.join(game.save_suffixes)} (default: {default})"
        child.add_argument("--save", metavar="FILE", default=AUTO, help=text)
        child.add_argument("--resume", metavar="FILE", help="continue a saved game")
        child.add_argument("--no-save", dest="save", action="store_const", const=None, help="do not save the game")
        text = "warn before a blunder, and offer the move back (default: at a terminal)"
        child.add_argument("--warn", action=argparse.BooleanOptionalAction, help=text)
        add_settings(child, game.settings_kind(COMMAND))
        add_options(child, game, leave_out=("ponder", "stochastic_ponder"))


def with_level(args: argparse.Namespace, game: Game[Any, Any]) -> tuple[Options, str]:
    """Return the options with the level's settings, and a line that describes the level ("" at full strength)."""
    options = collect(args, game)
    level = options.level
    if level == FULL:
        return options, ""
    settings = level_settings(game, level, options)
    options = collect(args, game, **settings)
    changed = [name for name, value in settings.items() if options.get(name) != value]
    text = describe_level(game, options, level)
    return options, tr("{level}, changed by {names}", level=text, names=", ".join(changed)) if changed else text


def advice_settings(level: int, game: Game[Any, Any]) -> dict[str, Value]:
    """Return full-strength options for hints and scores if the engine plays at a level."""
    if level == FULL:
        return {}
    settings = level_settings(game, level, Options.for_game(game.name))
    defaults = {name: TABLE[name].default_for(game.name) for name in settings if TABLE[name].live}
    return defaults | {"visits": None, "seconds": ADVICE_SECONDS}


def file_to_save(name: str | None, suffixes: Sequence[str], flag: str = "--save") -> str | None:
    if name is None:
        return None
    if name == AUTO:
        return time.strftime("yomi-%Y%m%d-%H%M%S") + suffixes[0]
    path = Path(name)
    if path.suffix.lower() not in suffixes:
        raise CliError(ending_fault(flag, name, suffixes))
    if not path.parent.is_dir():
        raise CliError(tr("{flag} {name}: no folder {folder}", flag=flag, name=name, folder=path.parent))
    check_file(path)
    return name


def run(args: argparse.Namespace) -> int:
    game = GAMES[args.game]
    options, level = with_level(args, game)
    resumed: str | None = args.resume
    for name in game.flags_fixed_by_record if resumed is not None else ():
        if vars(args).get(name):
            raise CliError(tr("{flag} with --resume: the record sets it, remove one of the two", flag=f"--{name}"))
    if resumed is not None and args.save == AUTO:
        save = file_to_save(resumed, game.save_suffixes, "--resume")
    else:
        save = file_to_save(args.save, game.save_suffixes)
    set_up_logs(options)
    game.prepare(options, say)
    settings = settings_of(game.settings_kind(COMMAND), args)
    if resumed is None:
        begun, names = game.start_play(settings, options), ("", "")
    else:
        begun, names = game.resume_play(resumed, options, vars(args))
    played = game.terminal(game.load_player(options, say), begun, settings, advice_settings(options.level, game))
    is_draft = resumed is None and args.save == AUTO
    color = args.color or ("white" if names == (ENGINE, YOU) else "black")
    in_place = is_interactive()
    warns = in_place if args.warn is None else args.warn
    try:
        with ended_by_a_signal():
            terminal = Terminal(
                played, COLORS[color], input, print, save, level, is_draft=is_draft, in_place=in_place, warns=warns
            )
            terminal.run()
    finally:
        played.player.close()
    return 0 if terminal.is_kept else NOT_SAVED
