"""Reviews of many records by tasks or a cluster. Each record is a unit. `merge` collects the files of all tasks."""

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.clusters.actors import ClusterOptions, Places, Recipe, moved, sent_networks
from yomi.engine.clusters.jobs import RUN_NAME, JobError, Part, Run, Task, begin_run, read_run
from yomi.engine.clusters.units import UnitPool, UnitWorker
from yomi.engine.game import Game, Say
from yomi.engine.options import Options
from yomi.engine.reviews.run import RECORD_ERRORS, Job, Output, ReviewedGame, Reviewers, ReviewSettings
from yomi.engine.reviews.scans import Progress
from yomi.nets.errors import NetworkError
from yomi.nets.files import append_object, complete_lines, copy_file, name_with_digest, source_digest, write_atomically
from yomi.nets.text import first_difference, parse_json
from yomi.system import lock_file

UNIT = "records"
NAME = "records.jsonl"  # a line for each reviewed record: its number, results and files
RECORD = "{record}"  # stands for the path of the record in the errors of an actor


class ReviewShare(contextlib.AbstractContextManager["ReviewShare"]):
    """The records that one task reviews, with a journal of the finished records. A context manager."""

    def __init__(
        self,
        folder: Path,
        jobs: Sequence[Job],
        words: Sequence[str],
        task: Task | None,
        settings: Mapping[str, Any],
        networks: Mapping[str, str],
    ) -> None:
        """Begin a part of the review, or continue it.

        Args:
            folder: folder of the part.
            jobs: all records, including the records of other tasks.
            words: the command line.
            task: the share; None: all records.
            settings: everything that decides the results and files of a record, as JSON. All parts must have the same.
            networks: file of each network, by use.

        Raises:
            JobError: the folder contains another part, or is in use.
            NetworkError, OSError: a file cannot be read or written.
        """
        names = [f"{job.path.name} {_digest(job.path)}" for job in jobs]
        named = {use: name_with_digest(file) for use, file in networks.items()}
        run = Run("review", words, task, len(jobs), UNIT, {**settings, UNIT: names}, named)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.jobs = folder, jobs
        self._file = (folder / NAME).open("a+b", buffering=0)
        try:
            if not lock_file(self._file.fileno(), wait=False):
                raise JobError(f"{folder} is in use by another review: end it, or use another --out")
            lines = read_lines(folder)
            if lines:
                _compare(folder, run)
            begin_run(folder, run, len(lines), is_new=not lines)
        except BaseException:
            self._file.close()
            raise
        known = {line["unit"] for line in lines}
        self.left = [unit for unit in run.share if unit not in known]
        # The files of the records that are done
        self.written = {folder / file for line in lines for game in line["games"] for file in game["files"].values()}

    def add(self, unit: int, output: Output) -> None:
        """Store a reviewed record. Raises OSError."""
        games = [
            {"name": name, "files": {suffix: str(path.relative_to(self.folder)) for suffix, path in files.items()}}
            for name, files, _ in output.games
        ]
        line = {
            "unit": unit,
            "path": self.jobs[unit].path.name,
            "folder": str(self.jobs[unit].folder.relative_to(self.folder)),
            "games": games,
            "reviewed": output.reviewed,
            "cells": [entry for _, files, entry in output.games if ".html" in files],
        }
        append_object(self._file, line, sync=True)

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _compare(folder: Path, run: Run) -> None:
    """Raise JobError if a folder contains the review of other records."""
    found, wanted = read_run(folder), parse_json(run.to_json())
    for name in ("networks", "settings"):
        old, new = getattr(found, name), wanted[name]
        if old != new:
            name, was, now = first_difference("", old, new)
            raise JobError(
                f"{folder} belongs to another review: {name} was {was!r:.80}, now {now!r:.80}; use the same "
                "settings, or another --out"
            )


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
        JobError: a record occurs twice, or does not belong to the run; see also `read_lines`.
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
    """Copy the files of all records, and write index and JSON. The files get the names that one review would use.

    Raises:
        JobError, OSError: a file cannot be read or written.
    """
    lines = [(line, part.folder) for part in parts for line in read_lines(part.folder)]
    lines.sort(key=lambda pair: pair[0]["unit"])
    written = set[Path]()
    with (out / NAME).open("a+b", buffering=0) as file:
        for line, folder in lines:
            job, output, games = Job(Path(line["path"]), out / line["folder"]), Output(written), []
            for game in line["games"]:
                paths = {}
                for suffix, source in game["files"].items():
                    path = output.place(job, game["name"], suffix)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    copy_file(folder / source, path)
                    paths[suffix] = str(path.relative_to(out))
                games.append({**game, "files": paths})
            append_object(file, {**line, "games": games})
    whole = collected(out)
    whole.write_index(out)
    settings = parts[0].run.settings
    if settings["json"] is not None:
        whole.write_json(out / Path(settings["json"]).name)


