"""Sets up a shogi player from options: evaluation queue, search settings, book. Also the positions for benchmarks."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from yomi.engine.default_network import network_file
from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.devices import Device
from yomi.engine.evaluators.network import FileEvaluator, network_in
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.game import BenchmarkPositions
from yomi.engine.options import LOG, SHOGI_C_PUCT, TABLE, USI_NAMES, OptionError, Options, Value, rows_for
from yomi.engine.players.setup import EvaluatorFactory, common_settings
from yomi.engine.search.alphabeta import AlphaBetaSearch
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.search import Search
from yomi.engine.search.types import SearchSettings
from yomi.engine.shogi.book import Book, BookError, open_book
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import FORMATS, MaterialEvaluator, Nnue
from yomi.engine.shogi.notation import parse_usi
from yomi.errors import reraised
from yomi.native.shogi.planes import write_bits, write_planes
from yomi.native.shogi.spec import shogi_spec
from yomi.native.spec import GameSpec
from yomi.nets.dlshogi.network import SIDE, read_settings
from yomi.nets.user_files import find_function, is_in_file

log = logging.getLogger("yomi.shogi")

# Options that take effect when the player loads. A seed is one of them, because search and book keep their generators
# (Go's player accepts a new seed at any time).
LOADED = (*(row.name for row in rows_for("shogi") if not row.live and row.group != LOG), "seed")


PEOPLE_LINES = 6  # moves that alpha-beta ranks for the model of people

FACTORY = EvaluatorFactory(
    "shogi", "shogi", "material", lambda options: MaterialEvaluator(options.batch_size or 1), FORMATS
)


def make_queue(options: Options) -> EvaluationQueue:
    """Return the evaluation queue for the options. Raises NetworkError or EvaluatorError; see EvaluatorFactory."""

    def finish(network: FileEvaluator, device: Device) -> Evaluator:
        if isinstance(network.format, Nnue):
            network.format.use(options)
        return network

    return FACTORY.make_queue(options, SIDE, ShogiGame, finish)


def named_search(name: str, evaluator: Evaluator) -> Callable[..., PositionSearch] | None:
    """Return the search class of the option `search_engine`, or None for a tree. Raises EvaluatorError without NNUE."""
    if is_in_file(name):
        own: Callable[..., PositionSearch] = find_function(name)
        return own
    if name != "tree" and isinstance(evaluator, FileEvaluator) and isinstance(evaluator.format, Nnue):
        return partial(AlphaBetaSearch, network=evaluator.format.network)
    if name == "alphabeta":
        raise EvaluatorError(f"{evaluator.description}: no NNUE evaluation, expected one for search_engine alphabeta")
    return None


def spec_for(evaluator: Evaluator) -> GameSpec:
    network = network_in(evaluator)
    return shogi_spec() if network is None else network.spec


def search_settings(options: Options, queue: EvaluationQueue) -> SearchSettings:
    """Return the search settings. Unset options get values for this machine.

    As in dlshogi, unvisited moves get the mean value below their parent, and the spread of values does not influence
    exploration. Scores and ownership do not exist.
    """
    return common_settings(
        options,
        "shogi",
        queue,
        SHOGI_C_PUCT,
        symmetry="none",
        score_utility=0.0,
        dynamic_score_utility=0.0,
        uncertainty=False,
        fpu_from_mean=True,
        spread_scale=0.0,
        solver=True,
        ownership=False,
        best_moves=max(options.multipv, PEOPLE_LINES if options.people_prior > 0.0 else 1),
    )


def policy_search(options: Options) -> PositionSearch:
    """Return a tree search whose policy is used beside an alpha-beta search. Errors: see `make_queue`."""
    own = {"net": None, "memory": TABLE["memory"].low, "cache_size": 0, "workers": 1, "search_engine": "tree"}
    options = options.with_values(own)
    options = options.with_values(network_defaults(options))
    queue = make_queue(options)
    return Search(spec_for(queue.evaluator), queue, search_settings(options, queue))


def make_book(options: Options) -> Book | None:
    """Return the opening book, or None if none is set. Raises BookError if the file cannot be used."""
    if options.book_file is None:
        return None
    if not Path(options.book_file).is_file():
        raise BookError(f"{options.book_file}: no such file; expected a book (YaneuraOu's .db or Apery's .bin)")
    return open_book(options.book_file, ignore_ply=options.book_ignore_ply)


def network_defaults(options: Options, net: str | None = None) -> dict[str, Value]:
    """Return the values that the network's file `MODEL.onnx.ini` sets, for options that have their defaults.

    `net` is the network's file; None: the network of a tree search. Raises NetworkError or OptionError.
    """
    net = net or network_file(options, "shogi")
    found: dict[str, Value] = {}
    for name, text in read_settings(net).items() if net is not None else ():
        row = USI_NAMES.get(name.lower())
        if row is None:
            log.info("%s.ini: %s ignored: no such option", net, name)
        elif options.get(row.name) == row.default_for("shogi"):
            with reraised(OptionError, OptionError, f"{net}.ini: "):
                found[row.name] = row.parse_usi(text)
    return found


class NetworkDefaults:
    """Applies the values in a network's .ini file to options. A new network replaces the values of the last one."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}

    def apply(self, options: Options, net: str | None) -> None:
        """Reset the values of the last network, then set the values of the current one; see `network_defaults`."""
        for name, value in self.values.items():
            # A value that the user has set since then stays.
            if options.get(name) == value:
                options.set(name, TABLE[name].default_for("shogi"))
        self.values.clear()
        for name, value in network_defaults(options, net).items():
            options.set(name, value)
            self.values[name] = value


