"""`yomi play`: a game against the engine in the terminal. `yomi selfplay`: records of games against itself."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yomi.engine.cli.flags import add_options, add_settings, check_limited, collect, settings_of, visits_without_limit
from yomi.engine.cli.games import add_games, ending_fault
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.game import Game
from yomi.engine.levels import AUTO, COUNT, FULL, Follower, describe_level, level_settings
from yomi.engine.options import TABLE, Options, Value
from yomi.engine.registry import GAMES
from yomi.engine.screen import is_interactive
from yomi.engine.selfplay import COMMAND as SELFPLAY
from yomi.engine.selfplay import DEFAULTS, VISITS, SelfplaySettings, open_series
from yomi.engine.signals import ended_by_a_signal
from yomi.engine.terminal import ENGINE, YOU, Terminal
from yomi.language import counted, tr
from yomi.nets.files import check_file

COMMAND = "play"
USAGE = "yomi play GAME [options]"
EPILOG = """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play shogi --net model.onnx --color white
  yomi help play shogi
"""

COLORS = {"black": BLACK, "white": WHITE, "none": None}

DATED = "auto"  # Value of --save: a name made from date and time
ADVICE_SECONDS = 1.0
NOT_SAVED = 2  # exit status


def add(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, COMMAND, "Play {} against the engine in the terminal"):
        text = "set your color; none: watch (default: black, or the resumed game's)"
        child.add_argument("--color", choices=list(COLORS), help=text)
        default = "the resumed file, or a name made from date and time"
        text = f"save the game, move by move; ending: {' '.join(game.save_suffixes)} (default: {default})"
        child.add_argument("--save", metavar="FILE", default=DATED, help=text)
        child.add_argument("--resume", metavar="FILE", help="continue a saved game")
        child.add_argument("--no-save", dest="save", action="store_const", const=None, help="do not save the game")
        text = "warn before a blunder, and offer the move back (default: at a terminal)"
        child.add_argument("--warn", action=argparse.BooleanOptionalAction, help=text)
        add_settings(child, game.settings_kind(COMMAND))
        add_options(child, game, leave_out=("ponder", "stochastic_ponder"))


def _level(game: Game[Any, Any], options: Options) -> int:
    return Follower(game.name).level if options.level == AUTO else options.level


def with_level(args: argparse.Namespace, game: Game[Any, Any]) -> tuple[Options, str]:
    """Return the options with the settings of the level, and a line about the level ("" at full strength)."""
    options = collect(args, game)
    level = _level(game, options)
    if level == FULL:
        return options, ""
    settings = level_settings(game, level, options)
    options = collect(args, game, **settings)
    changed = [name for name, value in settings.items() if options.get(name) != value]
    text = describe_level(game, options, level)
    return options, tr("{level}, changed by {names}", level=text, names=", ".join(changed)) if changed else text


def advice_settings(game: Game[Any, Any], options: Options) -> dict[str, Value]:
    """If the engine plays at a level, return the options of full strength for hints and scores, otherwise none."""
    if _level(game, options) in (FULL, COUNT):
        return {}
    settings = level_settings(game, 1, options)  # all levels have the same names
    defaults = {name: TABLE[name].default_for(game.name) for name in settings if TABLE[name].live}
    return defaults | {"visits": None, "seconds": ADVICE_SECONDS}


def _follow(game: Game[Any, Any], options: Options, winner: int | None, human: int) -> None:
    """Pass the result to the level auto. If the level changes, print the level of the next game."""
    follower = Follower(game.name)
    if winner is not None and follower.note(winner == human):
        echo(tr("The next game: {level}", level=describe_level(game, options, follower.level)))


def file_to_save(name: str | None, suffixes: Sequence[str], flag: str = "--save") -> str | None:
    if name is None:
        return None
    if name == DATED:
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
    if resumed is not None and args.save == DATED:
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
    played = game.terminal(game.load_player(options, say), begun, settings, advice_settings(game, options))
    is_draft = resumed is None and args.save == DATED
    color = args.color or ("white" if names == (ENGINE, YOU) else "black")
    in_place = is_interactive()
    warns = in_place if args.warn is None else args.warn
    try:
        with ended_by_a_signal():
            terminal = Terminal(
                played, COLORS[color], input, print, save, level, is_draft=is_draft, in_place=in_place, warns=warns
            )
            terminal.run()
            if options.level == AUTO and terminal.human is not None and terminal.result is not None:
                _follow(game, options, played.winner(terminal.result), terminal.human)
    finally:
        played.player.close()
    return 0 if terminal.is_kept else NOT_SAVED


# -- yomi selfplay ----------------------------------------------------------------------------------------------------

SELFPLAY_USAGE = "yomi selfplay GAME [options]"
SELFPLAY_EPILOG = """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay shogi --games 100 --net model.onnx --format csa hcpe
  yomi selfplay FILE.py:NAME --games 10    a game of your own (yomi help games)
"""


def _add_selfplay(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, SELFPLAY, "Let the engine play {} against itself and write game records"):
        add_settings(child, SelfplaySettings)
        add_settings(child, game.settings_kind(SELFPLAY))
        shown = {**DEFAULTS, **game.defaults.get(SELFPLAY, {}), "visits": VISITS}
        add_options(child, game, leave_out=("ponder", "stochastic_ponder", "lag", "level"), defaults=shown)


def _run_selfplay(args: argparse.Namespace) -> int:
    from yomi.engine.cli.bars import Bar

    game, settings = GAMES[args.game], settings_of(SelfplaySettings, args)
    limit = visits_without_limit(args, VISITS, game)
    options = collect(args, game, **{**DEFAULTS, **game.defaults.get(SELFPLAY, {}), **limit})
    check_limited(options, game)
    set_up_logs(options)
    series = open_series(game, settings, settings_of(game.settings_kind(SELFPLAY), args), options, say)
    start = time.perf_counter()
    winners, moves = Counter[int](), 0
    try:
        with ended_by_a_signal():
            for number in Bar(range(settings.games), unit="game", file=sys.stderr):
                played = series.play(number)
                winners[played.ended.winner] += 1
                moves += len(played.game.moves)
    finally:  # the summary comes even after Ctrl-C
        series.close()
        seconds, games = time.perf_counter() - start, winners.total()
        echo(
            counted(
                "{n} game in {seconds} s: Black won {black}, White {white}, drawn {drawn}; {moves} moves a game,"
                " {speed} moves/s; records in {folder}",
                "{n} games in {seconds} s: Black won {black}, White {white}, drawn {drawn}; {moves} moves a game,"
                " {speed} moves/s; records in {folder}",
                games,
                seconds=f"{seconds:.1f}",
                black=winners[BLACK],
                white=winners[WHITE],
                drawn=winners[DRAW],
                moves=f"{moves / max(games, 1):.1f}",
                speed=f"{moves / seconds:.1f}",
                folder=settings.out,
            )
        )
    return 0


SELFPLAY_COMMAND = Command(SELFPLAY_USAGE, SELFPLAY_EPILOG, _add_selfplay, _run_selfplay)
