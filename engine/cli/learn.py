"""`yomi learn`: learn a game from nothing, or continue an earlier run."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_old_names, add_sets, add_setting
from yomi.engine.cli.cluster_flags import add_cluster, asked_cluster
from yomi.engine.cli.games import add_children, add_flags, add_games
from yomi.engine.cli.loading import add_options, apply_network_defaults, collect
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError, require_package
from yomi.engine.cli.signals import stopped_by_a_signal
from yomi.engine.default_network import is_bundled, named_file, network_fault
from yomi.engine.learning.settings import LearnSettings, learn_settings, parse_growth, training_tables
from yomi.engine.machine import usable_cores
from yomi.engine.options import TABLE
from yomi.engine.registry import GAMES, find_encoder
from yomi.nets.errors import NetworkError
from yomi.nets.text import read_toml, set_keys
from yomi.nets.user_files import ACCEPT, content_of, is_in_file, keep_files
from yomi.settings import rows_of

if TYPE_CHECKING:
    from yomi.engine.clients.spec import EngineSpec
    from yomi.engine.game import Game, Say
    from yomi.engine.learning.journal import Figures
    from yomi.engine.learning.loop import Goal, Loop
    from yomi.engine.learning.store import Store
    from yomi.engine.learning.workers import Workers
    from yomi.engine.options import Options

COMMAND, STATUS = "learn", "status"
RUNS_PAGE = "learn-runs.html"
USAGE = "yomi learn GAME [options] | status FOLDER ..."
EPILOG = """\
examples:
  yomi learn go --size 5 --hours 2         from nothing, in the folder learn-go
  yomi learn go --size 5                   continue the run
  yomi learn status learn-go               show the status; FOLDER/status.html shows more
  yomi learn status learn-go other-run     compare runs; learn-runs.html lays their graphs over each other
  yomi learn shogi --hours 24              shogi, in the folder learn-shogi
  yomi learn go --size 9 --anchor "gnugo --mode gtp" --until gnugo 0.5     until it wins half its points

