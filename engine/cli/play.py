"""`yomi play`: the flags of a game against the engine in the terminal.

The game itself is in terminal, and what Go and shogi add to it in play_go and play_shogi.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.flags import add_options, collect
from engine.cli.games import add_games
from engine.cli.signals import ended_by_a_signal
from engine.cli.terminal import ENGINE, YOU, Terminal, TerminalGame
from engine.color import BLACK, WHITE
from engine.options import TABLE
from engine.own_network import has_network
from engine.players.levels import COUNT, FULL, describe_level, level_settings

if TYPE_CHECKING:
    from engine.options import Options, Value

USAGE = "yomi play GAME [options]"
EPILOG = """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play shogi --net model.onnx --color white
  yomi play shogi --help
"""

EPILOGS = {
    "go": """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play go --size 9 --level 3 --save game.sgf
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE goes on with it.
""",
    "shogi": """\
examples:
  yomi play shogi --seconds 2
  yomi play shogi --level 2 --save game.kifu
  yomi play shogi --net model.onnx --color white --book-file book.bin
  yomi play shogi --sfen "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"

In the game: a move in USI (7g7f, 8h2b+, P*5e), CSA (7776FU) or Japanese (７六歩, 76歩, 同銀) is played; undo, hint,
score, declare, board, sfen, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE goes on with it.
""",
}

COLORS = {"black": BLACK, "white": WHITE, "none": None}

AUTO = "auto"
"""For --save: a name made from date and time."""
SUFFIXES = {"go": (".sgf",), "shogi": (".kifu", ".kif", ".csa", ".usi", ".sfen")}
"""Endings of the names of saved games; the first is that of AUTO."""
ADVICE_SECONDS = 1.0
"""Time for a hint or a score where a level is played."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each game, with its flags."""
    children = add_games(parser, "play", "Play {} against the engine in the terminal", EPILOGS)
    for game, child in children.items():
        child.add_argument(
            "--color",
            choices=list(COLORS),
            help="your color; none: watch (default: black, or that of the game that is resumed)",
        )
        child.add_argument(
            "--level",
            choices=[*map(str, range(1, COUNT + 1)), FULL],
            default=FULL,
            help=f"strength, from a beginner's (1) to {COUNT}; max: full strength (default: max)",
        )
        child.add_argument(
            "--save",
            metavar="FILE",
            default=AUTO,
            help=f"save the game there, move by move; the ending tells the form: {' '.join(SUFFIXES[game])}"
            " (default: the file that is resumed, or a name made from date and time)",
        )
        child.add_argument("--resume", metavar="FILE", help="go on with the game that was saved there")
        child.add_argument("--no-save", dest="save", action="store_const", const=None, help="do not save the game")
        if game == "go":
            child.add_argument(
                "--handicap", type=int, default=0, metavar="N", help="handicap stones for Black, 2 to 9 (default: 0)"
            )
        else:
            child.add_argument("--sfen", metavar="SFEN", help="position to begin with (default: that of a game)")
            child.add_argument(
                "--board",
                choices=["auto", "japanese", "letters"],
                default="auto",
                help="how pieces are drawn; auto: Japanese where the terminal can show it (default: auto)",
            )
        add_options(child, leave_out=("ponder", "stochastic_ponder"), game=game)


def with_level(args: argparse.Namespace) -> tuple[Options, str]:
    """Return the options with those of the level, and what the user is told of it."""
    options = collect(args, args.game)
    if args.level == FULL:
        return options, ""
    level = int(args.level)
    settings = level_settings(args.game, level, has_network=has_network(options))
    options = collect(args, args.game, **settings)
    changed = [name for name, value in settings.items() if options.get(name) != value]
    text = describe_level(args.game, options, level)
    return options, f"{text}, changed by {', '.join(changed)}" if changed else text


def advice_settings(args: argparse.Namespace) -> dict[str, Value]:
    """Return the options for hints and scores, where the engine plays at a level: those of full strength."""
    if args.level == FULL:
        return {}
    settings = level_settings(args.game, int(args.level), has_network=True)
    defaults = {name: TABLE[name].default_for(args.game) for name in settings if TABLE[name].live}
    return defaults | {"visits": None, "seconds": ADVICE_SECONDS}


def file_to_save(name: str | None, game: str) -> str | None:
    """Return the file that a game is to be saved in.

    Raises:
        CliError: an ending that tells no form, or a folder that does not exist.
    """
    if name is None:
        return None
    suffixes = SUFFIXES[game]
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
    options, level = with_level(args)
    resumed: str | None = args.resume
    for name in ("handicap", "size", "komi", "sfen") if resumed is not None else ():
        if vars(args).get(name):
            raise CliError(f"--{name} with --resume: the record tells it, expected one of the two")
    save = file_to_save(resumed if resumed is not None and args.save == AUTO else args.save, args.game)
    logs.set_up(options)
    advice = advice_settings(args)
    game: TerminalGame
    names = ("", "")
    if args.game == "go":
        from engine.cli.play_go import load_go, open_go

        sgf, names = (None, names) if resumed is None else load_go(resumed)
        game = open_go(options, args.handicap, advice, sgf)
    else:
        from engine.cli.play_shogi import load_shogi, open_shogi

        record, names = (None, names) if resumed is None else load_shogi(resumed)
        game = open_shogi(options, args.sfen, args.board, advice, record)
    is_draft = resumed is None and args.save == AUTO
    color = args.color or ("white" if names == (ENGINE, YOU) else "black")
    try:
        with ended_by_a_signal():
            Terminal(game, COLORS[color], input, print, save, level, is_draft=is_draft).run()
    finally:
        game.close()
    return 0
