"""`yomi dataset make` for shogi: game records, hcpe, hcpe3 and psv files become a folder of shards."""

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from yomi.engine.datasets.making import MAKE, announce_kernels, find_files, held_out, plan_shards, readable_files
from yomi.engine.datasets.settings import filled
from yomi.engine.datasets.shards import Columns, Log, ShardMaker, ShardWork, make_shards
from yomi.engine.records import LeftOut
from yomi.engine.shogi.datasets.rows import (
    NO_MOVE,
    ROW_DTYPE,
    SHOGI_SUFFIXES,
    merged,
    move_fault,
    read_rows,
)
from yomi.engine.shogi.selfplay import encoding_of
from yomi.engine.shogi.settings import MAX_SCALE, MIN_SCALE, MakeShogiSettings, ShogiDataOptions
from yomi.native.datasets.packed import set_positions
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI, MAX_HISTORY, POSITION_DTYPE
from yomi.nets.data.shards import Dataset, Manifest, begin_dataset, widths
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import FeatureSet

CHUNK = 256


def make_dataset(
    paths: Sequence[Path], folder: Path, settings: MakeShogiSettings, work: ShardWork, log: Log
) -> Dataset:
    """See Game.make_dataset."""
    from yomi.engine.shogi.descriptor import GAME

    find_files(paths, SHOGI_SUFFIXES)
    announce_kernels(GAME, log)
    options = filled(ShogiDataOptions, settings, merge=not settings.keep_duplicates)
    return make_shogi_dataset(paths, folder, options, log, work)


def make_shogi_dataset(
    paths: Sequence[Path], folder: Path, options: ShogiDataOptions, log: Log, work: ShardWork = MAKE
) -> Dataset:
    """Make or continue a data set. Raises NetworkError or OSError if files, options or folder cannot be used."""
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
    games, numbers = np.unique(rows["game"], return_inverse=True)  # some games have no row
    held = held_out(len(games), options.test_share, options.seed)[numbers[order]]
    planned = plan_shards(order, held, np.full(len(order), SIDE, np.uint8), options.shard_rows)

    def payload(number: int) -> npt.NDArray[np.void]:
        return rows[planned[number][3]]

    maker = ShogiShards(manifest.features, scale)
    return make_shards(dataset, [shard[:3] for shard in planned], maker, payload, log, work)


@dataclass(frozen=True)
class ShogiShards(ShardMaker):
    """Makes shards from rows of positions, which are the payload."""

    features: FeatureSet
    scale: float  # the sigmoid's centipawns

    def columns(self, payload: npt.NDArray[np.void], threads: int) -> Columns:
        count, width = len(payload), widths(self.features, SIDE)
        columns: Columns = {
            "planes": np.zeros((count, width["planes"]), np.uint8),
            "globals": np.zeros((count, self.features.globals), np.float16),
            "policy_moves": np.zeros((count, 1), np.uint16),
            "policy_weights": (payload["move"] != NO_MOVE).astype(np.float16)[:, None],
            "value": np.zeros(count, np.float16),
            "search_value": np.tanh(payload["score"] / (2.0 * self.scale)).astype(np.float16),
        }
        if self.features.levels:
            columns["levels"] = np.zeros((count, width["levels"]), np.uint8)
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(lambda first: _write(payload, self.features, columns, first), range(0, count, CHUNK)):
                pass
        return columns


def chosen_rows(files: Sequence[Path], options: ShogiDataOptions, log: Log, left_out: LeftOut) -> npt.NDArray[np.void]:
    """Return the positions of all files that are within the limits. Raises NetworkError if none is left."""
    parts, game = [], 0
    for path in files:
        try:
            parts.append(read_rows(path, options, game, log))
        except NetworkError as error:
            left_out.add(path, error)
            continue
        game = int(parts[-1]["game"].max()) + 1 if len(parts[-1]) else game
    rows = np.concatenate(parts) if parts else np.zeros(0, ROW_DTYPE)
    log(f"{len(rows)} positions of {len(np.unique(rows['game']))} games read")
    if options.merge and len(rows):
        rows = merged(rows)
        log(f"{len(rows)} positions differ")
    if not len(rows):
        if len(left_out.faults) == len(files):
            raise NetworkError(left_out.faults[0])
        raise NetworkError(f"{files[0]}: no positions left, expected some: see the options that choose games")
    return rows


def fitted_scale(rows: npt.NDArray[np.void]) -> float:
    """Return the scale of the sigmoid, in centipawns and to 1%, that predicts results best.

    Raises NetworkError if there are no results.
    """
    side = 1 + (rows["packed"][:, 0] & 1).astype(np.int8)
    known = np.isfinite(rows["score"]) & (rows["winner"] != 0)
    if not known.any():
        raise NetworkError("no position with an evaluation and a winner found, expected some to fit a scale to")
    # From the winner's point of view, so that a good scale makes them large.
    scores = np.where(rows["winner"] == side, rows["score"], -rows["score"])[known].astype(np.float64)
    scales = np.geomspace(MIN_SCALE, MAX_SCALE, round(np.log(MAX_SCALE / MIN_SCALE) / 0.01))
    low, high = 0, len(scales) - 1
    while low < high:  # the loss has a single minimum
        middle = (low + high) // 2
        here, next_ = (np.logaddexp(0.0, -scores / scales[index]).mean() for index in (middle, middle + 1))
        low, high = (low, middle) if here <= next_ else (middle + 1, high)
    return float(scales[low])


def _write(rows: npt.NDArray[np.void], features: FeatureSet, columns: Columns, first: int) -> None:
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
        # Drop-pawn mates, which no move generator makes, are played in some records.
        if why := move_fault(part[index]):
            raise NetworkError(f"move {why}; expected one that can be played")
    winners = part["winner"]
    signs = np.where(winners == positions["side_to_move"], 1.0, -1.0)
    columns["value"][place] = np.where(winners == 0, 0.0, signs)
    _, encode = encoding_of(features)
    for name, array in encode(positions, history).items():
        columns[name][place] = array
