"""`yomi merge`: one run from parts that `--task` has made."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError
from yomi.engine.clusters.jobs import (
    RUN_NAME,
    JobError,
    Part,
    Run,
    check_parts,
    missing_lines,
    part_folders,
    ranges,
    read_run,
)
from yomi.engine.registry import GAMES
from yomi.nets.files import draft_folder, write_atomically

USAGE = "yomi merge PART [PART ...] --out FOLDER"
EPILOG = """\
examples:
  yomi match yomi:visits=100 yomi:visits=200 --size 9 --games 1000 --out strength --task 1/2
  yomi match yomi:visits=100 yomi:visits=200 --size 9 --games 1000 --out strength --task 2/2       on another machine
  yomi merge strength/part-1-of-2 strength/part-2-of-2 --out merged

A PART is a folder part-i-of-n that a command has written with --task i/n, or a folder with such parts. The merged
folder is that of one run without --task. Parts of another version, network or setting are refused. If units are
missing, the command names them and the commands that make them. docs/CLUSTERS.md explains it.
"""
# The functions `done`, `results` and, for commands with tasks, `merge` of each command
KINDS = {
    "tune": "yomi.engine.cli.tune",
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
    """Return the module that merges this command's runs. Raises JobError."""
    if run.command not in KINDS:
        raise JobError(f"a run of yomi {run.command} found, expected one of {', '.join(KINDS)}")
    return importlib.import_module(KINDS[run.command])


def read_parts(folders: Sequence[Path]) -> list[Part]:
    """Return the parts in folders, in the order of their tasks. Errors: see `check_parts` and the command's `done`."""
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
