"""The records that a run reviews, and the files that it writes."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.clusters.jobs import JobError
from yomi.engine.records import read_record_bytes
from yomi.engine.reviews.review import ReviewError
from yomi.language import tr
from yomi.nets.files import write_atomically

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.reviews.run import ReviewedGame

MARK = ".yomi"  # before the ending of the files that a review writes
INDEX = "index.yomi.html"


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A record to review, and the folder of its review. A record that is named twice has two jobs."""

    path: Path
    folder: Path


def find_jobs(games: Mapping[str, Game[Any, Any]], paths: Sequence[Path], out: Path | None) -> list[Job]:
    """Return the records in files and folders. Files that a review has written are skipped in folders.

    `out` is the folder of the reviews; None: they are written beside their records. Raises JobError.
    """
    suffixes = known_suffixes(games)
    jobs = []
    for path in paths:
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if _is_record(file, suffixes)]
            if not found:
                text = {"path": path, "suffixes": " ".join(suffixes)}
                raise JobError(
                    tr("{path}: no records found in this folder, expected files ending in {suffixes}", **text)
                )
            jobs += [Job(file, out / file.parent.relative_to(path) if out else file.parent) for file in found]
        elif path.exists():
            jobs.append(Job(path, out or path.parent))
        else:
            raise JobError(tr("{path}: no such file or folder", path=path))
    return jobs


def _is_record(path: Path, suffixes: Sequence[str]) -> bool:
    return path.suffix.lower() in suffixes and Path(path.stem).suffix != MARK and path.is_file()


def known_suffixes(games: Mapping[str, Game[Any, Any]]) -> list[str]:
    return [suffix for game in games.values() for suffix in game.suffixes]


def game_of(games: Mapping[str, Game[Any, Any]], path: Path) -> Game[Any, Any]:
    """Return the game of a record by its name, or by its content if the ending is unknown. Raises ReviewError."""
    for game in games.values():
        if path.suffix.lower() in game.suffixes:
            return game
    try:
        content = read_record_bytes(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError as error:
        raise ReviewError(tr("cannot read {path}: {why}", path=path, why=error.strerror)) from None
    found = next((game for game in games.values() if game.may_be_record(content)), None)
    if found is None:
        known = " ".join(known_suffixes(games))
        raise ReviewError(tr("{path}: no record, expected a name that ends in {suffixes}", path=path, suffixes=known))
    return found


class Output:
    """The files and results of some reviews."""

    def __init__(self, written: set[Path] | None = None) -> None:
        """`written`: files of other reviews of this run, which are not overwritten; new files are added."""
        self.written = set() if written is None else written
        # Name and files of each game, and the cells of its page in the list of pages
        self.games: list[tuple[str, dict[str, Path], Sequence[str]]] = []
        self.reviewed: list[dict[str, Any]] = []  # for the JSON: a game, or an error
        self.engine = ""  # of the last game
        self._places: dict[tuple[Job, str, str], Path] = {}

    @property
    def has_errors(self) -> bool:
        return any("error" in entry for entry in self.reviewed)

    def place(self, job: Job, name: str, suffix: str) -> Path:
        """Return the path of a game's file. Records of equal names get their ending or a number."""
        key = job, name, suffix
        if key not in self._places:
            with_ending = f"{name}{job.path.suffix}"
            stems = itertools.chain((name, with_ending), (f"{with_ending}-{number}" for number in itertools.count(2)))
            paths = (job.folder / f"{stem}{MARK}{suffix}" for stem in stems)
            self._places[key] = next(path for path in paths if path not in self.written)
            self.written.add(self._places[key])
        return self._places[key]

    def write(self, job: Job, name: str, files: Mapping[str, bytes]) -> dict[str, Path]:
        """Write the files of a game by suffix, in place of earlier ones, and return their paths."""
        paths = {suffix: self.place(job, name, suffix) for suffix in files}
        for suffix, data in files.items():
            write(paths[suffix], data)
        return paths

    def add(self, job: Job, game: ReviewedGame) -> dict[str, Path]:
        """Write the files of a reviewed game, keep its results, and return the paths."""
        paths = self.write(job, game.name, game.files)
        self.games.append((game.name, paths, game.cells))
        self.engine = game.engine
        self.reviewed.append({"file": str(job.path), "number": game.number, **game.data})
        return paths

    def write_json(self, path: Path | None) -> None:
        if path is not None:
            text = json.dumps(self.reviewed, indent=1, ensure_ascii=False) + "\n"
            write(path, text.encode("utf-8", "backslashreplace"))  # names of files need not be UTF-8

    def write_index(self, folder: Path | None) -> Path | None:
        """Write a page that links to the pages of several games, to a folder or beside the first page."""
        pages = [(name, paths[".html"], cells) for name, paths, cells in self.games if ".html" in paths]
        if len(pages) < 2:
            return None
        from yomi.engine.pages.review import index_page

        path = (folder or pages[0][1].parent) / INDEX
        reviews = [(name, os.path.relpath(page, path.parent), cells) for name, page, cells in pages]
        write(path, index_page(reviews).encode("utf-8", "backslashreplace"))
        return path


def write(path: Path, data: bytes) -> None:
    """Write a file and its folder, or raise JobError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise JobError(tr("cannot write {path}: {why}", path=path, why=error.strerror)) from None
