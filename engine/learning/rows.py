"""Converts finished games to the rows of a data set (`yomi.nets.data.shards`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, DRAW
from yomi.engine.learning.policies import SearchResult
from yomi.engine.learning.selfplay import FinishedGame, Learnable, Ply
from yomi.engine.play import Ended, G
from yomi.engine.players.request import Decision
from yomi.engine.search.types import Counts
from yomi.native.game_calls import encode_positions, index_legal_moves, index_moves
from yomi.native.spec import GameSpec
from yomi.nets.data.columns import OWN, OWNER_SCALE, UNKNOWN_OWNER, Array, cast, kind_of
from yomi.nets.data.shards import Arrays, Manifest, Shard, begin_dataset, shard_name, write_shard
from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.nets.metadata import FeatureSet

MAX_TARGET_MOVES = 128  # moves in a policy target; the most probable ones are kept
MIN_POLICY_COUNT = 1000  # minimum number of visits by which records express a policy
# Returns further columns of a game's rows (docs/how-to/learning.md). Arguments: the game, its learnable, and for each
# row the index of its ply.
Targets: TypeAlias = "Callable[[FinishedGame[Any], Learnable[Any], Sequence[int]], Mapping[str, Array]]"
# Weight of the next position in the short-term value, an exponential mean (mean distance: 3 positions)
SHORT_TERM = 0.25


def rows_of(
    finished: FinishedGame[Any],
    learnable: Learnable[Any],
    surprise: float,
    rng: np.random.Generator,
    targets: Targets | None = None,
) -> dict[str, Array]:
    """Return the rows of one game. Some positions get several rows, others none: a share `surprise` follows policy
    surprise.

    `targets` adds columns.

    Raises:
        NetworkError: `targets` returns something else than columns.
    """
    spec = learnable.spec
    learned = [index for index, ply in enumerate(finished.plies) if ply.full_search]
    copies = _copies(np.array([_target(finished.plies[index])[2] for index in learned]), surprise, rng)
    chosen = [index for index, count in zip(learned, copies, strict=True) for _ in range(count)]
    plies = [finished.plies[index] for index in chosen]
    positions = np.concatenate([ply.position for ply in plies]) if plies else spec.positions(0)
    for name, value in spec.position_flags:
        positions[name] = value
    columns = dict(learnable.encode(positions, finished.game.history))
    columns["policy_moves"], columns["policy_weights"] = _policy(plies, positions, spec)
    columns |= _labels(finished, learnable, chosen, positions)
    columns["ply"] = _opening_length(finished) + np.array(chosen, np.int64)
    columns["progress"] = columns["ply"] / len(finished.game.moves)
    if targets is not None:
        columns |= _own_columns(targets(finished, learnable, chosen), len(chosen))
    return {name: cast(name, array) for name, array in columns.items()}


def _own_columns(found: Mapping[str, Array], rows: int) -> dict[str, Array]:
    """Check the names, lengths and axes of a user's columns, and return them."""
    for name, array in found.items():
        kind = kind_of(name)
        if kind is None or not name.startswith(OWN):
            raise NetworkError(f"targets: column {name!r} found, expected a name that begins with {OWN}")
        if len(array) != rows or array.ndim != kind.axes:
            expected = f"{rows} rows, {kind.meaning}"
            raise NetworkError(f"targets: column {name} of shape {array.shape} found, expected {expected}")
    return {name: np.rint(OWNER_SCALE * array) if name.endswith("_points") else array for name, array in found.items()}


def policy_of(plies: Sequence[Ply | None], learnable: Learnable[Any]) -> tuple[Array, Array]:
    """Return the search results of plies as policy indices and shares, both [n, K]. Without a search all shares are 0.

    K is the same for all games of a run. The indices are those of the ply's own side to move. Users' targets call this
    (docs/how-to/learning.md).
    """
    spec = learnable.spec
    known = [row for row, ply in enumerate(plies) if ply is not None and ply.found is not None]
    searched = [ply for ply in plies if ply is not None and ply.found is not None]
    positions = np.concatenate([ply.position for ply in searched]) if searched else spec.positions(0)
    for name, value in spec.position_flags:
        positions[name] = value
    moves, weights = (np.zeros((len(plies), _target_width(spec)), dtype) for dtype in (np.uint16, np.float64))
    moves[known], weights[known] = _policy(searched, positions, spec)
    return moves, weights


