"""What the actions of `yomi dataset` have in common: checks of numbers, and a data set in words."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from engine.cli.errors import CliError
from engine.cli.logs import say

if TYPE_CHECKING:
    from nets.data.shards import Dataset


def check_ranges(args: argparse.Namespace, **ranges: tuple[float, float]) -> None:
    """Check numbers by name: the least and the largest that each may be.

    Raises:
        CliError: one of them is beyond.
    """
    for name, (low, high) in ranges.items():
        if not low <= getattr(args, name) <= high:
            raise CliError(f"--{name.replace('_', '-')} {getattr(args, name):g}: expected {low:g} to {high:g}")


def check_counts(args: argparse.Namespace, **least: int) -> None:
    """Check counts by name.

    Raises:
        CliError: one of them is too small.
    """
    for name, low in least.items():
        if getattr(args, name) < low:
            raise CliError(f"--{name.replace('_', '-')} {getattr(args, name)}: expected at least {low}")


def announce_kernels(game: str) -> None:
    """Compile the game's kernels, and say so where those for data sets alone will be compiled on the way."""
    from native.jit import CACHE_DIRECTORY, kernel_key
    from native.warmup import compile_all

    compile_all(game, say)
    if not (CACHE_DIRECTORY / f"datasets-{kernel_key('datasets')}").exists():
        say("the first data set compiles kernels of its own, which takes about half a minute")


def print_dataset(dataset: Dataset) -> None:
    """Print features, positions by split and size, labels, and how the set was made."""
    import numpy as np

    sizes = Counter[tuple[str, int]]()
    known = Counter[str]()
    values = []
    for shard in dataset.shards:
        sizes[shard.split, shard.size] += shard.rows
        columns = shard.open()
        values.append(columns["value"].astype(np.float32))
        for name, column in columns.items():
            known[name] += int(np.isfinite(column).sum()) if column.dtype.kind == "f" and column.ndim == 1 else 0
    rows = [("folder", str(dataset.folder)), ("feature set", dataset.manifest.feature_set)]
    rows += [(f"{split} {size}x{size}", f"{count:,} positions") for (split, size), count in sorted(sizes.items())]
    rows += [(name, f"known of {count:,}") for name, count in sorted(known.items()) if count]
    if values:
        known_values = np.concatenate(values)
        known_values = known_values[np.isfinite(known_values)]
        rows.append(("mean value", f"{known_values.mean():+.4f}" if len(known_values) else "none known"))
    rows.append(("sources", ", ".join(dataset.manifest.sources[:5]) + (" ..." * (len(dataset.manifest.sources) > 5))))
    rows += [(name.replace("_", " "), str(value)) for name, value in sorted(dataset.manifest.options.items())]
    for name, value in rows:
        print(f"{name:16} {value}")
