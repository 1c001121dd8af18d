"""From the options to an evaluation queue, the search's settings and a book, for shogi."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.default_network import has_network, named_file, network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.network import FileEvaluator, network_in, recognise
from yomi.engine.options import LOG, SHOGI_C_PUCT, TABLE, USI_NAMES, OptionError, rows_for
from yomi.engine.players.precision import Sampling
from yomi.engine.players.setup import EvaluatorFactory, common_settings
from yomi.engine.shogi.book import Book, BookError, BookSettings, open_book
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import FORMATS
from yomi.engine.shogi.networks.material import MaterialEvaluator
from yomi.engine.shogi.networks.nnue import LeafSearch, Nnue, WithLeafSearch
from yomi.native.shogi.spec import shogi_spec
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.dlshogi.settings import read_settings
from yomi.nets.errors import NetworkError
from yomi.nets.models import default_network

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.options import Options, Value
    from yomi.engine.search.settings import SearchSettings
    from yomi.native.spec import GameSpec

log = logging.getLogger("yomi.shogi")

LOADED = (*(row.name for row in rows_for("shogi") if not row.live and row.group != LOG), "seed")
"""The options that take effect when the player loads. Go's player takes up a seed at any time; here search and book
draw from it for as long as they are loaded."""


def loading_key(options: Options) -> tuple[Value, ...]:
    """Return what is loaded by these options."""
    return tuple(options.get(name) for name in LOADED)


EVALUATOR_FACTORY = EvaluatorFactory(
    "shogi", "shogi", "material", lambda options: MaterialEvaluator(options.batch_size or 1), FORMATS
)


def make_queue(options: Options) -> EvaluationQueue:
    """Return the evaluation queue that the options describe; see EvaluatorFactory.

    Raises:
        NetworkError, EvaluatorError: see EvaluatorFactory; and the value network is no NNUE evaluation, or has no use.
    """
    if options.value_net is not None and not has_network(options):
        raise EvaluatorError(f"evaluator {options.evaluator} uses no network: leave out --value-net, or --evaluator")

    def finish(network: FileEvaluator, device: str) -> Evaluator:
        if isinstance(network.format, Nnue):
            if options.value_net is not None:
                name = network.info.source_file
                raise NetworkError(f"{name}: an NNUE evaluation found for --net, expected one for --value-net only")
            moves = load(FORMATS, default_network("shogi", on_processor=True), SIDE, "cpu", precision="auto")
            return _with_leaf_search(moves, network.format, options)
        if options.value_net is None:
            return network
        path = Path(named_file(options.value_net, "shogi", options))
        values = recognise(FORMATS, path, SIDE)
        if not isinstance(values, Nnue):
            network.close()
            raise NetworkError(f"{path}: {values.title} found, expected {Nnue.title} for --value-net")
        return _with_leaf_search(network, values, options)

    return EVALUATOR_FACTORY.make_queue(options, SIDE, ShogiGame, finish)


def _with_leaf_search(network: FileEvaluator, values: Nnue, options: Options) -> WithLeafSearch:
    """Return a network with a search at each leaf as the options describe it."""
    values.use(LeafSearch.of(options))
    return WithLeafSearch(network, values)


def shogi_sampling(network: FileEvaluator) -> Sampling[ShogiGame]:
    """Return how games are played on which precisions are compared."""
    return Sampling(network.spec, ShogiGame)


def spec_for(evaluator: Evaluator) -> GameSpec:
    """Return what a search with an evaluator has to know of shogi."""
    network = network_in(evaluator)
    return shogi_spec() if network is None else network.spec


def search_settings(options: Options, queue: EvaluationQueue) -> SearchSettings:
    """Return the settings of the search; what the options leave open is chosen for the machine.

    As dlshogi has it, unvisited moves are judged from the mean below their parent, and the spread of the values has no
    say in exploration; scores and owners there are none.
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
    )


def make_book(options: Options) -> Book | None:
    """Return the book of openings; None where none is named.

    Raises:
        BookError: the file cannot be used.
    """
    if options.book_file is None:
        return None
    if not Path(options.book_file).is_file():
        raise BookError(f"{options.book_file}: no such file; expected a book (YaneuraOu's .db or Apery's .bin)")
    return open_book(options.book_file, both_colors=options.book_flipped, ignore_ply=options.book_ignore_ply)


def book_settings(options: Options) -> BookSettings:
    """Return which moves of the book are played."""
    return BookSettings(
        max_moves=options.book_moves,
        ignore_rate=options.book_ignore_rate,
        narrow=options.narrow_book,
        depth_limit=options.book_depth_limit,
        eval_diff=options.book_eval_diff,
        eval_limits=(options.book_eval_black_limit, options.book_eval_white_limit),
        by_count=options.book_counts,
    )


def network_defaults(options: Options) -> dict[str, Value]:
    """Return what the file beside the network (such as `MODEL.onnx.ini`) says of options left at their defaults.

    Raises:
        NetworkError: the file cannot be read.
        OptionError: a value in it does not suit its option.
    """
    net = network_file(options, "shogi")
    found: dict[str, Value] = {}
    for name, text in read_settings(net).items() if net is not None else ():
        row = USI_NAMES.get(name.lower())
        if row is None:
            log.info("%s.ini: %s is passed over: no such option", net, name)
        elif options.get(row.name) == row.default_for("shogi"):
            try:
                found[row.name] = row.parse_usi(text)
            except OptionError as error:
                raise OptionError(f"{net}.ini: {error}") from None
    return found


class NetworkDefaults:
    """What the file beside the network says, set in options whose network may change."""

    def __init__(self) -> None:
        """Begin without a network."""
        self._set: dict[str, Value] = {}

    def apply(self, options: Options) -> None:
        """Take back what the last network has set, then set what this one says; see `network_defaults`."""
        for name, value in self._set.items():
            if options.get(name) == value:
                options.set(name, TABLE[name].default_for("shogi"))
        self._set.clear()
        for name, value in network_defaults(options).items():
            options.set(name, value)
            self._set[name] = value
