"""The command line of the benchmarks: `yomi bench NAME ...`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from yomi.bench.flags import (
    BY_LEVEL,
    EVALUATOR_OPTIONS,
    GPU_OPTIONS,
    PRECISION_OPTIONS,
    RULES,
    SEARCH_OPTIONS,
    all_but,
    board,
    count,
    network,
    positive,
    winrate,
)
from yomi.engine.cli.flags import add_old_names, add_options, collect, known_options
from yomi.engine.cli.games import HELP, game_first, game_in_flags, split_game
from yomi.engine.cli.output import format_table, plot_check, print_facts, say, write_json
from yomi.engine.cli.parser import CliError, Parser
from yomi.engine.options import Options
from yomi.engine.pictures import PlotError
from yomi.engine.players.setup import tuned
from yomi.engine.registry import GAMES, GO, SHOGI
from yomi.errors import reraised
from yomi.nets.files import check_file
from yomi.nets.installation import require_package

if TYPE_CHECKING:
    from yomi.engine.game import BenchmarkPositions, Game

Rows = list[dict[str, Any]]
# Measures with a benchmark's module of yomi.bench, which is imported as late as this.
Measure: TypeAlias = Callable[[Any, argparse.Namespace], Rows]
# Adds a benchmark: name, help and function.
Add: TypeAlias = Callable[[str, str, Measure], argparse.ArgumentParser]
# A result file and the function that writes it.
Output: TypeAlias = tuple[Path, Callable[[Path], None]]

# Modules of benchmarks with another name.
MODULES = {
    **dict.fromkeys(("evaluator", "precision", "nets", "tree"), "parts"),
    **dict.fromkeys(("perft", "mate"), "beside_cshogi"),
}
GPU_JSON = Path("bench-gpu.json")  # result of `bench gpu --all`
PACKAGES = {"nets": ("onnx", "onnxruntime"), "train": ("torch",)}  # that a benchmark needs

EPILOG = """\
examples:
  yomi bench nps --net g170-b6c96.bin.gz --size 9 --json nps.json
  yomi bench nps shogi --net model.onnx --against fairy-stockfish --csv nps.csv --plot nps.png
  yomi bench tree shogi
  yomi bench rollouts --seconds 2
  yomi bench perft --depth 5
  yomi bench mate problems.sfen
  yomi bench choices yomi:visits=200 yomi:visits=200,c_puct=0.8 --judge yomi:visits=2000 --positions selfplay --size 9
