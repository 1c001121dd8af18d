"""Reviews of records on a cluster. A unit is a record, as it is for tasks."""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.cli.output import echo, say
from yomi.engine.cli.review_files import Job, Outcome, unused, write
from yomi.engine.cli.review_parts import ReviewShare
from yomi.engine.clusters.actors import ClusterOptions, Places, Recipe, moved, sent_networks
from yomi.engine.clusters.units import Report, UnitPool, UnitWorker
from yomi.engine.options import Options
from yomi.errors import printable
from yomi.nets.files import write_atomically

KEYS = ("path", "games", "reviewed", "broken", "cells", "printed", "noted")


class ReviewUnits(UnitWorker):
    """Reviews records in an actor. The payload of a unit is the name and the content of its file."""

    def __init__(self, places: Places, args: argparse.Namespace, options: Mapping[str, Options]) -> None:
        """`options`: of the reviewer of each game."""
        from yomi.engine.cli.review import Reviewers

        super().__init__()
        self._args = args
        here = {name: moved(one, places) for name, one in options.items()}
        self._reviewers, self._speeds = Reviewers(args, here), dict[str, float]()

    def work(self, unit: int, payload: Any) -> Report:
        from yomi.engine.cli.review import review_file

        name, content = payload
        printed, noted = io.StringIO(), io.StringIO()
        with tempfile.TemporaryDirectory(prefix="yomi-review-") as place:
            folder = Path(place) / "files"
            job = Job(Path(place) / name, folder)
            write_atomically(job.path, content)
            outcome = Outcome(None, [job], self._speeds)
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(noted):
                review_file(job, self._reviewers, self._args, outcome, "")
            games = [[game, {suffix: path.name for suffix, path in paths.items()}] for game, paths in outcome.files]
            files = {path.name: path.read_bytes() for _, paths in outcome.files for path in paths.values()}
        data = {
            "path": str(job.path),
            "games": games,
            "reviewed": outcome.reviewed,
            "broken": outcome.broken,
            "cells": [cells for _, _, cells in outcome.pages],
            "printed": printed.getvalue(),
            "noted": [line for line in noted.getvalue().splitlines() if str(job.path) in line],
        }
        return Report(data, files)

    def close(self) -> None:
        self._reviewers.close()


def review_on_cluster(
    cluster: ClusterOptions,
    args: argparse.Namespace,
    options: Mapping[str, Options],
    jobs: Sequence[Job],
    share: ReviewShare,
) -> int:
    """Review the records that a share lacks, and return the number of unreadable records.

    Args:
        cluster: the cluster.
        args: of the command.
        options: of the reviewer of each game.
        jobs: all records.
        share: receives the reviewed records in their order, so that files of equal names get the same names as without
            a cluster.

    Raises:
        ClusterError: the cluster is lost, or a record fails again and again.
        OSError: a file cannot be read or written.
    """
    if not share.left:
        return 0
    sent = copy.copy(args)
    sent.cluster = sent.config = None  # the options contain its values
    networks = sent_networks(options.values())

    def payload(unit: int) -> tuple[str, bytes]:
        return jobs[unit].path.name, jobs[unit].path.read_bytes()

    def check(unit: int, report: Report) -> Report:
        return _checked(report, jobs[unit])

    recipe = Recipe(ReviewUnits, (sent, dict(options)), networks)
    broken, written = 0, share.written
    with UnitPool(cluster, lambda actors: (recipe, 1), say) as pool:
        for unit, report in pool.run(share.left, payload, check, in_order=True):
            outcome = _outcome(report, jobs[unit], written)
            share.add(unit, outcome)
            broken += outcome.broken
    return broken


def _checked(report: Report, job: Job) -> Report:
    """Return a report on a record. Raises ValueError if it is none."""
    data = report.data
    names = [(game, suffix) for game, paths in data["games"] for suffix in paths]
    files = [file for _, paths in data["games"] for file in paths.values()]
    if not (
        set(data) == set(KEYS)
        and all(isinstance(game, str) and game.startswith(job.path.stem) for game, _ in data["games"])
        and all(Path(game + suffix).name == game + suffix and suffix.startswith(".") for game, suffix in names)
        and sorted(files) == sorted(report.files)
        and all(isinstance(entry, dict) and isinstance(entry["file"], str) for entry in data["reviewed"])
        and isinstance(data["broken"], int)
        and isinstance(data["cells"], list)
        and all(isinstance(text, str) for text in (data["path"], data["printed"], *data["noted"]))
        and Path(data["path"]).is_absolute()
    ):
        raise ValueError("expected the review of a record")
    return report


def _outcome(report: Report, job: Job, written: set[Path]) -> Outcome:
    """Write the files of a reviewed record, print its tables, and return what the command keeps of it."""
    data = report.data
    outcome = Outcome(None, [job], written=written, broken=data["broken"])
    places = {data["path"]: str(job.path)}  # on the actor's machine, and here
    cells = iter(data["cells"])
    for game, files in data["games"]:
        paths = {}
        for suffix, file in files.items():
            paths[suffix] = path = unused(job, game, suffix, written)
            written.add(path)
            write(path, report.files[file])
            places[str(Path(data["path"]).parent / "files" / file)] = str(path)
        outcome.files.append((game, paths))
        if ".html" in paths:
            outcome.pages.append((game, paths[".html"], next(cells, ())))
    for entry in data["reviewed"]:
        outcome.reviewed.append({name: _placed(value, places) for name, value in entry.items()})
    for line in data["noted"]:
        say(_placed(line, places).removeprefix("yomi: "))
    if data["printed"]:
        echo(printable(_placed(data["printed"], places), keep="\n\t").rstrip("\n") + "\n")
    return outcome


def _placed(value: Any, places: Mapping[str, str]) -> Any:
    """Replace the paths of the actor's machine in a text."""
    if not isinstance(value, str):
        return value
    for there, here in places.items():
        value = value.replace(there, here)
    return value
