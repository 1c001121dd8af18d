"""Cut chosen rows into the shards of a data set, and write the missing shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.native.jit import CACHE_DIRECTORY, kernel_key
from yomi.nets.data.shards import SPLITS, Dataset, open_dataset, shard_name, write_shard

if TYPE_CHECKING:
    from yomi.engine.game import Game, Say

Log = Callable[[str], None]
Columns = dict[str, npt.NDArray[Any]]
Planned = tuple[str, int, str, npt.NDArray[Any]]
"""Split, board size, name and rows of a shard."""


def held_out(count: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return which of `count` games are held out for tests [count]: at least one if there are two or more."""
    number = round(count * share)
    if share > 0.0 and count > 1:
        number = min(max(number, 1), count - 1)
    # Whole games are held out, so that no test position has a neighbor in training.
    held = np.zeros(count, np.bool_)
    held[np.random.default_rng(seed).permutation(count)[:number]] = True
    return held


def plan_shards(
    rows: npt.NDArray[Any], held: npt.NDArray[np.bool_], sizes: npt.NDArray[np.integer[Any]], shard_rows: int
) -> list[Planned]:
    """Return the shards of a set.

    Args:
        rows: rows of the whole set in their final order [n].
        held: which rows are held out [n].
        sizes: board size of each row [n].
        shard_rows: rows of each shard, except the last of its split and size.
    """
    planned = []
    for split in SPLITS:
        for size in np.unique(sizes).tolist():
            chosen = rows[(sizes == size) & (held == (split == "test"))]
            for number, begin in enumerate(range(0, len(chosen), shard_rows)):
                planned.append((split, size, shard_name(split, size, number), chosen[begin : begin + shard_rows]))
    return planned


def write_missing(
    dataset: Dataset,
    planned: Sequence[Planned],
    columns: Callable[[ThreadPoolExecutor, npt.NDArray[Any], int], Columns],
    log: Log,
) -> Dataset:
    """Write the missing shards of a set, and return the whole set.

    Args:
        dataset: the set so far.
        planned: all shards.
        columns: returns the columns of a shard from a thread pool, its rows and the board size.
        log: prints lines of progress.

    Raises:
        OSError: a shard cannot be written.
    """
    there = {shard.path.name for shard in dataset.shards}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for number, (split, size, name, rows) in enumerate(planned, 1):
            if name not in there:
                write_shard(dataset.folder, name, split, size, columns(pool, rows, size))
                log(f"shard {number} of {len(planned)}: {name}, {len(rows)} positions")
    return open_dataset(dataset.folder)


def announce_kernels(game: Game[Any, Any], say: Say) -> None:
    """Compile the game's kernels, and tell the user if kernels for data sets will be compiled later."""
    game.compile(say)
    if not (CACHE_DIRECTORY / f"datasets-{kernel_key('datasets')}").exists():
        say("the first data set compiles kernels of its own, which takes about half a minute")
