"""Batches from data sets, read ahead by threads.

Their order depends on the seed alone. In a growing data set they come from the newest rows.
"""

import functools
import hashlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.nets.data.columns import Array, kind_of
from yomi.nets.data.shards import Column, Dataset, Shard, check_layout, check_numbers
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import LEVEL_SCALE, FeatureSet

# A batch contains positions of one board size from one shard. Shards were shuffled over the whole set when they were
# made, so a random part of one shard is a random sample of all. Each epoch shuffles every shard again, and the order of
# all batches. A training that was stopped and resumed gets the same batches as one that was not.
T = TypeVar("T")

# Batches that are read in advance, plus one for each further thread.
AHEAD = 4
# Of windows, as in KataGo's shuffle.py: -taper-window-exponent, and -expand-window-per-row at the first row beyond the
# minimum.
WINDOW_EXPONENT, WINDOW_SCALE = 0.65, 0.4


@dataclass(frozen=True)
class Batch:
    """Some positions, all of one board size."""

    size: int  # board size N
    columns: dict[str, Array]
    step: int = 0

    @property
    def rows(self) -> int:
        return len(self.columns["planes"])


class Source(Protocol):
    """Provides the batches of a training."""

    features: FeatureSet
    rows: int  # positions in a batch
    steps: int  # number of batches; 0 if there is no limit

    @property
    def positions(self) -> int: ...

    @property
    def epoch_batches(self) -> int:
        """Number of batches in which each position occurs about once."""

    def digest(self) -> str:
        """Return a digest that identifies the data sets, their shards and all batches."""

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0 over all epochs. Threads may ask for steps in any order."""


class BatchSource:
    """All batches of one split (train or test) of data sets with the same feature set. See `Source`."""

    def __init__(self, datasets: Sequence[Dataset], split: str, rows: int, seed: int) -> None:
        """Find the shards.

        Args:
            datasets: at least one.
            split: train or test.
            rows: positions in a batch. A shard with fewer gives one batch of all its positions.
            seed: determines the order.

        Raises:
            NetworkError: the sets have different features, have no shard of this split, or a shard is broken.
        """
        self.features: FeatureSet = datasets[0].manifest.features
        for dataset in datasets:
            if dataset.manifest.features != self.features:
                raise NetworkError(
                    f"{dataset.folder}: feature set {dataset.manifest.feature_set} found, expected {self.features.name}"
                )
        self._manifests = [dataset.manifest.to_json() for dataset in datasets]
        self.shards: list[Shard] = [shard for each in datasets for shard in each.shards if shard.split == split]
        if not self.shards:
            raise NetworkError(f"{datasets[0].folder}: no positions of split {split} found, expected some")
        self.rows = rows
        self.steps = 0
        self.seed = seed
        self._lock = threading.Lock()
        # Mapped for one batch at a time, since a process may have 1,024 files open, on some systems 256.
        self._columns = [shard.places(shard.open()) for shard in self.shards]
        self._counts = [max(1, shard.rows // rows) for shard in self.shards]
        self._epoch, self._order = -1, np.zeros((0, 2), np.int64)
        self._shuffled: dict[int, Array] = {}

    @property
    def epoch_batches(self) -> int:
        return sum(self._counts)

    @property
    def positions(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def digest(self) -> str:
        names = [f"{shard.path.parent.name}/{shard.path.name} {shard.rows}" for shard in self.shards]
        return hashlib.sha256(f"{self.rows} {self.seed} {names} {self._manifests}".encode()).hexdigest()[:16]

    def batch(self, step: int) -> Batch:
        # The lock is not held while the disk is read, so threads wait for the disk side by side.
        with self._lock:
            shard, rows = self._rows(step)
        columns = {name: column.map()[rows] for name, column in self._columns[shard].items()}
        return Batch(self.shards[shard].size, columns, step)

    def _rows(self, step: int) -> tuple[int, Array]:
        epoch, index = divmod(step, self.epoch_batches)
        if epoch != self._epoch:
            pairs = [(shard, part) for shard, count in enumerate(self._counts) for part in range(count)]
            self._order = np.random.default_rng([self.seed, epoch]).permutation(np.array(pairs, np.int64))
            self._epoch, self._shuffled = epoch, {}
        shard, part = self._order[index].tolist()
        if shard not in self._shuffled:
            # A shard's order depends on seed, epoch and shard only, so a resumed training has the same.
            rng = np.random.default_rng([self.seed, epoch, shard])
            self._shuffled[shard] = rng.permutation(self.shards[shard].rows)
        return shard, np.sort(self._shuffled[shard][part * self.rows : (part + 1) * self.rows])

    def in_order(self, limit: int = 0, positions: int = 0) -> Iterator[Batch]:
        """Yield batches in the order of the shards. The last batch of a shard may be short.

        Args:
            limit: approximate number of batches; 0 for all. Each shard gives the same share of its batches.
            positions: exact number of positions; 0 for all. Small shards give all of theirs, the others equally many.
        """
        count = 0
        each = -(-limit // len(self.shards)) * self.rows
        shares = self._shares(positions or self.positions)
        for shard, columns, share in zip(self.shards, self._columns, shares, strict=True):
            last = min(share, each or share)
            for begin in range(0, last, self.rows):
                end = min(begin + self.rows, last)
                part = {name: np.array(column.map()[begin:end]) for name, column in columns.items()}
                yield Batch(shard.size, part, count)
                count += 1

    def _shares(self, positions: int) -> list[int]:
        """Return how many of `positions` positions to take from each shard."""
        shares = [shard.rows for shard in self.shards]
        # The smallest shard first: larger shards make up for what small ones lack.
        by_rows = sorted(range(len(shares)), key=lambda index: shares[index])
        for shards_left, index in zip(range(len(shares), 0, -1), by_rows, strict=True):
            shares[index] = min(shares[index], positions // shards_left)
            positions -= shares[index]
        return shares


class Reader(AbstractContextManager["Reader[T]"], Generic[T]):
    """Prepares the batches of steps in threads, ahead of time and in order. A context manager."""

    def __init__(self, source: Source, first: int, last: int, make: Callable[[Batch], T], threads: int = 1) -> None:
        """Prepare the steps from `first` to `last` - 1.

        Args:
            source: provides the batches.
            first: first step.
            last: one more than the last step.
            make: called with each batch in the threads. Its result must depend on the batch alone.
            threads: number of threads, at least 1.
        """
        self._source, self._make = source, make
        self._steps = iter(range(first, last))
        self._ahead = AHEAD + threads - 1
        self._pool = ThreadPoolExecutor(threads, "reader")

    def _read(self, step: int) -> T:
        return self._make(self._source.batch(step))

    def __iter__(self) -> Iterator[T]:
        """Yield the results of `make` in the order of the steps. A thread's exception is raised when its step comes."""
        begun: deque[Future[T]] = deque()
        while True:
            for step in itertools.islice(self._steps, self._ahead - len(begun)):
                begun.append(self._pool.submit(self._read, step))
            if not begun:
                return
            yield begun.popleft().result()

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown(cancel_futures=True)


