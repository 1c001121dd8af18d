"""What the players of all games share: watching a search, ending it in time, choosing the move, giving up."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.color import BLACK, WHITE
from yomi.engine.search.search import SEARCH_HANG, Search
from yomi.engine.search.types import Limits

if TYPE_CHECKING:
    from yomi.engine.players.request import PlayableGame
    from yomi.engine.search.types import SearchReport

_log = logging.getLogger("yomi.evaluators")

DEFAULT_SECONDS = 5.0
"""Time for a move where neither the options nor a clock set a limit."""
POLL = 0.05
"""Seconds between two looks at a search on a clock."""
LOOK_SHARE = 0.02
"""Share of its time that a search is looked at, at most: slow looks are fewer, as they may take the search's core."""
PATIENCE = 0.03
"""Seconds that a search gets to end after its time, before its report is taken as it stands."""
LEAD_TO_STOP = 1.0
"""A search on a clock stops early when the second move would need more than all remaining playouts to catch up."""
WAKE_UPS = 3.0
"""Threads that wake up one after the other between the end of a move's time and the controller's clock."""
LATENESS_DECAY = 0.8
"""Share of the lateness seen at earlier moves that is expected of the next."""
WARM_UP = 4
"""Playouts of the first search, which does not count."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a search on a clock ends, on the scale of time.monotonic()."""

    start: float = 0.0
    """When the clock started."""
    soft: float = math.inf
    """It may end from here on where the choice is settled, and before where nothing can change it."""
    hard: float = math.inf
    """It ends here in any case."""


MAX_LATENESS = 0.5
"""Seconds of which a reserve is made, at most: what takes longer is no load but a machine that stood still."""


class Lateness:
    """How late a loaded machine wakes this process up: time that has to be kept in reserve."""

    def __init__(self) -> None:
        """Begin on a machine that is taken to be quiet."""
        self._expected = 0.0

    def note(self, seconds: float) -> None:
        """Take what `watch` saw at a move."""
        self._expected = max(LATENESS_DECAY * self._expected, min(seconds, MAX_LATENESS))

    @property
    def reserve(self) -> float:
        """Seconds to keep for the threads that wake up between the end of a move's time and the controller's clock."""
        return WAKE_UPS * self._expected


def warm_up(search: Search, game: PlayableGame) -> None:
    """Search a little and forget it, so that nothing is loaded for the first time while a clock runs.

    The search's latency is that of full batches then: what the first search that counts may expect. It costs about
    WARM_UP evaluations and a batch for each worker.

    Args:
        search: it is left without a position.
        game: where it searches; a move is played on it.

    Raises:
        Exception: what an evaluator raised.
    """
    try:
        search.set_position(game)
        report = search.run(Limits(playouts=WARM_UP))
        if report.moves:  # what a tree needs that is kept after a move
            game.push(report.moves[0].move)
            search.set_position(game)
            search.run(Limits(playouts=1))
        search.time_batches()
    finally:
        search.clear()


def watch(
    search: Search,
    schedule: Callable[[], Schedule],
    *,
    is_stopped: Callable[[], bool] | None = None,
    has_enough: Callable[[SearchReport], bool] | None = None,
    on_report: Callable[[SearchReport], None] | None = None,
    first_report: float | None = None,
    interval: float = 1.0,
    pv_length: int = 60,
    depth: int = 0,
) -> float:
    """Wait until a search has ended or should end; the caller ends it.

    Returns:
        The longest that this thread was kept waiting beyond what it asked for, in seconds: what a loaded machine costs.

    Args:
        search: the search that runs.
        schedule: returns the clock's limits; asked again and again, as they may change.
        is_stopped: whether an answer is wanted at once.
        has_enough: whether a search that has come so far may end.
        on_report: called every `interval` seconds.
        first_report: seconds until the first report; None: `interval`.
        interval: seconds; infinity for no report after the first.
        pv_length: moves of the principal variations that are reported, at most.
        depth: moves of the principal variations that `has_enough` wants to see.
    """
    begin = time.monotonic()
    next_report = math.inf if on_report is None else begin + (interval if first_report is None else first_report)
    lateness, awaited, next_look = 0.0, begin, begin
    while True:
        now = time.monotonic()
        lateness = max(lateness, now - awaited)
        plan = schedule()
        if now >= plan.hard or (is_stopped is not None and is_stopped()):
            return lateness
        on_clock = plan.soft != math.inf
        if now > next_look and (on_clock or has_enough is not None):
            report = search.report(pv_length=depth)
            next_look = now + (time.monotonic() - now) / LOOK_SHARE
            if (has_enough is not None and has_enough(report)) or (on_clock and is_settled(report, begin, now, plan)):
                return lateness
        if on_report is not None and now >= next_report:
            next_report = now + interval
            on_report(search.report(pv_length=pv_length))
        pause = POLL if on_clock or is_stopped is not None or has_enough is not None else 3600.0
        now = time.monotonic()
        pause = max(0.0, min(pause, plan.hard - now, next_report - now))
        awaited = now + pause
        if search.wait(pause):
            return lateness


