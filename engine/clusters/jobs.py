"""Long work as numbered units, which several machines can share: tasks, descriptions of runs, and their parts.

A command counts its units from 0. The result of a unit depends on its number and on the settings alone. `--task 2/5`
does the units 1, 6, 11, ... in a folder of its own, a part. `yomi merge` makes one run of the parts.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi import __version__
from yomi.engine.machine import start_facts
from yomi.errors import LineError
from yomi.nets.files import write_atomically
from yomi.nets.installation import require_package
from yomi.nets.text import first_difference, parse_json
from yomi.settings import OptionError, flag, number, option

if TYPE_CHECKING:
    from yomi.engine.clusters.actors import ClusterOptions

RUN_NAME = "run.json"
RUN_FORMAT = 1
FLAG = "--task"
MAX_TASKS = 1_000_000
MAX_UNITS = 100_000_000
CLUSTER = "cluster"  # group of settings


class JobError(LineError):
    """A run cannot be read, or parts do not belong together."""


@dataclass(frozen=True, slots=True)
class Task:
    """A share of a run: the units for which unit % count == number - 1."""

    number: int  # from 1
    count: int

    @classmethod
    def parse(cls, text: str) -> Task:
        """Read `i/n`. Raises ValueError."""
        found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
        task = cls(int(found[1]), int(found[2])) if found else None
        if task is None or not 1 <= task.number <= task.count <= MAX_TASKS:
            raise ValueError(f"expected the number of a task and their count, such as 2/5, found {text!r}")
        return task

    def has(self, unit: int) -> bool:
        return unit % self.count == self.number - 1

    def share(self, units: int) -> range:
        return range(self.number - 1, units, self.count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def folder(self) -> str:
        return f"part-{self.number}-of-{self.count}"


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Settings of commands that can work on a cluster."""

    # a table: the formatter would give each argument a line
    # fmt: off
    cluster: str | None = option(
        None, "work on a Ray cluster: auto (this machine's), local (a new one), or HOST:PORT", CLUSTER, word="ADDRESS"
    )
    cores_per_process: float = number(
        1.0, 0, None, "reserve this many cores for each process", CLUSTER, word="N",
        names=("cores_per_process", "actor_cpus"),
    )
    gpus_per_process: float = number(
        0.0, 0, None, "reserve this many GPUs (or a part) for each process", CLUSTER, word="N",
        names=("gpus_per_process", "actor_gpus"),
    )
    insecure: bool = flag(False, "use a cluster that runs code of anyone who can reach it", CLUSTER)
    # fmt: on

    def options(self, processes: int | None = None, task: Task | None = None) -> ClusterOptions | None:
        """Return the options of the cluster, or None without a cluster.

        `processes` is the number of processes. None: the number that the cluster has room for.

        Raises:
            OptionError: the settings contradict each other.
            MissingPackageError: Ray is not installed.
        """
        cores, gpus = self.cores_per_process, self.gpus_per_process
        if self.cluster is None:
            if (cores, gpus, self.insecure) != (1.0, 0.0, False):
                raise OptionError("--cores-per-process, --gpus-per-process, --insecure: expected --cluster with them")
            return None
        if task is not None:
            raise OptionError("--cluster with --task: expected one of them, as a cluster shares the work by itself")
        if processes is not None and processes < 1:
            raise OptionError(f"--processes {processes} with --cluster: expected at least one process")
        if not cores + gpus:
            raise OptionError("--cores-per-process 0 --gpus-per-process 0: expected a core or a GPU for each process")
        require_package("ray", "--cluster")
        from yomi.engine.clusters.actors import ClusterOptions  # other starts do not need it

        return ClusterOptions(self.cluster, processes, cores, gpus, self.insecure)


def folder_of(out: Path, task: Task | None) -> Path:
    """Return the folder to which a command writes: its task's folder in `out`, or `out` without a task."""
    return out if task is None else out / task.folder


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a run. A run that was continued has several."""

    version: str
    machine: Mapping[str, str | int]
    time: float  # Unix seconds
    done: int  # units that earlier starts have done


@dataclass(frozen=True, slots=True)
class Run:
    """The description of a run, stored in its folder."""

    command: str  # such as "dataset play"
    words: Sequence[str]  # the command line after `yomi`, without --task
    task: Task | None
    units: int  # of all tasks together
    unit: str  # what a unit is, in the plural
    settings: Mapping[str, Any]  # all that decides the results, as JSON
    networks: Mapping[str, str]  # by use: file name and digest
    starts: Sequence[Start] = field(default=())

    @property
    def share(self) -> range:
        """Numbers of the units of this run's task."""
        return (self.task or Task(1, 1)).share(self.units)

    def command_line(self, task: Task | None) -> str:
        if not self.words:  # a call of the library
            return f"the same call from Python{'' if task is None else f' with task={str(task)!r}'}"
        return shlex.join(["yomi", *self.words, *(() if task is None else (FLAG, str(task)))])

    def to_json(self) -> bytes:
        task = None if self.task is None else str(self.task)
        return (json.dumps({"yomi-run": RUN_FORMAT, **asdict(self), "task": task}, indent=1) + "\n").encode()


