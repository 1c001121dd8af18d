"""`yomi dataset make|play|check|describe|convert|openings`: training data, and openings, from games."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.dataset_play import add_play, play_dataset
from engine.cli.dataset_report import announce_kernels, check_counts, check_ranges, print_dataset
from engine.cli.errors import CliError
from engine.cli.logs import say
from nets.files import naming

if TYPE_CHECKING:
    from engine.go.datasets.scores import KomiScorer
    from nets.data.shards import Dataset

SHARD_ROWS, SCORED_ROWS = 16384, 256
"""Positions of a shard, and of one whose points are found by searches. A run that is killed loses the shard that it was
writing, which should be no more than minutes of searches."""
USAGE = "yomi dataset ACTION ... [options]"
EPILOG = """\
examples:
  yomi dataset make games/ --out data/9 --teacher b6c96.bin.gz        positions labelled by a network
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 500000 --out data/9     a network distilled
  yomi dataset play shogi --engine fairy-stockfish --nodes 1000 --positions 1000000 --out games/shogi
  yomi dataset make games.sgfs.xz --out data/aya --features aya-49    moves of strong players
  yomi dataset make floodgate/ --features dlshogi-62-57 --out data/shogi --rating 3000
  yomi dataset describe data/9
  yomi dataset convert teacher.psv teacher.hcpe
  yomi dataset openings floodgate/ --rating 3800 --out balanced.sfen

A run that was stopped goes on with the same command: what is lost is the shard that was being written.
The format of data sets: nets/data/shards.py.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog="yomi dataset")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")

    _add_make(action("make", "make a data set from game records, or go on with it"))
    add_play(action("play", "make a data set from games that a network or an engine plays with itself"))
    for name, text in (("check", "read a data set and see whether it is whole"), ("describe", "say what is in it")):
        action(name, text).add_argument("folder", type=Path, metavar="FOLDER", help="the data set")
    convert = action("convert", "write positions of shogi from records, hcpe or psv as hcpe or psv")
    convert.add_argument("source", type=Path, metavar="SOURCE", help="records of shogi, .hcpe or .psv")
    convert.add_argument("target", type=Path, metavar="TARGET", help=".hcpe or .psv; must not exist")
    _add_openings(action("openings", "write balanced openings out of games of shogi, for yomi match"))


def _add_make(make: argparse.ArgumentParser) -> None:
    from nets.features import FEATURE_SETS

    add = make.add_argument
    add("paths", type=Path, nargs="+", metavar="PATH", help="records: files, folders, collections of one SGF a line")
    add("--out", type=Path, required=True, metavar="FOLDER", help="the data set")
    add(
        "--features",
        choices=FEATURE_SETS,
        default="katago-v7",
        metavar="SET",
        help=f"what networks see: {', '.join(FEATURE_SETS)} (default: katago-v7)",
    )
    add(
        "--test-share",
        type=float,
        default=0.03,
        metavar="S",
        help="share of games held out for tests (default: 0.03)",
    )
    add("--limit", type=int, default=0, metavar="N", help="positions of the whole set (default: all)")
    rows = f"positions of a shard (default: {SHARD_ROWS}; {SCORED_ROWS} with --score-search)"
    add("--shard-rows", type=int, metavar="N", help=rows)
    add("--min-moves", type=int, default=20, metavar="N", help="leave out games of fewer moves (default: 20)")
    add("--seed", type=int, default=1, metavar="N", help="seed of all choices (default: 1)")
    adders = {"Go": _add_for_go, "shogi": _add_for_shogi}
    make.set_defaults(of_games={name: add(make.add_argument_group(name)) for name, add in adders.items()})