Learning needs PyTorch; yomi doctor shows how to install it. docs/LEARNING.md explains every setting.
"""
EXPLORATION = ("c_puct", "c_puct_log", "fpu_reduction", "root_fpu_reduction", "policy_temperature")
COMPUTED = ("device", "backend", "precision")
BOARD = ("size", "rules", "max_moves", "entering_king", "leaf_mate_depth", *COMPUTED, *EXPLORATION)
# Prefix of settings among the arguments, since some have the names of options.
PREFIX = "learning_"
SETTINGS = rows_of(LearnSettings)
# Settings that may change when a run continues.
LIVE = frozenset((*COMPUTED, "anchors", *(row.name for row in SETTINGS.values() if row.live)))


def add(parser: argparse.ArgumentParser) -> None:
    children = add_children(parser, COMMAND, "GAME | status", "games, and the status of a run")
    usage = "yomi learn status FOLDER [FOLDER ...] [--page FILE]"
    status = children.add_parser(STATUS, help="show the status of a run, or compare runs", usage=usage)
    status.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of a run")
    text = f"write the page of several runs to FILE (default: {RUNS_PAGE})"
    status.add_argument("--page", type=Path, metavar="FILE", help=text)
    for game, child in add_games(parser, COMMAND, "Learn {} from nothing by self-play", children):
        child.add_argument("--out", type=Path, metavar="FOLDER", help="set the folder of the run (default: learn-GAME)")
        child.add_argument("--hours", type=float, metavar="H", help="end after H hours (default: never)")
        child.add_argument("--networks", type=int, metavar="N", help="end after N networks (default: never)")
        text = "use N processes for games; 0: play and train in turns (default: all cores)"
        processes = child.add_argument("--processes", type=int, metavar="N", help=text)
        add_old_names(child, processes, "--workers", "--actors")
        text = "read [network], [training], [loss] from a TOML file"
        child.add_argument("--network", type=Path, metavar="FILE", help=text)
        add_sets(child, "file or of the default network")
        text = "add an engine (as in yomi match) to the ladder as an anchor; repeatable"
        child.add_argument("--anchor", dest="anchors", action="append", default=[], metavar="ENGINE", help=text)
        text = "end when the newest network wins this share against an anchor: uniform 0.9"
        child.add_argument("--until", nargs=2, metavar=("ANCHOR", "SHARE"), help=text)
        text = "also write figures for TensorBoard, in the run's folder tensorboard"
        child.add_argument("--tensorboard", action="store_true", help=text)
        text = "continue although a file of the run's search, targets, network or loss has changed"
        child.add_argument(ACCEPT, action="store_true", help=text)
        add_cluster(child)
        add_flags(child, COMMAND, game)
        add_options(child, game, leave_out=set(TABLE) - set(BOARD), defaults=game.defaults.get(COMMAND, {}))
        group = child.add_argument_group("learning")
        for row in SETTINGS.values():
            add_setting(group, row, row.default, prefix=PREFIX, absent=None)


def run(args: argparse.Namespace) -> int:
    if args.game == STATUS:
        return _show_status(args.folders, args.page)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    game = GAMES[args.game]
    options = collect(args, game, **game.defaults.get(COMMAND, {}))
    set_up_logs(options)
    return learn(args, options)


def learn(
    args: argparse.Namespace,
    options: Options,
    say: Say = say,
    total: Any = None,
    on_generation: Callable[[Figures], None] = lambda figures: None,
) -> int:
    """Learn until the goal or a signal, and return the exit status.

    Args:
        args: the flags of the command.
        options: the engine's.
        say: receives lines of progress.
        total: makes the loss to minimize (yomi.nets.training.losses.Total); None for the weighted sum.
        on_generation: see Loop.

    Raises:
        OptionError, LearningError, NetworkError, EvaluatorError, OSError, CliError: the run cannot start or continue.
    """
    from yomi.engine.learning.loop import default_anchors

    for package in ("torch", "onnx"):
        require_package(package, "learning")
    if args.tensorboard:
        require_package("tensorboard", "--tensorboard")
    game = GAMES[args.game]
    given = {name: getattr(args, PREFIX + name) for name in SETTINGS}
    settings = learn_settings({name: value for name, value in given.items() if value is not None})
    tables = _read_tables(args.network, args.game, args.set)
    network = tables.get("network", {})
    game = game.learning(args, network if "kind" in network else None)
    engines = _engines(args, settings, game)
    goal = _goal(args, settings, [*default_anchors(game), *(engine.name for engine in engines)])
    start = network.get("start")
    if isinstance(start, str) and start:  # the search uses the values tuned for this network
        options = apply_network_defaults(options.with_values({"net": start}), args, game).with_values(
            {"net": options.net}
        )
    game.prepare(options, say, learning=True)
    loop = _make_loop(args, game, options, settings, tables, engines, say, total, on_generation)

    def stop() -> None:
        say("stopping; the same command continues")
        loop.stop()

    is_main = threading.current_thread() is threading.main_thread()  # only this thread may handle signals
    signals = stopped_by_a_signal(stop) if is_main else contextlib.nullcontext(lambda: 0)
    with signals as stopped, _tensorboard(args.tensorboard, loop.store):
        loop.run(goal)
    return 128 + stopped() if stopped() else 0


def _show_status(folders: Sequence[Path], page: Path | None) -> int:
    from yomi.engine.learning.page import comparison_text, short_names, status_text, write_comparison, write_page
    from yomi.engine.learning.store import Store

    for folder in folders:
        if not (folder / Store.SETTINGS).exists():
            raise CliError(f"{folder}: found no run, expected a folder of yomi learn")
    for folder in folders:
        echo(status_text(folder) if len(folders) == 1 else f"{folder}\n{status_text(folder)}")
        write_page(folder)
    if len(folders) > 1:
        echo(comparison_text(folders, short_names(folders)))
    if len(folders) > 1 or page is not None:
        page = page or Path(RUNS_PAGE)
        write_comparison(folders, page)
        echo(f"{page} shows the runs together")
    return 0


def _engines(args: argparse.Namespace, settings: LearnSettings, game: Game[Any, Any]) -> list[EngineSpec]:
    """Return the engines that are anchors of the ladder, and check the opponent."""
    from yomi.engine.learning.loop import default_anchors
    from yomi.engine.learning.opponents import anchor_specs, opponent_spec

    if settings.opponent:
        opponent_spec(settings.opponent, game)
    return anchor_specs(args.anchors, game, default_anchors(game))


def _goal(args: argparse.Namespace, settings: LearnSettings, anchors: Sequence[str]) -> Goal:
    from yomi.engine.learning.journal import MIN_GAMES
    from yomi.engine.learning.loop import Goal

    if args.until is None:
        return Goal(hours=args.hours, generations=args.networks)
    name, text = args.until
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if name not in anchors or not 0.0 < share <= 1.0:
        raise CliError(f"--until {name} {text}: expected one of {', '.join(anchors)}, and a share such as 0.9")
    if settings.ladder < MIN_GAMES:
        raise CliError(f"--until with --ladder {settings.ladder}: expected a ladder of {MIN_GAMES} games or more")
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
    on_generation: Callable[[Figures], None],
) -> Loop:
    from yomi.engine.clusters.actors import LOCAL, Cluster
    from yomi.engine.learning.cluster import RayWorkers
    from yomi.engine.learning.loop import Loop
    from yomi.engine.learning.processes import ProcessWorkers
    from yomi.engine.learning.store import Store
    from yomi.engine.learning.workers import SelfPlayWorker
    from yomi.engine.matches.duel import Matches, play_match
    from yomi.nets.training.generations import Generations, check_growth
    from yomi.nets.training.losses import weighted

    cluster = asked_cluster(args, args.processes)
    folder = args.out or Path(f"learn-{game.name}")
    learnable = game.learnable(options)
    network = tables.get("network", {})
    if "kind" not in network:  # keys of the default network
        network = {**learnable.network, **network}
    growth = parse_growth(settings.grow)
    check_growth(network, growth)
    asked = {
        "game": game.name,
        **{name: options.get(name) for name in BOARD if TABLE[name].is_for(game.name)},
        "size": game.board_size(options),
        **learnable.fixed_settings,
        **dataclasses.asdict(settings),
        "anchors": args.anchors,
        "network": dict(network),
        "tables": {name: table for name, table in tables.items() if name != "network"},
    }
    files = _user_files(settings, network, total)
    if not folder.exists():  # a wrong configuration leaves no folder
        Generations(folder, training_tables(settings, network, tables, 0), settings.window).check()
    store = Store(folder, asked, LIVE, learnable.features, learnable.suffix)
    try:
        keep_files(folder, files, accept_changed=args.accept_changed)
    except BaseException:
        store.close()
        raise
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
        workers = processes = ProcessWorkers(count, game, settings, seed, on_loss)
        matches = processes.match
    else:
        workers = SelfPlayWorker(game, settings, seed)
    shares = count and args.cluster in (None, LOCAL)  # more threads would wait for busy cores
    threads = max(1, usable_cores() - count) if shares else 0

    def make_learner() -> Generations:
        trained = training_tables(settings, network, tables, threads)
        return Generations(folder / "train", trained, settings.window, find_encoder, total or weighted, growth, say)

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
        adapt=functools.partial(_adapted, game, {}, _own_network(network), say),
        on_generation=on_generation,
    )


def _user_files(settings: LearnSettings, network: Mapping[str, Any], total: Any) -> dict[str, tuple[str, bytes]]:
    """Return name and content of the user's files, by use. Raises NetworkError if one cannot be read."""
    named = {"search": settings.search, "targets": settings.targets, "network": network["kind"]}
    paths = {use: name.rpartition(":")[0] for use, name in named.items() if is_in_file(name)}
    if network.get("start"):
        paths["start"] = network["start"]
    files = {use: content_of(Path(path)) for use, path in paths.items()}
    if total is not None:
        name = getattr(total, "__name__", type(total).__name__)
        try:
            source = inspect.getsource(total)
        except (OSError, TypeError):  # typed in by hand, or an object that can be called
            source = name
        files["loss"] = f"{name}.py", source.encode()
    return files


