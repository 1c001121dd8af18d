"""From a finished game to rows of a data set (yomi.nets.data.shards)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, DRAW
from yomi.engine.learning.policies import Found
from yomi.engine.learning.selfplay import Finished, Ply
from yomi.native.datasets.positions import encode_positions, index_moves
from yomi.nets.data.shards import COLUMNS, OWNER_SCALE, UNKNOWN_OWNER, Array, shard_name, write_shard
from yomi.nets.files import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from yomi.engine.learning.learnable import Learnable
    from yomi.engine.players.request import Decision
    from yomi.engine.search.report import Counts
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Arrays
    from yomi.nets.features import FeatureSet

MOST_MOVES = 128
"""Moves that a policy target names; of more the likeliest."""
FINEST = 1000
"""Visits, at least, by which records tell a policy."""
SHORT_TERM = 0.25
"""Weight of a position among those that follow it, in its short-term value: their mean distance is 3 positions."""


def rows_of(
    finished: Finished[Any],
    learnable: Learnable[Any],
    surprise: float,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Return the rows of one game; a position may have several, or none, by its surprise.

    Args:
        finished: the game.
        learnable: its kind.
        surprise: share of the rows that goes to positions by the policy's surprise.
        rng: draws how often a position is written.
    """
    spec = learnable.spec
    learned = [index for index, ply in enumerate(finished.plies) if ply.learned]
    copies = _copies(np.array([_target(finished.plies[each])[2] for each in learned]), surprise, rng)
    chosen = [index for index, count in zip(learned, copies, strict=True) for _ in range(count)]
    plies = [finished.plies[index] for index in chosen]
    positions = np.concatenate([ply.position for ply in plies]) if plies else spec.positions(0)
    for name, value in spec.position_flags:
        positions[name] = value
    columns = dict(learnable.show(positions, finished.game.history))
    columns |= _policy(plies, positions, spec)
    columns |= _labels(finished, learnable, chosen, positions)
    columns["ply"] = _begun_with(finished) + np.array(chosen, np.int64)
    return {name: np.ascontiguousarray(array, COLUMNS[name][0]) for name, array in columns.items()}


def noted(finished: Finished[Any]) -> list[Ply | None]:
    """Return what was found of each move of a game's record; None of those that it began with."""
    before = _begun_with(finished)
    return [None] * before + list(finished.plies[: len(finished.game.moves) - before])


def _begun_with(finished: Finished[Any]) -> int:
    """Return how many moves the record has before those of the plies."""
    initial: int = finished.game.ply - len(finished.game.moves)
    return finished.first - initial


def counts_of(ply: Ply) -> Counts:
    """Return the policy that is learned from a position as numbers of visits, the greatest first; else none.

    They are thousandths at least: an improved policy is finer than its visits. What rounds to 0 is left out.
    """
    if ply.found is None or not ply.learned:
        return ()
    found = ply.found
    order = np.argsort(-found.target, kind="stable")
    numbers = np.rint(found.target[order] * max(found.visits, FINEST)).astype(int)
    pairs = zip(found.moves[order].tolist(), numbers.tolist(), strict=True)
    return tuple((move, number) for move, number in pairs if number)


def ply_of(position: np.void, decision: Decision, spec: GameSpec) -> Ply:
    """Return what a player has decided as a ply of self-play; one without visits is not learned.

    Args:
        position: before the move.
        decision: has a move.
        spec: of the game as the rows show it.
    """
    assert decision.move is not None
    ply, report = Ply(spec.positions(1)), decision.report
    ply.position[0] = position
    if report.counts:
        moves, visits = np.array(report.counts, np.int64).T
        value, target = 2.0 * report.winrate - 1.0, visits / visits.sum()
        ply.found = Found(decision.move, value, report.score_lead, report.visits, moves, target, surprise=0.0)
        ply.learned = True
    return ply


def write_games(
    folder: Path, records: Path, number: int, size: int, suffix: str, games: Sequence[tuple[Arrays, bytes]]
) -> None:
    """Write the rows of games as a shard, and before it their records as one file of the same name.

    Args:
        folder: of the data set.
        records: where the records lie.
        number: of the shard.
        size: of the board's side.
        suffix: of the records.
        games: rows, of which `game` is set here, and record of each; none is without rows.

    Raises:
        OSError: they cannot be written; there is no shard then.
    """
    name = shard_name("train", size, number)
    path = records / f"{name.removeprefix('train-')}{suffix}"
    write_atomically(path, b"".join(record for _, record in games), sync=True)
    columns = {column: np.concatenate([rows[column] for rows, _ in games]) for column in games[0][0]}
    columns["game"] = np.repeat(np.arange(len(games)), [len(rows["value"]) for rows, _ in games])
    write_shard(folder, name, "train", size, columns)