def _add_for_go(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    """Add what only data sets of Go understand, and return it."""
    go = group.add_argument
    return [
        go("--rules", default="chinese", help="rules of records that name none (default: chinese)"),
        go("--size", type=int, action="append", default=[], metavar="N", help="use boards of this size only"),
        go(
            "--positions",
            type=int,
            default=0,
            metavar="N",
            help="positions of each game, spread evenly over it (default: all)",
        ),
        go(
            "--unique",
            choices=("none", "move", "position"),
            default="move",
            help="leave out positions seen before: none, those with the same move, or all (default: move)",
        ),
        go("--handicap", action="store_true", help="use handicap games, too"),
        go(
            "--trust",
            metavar="WHAT",
            default="all",
            help="results that are believed: all; resigned: those of resigned games; rollouts: those, counts by more"
            " than --narrow points, and what rollouts confirm (default: all)",
        ),
        go("--rollouts", type=int, default=500, metavar="N", help="rollouts for --trust rollouts (default: 500)"),
        go(
            "--narrow",
            type=float,
            default=3.0,
            metavar="P",
            help="points up to which rollouts must confirm a count (default: 3)",
        ),
        go("--believed-only", action="store_true", help="leave out games whose result is not believed"),
        go(
            "--black-wins",
            type=float,
            default=0.0,
            metavar="S",
            help="leave out games that White won until Black has won this share (default: leave none out)",
        ),
        go("--teacher", type=Path, metavar="NET", help="label with a KataGo network instead of with results"),
        go(
            "--visits",
            type=int,
            default=1,
            metavar="N",
            help="visits of the teacher's search; 1: the network alone (default: 1)",
        ),
        go("--device", default="auto", help="where the teacher runs: auto, cpu, cuda, tensorrt (default: auto)"),
        go("--precision", default="auto", help="the teacher's numbers: auto, fp32, int16 (default: auto)"),
        go(
            "--score-search",
            metavar="NET",
            help="label points by moving komi until the winrate of a search crosses one half: a network, or `rollouts`",
        ),
        go(
            "--score-stages",
            metavar="P:N,...",
            help="steps of komi in points, and playouts, of --score-search (default: 10:2000,4:20000,2:50000)",
        ),
    ]


def _add_for_shogi(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    """Add what only data sets of shogi understand, and return it."""
    shogi = group.add_argument
    return [
        shogi(
            "--rating",
            type=float,
            default=0.0,
            metavar="R",
            help="leave out games in which a player is rated lower, or not at all (default: none)",
        ),
        shogi(
            "--evaluation",
            type=float,
            default=0.0,
            metavar="CP",
            help="leave out positions with evaluations beyond these centipawns (default: none)",
        ),
        shogi(
            "--score-scale",
            metavar="CP",
            help="centipawns of the sigmoid that turns evaluations into winrates; fit: what suits the results best"
            " (default: dlshogi's 756)",
        ),
        shogi("--keep-duplicates", action="store_true", help="do not merge positions that come up again"),
    ]


def _add_openings(openings: argparse.ArgumentParser) -> None:
    add = openings.add_argument
    add("paths", type=Path, nargs="+", metavar="PATH", help="games with evaluations: files or folders (CSA, hcpe, KIF)")
    add("--out", type=Path, required=True, metavar="FILE", help="for lines `startpos moves ...`; must not exist")
    add(
        "--rating",
        type=float,
        default=0.0,
        metavar="R",
        help="leave out games in which a player is rated lower, or not at all (default: none)",
    )
    add(
        "--evaluation",
        type=float,
        default=170.0,
        metavar="CP",
        help="centipawns that no move of an opening may be evaluated beyond (default: 170)",
    )
    add(
        "--narrow",
        type=float,
        default=100.0,
        metavar="CP",
        help="the same at the two plies of --plies (default: 100)",
    )
    add(
        "--plies",
        type=int,
        nargs=2,
        default=(24, 36),
        metavar=("N", "M"),
        help="no two openings have the same position after N moves, and they end after M (default: 24 36)",
    )
    add("--min-moves", type=int, default=50, metavar="N", help="leave out games of fewer moves (default: 50)")


def run(args: argparse.Namespace) -> int:
    """Run an action."""
    from engine.evaluators.base import EvaluatorError
    from engine.go.rules import RulesError
    from nets.errors import NetworkError

    actions = {
        "make": make_dataset,
        "play": play_dataset,
        "check": check_dataset,
        "describe": describe_dataset,
        "convert": convert_file,
        "openings": write_openings,
    }
    try:
        actions[args.action](args)
    except (NetworkError, EvaluatorError, RulesError) as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"{error.filename or 'output'}: {error.strerror or error}") from None
    return 0


def make_dataset(args: argparse.Namespace) -> None:
    """Make a data set, or go on with one."""
    from nets.features import feature_set

    if args.shard_rows is None:
        args.shard_rows = SCORED_ROWS if args.score_search else SHARD_ROWS
    check_ranges(args, test_share=(0.0, 0.9), black_wins=(0.0, 0.9))
    check_counts(args, shard_rows=1, visits=1, rollouts=1, positions=0, limit=0, seed=0)
    game = feature_set(args.features).game
    _refuse_others(args, game)
    dataset = _make_shogi(args) if game == "shogi" else _make_go(args)
    print_dataset(dataset)


def _refuse_others(args: argparse.Namespace, game: str) -> None:
    """Raise a CliError where an option of the other game was given."""
    for other, actions in args.of_games.items():
        for action in actions:
            if other.lower() != game and getattr(args, action.dest) != action.default:
                name = action.option_strings[0]
                raise CliError(f"{name} is for {other}: expected none of its options with --features {args.features}")


def _make_go(args: argparse.Namespace) -> Dataset:
    from engine.datasets.sources import SGF_SUFFIXES, find_files, named
    from engine.go.datasets.dataset import GoDataOptions, make_go_dataset
    from engine.go.datasets.games import TRUSTS
    from engine.go.datasets.teacher import NetworkTeacher

    if args.trust not in TRUSTS:
        raise CliError(f"--trust {args.trust}: expected one of {', '.join(TRUSTS)}")
    find_files(args.paths, SGF_SUFFIXES)
    announce_kernels("go")
    scorer, scored = _make_scorer(args)
    teacher = None
    if args.teacher is not None:
        teacher = NetworkTeacher(args.teacher, args.visits, args.device, args.precision, args.seed)
    has_network = teacher is not None or (scorer is not None and scorer.teacher is not None)
    options = GoDataOptions(
        features=args.features,
        rules=args.rules,
        positions=args.positions,
        unique=args.unique,
        test_share=args.test_share,
        min_moves=args.min_moves,
        handicap=args.handicap,
        sizes=tuple(args.size),
        trust=args.trust,
        rollouts=args.rollouts,
        narrow=args.narrow,
        believed_only=args.believed_only,
        black_wins=args.black_wins,
        limit=args.limit,
        shard_rows=args.shard_rows,
        seed=args.seed,
        teacher=named(args.teacher) if args.teacher is not None else "",
        visits=args.visits,
        scores=scored,
        precision=args.precision if has_network else "",
    )
    try:
        return make_go_dataset(args.paths, args.out, options, teacher, say, scorer)
    finally:
        for network in (teacher, scorer.teacher if scorer is not None else None):
            if network is not None:
                network.close()


def _make_scorer(args: argparse.Namespace) -> tuple[KomiScorer | None, str]:
    """Return what labels points, and how a manifest tells it."""
    from engine.datasets.sources import named
    from engine.go.datasets.scores import STAGES, KomiScorer, parse_stages
    from engine.go.datasets.teacher import NetworkTeacher

    if args.score_search is None:
        if args.score_stages is not None:
            raise CliError("--score-stages without --score-search: expected both")
        return None, ""
    text = args.score_stages or STAGES
    stages = parse_stages(text)
    if args.score_search == "rollouts":
        return KomiScorer(None, stages, args.seed), f"rollouts {text}"
    path = Path(args.score_search)
    teacher = NetworkTeacher(path, 1, args.device, args.precision, args.seed)
    return KomiScorer(teacher, stages, args.seed), f"{named(path)} {text}"


def _make_shogi(args: argparse.Namespace) -> Dataset:
    from engine.datasets.sources import find_files
    from engine.shogi.datasets.dataset import ShogiDataOptions, make_shogi_dataset
    from engine.shogi.datasets.rows import SHOGI_SUFFIXES

    scale = _score_scale(args.score_scale)
    find_files(args.paths, SHOGI_SUFFIXES)
    announce_kernels("shogi")
    options = ShogiDataOptions(
        features=args.features,
        rating=args.rating,
        evaluation=args.evaluation,
        min_moves=args.min_moves,
        merge=not args.keep_duplicates,
        test_share=args.test_share,
        limit=args.limit,
        shard_rows=args.shard_rows,
        seed=args.seed,
        score_scale=scale,
    )
    return make_shogi_dataset(args.paths, args.out, options, say)


def _score_scale(text: str | None) -> float:
    """Return the centipawns that --score-scale names, 0 for a fit."""
    from engine.shogi.datasets.dataset import MAX_SCALE, MIN_SCALE, SCORE_SCALE

    if text is None:
        return SCORE_SCALE
    if text == "fit":
        return 0.0
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise CliError(f"--score-scale {text}: expected {MIN_SCALE:g} to {MAX_SCALE:g} centipawns, or fit")
    return scale


def check_dataset(args: argparse.Namespace) -> None:
    """Read every shard."""
    from nets.data.shards import check_shard, open_dataset
    from nets.dlshogi.network import ALPHAZERO_DIRECTIONS, AREA, DLSHOGI_DIRECTIONS

    dataset = open_dataset(args.folder)
    features = dataset.manifest.features
    directions = ALPHAZERO_DIRECTIONS if features.joined else DLSHOGI_DIRECTIONS
    for shard in dataset.shards:
        policy_size = shard.size**2 + 1 if features.game == "go" else directions * AREA
        check_shard(shard, features, policy_size)
    print(f"{len(dataset.shards)} shards whole, {dataset.rows('train')} + {dataset.rows('test')} positions")


def describe_dataset(args: argparse.Namespace) -> None:
    """Print what is in a data set."""
    from nets.data.shards import open_dataset

    print_dataset(open_dataset(args.folder))


def convert_file(args: argparse.Namespace) -> None:
    """Convert positions of shogi."""
    from engine.shogi.datasets.rows import ShogiLimits, read_rows, to_hcpe, to_psv

    writers = {".hcpe": to_hcpe, ".psv": to_psv}
    if args.target.suffix not in writers:
        raise CliError(f"{args.target}: expected a name that ends in .hcpe or .psv")
    if args.target.exists():
        raise CliError(f"{args.target}: is there already, expected a new file")
    rows = read_rows(args.source, ShogiLimits(min_moves=0), 0)
    with naming(args.target):
        args.target.write_bytes(writers[args.target.suffix](rows))
    print(f"{len(rows)} positions written to {args.target}")


def write_openings(args: argparse.Namespace) -> None:
    """Write balanced openings."""
    from engine.datasets.sources import find_files
    from engine.shogi.datasets.openings import OPENING_SUFFIXES, BalanceLimits, balanced_openings

    first, last = args.plies
    if not 0 <= first < last:
        raise CliError(f"--plies {first} {last}: expected the second after the first")
    if args.out.exists():
        raise CliError(f"{args.out}: is there already, expected a new file")
    limits = BalanceLimits(args.rating, args.evaluation, args.narrow, (first, last), args.min_moves)
    lines, refused = balanced_openings(find_files(args.paths, OPENING_SUFFIXES), limits)
    for why, count in refused.most_common():
        say(f"{count} games left out: {why}")
    if not lines:
        raise CliError(f"0 of {refused.total()} games left, expected some: see the options that choose games")
    with naming(args.out):
        args.out.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    print(f"{len(lines)} openings written to {args.out}")