"""


def run(words: Sequence[str]) -> int:
    """Run one benchmark. Return 0, or 1 if a part failed."""
    words = [*words[:1], *game_first(words[1:])]
    args = make_parser(words).parse_args(words)
    args.check(args)  # an error must not wait until kernels are compiled
    for path in (getattr(args, name, None) for name in ("json", "csv", "plot", "out")):
        if path is not None:
            check_file(path)
    for game in args.kernels:
        game.compile(say)
    args.note = lambda rows: None
    if args.json is not None:
        args.note = partial(write_json, args.json, args.benchmark, command=["yomi", "bench", *words])
    rows: Rows = args.measure(args)
    print_facts()
    print(format_table(rows))
    if args.further:
        print()
        print(format_table(args.further))
    files: list[Output] = []
    if args.json is not None:
        files.append((args.json, lambda path: args.note(rows)))
    _write([*files, *args.outputs])
    return int(args.has_failed)


def _write(files: Iterable[Output]) -> None:
    """Write all files, even if one cannot be written.

    Raises:
        CliError: names the files that could not be written.
    """
    errors = []
    for path, write in files:
        try:
            write(path)
        except OSError as error:
            errors.append(f"cannot write {path}: {error.strerror}")
        except PlotError as error:
            errors.append(f"--plot {path}: {error}")
    if errors:
        raise CliError("; ".join(errors))


def make_parser(words: Sequence[str]) -> Parser:
    """Return the parser. The words of the command line determine the game, which determines the options."""
    game = _find_game(words)
    first = next(iter(words[1:]), "" if words else HELP[0])  # without words the parser is for completion
    parser = Parser(
        prog="yomi bench",
        description="Measure yomi on this machine: a table on stdout, and with --json everything in a file.",
        epilog=EPILOG,
    )
    commands = parser.add_subparsers(dest="benchmark", metavar="NAME", required=True, title="benchmarks")

    def add(name: str, text: str, measure: Measure) -> argparse.ArgumentParser:
        def measured(args: argparse.Namespace) -> Rows:
            for package in PACKAGES.get(name, ()):
                require_package(package, "this benchmark")
            return measure(importlib.import_module(f"yomi.bench.{MODULES.get(name, name)}"), args)

        child = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        child.add_argument("--json", metavar="FILE", type=Path, help="write machine, command and results to FILE")
        child.set_defaults(measure=measured, kernels=(GO,), further=[], outputs=[], check=_check_devices)
        child.set_defaults(has_failed=False)
        return child

    _add_nps(add, game, first)
    _add_rates(add, game, first)
    _add_tree(add, game, first)
    _add_handoff(add, game, first)
    _add_rollouts(add)
    _add_environments(add)
    _add_nets(add)
    _add_gpu(add)
    _add_perft(add)
    _add_mate(add)
    _add_levels(add, game, first)
    _add_people(add, game)
    _add_choices(add, game)
    _add_precision(add, game, first)
    _add_train(add)
    text = "one number that changes when the search's decisions change"
    signature = add("signature", text, lambda signature, args: signature.run())
    signature.set_defaults(kernels=tuple(GAMES.values()))
    return parser


def _find_game(words: Sequence[str]) -> Game[Any, Any]:
    """Return the game of a command line: the word after the benchmark's name, or the game of --net, or Go.

    Raises:
        CliError: the network of --net cannot be read.
    """
    if len(words) > 1 and words[1] in GAMES:
        return GAMES[words[1]]
    return GAMES.get(game_in_flags(words) or "", GO)


def _add_game(child: argparse.ArgumentParser, game: Game[Any, Any], first: str | None) -> None:
    """Add the argument for the game.

    Args:
        child: parser of the benchmark.
        game: the game of the command line.
        first: the word after the benchmark's name, empty if there is none. None if players may follow: then
            `split_game` finds the game among them.
    """
    name = child.prog.rpartition(" ")[2]
    child.set_defaults(game=game.name, kernels=(game,))
    child.usage = f"yomi bench {name} [GAME] {'PLAYER ... ' if first is None else ''}[options]"
    # Without this condition the value of an unknown option would be taken for the game.
    if first in HELP or (first and not first.startswith("-")):
        text = "go or shogi (default: that of --net, or else go)"
        child.add_argument(
            "game", metavar="GAME", nargs="?", choices=tuple(GAMES), default=argparse.SUPPRESS, help=text
        )


def _add_duration(child: argparse.ArgumentParser, seconds: float, what: str = "seconds each") -> None:
    text = f"{what} ({seconds:g})"
    child.add_argument("--for", dest="duration", metavar="S", type=positive, default=seconds, help=text)


def _check_devices(args: argparse.Namespace) -> None:
    """Check that the devices for the network can be used, if there is a network."""
    if getattr(args, "net", None) is not None:
        from yomi.engine.evaluators.devices import devices_of

        devices_of(collect(args, GAMES[args.game]))


def _searching(args: argparse.Namespace) -> Options:
    """Return the options for a search like a player's, with the network's recommended and calibrated values."""
    game = GAMES[args.game]
    options = game.with_network_defaults(collect(args, game), known_options(args, game))
    return tuned(options, game.name, game.board_size(options))


def _add_nps(add: Add, game: Game[Any, Any], first: str) -> None:
    nps = add("nps", "nodes per second of the search, and of its evaluator alone", _nps)
    _add_game(nps, game, first)
    _add_duration(nps, 1.0, "seconds a position")
    nps.add_argument(
        "--against",
        metavar="ENGINE",
        action="append",
        default=[],
        help="measure another engine as well, given as for yomi match",
    )
    nps.add_argument("--csv", metavar="FILE", type=Path, help="write the rates of all positions and engines")
    nps.add_argument("--plot", metavar="FILE", type=Path, help="draw a box for each engine (PNG, SVG, PDF)")
    add_options(nps, game, leave_out=all_but(SEARCH_OPTIONS))


def _nps(nps: Any, args: argparse.Namespace) -> Rows:
    from yomi.engine.matches.report import plot_boxes

    if args.plot is not None:
        plot_check(args.plot)
    rows: Rows
    rows, rivals = nps.run(_searching(args), args.duration, GAMES[args.game], args.against)
    args.further = nps.ratio_rows(rows, rivals) if rivals else []
    if args.csv is not None:
        args.outputs.append((args.csv, lambda path: nps.write_csv(path, rows, rivals)))
    if args.plot is not None:
        rates = nps.rates_by_engine(rows, rivals)
        boxes = {name: [rate for rate in found if rate is not None] for name, found in rates.items()}
        args.outputs.append((args.plot, lambda path: plot_boxes(boxes, "nodes per second", path)))
    return rows


def _add_rates(add: Add, game: Game[Any, Any], first: str) -> None:
    """Add the benchmarks that measure evaluations per second."""
    side = "evaluations per second of self-play, by games side by side"
    for name, function, text, seconds, what in (
        ("evaluator", "evaluator", "positions per second of the evaluator, by batch size", 1.0, "seconds each"),
        ("selfplay", "run", side, 120.0, "seconds of all measurements"),
    ):

        def measure(module: Any, args: argparse.Namespace, function: str = function) -> Rows:
            return list(getattr(module, function)(_searching(args), args.duration, GAMES[args.game]))

        child = add(name, text, measure)
        _add_game(child, game, first)
        _add_duration(child, seconds, what)
        add_options(child, game, leave_out=all_but(EVALUATOR_OPTIONS))


def _add_tree(add: Add, game: Game[Any, Any], first: str) -> None:
    tree = add("tree", "playouts per second with an evaluator that costs nothing", _tree)
    _add_game(tree, game, first)
    _add_sizes(tree, "Go: board sizes")
    tree.add_argument(
        "--mate-depth", metavar="N", type=int, choices=(0, 1, 3, 5), default=0, help="shogi: mate search at leaves (0)"
    )
    tree.add_argument("--workers", metavar="N", type=count, nargs="+", default=[1, 2], help="search threads (1 2)")
    tree.add_argument("--playouts", metavar="N", type=count, default=100_000, help="nodes of the tree (100000)")


def _add_sizes(child: argparse.ArgumentParser, what: str) -> None:
    child.add_argument("--sizes", metavar="N", type=board, nargs="+", default=[9, 19], help=f"{what} (9 19)")


def _subjects(args: argparse.Namespace, options: Options) -> list[BenchmarkPositions]:
    """Return the benchmark's positions for each of its boards."""
    game = GAMES[args.game]
    boards = {game.board_size(each): each for each in (replace(options, size=size) for size in args.sizes)}
    return [game.benchmark_positions(each) for each in boards.values()]