def _own_network(network: Mapping[str, Any]) -> str:
    """Return the kind of a network of the user's own, or an empty text."""
    kind: str = network["kind"]
    return kind if is_in_file(kind) else ""


def _check_own_network(game: Game[Any, Any], own: str, say: Say, options: Options) -> None:
    """Check the outputs of a user's network before the workers start, and report who computes it.

    Raises:
        CliError: the game cannot use the network.
    """
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.engine.evaluators.devices import CPU, device_of
    from yomi.engine.evaluators.network import open_network

    assert options.net is not None
    try:
        evaluator = open_network(game.formats, options.net, game.board_size(options)).load(CPU, keep=False)
    except (NetworkError, EvaluatorError) as error:
        raise CliError(f"{own}: {error}") from None
    evaluator.close()
    if evaluator.fallback_reason and device_of(options).is_cpu:
        say(f"{own}: {evaluator.backend} computes it, in fp32. yomi's kernels cannot: {evaluator.fallback_reason}")


def _adapted(game: Game[Any, Any], found: dict[str, str], own: str, say: Say, options: Options) -> Options:
    """Return options with the device's fastest precision for the networks of the run.

    `found` caches the result. Networks are not compared with fp32, which would take seconds for every new network: ten
    on a GPU, where each process compares. The first network of kind `own` is checked.
    """
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.engine.evaluators.devices import device_of
    from yomi.engine.evaluators.network import open_network

    device = device_of(options)
    if own and options.net is not None and "own" not in found:
        found["own"] = own
        _check_own_network(game, own, say, options)
    if options.precision != "auto" or options.net is None:
        return options
    if "precision" not in found:
        if device.is_cpu:
            network = open_network(game.formats, options.net, game.board_size(options))
            with contextlib.closing(network.load(device, options.backend, precision="auto", keep=False)) as evaluator:
                found["precision"] = "auto" if evaluator.is_exact else evaluator.precision
        else:
            try:
                found["precision"] = "fp16" if device.gpu.has_half else "fp32"
            except EvaluatorError:  # only the other machines of a cluster have a GPU: each chooses for itself
                found["precision"] = "auto"
    return dataclasses.replace(options, precision=found["precision"])


