"""The searches of a review: a first pass over all positions, then longer searches of unclear positions."""

from __future__ import annotations

import abc
import functools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from yomi.engine.mistakes import DEFAULT, Thresholds
from yomi.engine.reviews.review import Opinion, Review, carried_back

if TYPE_CHECKING:
    from yomi.engine.options import Options

# Searches that estimate the time of a review: first and greatest visits, number, and sufficient seconds
TRIAL_VISITS, MAX_TRIAL_VISITS, MAX_TRIALS, TRIAL_SECONDS = 8, 10**6, 9, 0.2
KEPT_VISITS = 0.4  # share of a search's visits that come from the search of the position before (Go)
# Scans of a game. A later one replaces results of an earlier one, and finds its evaluations in the cache.
FIRST, SHORT, FULL = range(3)
SHORT_SHARE = 1 / 3  # of the limits, in the scan SHORT
# Visits of a position in the first pass: at least, as a share of the full search at most; and seconds for all positions
MIN_FIRST, MAX_FIRST_SHARE, FIRST_SECONDS = 2, 0.25, 40.0

Judgement = tuple[Opinion | None, int]  # opinion (None if one move is forced), and the evaluations that it took
Add = Callable[[int, Judgement], None]  # takes the number of a position from 0. Threads call it, one at a time.


@dataclass(frozen=True, slots=True)
class Plan:
    """How a game is reviewed."""

    thresholds: Thresholds = DEFAULT
    first_visits: int = 0  # of each position in the first pass; 0: every position gets the full limit at once


DEFAULT_PLAN = Plan()


class Progress:
    """Receives the progress of a review. This one ignores it."""

    def estimated(self, line: str) -> None:
        """Called with the expected time of all records of a game, before the first of them."""

    def game(self, name: str, known: KnownPositions) -> None:
        """Called before a game is searched, with its name and the positions of an interrupted review."""

    def begin(self, scan: int, positions: int, known: int) -> None:
        """Called before a scan (FIRST, SHORT or FULL) of some positions, of which some are known already."""

    def tick(self) -> None:
        """Called after each position that was not known."""

    def first_pass(self, review: Review) -> None:
        """Called after the first pass, with its review."""


class KnownPositions:
    """The searched positions of a game. A review adds to them, one after another."""

    def __init__(
        self,
        found: Mapping[tuple[int, int], Judgement] | None = None,
        keep: Callable[[int, int, Judgement], None] = lambda scan, index, judgement: None,
    ) -> None:
        """Begin with judgements by scan and by number of the position from 0; `keep` receives each further one."""
        self.found, self._keep = dict(found or {}), keep

    def add(self, scan: int, index: int, judgement: Judgement) -> None:
        """Add a position. Threads may call this, one at a time."""
        self.found[scan, index] = judgement
        self._keep(scan, index, judgement)

    def scan_of(self, index: int) -> int:
        """Return the last scan of a position, or -1."""
        return max((scan for scan in (FIRST, SHORT, FULL) if (scan, index) in self.found), default=-1)

    def latest(self, index: int) -> Opinion | None:
        """Return the opinion of the last scan of a position; None if there is none."""
        return self.found.get((self.scan_of(index), index), (None, 0))[0]

    @property
    def evaluations(self) -> int:
        return sum(count for _, count in self.found.values())


def _later_limits(options: Options, first_visits: int) -> dict[int, Options]:
    """Return the limits of the scans after the first pass. The time of the full limit is divided between them."""
    short: dict[str, Any] = {}
    for name in ("visits", "playouts"):
        if (limit := getattr(options, name)) is not None:
            short[name] = max(1, round(SHORT_SHARE * limit))
    if any(limit <= 2 * first_visits for limit in short.values()):
        return {}
    if options.seconds is not None:
        short["seconds"] = SHORT_SHARE * options.seconds
        full = options.with_values({"seconds": options.seconds - short["seconds"]})
        return {SHORT: options.with_values(short), FULL: full}
    return {SHORT: options.with_values(short)} if short else {}


def _unclear(review: Review, known: KnownPositions, scan: int) -> list[int]:
    """Return the positions around unclear moves that neither this nor a later scan has searched."""
    around = {move.number + side for move in review.moves if review.is_unclear(move) for side in (-1, 0)}
    return sorted(index for index in around if known.scan_of(index) < scan)


def first_visits(
    options: Options, full: float | None, speed: float, positions: int, seconds: float = FIRST_SECONDS
) -> int:
    """Return the visits of a position in a first pass of some seconds.

    Return 0 if a full search of all positions needs no more time, or if it has few visits.

    Args:
        options: limits of a full search.
        full: expected seconds of full searches; None if unknown.
        speed: visits per second.
        positions: number of positions of the game.
        seconds: time of the first pass.
    """
    if full is None or full <= seconds or speed <= 0.0:
        return 0
    # Short searches keep few visits of the position before.
    visits = max(MIN_FIRST, int(seconds * speed / positions))
    for limit in (options.visits, options.playouts):
        visits = visits if limit is None else min(visits, int(MAX_FIRST_SHARE * limit))
    return visits if visits >= MIN_FIRST else 0


def parse_first_pass(text: str) -> int | float:
    """Read the visits of a position (8) or the seconds of the whole pass (20s). Raises ValueError."""
    match = re.fullmatch(r"([0-9]{1,9})(s?)", text.strip())
    if match is None or (match[2] and not int(match[1])):
        raise ValueError(
            f"'{text}' found, expected visits of each position such as 8, or seconds of the pass such as 20s"
        )
    return float(match[1]) if match[2] else int(match[1])


