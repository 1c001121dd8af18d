"""A run of `yomi learn`: reads its settings, makes its parts and starts it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.clusters.jobs import ClusterSettings
from yomi.engine.default_network import is_bundled, named_file, network_fault
from yomi.engine.learning.settings import LearnSettings, parse_growth, training_tables
from yomi.engine.machine import usable_cores
from yomi.engine.options import TABLE
from yomi.engine.signals import stopped_by_a_signal
from yomi.errors import reraised
from yomi.nets.errors import NetworkError
from yomi.nets.installation import require_package
from yomi.nets.text import read_toml, set_keys
from yomi.nets.user_files import content_of, is_in_file, keep_files
from yomi.settings import OptionError, flag, number, option, rows_of

if TYPE_CHECKING:
    from yomi.engine.clients.spec import EngineSpec
    from yomi.engine.game import Game, Say
    from yomi.engine.learning.journal import Event, Figures
    from yomi.engine.learning.loop import Goal, Loop
    from yomi.engine.learning.store import Store
    from yomi.engine.learning.workers import Workers
    from yomi.engine.options import Options

COMMAND = "learn"
EXPLORATION = ("c_puct", "c_puct_log", "fpu_reduction", "root_fpu_reduction", "policy_temperature")
COMPUTED = ("device", "backend", "precision")
BOARD = ("size", "rules", "max_moves", "entering_king", "leaf_mate_depth", *COMPUTED, *EXPLORATION)
# Settings that may change when a run continues.
LIVE = frozenset((*COMPUTED, "anchors", *(row.name for row in rows_of(LearnSettings).values() if row.live)))


@dataclass(frozen=True, kw_only=True)
class RunSettings(ClusterSettings):
    """Settings of a run that do not influence its networks, and the files of the networks."""

    # a table: the formatter would give each argument a line
    # fmt: off
    out: str | None = option(None, "set the folder of the run", kind="file", word="FOLDER", unset="learn-GAME")
    hours: float | None = number(None, 0, None, "end after H hours", word="H", unset="never")
    networks: int | None = number(None, 0, None, "end after N networks", unset="never")
    processes: int | None = number(
        None, 0, None, "use N processes for games; 0: play and train in turns", unset="all cores",
        names=("processes", "workers", "actors"),
    )
    network: str | None = option(None, "read [network], [training], [loss] from a TOML file", kind="file")
    set: tuple[str, ...] = option(
        (), "change a key of the file or of the default network, such as training.batch=256; repeatable",
        repeats=True, word="TABLE.KEY=VALUE",
    )
    anchors: tuple[str, ...] = option(
        (), "add an engine (as in yomi match) to the ladder as an anchor; repeatable", repeats=True, word="ENGINE",
        names=("anchor", "anchors"),
    )
    until: tuple[str, ...] | None = option(
        None, "end when the newest network wins this share against an anchor: uniform 0.9", word="ANCHOR SHARE"
    )
    tensorboard: bool = flag(False, "also write figures for TensorBoard, in the run's folder tensorboard")
    accept_changed: bool = flag(
        False, "continue although a file of the run's search, targets, network or loss has changed"
    )
    # fmt: on


def learn(
    game: Game[Any, Any],
    run: RunSettings,
    settings: LearnSettings,
    own: object,
    options: Options,
    say: Say,
    *,
    named: Collection[str] = (),
    total: Any = None,
    on_generation: Callable[[Figures], None] = lambda figures: None,
) -> int:
    """Learn until the goal is reached or a signal comes. Return the exit status.

    Args:
        game: Go, shogi or another game.
        run: settings of the run.
        settings: settings of games, rows and training.
        own: the settings of the game for this command.
        options: the engine's options.
        say: receives lines of progress.
        named: names of the options that the user set.
        total: makes the loss to minimize (yomi.nets.training.losses.Total); None for the weighted sum.
        on_generation: see Loop.

    Raises:
        OptionError, LearningError, NetworkError, EvaluatorError, OSError: the run cannot start or continue.
    """
    from yomi.engine.learning.loop import default_anchors

    for package in ("torch", "onnx"):
        require_package(package, "learning")
    if run.tensorboard:
        require_package("tensorboard", "--tensorboard")
    tables = _read_tables(None if run.network is None else Path(run.network), game.name, run.set)
    network = tables.get("network", {})
    game = game.learning(own, network if "kind" in network else None)
    engines = _engines(run, settings, game)
    goal = _goal(run, settings, [*default_anchors(game), *(engine.name for engine in engines)])
    start = network.get("start")
    if isinstance(start, str) and start:  # the search uses the values tuned for this network
        tuned = game.with_network_defaults(options.with_values({"net": start}), named)
        options = tuned.with_values({"net": options.net})
    game.prepare(options, say, learning=True)
    loop = _make_loop(run, game, options, settings, tables, engines, say, total, on_generation)

    def stop() -> None:
        say("stopping; the same command continues")
        loop.stop()

    is_main = threading.current_thread() is threading.main_thread()  # only this thread may handle signals
    signals = stopped_by_a_signal(stop) if is_main else contextlib.nullcontext(lambda: 0)
    with signals as stopped, _tensorboard(run.tensorboard, loop.store):
        loop.run(goal)
    return 128 + stopped() if stopped() else 0


def folder_of_run(run: RunSettings, game: str) -> Path:
    return Path(run.out or f"learn-{game}")


def _engines(run: RunSettings, settings: LearnSettings, game: Game[Any, Any]) -> list[EngineSpec]:
    """Return the engines that are anchors of the ladder. Check the opponent's description, too."""
    from yomi.engine.learning.loop import default_anchors
    from yomi.engine.learning.opponents import anchor_specs, opponent_spec

    if settings.opponent:
        opponent_spec(settings.opponent, game)
    return anchor_specs(run.anchors, game, default_anchors(game))


