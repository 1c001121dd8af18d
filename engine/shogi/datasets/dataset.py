"""`yomi dataset make` for shogi: from game records, hcpe, hcpe3 and psv files to a folder of shards."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.datasets.making import Columns, Log, held_out, plan_shards, write_missing
from yomi.engine.datasets.sources import readable_files
from yomi.engine.records import LeftOut
from yomi.engine.shogi.datasets.rows import (
    NO_MOVE,
    SHOGI_SUFFIXES,
    ShogiLimits,
    joined,
    merged,
    read_rows,
    why_not,
)
from yomi.native.datasets.packed import set_positions, write_boards
from yomi.native.datasets.positions import encode_positions
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI, MAX_HISTORY, POSITION_DTYPE
from yomi.native.shogi.spec import shogi_spec
from yomi.nets.data.shards import Dataset, Manifest, begin_dataset, widths
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.errors import NetworkError
from yomi.nets.features import SHOGI_BOARD, FeatureSet

CHUNK = 256
SCORE_SCALE = 756.0864962951762
"""Centipawns of dlshogi's sigmoid: a score of so many is a winrate of 1 / (1 + 1 / e)."""
MIN_SCALE, MAX_SCALE = 50.0, 20_000.0
"""Of sigmoids that evaluations may have."""


@dataclass(frozen=True)
class ShogiDataOptions:
    """What decides the content of a data set; kept in its manifest."""

    features: str = "dlshogi-62-57"
    rating: float = 0.0
    evaluation: float = 0.0
    min_moves: int = 50
    merge: bool = True
    """Merge duplicates of a position."""
    test_share: float = 0.03
    limit: int = 0
    shard_rows: int = 65536
    seed: int = 1
    score_scale: float = SCORE_SCALE
    """Centipawns of the sigmoid that turns evaluations into winrates; 0: as fits the results best."""


def make_shogi_dataset(paths: Sequence[Path], folder: Path, options: ShogiDataOptions, log: Log) -> Dataset:
    """Make a data set, or go on with it, and return it.

    Raises:
        NetworkError: a source or an option cannot be used, or the folder holds another data set.
        OSError: the folder cannot be written.
    """
    left_out = LeftOut(log)
    files, sources = readable_files(paths, SHOGI_SUFFIXES, left_out)
    manifest = Manifest(options.features, dataclasses.asdict(options), sources)
    if manifest.features.game != "shogi":
        raise NetworkError(f"feature set {options.features} of {manifest.features.game} found, expected one of shogi")
    dataset = begin_dataset(folder, manifest)
    rows = chosen_rows(files, options, log, left_out)
    left_out.report(len(files))
    scale = options.score_scale
    if not scale:
        scale = fitted_scale(rows)
        log(f"evaluations fit the results best by a sigmoid of {scale:.0f} centipawns")
    order = np.random.default_rng([options.seed, 1]).permutation(len(rows))
    order = order[: options.limit] if options.limit else order
    held = held_out(int(rows["game"].max()) + 1, options.test_share, options.seed)[rows["game"][order]]
    planned = plan_shards(order, held, np.full(len(order), SIDE, np.uint8), options.shard_rows)

    def columns(pool: ThreadPoolExecutor, order: npt.NDArray[np.int64], size: int) -> Columns:
        return shard_columns(pool, rows[order], manifest.features, scale)

    return write_missing(dataset, planned, columns, log)


def chosen_rows(files: Sequence[Path], options: ShogiDataOptions, log: Log, left_out: LeftOut) -> npt.NDArray[np.void]:
    """Return the positions of all files that are used; broken files are left out.

    Raises:
        NetworkError: no positions are left.
    """
    limits = ShogiLimits(options.rating, options.evaluation, options.min_moves)
    parts, game = [], 0
    for path in files:
        try:
            parts.append(read_rows(path, limits, game, log))
        except NetworkError as error:
            left_out.add(path, error)
            continue
        game = int(parts[-1]["game"].max()) + 1 if len(parts[-1]) else game
    rows = joined(parts)
    log(f"{len(rows)} positions of {game} games read")
    if options.merge and len(rows):
        rows = merged(rows)
        log(f"{len(rows)} positions differ")
    if not len(rows):
        if len(left_out.faults) == len(files):
            raise NetworkError(left_out.faults[0])
        raise NetworkError(f"{files[0]}: no positions left, expected some: see the options that choose games")
    return rows