# -- benchmarks --------------------------------------------------------------------------------------------------------

BISHOP_EXCHANGE = (
    "7g7f 8c8d 2g2f 8d8e 8h7g 3c3d 7i8h 4a3b 6i7h 2b7g+ 8h7g 3a2b 3i3h 7a7b 4g4f 2b3c 3h4g 6c6d 5i6h 7b6c 1g1f 1c1d "
    "9g9f 9c9d 4g5f 6c5d 6h7i 5a4b 3g3f 4b3a 4i5h 6a5b 6g6f 4c4d 7i8h 3a2b"
)
FOURTH_FILE_ROOK = (
    "7g7f 3c3d 2g2f 4c4d 3i4h 8b4b 5i6h 5a6b 6h7h 6b7b 5g5f 7b8b 4i5h 7a7b 9g9f 9c9d 3g3f 3a3b 6g6f 3b4c 5h6g 4a5b "
    "2f2e 2b3c 4h5g 8b7a 4g4f 4b2b 2i3g 5b6b 4f4e 4d4e 2h4h 2b1b 7i6h 4c5d 6i7i 1b4b 1g1f 6c6d 6g7g 8c8d 7f7e 4b4a "
    "8g8f 2c2d 2e2d 3c2d 4h2h P*2c P*2e 2d5a 2h4h 5a3c 7h6i 2c2d 2e2d 3c2d"
)
FOURTH_FILE_ROOK_LATER = (
    f"{FOURTH_FILE_ROOK} 4h2h P*2c P*2e 2d5a 2h4h 3d3e 5f5e 3e3f 5e5d 3f3g+ 4h1h P*3b 5d5c+ 6b5c S*3d N*3a 2e2d 3g4g "
    "2d2c+ 4a4d 3d2e 3a2c 5g5f P*2b 5f4g 4e4f 4g3f 2a3c P*2d 3c2e 3f2e 4f4g+ 2d2c 2b2c 6i7h 2c2d"
)
# The start, two openings, a middle game, two endgames.
LINES = (
    "",
    "7g7f 3c3d 2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d",
    BISHOP_EXCHANGE,
    FOURTH_FILE_ROOK,
    FOURTH_FILE_ROOK_LATER,
    f"{BISHOP_EXCHANGE} B*7e 5b6c 8h7i 8b9b 7i6i B*2d 5h4g 2b3a 2h1h 3c2b 7e9g 9d9e 9f9e 9b9e 7h7i P*9f 9g8h 2a3c P*9g "
    "9e9b 9g9f 9b8b 2f2e 3c2e P*2f 9a9b 2f2e 2d5a N*2f 5d4c 7i7h 2c2d 2e2d 5a2d 4f4e 4d4e 5f4e 2b3c 7f7e 7c7d 7e7d "
    "6c7d 7g6h 8e8f 8g8f 8b8f P*4d 3c4d P*8g 8f8e 4e4d 4c4d 6f6e S*4c S*2e 2d3c P*7b P*8f 8i9g 8e6e 2i3g 9b9f 7b7a+ "
    "9f9g+ 8h9g N*7f",
)


def shogi_positions() -> list[ShogiGame]:
    games = []
    for line in LINES:
        game = ShogiGame()
        for word in line.split():
            game.play(parse_usi(word))
        games.append(game)
    return games


def benchmark_positions(options: Options) -> BenchmarkPositions:
    return shogi_subject(mate_depth=options.leaf_mate_depth)


def shogi_subject(spec: GameSpec | None = None, mate_depth: int = 0) -> BenchmarkPositions:
    """Return the positions for benchmarks, by default as inputs of dlshogi's networks. `mate_depth` is in plies."""
    spec = spec or shogi_spec()
    games = shogi_positions()
    for game in games:
        for name, value in (*spec.position_flags, ("mate_depth", mate_depth)):
            game.position[name] = value
    return BenchmarkPositions("shogi", spec, tuple(games), write_planes, write_bits)


@contextlib.contextmanager
def benchmark_setup(options: Options) -> Iterator[tuple[BenchmarkPositions, EvaluationQueue, SearchSettings]]:
    with contextlib.closing(make_queue(options)) as queue:
        network = network_in(queue.evaluator)
        if network is not None and isinstance(network.format, Nnue):
            raise network.format.no_tree()
        spec = spec_for(queue.evaluator)
        searched = ("mate_depth", options.leaf_mate_depth), ("all_moves", int(options.all_legal_moves))
        spec = replace(spec, position_flags=(*spec.position_flags, *searched))
        yield shogi_subject(spec, options.leaf_mate_depth), queue, search_settings(options, queue)