def _goal(run: RunSettings, settings: LearnSettings, anchors: Sequence[str]) -> Goal:
    from yomi.engine.learning.journal import MIN_GAMES
    from yomi.engine.learning.loop import Goal

    if run.until is None:
        return Goal(hours=run.hours, generations=run.networks)
    if len(run.until) != 2:
        raise OptionError(f"--until {' '.join(run.until)}: expected an anchor and a share, such as uniform 0.9")
    name, text = run.until
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if name not in anchors or not 0.0 < share <= 1.0:
        raise OptionError(f"--until {name} {text}: expected one of {', '.join(anchors)}, and a share such as 0.9")
    if settings.ladder < MIN_GAMES:
        raise OptionError(f"--until with --ladder {settings.ladder}: expected a ladder of {MIN_GAMES} games or more")
    return Goal(hours=run.hours, generations=run.networks, share=(name, share))


def _make_loop(
    run: RunSettings,
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
    from yomi.engine.learning.loop import Loop
    from yomi.engine.learning.processes import cluster_workers, process_workers
    from yomi.engine.learning.store import Store
    from yomi.engine.learning.workers import SelfPlayWorker
    from yomi.engine.matches.duel import Matches, play_match
    from yomi.nets.training.generations import BLOCKS, POOLING, Generations, check_growth
    from yomi.nets.training.losses import weighted

    cluster = run.options(run.processes)
    folder = folder_of_run(run, game.name)
    learnable = game.learnable(options)
    network = tables.get("network", {})
    growth = parse_growth(settings.grow)
    if "kind" not in network:  # keys of the default network
        default = dict(learnable.network)
        if network.get("start"):  # the file describes its network
            default = {"kind": default["kind"]}
        if POOLING in default and isinstance(blocks := network.get(BLOCKS), int):  # may be fewer than the default's
            most = max([blocks, *(each for _, each in growth)])
            default[POOLING] = [index for index in default[POOLING] if index < most]
        network = {**default, **network}
    check_growth(network, growth)
    asked = {
        "game": game.name,
        **{name: options.get(name) for name in BOARD if TABLE[name].is_for(game.name)},
        "size": game.board_size(options),
        **learnable.fixed_settings,
        **dataclasses.asdict(settings),
        "anchors": list(run.anchors),
        "network": dict(network),
        "tables": {name: table for name, table in tables.items() if name != "network"},
    }
    files = _user_files(settings, network, total)
    if not folder.exists():  # a wrong configuration leaves no folder
        Generations(folder, training_tables(settings, network, tables, 0), settings.window, growth=growth).check()
    store = Store(folder, asked, LIVE, learnable.features, learnable.suffix)
    try:
        keep_files(folder, files, accept_changed=run.accept_changed)
    except BaseException:
        store.close()
        raise
    workers: Workers
    count = usable_cores() if run.processes is None else run.processes
    seed = settings.seed * 1_000_003 + store.rows
    matches: Matches = play_match

    def on_loss(number: int, why: str) -> None:
        store.journal.append("lost", part=f"worker {number}", why=why)
        say(f"worker {number} is lost: {why}")

    if cluster is not None:
        workers = actors = cluster_workers(Cluster(cluster), game, settings, seed, on_loss)
        matches, count = actors.match, actors.count
    elif count:
        workers = actors = process_workers(count, game, settings, seed, on_loss)
        matches = actors.match
    else:
        workers = SelfPlayWorker(game, settings, seed)
    shares = count and run.cluster in (None, LOCAL)  # more threads would wait for busy cores
    threads = max(1, usable_cores() - count) if shares else 0

    def make_learner() -> Generations:
        trained = training_tables(settings, network, tables, threads)
        return Generations(folder / "train", trained, settings.window, game.encoder, total or weighted, growth, say)

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
        adapt=functools.partial(_adapted, game, {}, network["kind"] if is_in_file(network["kind"]) else "", say),
        on_generation=on_generation,
    )


