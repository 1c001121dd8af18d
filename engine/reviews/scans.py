"""The searches of a review: a first pass, then longer searches of unclear positions; journal and expected time."""

import abc
import contextlib
import dataclasses
import functools
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from yomi import __version__
from yomi.engine.default_network import has_network, network_file
from yomi.engine.game import Game, Say
from yomi.engine.mistakes import DEFAULT, Thresholds
from yomi.engine.options import Options
from yomi.engine.records import read_record_bytes
from yomi.engine.reviews.review import Candidate, Opinion, Review, ReviewError, carried_back, shown_limit
from yomi.language import counted, tr
from yomi.nets.files import append_object
from yomi.nets.models import FAST, FOR_SPEED
from yomi.time_left import duration

# Searches that estimate the time of a review: first and greatest visits, number, and sufficient seconds
TRIAL_VISITS, MAX_TRIAL_VISITS, MAX_TRIALS, TRIAL_SECONDS = 8, 10**6, 9, 0.2
TRIAL_SHARE = 0.1  # of its visits: a search that ends earlier, such as by a mate, is too short to measure
KEPT_VISITS = 0.4  # share of a search's visits that come from the search of the position before (Go)
# Scans of a game. A later one replaces results of an earlier one, and finds its evaluations in the cache.
FIRST, SHORT, FULL = range(3)
SHORT_SHARE = 1 / 3  # of the limits, in the scan SHORT
# Visits of a position in the first pass: at least, as a share of the full search at most; and seconds for all positions
MIN_FIRST, MAX_FIRST_SHARE, FIRST_SECONDS = 2, 0.25, 40.0
MAX_FILES = 100  # Files whose positions are counted. Each further file counts as their mean.
LONG = 180.0  # Seconds from which the fast network is recommended

Judgement = tuple[Opinion | None, int]  # opinion (None if one move is forced), and the evaluations that it took
Add = Callable[[int, Judgement], None]  # takes the number of a position from 0. Threads call it, one at a time.


@dataclass(frozen=True, slots=True)
class Plan:
    """How a game is reviewed."""

    thresholds: Thresholds = DEFAULT
    first_visits: int = 0  # of each position in the first pass; 0: every position gets the full limit at once


DEFAULT_PLAN = Plan()


class Progress:
    """Receives the progress of a review. This base class ignores it."""

    def estimated(self, line: str) -> None:
        """Called with the expected time of all records of a game, before the first of them."""

    def game(self, name: str, known: "KnownPositions") -> None:
        """Called before a game is searched, with its name and the positions of an interrupted review."""

    def begin(self, scan: int, positions: int, known: int) -> None:
        """Called before a scan (FIRST, SHORT or FULL) of some positions. Some of them may be known already."""

    def tick(self) -> None:
        """Called after each newly searched position."""

    def first_pass(self, review: Review) -> None:
        """Called after the first pass, with the review by its results."""


class KnownPositions:
    """The searched positions of a game. A review adds one position after another."""

    def __init__(
        self,
        found: Mapping[tuple[int, int], Judgement] | None = None,
        keep: Callable[[int, int, Judgement], None] = lambda scan, index, judgement: None,
    ) -> None:
        """Begin with judgements by (scan, number of the position from 0). `keep` receives each further judgement."""
        self.found, self._keep = dict(found or {}), keep

    def add(self, scan: int, index: int, judgement: Judgement) -> None:
        """Add a judgement of a position. Several threads may call this, but only one at a time."""
        self.found[scan, index] = judgement
        self._keep(scan, index, judgement)

    def scan_of(self, index: int) -> int:
        """Return the last scan of a position, or -1."""
        return max((scan for scan in (FIRST, SHORT, FULL) if (scan, index) in self.found), default=-1)

    def latest(self, index: int) -> Opinion | None:
        """Return the opinion of a position's last scan; None if there is none."""
        return self.found.get((self.scan_of(index), index), (None, 0))[0]

    @property
    def evaluations(self) -> int:
        return sum(count for _, count in self.found.values())


