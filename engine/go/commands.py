"""What Go adds to commands for all games: flags, examples of their help, and data sets made by the flags."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_value, check_counts, check_ranges, filled
from yomi.engine.datasets import SHARD_ROWS
from yomi.engine.default_network import check_network, network_path
from yomi.engine.option_row import OptionError

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

    from yomi.engine.game import Game, Say
    from yomi.engine.go.datasets.scores import KomiScorer
    from yomi.nets.data.shards import Dataset

_network = functools.partial(network_path, game="go")

SCORED_ROWS = 256
"""Positions of a shard whose points are found by searches. A run that is killed loses the shard that it was writing,
which should be no more than minutes of searches."""

EXAMPLES = {
    "play": """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play go --size 9 --level 3 --save game.sgf
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE goes on with it.
""",
    "selfplay": """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay go --games 20 --size 9 --playouts 1000 --temperature 0.5 --temperature-moves 8 --seed 1

Unless told otherwise: 200 visits a move, temperature 1 for the first 10 moves, a quarter of noise at the root, and no
resignation. The comment of each move holds winrate and lead for the side that plays it.
""",
    "duel": """\
examples:
  yomi duel go --size 9 --visits 200 --first c_puct=1.3 --second c_puct=1.0 --games 400
  yomi duel go --size 9 --first net=new.bin.gz --second net=old.bin.gz --sprt 0,20 --games 10000

Games are played to the end and scored as the board stands, with the komi of the rules unless told otherwise. --first
and --second take options of networks and of the search, visits, and rollout_weight.
""",
    "tune": """\
example:
  yomi tune go --size 9 --visits 200 --parameter c_puct 0.5:2.0 --parameter fpu_reduction 0:0.5 --games 4000

Games are played as those of yomi duel are.
""",
    "learn": """\
examples:
  yomi learn go --size 5 --hours 2
  yomi learn go --size 7 --visits 200 --out seven
  yomi learn go --size 9 --sizes 7 8 --any-rules --handicap-share 0.05

Games are played to the end under the rules, which are Tromp's and Taylor's unless told otherwise, with a komi around
what games of late have ended with.
""",
    "dataset play": """\
examples:
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 500000 --out data/9
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 100000 --visits 64 --out data/9-searched