def plies_by_move(finished: FinishedGame[Any]) -> list[Ply | None]:
    """Return a list with the ply of each recorded move; None for the moves of the opening."""
    before = _opening_length(finished)
    return [None] * before + list(finished.plies[: len(finished.game.moves) - before])


def _opening_length(finished: FinishedGame[Any]) -> int:
    initial: int = finished.game.ply - len(finished.game.moves)
    return finished.first - initial


def counts_of(ply: Ply) -> Counts:
    """Return the policy target of a ply as visit counts, greatest first; empty after a cheap search.

    The counts add up to at least MIN_POLICY_COUNT, so that the small shares of an improved policy are not lost.
    """
    if ply.found is None or not ply.full_search:
        return ()
    found = ply.found
    order = np.argsort(-found.target, kind="stable")
    numbers = np.rint(found.target[order] * max(found.visits, MIN_POLICY_COUNT)).astype(int)
    pairs = zip(found.moves[order].tolist(), numbers.tolist(), strict=True)
    return tuple((move, number) for move, number in pairs if number)


def ply_of(position: np.void, decision: Decision, spec: GameSpec) -> Ply:
    """Convert a player's decision, which has a move, to a ply. Without visits the ply is not learned from."""
    assert decision.move is not None
    ply, report = Ply(spec.positions(1)), decision.report
    ply.position[0] = position
    if report.counts:
        moves, visits = np.array(report.counts, np.int64).T
        value, target = 2.0 * report.winrate - 1.0, visits / visits.sum()
        ply.found = SearchResult(decision.move, value, report.score_lead, report.visits, moves, target, surprise=0.0)
        ply.full_search = True
    return ply


def write_games(
    folder: Path, records: Path, number: int, size: int, suffix: str, games: Sequence[tuple[Arrays, bytes]]
) -> None:
    """Write the rows of some games as a shard. Before that, write their records as one file.

    Each game consists of rows (at least one) and a record. The column `game` is set here.

    Raises:
        OSError: writing failed. There is no shard then.
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
    """Return the number of rows of each position, on average 1. A `share` is proportional to the surprise."""
    total = surprises.sum()
    weights = np.ones(len(surprises))
    if total > 0.0:
        weights = (1.0 - share) + share * surprises * (len(surprises) / total)
    copies: list[int] = np.floor(weights + rng.random(len(weights))).astype(int).tolist()
    return copies


def planes_of(
    positions: npt.NDArray[np.void], history: Array, spec: GameSpec, features: FeatureSet
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns `planes` (packed bits) and `globals` of positions of one game, as data sets store them."""
    rows = len(positions)
    planes = np.zeros((rows, *spec.planes_shape), np.float32)
    extras = np.zeros((rows, *spec.extras_shape), np.float32)
    encode_positions(positions, history, np.zeros(1, spec.scratch_dtype), planes, extras)
    bits = planes[:, : features.bits].reshape(rows, features.bits * planes.shape[-1] ** 2) != 0.0
    columns: dict[str, npt.NDArray[Any]] = {"planes": np.packbits(bits, axis=1)}
    if features.joined:
        columns["globals"] = planes[:, features.bits :, 0, 0]
    elif features.globals:  # a global is a constant plane: keep its first point
        area = math.prod(spec.extras_shape) // features.globals
        columns["globals"] = extras.reshape(rows, features.globals, area)[:, :, 0]
    return columns


def _target_width(spec: GameSpec) -> int:
    return min(spec.max_moves, MAX_TARGET_MOVES)


def _policy(plies: list[Ply], positions: npt.NDArray[np.void], spec: GameSpec) -> tuple[Array, Array]:
    width = _target_width(spec)
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
    return indices, weights


def _labels(
    finished: FinishedGame[Any], learnable: Learnable[Any], chosen: list[int], positions: npt.NDArray[np.void]
) -> dict[str, npt.NDArray[Any]]:
    """Return the value columns of positions, for the side to move."""
    outcome = finished.outcome
    sides = positions["side_to_move"]
    signs = np.where(sides == BLACK, 1.0, -1.0)
    result = 0.0 if outcome.winner == DRAW else 1.0 if outcome.winner == BLACK else -1.0
    values, scores = _search_results(finished)
    short_values, short_scores = _short_term(values, result), _short_term(scores, outcome.margin)
    columns = {
        "value": signs * result,
        "search_value": signs * values[chosen],
        "short_value": signs * short_values[chosen],
    }
    if learnable.has_score:
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