def part_of(options: Options, share: float) -> Options:
    """Return options whose limits are a share of the original limits."""
    counts = {
        name: max(1, round(share * limit))
        for name in ("visits", "playouts")
        if (limit := getattr(options, name)) is not None
    }
    return options.with_values({**counts, "seconds": options.seconds and share * options.seconds})


def _later_limits(options: Options, first_visits: int) -> dict[int, Options]:
    """Return the limits of each scan after the first pass. The scans share the limit on time."""
    short = part_of(options, SHORT_SHARE)
    if short == options or any(limit and limit <= 2 * first_visits for limit in (short.visits, short.playouts)):
        return {}
    if options.seconds is None:
        return {SHORT: short}
    return {SHORT: short, FULL: options.with_values({"seconds": (1.0 - SHORT_SHARE) * options.seconds})}


def _unclear(review: Review, known: KnownPositions, scan: int) -> list[int]:
    """Return the positions around unclear moves that no scan from this one on has searched."""
    around = {move.number + side for move in review.moves if review.is_unclear(move) for side in (-1, 0)}
    return sorted(index for index in around if known.scan_of(index) < scan)


def first_visits(
    options: Options, full: float | None, speed: float, positions: int, seconds: float = FIRST_SECONDS
) -> int:
    """Return the visits of a position in a first pass that takes some seconds.

    Return 0 if a full search of all positions needs no more time, or has few visits.

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
    """Read the visits of a position (8), or the seconds of the whole first pass (20s). Raises ValueError."""
    match = re.fullmatch(r"([0-9]{1,9})(s?)", text.strip())
    if match is None or (match[2] and not int(match[1])):
        raise ValueError(
            f"'{text}' found, expected visits of each position such as 8, or seconds of the pass such as 20s"
        )
    return float(match[1]) if match[2] else int(match[1])


def limit_text(options: Options, plan: Plan = DEFAULT_PLAN, *, unit: str = "visits") -> str:
    """Return the limits of a search as text, such as "100 visits" or "8 visits to 100 visits".

    `unit` replaces the word "visits", for example by "nodes".
    """
    given = {name: options.get(name) for name in ("visits", "playouts", "seconds", "depth")}
    names = {"visits": unit, "playouts": "playouts" if unit == "visits" else unit}
    limits = (f"{value:,} {names.get(name, name)}" for name, value in given.items() if value is not None)
    limit = ", ".join(limits)
    return f"{plan.first_visits:,} {unit} to {limit}" if plan.first_visits else limit


def speed_of(search: Callable[[Options], int], options: Options, *, first: int = TRIAL_VISITS) -> float:
    """Return the visits per second of a search that is long enough to measure, or 0 if it ends too early.

    `search` starts from an empty tree and returns its visits. The first search has `first` visits at most, and may load
    kernels: its time never counts. With a seed the number of searches does not depend on the clock.
    """
    wanted = min(n for n in (options.visits, options.playouts, MAX_TRIAL_VISITS) if n is not None)
    visits, speed = min(wanted, first), 0.0
    for number in range(MAX_TRIALS if options.seed is None else 2):
        begin = time.monotonic()
        found = search(options.with_values({"visits": visits, "playouts": None, "seconds": None, "depth": None}))
        seconds = max(time.monotonic() - begin, 1e-9)
        if found < TRIAL_SHARE * visits:
            return 0.0
        speed = found / seconds
        if options.seed is None and number and seconds > TRIAL_SECONDS:
            break
        # After a slow first search a short one shows whether the network is slow or kernels were loaded.
        is_slow = options.seed is None and not number and seconds > 10 * TRIAL_SECONDS
        visits = max(1, visits // 4) if is_slow else min(wanted, 4 * visits)
    return speed


# -- reviewers ------------------------------------------------------------------------------------------------------


class LoadedGame(Protocol):
    """A game from a record, ready for a review."""

    @property
    def positions(self) -> int:
        """Number of positions to search: before and after each move."""

    @property
    def line(self) -> Sequence[int]:
        """The moves of the main line, to review."""


L = TypeVar("L", bound=LoadedGame)


@dataclass(frozen=True, slots=True)
class Scan:
    """The positions to search in one scan of a game, with the limits of some options."""

    positions: Sequence[int]
    options: Options
    known: KnownPositions  # earlier results, also of this scan
    thresholds: Thresholds


class Reviewer(abc.ABC, Generic[L]):
    """Reviews games of records, one after another."""

    trial_visits = TRIAL_VISITS  # of the first search that measures the speed
    unit = "visits"  # in which searches are limited

    def __init__(self, options: Options) -> None:
        """Use the limits of `options` in the full search of a position."""
        self.options = options

    @abc.abstractmethod
    def read(self, path: str) -> Sequence[L]:
        """Return the games of a file. Raises ReviewError if it cannot be read or contains an illegal move."""

    @abc.abstractmethod
    def try_search(self, loaded: L, options: Options) -> int:
        """Search a position near the middle of a game, drop the tree, and return the number of visits.

        Return 0 if the searches of all positions are too short to measure.
        """

    @abc.abstractmethod
    def search(self, loaded: L, scan: Scan, add: Add) -> None:
        """Search the positions of a scan, and pass each result to `add`."""

    @abc.abstractmethod
    def annotate(self, loaded: L, opinions: list[Opinion]) -> Review:
        """Return the review of a game, given the opinions on all its positions."""

    @abc.abstractmethod
    def close(self) -> None: ...

    def visits_per_second(self, loaded: L) -> float:
        """Return the speed, measured by short searches of a position of the game."""
        return speed_of(functools.partial(self.try_search, loaded), self.options, first=self.trial_visits)

    def review(
        self, loaded: L, progress: Progress, known: KnownPositions | None = None, plan: Plan = DEFAULT_PLAN
    ) -> Review:
        """Search the positions of a game that are not known yet, add them to `known`, and return the review."""
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


# -- journal and time -------------------------------------------------------------------------------------------------


class ReviewJournal:
    def __init__(self, folder: Path, settings: str, say: Say = lambda line: None) -> None:
        """Read the positions that an earlier command with the same `settings` (the options that change a search) has
        left.

        `say` receives a line if the folder cannot be written.
        """
        self._say = say
        digest = hashlib.sha256(f"{__version__} {settings}".encode("utf-8", "backslashreplace")).hexdigest()
        self.path = folder / f".yomi-analyze-{digest[:12]}.jsonl"
        self._known: dict[str, dict[tuple[int, int], Judgement]] = {}
        self._stream: FileIO | None = None
        self._is_kept = True
        with contextlib.suppress(OSError):  # `append` reports a file that cannot be used
            for line in self.path.read_bytes().splitlines():
                self._read(line)

    def __len__(self) -> int:
        """Number of positions that an earlier run has searched to the full limit."""
        return sum(scan == FULL for known in self._known.values() for scan, _ in known)

    def game(self, path: Path, number: int) -> KnownPositions:
        """Return the known positions of game `number` of a file. New positions are also written to the journal."""
        try:
            digest = hashlib.sha256(read_record_bytes(path)).hexdigest()[:16]
        except OSError:  # a pipe that was read once, or a file that has gone
            return KnownPositions()
        name = f"{digest}-{number}"
        return KnownPositions(self._known.get(name), functools.partial(self._append, name))

    def _append(self, game: str, scan: int, turn: int, judgement: Judgement) -> None:
        """Write a judgement. If the folder cannot be written, report that once."""
        if not self._is_kept:
            return
        opinion, evaluations = judgement
        fields = None if opinion is None else dataclasses.asdict(opinion)
        position = {"game": game, "scan": scan, "turn": turn, "evaluations": evaluations, "opinion": fields}
        try:
            if self._stream is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self.path.open("a+b", buffering=0)
            append_object(self._stream, position)
        except OSError as error:
            self._is_kept = False
            why = error.strerror
            with contextlib.suppress(OSError):
                if not self.path.stat().st_size:
                    self.remove()
            self._say(tr("cannot write {path}: {why}; an interrupted review will start again", path=self.path, why=why))

    def interrupted(self) -> str:
        if self.path.exists():
            return tr("interrupted: the same command continues ({path})", path=self.path)
        return tr("interrupted")

    def remove(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self, line: bytes) -> None:
        """Read a line. A line that a crash has damaged is ignored, so its position is searched again."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found: dict[str, Any] = json.loads(line)
            fields = found["opinion"]
            if fields is not None:
                candidates = tuple(Candidate(**each | {"pv": tuple(each["pv"])}) for each in fields["candidates"])
                fields |= {"pv": tuple(fields["pv"]), "candidates": candidates}
            opinion = None if fields is None else Opinion(**fields)
            self._known.setdefault(found["game"], {})[found["scan"], found["turn"]] = opinion, found["evaluations"]