def collected(folder: Path) -> Output:
    """Return the pages and results of all records in a folder. Errors: see `read_lines`."""
    output = Output()
    for line in sorted(read_lines(folder), key=lambda line: int(line["unit"])):
        entries = iter(line["cells"])
        for game in line["games"]:
            files = {suffix: folder / file for suffix, file in game["files"].items()}
            entry: Any = next(entries, {}) if ".html" in files else {}  # an earlier version wrote a list of texts
            output.games.append((game["name"], files, entry if isinstance(entry, dict) else {}))
        output.reviewed += line["reviewed"]
    return output


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return lines with the number of reviewed games and of failed records. Errors: see `read_lines`."""
    found = [entry for folder in folders for line in read_lines(folder) for entry in line["reviewed"]]
    broken = sum("error" in entry for entry in found)
    return [f"{len(found) - broken} games reviewed; unreadable records: {broken}"]


# -- on a cluster --------------------------------------------------------------------------------------------------


class ReviewUnits(UnitWorker):
    """Reviews records in an actor. The payload of a unit is the name and content of a record's file."""

    def __init__(
        self,
        places: Places,
        games: Mapping[str, Game[Any, Any]],
        settings: ReviewSettings,
        options: Mapping[str, Options],
    ) -> None:
        """Store the arguments. `options` are the options of the reviewers by game."""
        super().__init__()
        here = {name: moved(one, places) for name, one in options.items()}
        self._reviewers = Reviewers(games, lambda game: here[game.name], settings, lambda line: None)

    def work(self, number: int, payload: Any) -> tuple[list[ReviewedGame], str]:
        """Return the reviewed games of a record, and an error, which is empty if the review succeeded."""
        games, error = list[ReviewedGame](), ""
        with tempfile.TemporaryDirectory(prefix="yomi-review-") as folder:
            path = Path(folder) / payload[0]
            write_atomically(path, payload[1])
            try:
                for number, (name, review) in enumerate(self._reviewers.review(path, Progress()), 1):
                    games.append(self._reviewers.settings.finish(name, number, review))
            except RECORD_ERRORS as fault:
                error = self._reviewers.fault(path, fault).replace(str(path), RECORD)
        return games, error

    def close(self) -> None:
        self._reviewers.close()


def review_on_cluster(
    cluster: ClusterOptions,
    reviewers: Reviewers,
    share: ReviewShare,
    publish: Callable[[Job, Sequence[ReviewedGame], str], Output],
    say: Say,
) -> None:
    """Review the records that are missing in a share, on a cluster.

    Args:
        cluster: the cluster.
        reviewers: contain the games, settings and options.
        share: receives the reviewed records in their order, so that files of equal names get the same names as without
            a cluster.
        publish: writes and prints the games of a record and its error (empty if there is none).
        say: shows lost actors.

    Raises:
        ClusterError: the cluster is lost, or a record fails again and again.
        OSError: a file cannot be read or written.
    """
    if not share.left:
        return
    jobs = share.jobs
    options = reviewers.options_of([job.path for job in jobs])

    records = ((unit, (jobs[unit].path.name, jobs[unit].path.read_bytes())) for unit in share.left)
    recipe = Recipe(ReviewUnits, (dict(reviewers.games), reviewers.settings, options), sent_networks(options.values()))
    with UnitPool(cluster, lambda actors: (recipe, 1), say) as pool:
        for unit, (games, error) in pool.run(records, in_order=True):
            share.add(unit, publish(jobs[unit], games, error.replace(RECORD, str(jobs[unit].path))))
