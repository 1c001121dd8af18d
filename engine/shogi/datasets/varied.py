"""`yomi dataset vary`: positions some likely moves beside those of data sets, each valued by a USI engine.

A search looks at what no game holds: moves that turn out to be mistakes, and what refutes them. Each row is a row of a
data set of boards after some more moves, drawn from the policy of a sparse network; an engine that searches for less
than a millisecond says what it is worth. There is no target for the policy, and no result but this value.

A shard comes from one shard of the sources and has its split, so that no test position has a neighbor in training. What
is in it depends on the seed and its number alone (where the engine says the same again).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from yomi.engine.clients.limits import EngineLimits, GameClock
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK, WHITE
from yomi.engine.datasets.making import Columns, Log
from yomi.engine.evaluators.sparse import SparseEvaluator
from yomi.engine.shogi.datasets.dataset import SCORE_SCALE
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.sfen import format_sfen
from yomi.native.datasets.packed import write_boards
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch
from yomi.nets.data.shards import Dataset, Manifest, Shard, begin_dataset, open_dataset, shard_name, write_shard
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.errors import NetworkError
from yomi.nets.features import SHOGI_BOARD, feature_set
from yomi.nets.files import source_digest


@dataclass(frozen=True)
class ShogiVaryOptions:
    """What decides the positions; kept in the manifest."""

    engine: str
    """Its command line, with the settings after it."""
    nodes: int
    """Of each evaluation."""
    net: str
    """Name of the network's file that moves are drawn from, and its digest."""
    moves: int = 3
    """Moves after a position of the sources: from 1 to so many."""
    temperature: float = 1.8
    """Of the policy."""
    score_scale: float = SCORE_SCALE
    """Centipawns of the sigmoid that turns evaluations into winrates."""
    shard_rows: int = 16384
    seed: int = 1


def vary_positions(
    sources: Sequence[Path],
    folder: Path,
    options: ShogiVaryOptions,
    positions: int,
    evaluator: SparseEvaluator,
    spec: EngineSpec,
    log: Log,
) -> Dataset:
    """Make a data set of so many positions, or go on with it, and return it.

    Args:
        sources: data sets of boards.
        folder: of the set; made where it does not exist.
        options: of the set; the same as before where some of it is there.
        positions: of the whole set, at least.
        evaluator: of the network that moves are drawn from.
        spec: the engine.
        log: for lines of progress.

    Raises:
        NetworkError: a source is of other features, the folder holds another data set, or the engine values nothing.
        EngineError: the engine does not start, or fails.
        OSError: the folder cannot be written.
    """
    shards = [shard for source in sources for shard in _boards(source).shards]
    if not shards:
        raise NetworkError(f"{sources[0]}: no shards found, expected some")
    named = tuple(f"{source.name} {source_digest(source / 'manifest.json')[:16]}" for source in sources)
    manifest = Manifest(SHOGI_BOARD, dataclasses.asdict(options), named)
    dataset = begin_dataset(folder, manifest)
    there = {shard.path.name: shard.rows for shard in dataset.shards}
    shares = np.array([shard.rows for shard in shards]) / sum(shard.rows for shard in shards)
    total, made, number, begin = sum(there.values()), 0, 0, time.monotonic()
    engine: UsiClient | None = None
    try:
        while total < positions:
            rng = np.random.default_rng([options.seed, number])
            source = shards[rng.choice(len(shards), p=shares)]
            name = shard_name(source.split, SIDE, number)
            number += 1
            if name in there:
                continue
            engine = engine or UsiClient(replace(spec, limits=spec.limits.over(EngineLimits(nodes=options.nodes))))
            columns = _columns(source, options, rng, evaluator, engine)
            write_shard(folder, name, source.split, SIDE, columns)
            made += len(columns["value"])
            total += len(columns["value"])
            log(f"{name}: {total} positions in all, {made / (time.monotonic() - begin):.0f}/s")
    finally:
        if engine is not None:
            engine.close()
    return open_dataset(folder)


def _boards(folder: Path) -> Dataset:
    """Return a data set of boards."""
    dataset = open_dataset(folder)
    if dataset.manifest.feature_set != SHOGI_BOARD:
        raise NetworkError(f"{folder}: features {dataset.manifest.feature_set} found, expected {SHOGI_BOARD}")
    return dataset


def _columns(
    source: Shard, options: ShogiVaryOptions, rng: np.random.Generator, evaluator: SparseEvaluator, engine: UsiClient
) -> Columns:
    """Return a shard of positions beside those of another.

    Raises:
        EngineError: the engine fails.
        NetworkError: it values none of them.
    """
    games, values = [], []
    clocks = {color: GameClock(TimeSettings(), 0.0) for color in (BLACK, WHITE)}
    engine.new_game()
    for game in _varied(source, options, rng, evaluator):
        answer = engine.choose(game.sfen(), [], game.side_to_move, clocks)
        if answer.evaluation is not None and answer.evaluation.score is not None:
            games.append(game)
            values.append(math.tanh(answer.evaluation.score / (2.0 * options.score_scale)))
    count = len(games)
    if not count:
        raise NetworkError(f"{options.engine}: no evaluation of any position found, expected some")
    boards = np.zeros((count, SIDE * SIDE), np.uint8)
    hands = np.zeros((count, feature_set(SHOGI_BOARD).globals), np.uint8)
    write_boards(np.array([game.position for game in games]), boards, hands)
    return {
        "planes": np.zeros((count, 0), np.uint8),
        "levels": boards,
        "globals": hands.astype(np.float16),
        "policy_moves": np.zeros((count, 1), np.uint16),
        "policy_weights": np.zeros((count, 1), np.float16),
        "value": np.array(values, np.float16),
        "search_value": np.array(values, np.float16),
    }


def _varied(
    source: Shard, options: ShogiVaryOptions, rng: np.random.Generator, evaluator: SparseEvaluator
) -> Iterator[ShogiGame]:
    """Yield games that begin with rows of a shard, after some moves; those that end within these are left out."""
    columns = source.open()
    batch = make_batch(evaluator.spec, 1, Inputs.POSITIONS)
    judge = evaluator.bind(batch)
    for row in rng.permutation(source.rows)[: options.shard_rows]:
        hands = columns["globals"][row].astype(int).reshape(2, -1).tolist()
        board = tuple(columns["levels"][row].tolist())
        game = ShogiGame(format_sfen(Placement(board, (tuple(hands[0]), tuple(hands[1])), BLACK)))
        for _ in range(rng.integers(1, options.moves + 1)):
            moves = game.legal_moves()
            if not moves:
                break
            batch.positions[0] = game.position
            batch.move_count[0], batch.moves[0, : len(moves)] = len(moves), moves
            batch.indices[0, : len(moves)] = range(len(moves))
            judge.run(1)
            logits = batch.logits[0, : len(moves)].astype(np.float64) / options.temperature
            shares = np.exp(logits - logits.max())
            game.play(moves[rng.choice(len(moves), p=shares / shares.sum())])
        if game.legal_moves():
            yield game
