"""`yomi dataset play go|shogi`: training data from games that a network or an engine plays with itself."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from engine.cli.dataset_report import announce_kernels, check_counts, check_ranges, print_dataset
from engine.cli.errors import CliError
from engine.cli.games import add_games
from engine.cli.logs import say

EPILOGS = {
    "go": """\
examples:
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 500000 --out data/9
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 100000 --visits 64 --out data/9-searched

What the network says of a position is both where the next move is drawn from and the label; with --visits, searches
label the positions that are kept, and the network alone still plays.
""",
    "shogi": """\
examples:
  yomi dataset play shogi --engine fairy-stockfish --nodes 1000 --positions 1000000 --out games/shogi
  yomi dataset play shogi --engine "engine --usi ;; option.USI_Hash=64" --nodes 3000 --openings balanced.sfen \\
      --positions 1000000 --out games/shogi
  yomi dataset make games/shogi --features dlshogi-62-57 --out data/shogi

The engine is a command line of USI; settings follow after ` ;; ` as they do for `yomi match`. Positions, evaluations,
moves and results are written as hcpe. A game begins with an opening, up to a random ply of it, and random moves; a few
later moves are random, too. Positions in which a random move was played are left out, and so are those that have come
up before. The same command goes on with what is there, also with more --positions.
""",
}


def add_play(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each game."""
    children = add_games(parser, "dataset play", "Make training data of {} from games against itself", EPILOGS)
    for child in children.values():
        add = child.add_argument
        add("--positions", type=int, required=True, metavar="N", help="positions of the whole set, at least")
        add("--out", type=Path, required=True, metavar="FOLDER", help="where they are kept")
        add("--shard-rows", type=int, default=16384, metavar="N", help="positions of a shard (default: 16384)")
        add("--seed", type=int, default=1, metavar="N", help="seed of all choices (default: 1)")
    _add_go(children["go"])
    _add_shogi(children["shogi"])


def _add_go(go: argparse.ArgumentParser) -> None:
    add = go.add_argument
    add("--teacher", type=Path, required=True, metavar="NET", help="KataGo network that plays and labels")
    add("--size", type=int, required=True, metavar="N", help="board size")
    add("--kept", type=float, default=0.25, metavar="S", help="share of each game's positions (default: 0.25)")
    add("--visits", type=int, default=1, metavar="N", help="visits of searches that label; 1: none (default: 1)")
    add("--random-moves", type=float, default=0.03, metavar="S", help="share of moves at random (default: 0.03)")
    add("--test-share", type=float, default=0.03, metavar="S", help="share of shards held out (default: 0.03)")
    add("--device", default="auto", help="where the teacher runs: auto, cpu, cuda, tensorrt (default: auto)")
    add("--precision", default="auto", help="the teacher's numbers: auto, fp32, int16 (default: auto)")


def _add_shogi(shogi: argparse.ArgumentParser) -> None:
    cores = os.cpu_count() or 1
    add = shogi.add_argument
    add("--engine", required=True, metavar="COMMAND", help="a USI engine, which plays both sides; see below")
    add("--nodes", type=int, required=True, metavar="N", help="nodes of each move")
    add("--processes", type=int, default=cores, metavar="N", help=f"engines at the same time (default: {cores})")
    add(
        "--openings",
        type=Path,
        metavar="FILE",
        help="records, or lines `startpos moves ...` (default: the usual position)",
    )
    add(
        "--opening-moves",
        type=int,
        default=8,
        metavar="N",
        help="random moves after the opening: 1 to N, 0 for none (default: 8)",
    )
    add("--random-moves", type=float, default=0.02, metavar="S", help="share of later moves at random (default: 0.02)")
    add("--resign-score", type=int, default=3000, metavar="CP", help="centipawns that decide a game (default: 3000)")
    add("--resign-moves", type=int, default=3, metavar="N", help="moves of each side that must say so (default: 3)")
    add("--max-moves", type=int, default=320, metavar="N", help="moves after which a game is drawn (default: 320)")


def play_dataset(args: argparse.Namespace) -> None:
    """Make positions from games against itself, or go on with them."""
    check_ranges(args, random_moves=(0.0, 1.0))
    check_counts(args, positions=1, shard_rows=1, seed=0)
    if args.game == "go":
        _play_go(args)
    else:
        _play_shogi(args)


def _play_go(args: argparse.Namespace) -> None:
    from engine.datasets.sources import named
    from engine.go.datasets.played import PlayOptions, play_go_dataset
    from engine.go.datasets.teacher import NetworkTeacher
    from native.go.board import MAX_SIZE, MIN_SIZE

    check_ranges(args, size=(MIN_SIZE, MAX_SIZE), kept=(0.001, 1.0), test_share=(0.0, 0.9))
    check_counts(args, visits=1)
    announce_kernels("go")
    teacher = NetworkTeacher(args.teacher, args.visits, args.device, args.precision, args.seed)
    options = PlayOptions(
        size=args.size,
        positions=args.positions,
        kept=args.kept,
        visits=args.visits,
        random_moves=args.random_moves,
        test_share=args.test_share,
        shard_rows=args.shard_rows,
        seed=args.seed,
        teacher=named(args.teacher),
        precision=args.precision,
    )
    try:
        print_dataset(play_go_dataset(args.out, options, teacher, say))
    finally:
        teacher.close()


def _play_shogi(args: argparse.Namespace) -> None:
    from engine.clients.limits import SpecError
    from engine.clients.process import EngineError
    from engine.clients.spec import parse_spec
    from engine.datasets.sources import named
    from engine.shogi.datasets.played import ShogiPlayOptions
    from engine.shogi.datasets.played_files import play_shogi_positions
    from engine.shogi.records.files import load_records
    from engine.shogi.records.record import RecordError
    from native.shogi.position import MAX_HISTORY
    from native.warmup import compile_all

    check_counts(args, nodes=1, processes=1, opening_moves=0, resign_score=1, resign_moves=1)
    check_ranges(args, max_moves=(1, MAX_HISTORY // 2))
    try:
        spec = parse_spec(args.engine, "shogi")
        openings = load_records(args.openings) if args.openings else []
        compile_all("shogi", say)
        options = ShogiPlayOptions(
            engine=args.engine,
            nodes=args.nodes,
            openings=named(args.openings) if args.openings else "",
            opening_moves=args.opening_moves,
            random_moves=args.random_moves,
            resign_score=args.resign_score,
            resign_moves=args.resign_moves,
            max_moves=args.max_moves,
            shard_rows=args.shard_rows,
            seed=args.seed,
        )
        total = play_shogi_positions(args.out, options, args.positions, spec, openings, args.processes, say)
    except EngineError as error:
        raise CliError(f"--engine {args.engine}: {error}") from None
    except (SpecError, RecordError) as error:
        raise CliError(str(error)) from None
    print(f"{total} positions in {args.out}")
