"""`yomi duel`: two settings of the engine play each other, many games side by side."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import (
    add_cluster,
    add_old_names,
    add_settings,
    add_task,
    add_value,
    asked_cluster,
    type_of,
)
from yomi.engine.cli.games import add_games
from yomi.engine.cli.loading import add_options, check, collect, known_options
from yomi.engine.cli.match_settings import bounds
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.clusters.jobs import Run, begin_run, folder_of, named_network
from yomi.engine.default_network import named_file, network_file
from yomi.engine.machine import usable_cores
from yomi.engine.matches.parts import SPRT_AND_TASK, UNIT, check_journal, done_pairs, unit_of
from yomi.engine.matches.results import points_of
from yomi.engine.options import NETWORK, TABLE, SearchOptions, Value, rows_for
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES
from yomi.engine.signals import ended_by_a_signal
from yomi.settings import OptionError, did_you_mean

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from yomi.engine.game import Game
    from yomi.engine.matches.duel import DuelConfig, DuelPlayer
    from yomi.engine.matches.rating import Sprt
    from yomi.engine.options import Options

COMMAND = "duel"
USAGE = "yomi duel GAME [options] [--first OPTION=VALUE,...] [--second OPTION=VALUE,...]"
EPILOG = """\
examples:
  yomi duel go --net b6c96.bin.gz --size 9 --visits 200 --first c_puct=1.3 --second c_puct=1.0 --games 400
  yomi duel shogi --net model.onnx --visits 100 --first fpu_reduction=0.4 --sprt 0,10 --games 10000

Flags hold for both players, --first and --second only for one. A process plays many games at once with equal visits and
without clocks, and their positions share batches. This is by far the fastest way to compare settings of the search or
networks. For other engines and for games with clocks use yomi match.
"""
# Options of the search without effect here: one thread searches each tree, one playout after the other
INERT = frozenset(
    ("cache_size", "memory", "workers", "batches_in_flight", "virtual_loss", "seed", "root_noise", "root_noise_total")
)
# Options in which players may differ, besides those of the search and of networks
OTHERS = ("visits", "rollout_weight", "leaf_mate_depth", "all_legal_moves")
BOARD = ("size", "rules", "komi", "entering_king", "max_moves", "log_file", "log_level")
VISITS, GAMES_WANTED = 200, 400
INTERVAL = 10.0


def player_options(game: str) -> list[str]:
    searched = {name for name in SearchOptions.__dataclass_fields__ if name not in INERT}
    return [row.name for row in rows_for(game) if row.name in searched or row.name in OTHERS or row.group == NETWORK]


def add(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, COMMAND, "Let two settings of the engine play {} against each other"):
        for side in ("first", "second"):
            text = f"set options of the {side} player only"
            child.add_argument(f"--{side}", default="", metavar="OPTION=VALUE,...", help=text)
        add_value(child, "--games", GAMES_WANTED, "N", "play this many games (an even number)", low=2)
        text = "stop when the first is clearly stronger by E1 Elo, or by at most E0"
        child.add_argument("--sprt", type=type_of(bounds), metavar="E0,E1", help=text)
        add_task(child, "pairs of games")
        add_common(child, game, COMMAND)


def add_common(parser: argparse.ArgumentParser, game: Game[Any, Any], command: str) -> None:
    text = f"write the journal there; the same command continues (default: {command})"
    parser.add_argument("--out", type=Path, default=Path(command), metavar="FOLDER", help=text)
    cores = "the number of cores; on a GPU 1"
    add_value(parser, "--processes", None, "N", "use this many processes", cores, low=1)
    at_once = add_value(parser, "--at-once", 32, "N", "play this many games at the same time in each process", low=1)
    add_old_names(parser, at_once, "--side-by-side")
    add_value(parser, "--opening-moves", 8, "N", "draw this many opening moves from short searches; 0: none", low=0)
    parser.add_argument("--openings", type=Path, metavar="FILE", help="read openings from records or a folder")
    add_value(parser, "--temperature", 0.0, "X", "set the temperature after the opening, which falls fast", low=0)
    add_value(parser, "--seed", 1, "N", "set the seed of all random choices", low=0)
    add_cluster(parser)
    add_settings(parser, game.settings_kind(COMMAND))
    known = {*player_options(game.name), *BOARD}
    add_options(parser, game, leave_out=set(TABLE) - known, defaults=_defaults(game))


def _defaults(game: Game[Any, Any]) -> dict[str, Value]:
    return {"visits": VISITS, **game.defaults.get(COMMAND, {})}


def read_changes(text: str, flag: str, game: Game[Any, Any]) -> dict[str, Value]:
    """Read `OPTION=VALUE,...`."""
    known = player_options(game.name)
    changes: dict[str, Value] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        name = key.strip().replace("-", "_")
        if name not in known:
            what = "no option of a duel's player" if name in TABLE else "unknown option"
            raise CliError(f"{flag} {word}: {what}, expected OPTION=VALUE{did_you_mean(name, known)}")
        try:
            changes[name] = TABLE[name].parse(value if equals else "true")
        except OptionError as error:
            raise CliError(f"{flag} {word}: {error}") from None
    return changes


def read_players(
    args: argparse.Namespace, game: Game[Any, Any], first: Mapping[str, Value], second: Mapping[str, Value]
) -> tuple[Options, Options]:
    """Return the options of each player: the command's flags, changed by `first` or `second`."""
    own = {name: value for name, value in vars(args).items() if name != "seed"}
    options = game.fair(collect(argparse.Namespace(**own), game, **_defaults(game)))
    set_up_logs(options)
    known = known_options(args, game)
    players = [
        game.with_network_defaults(options.with_values(changes), {*known, *changes}) for changes in (first, second)
    ]
    for player in players:
        check(player, game)
        if player.visits is None:
            raise CliError("--visits none: expected a number")
    return players[0], players[1]


