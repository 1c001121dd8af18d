"""Reviews of files, for the command line, the library, tasks and clusters. Start reading at `Reviewers.review`."""

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yomi import language
from yomi.engine.clusters.jobs import JobError
from yomi.engine.default_network import named_file, network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.game import Game, Say
from yomi.engine.mistakes import BOTH, DEFAULT, WINRATE, Thresholds
from yomi.engine.options import Options
from yomi.engine.records import Note, read_record_bytes
from yomi.engine.reviews.review import Review, ReviewError
from yomi.engine.reviews.scans import (
    FIRST_SECONDS,
    KnownPositions,
    Plan,
    Progress,
    Reviewer,
    ReviewJournal,
    count_positions,
    estimate,
    first_visits,
    full_time,
)
from yomi.errors import fault_of, reraised
from yomi.language import counted, tr
from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.settings import OptionError

COMMAND = "analyze"  # key of the games' defaults
DEFAULT_VISITS = 100  # of a position
DEFAULT_NODES = 100_000  # of a position by alpha-beta: about 0.2 s
MARK = ".yomi"  # before the ending of the files that a review writes
INDEX = "index.yomi.html"
RECORD_ERRORS = (ReviewError, NetworkError, EvaluatorError)  # of one record: the review of others continues


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """How records are reviewed, and which files a review writes. The options of the engine are separate."""

    thresholds: Thresholds = DEFAULT
    quick: int | float | None = None
    """The first pass: visits of each position, or its seconds (a float). 0: none; None: all that fits in 40 s."""
    worst: int = 5  # moves of each side in the table
    record: bool = True  # the annotated record
    html: bool = False
    plot: bool = False
    quiz: tuple[int, ...] = ()  # sides whose mistakes the page asks for

    def plan(self, options: Options, speed: float, positions: int, unit: str = "visits") -> Plan:
        """Return the plan for searching a game. `speed` is visits or nodes (`unit`) per second. Raises OptionError."""
        wanted = self.quick
        if wanted is None and options.seed is not None:
            wanted = 0  # the clock must not decide
        if isinstance(wanted, int):
            visits = wanted
        else:
            found = full_time(options, speed, positions, unit)
            full = None if found is None else found[0]
            visits = first_visits(options, full, speed, positions, FIRST_SECONDS if wanted is None else wanted)
        limit = min((n for n in (options.visits, options.playouts) if n is not None), default=None)
        if visits == 1 or (limit is not None and visits >= limit):
            values = {"visits": visits, "most": limit or "visits"}
            raise OptionError(
                tr("--quick {visits}: expected 0, or 2 and more, fewer than the full search's {most}", **values)
            )
        return Plan(self.thresholds, visits)

    def files(self, review: Review, name: str) -> dict[str, bytes]:
        """Return the files of a review by suffix. `name` is the name of the game."""
        files = review.files() if self.record else {}
        if self.html:
            from yomi.engine.pages.review import review_page

            files[".html"] = review_page(review, self.quiz).encode()
        if self.plot:
            from yomi.engine.reviews.text import draw

            files[".png"] = draw(review, name)
        return files

    def finish(self, name: str, number: int, review: Review) -> "ReviewedGame":
        from yomi.engine.pages.review import index_entry
        from yomi.engine.reviews.text import table

        rate = review.evaluations / review.seconds if review.seconds else 0.0
        figures = counted(
            "{n} position in {seconds} s, {evaluations} evaluations, {rate}/s",
            "{n} positions in {seconds} s, {evaluations} evaluations, {rate}/s",
            len(review.opinions),
            seconds=f"{review.seconds:.1f}",
            evaluations=review.evaluations,
            rate=f"{rate:.0f}",
        )
        files, entry = self.files(review, name), index_entry(review) if self.html else {}
        texts = review.heading(), table(review, self.worst), figures, review.engine
        return ReviewedGame(name, number, *texts, review.to_json(), entry, review.notes, files)


@dataclass(frozen=True, slots=True)
class ReviewedGame:
    """The results of a game's review as texts and files. Actors of a cluster send them."""

    name: str  # of its files
    number: int  # in the record, from 1
    heading: str
    table: str
    figures: str  # time and evaluations
    engine: str
    data: dict[str, Any]  # for the JSON
    entry: dict[str, Any]  # of the list of pages
    notes: Sequence[Note]
    files: dict[str, bytes] = field(repr=False)  # by suffix


