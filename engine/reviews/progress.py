"""Progress of reviews: the journal of searched positions, for interrupted reviews, and the estimated time."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi import __version__
from yomi.engine.default_network import alpha_beta_file, has_network, network_file
from yomi.engine.records import read_record_bytes
from yomi.engine.reviews.review import Candidate, Opinion, ReviewError, shown_limit
from yomi.engine.reviews.scans import FULL, KEPT_VISITS, Judgement, KnownPositions, limit_text
from yomi.language import counted, tr
from yomi.nets.files import append_object
from yomi.nets.models import FAST, FOR_SPEED
from yomi.time_left import duration

if TYPE_CHECKING:
    from yomi.engine.game import Game, Say
    from yomi.engine.options import Options
    from yomi.engine.reviews.scans import Reviewer

MAX_FILES = 100  # Files whose positions are counted. Each further file counts as their mean.
LONG = 180.0  # Seconds from which the fast network is recommended


class ReviewJournal:
    def __init__(self, folder: Path, settings: str, say: Say = lambda line: None) -> None:
        """Read the positions left by a command with the same `settings`: the options that change a search.

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
        """Return the number of positions that an earlier run has searched to the full limit."""
        return sum(scan == FULL for known in self._known.values() for scan, _ in known)

    def game(self, path: Path, number: int) -> KnownPositions:
        """Return the known positions of game `number` of a file. Positions added to them are written to the journal."""
        try:
            digest = hashlib.sha256(read_record_bytes(path)).hexdigest()[:16]
        except OSError:  # a pipe that was read once, or a file that has gone
            return KnownPositions()
        name = f"{digest}-{number}"
        return KnownPositions(self._known.get(name), functools.partial(self._append, name))

    def _append(self, game: str, scan: int, turn: int, judgement: Judgement) -> None:
        """Write a position. A folder that cannot be written is reported once."""
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
        """Read a line. A line that a crash has damaged is ignored: its position is searched again."""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found: dict[str, Any] = json.loads(line)
            fields = found["opinion"]
            if fields is not None:
                candidates = tuple(Candidate(**each | {"pv": tuple(each["pv"])}) for each in fields["candidates"])
                fields |= {"pv": tuple(fields["pv"]), "candidates": candidates}
            opinion = None if fields is None else Opinion(**fields)
            self._known.setdefault(found["game"], {})[found["scan"], found["turn"]] = opinion, found["evaluations"]


def count_positions(reviewer: Reviewer[Any], paths: Sequence[Path]) -> int:
    """Return the approximate number of positions in files. Unreadable files and pipes count 0."""
    counted = [_positions(reviewer, path) for path in paths[:MAX_FILES]]
    return round(sum(counted) * len(paths) / len(counted)) if counted else 0


def _positions(reviewer: Reviewer[Any], path: Path) -> int:
    try:
        return sum(game.positions for game in reviewer.read(str(path))) if path.is_file() else 0
    except ReviewError:  # reported when it is the file's turn
        return 0


def full_time(options: Options, speed: float, positions: int, unit: str = "visits") -> tuple[float, str] | None:
    """Return the seconds of full searches of `positions` and the reason, or None if depth is the only limit.

    `speed` is in visits (alpha-beta: nodes) per second.
    """
    times = [] if options.seconds is None else [(positions * options.seconds, tr("limit"))]
    new_visits = None if options.visits is None else options.visits * (1.0 - KEPT_VISITS)
    limits = [limit for limit in (new_visits, options.playouts) if limit is not None]
    if limits and speed > 0.0:
        why = tr("measured: {speed}/s", speed=shown_limit(f"{speed:,.0f} {unit}"))
        times.append((positions * min(limits) / speed, why))
    return min(times, default=None)


def estimate(game: Game[Any, Any], options: Options, speed: float, positions: int, first: int = 0) -> str | None:
    """Return a line with the expected time to search `positions`, or None if depth is the only limit.

    `first` is the number of visits in the first pass, or 0.
    """
    unit = "visits" if alpha_beta_file(options, game.name) is None else "nodes"
    found = full_time(options, speed, positions, unit)
    if found is None:
        return None
    seconds, why = found
    values = {"limit": shown_limit(limit_text(options, unit=unit)), "time": duration(seconds), "why": why}
    if first:
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
    return text + _offer(game, options) if seconds >= LONG else text


def _offer(game: Game[Any, Any], options: Options) -> str:
    """Return advice for a long review: the fast network if it is not used, otherwise fewer visits."""
    if not has_network(options):
        return tr("; fewer --visits are faster")
    fast = network_file(dataclasses.replace(options, net=FAST), game.name)
    is_faster = game.name in FOR_SPEED and network_file(options, game.name) != fast
    return tr("; --net fast is faster, but weaker") if is_faster else tr("; fewer --visits are faster")
