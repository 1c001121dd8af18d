"""`yomi learn`: a game learned from nothing, or on from where the last command ended."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_old_names, add_value
from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.flags import add_options, collect, suited
from yomi.engine.cli.games import GAMES, add_children, add_flags, add_games, find_encoder
from yomi.engine.cli.make import loading_errors, prepare
from yomi.engine.cli.signals import stopped_by_a_signal
from yomi.engine.learning.settings import LearnSettings, flag_name, make_settings, training_tables
from yomi.engine.machine import usable_cores
from yomi.engine.option_row import OptionError
from yomi.engine.options import TABLE
from yomi.engine.own_network import is_bundled, named_file, network_fault
from yomi.nets.installation import missing_line
from yomi.nets.text import read_toml

if TYPE_CHECKING:
    from yomi.engine.clients.spec import EngineSpec
    from yomi.engine.game import Game, Say
    from yomi.engine.learning.cluster import Asked
    from yomi.engine.learning.loop import Goal, Loop
    from yomi.engine.learning.workers import Workers
    from yomi.engine.options import Options

COMMAND, STATUS = "learn", "status"
USAGE = "yomi learn GAME [options] | status FOLDER"
EPILOG = """\
examples:
  yomi learn go --size 5 --hours 2         from nothing, in the folder learn-go
  yomi learn go --size 5                   go on where it ended, whatever ended it
  yomi learn status learn-go               how it goes; FOLDER/status.html shows more
  yomi learn shogi --hours 24              shogi, in the folder learn-shogi
  yomi learn go --size 9 --anchor "gnugo --mode gtp" --until gnugo 0.5     until it is a match for GNU Go

