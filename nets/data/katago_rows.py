"""KataGo's training rows (.npz). Data sets of the features katago-v7 can be exported for its train.py, and rows
imported.

A file holds positions of all board sizes on planes of one side L. Smaller boards are in the upper left corner.

    binaryInputNCHWPacked  uint8[n, 22, (L² + 7) // 8]   the planes' bits
    globalInputNC          float32[n, 19]
    policyTargetsNCMove    int16[n, 2, L² + 1]           policy, and the opponent's next policy; not normalised
    globalTargetsNC        float32[n, 80]                values, scores, weights (see below); older files have 64
    scoreDistrN            int8[n, 2 L² + 120]           distribution of the final score, in percent
    valueTargetsNCHW       int8[n, 5, L, L]              owner, seki, two later positions, score of each point times 120
"""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.errors import reraised
from yomi.nets.arrays import read_npz
from yomi.nets.data.columns import OWNER_SCALE, UNKNOWN_OWNER, Array
from yomi.nets.data.shards import (
    Arrays,
    Dataset,
    Manifest,
    begin_dataset,
    open_dataset,
    shard_name,
    write_shard,
)
from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.nets.metadata import KATAGO_FEATURES

PLANES, GLOBALS, TARGETS, OLD_TARGETS = 22, 19, 80, 64
MAX_SIDE = 19
SCORE_MARGIN = 60  # scores beyond the board's area in a distribution
POLICY_SCALE = 10_000  # a share of 1 as an integer
POINT_SCALE = 120.0
FILE_ROWS = 65_536
TARGET_MOVES = 128  # moves that are kept of a policy
MAX_FILE_BYTES = 8 << 30  # of a file's arrays without compression
REPLY_MOVES, REPLY_WEIGHTS = "own_reply_moves", "own_reply_weights"

# Channels of globalTargetsNC. Each value has four: win, loss, no result, score.
RESULT, LONG, MIDDLE, SHORT, SEARCH = 0, 4, 8, 12, 16
FINAL_SCORE, LEAD, VARIANCE_TIME = 20, 21, 22
# Horizon's weight of the current position: 1 / (1 + factor * board area). The rest goes to later positions.
HORIZONS = {LONG: 0.176, MIDDLE: 0.056, SHORT: 0.016}
NO_SHORT_TERM, ROW, POLICY, OWNERS, REPLY, HAS_LEAD = 24, 25, 26, 27, 28, 29  # weights; the first is 1 minus its weight
SCORING, NO_VALUE = 34, 35
HISTORY = slice(36, 41)  # whether the last moves may be shown
KOMI, IS_AREA, TURN, FINISHED, VERSION = 47, 48, 51, 62, 63
TERRITORY = 9  # of globalInputNC


