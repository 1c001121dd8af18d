"""`yomi merge`: makes one run from parts of `--task`. `yomi status`: shows the progress of runs and their parts."""

import argparse
import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.clusters.jobs import (
    RUN_NAME,
    JobError,
    Part,
    Run,
    Task,
    check_parts,
    missing_lines,
    part_folders,
    ranges,
    read_run,
)
from yomi.engine.registry import GAMES
from yomi.nets.files import draft_folder, write_atomically
from yomi.time_left import duration

USAGE = "yomi merge PART [PART ...] --out FOLDER"
EPILOG = """\
examples:
  yomi match yomi:visits=100 yomi:visits=200 --size 9 --games 1000 --out strength --task 1/2
  yomi match yomi:visits=100 yomi:visits=200 --size 9 --games 1000 --out strength --task 2/2       on another machine
  yomi merge strength/part-1-of-2 strength/part-2-of-2 --out merged

A PART is a folder part-i-of-n that a command has written with --task i/n, or a folder with such parts. The merged
folder is that of one run without --task. Parts of another version, network or setting are refused. If units are
missing, the command names them and the commands that make them. yomi help clusters explains it.
"""
# The functions `done`, `results` and, for commands with tasks, `merge` of each command
KINDS = {
    "tune": "yomi.engine.matches.tuning",
    **dict.fromkeys(("match", "duel"), "yomi.engine.matches.parts"),
    "review": "yomi.engine.reviews.shares",
    **dict.fromkeys(("dataset play", "dataset make", "dataset vary"), "yomi.engine.datasets.shards"),
}


def add(parser: argparse.ArgumentParser) -> None:
    text = "read these parts, or the parts in a folder"
    parser.add_argument("parts", nargs="+", type=Path, metavar="PART", help=text)
    text = "write the whole run to this folder; must not exist"
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help=text)


def kind_of(run: Run) -> Any:
    """Return the module that merges parts of this run's command. Raises JobError if no command has this name."""
    if run.command not in KINDS:
        raise JobError(f"a run of yomi {run.command} found, expected one of {', '.join(KINDS)}")
    return importlib.import_module(KINDS[run.command])


def read_parts(folders: Sequence[Path]) -> list[Part]:
    """Return the parts in folders, ordered by task. Errors: see `check_parts` and the command's `done`."""
    found = [(folder, read_run(folder)) for folder in part_folders(folders)]
    check_parts(found)
    found.sort(key=lambda pair: pair[1].task.number if pair[1].task else 0)
    parts = [Part(folder, run, frozenset(kind_of(run).done(folder, run, GAMES))) for folder, run in found]
    for part in parts:
        if foreign := sorted(part.done - set(part.run.share)):
            raise JobError(f"{part.folder}: {part.run.unit} {ranges(foreign, 1)} found, expected its own")
    return parts


def run(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise CliError(f"--out {args.out} exists: expected the name of a new folder")
    parts = read_parts(args.parts)
    missing, lines = missing_lines(parts)
    some = parts[0].run
    if missing:
        for line in lines:
            say(line)
        raise CliError(f"{missing} of {some.units} {some.unit} are missing: run the commands above, then merge again")
    starts = [start for part in parts for start in part.run.starts]
    with draft_folder(args.out) as folder:
        kind_of(some).merge(parts, folder)
        write_atomically(folder / RUN_NAME, replace(some, task=None, starts=starts).to_json())
    echo(f"{len(parts)} parts, {some.units} {some.unit} merged in {args.out}")
    return 0


# -- yomi status -------------------------------------------------------------------------------------------------------

STATUS_USAGE = "yomi status FOLDER [FOLDER ...] [--html FILE]"
STATUS_EPILOG = """\
examples:
  yomi status match                  a folder of yomi match, with its parts if there are any
  yomi status match learn-go --html status.html

The command shows progress, speed, time left, the tasks that are waited for, and the results so far.
"""
SILENT_SECONDS = 600.0  # without a new unit; a run that is silent for longer may have been killed


def _add_status(parser: argparse.ArgumentParser) -> None:
    text = "show the runs in these folders"
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help=text)
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page with the status")


def _run_status(args: argparse.Namespace) -> int:
    from yomi.engine.learning.page import comparison_text, short_names, write_runs
    from yomi.engine.learning.store import Store

    now = time.time()
    shown = [_data(folder, name, now) for folder, name in zip(args.folders, short_names(args.folders), strict=True)]
    learned = [folder for folder in args.folders if (folder / Store.SETTINGS).exists()]
    for folder, data in zip(args.folders, shown, strict=True):
        echo((f"{folder}\n" if len(shown) > 1 else "") + data["text"].rstrip())
    if len(learned) > 1:
        echo(comparison_text(learned, short_names(learned)))
    if args.html is not None:
        write_runs(shown, args.html, now)
        echo(f"written to {args.html}")
    return 0