def fitted_scale(rows: npt.NDArray[np.void]) -> float:
    """Return the centipawns of the sigmoid by which the evaluations predict the results best, to 1%.

    Raises:
        NetworkError: no position has both an evaluation and a decided result.
    """
    side = 1 + (rows["packed"][:, 0] & 1).astype(np.int8)
    known = np.isfinite(rows["score"]) & (rows["winner"] != 0)
    if not known.any():
        raise NetworkError("no position with an evaluation and a winner found, expected some to fit a scale to")
    # For whoever won.
    scores = np.where(rows["winner"] == side, rows["score"], -rows["score"])[known].astype(np.float64)
    scales = np.geomspace(MIN_SCALE, MAX_SCALE, round(np.log(MAX_SCALE / MIN_SCALE) / 0.01))
    low, high = 0, len(scales) - 1
    while low < high:  # the loss has a single minimum
        middle = (low + high) // 2
        here, next_ = (np.logaddexp(0.0, -scores / scales[index]).mean() for index in (middle, middle + 1))
        low, high = (low, middle) if here <= next_ else (middle + 1, high)
    return float(scales[low])


def shard_columns(pool: ThreadPoolExecutor, rows: npt.NDArray[np.void], features: FeatureSet, scale: float) -> Columns:
    """Return the columns of one shard; `scale` is that of its evaluations in centipawns.

    Raises:
        NetworkError: a row's bits are no position, or its move cannot be played there.
    """
    count, width = len(rows), widths(features, SIDE)
    columns: Columns = {
        "planes": np.zeros((count, width["planes"]), np.uint8),
        "globals": np.zeros((count, features.globals), np.float16),
        "policy_moves": np.zeros((count, 1), np.uint16),
        "policy_weights": (rows["move"] != NO_MOVE).astype(np.float16)[:, None],
        "value": np.zeros(count, np.float16),
        "search_value": np.tanh(rows["score"] / (2.0 * scale)).astype(np.float16),
    }
    if features.levels:
        columns["levels"] = np.zeros((count, width["levels"]), np.uint8)
    for _ in pool.map(lambda first: _write(rows, features, columns, first), range(0, count, CHUNK)):
        pass
    return columns


def _write(rows: npt.NDArray[np.void], features: FeatureSet, columns: Columns, first: int) -> None:
    """Write the columns of one chunk."""
    place = slice(first, first + CHUNK)
    part = rows[place]
    positions, history = np.zeros(len(part), POSITION_DTYPE), np.zeros(MAX_HISTORY, np.uint64)
    positions["form"] = FORM_ALPHAZERO if features.joined else FORM_DLSHOGI
    faults = np.zeros(len(part), np.uint8)
    packed, forms, moves = (np.ascontiguousarray(part[name]) for name in ("packed", "form", "move"))
    set_positions(
        packed,
        forms,
        moves,
        positions,
        history,
        np.zeros(SIDE * SIDE, np.uint8),
        np.zeros((2, 7), np.uint8),
        columns["policy_moves"][place, 0],
        faults,
    )
    for index in np.flatnonzero(faults):
        # Drop-pawn mates, which no move generator makes, are played in records all the same.
        if why := why_not(part[index]):
            raise NetworkError(f"move {why}; expected one that can be played")
    winners = part["winner"]
    signs = np.where(winners == positions["side_to_move"], 1.0, -1.0)
    columns["value"][place] = np.where(winners == 0, 0.0, signs)
    if features.name == SHOGI_BOARD:
        hands = np.zeros((len(part), features.globals), np.uint8)
        write_boards(positions, columns["levels"][place], hands)
        columns["globals"][place] = hands
        return
    spec = shogi_spec(int(positions["form"][0]), features.extras)
    planes = np.zeros((len(part), *spec.planes_shape), np.float32)
    extras = np.zeros((len(part), *spec.extras_shape), np.float32)
    encode_positions(positions, history, np.zeros(1, spec.scratch_dtype), planes, extras)
    columns["planes"][place] = np.packbits(planes[:, : features.bits].reshape(len(part), -1) != 0.0, axis=1)
    columns["globals"][place] = planes[:, features.bits :, 0, 0] if features.joined else extras