def _tree(module: Any, args: argparse.Namespace) -> Rows:
    return list(module.tree(_subjects(args, Options(leaf_mate_depth=args.mate_depth)), args.playouts, args.workers))


def _add_handoff(add: Add, game: Game[Any, Any], first: str) -> None:
    handoff = add("handoff", "how busy the search keeps a GPU, with a simulated one", _handoff)
    _add_game(handoff, game, first)
    _add_sizes(handoff, "Go: board sizes")
    handoff.add_argument("--rows", metavar="N", type=count, default=128, help="rows of a batch (128)")
    handoff.add_argument("--milliseconds", metavar="MS", type=positive, default=5.0, help="time of a batch (5)")
    handoff.add_argument("--workers", metavar="N", type=count, default=1, help="search threads (1)")
    handoff.add_argument("--in-flight", metavar="N", type=count, default=2, help="batches in flight by thread (2)")
    handoff.add_argument("--seconds", metavar="S", type=positive, default=3.0, help="search of each position (3)")


def _handoff(handoff: Any, args: argparse.Namespace) -> Rows:
    how = args.rows, args.milliseconds, args.workers, args.in_flight, args.seconds
    return list(handoff.run(_subjects(args, Options()), *how))


def _add_environments(add: Add) -> None:
    environments = add(
        "environments",
        "steps per second of yomi.env in Go, and of pgx",
        lambda environments, args: environments.run(args.seconds, tuple(args.sizes), tuple(args.games)),
    )
    environments.add_argument("--seconds", metavar="S", type=positive, default=3.0, help="seconds each (3)")
    environments.add_argument(
        "--games", metavar="N", type=count, nargs="+", default=[1, 64, 1024], help="games at once"
    )
    _add_sizes(environments, "board sizes")


def _add_rollouts(add: Add) -> None:
    rollouts = add(
        "rollouts",
        "rollouts per second on one core, and against the same algorithm in C",
        lambda rollouts, args: list(rollouts.run(args.seconds, tuple(args.sizes))),
    )
    rollouts.add_argument("--seconds", metavar="S", type=positive, default=1.0, help="seconds each (1)")
    _add_sizes(rollouts, "board sizes")


