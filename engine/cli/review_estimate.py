"""How long `yomi analyze` will take: the speed of a short search times the visits of all positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.default_network import has_network, network_file
from yomi.engine.review import KEPT_VISITS, ReviewError, limit_text
from yomi.nets.models import FAST, FOR_SPEED

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options
    from yomi.engine.review import Reviewer

MAX_FILES = 100
"""Files whose positions are counted. Each further file counts as their mean."""
LONG = 180.0
"""Seconds from which on the fast network is offered."""


def count_positions(reviewer: Reviewer, paths: Sequence[Path]) -> int:
    """Return the positions of all games of files, about. A file that cannot be read, or only once, counts nothing."""
    counted = [_positions(reviewer, path) for path in paths[:MAX_FILES]]
    return round(sum(counted) * len(paths) / len(counted)) if counted else 0


def _positions(reviewer: Reviewer, path: Path) -> int:
    try:
        return sum(map(reviewer.length, reviewer.read(str(path)))) if path.is_file() else 0
    except ReviewError:  # reported when it is the file's turn
        return 0


def estimate(game: Game[Any, Any], options: Options, reviewer: Reviewer, record: Any, positions: int) -> str | None:
    """Return a line with the time that a review will take; None if its only limit is a depth.

    Args:
        game: its descriptor.
        options: of the review.
        reviewer: of the game.
        record: a game to measure on.
        positions: number of positions that are left to search.
    """
    times = [] if options.seconds is None else [("limit", positions * options.seconds)]
    if options.visits is not None or options.playouts is not None:
        speed = reviewer.visits_per_second(record)
        limits = [each for each in (_new_visits(options.visits), options.playouts) if each is not None]
        if speed > 0.0:
            times.append((f"measured: {speed:,.0f} visits/s", positions * min(limits) / speed))
    if not times:
        return None
    why, seconds = min(times, key=lambda each: each[1])
    text = (
        f"{positions:,} position{'s' * (positions != 1)}, {limit_text(options)} each: about {duration(seconds)} ({why})"
    )
    return text + _offer(game, options) if seconds >= LONG else text


def _new_visits(visits: int | None) -> float | None:
    """Return the visits of a search without those that it takes over from the position before."""
    return None if visits is None else visits * (1.0 - KEPT_VISITS)


def _offer(game: Game[Any, Any], options: Options) -> str:
    """Return advice for a long review: the fast network if it is not in use, and fewer visits."""
    if not has_network(options):
        return "; fewer --visits are faster"
    fast = network_file(replace(options, net=FAST), game.name)
    is_faster = game.name in FOR_SPEED and network_file(options, game.name) != fast
    return "; --net fast is faster, but weaker" if is_faster else "; fewer --visits are faster"


def duration(seconds: float) -> str:
    """Return a time with no more digits than an estimate has."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36000 else f"{round(seconds / 3600)} h"
