"""`yomi dataset make` for shogi: game records, hcpe, hcpe3 and psv files become a folder of shards.

`ShogiEncoder` turns its boards into inputs of sparse networks (yomi.native.sparse.shogi).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.clusters.actors import Places
from yomi.engine.datasets.making import MAKE, Columns, Log, held_out, plan_shards, readable_files
from yomi.engine.datasets.parts import ShardWork
from yomi.engine.datasets.sparse import MoveProducts
from yomi.engine.datasets.units import make_shards
from yomi.engine.records import LeftOut
from yomi.engine.shogi.datasets.rows import (
    NO_MOVE,
    SHOGI_SUFFIXES,
    ShogiLimits,
    concatenated,
    merged,
    move_fault,
    read_rows,
)
from yomi.native.datasets.packed import set_positions, write_boards
from yomi.native.datasets.positions import encode_positions
from yomi.native.datasets.sparse import encode_boards
from yomi.native.shogi.pieces import HAND_TYPES, KING, PROMOTION, WHITE_PIECE
from yomi.native.shogi.position import FORM_ALPHAZERO, FORM_DLSHOGI, MAX_HISTORY, MAX_MOVES, POSITION_DTYPE
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.shogi import INPUTS, MAX_ACTIVE, PARTS, SCRATCH_DTYPE, TABLES
from yomi.nets.data.shards import Dataset, Manifest, begin_dataset, widths
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import SHOGI_BOARD, FeatureSet
from yomi.nets.sparse import SparseRows

CHUNK = 256
# Centipawns of dlshogi's sigmoid: this score is a winrate of 1 / (1 + 1 / e).
SCORE_SCALE = 756.0864962951762
MIN_SCALE, MAX_SCALE = 50.0, 20_000.0  # range of the sigmoid's centipawns


@dataclass(frozen=True)
class ShogiDataOptions(ShogiLimits):
    """Settings that determine a data set; stored in its manifest."""

    features: str = "dlshogi-62-57"
    merge: bool = True  # merge duplicates of a position
    test_share: float = 0.03
    limit: int = 0
    shard_rows: int = 65536
    seed: int = 1
    score_scale: float = SCORE_SCALE  # centipawns of the sigmoid from evaluations to winrates; 0: fitted to the results


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
    held = held_out(int(rows["game"].max()) + 1, options.test_share, options.seed)[rows["game"][order]]
    planned = plan_shards(order, held, np.full(len(order), SIDE, np.uint8), options.shard_rows)

    def payload(number: int) -> npt.NDArray[np.void]:
        return rows[planned[number][3]]

    maker = ShogiShards(manifest.features, scale)
    return make_shards(dataset, [shard[:3] for shard in planned], maker, payload, log, work)


@dataclass(frozen=True)
class ShogiShards:
    """Makes shards of positions. The payload is their rows."""

    features: FeatureSet
    scale: float  # the sigmoid's centipawns
    networks: tuple[str, ...] = ()

    def move(self, places: Places) -> None:
        pass

    def columns(self, payload: npt.NDArray[np.void], threads: int) -> Columns:
        with ThreadPoolExecutor(threads) as pool:
            return shard_columns(pool, payload, self.features, self.scale)

    def close(self) -> None:
        pass


def chosen_rows(files: Sequence[Path], options: ShogiDataOptions, log: Log, left_out: LeftOut) -> npt.NDArray[np.void]:
    """Return the positions of all files within the limits. Raises NetworkError if none is left."""
    parts, game = [], 0
    for path in files:
        try:
            parts.append(read_rows(path, options, game, log))
        except NetworkError as error:
            left_out.add(path, error)
            continue
        game = int(parts[-1]["game"].max()) + 1 if len(parts[-1]) else game
    rows = concatenated(parts)
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
    """Return the sigmoid's centipawns that predict results best, to 1%. Raises NetworkError without results."""
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


def shard_columns(pool: ThreadPoolExecutor, rows: npt.NDArray[np.void], features: FeatureSet, scale: float) -> Columns:
    """Return the columns of one shard; `scale` is the sigmoid's centipawns."""
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
        if why := move_fault(part[index]):
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


# -- inputs of sparse networks -----------------------------------------------------------------------------------------

# Pieces of each kind in a full set, kings last. The first entry stands for numbers that are not pieces.
PIECES = np.array([0, 18, 4, 4, 4, 2, 2, 4, 2])
EMPTY = len(PIECES)


def _kinds() -> npt.NDArray[np.uint8]:
    # The kind of each number on a board, promoted or not; EMPTY if there is no piece.
    kinds = np.zeros(256, np.uint8)
    kinds[0] = EMPTY
    for code in range(1, KING + 7):
        kinds[code] = kinds[code + WHITE_PIECE] = code if code <= KING else code - PROMOTION
    return kinds


KIND_OF = _kinds()


class ShogiEncoder(MoveProducts):
    """Encodes levels and globals of the feature set shogi-board. Implements yomi.nets.sparse.SparseEncoder.

    Moves are those of a search (yomi.native.shogi.waivers). Boards have no history, so repetitions are ignored.
    """

    inputs = INPUTS
    max_active = MAX_ACTIVE
    tables: tuple[int, ...] = TABLES

    def encode(self, levels: npt.NDArray[np.uint8], globals_: npt.NDArray[Any]) -> SparseRows:
        boards, hands = levels[:, 0], globals_.astype(np.uint8)
        _check(boards, hands)
        count = len(boards)
        position = np.zeros(1, POSITION_DTYPE)[0]
        position["form"] = FORM_DLSHOGI
        # Most of these places stay untouched, and take no memory.
        active, rows = np.empty(count * MAX_ACTIVE, np.int32), np.empty((count * MAX_MOVES, PARTS), np.int32)
        labels = np.empty(count * MAX_MOVES, np.int32)
        active_starts, starts = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
        encode_boards(
            np.ascontiguousarray(boards),
            hands.reshape(count, 2, 7),
            position,
            np.zeros(MAX_HISTORY, np.uint64),
            np.zeros(1, SCRATCH_DTYPE)[0],
            np.zeros(MAX_MOVES, np.uint16),
            active,
            active_starts,
            rows,
            labels,
            starts,
        )
        return SparseRows(active[: active_starts[-1]], active_starts, rows[: starts[-1]], labels[: starts[-1]], starts)


def encoder_of(features: str) -> ShogiEncoder | None:
    return ShogiEncoder() if features == SHOGI_BOARD else None


def _check(boards: npt.NDArray[np.uint8], hands: npt.NDArray[np.uint8]) -> None:
    # Kernels have room for the pieces of one set only.
    kinds = KIND_OF[boards]
    counts = np.stack([(kinds == kind).sum(1) for kind in range(len(PIECES))], axis=1)
    counts[:, list(HAND_TYPES)] += hands.reshape(-1, 2, 7).sum(1, dtype=np.int64)
    if (counts > PIECES).any():
        row, kind = np.argwhere(counts > PIECES)[0].tolist()
        what = f"pieces of kind {kind}" if kind else "squares with a number that is no piece"
        raise NetworkError(f"a board with {counts[row, kind]} {what} found, expected at most {PIECES[kind]}")