def _target(ply: Ply) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float]:
    assert ply.found is not None
    return ply.found.moves, ply.found.target, ply.found.surprise


def _copies(surprises: npt.NDArray[np.float64], share: float, rng: np.random.Generator) -> list[int]:
    """Return how often each position is written: once on average, a share of it by its part of all surprise."""
    total = surprises.sum()
    weights = np.ones(len(surprises))
    if total > 0.0:
        weights = (1.0 - share) + share * surprises * (len(surprises) / total)
    copies: list[int] = np.floor(weights + rng.random(len(weights))).astype(int).tolist()
    return copies


def planes_of(
    positions: npt.NDArray[np.void], history: Array, spec: GameSpec, features: FeatureSet
) -> dict[str, npt.NDArray[Any]]:
    """Return planes and globals of positions of one game, whose history is shared; see Learnable.show."""
    rows = len(positions)
    planes = np.zeros((rows, *spec.planes_shape), np.float32)
    extras = np.zeros((rows, *spec.extras_shape), np.float32)
    encode_positions(positions, history, np.zeros(1, spec.scratch_dtype), planes, extras)
    bits = planes[:, : features.bits].reshape(rows, features.bits * planes.shape[-1] ** 2) != 0.0
    columns: dict[str, npt.NDArray[Any]] = {"planes": np.packbits(bits, axis=1)}
    if features.globals:  # the first of a constant plane stands for it
        each = math.prod(spec.extras_shape) // features.globals
        columns["globals"] = extras.reshape(rows, features.globals, each)[:, :, 0]
    return columns


def _policy(plies: list[Ply], positions: npt.NDArray[np.void], spec: GameSpec) -> dict[str, npt.NDArray[Any]]:
    width = min(spec.max_moves, MOST_MOVES)
    moves = np.zeros((len(plies), width), np.uint16)
    weights = np.zeros((len(plies), width))
    counts = np.zeros(len(plies), np.int64)
    for row, ply in enumerate(plies):
        named, target, _ = _target(ply)
        best = np.argsort(-target, kind="stable")[:width]
        counts[row] = len(best)
        moves[row, : len(best)] = named[best]
        weights[row, : len(best)] = target[best] / target[best].sum()
    indices = np.zeros_like(moves)
    index_moves(positions, moves, counts, indices)
    return {"policy_moves": indices, "policy_weights": weights}


def _labels(
    finished: Finished[Any], learnable: Learnable[Any], chosen: list[int], positions: npt.NDArray[np.void]
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of values, for the side to move."""
    outcome = finished.outcome
    sides = positions["side_to_move"]
    signs = np.where(sides == BLACK, 1.0, -1.0)
    result = 0.0 if outcome.winner == DRAW else 1.0 if outcome.winner == BLACK else -1.0
    values, scores = _searched(finished)
    short_values, short_scores = _short_term(values, result), _short_term(scores, outcome.margin)
    columns = {
        "value": signs * result,
        "search_value": signs * values[chosen],
        "short_value": signs * short_values[chosen],
    }
    if learnable.points:
        margin = np.nan if outcome.margin is None else outcome.margin
        columns["lead"] = columns["score_mean"] = signs * margin
        # Of a normal distribution the mean error is 0.8 standard deviations.
        columns["score_stdev"] = np.abs(margin - scores[chosen]) / 0.8
        columns["short_score"] = signs * short_scores[chosen]
        columns["komi"] = -signs * learnable.komi(finished.game)
    if area := learnable.spec.area:
        unknown = np.full((len(chosen), area), UNKNOWN_OWNER)
        owners = outcome.owners
        columns["ownership"] = unknown if owners is None else np.rint(OWNER_SCALE * signs[:, None] * owners)
    return columns


def _searched(finished: Finished[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return what the searches said of each ply, Black's value and score; NaN where nothing was searched."""
    found = np.full((2, len(finished.plies)), np.nan)
    for index, ply in enumerate(finished.plies):
        if ply.found is not None:
            sign = 1.0 if ply.position["side_to_move"][0] == BLACK else -1.0
            found[:, index] = sign * ply.found.value, sign * ply.found.score
    return found[0], found[1]


def _short_term(searched: npt.NDArray[np.float64], result: float | None) -> npt.NDArray[np.float64]:
    """Return the mean of what follows each position, weighted less the further it is; the result comes last."""
    after = np.nan if result is None else result
    means = np.full(len(searched), after)
    for index in range(len(searched) - 1, -1, -1):
        means[index] = after
        if not np.isnan(searched[index]):
            after = searched[index] if np.isnan(after) else SHORT_TERM * searched[index] + (1.0 - SHORT_TERM) * after
    return means
