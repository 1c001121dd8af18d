"""Parts of reviews: the records that a task has reviewed, and the files of all tasks put together."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.cli.loading import file_values
from yomi.engine.cli.review_files import Job, Outcome, unused, write_index, write_json
from yomi.engine.clusters.jobs import (
    RUN_NAME,
    JobError,
    Part,
    Run,
    begin_run,
    named_network,
    read_run,
)
from yomi.engine.registry import GAMES
from yomi.nets.errors import NetworkError
from yomi.nets.files import append_object, complete_lines, copy_file, lock_file, source_digest
from yomi.nets.text import first_difference, parse_json

UNIT = "records"
NAME = "records.jsonl"  # a line for each reviewed record: its number, results and files
# Arguments that neither change the results nor the files of a record, or that have a place of their own
CLUSTER = ("cluster", "actors", "cores_per_process", "gpus_per_process", "insecure")
LEFT_OUT = ("records", "command_words", "out", "task", "json", "worst", "run", "command", "config", *CLUSTER)
LEFT_OUT_OPTIONS = ("net", "value_net", "log_file", "log_level")  # networks count by their content


class ReviewShare:
    """The records that a task reviews, and the journal of the finished records. A context manager."""

    def __init__(
        self, args: argparse.Namespace, folder: Path, jobs: Sequence[Job], networks: Mapping[str, str | None]
    ) -> None:
        """Begin or continue a part.

        Args:
            args: of the command.
            folder: of the part.
            jobs: all records, also of other tasks.
            networks: file of each network, by use.

        Raises:
            JobError: the folder contains another part, or is in use.
            NetworkError, OSError: a file cannot be read or written.
        """
        given = _texts(vars(args), (*LEFT_OUT, *LEFT_OUT_OPTIONS))
        from_file = {game.name: _texts(file_values(args, game), LEFT_OUT_OPTIONS) for game in GAMES.values()}
        names = [f"{job.path.name} {_digest(job.path)}" for job in jobs]
        settings = {**given, "config": from_file, "json": None if args.json is None else args.json.name, UNIT: names}
        named = {use: named_network(file) for use, file in networks.items() if file is not None}
        run = Run("review", args.command_words, args.task, len(jobs), UNIT, settings, named)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.jobs = folder, jobs
        self._file = (folder / NAME).open("a+b", buffering=0)
        try:
            if not lock_file(self._file.fileno(), wait=False):
                raise JobError(f"{folder} is in use by another review: end it, or use another --out")
            self.lines = {line["unit"]: line for line in read_lines(folder)}
            if self.lines:
                _compare(folder, run)
            begin_run(folder, run, len(self.lines), is_new=not self.lines)
        except BaseException:
            self._file.close()
            raise
        self.left = [unit for unit in run.share if unit not in self.lines]

    def add(self, unit: int, outcome: Outcome) -> None:
        """Store a reviewed record. Raises OSError."""
        games = [
            {"name": name, "files": {suffix: str(path.relative_to(self.folder)) for suffix, path in files.items()}}
            for name, files in outcome.files
        ]
        line = {
            "unit": unit,
            "path": self.jobs[unit].path.name,
            "folder": str(self.jobs[unit].folder.relative_to(self.folder)),
            "games": games,
            "reviewed": outcome.reviewed,
            "cells": [cells for _, _, cells in outcome.pages],
        }
        append_object(self._file, line, sync=True)

    @property
    def written(self) -> set[Path]:
        """The files of the records that are done."""
        games = (game for line in self.lines.values() for game in line["games"])
        return {self.folder / file for game in games for file in game["files"].values()}

    def __enter__(self) -> ReviewShare:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _compare(folder: Path, run: Run) -> None:
    """Raise JobError if a folder contains the records of another review."""
    found, wanted = read_run(folder), parse_json(run.to_json())
    for name in ("networks", "settings"):
        old, new = getattr(found, name), wanted[name]
        if old != new:
            name, was, now = first_difference("", old, new)
            raise JobError(
                f"{folder} belongs to another review: {name} was {was!r:.80}, now {now!r:.80}; use the same "
                "settings, or another --out"
            )


def _texts(values: Mapping[str, object], leave_out: Sequence[str]) -> dict[str, str]:
    return {name: str(value) for name, value in sorted(values.items()) if name not in leave_out}


def _digest(path: Path) -> str:
    with contextlib.suppress(NetworkError):  # the review reports a file that cannot be read
        return source_digest(path)[:16]
    return "unreadable"


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the reviewed records of a part.

    Raises:
        JobError: the file is damaged, or names a file outside of the folder.
        OSError: it cannot be read.
    """
    path = folder / NAME
    found = []
    try:
        for text in complete_lines(path.read_bytes()):
            line = parse_json(text)
            files = [file for game in line["games"] for file in game["files"].values()]
            names = [line["path"], *(game["name"] + suffix for game in line["games"] for suffix in game["files"])]
            places = [Path(place) for place in (*files, line["folder"])]
            if any(place.is_absolute() or ".." in place.parts or "\0" in str(place) for place in places):
                raise ValueError("a place outside of the folder")
            if any(Path(name).name != name or "\0" in name for name in names) or type(line["unit"]) is not int:
                raise ValueError("a field has another form")
            if not isinstance(line["reviewed"], list) or not isinstance(line["cells"], list):
                raise ValueError("a field has another form")
            found.append(line)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError(f"{path}: expected the records of a review ({error})") from None
    return found


