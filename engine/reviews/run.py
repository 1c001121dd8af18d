"""Reviews of files, for the command line, the library, tasks and clusters. Start reading at `Reviewers.review`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi import language
from yomi.engine.default_network import named_file, network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.mistakes import BOTH, DEFAULT, WINRATE, Thresholds
from yomi.engine.records import Note
from yomi.engine.reviews.files import game_of, known_suffixes
from yomi.engine.reviews.progress import ReviewJournal, count_positions, estimate, full_time
from yomi.engine.reviews.review import Review, ReviewError
from yomi.engine.reviews.scans import FIRST_SECONDS, KnownPositions, Plan, Progress, Reviewer, first_visits
from yomi.errors import fault_of
from yomi.language import counted, tr
from yomi.nets.errors import NetworkError
from yomi.settings import OptionError

if TYPE_CHECKING:
    from yomi.engine.game import Game, Say
    from yomi.engine.options import Options

COMMAND = "analyze"  # key of the games' defaults
DEFAULT_VISITS = 100  # of a position
DEFAULT_NODES = 100_000  # of a position by alpha-beta: about 0.2 s
RECORD_ERRORS = (ReviewError, NetworkError, EvaluatorError)  # of one record: the review of others continues


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """How records are reviewed, besides the options of the engine, and which files are made of a review."""

    thresholds: Thresholds = DEFAULT
    quick: int | float | None = None
    """The first pass: visits of each position, or its seconds (a float). 0: none; None: all that fits in 40 s."""
    worst: int = 5  # moves of each side in the table
    record: bool = True  # the annotated record
    html: bool = False
    plot: bool = False
    quiz: tuple[int, ...] = ()  # sides whose mistakes the page asks for

    def plan(self, options: Options, speed: float, positions: int) -> Plan:
        """Return how a game is searched; `speed` is in visits per second. Raises OptionError."""
        wanted = self.quick
        if wanted is None and options.seed is not None:
            wanted = 0  # the clock must not decide
        if isinstance(wanted, int):
            visits = wanted
        else:
            found = full_time(options, speed, positions)
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
        """Return the files of a review by suffix; `name` is that of the game."""
        files = review.files() if self.record else {}
        if self.html:
            from yomi.engine.pages.review import review_page

            files[".html"] = review_page(review, self.quiz).encode()
        if self.plot:
            from yomi.engine.reviews.text import draw

            files[".png"] = draw(review, name)
        return files

    def finish(self, name: str, number: int, review: Review) -> ReviewedGame:
        """Return the texts and files of a review."""
        from yomi.engine.pages.review import index_cells
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
        files, cells = self.files(review, name), index_cells(review) if self.html else []
        texts = review.heading(), table(review, self.worst), figures, review.engine
        return ReviewedGame(name, number, *texts, review.to_json(), cells, review.notes, files)


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
    cells: list[str]  # of the list of pages
    notes: Sequence[Note]
    files: dict[str, bytes] = field(repr=False)  # by suffix


class Reviewers:
    """The reviewer of each game, created for the first record of the game."""

    def __init__(
        self,
        games: Mapping[str, Game[Any, Any]],
        find_options: Callable[[Game[Any, Any]], Options],
        settings: ReviewSettings,
        say: Say,
    ) -> None:
        """Begin without a reviewer.

        Args:
            games: all games by name.
            find_options: returns the options of the reviewer of a game.
            settings: of the reviews.
            say: shows the progress of loading.
        """
        self.games, self.settings = games, settings
        self._find_options, self._say = find_options, say
        self._made: dict[str, Reviewer[Any]] = {}
        self._options: dict[str, Options] = {}
        self._speeds: dict[str, float] = {}  # visits per second by game; 0 if depth is the only limit

    def review(
        self, path: Path, progress: Progress, later: Sequence[Path] = (), journal: ReviewJournal | None = None
    ) -> Iterator[tuple[str, Review]]:
        """Yield the name and the review of each game of a record.

        Args:
            path: of the record.
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
            is_first = game.name not in self._speeds
            if is_first:
                has_limit = {options.visits, options.playouts, options.seconds} != {None}  # besides depth
                self._speeds[game.name] = reviewer.visits_per_second(record) if has_limit else 0.0
                if options.seed is not None:  # the measurement has drawn random numbers
                    reviewer = self._renew(game, path)
            speed = self._speeds[game.name]
            plan = self.settings.plan(options, speed, record.positions)
            if is_first:
                others = [other for other in later if other.suffix.lower() in game.suffixes]
                positions = sum(each.positions for each in loaded) + count_positions(reviewer, others)
                positions -= 0 if journal is None else len(journal)
                if line := estimate(game, options, speed, max(1, positions), plan.first_visits):
                    progress.estimated(line)
            name = path.stem + (f"-{number}" if len(loaded) > 1 else "")
            known = KnownPositions() if journal is None else journal.game(path, number)
            progress.game(name, known)
            yield name, reviewer.review(record, progress, known, plan)

    def fault(self, path: Path, error: Exception) -> str:
        """Return the text of one of RECORD_ERRORS."""
        text, suffixes = fault_of(path, error), known_suffixes(self.games)
        if isinstance(error, ReviewError) and path.suffix.lower() not in suffixes:
            text += tr(" (known endings of records: {suffixes})", suffixes=" ".join(suffixes))
        return text

    def options(self, game: Game[Any, Any]) -> Options:
        if game.name not in self._options:
            self._options[game.name] = self._find_options(game)
        return self._options[game.name]

    def options_of(self, paths: Sequence[Path]) -> dict[str, Options]:
        """Return the options of the games of some records."""
        found: dict[str, Options] = {}
        for path in paths:
            with contextlib.suppress(ReviewError):  # reported when it is the record's turn
                game = game_of(self.games, path)
                found[game.name] = self.options(game)
        return found

    def networks(self, paths: Sequence[Path]) -> dict[str, str]:
        """Return the network files that evaluate some records, by use."""
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
        """Return the reviewer of the game of the record `path`."""
        if game.name not in self._made:
            thresholds, options = self.settings.thresholds, self.options(game)
            if thresholds.unit not in (BOTH, WINRATE, game.score.unit):
                values = {"path": path, "game": game.name, "known": f"% or {game.score.unit}"}
                raise OptionError(
                    tr("--thresholds {thresholds}: {path} is {game}, expected {known}", thresholds=thresholds, **values)
                )
            try:
                game.prepare(options, self._say)
                self._made[game.name] = game.reviewer(options, path)
            except EvaluatorError as error:  # ends the review, unlike an EvaluatorError of one record
                raise OptionError(str(error)) from None
        return self._made[game.name]

    def _renew(self, game: Game[Any, Any], path: Path) -> Reviewer[Any]:
        """Create the reviewer of a game again, with the random numbers of a new one."""
        self._made.pop(game.name).close()
        return self._get(game, path)