def count_positions(reviewer: Reviewer[Any], paths: Sequence[Path]) -> int:
    """Return the approximate number of positions in files. Unreadable files and pipes count as 0."""
    counted = [_positions(reviewer, path) for path in paths[:MAX_FILES]]
    return round(sum(counted) * len(paths) / len(counted)) if counted else 0


def _positions(reviewer: Reviewer[Any], path: Path) -> int:
    try:
        return sum(game.positions for game in reviewer.read(str(path))) if path.is_file() else 0
    except ReviewError:  # reported when it is the file's turn
        return 0


def full_time(options: Options, speed: float, positions: int, unit: str = "visits") -> tuple[float, str] | None:
    """Return the expected seconds of full searches and their reason, or None if depth is the only limit.

    `speed` is in visits (alpha-beta: nodes) per second.
    """
    times = [] if options.seconds is None else [(positions * options.seconds, tr("limit"))]
    shares = ((options.visits, 1.0 - KEPT_VISITS), (options.playouts, 1.0 if unit == "visits" else 1.0 - KEPT_VISITS))
    limits = [share * limit for limit, share in shares if limit is not None]
    if limits and speed > 0.0:
        why = tr("measured: {speed}/s", speed=shown_limit(f"{speed:,.0f} {unit}"))
        times.append((positions * min(limits) / speed, why))
    return min(times, default=None)