def _add_nets(add: Add) -> None:
    nets = add(
        "nets",
        "positions per second on random networks for shogi, our kernels and onnxruntime",
        lambda parts, args: parts.nets(args.sizes, args.workers, args.duration),
    )
    nets.add_argument(
        "--sizes", metavar="BxC", type=network, nargs="+", default=[(4, 64), (10, 192)], help="(4x64 10x192)"
    )
    workers = nets.add_argument("--workers", metavar="N", type=count, default=2, help="threads that evaluate (2)")
    add_old_names(nets, workers, "--threads")
    _add_duration(nets, 1.0)


def _add_gpu(add: Add) -> None:
    gpu = add("gpu", "whether a GPU computes what the processor does, and how fast", _gpu)
    _add_duration(gpu, 2.0)
    text = f"every kind of GPU that works here, unless --device names one; write {GPU_JSON} without --json"
    gpu.add_argument("--all", action="store_true", help=text)
    text = "parts that have not begun by then are left out and named (10)"
    gpu.add_argument("--minutes", metavar="N", type=positive, default=10.0, help=text)
    gpu.add_argument(
        "--stress", metavar="S", type=positive, default=60.0, help="seconds in which workers are stopped at random (60)"
    )
    add_options(gpu, GO, leave_out=all_but(GPU_OPTIONS))
    gpu.set_defaults(kernels=tuple(GAMES.values()), game=GO.name, check=_check_gpu)


def _check_gpu(args: argparse.Namespace) -> None:
    from yomi.engine.evaluators.devices import KINDS, install_command

    options = collect(args, GO)
    kind = "cuda" if options.device in ("auto", "cpu") else options.device
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        extra = KINDS[kind].extra
        need = f"this benchmark needs {' and '.join(missing)}, not installed here; the extra {extra} brings it"
        raise CliError(f"{need}: {install_command(kind)}")
    from yomi.bench import gpu

    args.kinds = gpu.list_kinds(options, args.all)
    if args.all and args.json is None:
        args.json = GPU_JSON


def _gpu(gpu: Any, args: argparse.Namespace) -> Rows:
    rows: Rows = gpu.run(collect(args, GO), args.kinds, args.duration, args.stress, args.minutes, args.note)
    args.has_failed = gpu.failed(rows)
    return rows


def _add_perft(add: Add) -> None:
    counting = add("perft", "legal moves of shogi a second on one core, counted to a depth, beside cshogi", _perft)
    counting.add_argument("--depth", metavar="N", type=int, choices=range(1, 10), default=5, help="moves deep (5)")
    counting.add_argument("--sfen", metavar="SFEN", help="position (the start position)")
    counting.set_defaults(kernels=(SHOGI,))


def _perft(module: Any, args: argparse.Namespace) -> Rows:
    from yomi.engine.shogi.placement import STARTPOS, SfenError

    with reraised(SfenError, CliError, "--sfen: "):
        return list(module.count_leaves(args.sfen or STARTPOS, args.depth))


def _add_mate(add: Add) -> None:
    mates = add(
        "mate",
        "milliseconds for a mate problem of shogi, beside cshogi",
        lambda module, args: module.solve(args.files, args.nodes),
    )
    mates.add_argument("files", metavar="FILE", type=Path, nargs="+", help="problems, one SFEN a line")
    mates.add_argument("--nodes", metavar="N", type=count, default=1_000_000, help="positions for a problem (1000000)")
    mates.set_defaults(kernels=(SHOGI,))


def _add_levels(add: Add, game: Game[Any, Any], first: str) -> None:
    levels = add("levels", "Elo of the levels of `yomi play`, from games between neighbours", _levels)
    _add_game(levels, game, first)
    levels.add_argument("--games", metavar="N", type=count, default=100, help="games of each pairing, even (100)")
    levels.add_argument(
        "--levels",
        metavar="N",
        type=int,
        nargs="+",
        default=[2, 3, 4, 5],
        help="play each against the one below (2 3 4 5)",
    )
    levels.add_argument("--out", metavar="FILE", type=Path, help="add the games to this table (none: only print)")
    add_options(levels, game, leave_out=[name for name in BY_LEVEL if name not in ("seconds", "playouts")])


def _levels(levels: Any, args: argparse.Namespace) -> Rows:
    from yomi.engine.levels import COUNT

    for level in args.levels:
        if not 2 <= level <= COUNT:
            raise CliError(f"--levels {level}: expected 2 to {COUNT}")
    if args.games < 2 or args.games % 2:
        raise CliError(f"--games {args.games}: expected an even number of at least 2")
    return list(levels.run(collect(args, GAMES[args.game]), GAMES[args.game], args.levels, args.games, args.out))


