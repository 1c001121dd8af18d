"""Batches from data sets, in an order that depends on the seed alone. Threads read ahead."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.nets.data.columns import Array
from yomi.nets.data.shards import Dataset, Shard
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import LEVEL_SCALE, FeatureSet

# A batch contains positions of one board size from one shard. Shards were shuffled over the whole set when they were
# made, so a random part of one shard is a random sample of all. Each epoch shuffles every shard again, and the order of
# all batches. A training that was stopped and resumed gets the same batches as one that was not.
T = TypeVar("T")

# Batches that are read in advance, plus one for each further thread.
AHEAD = 4


@dataclass(frozen=True)
class Batch:
    """Positions of one board size."""

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
        """Return the batch of a step, counted from 0 over all epochs. Threads may ask in any order."""


class BatchSource:
    """All batches of one split of data sets with the same feature set. See `Source`."""

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
        self._columns = [shard.columns() for shard in self.shards]
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
            self._begin_epoch(epoch)
        shard, part = self._order[index].tolist()
        if shard not in self._shuffled:
            # A shard's order depends on seed, epoch and shard only, so a resumed training has the same.
            rng = np.random.default_rng([self.seed, epoch, shard])
            self._shuffled[shard] = rng.permutation(self.shards[shard].rows)
        return shard, np.sort(self._shuffled[shard][part * self.rows : (part + 1) * self.rows])

    def in_order(self, limit: int = 0, positions: int = 0) -> Iterator[Batch]:
        """Yield batches in the order of the shards. The last batch of a shard may be short.

        Args:
            limit: approximate number of batches, taken from all shards alike; 0 for all.
            positions: exact number of positions, taken from all shards alike; 0 for all.
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
        """Return the number of positions to take from each shard for a total."""
        shares = [shard.rows for shard in self.shards]
        # The smallest shard first: larger shards make up for what small ones lack.
        by_rows = sorted(range(len(shares)), key=lambda index: shares[index])
        for shards_left, index in zip(range(len(shares), 0, -1), by_rows, strict=True):
            shares[index] = min(shares[index], positions // shards_left)
            positions -= shares[index]
        return shares

    def _begin_epoch(self, epoch: int) -> None:
        pairs = [(shard, part) for shard, count in enumerate(self._counts) for part in range(count)]
        self._order = np.random.default_rng([self.seed, epoch]).permutation(np.array(pairs, np.int64))
        self._epoch = epoch
        self._shuffled = {}


class Reader(Generic[T]):
    """Prepares the batches of steps in threads, ahead of time and in order. Use it as a context manager."""

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

    def __enter__(self) -> Reader[T]:
        return self

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