class Reviewers:
    """The reviewers by game. Each is created for the first record of its game."""

    def __init__(
        self,
        games: Mapping[str, Game[Any, Any]],
        find_options: Callable[[Game[Any, Any]], Options],
        settings: ReviewSettings,
        say: Say,
    ) -> None:
        """Store the arguments. No reviewer is created yet.

        Args:
            games: all games by name.
            find_options: returns the options of the reviewer of a game.
            settings: settings of the reviews.
            say: shows the progress of loading.
        """
        self.games, self.settings = games, settings
        self._find_options, self._say = find_options, say
        self._made: dict[str, Reviewer[Any]] = {}
        self._options: dict[str, Options] = {}
        self._speeds: dict[str, float] = {}  # visits per second by game; 0 if unknown, or depth is the only limit

    def review(
        self, path: Path, progress: Progress, later: Sequence[Path] = (), journal: ReviewJournal | None = None
    ) -> Iterator[tuple[str, Review]]:
        """Yield the name and the review of each game of a record.

        Args:
            path: file of the record.
            progress: receives the progress of the searches.
            later: further records, for the expected time.
            journal: the positions of an interrupted review, which are not searched again.

        Raises:
            ReviewError: the record cannot be read.
            NetworkError, EvaluatorError: the network does not fit the record, or has failed.
            OptionError: a setting or an option is wrong, or the engine cannot be loaded.
        """
        game = game_of(self.games, path)
        options, reviewer = self.options(game), self._get(game, path)
        if game.name in self._speeds and options.seed is not None:  # results independent of earlier records
            reviewer = self._renew(game, path)
        try:
            with language.within(language.ENGLISH):  # notes about faults of the record: JSON has them, too
                loaded = reviewer.read(str(path))
        except ReviewError:
            loaded = reviewer.read(str(path))  # the error is for the user only
        for number, record in enumerate(loaded, 1):
            is_first = not self._speeds.get(game.name)  # a record without a position to measure leaves it to the next
            if is_first:
                has_limit = {options.visits, options.playouts, options.seconds} != {None}  # besides depth
                self._speeds[game.name] = reviewer.visits_per_second(record) if has_limit else 0.0
                if options.seed is not None:  # the measurement has drawn random numbers
                    reviewer = self._renew(game, path)
            speed = self._speeds[game.name]
            plan = self.settings.plan(options, speed, record.positions, reviewer.unit)
            if is_first:
                others = [other for other in later if other.suffix.lower() in game.suffixes]
                positions = sum(each.positions for each in loaded) + count_positions(reviewer, others)
                positions -= 0 if journal is None else len(journal)
                if line := estimate(game, options, speed, max(1, positions), plan.first_visits, reviewer.unit):
                    progress.estimated(line)
            name = path.stem + (f"-{number}" if len(loaded) > 1 else "")
            known = KnownPositions() if journal is None else journal.game(path, number)
            progress.game(name, known)
            yield name, reviewer.review(record, progress, known, plan)

    def fault(self, path: Path, error: Exception) -> str:
        """Return the message of an error of RECORD_ERRORS."""
        text, suffixes = fault_of(path, error), known_suffixes(self.games)
        if isinstance(error, ReviewError) and path.suffix.lower() not in suffixes:
            text += tr(" (known endings of records: {suffixes})", suffixes=" ".join(suffixes))
        return text

    def options(self, game: Game[Any, Any]) -> Options:
        if game.name not in self._options:
            self._options[game.name] = self._find_options(game)
        return self._options[game.name]

    def options_of(self, paths: Sequence[Path]) -> dict[str, Options]:
        """Return the options by game, for the games that occur in some records."""
        found: dict[str, Options] = {}
        for path in paths:
            with contextlib.suppress(ReviewError):  # reported when it is the record's turn
                game = game_of(self.games, path)
                found[game.name] = self.options(game)
        return found

    def networks(self, paths: Sequence[Path]) -> dict[str, str]:
        """Return the network files that evaluate some records, by their use."""
        found: dict[str, str | None] = {}
        for game, options in self.options_of(paths).items():
            found[game] = network_file(options, game)
            if options.value_net is not None:
                found[f"{game} value"] = named_file(options.value_net, game)
            if options.human_net is not None:
                found[f"{game} human"] = named_file(options.human_net, game, options)
        return {f"network of {use}": file for use, file in found.items() if file is not None}

    def close(self) -> None:
        for reviewer in self._made.values():
            reviewer.close()

    def _get(self, game: Game[Any, Any], path: Path) -> Reviewer[Any]:
        if game.name not in self._made:
            thresholds, options = self.settings.thresholds, self.options(game)
            if thresholds.unit not in (BOTH, WINRATE, game.score.unit):
                values = {"path": path, "game": game.name, "known": f"% or {game.score.unit}"}
                raise OptionError(
                    tr("--thresholds {thresholds}: {path} is {game}, expected {known}", thresholds=thresholds, **values)
                )
            with reraised(EvaluatorError, OptionError):  # ends the review, unlike an EvaluatorError of one record
                game.prepare(options, self._say)
                self._made[game.name] = game.reviewer(options, path)
        return self._made[game.name]

    def _renew(self, game: Game[Any, Any], path: Path) -> Reviewer[Any]:
        """Create a game's reviewer again, so that its random numbers begin again."""
        self._made.pop(game.name).close()
        return self._get(game, path)


