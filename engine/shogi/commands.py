"""What shogi adds to commands for all games: flags, examples of their help, and data sets made by the flags."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_value, check_counts, check_ranges, filled
from yomi.engine.datasets import SHARD_ROWS
from yomi.engine.option_row import OptionError

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

    from yomi.engine.game import Game, Say
    from yomi.nets.data.shards import Dataset

FORMATS = {"csa": ".csa", "kif": ".kifu", "usi": ".usi", "hcpe": ".hcpe", "hcpe3": ".hcpe3"}
"""Forms of records and the endings of their files: a `.kifu` is KIF in UTF-8."""

EXAMPLES = {
    "play": """\
examples:
  yomi play shogi --seconds 2
  yomi play shogi --level 2 --save game.kifu
  yomi play shogi --net model.onnx --color white --book-file book.bin
  yomi play shogi --sfen "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"

In the game: a move in USI (7g7f, 8h2b+, P*5e), CSA (7776FU) or Japanese (７六歩, 76歩, 同銀) is played; undo, hint,
score, declare, board, sfen, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE goes on with it.
""",
    "selfplay": """\
examples:
  yomi selfplay shogi --games 100 --net model.onnx --visits 400 --format csa hcpe --out games
  yomi selfplay shogi --games 20 --openings openings.sfen --temperature 0 --root-noise 0

Unless told otherwise: 200 visits a move, temperature 1 for the first 20 moves, a quarter of noise at the root, no
resignation, and a draw after 320 moves. Each move's evaluation is written in centipawns. Openings are a file of
records or of lines `startpos moves ...`, taken in turn. hcpe goes into one file, games.hcpe, which grows. hcpe3 holds
the visits of the searches, too, and so do CSA and, with the flag, --rows.
""",
    "duel": """\
examples:
  yomi duel shogi --net model.onnx --visits 100 --first c_puct=2.5 --second c_puct=2.88 --openings taya36.sfen
  yomi duel shogi --first net=new.onnx --second net=old.onnx --sprt 0,20 --games 10000

Games end by mate, declaration, repetition, or after 320 moves, unless told otherwise. --first and --second take options
of networks and of the search, visits, leaf_mate_depth and all_legal_moves. There is no root_mate_search here.
""",
    "tune": """\
example:
  yomi tune shogi --net model.onnx --visits 100 --parameter c_puct 1.5:4.5 --parameter fpu_reduction 0.2:0.9

Games are played as those of yomi duel are.
""",
    "learn": """\
examples:
  yomi learn shogi --hours 24
  yomi learn shogi --openings balanced.sfen --network net.toml --out shogi-10x128

Games begin with the usual position, or with lines of a file drawn at random, and end by mate, declaration, repetition,
or after 320 moves, unless told otherwise. Evaluations and the visits that were learned are comments of the records,
of which yomi dataset convert FOLDER/games GAMES.hcpe3 makes what dlshogi trains on.
""",
    "dataset play": """\
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


def _add_play(group: _ActionsContainer) -> None:
    group.add_argument("--sfen", metavar="SFEN", help="position to begin with (default: that of a game)")
    group.add_argument(
        "--board",
        choices=["auto", "japanese", "letters"],
        default="auto",
        help="how pieces are drawn; auto: Japanese where the terminal can show it (default: auto)",
    )


def _add_selfplay(group: _ActionsContainer) -> None:
    group.add_argument(
        "--format", nargs="+", choices=FORMATS, default=["csa"], help="forms of the records (default: csa)"
    )
    _add_openings(group)


def _add_openings(group: _ActionsContainer) -> None:
    group.add_argument("--openings", type=Path, metavar="FILE", help="positions or lines to begin with")


def add_score_scale(group: _ActionsContainer, other: str = "") -> None:
    """Add --score-scale; `other` says what else than a number it may be."""
    text = f"centipawns of the sigmoid that turns evaluations into winrates{other} (default: dlshogi's 756)"
    group.add_argument("--score-scale", metavar="CP", help=text)


