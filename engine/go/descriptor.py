"""Descriptor of Go."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_task, add_value, check_counts, check_ranges, filled
from yomi.engine.datasets import SHARD_ROWS
from yomi.engine.default_network import check_network, network_path
from yomi.engine.game import Game, lazy
from yomi.engine.options import ANALYSIS_DEFAULTS
from yomi.engine.records import Score
from yomi.settings import OptionError

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer
    from collections.abc import Mapping

    from yomi.engine.game import Say
    from yomi.engine.go.datasets.teacher import KomiScorer
    from yomi.engine.go.learning import LearnableGo
    from yomi.engine.options import Options, Value
    from yomi.nets.data.shards import Dataset


_network = functools.partial(network_path, game="go")

# Rows of a shard if searches label the points. A killed run loses its unfinished shard, so a shard should be minutes of
# work.
SCORED_ROWS = 256

EXAMPLES = {
    "play": """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play go --size 9 --level 3 --save game.sgf
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE continues it.
""",
    "selfplay": """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay go --games 20 --size 9 --playouts 1000 --temperature 0.5 --temperature-moves 8 --seed 1

Defaults: 200 visits a move, temperature 1 for the first 10 moves, a quarter of noise at the root, no resignation. The
comment of each move contains winrate and lead for the side that plays it.
""",
    "duel": """\
examples:
  yomi duel go --size 9 --visits 200 --first c_puct=1.3 --second c_puct=1.0 --games 400
  yomi duel go --size 9 --first net=new.bin.gz --second net=old.bin.gz --sprt 0,20 --games 10000

Games are played to the end and scored as the board stands. The default komi is that of the rules. --first and --second
take options of networks and search, visits, and rollout_weight.
""",
    "tune": """\
example:
  yomi tune go --size 9 --visits 200 --parameter c_puct 0.5:2.0 --parameter fpu_reduction 0:0.5 --games 4000

Games are played as by yomi duel.
""",
    "learn": """\
examples:
  yomi learn go --size 5 --hours 2
  yomi learn go --size 7 --visits 200 --out seven
  yomi learn go --size 9 --sizes 7 8 --any-rules --handicap-share 0.05

Games are played to the end. The default rules are Tromp-Taylor's. The komi varies around the mean score of recent
games.
""",
    "dataset play": """\
examples:
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 500000 --out data/9
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 100000 --visits 64 --out data/9-searched