def _add_people(add: Add, game: Game[Any, Any]) -> None:
    people = add("people", "how well the levels' model of people predicts the moves of records", _people)
    _add_game(people, game, None)
    text = (
        "a record, or a folder of records: a group of players, such as one rank; before them: go or shogi (default: go)"
    )
    people.add_argument("groups", metavar="GROUP", nargs="+", help=text)
    people.add_argument("--visits", metavar="N", type=count, default=8, help="visits in each position (8)")
    people.add_argument("--every", metavar="N", type=count, default=5, help="moves from one position to the next (5)")
    people.add_argument("--most", metavar="N", type=count, default=2000, help="positions of a group (2000)")
    text = "skip moves of players whose name contains this, such as a program's"
    people.add_argument("--without", metavar="NAME", default="", help=text)
    add_options(people, game, leave_out=BY_LEVEL)


def _people(people: Any, args: argparse.Namespace) -> Rows:
    game = GAMES[args.game]
    groups = [Path(word) for word in split_game(args.groups, args.game)[1]]
    if not groups:
        raise CliError("no GROUP after the game: expected at least one folder of records")
    return list(people.run(collect(args, game), game, groups, args.visits, args.every, args.without, args.most))


def _add_choices(add: Add, game: Game[Any, Any]) -> None:
    choices = add("choices", "how good engines' moves are in positions of games, by a stronger engine", _choices)
    _add_game(choices, game, None)
    text = "as for yomi match; compared with the first; before the players: go or shogi (default: go)"
    choices.add_argument("players", metavar="PLAYER", nargs="+", help=text)
    choices.add_argument("--judge", metavar="PLAYER", required=True, help="whose winrates count")
    choices.add_argument("--positions", metavar="FILE", type=Path, required=True, help="records, or a folder of them")
    choices.add_argument("--from", dest="begin", metavar="N", type=count, default=4, help="moves before the first (4)")
    choices.add_argument("--every", metavar="N", type=count, default=3, help="moves from one to the next (3)")
    choices.add_argument("--most", metavar="N", type=count, default=500, help="positions asked about (500)")
    choices.add_argument(
        "--balance", metavar="W", type=winrate, default=0.1, help="minimum winrate of both sides (0.1)"
    )
    text = "turns of its own before a position that an engine searches first, to keep its tree (0)"
    choices.add_argument("--turns", metavar="N", type=count, default=0, help=text)
    choices.add_argument("--out", metavar="FILE", type=Path, help="file of answers; an existing one is continued")
    add_options(choices, game, leave_out=all_but(RULES))


def _choices(choices: Any, args: argparse.Namespace) -> Rows:
    from yomi.engine.clients.spec import EngineLimits, is_own, parse_spec, with_unique_names

    game = GAMES[args.game]
    with reraised(ValueError, CliError):
        _, words = split_game(args.players, args.game)
        if not words:
            raise CliError("no PLAYER after the game: expected at least one")
        specs = with_unique_names([parse_spec(text, game.name, game.protocol) for text in words])
        judge = parse_spec(args.judge, game.name, game.protocol)
        for spec in (*specs, judge):
            if is_own(spec) and spec.limits == EngineLimits():
                raise CliError(f"player {spec.name}: expected a limit, such as visits=200")
        kind = game.matches()
        rules = kind.rules(collect(args, game), None, 0)
        found = itertools.islice(choices.read_positions(args.positions, kind, rules, args.begin, args.every), args.most)
        return list(choices.run(specs, judge, kind, rules, list(found), args.balance, args.turns, args.out, say))


def _add_precision(add: Add, game: Game[Any, Any], first: str) -> None:
    precision = add("precision", "how far a network in fewer bits is from fp32", _precision)
    _add_game(precision, game, first)
    precision.add_argument("--positions", metavar="N", type=count, default=1000, help="positions compared (1000)")
    add_options(precision, game, leave_out=all_but(PRECISION_OPTIONS))


def _precision(module: Any, args: argparse.Namespace) -> Rows:
    return list(module.precision(collect(args, GAMES[args.game]), GAMES[args.game], args.positions))


def _add_train(add: Add) -> None:
    train = add(
        "train",
        "training steps per second, of the bare network and with its data",
        lambda train, args: train.run(args.config, args.duration),
    )
    train.add_argument("config", metavar="CONFIG", type=Path, help="configuration of a training (TOML)")
    _add_duration(train, 5.0)
    train.set_defaults(kernels=())