def _add_make(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    value("--rating", 0.0, "R", "leave out games in which a player is rated lower, or not at all", "none")
    value("--evaluation", 0.0, "CP", "leave out positions with evaluations beyond these centipawns", "none")
    add_score_scale(group, "; fit: what suits the results best")
    add("--keep-duplicates", action="store_true", help="do not merge positions that come up again")


def _add_dataset_play(group: _ActionsContainer) -> None:
    add, value = group.add_argument, functools.partial(add_value, group)
    add("--engine", required=True, metavar="COMMAND", help="a USI engine, which plays both sides; see below")
    add("--nodes", type=int, required=True, metavar="N", help="nodes of each move")
    value("--processes", os.cpu_count() or 1, "N", "engines at the same time")
    lines = "records, or lines `startpos moves ...` (default: the usual position)"
    add("--openings", type=Path, metavar="FILE", help=lines)
    value("--opening-moves", 8, "N", "random moves after the opening: 1 to N, 0 for none")
    value("--random-moves", 0.02, "S", "share of later moves at random")
    value("--resign-score", 3000, "CP", "centipawns that decide a game")
    value("--resign-moves", 3, "N", "moves of each side that must say so")
    value("--max-moves", 320, "N", "moves after which a game is drawn")


FLAGS = {
    "play": _add_play,
    "selfplay": _add_selfplay,
    "learn": _add_openings,
    "dataset make": _add_make,
    "dataset play": _add_dataset_play,
}


def make_dataset(game: Game[Any, Any], args: Namespace, say: Say) -> Dataset:
    """See yomi.engine.game.Game."""
    from yomi.engine.datasets.making import announce_kernels, find_files
    from yomi.engine.shogi.datasets.dataset import ShogiDataOptions, make_shogi_dataset
    from yomi.engine.shogi.datasets.rows import SHOGI_SUFFIXES

    scale = _score_scale(args.score_scale)
    find_files(args.paths, SHOGI_SUFFIXES)
    announce_kernels(game, say)
    rows = args.shard_rows or SHARD_ROWS
    options = filled(ShogiDataOptions, args, merge=not args.keep_duplicates, shard_rows=rows, score_scale=scale)
    return make_shogi_dataset(args.paths, args.out, options, say)


def _score_scale(text: str | None, *, may_fit: bool = True) -> float:
    """Return the centipawns that --score-scale names, 0 for a fit."""
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
    """Make positions beside those of data sets, valued by an engine, or go on with them."""
    from yomi.engine.clients.client import EngineError
    from yomi.engine.clients.spec import SpecError, parse_spec
    from yomi.engine.datasets.making import named
    from yomi.engine.evaluators.load import load
    from yomi.engine.evaluators.sparse import SparseEvaluator
    from yomi.engine.shogi.datasets.varied import ShogiVaryOptions, vary_positions
    from yomi.nets.models import default_network

    net = args.net or default_network(game.name, on_processor=True)
    scale = _score_scale(args.score_scale, may_fit=False)
    try:
        spec = parse_spec(args.engine, game.name, game.protocol)
        game.compile(say)
        evaluator = load(game.formats, net, 9, device="cpu", precision="auto")
        if not isinstance(evaluator, SparseEvaluator):
            raise OptionError(f"--net {net}: a network of layers found, expected a sparse one")
        options = filled(ShogiVaryOptions, args, net=named(Path(net)), score_scale=scale)
        return vary_positions(args.folders, args.out, options, args.positions, evaluator, spec, say)
    except EngineError as error:
        raise OptionError(f"--engine {args.engine}: {error}") from None
    except SpecError as error:
        raise OptionError(str(error)) from None


def play_dataset(game: Game[Any, Any], args: Namespace, say: Say) -> str:
    """See yomi.engine.game.Game."""
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
        spec = parse_spec(args.engine, game.name, game.protocol)
        openings = load_records(args.openings) if args.openings else []
        game.compile(say)
        options = filled(ShogiPlayOptions, args, openings=named(args.openings) if args.openings else "")
        total = play_shogi_positions(args.out, options, args.positions, spec, openings, args.processes, say)
    except EngineError as error:
        raise OptionError(f"--engine {args.engine}: {error}") from None
    except (SpecError, RecordError) as error:
        raise OptionError(str(error)) from None
    return f"{total} positions in {args.out}"