def to_katago(columns: Arrays, size: int, side: int) -> dict[str, Array]:
    """Convert rows of a data set to KataGo's form.

    Values at KataGo's horizons and the time of the variance are computed from the searches of the game's other rows.
    Rows without a game or search get the result and 0 there. Later positions and seki are missing. Owners are rounded
    to -1, 0, 1.

    Args:
        columns: columns of a shard with the features katago-v7.
        size: board size N.
        side: L, at least N.
    """
    rows, area, points = len(columns["planes"]), size * size, side * side
    bits = np.unpackbits(columns["planes"], axis=1, count=PLANES * area).reshape(rows, PLANES, size, size)
    planes = np.zeros((rows, PLANES, side, side), np.uint8)
    planes[:, :, :size, :size] = bits
    inputs = columns["globals"].astype(np.float32)
    targets = np.zeros((rows, TARGETS), np.float32)
    policies = np.ones((rows, 2, points + 1), np.int16)  # uniform without a target
    for channel, weight, moves, shares in (
        (0, POLICY, "policy_moves", "policy_weights"),
        (1, REPLY, REPLY_MOVES, REPLY_WEIGHTS),
    ):
        if moves in columns:
            found = _policy(columns[moves], columns[shares], size, side)
            known = found.any(1)
            policies[known, channel] = found[known]
            targets[:, weight] = known

    def number(name: str) -> npt.NDArray[np.float32]:
        column = columns.get(name)
        return np.full(rows, np.nan, np.float32) if column is None else column.astype(np.float32)

    value, score, lead = number("value"), number("score_mean"), number("lead")
    result = _first_known(score, lead)
    values = {
        RESULT: (value, result),
        LONG: (value, result),
        MIDDLE: (value, result),
        SHORT: (_first_known(number("short_value"), value), _first_known(number("short_score"), result)),
        SEARCH: (_first_known(number("search_value"), value), result),
    }
    if {"game", "ply", "search_value"} <= columns.keys():
        later, times = _later_values(columns["game"], columns["ply"], number("search_value"), value, area)
        values |= {start: (_first_known(later[start], values[start][0]), values[start][1]) for start in HORIZONS}
        targets[:, VARIANCE_TIME] = np.nan_to_num(times)
    for start, (winning, points_ahead) in values.items():
        targets[:, start] = np.nan_to_num((1.0 + winning) / 2.0)
        targets[:, start + 1] = np.nan_to_num((1.0 - winning) / 2.0)
        targets[:, start + 3] = np.nan_to_num(points_ahead)
    targets[:, NO_VALUE] = targets[:, NO_SHORT_TERM] = ~np.isfinite(value)
    targets[:, LEAD], targets[:, HAS_LEAD] = np.nan_to_num(lead), np.isfinite(lead)
    targets[:, ROW] = targets[:, FINISHED] = 1.0
    targets[:, HISTORY] = 1.0
    targets[:, KOMI] = np.nan_to_num(number("komi"))
    targets[:, IS_AREA] = inputs[:, TERRITORY] == 0.0
    targets[:, TURN] = np.nan_to_num(number("ply"))
    targets[:, VERSION] = 3.0
    owners = columns.get("ownership", np.full((rows, area), UNKNOWN_OWNER, np.int8))
    known = (owners != UNKNOWN_OWNER).all(1) & np.isfinite(result)
    owned = np.where(known[:, None], owners / OWNER_SCALE, 0.0).reshape(rows, size, size)
    spatial = np.zeros((rows, 5, side, side), np.int8)
    spatial[:, 0, :size, :size] = np.rint(owned)
    spatial[:, 4, :size, :size] = np.rint(POINT_SCALE * owned)
    targets[:, OWNERS] = known
    targets[:, SCORING] = known & (targets[:, IS_AREA] > 0.0)  # there a point's owner has the point
    targets[:, FINAL_SCORE] = np.where(known, result, 0.0)
    return {
        "binaryInputNCHWPacked": np.packbits(planes.reshape(rows, PLANES, points), axis=2),
        "globalInputNC": inputs,
        "policyTargetsNCMove": policies,
        "globalTargetsNC": targets,
        "scoreDistrN": _distribution(targets[:, FINAL_SCORE], points),
        "valueTargetsNCHW": spatial,
    }


def _later_values(
    game: Array, ply: Array, searched: npt.NDArray[np.float32], result: npt.NDArray[np.float32], area: int
) -> tuple[dict[int, npt.NDArray[np.float32]], npt.NDArray[np.float32]]:
    """Return each row's value at every horizon, and the expected number of plies until the value changes.

    Values are for the side to move. A value holds until the next searched row of its game; after the last row comes the
    result. NaN if a row of the game has no search or no result. Squared changes of the value weigh the plies.
    """
    values = {start: np.full(len(game), np.nan, np.float32) for start in HORIZONS}
    times = np.full(len(game), np.nan, np.float32)
    for number in np.unique(game):
        rows = np.flatnonzero(game == number)
        plies, first, places = np.unique(ply[rows].astype(np.int64), return_index=True, return_inverse=True)
        sides = np.where(plies % 2, -1.0, 1.0)  # a row may be there several times
        black = sides * searched[rows[first]]
        black = np.append(black, sides[-1] * result[rows[first[-1]]])
        if not np.isfinite(black).all():
            continue
        distances = np.append(plies, plies[-1] + 1) - plies[:, None]
        for start, factor in HORIZONS.items():
            left = np.where(distances < 0, 1.0, (1.0 - 1.0 / (1.0 + factor * area)) ** np.maximum(distances, 0))
            weights = np.append(left[:, :-1] - left[:, 1:], left[:, -1:], axis=1)
            values[start][rows] = (sides * (weights @ black))[places]
        changes = np.where(distances[:, 1:] > 0, np.diff(black) ** 2, 0.0)
        times[rows] = ((changes * distances[:, 1:]).sum(1) / np.maximum(changes.sum(1), 1e-9))[places]
    return values, times


