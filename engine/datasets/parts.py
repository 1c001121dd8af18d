"""Parts of data sets: which shards a task makes, which are done, and one set made of several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.clusters.actors import ClusterOptions
from yomi.engine.clusters.jobs import RUN_NAME, JobError, Part, Run, Task, begin_run
from yomi.nets.data.shards import SPLITS, Dataset, open_dataset
from yomi.nets.files import copy_file

UNIT = "shards"


@dataclass(frozen=True, slots=True)
class ShardWork:
    """The share of a command's shards that this process makes."""

    command: str  # such as "dataset play"
    words: Sequence[str] = ()  # the command line
    task: Task | None = None  # None: all shards
    cluster: ClusterOptions | None = None  # makes the shards

    def begin(self, dataset: Dataset, names: Sequence[str]) -> list[int]:
        """Write the description of the run, and return the numbers of the shards to make.

        Args:
            dataset: as it is now.
            names: of all shards of the whole set, in the order of their numbers.

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
    """Copy the shards of all parts, and from the first part the manifest and the cache of games, to a folder.

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
    """Return the number of positions so far. Raises NetworkError if a set is broken."""
    sets = [open_dataset(folder) for folder in folders]
    counts = (f"{sum(dataset.rows(split) for dataset in sets):,} {split}" for split in SPLITS)
    return [f"positions: {' + '.join(counts)}"]