FloatArray = npt.NDArray[np.float32]


def unpack(batch: Batch, features: FeatureSet) -> tuple[FloatArray, FloatArray]:
    """Return planes [B, C, N, N] and extras [B, G] of the positions as they were written, without a symmetry."""
    # In numpy, for evaluators, which do not import PyTorch. `yomi.nets.training.tensors` does the same on the device.
    rows, size = batch.rows, batch.size
    bits = np.unpackbits(batch.columns["planes"], axis=1, count=features.bits * size * size)
    parts = [bits.reshape(rows, features.bits, size, size).astype(np.float32)]
    if features.levels:
        levels = batch.columns["levels"].reshape(rows, features.levels, size, size).astype(np.float32)
        parts.append(np.tanh(np.float32(LEVEL_SCALE) * levels))
    globals_ = batch.columns.get("globals", np.zeros((rows, 0), np.float16)).astype(np.float32)
    if features.joined:
        parts.append(np.broadcast_to(globals_[:, :, None, None], (rows, features.globals, size, size)))
    planes = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    return np.ascontiguousarray(planes), np.ascontiguousarray(globals_[:, : features.extras])


# -- the newest rows of a growing data set, while a network learns from it in generations ------------------------------

# A shard of such a set contains the positions of few games, in the order in which the games ended. So the batches of a
# window mix rows of all its shards: the rows are drawn at random, read once, and kept in memory until the next window.
Rows = npt.NDArray[np.int64]
# Number of shards whose column positions are cached.
KEPT_SHARDS = 8192


def window_rows(total: int, minimum: int) -> int:
    """Return the size of the window in rows if there are `total` rows, as in KataGo's shuffle.py.

    Up to `minimum`, these are all rows. After that, the window grows with a power of `total`, ever more slowly.

    Args:
        total: number of rows.
        minimum: smallest window, at least 1.
    """
    if total <= minimum:
        return total
    growth = ((total / minimum) ** WINDOW_EXPONENT - 1.0) / WINDOW_EXPONENT
    return int(minimum + growth * WINDOW_SCALE * minimum)


def newest(shards: Iterable[Shard], rows: int) -> tuple[Shard, ...]:
    """Return the newest training shards that together contain at least `rows` rows, or all shards. The oldest comes
    first.

    Raises:
        NetworkError: a name does not end in the shard's number.
    """
    chosen: list[Shard] = []
    train = (shard for shard in shards if shard.split == "train")
    # The number counts over all board sizes.
    for shard in sorted(train, key=lambda shard: (shard.number, shard.size), reverse=True):
        if rows <= 0:
            break
        chosen.append(shard)
        rows -= shard.rows
    return tuple(reversed(chosen))


class WindowSource:
    """The batches of one generation, all in memory. See `Source`.

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
    """Return the columns of some rows of one board size. The numbers of the rows ascend and count over all shards."""
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
    """Check the columns of a shard, and return their positions in the files."""
    # Opening the files and reading their headers took 90% of the time of a window of 400 shards. Most shards were in
    # the previous window, so the positions are cached.
    columns = shard.open()
    check_layout(shard, columns, features)
    return shard.places(columns)


def _joined(name: str, parts: Sequence[Array | None], counts: Sequence[int]) -> Array:
    """Join the parts of one column. Narrower parts are padded with zeros; missing parts (None) become unknown."""
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
