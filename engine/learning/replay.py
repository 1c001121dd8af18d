"""Rows whose records lie beside them, played again: whether they are what the rules make of the games."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, DRAW
from yomi.engine.play import G
from yomi.native.datasets.positions import index_legal_moves
from yomi.nets.errors import NetworkError

if TYPE_CHECKING:
    from pathlib import Path

    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Array, Arrays, Shard

RECORDS = "games"
NEEDED = ("game", "ply")
"""Columns without which no record can be told for a row."""


Show = Callable[["npt.NDArray[np.void]", "Array"], "Arrays"]
"""See yomi.engine.learning.learnable.Learnable.show."""


@dataclass(frozen=True, slots=True)
class Recorded(Generic[G]):
    """A game of a record."""

    game: G
    """At its beginning."""
    moves: list[int]
    winner: int | None
    """BLACK, WHITE or DRAW; None where the record does not say."""
    margin: float | None = None
    """Points that Black is ahead by; None where there are none."""


def record_beside(shard: Shard) -> Path | None:
    """Return the record of the games that a shard's rows are of; None if they do not tell their games.

    Raises:
        NetworkError: there is none, in the set's folder `games` or beside the set.
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


def check_rows(shard: Shard, games: list[Recorded[Any]], spec: GameSpec, show: Show) -> Iterator[str]:
    """Yield a line for each fault of a row: planes, numbers, moves of the policy, and what the game ended with.

    Args:
        shard: has the columns of NEEDED.
        games: of its record.
        spec: of the game as the rows show it.
        show: returns what the rows show of positions.
    """
    columns = shard.open()
    order = np.argsort(columns["game"], kind="stable")
    numbers, starts = np.unique(columns["game"][order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        place = f"{shard.path.name}, game {number}"
        if number >= len(games):
            yield f"{place}: {len(rows)} rows of a game that is not among the {len(games)} recorded ones"
            continue
        game = games[number]
        late = columns["ply"][rows] > len(game.moves)
        for row in rows[late].tolist():
            yield f"{place}, row {row} after {columns['ply'][row]} moves: the game has {len(game.moves)}"
        rows = rows[~late]
        plies = columns["ply"][rows].astype(np.int64)
        for row, fault in _faults(game, {name: columns[name][rows] for name in columns}, plies, spec, show):
            yield f"{place}, row {rows[row]} after {plies[row]} moves: {fault}"


def _faults(
    recorded: Recorded[Any], columns: Arrays, plies: npt.NDArray[np.int64], spec: GameSpec, show: Show
) -> Iterator[tuple[int, str]]:
    """Yield the number of a row of one game, and its fault."""
    positions, history = _played(recorded, int(plies.max(initial=0)) + 1, spec)
    positions = positions[plies]
    expected = {**show(positions, history), **_labels(recorded, positions)}
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


def _played(recorded: Recorded[Any], count: int, spec: GameSpec) -> tuple[npt.NDArray[np.void], Array]:
    """Return the first positions of a game, and its history."""
    game, positions = recorded.game, spec.positions(count)
    for ply in range(count):
        if ply:
            game.push(recorded.moves[ply - 1])
        positions[ply] = game.position
    for name, value in spec.position_flags:
        positions[name] = value
    return positions, game.history


def _labels(recorded: Recorded[Any], positions: npt.NDArray[np.void]) -> dict[str, Array]:
    """Return what the record says of the columns of results."""
    signs = np.where(positions["side_to_move"] == BLACK, 1.0, -1.0)
    labels = {}
    if recorded.winner is not None:
        labels["value"] = signs * (0.0 if recorded.winner == DRAW else 1.0 if recorded.winner == BLACK else -1.0)
    if recorded.margin is not None:
        labels["lead"] = signs * recorded.margin
    return labels


def _legal(positions: npt.NDArray[np.void], history: Array, spec: GameSpec) -> npt.NDArray[np.bool_]:
    """Return bool[n, policy]: whether the index is a legal move's."""
    moves = np.zeros((len(positions), spec.max_moves), np.uint16)
    counts = np.zeros(len(positions), np.int64)
    index_legal_moves(positions, history, moves, counts)
    legal = np.zeros((len(positions), spec.policy_size), np.bool_)
    for row, count in enumerate(counts.tolist()):
        legal[row, moves[row, :count]] = True
    return legal