def _data(folder: Path, name: str, now: float) -> dict[str, Any]:
    """Return the status of a run's folder in the form that the page displays."""
    from yomi.engine.learning.page import plain_data, run_data
    from yomi.engine.learning.store import Store

    if (folder / Store.SETTINGS).exists():
        return run_data(folder, name, now)
    folders = part_folders([folder])
    if not all((part / RUN_NAME).exists() for part in folders):
        raise CliError(f"{folder}: no {RUN_NAME} found, expected the folder of a run")
    shares = [_Share.read(part) for part in folders]
    if len(shares) > 1:
        check_parts([(share.folder, share.run) for share in shares])
    is_running = any(share.left and now - share.changed < SILENT_SECONDS for share in shares)
    return plain_data(name, f"yomi {shares[0].run.command}", status_text(shares, now), is_running)


@dataclass(frozen=True, slots=True)
class _Share:
    """A run or a part of one, with its progress."""

    folder: Path
    run: Run
    done: int  # units
    changed: float  # time of the newest result, in Unix seconds

    @classmethod
    def read(cls, folder: Path) -> "_Share":
        run = read_run(folder)
        return cls(folder, run, len(kind_of(run).done(folder, run, GAMES)), _changed(folder))

    @property
    def left(self) -> int:
        return len(self.run.share) - self.done

    @property
    def rate(self) -> float:
        """Units per second since the last start, 0 before the first."""
        start = self.run.starts[-1]
        return (self.done - start.done) / max(1e-3, self.changed - start.time)


def _changed(folder: Path) -> float:
    """Return the time of the newest result. The description of the run and unfinished files are no results."""
    names = (path for path in folder.iterdir() if path.name != RUN_NAME and not path.name.startswith("."))
    return max((path.stat().st_mtime for path in names), default=0.0)


def status_text(shares: Sequence[_Share], now: float) -> str:
    """Return the status of a run, or of all its parts, for the terminal. `now` is in Unix seconds."""
    run = shares[0].run
    starts = [start for share in shares for start in share.run.starts]
    machines = dict.fromkeys(f"{start.machine['host']} ({start.machine.get('cpu')})" for start in starts)
    versions = dict.fromkeys(start.version for start in starts)
    count = run.task.count if run.task else 1
    begun = {share.run.task.number for share in shares if share.run.task}
    absent = [Task(number, count) for number in range(1, count + 1) if run.task and number not in begun]
    done = sum(share.done for share in shares)
    active = [share for share in shares if share.left]
    rates = [share.rate for share in active if share.rate > 0.0]
    lines = [
        ("run", f"yomi {run.command}, version {', '.join(versions)}, on {', '.join(machines)}"),
        ("command", run.command_line(None)),
        *((f"{name}", value) for name, value in run.networks.items()),
        ("done", f"{done:,} of {run.units:,} {run.unit} ({done / max(1, run.units):.0%})"),
        ("speed", _rate(sum(rates)) if rates else ""),
    ]
    if rates:
        seconds = max(share.left / share.rate for share in active if share.rate > 0.0)
        unknown = len(active) - len(rates) + len(absent)
        lines.append(
            ("left", f"about {duration(seconds)}" + (f", without {unknown} tasks of unknown speed" * bool(unknown)))
        )
    for share in active:
        progress = f"{share.done:,} of {len(share.run.share):,}"
        rate = f", {_rate(share.rate)}" if share.rate > 0.0 else ""
        last = f", last change {duration(now - share.changed)} ago" if share.changed else ""
        name = f"task {share.run.task}: " if share.run.task else ""
        lines.append(("waits for", f"{name}{progress}{rate}{last}"))
    lines += [("waits for", f"task {task}, not begun: {run.command_line(task)}") for task in absent]
    lines.append(("results", "" if done else "none yet"))
    text = "".join(f"{name:11} {value}\n" for name, value in lines if value)
    if done:
        results = kind_of(run).results([share.folder for share in shares], run)
        text += "\n" + "\n".join(results) + "\n"
    return text


def _rate(rate: float) -> str:
    """Return a rate as text: per second, or in a longer unit of time in which it is at least 1."""
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        if rate * seconds >= 1.0:
            return f"{rate * seconds:.1f} a {unit}"
    return f"{rate * 86400:.1f} a day"


STATUS = Command(STATUS_USAGE, STATUS_EPILOG, _add_status, _run_status)