def _user_files(settings: LearnSettings, network: Mapping[str, Any], total: Any) -> dict[str, tuple[str, bytes]]:
    """Return (name, content) of the user's files, by use. Raises NetworkError if a file cannot be read."""
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


def _check_own_network(game: Game[Any, Any], own: str, say: Say, options: Options) -> None:
    """Check the outputs of a user's network before the workers start. Report which backend computes it.

    Raises:
        OptionError: the game cannot use the network.
    """
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.engine.evaluators.devices import CPU, device_of
    from yomi.engine.evaluators.network import open_network

    assert options.net is not None
    with reraised((NetworkError, EvaluatorError), OptionError, f"{own}: "):
        evaluator = open_network(game.formats, options.net, game.board_size(options)).load(CPU, keep=False)
    evaluator.close()
    if evaluator.fallback_reason and device_of(options).is_cpu:
        say(f"{own}: {evaluator.backend} computes it, in fp32. yomi's kernels cannot: {evaluator.fallback_reason}")


def _adapted(game: Game[Any, Any], found: dict[str, str], own: str, say: Say, options: Options) -> Options:
    """Return options with the fastest precision of the device for the run's networks.

    `found` caches the result. Networks are not compared with fp32, which would take seconds for every new network: ten
    on a GPU, where each process compares. The first network of the user's own kind `own` is checked; "": there is none.
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
    from yomi.engine.learning.journal import figures_of
    from yomi.nets.training.progress import tensorboard_writer

    with contextlib.closing(tensorboard_writer(store.folder / "tensorboard")) as writer:

        def write(event: Event) -> None:
            for name, value in figures_of(event).items():
                writer.add_scalar(name, value, event["generation"], event["time"])

        store.journal.listeners.append(write)
        yield


def _read_tables(path: Path | None, game: str | None = None, sets: Sequence[str] = ()) -> dict[str, Any]:
    """Return the tables [network], [training] and [loss] of a file. `TABLE.KEY=VALUE` in `sets` replaces values."""
    source = "--set" if path is None else f"--network {path}"
    with reraised((OSError, ValueError), OptionError, f"{source}: "):
        tables = {} if path is None else read_toml(path)
    with reraised(ValueError, OptionError, "--set: "):
        tables = set_keys(tables, sets)
    for name, table in tables.items():
        if name not in ("network", "training", "loss") or not isinstance(table, dict):
            raise OptionError(f"{source}: found table [{name}], expected [network], [training] or [loss]")
    folder = Path() if path is None else path.parent
    network = tables.get("network", {})
    kind, start = network.get("kind"), network.get("start")
    if isinstance(kind, str) and is_in_file(kind):  # the user's module is beside the file
        network["kind"] = str((folder / kind).absolute())
    if isinstance(start, str) and start:
        network["start"] = str(_start_file(folder, source, start, game))
    return tables


def _start_file(folder: Path, source: str, start: str, game: str | None) -> Path:
    """Return the network from which a run starts: a file beside the TOML file, or a bundled network by name."""
    beside = (folder / start).absolute()
    with reraised(OSError, OptionError, f"{source}: start: "):  # perhaps no file can have this name
        if beside.is_file():
            return beside
        fault = network_fault(start, game)
    if fault is not None or not is_bundled(start):
        raise OptionError(f"{source}: start {start}: {fault or 'no such file beside it'}")
    return Path(named_file(start, game)).absolute()