def estimate(
    game: Game[Any, Any], options: Options, speed: float, positions: int, first: int = 0, unit: str = "visits"
) -> str | None:
    """Return a line about the expected time of a review, or None if depth is the only limit or the speed is unknown.

    `first` is the number of visits in the first pass, or 0; `unit`: visits or nodes.
    """
    found = full_time(options, speed, positions, unit)
    if found is None:
        return None
    seconds, why = found
    values = {"limit": shown_limit(limit_text(options, unit=unit)), "time": duration(seconds), "why": why}
    if first and speed:
        values |= {"first": shown_limit(f"{first:,} {unit}"), "begin": duration(positions * first / speed)}
        text = counted(
            "{n} position, first {first} each: about {begin}; then mistakes and unclear positions, "
            "{limit} each: at most about {time} ({why})",
            "{n} positions, first {first} each: about {begin}; then mistakes and unclear positions, "
            "{limit} each: at most about {time} ({why})",
            positions,
            **values,
        )
    else:
        text = counted(
            "{n} position, {limit} each: about {time} ({why})",
            "{n} positions, {limit} each: about {time} ({why})",
            positions,
            **values,
        )
    return text + _offer(game, options, unit) if seconds >= LONG else text


def _offer(game: Game[Any, Any], options: Options, unit: str) -> str:
    """Return advice for a long review: to use the fast network, or if it is used already, fewer visits or nodes."""
    if unit == "nodes":
        return tr("; fewer --playouts are faster")
    if not has_network(options):
        return tr("; fewer --visits are faster")
    fast = network_file(dataclasses.replace(options, net=FAST), game.name)
    is_faster = game.name in FOR_SPEED and network_file(options, game.name) != fast
    return tr("; --net fast is faster, but weaker") if is_faster else tr("; fewer --visits are faster")
