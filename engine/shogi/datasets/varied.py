"""`yomi dataset vary`: positions some moves after those of data sets, with values of a USI engine and no policies."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.engine.clients.client import EngineError
from yomi.engine.clients.spec import EngineLimits, EngineSpec, SpecError, is_own, parse_spec
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import UNLIMITED
from yomi.engine.clusters.actors import Places
from yomi.engine.color import BLACK
from yomi.engine.datasets.settings import filled
from yomi.engine.datasets.shards import Columns, Log, ShardMaker, ShardWork, make_shards
from yomi.engine.default_network import network_path
from yomi.engine.evaluators.kernel_evaluators import SparseFormat
from yomi.engine.evaluators.network import open_network
from yomi.engine.matches.remote import placed
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.networks import FORMATS
from yomi.engine.shogi.placement import Placement, format_sfen
from yomi.engine.shogi.selfplay import boards_of
from yomi.engine.shogi.settings import ShogiVaryOptions, VarySettings
from yomi.errors import reraised
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch
from yomi.nets.data.shards import Dataset, Manifest, Shard, begin_dataset, open_dataset, shard_name
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.errors import NetworkError
from yomi.nets.files import name_with_digest, source_digest
from yomi.nets.metadata import SHOGI_BOARD
from yomi.nets.models import default_network
from yomi.settings import OptionError

# Levels and globals of a source shard (see `yomi.nets.data.shards`), and the random numbers
Payload: TypeAlias = "tuple[npt.NDArray[np.uint8], npt.NDArray[np.float16], np.random.Generator]"


def vary_boards(folders: Sequence[Path], out: Path, settings: VarySettings, work: ShardWork, log: Log) -> Dataset:
    """Make or continue a data set of positions near positions of other data sets. An engine gives their values.

    Errors: see Game.make_dataset.
    """
    from yomi.engine.shogi.descriptor import GAME

    net = network_path(settings.net) if settings.net else default_network(GAME.name, on_processor=True)
    engine = reraised(EngineError, OptionError, f"--engine {settings.engine}: ")
    with engine, reraised(SpecError, OptionError):
        spec = parse_spec(settings.engine, GAME.name, GAME.protocol)
        GAME.compile(log)
        network = open_network(GAME.formats, net, SIDE)
        if not isinstance(network, SparseFormat):
            raise OptionError(f"--net {net}: a network of layers found, expected a sparse one")
        options = filled(ShogiVaryOptions, settings, net=name_with_digest(net))
        with closing(VariedShards(options, spec, str(net), is_own(spec), network)) as maker:
            return vary_positions(folders, out, options, settings.positions, maker, log, work, settings.shards)


class VariedShards(ShardMaker):
    """Makes shards near source shards, which are the payload. It must be closed."""

    def __init__(
        self,
        options: ShogiVaryOptions,
        spec: EngineSpec,
        net: str,
        is_yomi: bool = False,
        network: SparseFormat | None = None,
    ) -> None:
        """Store the arguments. The engine starts later.

        Args:
            options: options of the data set.
            spec: the engine that values the positions.
            net: file of the network from whose policy moves are drawn.
            is_yomi: whether the engine is yomi.
            network: the network in `net`. If None, the file is read when the network is needed.
        """
        self.options = options
        self._spec, self._net, self._is_yomi, self._network = spec, net, is_yomi, network
        self._engine: UsiClient | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return VariedShards, (self.options, self._spec, self._net, self._is_yomi)

    @property
    def networks(self) -> tuple[str, ...]:
        return (self._net,)

    def move(self, places: Places) -> None:
        self._net, self._spec = places[self._net], placed(self._spec, places, self._is_yomi)

    def columns(self, payload: Payload, threads: int = 1) -> Columns:
        """Return the columns of a shard. Raises EngineError, or NetworkError if the engine gives no values."""
        if self._network is None:
            network = open_network(FORMATS, self._net, SIDE)
            assert isinstance(network, SparseFormat)  # the command has checked the network
            self._network = network
        if self._engine is None:
            limits = self._spec.limits.over(EngineLimits(nodes=self.options.nodes))
            self._engine = UsiClient(replace(self._spec, limits=limits))
        return _columns(payload, self.options, self._network, self._engine)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


def vary_positions(
    sources: Sequence[Path],
    folder: Path,
    options: ShogiVaryOptions,
    positions: int | None,
    maker: VariedShards,
    log: Log,
    work: ShardWork,
    count: int | None,
) -> Dataset:
    """Make or continue a data set with at least `positions` positions, or a task's share of `count` shards.

    The sources are data sets of boards. Moves are drawn from a network's policy. The options must not change when a run
    is continued. Raises NetworkError for other features, another data set in the folder or an engine without values;
    ClusterError, EngineError, OSError.
    """
    # A search visits positions that no game contains, mistakes and their refutations, hence the random moves.
    shards = [shard for source in sources for shard in _boards(source).shards]
    if not shards:
        raise NetworkError(f"{sources[0]}: no shards found, expected some")
    named = tuple(f"{source.name} {source_digest(source / 'manifest.json')[:16]}" for source in sources)
    manifest = Manifest(SHOGI_BOARD, dataclasses.asdict(options), named)
    dataset = begin_dataset(folder, manifest)
    shares = np.array([shard.rows for shard in shards]) / sum(shard.rows for shard in shards)

    def plan(number: int) -> tuple[str, Shard, np.random.Generator]:
        """Return name, source and random numbers of a shard. Only its number determines them."""
        rng = np.random.default_rng([options.seed, number])
        # One source and its split for a shard, so that no test position has a neighbor in training.
        source = shards[rng.choice(len(shards), p=shares)]
        return shard_name(source.split, SIDE, number), source, rng

    def payload(number: int) -> Payload:
        _, source, rng = plan(number)
        columns = source.open()
        return np.array(columns["levels"]), np.array(columns["globals"]), rng

    # Shards lack the positions of games that have ended: at least this many are needed, and perhaps more.
    count = count or -(-(positions or 1) // options.shard_rows)
    while positions is None or sum(shard.rows for shard in dataset.shards) < positions:
        planned = [(source.split, SIDE, name) for name, source, _ in map(plan, range(count))]
        dataset = make_shards(dataset, planned, maker, payload, log, work)
        if positions is None:
            break
        count += 1
    return dataset


def _boards(folder: Path) -> Dataset:
    dataset = open_dataset(folder)
    if dataset.manifest.feature_set != SHOGI_BOARD:
        raise NetworkError(f"{folder}: features {dataset.manifest.feature_set} found, expected {SHOGI_BOARD}")
    return dataset


def _columns(payload: Payload, options: ShogiVaryOptions, network: SparseFormat, engine: UsiClient) -> Columns:
    games, values = [], []
    engine.new_game()
    for game in _varied(payload, options, network):
        answer = engine.choose(game.sfen(), [], game.side_to_move, UNLIMITED)
        if answer.evaluation is not None and answer.evaluation.score is not None:
            games.append(game)
            values.append(math.tanh(answer.evaluation.score / (2.0 * options.score_scale)))
    count = len(games)
    if not count:
        raise NetworkError(f"{options.engine}: no evaluation of any position found, expected some")
    columns = boards_of(np.array([game.position for game in games]))
    return {
        **columns,
        "globals": columns["globals"].astype(np.float16),
        "policy_moves": np.zeros((count, 1), np.uint16),
        "policy_weights": np.zeros((count, 1), np.float16),
        "value": np.array(values, np.float16),
        "search_value": np.array(values, np.float16),
    }


def _varied(payload: Payload, options: ShogiVaryOptions, network: SparseFormat) -> Iterator[ShogiGame]:
    """Yield positions some moves after the rows of a shard. Games that end earlier are left out."""
    levels, numbers, rng = payload
    batch = make_batch(network.spec, 1, Inputs.POSITIONS)
    calls = network.bind(batch)
    for row in rng.permutation(len(levels))[: options.shard_rows]:
        hands = numbers[row].astype(int).reshape(2, -1).tolist()
        board = tuple(levels[row].tolist())
        game = ShogiGame(format_sfen(Placement(board, (tuple(hands[0]), tuple(hands[1])), BLACK)))
        for _ in range(rng.integers(1, options.moves + 1)):
            moves = game.legal_moves()
            if not moves:
                break
            batch.positions[0] = game.position
            batch.move_count[0], batch.moves[0, : len(moves)] = len(moves), moves
            batch.indices[0, : len(moves)] = range(len(moves))
            calls.run(1)
            logits = batch.logits[0, : len(moves)].astype(np.float64) / options.temperature
            shares = np.exp(logits - logits.max())
            game.play(moves[rng.choice(len(moves), p=shares / shares.sum())])
        # A mated position has nothing to value.
        if game.legal_moves():
            yield game