def _search_results(finished: FinishedGame[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return Black's value and score of each ply's search; NaN without a search."""
    found = np.full((2, len(finished.plies)), np.nan)
    for index, ply in enumerate(finished.plies):
        if ply.found is not None:
            sign = 1.0 if ply.position["side_to_move"][0] == BLACK else -1.0
            found[:, index] = sign * ply.found.value, sign * ply.found.score
    return found[0], found[1]


def _short_term(searched: npt.NDArray[np.float64], result: float | None) -> npt.NDArray[np.float64]:
    # An exponential mean over the following positions. The result of the game comes last.
    after = np.nan if result is None else result
    means = np.full(len(searched), after)
    for index in range(len(searched) - 1, -1, -1):
        means[index] = after
        if not np.isnan(searched[index]):
            after = searched[index] if np.isnan(after) else SHORT_TERM * searched[index] + (1.0 - SHORT_TERM) * after
    return means


# -- growing data sets, and their check against the records -----------------------------------------------------------

RECORDS = "games"  # folder of the records
NEEDED = ("game", "ply")  # columns that connect a row with its record
SHARD_ROWS = 512
Encoder = Callable[["npt.NDArray[np.void]", "Array"], "Arrays"]  # see Learnable.encode


@dataclass(frozen=True, slots=True)
class RecordedGame(Generic[G]):
    game: G  # without its moves
    moves: list[int]
    winner: int | None  # BLACK, WHITE or DRAW; None if the record does not contain it
    margin: float | None = None  # Black's lead in points


def record_beside(shard: Shard) -> Path | None:
    """Return the file with the records of a shard's games; None if the rows do not name their games.

    Raises:
        NetworkError: neither the data set's folder `games` nor the one beside the data set contains it.
    """
    if not all((shard.path / f"{name}.npy").exists() for name in NEEDED):
        return None
    stem = shard.path.name.partition("-")[2]
    folders = [shard.path.parent / RECORDS, shard.path.parent.parent / RECORDS]
    found = [path for folder in folders for path in sorted(folder.glob(f"{stem}.*"))]
    if not found:
        raise NetworkError(
            f"{shard.path}: no games of its rows found, expected {stem}.* in {folders[0]} or {folders[1]}"
        )
    return found[0]


def check_rows(shard: Shard, games: list[RecordedGame[Any]], spec: GameSpec, encode: Encoder) -> Iterator[str]:
    """Replay the games of a shard and compare its rows with them. The shard must have the columns NEEDED.

    Yields one line for each fault: wrong inputs, wrong results, illegal policy moves, or more moves than the game has.
    """
    columns = shard.open()
    order = np.argsort(columns["game"], kind="stable")
    numbers, starts = np.unique(columns["game"][order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        place = f"{shard.path.name}, game {number}"
        if number >= len(games):
            yield f"{place}: {len(rows)} rows found, but the record has only {len(games)} games"
            continue
        game = games[number]
        late = columns["ply"][rows] > len(game.moves)
        for row in rows[late].tolist():
            yield f"{place}, row {row} after {columns['ply'][row]} moves: the game has {len(game.moves)}"
        rows = rows[~late]
        plies = columns["ply"][rows].astype(np.int64)
        for row, fault in _faults(game, {name: columns[name][rows] for name in columns}, plies, spec, encode):
            yield f"{place}, row {rows[row]} after {plies[row]} moves: {fault}"


def _faults(
    recorded: RecordedGame[Any], columns: Arrays, plies: npt.NDArray[np.int64], spec: GameSpec, encode: Encoder
) -> Iterator[tuple[int, str]]:
    """Yield (index, fault) of each wrong row of one game."""
    positions, history = _played(recorded, int(plies.max(initial=0)) + 1, spec)
    positions = positions[plies]
    expected = {**encode(positions, history), **_recorded_labels(recorded, positions)}
    for name, values in expected.items():
        if name in columns:
            found, wanted = columns[name].reshape(len(plies), -1), values.astype(columns[name].dtype)
            for row in np.flatnonzero((found != wanted.reshape(len(plies), -1)).any(1)).tolist():
                yield row, _difference(name, found[row], wanted.reshape(len(plies), -1)[row])
    legal = _legal(positions, history, spec)
    named = columns["policy_weights"] > 0
    for row in range(len(plies)):
        moves = columns["policy_moves"][row][named[row]]
        if len(beyond := moves[~legal[row, moves]]):
            yield row, f"policy_moves {', '.join(map(str, beyond.tolist()))} found, expected legal moves"


def _difference(name: str, found: Array, wanted: Array) -> str:
    where = np.flatnonzero(found != wanted)
    first = where[0]
    return f"{name} {found[first]} found, expected {wanted[first]} (number {first}, the first of {len(where)})"


def _played(recorded: RecordedGame[Any], count: int, spec: GameSpec) -> tuple[npt.NDArray[np.void], Array]:
    game, positions = recorded.game, spec.positions(count)
    for ply in range(count):
        if ply:
            game.push(recorded.moves[ply - 1])
        positions[ply] = game.position
    for name, value in spec.position_flags:
        positions[name] = value
    return positions, game.history


def _recorded_labels(recorded: RecordedGame[Any], positions: npt.NDArray[np.void]) -> dict[str, Array]:
    signs = np.where(positions["side_to_move"] == BLACK, 1.0, -1.0)
    labels = {}
    if recorded.winner is not None:
        labels["value"] = signs * (0.0 if recorded.winner == DRAW else 1.0 if recorded.winner == BLACK else -1.0)
    if recorded.margin is not None:
        labels["lead"] = signs * recorded.margin
    return labels


def _legal(positions: npt.NDArray[np.void], history: Array, spec: GameSpec) -> npt.NDArray[np.bool_]:
    """Return which moves are legal: bool[n, policy]."""
    moves = np.zeros((len(positions), spec.max_moves), np.uint16)
    counts = np.zeros(len(positions), np.int64)
    index_legal_moves(positions, history, 0, moves, counts, moves)
    legal = np.zeros((len(positions), spec.policy_size), np.bool_)
    for row, count in enumerate(counts.tolist()):
        legal[row, moves[row, :count]] = True
    return legal


class Collection(Generic[G]):
    """Writes games to a growing data set, with their records. `close` writes the last games."""

    def __init__(self, folder: Path, learnable: Learnable[G]) -> None:
        """Create a data set, or extend an existing one. Records are in its folder `games`.

        Raises:
            NetworkError: the folder contains a data set of another kind.
            OSError: the folder cannot be written.
        """
        self.folder, self.learnable = folder, learnable
        dataset = begin_dataset(folder, Manifest(learnable.features))
        (folder / RECORDS).mkdir(exist_ok=True)
        self._number = max((shard.number for shard in dataset.shards), default=0)
        self._rng = np.random.default_rng(0)  # nothing is drawn without surprise
        self._games: list[tuple[dict[str, Array], bytes]] = []
        self._first, self._plies = 0, list[Ply]()

    def begin(self, game: G) -> None:
        """Start a game, which may have moves already."""
        self._first, self._plies = game.ply, []

    def note(self, game: G, decision: Decision) -> None:
        """Add a decision to the game. Call this before the move is played."""
        self._plies.append(ply_of(game.position, decision, self.learnable.spec))

    def end(self, game: G, ended: Ended, name: str) -> None:
        """Add a finished game with the players' names. A game without searches is left out.

        Raises:
            OSError: a shard cannot be written. Its games are kept for the next call.
        """
        finished = FinishedGame(game, ended, self.learnable.outcome(game, ended), self._first, self._plies)
        rows = rows_of(finished, self.learnable, 0.0, self._rng)
        if len(rows["value"]):
            self._games.append((rows, self.learnable.record(finished, name)))
        if sum(len(rows["value"]) for rows, _ in self._games) >= SHARD_ROWS:
            self.close()

    def close(self) -> None:
        """Write the remaining games.

        Raises:
            OSError: they cannot be written.
        """
        if not self._games:
            return
        size = self.learnable.spec.planes_shape[-1]
        suffix = self.learnable.suffix
        write_games(self.folder, self.folder / RECORDS, self._number + 1, size, suffix, self._games)
        self._number += 1
        self._games.clear()