def is_settled(report: SearchReport, begin: float, now: float, plan: Schedule) -> bool:
    """Whether a search on a clock may end: its time is up and the move is clear, or no other move can catch up.

    Args:
        report: the search as it stands.
        begin: when it began, which may be before the clock started (pondering).
        now: the time.
        plan: the clock.
    """
    moves = report.candidates
    if not moves:
        return False
    first, second = sorted((0, *(move.visits for move in moves)), reverse=True)[:2]
    if now >= plan.soft:
        return moves[0].visits == first
    remaining = report.playouts / max(now - begin, 1e-3) * (plan.soft - now)
    is_early = now - plan.start <= 0.1 * (plan.soft - plan.start)
    return not is_early and first - second > LEAD_TO_STOP * remaining


def end_search(search: Search, patience: float, pv_length: int = 60) -> SearchReport:
    """End a search that must have an answer, and return its report.

    A search whose evaluator has failed is good for what it found until then.

    Args:
        search: the search.
        patience: seconds to wait for its threads; then the report is taken as it stands, and the search's next call
            waits for them.
        pv_length: moves of the principal variations, at most.

    Raises:
        Exception: what an evaluator or a worker raised, where nothing was found.
    """
    search.interrupt()
    if not search.wait(patience):
        return search.report(pv_length=pv_length)
    report = search.report(pv_length=pv_length)
    try:
        search.stop()
    except Exception as error:
        if not report.moves:
            raise
        _log.error("the search ended early: %s", error)
    return report


def wait_for_end(search: Search) -> SearchReport:
    """Wait for a search that was told to end before it had a move until it has one, and return its report.

    Raises:
        Exception: what an evaluator or a worker raised, or that the search does not end (see `Search.stop`).
    """
    search.wait(SEARCH_HANG)
    search.stop()
    return search.report()


def choose(report: SearchReport, temperature: float, rng: np.random.Generator) -> int:
    """Return the best move of a report that has moves, or one drawn by visits at a temperature above 0."""
    if temperature <= 0.0:
        return report.moves[0].move
    moves = report.candidates
    visits = np.array([move.visits for move in moves], np.float64)
    weights = np.exp((np.log(visits) - np.log(visits.max())) / temperature)
    return moves[int(rng.choice(len(weights), p=weights / weights.sum()))].move


def temperature_at(ply: int, temperature: float, temperature_moves: int) -> float:
    """Return the temperature of the choice at a ply of the game; 0 after the moves that it is used for."""
    return temperature if temperature_moves == 0 or ply < temperature_moves else 0.0


class LostMoves:
    """Remembers which of its moves in a row a player thought lost."""

    def __init__(self) -> None:
        """Begin a game."""
        self._plies: dict[int, set[int]] = {BLACK: set(), WHITE: set()}

    def count(self, color: int, ply: int, is_lost: bool) -> int:
        """Take what the search says of a move, and return how many in a row looked lost; asked twice counts once."""
        lost = {each for each in self._plies[color] if each < ply}
        if is_lost:
            lost.add(ply)
        else:
            lost.clear()
        self._plies[color] = lost
        return len(lost)