def without_task(words: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for index, word in enumerate(words):
        is_value = index > 0 and words[index - 1] == FLAG
        if not (is_value or word == FLAG or word.startswith(f"{FLAG}=")):
            kept.append(word)
    return kept


def begin_run(folder: Path, run: Run, done: int, *, is_new: bool) -> None:
    """Write the description of a run that starts now, after the descriptions of its earlier starts.

    Args:
        folder: folder of the run. The caller has checked that it is the folder of this work.
        run: description of the run.
        done: number of units that are done already.
        is_new: whether the folder is empty: not even a part of a unit is done.

    Raises:
        JobError: the description of the earlier starts is broken.
        OSError: it cannot be written.
    """
    path = folder / RUN_NAME
    earlier: Sequence[Start] = read_run(folder).starts if path.exists() and not is_new else ()
    start = Start(__version__, start_facts(), round(time.time(), 3), done)
    write_atomically(path, replace(run, words=without_task(run.words), starts=[*earlier, start]).to_json(), sync=True)


def read_run(folder: Path) -> Run:
    """Return the description of the run in a folder.

    Raises:
        JobError: there is none, or it is broken.
    """
    path = folder / RUN_NAME
    try:
        data = parse_json(path.read_bytes())
    except OSError as error:
        raise JobError(f"{path}: {error.strerror}: expected the folder of a run or part") from None
    except ValueError as error:
        raise JobError(f"{path}: broken JSON ({error})") from None
    try:
        if data.pop("yomi-run") != RUN_FORMAT:
            raise ValueError("another format")
        data["task"] = None if data["task"] is None else Task.parse(data["task"])
        data["starts"] = [Start(**start) for start in data["starts"]]
        run = Run(**data)
        if not _has_form(run):
            raise ValueError("a field has another form")
        return run
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise JobError(f"{path}: expected the description of a run ({error})") from None


def _has_form(run: Run) -> bool:
    texts = [run.command, run.unit, *run.words, *run.networks.values(), *(start.version for start in run.starts)]
    numbers = [run.units, *(start.done for start in run.starts)]
    return (
        all(isinstance(text, str) and text for text in texts)
        and isinstance(run.words, list)
        and isinstance(run.settings, dict)
        and all(type(number) is int and 0 <= number <= MAX_UNITS for number in numbers)
        and len(run.starts) > 0
        and all(isinstance(start.time, int | float) and "host" in start.machine for start in run.starts)
    )


# -- parts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run: its folder, its description, and the units that it has done."""

    folder: Path
    run: Run
    done: frozenset[int]


def part_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the folders of parts. The parts inside a folder replace it if it is no run itself."""
    found: list[Path] = []
    for path in paths:
        inside = [] if (path / RUN_NAME).exists() else sorted(path.glob(f"part-*/{RUN_NAME}"), key=_task_number)
        found += [file.parent for file in inside] or [path]
    return found


def _task_number(path: Path) -> tuple[int, str]:
    numbers = re.findall(r"[0-9]+", path.parent.name)
    return (int(numbers[0]) if numbers else 0, path.parent.name)


def check_parts(parts: Sequence[tuple[Path, Run]]) -> None:
    """Check that parts belong to one run.

    Raises:
        JobError: a part differs in command, version, network, setting or division; or it is no part, or named twice.
    """
    folder, first = parts[0]
    version = first.starts[0].version
    tasks: dict[int, Path] = {}
    for path, run in parts:
        if run.task is None:
            raise JobError(f"{path}: a whole run found, expected a part, made with {FLAG}")
        checks: list[tuple[str, object, object]] = [
            ("command", run.command, first.command),
            ("version", next((start.version for start in run.starts if start.version != version), version), version),
            ("number of tasks", run.task.count, first.task.count if first.task else 0),
            *_networks(run, first),
            ("settings", dict(run.settings), dict(first.settings)),
            (f"number of {first.unit}", run.units, first.units),
        ]
        for name, found, wanted in checks:
            if found != wanted:
                inner = first_difference("" if isinstance(found, dict) else name, found, wanted)
                name, was, expected = inner[0], _short(inner[1]), _short(inner[2])
                raise JobError(f"{path}: {name} {was} found, expected {expected} as in {folder}")
        if run.task.number in tasks:
            raise JobError(f"{path}: task {run.task} found twice, expected it only in {tasks[run.task.number]}")
        tasks[run.task.number] = path


def _networks(run: Run, first: Run) -> list[tuple[str, object, object]]:
    """Return (use, network, network) for each use whose networks differ in two runs. Contents count, not file names."""
    names = dict.fromkeys([*first.networks, *run.networks])
    both = ((name, run.networks.get(name, "none"), first.networks.get(name, "none")) for name in names)
    return [(name, own, other) for name, own, other in both if own.split()[-1] != other.split()[-1]]


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def missing_lines(parts: Sequence[Part]) -> tuple[int, list[str]]:
    """Return the number of units that no part has done, and a line with a command for each task that lacks some."""
    some = parts[0].run
    known = {part.run.task.number: part.done for part in parts if part.run.task is not None}
    lines, total = [], 0
    for part_number in range(1, (some.task.count if some.task else 1) + 1):
        task = Task(part_number, some.task.count if some.task else 1)
        left = [unit for unit in task.share(some.units) if unit not in known.get(part_number, ())]
        if left:
            total += len(left)
            lines.append(f"task {task} lacks {some.unit} {ranges(left, task.count)}: {some.command_line(task)}")
    return total, lines


def ranges(units: Sequence[int], step: int, limit: int = 8) -> str:
    """Return the numbers of units, counted from 1, as text. Equal distances are written as `FIRST to LAST`."""
    runs = [
        [unit for _, unit in group] for _, group in groupby(enumerate(units), lambda pair: pair[1] - pair[0] * step)
    ]
    texts = [
        f"{run[0] + 1} to {run[-1] + 1}" if len(run) > 2 else ", ".join(str(unit + 1) for unit in run) for run in runs
    ]
    return ", ".join(texts[:limit]) + (f" and {len(texts) - limit} more" if len(texts) > limit else "")