def make_terms(args: argparse.Namespace, game: Game[Any, Any], players: tuple[Options, Options]) -> DuelConfig:
    from yomi.engine.matches.duel import DuelConfig
    from yomi.engine.matches.schedule import load_openings, shuffled

    game.new_game(players[0])
    openings: list[str] = []
    if args.openings is not None:
        rules = game.matches().rules(players[0], None, players[0].max_moves or 0)
        moves = args.opening_moves or None
        found = load_openings(args.openings, moves, game.matches(), rules, LeftOut(say))
        openings = shuffled(found, args.seed)
    first, second = (player.visits or VISITS for player in players)
    drawn = 0 if openings else args.opening_moves
    return DuelConfig((first, second), args.seed, None, openings, drawn, args.temperature)


def open_referees(
    args: argparse.Namespace, game: Game[Any, Any], players: tuple[Options, Options], terms: DuelConfig, games: int
) -> AbstractContextManager[DuelPlayer]:
    """Return the context that plays the games, at most `games` at once."""
    from yomi.engine.evaluators.devices import device_of
    from yomi.engine.matches.duel import Duel, DuelProcesses

    cluster = asked_cluster(args, args.processes)
    if cluster is not None:
        from yomi.engine.matches.units import ClusterDuel

        return ClusterDuel(cluster, game, players, terms, games, args.at_once, say)
    for player in players:
        game.prepare(player, say, learning=True)
    on_cpu = all(device_of(player).is_cpu for player in players)
    processes = args.processes or (usable_cores() if on_cpu else 1)
    processes = min(processes, games)
    count = min(args.at_once, -(-games // processes))
    if processes == 1:
        return Duel(game, players, terms, count)
    return DuelProcesses(processes, game, players, terms, count)


def run(args: argparse.Namespace) -> int:
    from yomi.engine.matches.rating import Sprt

    game = GAMES[args.game]
    if args.games % 2:
        raise CliError(f"--games {args.games}: expected an even number, as each opening is played with both colors")
    try:
        test = None if args.sprt is None else Sprt(*args.sprt)
        if test is not None and args.task is not None:
            raise CliError(SPRT_AND_TASK)
        first, second = (read_changes(getattr(args, side), f"--{side}", game) for side in ("first", "second"))
        players = read_players(args, game, first, second)
        if players[0] == players[1]:
            raise CliError("both players are equal: expected --first or --second, such as --second visits=100")
        with ended_by_a_signal():
            _play(args, game, players, test)
    except ValueError as error:
        raise CliError(str(error)) from None
    return 0


def _play(args: argparse.Namespace, game: Game[Any, Any], players: tuple[Options, Options], test: Sprt | None) -> None:
    from yomi.engine.matches.duel import DuelTask, MatchState
    from yomi.engine.matches.results import MatchJournal

    asked_cluster(args, args.processes)  # before anything is written
    terms = make_terms(args, game, players)
    names = _names(args)
    description, folder = describe(game, players, terms, names), folder_of(args.out, args.task)
    with MatchJournal(folder, description) as journal:
        run = begin_duel(COMMAND, args, game, players, description)
        if journal.results:
            check_journal(folder, run, GAMES)
        begin_run(folder, run, len(done_pairs(journal.results, run.settings, run.units)), is_new=not journal.results)
        standing = MatchState(test)
        for number, points in points_of(journal.results).items():
            standing.note(number, points)
        numbers = [number for number in range(args.games) if args.task is None or args.task.has(unit_of(number))]
        left = [DuelTask(number) for number in numbers if number not in standing.points]
        if journal.results:
            say(f"{len(journal.results)} games are in {journal.path}; the match continues")
        begin, played, reported, has_ended = time.monotonic(), 0, 0.0, threading.Event()

        def wait() -> None:
            while not has_ended.wait(INTERVAL):  # until the first game ends
                say(f"{len(standing.points)}/{len(numbers)} games, {time.monotonic() - begin:.0f} s")

        if left and not standing.is_decided:
            with open_referees(args, game, players, terms, len(left)) as referees, contextlib.ExitStack() as stack:
                say(f"{len(left)} games begin")
                stack.callback(has_ended.set)
                threading.Thread(target=wait, daemon=True).start()
                for finished in referees.play(left):
                    has_ended.set()
                    journal.add(replace(finished.result(names), finished=time.strftime("%Y-%m-%dT%H:%M:%S")))
                    standing.note(finished.number, finished.points)
                    played += 1
                    if time.monotonic() - reported >= INTERVAL:
                        reported = time.monotonic()
                        say(f"{len(standing.points)}/{len(numbers)} games, {standing.line()}")
                    if standing.is_decided:
                        break
        spent = time.monotonic() - begin
        different = len({result.key for result in journal.results})
        plies = sum(result.plies for result in journal.results) / max(1, len(journal.results))
    echo(f"{names[0]} against {names[1]}: {standing.line()}")
    speed = f"; {played} of them in {spent:.0f} s, {played / spent:.2f} a second" if played else ""
    echo(f"{len(journal.results)} games, {different} of them different, {plies:.0f} moves each{speed}")


def _names(args: argparse.Namespace) -> tuple[str, str]:
    return args.first or "the flags", args.second or "the flags"


def describe(
    game: Game[Any, Any], players: tuple[Options, Options], terms: DuelConfig, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the settings that identify a match when it continues."""
    known = (*player_options(game.name), *BOARD[:-2])
    options = [{name: player.get(name) for name in known if TABLE[name].is_for(game.name)} for player in players]
    board = game.board_size(players[0])
    fields = dataclasses.asdict(terms)
    return {"game": game.name, "board": board, "players": list(names), "options": options, "terms": fields}


def begin_duel(
    command: str,
    args: argparse.Namespace,
    game: Game[Any, Any],
    players: tuple[Options, Options],
    description: Mapping[str, Any],
) -> Run:
    """Return the description of a run that starts now. Networks count by their content, not by their place."""
    networks: dict[str, str] = {}
    options = []
    for side, player, values in zip(("first", "second"), players, description["options"], strict=True):
        files = {"net": network_file(player, game.name)}
        files["value_net"] = None if player.value_net is None else named_file(player.value_net, game.name)
        networks |= {f"{side} {name}": named_network(file) for name, file in files.items() if file is not None}
        options.append({name: value for name, value in values.items() if name not in files})
    settings = {**description, "options": options, "games": args.games}
    return Run(command, args.command_words, args.task, args.games // 2, UNIT, settings, networks)