def done(folder: Path, run: Run, games: object) -> frozenset[int]:
    """Return the numbers of the reviewed records.

    Raises:
        JobError: a record is there twice, or is none of the run; also see `read_lines`.
    """
    found: set[int] = set()
    names = run.settings.get(UNIT, [])
    for line in read_lines(folder):
        unit, name = line["unit"], line["path"]
        if unit in found:
            raise JobError(f"{folder / NAME}: record {unit + 1} ({name}) found twice, expected one line a record")
        if unit < len(names) and str(names[unit]).rpartition(" ")[0] != name:
            raise JobError(f"{folder / NAME}: record {unit + 1} is {name}, expected {names[unit]} as in {RUN_NAME}")
        found.add(unit)
    return frozenset(found)


def merge(parts: Sequence[Part], out: Path) -> None:
    """Copy the files of all records, with the names that one review would give them, and write index and JSON.

    Raises:
        JobError, OSError: a file cannot be read or written.
    """
    lines = [(line, part.folder) for part in parts for line in read_lines(part.folder)]
    lines.sort(key=lambda pair: pair[0]["unit"])
    outcome = Outcome(None, [])
    with (out / NAME).open("a+b", buffering=0) as file:
        for line, folder in lines:
            job, games = Job(Path(line["path"]), out / line["folder"]), []
            cells = iter(line["cells"])
            for game in line["games"]:
                paths = {}
                for suffix, source in game["files"].items():
                    path = unused(job, game["name"], suffix, outcome.written)
                    outcome.written.add(path)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    copy_file(folder / source, path)
                    paths[suffix] = path
                if ".html" in paths:
                    outcome.pages.append((game["name"], paths[".html"], next(cells)))
                games.append({**game, "files": {key: str(path.relative_to(out)) for key, path in paths.items()}})
            outcome.reviewed += line["reviewed"]
            append_object(file, {**line, "games": games})
    settings = parts[0].run.settings
    write_index(out, outcome, quiet=True)
    if settings["json"] is not None:
        write_json(out / Path(settings["json"]).name, outcome)


def collected(folder: Path) -> Outcome:
    """Return the pages and results of all records in a folder. Errors: see `read_lines`."""
    outcome = Outcome(None, [])
    for line in sorted(read_lines(folder), key=lambda line: int(line["unit"])):
        cells = iter(line["cells"])
        for game in line["games"]:
            if ".html" in game["files"]:
                outcome.pages.append((game["name"], folder / game["files"][".html"], next(cells)))
        outcome.reviewed += line["reviewed"]
    return outcome


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return the number of games and of records that could not be reviewed. Errors: see `read_lines`."""
    found = [entry for folder in folders for line in read_lines(folder) for entry in line["reviewed"]]
    broken = sum("error" in entry for entry in found)
    return [f"{len(found) - broken} games reviewed; unreadable records: {broken}"]
