"""Shogi's descriptor: flags, help examples, and entry points of commands."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_value, check_counts, check_ranges, filled
from yomi.engine.datasets import SHARD_ROWS
from yomi.engine.game import Game, lazy
from yomi.engine.records import Score
from yomi.settings import OptionError

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer
    from collections.abc import Mapping

    from yomi.engine.game import Say
    from yomi.engine.options import Options, Value
    from yomi.engine.shogi.selfplay import LearnableShogi
    from yomi.nets.data.shards import Dataset

# Formats of records and their suffixes; .kifu is KIF in UTF-8.
RECORD_FORMATS = {"csa": ".csa", "kif": ".kifu", "usi": ".usi", "hcpe": ".hcpe", "hcpe3": ".hcpe3"}

EXAMPLES = {
    "play": """\
examples:
  yomi play shogi --seconds 2
  yomi play shogi --level 2 --save game.kifu
  yomi play shogi --net model.onnx --color white --book-file book.bin
  yomi play shogi --handicap 2-piece

In the game: a move in USI (7g7f, 8h2b+, P*5e), CSA (7776FU) or Japanese (７六歩, 76歩, 同銀) is played; undo, hint,
score, declare, board, sfen, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE continues it.
""",
    "selfplay": """\
examples:
  yomi selfplay shogi --games 100 --net model.onnx --visits 400 --format csa hcpe --out games
  yomi selfplay shogi --games 20 --openings openings.sfen --temperature 0 --root-noise 0

Defaults: 200 visits a move, temperature 1 for the first 20 moves, a quarter of noise at the root, no resignation, and a
draw after 320 moves. Records contain each move's evaluation in centipawns. Openings are a file of records or of lines
`startpos moves ...`, taken in turn. All games share one hcpe file, games.hcpe, which grows. hcpe3, CSA and --rows also
contain the visits of the searches.
""",
    "duel": """\
examples:
  yomi duel shogi --net model.onnx --visits 100 --first c_puct=2.5 --second c_puct=2.88 --openings taya36.sfen
  yomi duel shogi --first net=new.onnx --second net=old.onnx --sprt 0,20 --games 10000

Games end by mate, declaration, repetition, or after 320 moves (--max-moves). --first and --second take options of
networks and of the search, visits, leaf_mate_depth and all_legal_moves. root_mate_search is off here.
""",
    "tune": """\
example:
  yomi tune shogi --net model.onnx --visits 100 --parameter c_puct 1.5:4.5 --parameter fpu_reduction 0.2:0.9

Games are played as in yomi duel.
""",
    "learn": """\
examples:
  yomi learn shogi --hours 24
  yomi learn shogi --openings balanced.sfen --network net.toml --out shogi-10x128

Games begin with the usual position, or with lines drawn at random from a file. They end by mate, declaration,
repetition, or after 320 moves (--max-moves). Records contain evaluations and visits as comments:
yomi dataset convert FOLDER/games GAMES.hcpe3 turns them into training data for dlshogi.
""",
    "dataset play": """\
examples:
  yomi dataset play shogi --engine fairy-stockfish --nodes 1000 --positions 1000000 --out games/shogi
  yomi dataset play shogi --engine "engine --usi ;; option.USI_Hash=64" --nodes 3000 --openings balanced.sfen \\
      --positions 1000000 --out games/shogi
  yomi dataset make games/shogi --features dlshogi-62-57 --out data/shogi