The network's policy plays, and its outputs label the positions. With --visits, searches label the kept positions; the
network alone still plays.
""",
}


def _add_play(group: _ActionsContainer) -> None:
    add_value(group, "--handicap", 0, "N", "give Black N handicap stones, 2 to 9")


def _add_teacher(group: _ActionsContainer) -> None:
    add_value(group, "--device", "auto", None, "run the teacher on auto, cpu, cuda, tensorrt or another device")
    add_value(group, "--precision", "auto", None, "run the teacher in auto, fp32, int16, int8 or bf16")


def _add_make(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    value("--rules", "guess", None, "use these rules for records that name none; guess: as in reviews")
    add("--size", type=int, action="append", default=[], metavar="N", help="use only boards of this size")
    value("--positions", 0, "N", "take N positions of each game, spread evenly", "all")
    add(
        "--unique",
        choices=("none", "move", "position"),
        default="move",
        help="drop repeated positions: none, with the same move, or all (default: move)",
    )
    add("--handicap", action="store_true", help="also use handicap games")
    value("--trust", "all", "WHAT", "trust results: all, resigned, or rollouts (also clear or confirmed counts)")
    value("--rollouts", 500, "N", "play N rollouts for --trust rollouts")
    value("--narrow", 3.0, "P", "confirm counts by up to P points with rollouts")
    add("--believed-only", action="store_true", help="leave out games without a trusted result")
    value("--black-wins", 0.0, "S", "leave out White's wins until Black has won this share", "leave none out")
    add("--teacher", type=_network, metavar="NET", help="label with a KataGo network instead of results")
    value("--visits", 1, "N", "label with searches of N visits; 1: the network alone")
    _add_teacher(group)
    add(
        "--score-search", metavar="NET", help="label points by searches for the fair komi, with a network or `rollouts`"
    )
    add("--score-stages", metavar="P:N,...", help="set steps of komi and playouts (default: 10:2000,4:20000,2:50000)")


def _add_dataset_play(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    add("--teacher", type=_network, required=True, metavar="NET", help="play and label with this KataGo network")
    add("--size", type=int, required=True, metavar="N", help="play on boards of this size")
    add_task(group, "shards")
    value("--kept", 0.25, "S", "keep this share of each game's positions")
    value("--visits", 1, "N", "label with searches of N visits; 1: the network alone")
    value("--random-moves", 0.03, "S", "draw this share of the moves at random")
    value("--test-share", 0.03, "S", "hold out this share of the shards")
    _add_teacher(group)


def _add_learn(group: _ActionsContainer) -> None:
    sizes = "also play on these boards, each with an equal share of evaluations"
    group.add_argument("--sizes", type=int, nargs="+", default=[], metavar="N", help=sizes)
    add_value(group, "--handicap-share", 0.0, "S", "give Black a few stones in this share of the games")
    group.add_argument("--any-rules", action="store_true", help="draw superko and suicide for each game")


FLAGS = {"play": _add_play, "learn": _add_learn, "dataset make": _add_make, "dataset play": _add_dataset_play}


def _make_scorer(args: Namespace) -> tuple[KomiScorer | None, str]:
    """Return the scorer that labels points, and its description for the manifest."""
    from yomi.engine.datasets.making import named
    from yomi.engine.go.datasets.teacher import STAGES, KomiScorer, parse_stages

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
    teacher = _make_teacher(args, path, 1)
    return KomiScorer(teacher, stages, args.seed), f"{named(path)} {text}"


def _make_teacher(args: Namespace, path: Any, visits: int) -> Any:
    from yomi.engine.evaluators.devices import parse_device
    from yomi.engine.go.datasets.teacher import NetworkTeacher

    return NetworkTeacher(path, visits, parse_device(args.device), args.precision, args.seed)


FAIR_KOMI = {5: 25.0, 6: 4.0, 7: 9.0}  # of small boards, by board size: the result of best play under area rules


class Go(Game[Any, Any]):
    name = "go"
    title = "Go"
    protocol = "gtp"
    networks = "KataGo .bin.gz or .txt.gz, or .onnx"
    default_evaluator = "rollouts"
    score = Score("points", 1, "Black's lead (points)", whole=30)
    suffixes = (".sgf", ".gib", ".ngf", ".ugf", ".ugi")
    rated_suffixes = suffixes
    save_suffixes = (".sgf",)
    flags_fixed_by_record = ("handicap", "size", "height", "komi")
    examples = EXAMPLES
    flags = FLAGS
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"temperature_moves": 10, "root_symmetry_pruning": False},
        "learn": {"size": 7, "rules": "tromp-taylor"},
        "analyze": {"rules": "guess", **ANALYSIS_DEFAULTS},
    }
    # The weights of the policy are near fits to games of people: 15 kyu and below 0.65, 5 to 14 kyu 0.79, around 1 dan
    # 0.94, 9 dan 1.03. The rest, and levels 1 and 2, make the steps even.
    people_levels = (
        (4, 0.5, 3.0), (4, 0.56, 3.0), (4, 0.64, 3.5), (4, 0.73, 4.0), (4, 0.83, 4.5), (4, 0.92, 5.0), (8, 0.97, 6.0),
        (8, 1.04, 9.0), (12, 1.17, 14.0), (24, 1.3, 24.0),
    )  # fmt: skip
    formats = lazy("yomi.engine.go.networks:FORMATS")
    new_game = lazy("yomi.engine.go.game:new_game")
    make_player = lazy("yomi.engine.go.players.player:GoPlayer")
    matches = lazy("yomi.engine.go.matches:GoMatches")
    start_play = lazy("yomi.engine.go.terminal:start_play")
    reviewer = lazy("yomi.engine.go.review:open_reviewer")
    replay = lazy("yomi.engine.go.learning:replay")
    terminal = lazy("yomi.engine.go.terminal:open_terminal")
    referee = lazy("yomi.engine.go.scoring:open_referee")
    format_opening = lazy("yomi.engine.go.game:format_opening")
    recorder = lazy("yomi.engine.go.learning:open_recorder")
    benchmark_setup = lazy("yomi.engine.go.players.setup:measured")
    benchmark_positions = lazy("yomi.engine.go.players.setup:benchmark_positions")

    def __init__(self) -> None:
        self._learned: dict[str, Any] = {}  # further arguments of LearnableGo

    @property
    def pass_moves(self) -> tuple[int, ...]:
        from yomi.engine.go.points import PASS

        return (PASS,)

    def find_fault(self, options: Options) -> tuple[str, str] | None:
        from yomi.engine.go.rules import GUESS, Rules, RulesError

        try:
            if options.rules != GUESS:
                Rules.parse(options.rules)
        except RulesError as error:
            return "rules", str(error)
        return None

    def board_size(self, options: Options) -> int:
        from yomi.engine.go.points import board_of

        return board_of(options).side

    def fair(self, options: Options) -> Options:
        size = FAIR_KOMI.get(self.board_size(options)) if options.height is None else None
        has_komi = options.komi is not None or "komi" in options.rules
        return options if size is None or has_komi else options.with_values({"komi": size})

    def board_name(self, options: Options) -> str:
        from yomi.engine.go.points import board_of

        return f"{self.title} {board_of(options)}"

    def may_be_record(self, content: bytes) -> bool:
        from yomi.engine.go.record_files import reader_of

        return content.startswith(b"(") or reader_of(content) is not None

    def learnable(self, options: Options) -> LearnableGo:
        from yomi.engine.go.learning import LearnableGo

        return LearnableGo(options, **self._learned)

    def learning(self, args: Namespace, network: Mapping[str, Any] | None) -> Go:
        other = Go()
        other._learned = {"sizes": args.sizes, "handicap": args.handicap_share, "any_rules": args.any_rules}
        return other

    def make_dataset(self, args: Namespace, say: Say) -> Dataset:
        from yomi.engine.datasets.making import GO_SUFFIXES, announce_kernels, find_files, named
        from yomi.engine.datasets.shards import ShardWork
        from yomi.engine.go.datasets.dataset import GoDataOptions, make_go_dataset
        from yomi.engine.go.datasets.games import TRUSTS

        if args.shard_rows is None and args.score_search is not None:
            args.shard_rows = SCORED_ROWS
        check_ranges(args, black_wins=(0.0, 0.9))
        check_counts(args, visits=1, rollouts=1, positions=0)
        if args.trust not in TRUSTS:
            raise OptionError(f"--trust {args.trust}: expected one of {', '.join(TRUSTS)}")
        find_files(args.paths, GO_SUFFIXES)
        if args.teacher is not None:
            check_network(args.teacher, "go")
        announce_kernels(self, say)
        scorer, scored = _make_scorer(args)
        teacher = None
        if args.teacher is not None:
            teacher = _make_teacher(args, args.teacher, args.visits)
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
            work = ShardWork("dataset make", args.command_words, args.task, args.cluster)
            return make_go_dataset(args.paths, args.out, options, teacher, say, scorer, work)
        finally:
            for network in (teacher, scorer.teacher if scorer is not None else None):
                if network is not None:
                    network.close()

    def play_dataset(self, args: Namespace, say: Say) -> Dataset:
        from yomi.engine.datasets.making import announce_kernels, named
        from yomi.engine.datasets.shards import ShardWork
        from yomi.engine.go.datasets.played import PlayOptions, play_go_dataset
        from yomi.native.go.board import MAX_SIZE, MIN_SIZE

        check_ranges(args, size=(MIN_SIZE, MAX_SIZE), kept=(0.001, 1.0), test_share=(0.0, 0.9))
        check_counts(args, visits=1)
        check_network(args.teacher, "go")
        announce_kernels(self, say)
        teacher = _make_teacher(args, args.teacher, args.visits)
        options = filled(PlayOptions, args, teacher=named(args.teacher))
        try:
            work = ShardWork("dataset play", args.command_words, args.task, args.cluster)
            return play_go_dataset(args.out, options, teacher, say, work)
        finally:
            teacher.close()


GAME = Go()
