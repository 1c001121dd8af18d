"""Shards as units: made in this process, or by actors of a cluster."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from yomi.engine.clusters.actors import ClusterOptions, Places, Recipe
from yomi.engine.clusters.units import Report, UnitPool, UnitWorker
from yomi.engine.datasets.making import Columns, Log
from yomi.engine.datasets.parts import ShardWork
from yomi.nets.arrays import read_header
from yomi.nets.data.columns import cast
from yomi.nets.data.shards import Dataset, Shard, check_layout, check_numbers, open_dataset, write_shard
from yomi.nets.metadata import FeatureSet

SUFFIX = ".npy"
Named = tuple[str, int, str]  # split, board size and name of a shard


class ShardMaker(Protocol):
    """Makes the columns of shards. It travels by pickle to the actors of a cluster."""

    @property
    def networks(self) -> tuple[str, ...]:
        """The files of the networks that it uses."""

    def move(self, places: Places) -> None:
        """Use the node's copies of the networks."""

    def columns(self, payload: Any, threads: int) -> Columns:
        """Return the columns of a shard."""

    def close(self) -> None:
        """End what the maker has started."""


def make_shards(
    dataset: Dataset,
    planned: Sequence[Named],
    maker: ShardMaker,
    payload: Callable[[int], Any],
    log: Log,
    work: ShardWork,
    *,
    at_once: int = 1,
) -> Dataset:
    """Make the `planned` shards that a set lacks, as far as they belong to a task, and return the set.

    Args:
        dataset: the set.
        planned: all shards of the set.
        maker: makes their columns.
        payload: returns what the maker needs of a shard, given its number.
        log: receives a line for each shard.
        work: the share of the shards, and the cluster.
        at_once: shards that this process makes at the same time, without a cluster.

    Raises:
        ClusterError: the cluster is lost, or a shard fails again and again.
        OSError: a shard cannot be written.
    """
    missing = work.begin(dataset, [name for _, _, name in planned])
    threads = max(1, (os.cpu_count() or 1) // at_once)

    def write(number: int, columns: Columns) -> None:
        split, size, name = planned[number]
        write_shard(dataset.folder, name, split, size, columns)
        log(f"shard {number + 1} of {len(planned)}: {name}, {len(columns['value'])} positions")

    if work.cluster is not None:
        if missing:
            for number, columns in _on_cluster(work.cluster, dataset, planned, maker, payload, log, missing):
                write(number, columns)
    elif at_once == 1:
        for number in missing:
            write(number, maker.columns(payload(number), threads))
    else:
        with ThreadPoolExecutor(at_once) as pool:
            for _ in pool.map(lambda number: write(number, maker.columns(payload(number), threads)), missing):
                pass
    return open_dataset(dataset.folder)


class ShardUnits(UnitWorker):
    """Makes shards in an actor."""

    def __init__(self, places: Places, maker: ShardMaker, threads: int) -> None:
        super().__init__()
        maker.move(places)
        self._maker, self._threads = maker, threads

    def work(self, unit: int, payload: Any) -> Report:
        return Report(None, to_files(self._maker.columns(payload, self._threads)))

    def close(self) -> None:
        self._maker.close()


def _on_cluster(
    cluster: ClusterOptions,
    dataset: Dataset,
    planned: Sequence[Named],
    maker: ShardMaker,
    payload: Callable[[int], Any],
    log: Log,
    missing: Sequence[int],
) -> Iterator[tuple[int, Columns]]:
    features = dataset.manifest.features

    def check(number: int, report: Report) -> Columns:
        return from_files(report, planned[number], features)

    recipe = Recipe(ShardUnits, (maker, max(1, int(cluster.cpus))), maker.networks)
    with UnitPool(cluster, lambda actors: (recipe, 1), log) as pool:
        yield from pool.run(missing, payload, check)


def to_files(columns: Columns) -> dict[str, bytes]:
    """Return the columns of a shard as .npy files."""
    files = {}
    for name, array in columns.items():
        with io.BytesIO() as stream:
            np.save(stream, cast(name, array), allow_pickle=False)
            files[name + SUFFIX] = stream.getvalue()
    return files


def from_files(report: Report, planned: Named, features: FeatureSet) -> Columns:
    """Return the columns in a report. Raises NetworkError or ValueError if they do not fit the planned shard."""
    columns: Columns = {}
    for name, content in report.files.items():
        if not name.endswith(SUFFIX):
            raise ValueError(f"file {name} found, expected columns")
        header = read_header(io.BytesIO(content), len(content))
        columns[name.removesuffix(SUFFIX)] = np.frombuffer(content, header.dtype, offset=header.offset).reshape(
            header.shape
        )
    split, size, name = planned
    rows = {array.shape[:1] for array in columns.values()}
    if len(rows) != 1 or rows == {()}:
        raise ValueError(f"columns with {sorted(rows)!r:.80} rows found, expected the same number")
    shard = Shard(Path(name), split, size, next(iter(rows))[0])
    check_layout(shard, columns, features)
    check_numbers(shard, columns, features.policy_size(size))
    return columns