What the network says of a position is both where the next move is drawn from and the label; with --visits, searches
label the positions that are kept, and the network alone still plays.
""",
}


def _add_play(group: _ActionsContainer) -> None:
    add_value(group, "--handicap", 0, "N", "handicap stones for Black, 2 to 9")


def _add_teacher(group: _ActionsContainer) -> None:
    add_value(group, "--device", "auto", None, "where the teacher runs: auto, cpu, cuda, tensorrt")
    add_value(group, "--precision", "auto", None, "the teacher's numbers: auto, fp32, int16, int8, bf16")


def _add_make(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    value("--rules", "chinese", None, "rules of records that name none")
    add("--size", type=int, action="append", default=[], metavar="N", help="use boards of this size only")
    value("--positions", 0, "N", "positions of each game, spread evenly over it", "all")
    add(
        "--unique",
        choices=("none", "move", "position"),
        default="move",
        help="leave out positions seen before: none, those with the same move, or all (default: move)",
    )
    add("--handicap", action="store_true", help="use handicap games, too")
    trusted = (
        "results that are believed: all; resigned: those of resigned games; rollouts: those, counts by more than"
        " --narrow points, and what rollouts confirm"
    )
    value("--trust", "all", "WHAT", trusted)
    value("--rollouts", 500, "N", "rollouts for --trust rollouts")
    value("--narrow", 3.0, "P", "points up to which rollouts must confirm a count")
    add("--believed-only", action="store_true", help="leave out games whose result is not believed")
    share = "leave out games that White won until Black has won this share"
    value("--black-wins", 0.0, "S", share, "leave none out")
    add("--teacher", type=_network, metavar="NET", help="label with a KataGo network instead of with results")
    value("--visits", 1, "N", "visits of the teacher's search; 1: the network alone")
    _add_teacher(group)
    add(
        "--score-search",
        metavar="NET",
        help="label points by moving komi until the winrate of a search crosses one half: a network, or `rollouts`",
    )
    add(
        "--score-stages",
        metavar="P:N,...",
        help="steps of komi in points, and playouts, of --score-search (default: 10:2000,4:20000,2:50000)",
    )


def _add_dataset_play(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    add("--teacher", type=_network, required=True, metavar="NET", help="KataGo network that plays and labels")
    add("--size", type=int, required=True, metavar="N", help="board size")
    value("--kept", 0.25, "S", "share of each game's positions")
    value("--visits", 1, "N", "visits of searches that label; 1: none")
    value("--random-moves", 0.03, "S", "share of moves at random")
    value("--test-share", 0.03, "S", "share of shards held out")
    _add_teacher(group)


def _add_learn(group: _ActionsContainer) -> None:
    sizes = "further boards; each has an equal share of the evaluations"
    group.add_argument("--sizes", type=int, nargs="+", default=[], metavar="N", help=sizes)
    add_value(
        group, "--handicap-share", 0.0, "S", "share of the games with a few stones for Black before White's first move"
    )
    rules = "draw superko and suicide of each game"
    group.add_argument("--any-rules", action="store_true", help=rules)


FLAGS = {"play": _add_play, "learn": _add_learn, "dataset make": _add_make, "dataset play": _add_dataset_play}


def make_dataset(game: Game[Any, Any], args: Namespace, say: Say) -> Dataset:
    """See yomi.engine.game.Game."""
    from yomi.engine.datasets.making import GO_SUFFIXES, announce_kernels, find_files, named
    from yomi.engine.go.datasets.dataset import GoDataOptions, make_go_dataset
    from yomi.engine.go.datasets.games import TRUSTS
    from yomi.engine.go.datasets.teacher import NetworkTeacher

    if args.shard_rows is None and args.score_search is not None:
        args.shard_rows = SCORED_ROWS
    check_ranges(args, black_wins=(0.0, 0.9))
    check_counts(args, visits=1, rollouts=1, positions=0)
    if args.trust not in TRUSTS:
        raise OptionError(f"--trust {args.trust}: expected one of {', '.join(TRUSTS)}")
    find_files(args.paths, GO_SUFFIXES)
    announce_kernels(game, say)
    scorer, scored = _make_scorer(args)
    teacher = None
    if args.teacher is not None:
        check_network(args.teacher, "go")
        teacher = NetworkTeacher(args.teacher, args.visits, args.device, args.precision, args.seed)
    has_network = teacher is not None or (scorer is not None and scorer.teacher is not None)
    options = filled(
        GoDataOptions,
        args,
        sizes=tuple(args.size),
        shard_rows=args.shard_rows or SHARD_ROWS,
        teacher=named(args.teacher) if args.teacher is not None else "",
        scores=scored,
        precision=args.precision if has_network else "",
    )
    try:
        return make_go_dataset(args.paths, args.out, options, teacher, say, scorer)
    finally:
        for network in (teacher, scorer.teacher if scorer is not None else None):
            if network is not None:
                network.close()


def _make_scorer(args: Namespace) -> tuple[KomiScorer | None, str]:
    """Return what labels points, and how a manifest tells it."""
    from yomi.engine.datasets.making import named
    from yomi.engine.go.datasets.scores import STAGES, KomiScorer, parse_stages
    from yomi.engine.go.datasets.teacher import NetworkTeacher

    if args.score_search is None:
        if args.score_stages is not None:
            raise OptionError("--score-stages without --score-search: expected both")
        return None, ""
    text = args.score_stages or STAGES
    stages = parse_stages(text)
    if args.score_search == "rollouts":
        return KomiScorer(None, stages, args.seed), f"rollouts {text}"
    path = network_path(args.score_search, "go")
    check_network(path, "go")
    teacher = NetworkTeacher(path, 1, args.device, args.precision, args.seed)
    return KomiScorer(teacher, stages, args.seed), f"{named(path)} {text}"


def play_dataset(game: Game[Any, Any], args: Namespace, say: Say) -> Dataset:
    """See yomi.engine.game.Game."""
    from yomi.engine.datasets.making import announce_kernels, named
    from yomi.engine.go.datasets.played import PlayOptions, play_go_dataset
    from yomi.engine.go.datasets.teacher import NetworkTeacher
    from yomi.native.go.board import MAX_SIZE, MIN_SIZE

    check_ranges(args, size=(MIN_SIZE, MAX_SIZE), kept=(0.001, 1.0), test_share=(0.0, 0.9))
    check_counts(args, visits=1)
    announce_kernels(game, say)
    check_network(args.teacher, "go")
    teacher = NetworkTeacher(args.teacher, args.visits, args.device, args.precision, args.seed)
    options = filled(PlayOptions, args, teacher=named(args.teacher))
    try:
        return play_go_dataset(args.out, options, teacher, say)
    finally:
        teacher.close()
