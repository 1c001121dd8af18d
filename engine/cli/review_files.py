"""Files and progress bars of `yomi review`."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError
from yomi.engine.cli.review_progress import ReviewJournal
from yomi.engine.color import BLACK, WHITE
from yomi.engine.records import report_notes
from yomi.engine.review_scans import FIRST, FULL, Progress
from yomi.errors import printable
from yomi.language import counted, is_japanese, tr
from yomi.nets.files import write_atomically

if TYPE_CHECKING:
    from yomi.engine.review import Annotated, Review

MARK = ".yomi"
"""Precedes the ending of the files that a review writes."""
INDEX = "index.yomi.html"
QUIZ = {"black": (BLACK,), "white": (WHITE,), "both": (BLACK, WHITE)}


@dataclass(slots=True)
class Job:
    path: Path
    folder: Path


@dataclass(slots=True)
class Outcome:
    journal: ReviewJournal | None  # None: no positions of an earlier review
    jobs: list[Job]
    speeds: dict[str, float] = field(default_factory=dict)  # Visits per second by game; 0 if depth is the only limit
    reviewed: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    fresh: int = 0  # files of which no earlier run has searched a position: these show the speed
    written: set[Path] = field(default_factory=set)
    engine: str = ""
    """The evaluator of the last record."""
    quizzes: list[tuple[str, Annotated]] = field(default_factory=list)  # names and games
    pages: list[tuple[str, Path, Sequence[str]]] = field(default_factory=list)  # with the `index_cells`
    files: list[tuple[str, dict[str, Path]]] = field(default_factory=list)  # of each game, by suffix


def write_json(path: Path | None, outcome: Outcome) -> None:
    if path is not None:
        text = json.dumps(outcome.reviewed, indent=1, ensure_ascii=False) + "\n"
        write(path, text.encode("utf-8", "backslashreplace"))  # names of files need not be UTF-8


def write_index(out: Path | None, outcome: Outcome, *, quiet: bool = False) -> None:
    """Write a page that links to the pages of several games, to --out or beside the first page."""
    if len(outcome.pages) > 1:
        from yomi.engine.pages.review import index_page

        path = (out or outcome.pages[0][1].parent) / INDEX
        reviews = [(name, os.path.relpath(page, path.parent), cells) for name, page, cells in outcome.pages]
        write(path, index_page(reviews).encode("utf-8", "backslashreplace"))
        if not quiet:
            echo(tr("list of all pages: {path}", path=printable(path)))


class Bars(Progress):
    """Shows a bar with the time left for each scan of a game."""

    def __init__(self, name: str, files: GameFiles) -> None:
        self._name, self._files = name, files
        self._bar: Any = None

    def begin(self, scan: int, positions: int, known: int) -> None:
        from yomi.engine.cli.bars import Bar

        self.close()
        first, later = tr("{name}, first pass", name=self._name), tr("{name}, unclear positions", name=self._name)
        text = {FIRST: first, FULL: self._name}.get(scan, later)
        unit = "手" if is_japanese() else "move"
        self._bar = Bar(total=positions, initial=known, desc=text, unit=unit, mininterval=0.5, file=sys.stderr)

    def tick(self) -> None:
        self._bar.update()

    def first_pass(self, annotated: Annotated) -> None:
        self.close()
        self._files.preview(annotated)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class GameFiles:
    """The files of a game: written after the first pass, and again at the end."""

    def __init__(self, job: Job, name: str, args: argparse.Namespace, outcome: Outcome) -> None:
        self._job, self._name, self._args, self._outcome = job, name, args, outcome
        self._paths: dict[str, Path] = {}

    def preview(self, annotated: Annotated) -> None:
        """Write the results of the first pass, and print its winrates."""
        from yomi.engine.review_text import curve

        self._write(annotated)
        review = annotated.review
        side, bars = review.side(BLACK), curve(review)
        say(tr("{name}: {side}'s winrate after the first pass: {curve}", name=self._name, side=side, curve=bars))
        for path in self._paths.values():
            say(tr("first results in {path}", path=path))

    def publish(self, annotated: Annotated) -> None:
        """Write the files, and print the table."""
        self._write(annotated)
        if ".html" in self._paths:
            from yomi.engine.pages.review import index_cells

            self._outcome.pages.append((self._name, self._paths[".html"], index_cells(annotated.review)))
        self._outcome.files.append((self._name, self._paths))
        engine = annotated.review.engine
        is_new, self._outcome.engine = engine != self._outcome.engine, engine
        paths = list(self._paths.values())
        _print(self._job.path, self._name, annotated.review, self._args.worst, paths, f"; {engine}" if is_new else "")

    def _write(self, annotated: Annotated) -> None:
        """Write the files, without overwriting those of another record."""
        args = self._args
        files = annotated.files() if args.record else {}
        if args.html:
            from yomi.engine.pages.review import review_page

            files[".html"] = review_page(annotated.review, QUIZ.get(args.quiz, ())).encode()
        if args.plot:
            from yomi.engine.review_text import draw

            files[".png"] = draw(annotated.review, self._name)
        written = self._outcome.written
        for suffix, data in files.items():
            if suffix not in self._paths:
                self._paths[suffix] = unused(self._job, self._name, suffix, written)
                written.add(self._paths[suffix])
            write(self._paths[suffix], data)


def unused(job: Job, name: str, suffix: str, written: set[Path]) -> Path:
    """Return a path that no other record of this run uses. Records of equal names get their ending or a number."""
    with_ending = f"{name}{job.path.suffix}"
    names = itertools.chain((name, with_ending), (f"{with_ending}-{number}" for number in itertools.count(2)))
    paths = (job.folder / f"{stem}{MARK}{suffix}" for stem in names)
    return next(path for path in paths if path not in written)


def _print(path: Path, name: str, review: Review, worst: int, written: Sequence[Path], engine: str) -> None:
    from yomi.engine.review_text import table

    report_notes(say, path, review.notes)
    rate = review.evaluations / review.seconds if review.seconds else 0.0
    count = len(review.opinions)
    number = f" ({name})" if name != path.stem else ""
    echo(printable(f"{path}{number}: {review.heading()}"))
    echo(table(review, worst))
    text = counted(
        "{n} position in {seconds} s, {evaluations} evaluations, {rate}/s",
        "{n} positions in {seconds} s, {evaluations} evaluations, {rate}/s",
        count,
        seconds=f"{review.seconds:.1f}",
        evaluations=review.evaluations,
        rate=f"{rate:.0f}",
    )
    echo(f"\n{text}{engine}")
    echo("".join(tr("written to {path}", path=printable(file)) + "\n" for file in written))


def write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise CliError(tr("cannot write {path}: {why}", path=path, why=error.strerror)) from None