The engine is the command line of a USI engine; settings follow after ` ;; ` as for `yomi match`. Positions,
evaluations, moves and results are written as hcpe. A game begins with an opening, up to a random ply of it, and random
moves; a few later moves are random, too. Positions before random moves and repeated positions are left out. The same
command continues a run, also with more --positions.
""",
}


def _add_play(group: _ActionsContainer) -> None:
    group.add_argument("--sfen", metavar="SFEN", help="begin with this position (default: the usual one)")
    text = "let White give this handicap: lance, rook, 2-piece, 香落ち, 飛車落ち, 二枚落ち, ..."
    group.add_argument("--handicap", metavar="NAME", help=text)
    group.add_argument(
        "--board",
        choices=["auto", "japanese", "letters"],
        default="auto",
        help="draw pieces in kanji or letters; auto: kanji if the terminal can (default: auto)",
    )


def _add_selfplay(group: _ActionsContainer) -> None:
    text = "write records in these forms (default: csa)"
    group.add_argument("--format", nargs="+", choices=RECORD_FORMATS, default=["csa"], help=text)
    _add_openings(group)


def _add_openings(group: _ActionsContainer) -> None:
    group.add_argument("--openings", type=Path, metavar="FILE", help="begin with positions or lines of a file")


def add_score_scale(group: _ActionsContainer, other: str = "") -> None:
    """Add --score-scale; `other` describes values other than numbers."""
    text = f"set the winrate sigmoid's centipawns{other} (default: dlshogi's 756)"
    group.add_argument("--score-scale", metavar="CP", help=text)


def _add_make(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    value("--rating", 0.0, "R", "leave out games with a player rated lower or not at all", "none")
    value("--evaluation", 0.0, "CP", "leave out positions with greater evaluations in centipawns", "none")
    add_score_scale(group, "; fit: by the results")
    add("--keep-duplicates", action="store_true", help="do not merge repeated positions")


def _add_dataset_play(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    add("--engine", required=True, metavar="COMMAND", help="play both sides with this USI engine; see below")
    add("--nodes", type=int, required=True, metavar="N", help="search this many nodes a move")
    value("--processes", None, "N", "run this many engines at a time", "the number of cores")
    lines = "begin with records or lines `startpos moves ...` (default: the usual position)"
    add("--openings", type=Path, metavar="FILE", help=lines)
    value("--opening-moves", 8, "N", "play 1 to N random moves after the opening; 0: none")
    value("--random-moves", 0.02, "S", "play this share of later moves at random")
    value("--resign-score", 3000, "CP", "end a game at this evaluation in centipawns")
    value("--resign-moves", 3, "N", "end it after this many such moves of each side")
    value("--max-moves", 320, "N", "draw a game after this many moves")


FLAGS = {
    "play": _add_play,
    "selfplay": _add_selfplay,
    "learn": _add_openings,
    "dataset make": _add_make,
    "dataset play": _add_dataset_play,
}


def _score_scale(text: str | None, *, may_fit: bool = True) -> float:
    """Return the value of --score-scale in centipawns; 0 means fit."""
    from yomi.engine.shogi.datasets.dataset import MAX_SCALE, MIN_SCALE, SCORE_SCALE

    if text is None:
        return SCORE_SCALE
    if text == "fit" and may_fit:
        return 0.0
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise OptionError(
            f"--score-scale {text}: expected {MIN_SCALE:g} to {MAX_SCALE:g} centipawns{', or fit' * may_fit}"
        )
    return scale


def vary_boards(game: Game[Any, Any], args: Namespace, say: Say) -> Dataset:
    """Make or continue a data set of positions near those of other data sets, valued by an engine."""
    from contextlib import closing

    from yomi.engine.clients.client import EngineError
    from yomi.engine.clients.spec import SpecError, is_own, parse_spec
    from yomi.engine.datasets.making import named
    from yomi.engine.datasets.shards import ShardWork
    from yomi.engine.evaluators.kernel_evaluators import SparseFormat
    from yomi.engine.evaluators.network import open_network
    from yomi.engine.shogi.datasets.varied import ShogiVaryOptions, VariedShards, vary_positions
    from yomi.nets.models import default_network

    net = args.net or default_network(game.name, on_processor=True)
    scale = _score_scale(args.score_scale, may_fit=False)
    try:
        spec = parse_spec(args.engine, game.name, game.protocol)
        game.compile(say)
        network = open_network(game.formats, net, 9)
        if not isinstance(network, SparseFormat):
            raise OptionError(f"--net {net}: a network of layers found, expected a sparse one")
        options = filled(ShogiVaryOptions, args, net=named(Path(net)), score_scale=scale)
        work = ShardWork("dataset vary", args.command_words, args.task, args.cluster)
        maker = VariedShards(options, spec, str(net), is_own(spec), network)
        with closing(maker):
            return vary_positions(args.folders, args.out, options, args.positions, maker, say, work, args.shards)
    except EngineError as error:
        raise OptionError(f"--engine {args.engine}: {error}") from None
    except SpecError as error:
        raise OptionError(str(error)) from None


# -- the descriptor ----------------------------------------------------------------------------------------------------

# Plies of the mate searches at leaves and at the root, by level.
LEAF_MATES = (0, 0, 0, 0, 1, 1, 3, 3, 3, 3)
ROOT_MATES, ROOT_MATES_OF_NETWORKS = (0, 0, 0, 1, 3, 5, 7, 9, 11, 33), (0, 0, 1, 3, 3, 5, 7, 9, 11, 33)
MATERIAL_VISITS = {8: 1000, 9: 3000, 10: 10000}  # visits of levels at which material needs others than Go's rollouts


class Shogi(Game[Any, Any]):
    name = "shogi"
    title = "shogi"
    protocol = "usi"
    networks = "dlshogi's .onnx, nn.bin"
    default_evaluator = "material"
    # The limits keep a mate from flattening the rest of a chart.
    score = Score("cp", 0, "Black's evaluation (centipawns)", limit=3000, mean_limit=2000)
    suffixes = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf", ".bod", ".usi", ".sfen")
    rated_suffixes = (".csa", ".kif", ".kifu", ".ki2", ".ki2u", ".jkf")
    save_suffixes = (".kifu", ".kif", ".csa", ".usi", ".sfen")
    flags_fixed_by_record = ("sfen", "handicap")
    examples = EXAMPLES
    flags = FLAGS
    defaults: Mapping[str, Mapping[str, Value]] = {
        "selfplay": {"temperature_moves": 20, "max_moves": 320},
        "duel": {"max_moves": 320},
        "learn": {"max_moves": 320, "leaf_mate_depth": 1},
    }
    people_levels = (
        (4, 0.6, 2.0), (4, 0.7, 2.5), (4, 0.8, 3.0), (4, 0.9, 3.5), (4, 1.0, 4.0), (8, 1.15, 5.0), (8, 1.3, 8.0),
        (16, 1.55, 12.0), (16, 1.7, 15.0), (24, 2.1, 22.0),
    )  # fmt: skip
    formats = lazy("yomi.engine.shogi.networks:FORMATS")
    new_game = lazy("yomi.engine.shogi.game:new_game")
    make_player = lazy("yomi.engine.shogi.players.player:ShogiPlayer")
    matches = lazy("yomi.engine.shogi.matches:ShogiMatches")
    start_play = lazy("yomi.engine.shogi.terminal:start_play")
    terminal = lazy("yomi.engine.shogi.terminal:open_terminal")
    referee = lazy("yomi.engine.shogi.game:open_referee")
    format_opening = lazy("yomi.engine.shogi.game:format_opening")
    reviewer = lazy("yomi.engine.shogi.review:open_reviewer")
    recorder = lazy("yomi.engine.shogi.selfplay:open_recorder")
    replay = lazy("yomi.engine.shogi.selfplay:replay")
    encoder = lazy("yomi.engine.shogi.datasets.encoder:encoder_of")
    network_defaults = lazy("yomi.engine.shogi.players.setup:network_defaults")
    benchmark_setup = lazy("yomi.engine.shogi.players.setup:benchmark_setup")
    benchmark_positions = lazy("yomi.engine.shogi.players.setup:benchmark_positions")

    def __init__(self) -> None:
        self._learned: dict[str, Any] = {}  # keyword arguments of LearnableShogi

    def board_size(self, options: Options) -> int:
        return 9

    def level_options(self, level: int, *, has_network: bool) -> Mapping[str, Value]:
        roots = ROOT_MATES_OF_NETWORKS if has_network else ROOT_MATES
        mates: dict[str, Value] = {"leaf_mate_depth": LEAF_MATES[level - 1], "root_mate_search": roots[level - 1]}
        if not has_network and level in MATERIAL_VISITS:
            mates["visits"] = MATERIAL_VISITS[level]
        return mates

    def may_be_record(self, content: bytes) -> bool:
        return not content.startswith(b"(")

    def make_dataset(self, args: Namespace, say: Say) -> Dataset:
        from yomi.engine.datasets.making import announce_kernels, find_files
        from yomi.engine.datasets.shards import ShardWork
        from yomi.engine.shogi.datasets.dataset import ShogiDataOptions, make_shogi_dataset
        from yomi.engine.shogi.datasets.rows import SHOGI_SUFFIXES

        scale = _score_scale(args.score_scale)
        find_files(args.paths, SHOGI_SUFFIXES)
        announce_kernels(self, say)
        rows = args.shard_rows or SHARD_ROWS
        options = filled(ShogiDataOptions, args, merge=not args.keep_duplicates, shard_rows=rows, score_scale=scale)
        return make_shogi_dataset(
            args.paths, args.out, options, say, ShardWork("dataset make", args.command_words, args.task, args.cluster)
        )

    def play_dataset(self, args: Namespace, say: Say) -> str:
        from yomi.engine.clients.client import EngineError
        from yomi.engine.clients.spec import SpecError, parse_spec
        from yomi.engine.datasets.making import named
        from yomi.engine.shogi.datasets.played import ShogiPlayOptions, play_shogi_positions
        from yomi.engine.shogi.records.files import load_records
        from yomi.engine.shogi.records.record import RecordError
        from yomi.native.shogi.position import MAX_HISTORY

        check_counts(args, nodes=1, processes=1, opening_moves=0, resign_score=1, resign_moves=1)
        check_ranges(args, max_moves=(1, MAX_HISTORY // 2))
        try:
            spec = parse_spec(args.engine, self.name, self.protocol)
            openings = load_records(args.openings) if args.openings else []
            self.compile(say)
            options = filled(ShogiPlayOptions, args, openings=named(args.openings) if args.openings else "")
            processes = args.processes or os.cpu_count() or 1
            total = play_shogi_positions(
                args.out, options, args.positions, spec, openings, processes, say, args.cluster
            )
        except EngineError as error:
            raise OptionError(f"--engine {args.engine}: {error}") from None
        except (SpecError, RecordError) as error:
            raise OptionError(str(error)) from None
        return f"{total} positions in {args.out}"

    def learnable(self, options: Options) -> LearnableShogi:
        from yomi.engine.shogi.selfplay import LearnableShogi

        return LearnableShogi(options, **self._learned)

    def learning(self, args: Namespace, network: Mapping[str, Any] | None) -> Shogi:
        from yomi.engine.datasets.making import named
        from yomi.engine.shogi.selfplay import read_openings

        other, openings = Shogi(), read_openings(args.openings)
        name = named(args.openings) if args.openings else ""
        other._learned = {"openings": openings, "named": name, "network": network}
        return other


GAME = Shogi()
