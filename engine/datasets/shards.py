"""Makes the shards of a command, here or on a cluster: all shards, or a task's share. Merges sets from parts."""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy.typing as npt

from yomi.engine.clusters.actors import ClusterOptions, Places, Recipe
from yomi.engine.clusters.jobs import RUN_NAME, JobError, Part, Run, Task, begin_run
from yomi.engine.clusters.units import UnitPool, UnitWorker
from yomi.nets.data.shards import SPLITS, Dataset, open_dataset, write_shard
from yomi.nets.files import copy_file

UNIT = "shards"
Log: TypeAlias = Callable[[str], None]
Columns: TypeAlias = dict[str, npt.NDArray[Any]]
Named: TypeAlias = tuple[str, int, str]  # split, board size and name of a shard


@dataclass(frozen=True, slots=True)
class ShardWork:
    """The shards of a command that this process makes."""

    command: str  # such as "dataset play"
    words: Sequence[str] = ()  # the command line
    task: Task | None = None  # None: all shards
    cluster: ClusterOptions | None = None  # makes the shards

    def begin(self, dataset: Dataset, names: Sequence[str]) -> list[int]:
        """Write the description of the run. Return the numbers of the shards to make.

        Args:
            dataset: the data set as it is now.
            names: names of all shards of the whole set, in the order of their numbers.

        Raises:
            JobError, OSError: from `begin_run`.
        """
        settings = json.loads(dataset.manifest.to_json())
        options = settings["options"]  # without networks, whose content counts, not their name
        networks = {name: str(options.pop(name)) for name in ("teacher", "net") if options.get(name)}
        if self.command == "dataset play":  # the source is the teacher
            del settings["sources"]
        run = Run(self.command, self.words, self.task, len(names), UNIT, {**settings, UNIT: list(names)}, networks)
        there = {shard.path.name for shard in dataset.shards}
        missing = [unit for unit in run.share if names[unit] not in there]
        begin_run(dataset.folder, run, len(run.share) - len(missing), is_new=not there)
        return missing


class ShardMaker:
    """Makes the columns of shards. It is pickled and sent to the actors of a cluster."""

    @property
    def networks(self) -> tuple[str, ...]:
        """Files of the networks that the maker uses."""
        return ()

    def move(self, places: Places) -> None:
        """Use the node's copies of the networks."""

    def columns(self, payload: Any, threads: int) -> Columns:
        raise NotImplementedError

    def close(self) -> None:
        """End everything that the maker has started."""


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
    """Make the `planned` shards of this task that the data set lacks, and return the data set.

    Args:
        dataset: the set.
        planned: all shards of the set.
        maker: makes the columns of a shard.
        payload: returns the maker's input for a shard, given its number.
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
            recipe = Recipe(ShardUnits, (maker, max(1, int(work.cluster.cpus))), maker.networks)
            with UnitPool(work.cluster, lambda actors: (recipe, 1), log) as pool:
                for number, columns in pool.run((number, payload(number)) for number in missing):
                    write(number, columns)
    elif at_once == 1:
        for number in missing:
            write(number, maker.columns(payload(number), threads))
    else:
        with ThreadPoolExecutor(at_once) as executor:
            for _ in executor.map(lambda number: write(number, maker.columns(payload(number), threads)), missing):
                pass
    return open_dataset(dataset.folder)


class ShardUnits(UnitWorker):
    """Makes shards in an actor."""

    def __init__(self, places: Places, maker: ShardMaker, threads: int) -> None:
        super().__init__()
        maker.move(places)
        self._maker, self._threads = maker, threads

    def work(self, number: int, payload: Any) -> Columns:
        return self._maker.columns(payload, self._threads)

    def close(self) -> None:
        self._maker.close()


# -- parts of a set ----------------------------------------------------------------------------------------------------


def done(folder: Path, run: Run, games: object) -> frozenset[int]:
    """Return the numbers of the shards that a run has made. Raises NetworkError if its set is broken."""
    there = {shard.path.name for shard in open_dataset(folder).shards}
    return frozenset(unit for unit, name in enumerate(_names(run)) if name in there)


def _names(run: Run) -> list[Any]:
    names = run.settings.get(UNIT)
    if not isinstance(names, list) or len(names) != run.units or not all(_is_name(name) for name in names):
        raise JobError(f"{RUN_NAME} of yomi {run.command}: expected the names of {run.units} shards")
    return names


def _is_name(name: object) -> bool:  # a part may come from anywhere
    return isinstance(name, str) and Path(name).name == name and not name.startswith(".")


def merge(parts: Sequence[Part], out: Path) -> None:
    """Copy the shards of all parts to a folder, and from the first part the manifest and the cache of games.

    Raises:
        OSError: a file cannot be copied.
    """
    names = _names(parts[0].run)
    shards = [(part.folder / names[unit], names[unit]) for part in parts for unit in part.run.share]
    common = (path for path in sorted(parts[0].folder.iterdir()) if path.name not in (*names, RUN_NAME))
    copied = [*((path, path.name) for path in common if not path.name.startswith(".")), *shards]
    for source, name in copied:
        if source.is_dir():
            (out / name).mkdir()
        for path in source.iterdir() if source.is_dir() else [source]:
            copy_file(path, out / name / path.relative_to(source))


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return a line with the number of positions so far. Raises NetworkError if a set is broken."""
    sets = [open_dataset(folder) for folder in folders]
    counts = (f"{sum(dataset.rows(split) for dataset in sets):,} {split}" for split in SPLITS)
    return [f"positions: {' + '.join(counts)}"]
