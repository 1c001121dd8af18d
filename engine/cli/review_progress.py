"""Progress of `yomi review`: the journal of searched positions, for interrupted reviews, and the estimated time."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from yomi import __version__
from yomi.engine.cli.output import say
from yomi.engine.default_network import has_network, network_file
from yomi.engine.records import read_record_bytes
from yomi.engine.review import KEPT_VISITS, Judgement, KnownPositions, Opinion, ReviewError, limit_text
from yomi.nets.models import FAST, FOR_SPEED

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options
    from yomi.engine.review import Reviewer

MAX_FILES = 100
"""Files whose positions are counted. Each further file counts as their mean."""
LONG = 180.0
"""Seconds from which the fast network is recommended."""


class ReviewJournal:
    def __init__(self, folder: Path, settings: str) -> None:
        """Read the positions left by a command with the same `settings`: the options that change a search."""
        digest = hashlib.sha256(f"{__version__} {settings}".encode("utf-8", "backslashreplace")).hexdigest()
        self.path = folder / f".yomi-analyze-{digest[:12]}.jsonl"
        self._known: dict[str, dict[int, Judgement]] = {}
        self._stream: IO[str] | None = None
        self._is_kept = True
        with contextlib.suppress(OSError):  # `append` reports a file that cannot be used
            for line in self.path.read_bytes().splitlines():
                self._read(line)

    def __len__(self) -> int:
        """Return the number of positions that an earlier run has searched."""
        return sum(map(len, self._known.values()))

    def game(self, path: Path, number: int) -> KnownPositions:
        """Return the known positions of game `number` of a file. Positions added to them are written to the journal."""
        try:
            digest = hashlib.sha256(read_record_bytes(path)).hexdigest()[:16]
        except OSError:  # a pipe that was read once, or a file that has gone
            return KnownPositions()
        return _KeptPositions(self, f"{digest}-{number}", self._known.get(f"{digest}-{number}", {}))

    def append(self, game: str, turn: int, judgement: Judgement) -> None:
        """Write a position. A folder that cannot be written is reported once."""
        if not self._is_kept:
            return
        opinion, evaluations = judgement
        fields = None if opinion is None else dataclasses.asdict(opinion)
        line = json.dumps({"game": game, "turn": turn, "evaluations": evaluations, "opinion": fields})
        try:
            if self._stream is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._stream = self.path.open("a", encoding="ascii")
                self._stream.write("\n")  # ends a line that a crash has cut off
            self._stream.write(line + "\n")
            self._stream.flush()
        except OSError as error:
            self._is_kept = False
            say(f"cannot write {self.path}: {error.strerror}; an interrupted review will start again")

    def interrupted(self) -> str:
        return f"interrupted: the same command continues ({self.path})" if self.path.exists() else "interrupted"

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
            opinion = None if fields is None else Opinion(**fields | {"pv": tuple(fields["pv"])})
            self._known.setdefault(found["game"], {})[found["turn"]] = opinion, found["evaluations"]


class _KeptPositions(KnownPositions):
    def __init__(self, journal: ReviewJournal, game: str, found: dict[int, Judgement]) -> None:
        super().__init__(found)
        self._journal, self._game = journal, game

    def add(self, index: int, judgement: Judgement) -> None:
        super().add(index, judgement)
        self._journal.append(self._game, index, judgement)


def count_positions(reviewer: Reviewer, paths: Sequence[Path]) -> int:
    """Return the approximate number of positions in files. Unreadable files and pipes count 0."""
    counted = [_positions(reviewer, path) for path in paths[:MAX_FILES]]
    return round(sum(counted) * len(paths) / len(counted)) if counted else 0


def _positions(reviewer: Reviewer, path: Path) -> int:
    try:
        return sum(map(reviewer.length, reviewer.read(str(path)))) if path.is_file() else 0
    except ReviewError:  # reported when it is the file's turn
        return 0


def estimate(game: Game[Any, Any], options: Options, reviewer: Reviewer, record: Any, positions: int) -> str | None:
    """Return a line with the expected time to search `positions`, or None if depth is the only limit.

    A short search of `record` measures the speed.
    """
    times = [] if options.seconds is None else [("limit", positions * options.seconds)]
    if options.visits is not None or options.playouts is not None:
        speed = reviewer.visits_per_second(record)
        limits = [limit for limit in (_new_visits(options.visits), options.playouts) if limit is not None]
        if speed > 0.0:
            times.append((f"measured: {speed:,.0f} visits/s", positions * min(limits) / speed))
    if not times:
        return None
    why, seconds = min(times, key=lambda time: time[1])
    text = (
        f"{positions:,} position{'s' * (positions != 1)}, {limit_text(options)} each: about {duration(seconds)} ({why})"
    )
    return text + _offer(game, options) if seconds >= LONG else text


def _new_visits(visits: int | None) -> float | None:
    return None if visits is None else visits * (1.0 - KEPT_VISITS)


def _offer(game: Game[Any, Any], options: Options) -> str:
    """Return advice for a long review: the fast network if it is not used, otherwise fewer visits."""
    if not has_network(options):
        return "; fewer --visits are faster"
    fast = network_file(dataclasses.replace(options, net=FAST), game.name)
    is_faster = game.name in FOR_SPEED and network_file(options, game.name) != fast
    return "; --net fast is faster, but weaker" if is_faster else "; fewer --visits are faster"


def duration(seconds: float) -> str:
    """Return a time with no more digits than an estimate has."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{round(seconds / 3600)} h"