Learning needs PyTorch; yomi doctor says what installs it. What it does and every setting: docs/LEARNING.md.
"""
EXPLORATION = ("c_puct", "c_puct_log", "fpu_reduction", "root_fpu_reduction", "policy_temperature")
COMPUTED = ("device", "backend", "precision")
BOARD = ("size", "rules", "max_moves", "entering_king", "leaf_mate_depth", *COMPUTED, *EXPLORATION)
"""Options of the engine that this command has."""
PREFIX = "learning_"
"""Of settings among the arguments: some have the names of options."""
LIVE = frozenset(
    (
        "device",
        "backend",
        "precision",
        "anchors",
        *(r.name for r in dataclasses.fields(LearnSettings) if r.metadata["live"]),
    )
)
"""Settings with which a run may go on in another way than it began."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each game, with its flags."""
    children = add_children(parser, COMMAND, "GAME | status", "games, and what became of a run")
    status = children.add_parser(STATUS, help="tell how a run goes", usage="yomi learn status FOLDER")
    status.add_argument("folder", type=Path, metavar="FOLDER", help="of the run")
    for game, child in add_games(parser, COMMAND, "Learn {} from nothing by self-play", children):
        child.add_argument("--out", type=Path, metavar="FOLDER", help="of the run (default: learn-GAME)")
        child.add_argument("--hours", type=float, metavar="H", help="end after so long (default: never)")
        child.add_argument("--networks", type=int, metavar="N", help="end with this network (default: never)")
        text = "processes that play; 0: play and train in turns (default: the cores; on a cluster: as many as fit)"
        processes = child.add_argument("--processes", type=int, metavar="N", help=text)
        add_old_names(child, processes, "--workers", "--actors")
        child.add_argument("--network", type=Path, metavar="FILE", help="TOML with [network], [training], [loss]")
        text = "engine from outside that the ladder has as an anchor, as yomi match has it; may be given again"
        child.add_argument("--anchor", dest="anchors", action="append", default=[], metavar="ENGINE", help=text)
        text = "end when the newest network wins this share of a ladder match's points against an anchor: uniform 0.9"
        child.add_argument("--until", nargs=2, metavar=("ANCHOR", "SHARE"), help=text)
        _add_cluster(child)
        add_flags(child, COMMAND, game)
        add_options(child, game, leave_out=set(TABLE) - set(BOARD), defaults=game.defaults.get(COMMAND, {}))
        group = child.add_argument_group("learning")
        for row in dataclasses.fields(LearnSettings):
            kind: Any = type(row.default)
            default = "none" if row.default == "" else row.default
            text = f"{row.metadata['text']} (default: {default})".replace("%", "%%")
            flag = f"--{flag_name(row).replace('_', '-')}"
            if kind is bool:
                group.add_argument(flag, dest=PREFIX + row.name, action=argparse.BooleanOptionalAction, help=text)
            else:
                metavar = "N" if kind is not str else "NAME" if row.metadata["choices"] else "ENGINE"
                action = group.add_argument(flag, dest=PREFIX + row.name, type=kind, metavar=metavar, help=text)
                if flag_name(row) != row.name:
                    add_old_names(group, action, f"--{row.name}")


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flags of those who let other machines play."""
    group = parser.add_argument_group("cluster")
    text = "play on a cluster of Ray: auto (this machine is one of its nodes), local (one of its own), or HOST:PORT"
    group.add_argument("--cluster", metavar="ADDRESS", help=text)
    cores = add_value(group, "--cores-per-process", 1.0, "N", "cores of each process")
    add_old_names(group, cores, "--actor-cpus")
    gpus = add_value(group, "--gpus-per-process", 0.0, "N", "GPUs of each process, or parts of one")
    add_old_names(group, gpus, "--actor-gpus")
    text = "copy shards, records, networks, journal and state there, too: a folder or what fsspec knows (s3://...)"
    group.add_argument("--mirror", metavar="URL", help=text)
    group.add_argument("--insecure", action="store_true", help="use a cluster that runs the code of all who reach it")


def run(args: argparse.Namespace) -> int:
    """Learn until the goal or a signal, and return the exit status."""
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.engine.learning.errors import LearningError
    from yomi.nets.errors import NetworkError

    if args.game == STATUS:
        return _tell(args.folder)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    game = GAMES[args.game]
    try:
        options = collect(args, game, **game.defaults.get(COMMAND, {}))
        logs.set_up(options)
        return learn(args, options)
    except (OptionError, LearningError, NetworkError, EvaluatorError) as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"{error.filename or 'output'}: {error.strerror or error}") from None


def learn(args: argparse.Namespace, options: Options, say: Say = logs.say, total: Any = None) -> int:
    """Learn until the goal or a signal, and return the exit status.

    Args:
        args: the flags of the command.
        options: the engine's.
        say: receives lines of progress.
        total: makes the loss to minimize (yomi.nets.training.losses.Total); None for the weighted sum.

    Raises:
        OptionError, LearningError, NetworkError, EvaluatorError, OSError, CliError: the run cannot begin or go on.
    """
    from yomi.engine.learning.loop import plain_anchors

    for package in ("torch", "onnx"):
        if importlib.util.find_spec(package) is None:
            raise CliError(missing_line(package, "learning"))
    game = GAMES[args.game]
    given = {row.name: getattr(args, PREFIX + row.name) for row in dataclasses.fields(LearnSettings)}
    settings = make_settings({name: value for name, value in given.items() if value is not None})
    tables = _read_tables(args.network, args.game)
    game = game.learning(args, tables.get("network"))
    engines = _engines(args, settings, game)
    goal = _goal(args, settings, [*plain_anchors(game), *(each.name for each in engines)])
    start = tables.get("network", {}).get("start")
    if isinstance(start, str) and start:  # it is searched as it was tuned
        options = suited(options.with_values({"net": start}), args, game).with_values({"net": options.net})
    with loading_errors():
        prepare(game, options, say, learning=True)
    loop = _make_loop(args, game, options, settings, tables, engines, say, total)

    def stop() -> None:
        say("stopping; the same command goes on")
        loop.stop()

    is_main = threading.current_thread() is threading.main_thread()  # no other one may handle signals
    signals = stopped_by_a_signal(stop) if is_main else contextlib.nullcontext(lambda: 0)
    with signals as stopped, _mirrored(args.mirror, loop.store.folder, say):
        loop.run(goal)
    return 128 + stopped() if stopped() else 0


def _tell(folder: Path) -> int:
    """Print how a run goes, and write its page."""
    from yomi.engine.learning.errors import LearningError
    from yomi.engine.learning.page import status_text, write_page
    from yomi.engine.learning.store import Store

    if not (folder / Store.SETTINGS).exists():
        raise CliError(f"{folder}: no run found, expected a folder of yomi learn")
    try:
        logs.echo(status_text(folder))
        write_page(folder)
    except LearningError as error:
        raise CliError(str(error)) from None
    return 0


def _engines(args: argparse.Namespace, settings: LearnSettings, game: Game[Any, Any]) -> list[EngineSpec]:
    """Return the engines that are anchors of the ladder.

    Raises:
        OptionError: one of them cannot be, or the one that is to play in self-play.
    """
    from yomi.engine.learning.loop import plain_anchors
    from yomi.engine.learning.opponents import anchor_specs, opponent_spec

    if settings.opponent:
        opponent_spec(settings.opponent, game)
    return anchor_specs(args.anchors, game, plain_anchors(game))


def _goal(args: argparse.Namespace, settings: LearnSettings, anchors: Sequence[str]) -> Goal:
    """Return when the run is to end.

    Raises:
        CliError: no match of the ladder could tell.
    """
    from yomi.engine.learning.loop import Goal
    from yomi.engine.learning.ratings import ENOUGH

    if args.until is None:
        return Goal(hours=args.hours, generations=args.networks)
    name, text = args.until
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if name not in anchors or not 0.0 < share <= 1.0:
        raise CliError(f"--until {name} {text}: expected one of {', '.join(anchors)}, and a share such as 0.9")
    if settings.ladder < ENOUGH:
        raise CliError(f"--until with --ladder {settings.ladder}: expected a ladder of {ENOUGH} games or more")
    return Goal(hours=args.hours, generations=args.networks, share=(name, share))


def _make_loop(
    args: argparse.Namespace,
    game: Game[Any, Any],
    options: Options,
    settings: LearnSettings,
    tables: dict[str, Any],
    engines: Sequence[EngineSpec],
    say: Say,
    total: Any,
) -> Loop:
    from yomi.engine.learning.cluster import LOCAL, Cluster, RayWorkers
    from yomi.engine.learning.loop import Loop
    from yomi.engine.learning.store import Store
    from yomi.engine.learning.workers import InTurns, Processes
    from yomi.engine.matches.duel import Matches, play_match
    from yomi.nets.training.generations import Generations
    from yomi.nets.training.losses import weighted

    cluster = _asked_cluster(args)
    folder = args.out or Path(f"learn-{game.name}")
    learnable = game.learnable(options)
    network = tables.get("network") or learnable.network
    asked = {
        "game": game.name,
        **{name: options.get(name) for name in BOARD if TABLE[name].is_for(game.name)},
        "size": game.board_size(options),
        **learnable.asked,
        **dataclasses.asdict(settings),
        "anchors": args.anchors,
        "network": dict(network),
        "tables": {name: table for name, table in tables.items() if name != "network"},
    }
    store = Store(folder, asked, LIVE, learnable.features, learnable.suffix)
    workers: Workers
    count = usable_cores() if args.processes is None else args.processes
    seed = settings.seed * 1_000_003 + store.rows
    matches: Matches = play_match

    def on_loss(number: int, why: str) -> None:
        store.journal.append("lost", part=f"worker {number}", why=why)
        say(f"worker {number} is lost: {why}")

    if cluster is not None:
        workers = actors = RayWorkers(Cluster(cluster), game, settings, seed, on_loss)
        matches, count = actors.match, actors.count
    elif count:
        workers = processes = Processes(count, game, settings, seed, on_loss)
        matches = processes.match
    else:
        workers = InTurns(game, settings, seed)
    shares = count and args.cluster in (None, LOCAL)  # more threads would wait for each other on busy cores
    threads = max(1, usable_cores() - count) if shares else 0

    def make_learner() -> Generations:
        trained = training_tables(settings, network, tables, threads)
        return Generations(folder / "train", trained, settings.window, find_encoder, total or weighted)

    return Loop(
        game,
        options,
        settings,
        store,
        workers,
        make_learner,
        say,
        beside=count > 0,
        engines=engines,
        matches=matches,
        adapt=functools.partial(_adapted, game, {}),
    )


def _adapted(game: Game[Any, Any], found: dict[str, str], options: Options) -> Options:
    """Return options whose precision is the processor's fastest for the networks of the run.

    It is found once, and networks are not compared with fp32: that would take seconds for every new one.
    """
    from yomi.engine.evaluators.load import fastest_precision
    from yomi.engine.evaluators.providers import chooses_cpu

    if options.precision != "auto" or options.net is None or not chooses_cpu(options.device):
        return options
    if "precision" not in found:
        size = game.board_size(options)
        found["precision"] = fastest_precision(game.formats, options.net, size, options.device, options.backend)
    return dataclasses.replace(options, precision=found["precision"])


@contextlib.contextmanager
def _mirrored(url: str | None, folder: Path, say: Say) -> Iterator[None]:
    """Copy what is there to another place, too, as long as the block lasts.

    Raises:
        LearningError: there is no such place.
        CliError: what reaches it is missing.
    """
    if url is None:
        yield
        return
    if importlib.util.find_spec("fsspec") is None:
        raise CliError(missing_line("fsspec", "--mirror"))
    from yomi.engine.learning.mirror import Mirror

    mirror = Mirror(folder, url, say)
    mirror.start()
    with contextlib.closing(mirror):
        yield


def _asked_cluster(args: argparse.Namespace) -> Asked | None:
    """Return what is asked of a cluster; None without one.

    Raises:
        CliError: the flags do not go together, or Ray is missing.
    """
    from yomi.engine.learning.cluster import Asked

    cores, gpus = args.cores_per_process, args.gpus_per_process
    if args.cluster is None:
        if Asked("", None, cores, gpus, args.insecure) != Asked(""):
            raise CliError("--cores-per-process, --gpus-per-process, --insecure: expected --cluster with them")
        return None
    asked = Asked(args.cluster, args.processes, cores, gpus, args.insecure)
    if (asked.actors is not None and asked.actors < 1) or cores < 0 or gpus < 0:
        flags = "--processes, --cores-per-process, --gpus-per-process"
        raise CliError(f"{flags}: expected a process at least, and no negative numbers")
    if not cores + gpus:
        raise CliError("--cores-per-process 0 --gpus-per-process 0: expected something that a process needs")
    if importlib.util.find_spec("ray") is None:
        raise CliError(missing_line("ray", "--cluster"))
    return asked


def _read_tables(path: Path | None, game: str | None = None) -> dict[str, Any]:
    """Return the tables of a file with [network], [training] and [loss].

    Raises:
        CliError: the file cannot be read, or no network has the name of `start`.
    """
    if path is None:
        return {}
    try:
        tables = read_toml(path)
    except OSError as error:
        raise CliError(f"--network {path}: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"--network {path}: {error}") from None
    for name, table in tables.items():
        if name not in ("network", "training", "loss") or not isinstance(table, dict):
            raise CliError(f"--network {path}: table [{name}] found, expected [network], [training] or [loss]")
    network = tables.get("network", {})
    kind, start = network.get("kind"), network.get("start")
    if isinstance(kind, str) and ".py:" in kind:  # a module of one's own lies beside the file
        network["kind"] = str((path.parent / kind).absolute())
    if isinstance(start, str) and start:
        network["start"] = str(_start_file(path, start, game))
    return tables


def _start_file(path: Path, start: str, game: str | None) -> Path:
    """Return the network that a run begins with: a file beside the TOML file, or else a bundled network by its name."""
    beside = (path.parent / start).absolute()
    try:
        if beside.is_file():
            return beside
        fault = network_fault(start, game)
    except OSError as error:  # a name that no file can have
        raise CliError(f"--network {path}: start: {error.strerror or error}") from None
    if fault is not None or not is_bundled(start):
        raise CliError(f"--network {path}: start {start}: {fault or 'no such file beside it'}")
    return Path(named_file(start, game)).absolute()