# -- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A record to review, and the folder of its review. A record that is named twice has two jobs."""

    path: Path
    folder: Path


def find_jobs(games: Mapping[str, Game[Any, Any]], paths: Sequence[Path], out: Path | None) -> list[Job]:
    """Return the records in files and folders. In folders, files that a review has written are skipped.

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
    """Return the game of a record by its suffix, or by its content if the suffix is unknown. Raises ReviewError."""
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
    """The files and results that reviews have written."""

    def __init__(self, written: set[Path] | None = None) -> None:
        """`written` contains files of this run, which are never overwritten. New files are added to it."""
        self.written = set() if written is None else written
        # Name and files of each game, and its entry in the list of pages
        self.games: list[tuple[str, dict[str, Path], dict[str, Any]]] = []
        self.reviewed: list[dict[str, Any]] = []  # for the JSON: a game, or an error
        self.engine = ""  # of the last game
        self._places: dict[tuple[Job, str, str], Path] = {}

    @property
    def has_errors(self) -> bool:
        return any("error" in entry for entry in self.reviewed)

    def place(self, job: Job, name: str, suffix: str) -> Path:
        """Return the path for a game's file. If records have equal names, the suffix or a number is added."""
        key = job, name, suffix
        if key not in self._places:
            with_ending = f"{name}{job.path.suffix}"
            stems = itertools.chain((name, with_ending), (f"{with_ending}-{number}" for number in itertools.count(2)))
            paths = (job.folder / f"{stem}{MARK}{suffix}" for stem in stems)
            self._places[key] = next(path for path in paths if path not in self.written)
            self.written.add(self._places[key])
        return self._places[key]

    def write(self, job: Job, name: str, files: Mapping[str, bytes]) -> dict[str, Path]:
        """Write the files of a game by suffix, replacing earlier ones. Return their paths."""
        paths = {suffix: self.place(job, name, suffix) for suffix in files}
        for suffix, data in files.items():
            write(paths[suffix], data)
        return paths

    def add(self, job: Job, game: ReviewedGame) -> dict[str, Path]:
        """Write the files of a reviewed game, and store its results. Return the paths."""
        paths = self.write(job, game.name, game.files)
        self.games.append((game.name, paths, game.entry))
        self.engine = game.engine
        self.reviewed.append({"file": str(job.path), "number": game.number, **game.data})
        return paths

    def write_json(self, path: Path | None) -> None:
        if path is not None:
            text = json.dumps(self.reviewed, indent=1, ensure_ascii=False) + "\n"
            write(path, text.encode("utf-8", "backslashreplace"))  # names of files need not be UTF-8

    def write_index(self, folder: Path | None) -> Path | None:
        """Write a page with links to several games' pages, to a folder or beside the first page. Return its path."""
        pages = [(name, paths[".html"], entry) for name, paths, entry in self.games if ".html" in paths]
        if len(pages) < 2:
            return None
        from yomi.engine.pages.review import index_page

        path = (folder or pages[0][1].parent) / INDEX
        reviews = [(name, os.path.relpath(page, path.parent), entry) for name, page, entry in pages]
        write(path, index_page(reviews).encode("utf-8", "backslashreplace"))
        return path


def write(path: Path, data: bytes) -> None:
    """Write a file, after making its folder. Raises JobError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise JobError(tr("cannot write {path}: {why}", path=path, why=error.strerror)) from None