def _first_known(first: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(np.isfinite(first), first, other)


def _policy(moves: Array, weights: Array, size: int, side: int) -> npt.NDArray[np.int16]:
    """Return policies [n, L² + 1] as integers; 0 everywhere without a target."""
    places = np.append(np.arange(side * side).reshape(side, side)[:size, :size].reshape(-1), side * side)
    dense = np.zeros((len(moves), side * side + 1), np.int32)
    shares = np.rint(POLICY_SCALE * weights.astype(np.float32)).astype(np.int32)
    np.add.at(dense, (np.arange(len(moves))[:, None], places[moves]), shares)
    return dense.astype(np.int16)


def _distribution(scores: npt.NDArray[np.float32], points: int) -> npt.NDArray[np.int8]:
    """Return distributions in percent: the two entries around each score. Entry i is the score i - middle + 0.5."""
    middle, length = points + SCORE_MARGIN, 2 * (points + SCORE_MARGIN)
    place = np.clip(scores + middle - 0.5, 0.0, length - 1.0)
    lower = np.minimum(np.floor(place).astype(np.int64), length - 2)
    upper = np.rint(100.0 * (place - lower)).astype(np.int8)
    rows = np.arange(len(scores))
    found = np.zeros((len(scores), length), np.int8)
    found[rows, lower] = 100 - upper
    found[rows, lower + 1] = upper
    return found


def from_katago(arrays: Arrays) -> Iterator[tuple[int, dict[str, Array]]]:
    """Convert KataGo's rows. Yield (board size, columns) for each board size.

    Rows of weight 0 and on boards that are not square are left out. `own_reply_...` is the opponent's next policy.

    Raises:
        NetworkError: an array is missing or has another shape.
    """
    side = _side(arrays)
    points, rows = side * side, len(arrays["globalInputNC"])
    planes = np.unpackbits(arrays["binaryInputNCHWPacked"], axis=2, count=points).reshape(rows, PLANES, side, side)
    on_board = planes[:, 0]
    width, height = on_board[:, 0].sum(1), on_board[:, :, 0].sum(1)
    kept = (width == height) & (arrays["globalTargetsNC"][:, ROW] > 0.0)
    for size in np.unique(width[kept]).tolist():
        chosen = np.flatnonzero(kept & (width == size))
        targets, area = arrays["globalTargetsNC"][chosen].astype(np.float32), size * size
        policies = arrays["policyTargetsNCMove"][chosen].astype(np.float32)
        board = np.append(np.arange(points).reshape(side, side)[:size, :size].reshape(-1), points)
        moves, weights = _sparse(policies[:, 0, board], targets[:, POLICY])
        reply_moves, reply_weights = _sparse(policies[:, 1, board], targets[:, REPLY])
        owners = arrays["valueTargetsNCHW"][chosen, 0, :size, :size].reshape(len(chosen), area)
        has_owners, has_value = targets[:, OWNERS] > 0.0, targets[:, NO_VALUE] < 1.0
        has_short = targets[:, NO_SHORT_TERM] < 1.0
        score = np.where(has_value, targets[:, RESULT + 3], np.nan)
        yield (
            int(size),
            {
                "planes": np.packbits(planes[chosen][:, :, :size, :size].reshape(len(chosen), PLANES * area), axis=1),
                "globals": arrays["globalInputNC"][chosen],
                "policy_moves": moves,
                "policy_weights": weights,
                REPLY_MOVES: reply_moves,
                REPLY_WEIGHTS: reply_weights,
                "value": np.where(has_value, targets[:, RESULT] - targets[:, RESULT + 1], np.nan),
                "search_value": np.where(has_short, targets[:, SEARCH] - targets[:, SEARCH + 1], np.nan),
                "short_value": np.where(has_short, targets[:, SHORT] - targets[:, SHORT + 1], np.nan),
                "short_score": np.where(has_short, targets[:, SHORT + 3], np.nan),
                "lead": np.where(targets[:, HAS_LEAD] > 0.0, targets[:, LEAD], np.nan),
                "score_mean": score,
                "komi": targets[:, KOMI],
                "ownership": np.where(has_owners[:, None], OWNER_SCALE * owners, UNKNOWN_OWNER),
            },
        )


def _side(arrays: Arrays) -> int:
    """Check all arrays, and return the side L of their planes."""
    names = ("binaryInputNCHWPacked", "globalInputNC", "policyTargetsNCMove", "globalTargetsNC", "valueTargetsNCHW")
    for name in names:
        if name not in arrays:
            raise NetworkError(f"no array {name} found, expected KataGo's training rows with {PLANES} planes")
    side = int(arrays["valueTargetsNCHW"].shape[-1])
    rows, points = len(arrays["globalInputNC"]), side * side
    shapes = {
        "binaryInputNCHWPacked": (rows, PLANES, (points + 7) // 8),
        "globalInputNC": (rows, GLOBALS),
        "policyTargetsNCMove": (rows, 2, points + 1),
        "valueTargetsNCHW": (rows, 5, side, side),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise NetworkError(f"{name} of shape {arrays[name].shape} found, expected {shape}")
    found = arrays["globalTargetsNC"].shape
    if found not in ((rows, TARGETS), (rows, OLD_TARGETS)) or not 1 < side <= MAX_SIDE:
        raise NetworkError(
            f"globalTargetsNC of shape {found} found, expected {rows} rows of {TARGETS}, boards up to 19"
        )
    return side


def _sparse(dense: npt.NDArray[np.float32], known: Array) -> tuple[Array, Array]:
    """Return the moves and shares of the greatest entries of policies. Where `known` is false, shares are 0."""
    width = min(TARGET_MOVES, dense.shape[1])
    moves = np.argsort(-dense, axis=1, kind="stable")[:, :width]
    kept = np.where(known[:, None] > 0.0, np.maximum(np.take_along_axis(dense, moves, 1), 0.0), 0.0)
    return moves, kept / np.maximum(kept.sum(1, keepdims=True), 1.0)


def export_rows(dataset: Dataset, folder: Path, side: int) -> int:
    """Write a data set for KataGo's train.py (-datadir FOLDER). Return the number of training rows.

    Rows of all shards are mixed at random in files of FILE_ROWS.

    Raises:
        NetworkError: the data set has other features, larger boards, or is damaged.
        OSError: the folder cannot be written.
    """
    if dataset.manifest.feature_set != KATAGO_FEATURES:
        found = dataset.manifest.feature_set
        raise NetworkError(f"{dataset.folder}: features {found} found, expected {KATAGO_FEATURES} for KataGo's rows")
    largest = max((shard.size for shard in dataset.shards), default=0)
    if not largest <= side <= MAX_SIDE:
        raise NetworkError(f"--side {side} found, expected {largest} to {MAX_SIDE} for boards of {largest}×{largest}")
    rng = np.random.default_rng(1)
    for split, name in (("train", "train"), ("test", "val")):
        waiting: list[dict[str, Array]] = []
        shards = [shard for shard in dataset.shards if shard.split == split]
        order = rng.permutation(len(shards)).tolist()
        (folder / name).mkdir(parents=True, exist_ok=True)
        number = 0
        for place, index in enumerate(order):
            waiting.append(to_katago(shards[index].open(), shards[index].size, side))
            if sum(len(part["globalInputNC"]) for part in waiting) >= FILE_ROWS or place == len(order) - 1:
                _write(folder / name / f"{number:05d}.npz", waiting, rng)
                waiting, number = [], number + 1
    total = dataset.rows("train")
    write_atomically(folder / "train.json", json.dumps({"range": [0, total]}).encode())
    return total


def _write(path: Path, parts: Sequence[Arrays], rng: np.random.Generator) -> None:
    """Write rows in random order as a file, and the number of rows beside it."""
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = rng.permutation(len(arrays["globalInputNC"]))
    content = io.BytesIO()
    mixed: dict[str, Any] = {name: array[order] for name, array in arrays.items()}
    np.savez_compressed(content, **mixed)
    write_atomically(path, content.getvalue())
    write_atomically(path.with_suffix(".json"), json.dumps({"num_rows": len(order)}).encode())


def import_rows(files: Sequence[Path], folder: Path) -> Dataset:
    """Write KataGo's rows as a data set and return it. After a kill, the same call continues.

    Raises:
        NetworkError: a file is damaged or of another kind, or the folder contains another data set.
        OSError: a file cannot be read or written.
    """
    sources = tuple(path.name for path in files)
    found = begin_dataset(folder, Manifest(KATAGO_FEATURES, sources=sources)).shards
    present = {shard.path.name for shard in found}
    last = max((shard.number for shard in found), default=0)  # a part of its sizes may be missing
    for number, path in list(enumerate(files))[last:]:
        with reraised(NetworkError, NetworkError, f"{path}: "), path.open("rb") as stream:
            parts = list(from_katago(read_npz(stream, MAX_FILE_BYTES)))
        if not parts:
            raise NetworkError(f"{path}: no rows of square boards found, expected some")
        for size, columns in parts:
            order = np.random.default_rng([number, size]).permutation(len(columns["value"]))
            mixed = {name: array[order] for name, array in columns.items()}
            if (name := shard_name("train", size, number)) not in present:
                write_shard(folder, name, "train", size, mixed)
    return open_dataset(folder)