@contextlib.contextmanager
def _tensorboard(wanted: bool, store: Store) -> Iterator[None]:
    if not wanted:
        yield
        return
    from yomi.engine.learning.journal import TensorBoard
    from yomi.nets.training.progress import tensorboard_writer

    with contextlib.closing(TensorBoard(tensorboard_writer(store.folder / "tensorboard"))) as board:
        store.journal.listeners.append(board.add)
        yield


def _read_tables(path: Path | None, game: str | None = None, sets: Sequence[str] = ()) -> dict[str, Any]:
    """Return the tables [network], [training] and [loss] of a file, with `TABLE.KEY=VALUE` of `sets` put over them."""
    source = "--set" if path is None else f"--network {path}"
    try:
        tables = {} if path is None else read_toml(path)
    except OSError as error:
        raise CliError(f"{source}: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"{source}: {error}") from None
    try:
        tables = set_keys(tables, sets)
    except ValueError as error:
        raise CliError(f"--set: {error}") from None
    for name, table in tables.items():
        if name not in ("network", "training", "loss") or not isinstance(table, dict):
            raise CliError(f"{source}: found table [{name}], expected [network], [training] or [loss]")
    folder = Path() if path is None else path.parent
    network = tables.get("network", {})
    kind, start = network.get("kind"), network.get("start")
    if isinstance(kind, str) and is_in_file(kind):  # the user's module is beside the file
        network["kind"] = str((folder / kind).absolute())
    if isinstance(start, str) and start:
        network["start"] = str(_start_file(folder, source, start, game))
    return tables


def _start_file(folder: Path, source: str, start: str, game: str | None) -> Path:
    """Return the network that a run starts from: a file beside the TOML file, or a bundled network by its name."""
    beside = (folder / start).absolute()
    try:
        if beside.is_file():
            return beside
        fault = network_fault(start, game)
    except OSError as error:  # no file can have this name
        raise CliError(f"{source}: start: {error.strerror or error}") from None
    if fault is not None or not is_bundled(start):
        raise CliError(f"{source}: start {start}: {fault or 'no such file beside it'}")
    return Path(named_file(start, game)).absolute()
