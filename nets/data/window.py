"""Batches from the newest rows of a growing data set, while a network learns from it in generations."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from yomi.nets.data.batches import Batch
from yomi.nets.data.columns import Array, kind_of
from yomi.nets.data.shards import Column, Shard, check_layout, check_numbers
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import FeatureSet

# A shard of such a set contains the positions of few games, in the order in which the games ended. So the batches of a
# window mix rows of all its shards: the rows are drawn at random, read once, and kept in memory until the next window.
Rows = npt.NDArray[np.int64]
# Number of shards whose column positions are cached.
KEPT_SHARDS = 8192


def window_rows(total: int, minimum: int, exponent: float = 0.65, scale: float = 0.4) -> int:
    """Return the size of the window, in rows, when there are `total` rows (KataGo's shuffle.py).

    All rows up to `minimum`, then a power of their number: the window grows ever more slowly.

    Args:
        total: number of rows.
        minimum: smallest window, at least 1.
        exponent: of the power law (`-taper-window-exponent`).
        scale: growth per row at the first row beyond `minimum` (`-expand-window-per-row`).
    """
    if total <= minimum:
        return total
    growth = ((total / minimum) ** exponent - 1.0) / exponent
    return min(total, int(minimum + growth * scale * minimum))


def newest(shards: Iterable[Shard], rows: int) -> tuple[Shard, ...]:
    """Return the newest training shards, the oldest first: as few as contain `rows` rows, or all.

    Raises:
        NetworkError: a name does not end in the shard's number.
    """
    chosen: list[Shard] = []
    for shard in sorted((shard for shard in shards if shard.split == "train"), key=_age, reverse=True):
        if rows <= 0:
            break
        chosen.append(shard)
        rows -= shard.rows
    return tuple(reversed(chosen))


def _age(shard: Shard) -> tuple[int, int]:
    # The number counts over all board sizes.
    number = shard.path.name.rpartition("-")[2]
    if not number.isdecimal():
        raise NetworkError(f"{shard.path}: a name without a number found, expected one such as train-09-00012")
    return int(number), shard.size


class WindowSource:
    """The batches of a generation, all in memory. See `yomi.nets.data.batches.Source`.

    Labels that a shard lacks are unknown; no symmetries are applied.
    """

    def __init__(
        self, features: FeatureSet, shards: Sequence[Shard], rows: int, steps: int, seed: int, generation: int
    ) -> None:
        """Draw the rows and read them.

        Args:
            features: feature set of the shards.
            shards: shards of the window, see `newest`.
            rows: positions of a batch, at least 1.
            steps: number of batches, at least 1.
            seed: with `generation`, determines which rows are drawn.
            generation: counted from 0.

        Raises:
            NetworkError: the shards contain no positions, are broken, or have other features.
        """
        self.features = features
        self.shards = tuple(shards)
        self.rows = rows
        self.steps = steps
        self.seed = seed
        self.generation = generation
        if not self.positions:
            raise NetworkError(f"{len(self.shards)} shards without positions found, expected some to learn from")
        rng = np.random.default_rng([seed, generation])
        sizes = sorted({shard.size for shard in self.shards if shard.rows})
        held = {size: [shard for shard in self.shards if shard.size == size] for size in sizes}
        totals = np.array([sum(shard.rows for shard in held[size]) for size in sizes])
        # Each board size has its share of the batches, rounded up or down at random, so that the counts add up to
        # `steps`.
        ends = (totals.cumsum() * steps + rng.integers(self.positions)) // self.positions
        counts = np.diff(ends, prepend=0)
        self._sizes = rng.permutation(np.repeat(sizes, counts))
        self._parts = np.zeros(steps, np.int64)
        self._columns: dict[int, dict[str, Array]] = {}
        self._drawn: dict[int, Rows] = {}
        for size, count, total in zip(sizes, counts.tolist(), totals.tolist(), strict=True):
            self._parts[self._sizes == size] = np.arange(count)
            # Without replacement; all rows again once none is left.
            passes = [rng.permutation(total) for _ in range(-(-count * rows // total))]
            drawn = np.concatenate([*passes, np.zeros(0, np.int64)])[: count * rows]
            kept, self._drawn[size] = np.unique(drawn, return_inverse=True)
            self._columns[size] = _read(held[size], kept, features)

    @property
    def positions(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def epoch_batches(self) -> int:
        return max(1, self.positions // self.rows)

    def digest(self) -> str:
        names = [f"{shard.path.parent.name}/{shard.path.name} {shard.rows}" for shard in self.shards]
        numbers = (self.rows, self.steps, self.seed, self.generation)
        return hashlib.sha256(f"{self.features.name} {numbers} {names}".encode()).hexdigest()[:16]

    def batch(self, step: int) -> Batch:
        """Return the batch of a step of this generation, counted from 0.

        Raises:
            NetworkError: there are no more batches.
        """
        if step >= self.steps:
            raise NetworkError(f"batch {step} of a window of {self.steps} asked for, expected less")
        size = int(self._sizes[step])
        begin = int(self._parts[step]) * self.rows
        rows = self._drawn[size][begin : begin + self.rows]
        return Batch(size, {name: column[rows] for name, column in self._columns[size].items()}, step)


def _read(shards: Sequence[Shard], rows: Rows, features: FeatureSet) -> dict[str, Array]:
    """Return the columns of some rows, given by ascending numbers over all shards, which have one board size."""
    parts: list[dict[str, Array]] = []
    begin = 0
    for shard in shards:
        first, last = np.searchsorted(rows, (begin, begin + shard.rows))
        columns = _columns(shard, features)
        part = {name: column.map()[rows[first:last] - begin] for name, column in columns.items()}
        check_numbers(shard, part, features.policy_size(shard.size))
        parts.append(part)
        begin += shard.rows
    counts = [len(part["planes"]) for part in parts]
    names = sorted({name for part in parts for name in part})
    return {name: _joined(name, [part.pop(name, None) for part in parts], counts) for name in names}


@functools.lru_cache(KEPT_SHARDS)
def _columns(shard: Shard, features: FeatureSet) -> dict[str, Column]:
    """Return the positions of a shard's columns after checking them."""
    # Opening the files and reading their headers took 90% of the time of a window of 400 shards. Most shards were in
    # the previous window, so the positions are cached.
    columns = shard.open()
    check_layout(shard, columns, features)
    return shard.places(columns)


def _joined(name: str, parts: Sequence[Array | None], counts: Sequence[int]) -> Array:
    """Return one column of all parts. Narrower parts are padded with zeros, missing parts are unknown."""
    found = next(part for part in parts if part is not None)
    shape = (sum(counts), *(max(part.shape[1] for part in parts if part is not None) for _ in found.shape[1:]))
    kind = kind_of(name)
    assert kind is not None  # check_layout has seen it
    joined = np.zeros(shape, kind.dtype)
    begin = 0
    for part, count in zip(parts, counts, strict=True):
        if part is None:
            joined[begin : begin + count] = kind.unknown
        else:
            joined[begin : begin + count, *(slice(width) for width in part.shape[1:])] = part
        begin += count
    return joined