def limit_text(options: Options, plan: Plan = DEFAULT_PLAN, *, unit: str = "visits") -> str:
    """Return the limits of a search as text, such as "100 visits" or "8 visits to 100 visits"; `unit`: of visits."""
    given = {name: options.get(name) for name in ("visits", "playouts", "seconds", "depth")}
    names = {"visits": unit, "playouts": "playouts" if unit == "visits" else unit}
    limits = (f"{value:,} {names.get(name, name)}" for name, value in given.items() if value is not None)
    limit = ", ".join(limits)
    return f"{plan.first_visits:,} {unit} to {limit}" if plan.first_visits else limit


def speed_of(search: Callable[[Options], int], options: Options, *, first: int = TRIAL_VISITS) -> float:
    """Return the visits per second of a search that is long enough to measure.

    `search` starts from an empty tree and returns its visits. The first search has `first` visits at most, and may load
    kernels: its time never counts. With a seed the number of searches does not depend on the clock.
    """
    wanted = min(n for n in (options.visits, options.playouts, MAX_TRIAL_VISITS) if n is not None)
    visits, speed = min(wanted, first), 0.0
    for number in range(MAX_TRIALS if options.seed is None else 2):
        begin = time.monotonic()
        found = search(options.with_values({"visits": visits, "playouts": None, "seconds": None}))
        seconds = max(time.monotonic() - begin, 1e-9)
        speed = found / seconds
        if options.seed is None and number and seconds > TRIAL_SECONDS:
            break
        # After a slow first search a short one shows whether the network is slow or kernels were loaded.
        is_slow = options.seed is None and not number and seconds > 10 * TRIAL_SECONDS
        visits = max(1, visits // 4) if is_slow else min(wanted, 4 * visits)
    return speed


# -- reviewers ------------------------------------------------------------------------------------------------------


class LoadedGame(Protocol):
    """A game of a record that can be reviewed."""

    @property
    def positions(self) -> int:
        """Number of positions to search: before and after each move."""

    @property
    def line(self) -> Sequence[int]:
        """The moves to review."""


L = TypeVar("L", bound=LoadedGame)


@dataclass(frozen=True, slots=True)
class Scan:
    """Positions of a game to search with the limits of some options."""

    positions: Sequence[int]
    options: Options
    known: KnownPositions  # earlier results, also of this scan
    thresholds: Thresholds


class Reviewer(abc.ABC, Generic[L]):
    """Reviews games of records, one after another."""

    trial_visits = TRIAL_VISITS  # of the first search that measures the speed
    unit = "visits"  # in which searches are limited

    def __init__(self, options: Options) -> None:
        """Review with the limits of `options` in the full search of a position."""
        self.options = options

    @abc.abstractmethod
    def read(self, path: str) -> Sequence[L]:
        """Return the games of a file, or raise ReviewError if the file cannot be read or contains an illegal move."""

    @abc.abstractmethod
    def try_search(self, loaded: L, options: Options) -> int:
        """Search a position in the middle of a game, drop the tree, and return the number of visits."""

    @abc.abstractmethod
    def search(self, loaded: L, scan: Scan, add: Add) -> None:
        """Search positions of a game, and pass each result to `add`."""

    @abc.abstractmethod
    def annotate(self, loaded: L, opinions: list[Opinion]) -> Review:
        """Return the review of a game with the opinions of all its positions."""

    @abc.abstractmethod
    def close(self) -> None: ...

    def visits_per_second(self, loaded: L) -> float:
        """Return the speed of short searches of a position of the game."""
        return speed_of(functools.partial(self.try_search, loaded), self.options, first=self.trial_visits)

    def review(
        self, loaded: L, progress: Progress, known: KnownPositions | None = None, plan: Plan = DEFAULT_PLAN
    ) -> Review:
        """Search the positions of a game that are not known, and add them to the known ones."""
        begin, found = time.monotonic(), known or KnownPositions()
        limits, everything = {FULL: self.options}, range(loaded.positions)

        def annotated() -> Review:
            opinions = carried_back([found.latest(index) for index in everything], loaded.line)
            review = self.annotate(loaded, opinions)
            review.limit, review.thresholds = limit_text(self.options, plan, unit=self.unit), plan.thresholds
            review.seconds, review.evaluations = time.monotonic() - begin, found.evaluations
            return review

        def run(scan: int, positions: Sequence[int]) -> None:
            wanted = [index for index in positions if (scan, index) not in found.found]
            progress.begin(scan, len(positions), len(positions) - len(wanted))

            def add(index: int, judgement: Judgement) -> None:
                found.add(scan, index, judgement)
                progress.tick()

            if wanted:
                self.search(loaded, Scan(wanted, limits[scan], found, plan.thresholds), add)

        if not plan.first_visits:
            run(FULL, everything)
            return annotated()
        limits[FIRST] = self.options.with_values({"visits": plan.first_visits, "playouts": None, "seconds": None})
        run(FIRST, everything)
        progress.first_pass(annotated())
        limits |= _later_limits(self.options, plan.first_visits)
        if SHORT in limits and (positions := _unclear(annotated(), found, SHORT)):
            run(SHORT, positions)
        # A longer search changes values, which may make its neighbours unclear.
        while positions := _unclear(annotated(), found, FULL):
            run(FULL, positions)
        return annotated()
