"""The time of a search, for all games: watch it, end it in time, choose the move, and count lost moves."""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from yomi.engine.clock import Budget
from yomi.engine.color import BLACK, WHITE
from yomi.engine.players.request import PlayableGame, Turn
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.read_tree import draw
from yomi.engine.search.types import Limits, SearchReport

_log = logging.getLogger("yomi.evaluators")

DEFAULT_SECONDS = 5.0  # for a move, if neither options nor a clock set a limit
POLL = 0.05  # seconds between two checks of a search on a clock
FIRST_LOOK = 0.001  # seconds before the first check
LOOK_SHARE = 0.02  # reading reports may take the search's core: at most this share of the time
PATIENCE = 0.03  # seconds that a search gets to end after its time; then its current report is used
LEAD_TO_STOP = 1.0  # a search stops early if the second move would need more than all remaining playouts to catch up
LATENESS_FACTOR = 1.5  # reserve of a move: this times the lateness that earlier moves lead to expect
LATENESS_DECAY = 0.8  # share of the lateness of earlier moves that is expected of the next move
WARM_UP = 4  # playouts of the first search, whose times do not count


MAX_LATENESS = 0.5  # seconds; a longer delay is no load but a machine that was suspended


class Lateness:
    """The delays of answers on this machine. The clock needs a reserve for them."""

    def __init__(self) -> None:
        self.expected = 0.0  # seconds of the next move

    def note(self, seconds: float) -> None:
        self.expected = max(LATENESS_DECAY * self.expected, min(seconds, MAX_LATENESS))

    @property
    def reserve(self) -> float:
        return LATENESS_FACTOR * self.expected


def warm_up(search: PositionSearch, game: PlayableGame) -> None:
    """Search a little and drop the tree, so that no code is loaded for the first time while a clock runs.

    Plays a move on `game`. Afterwards the search has no position, and its latency is that of full batches. This takes
    about WARM_UP evaluations and one batch for each thread.
    """
    try:
        search.set_position(game)
        report = search.run(Limits(playouts=WARM_UP))
        if report.moves:  # what a tree needs that is kept after a move
            game.push(report.moves[0].move)
            search.set_position(game)
            search.run(Limits(playouts=1))
        search.rehearse()
    finally:
        search.clear()


def watch(
    search: PositionSearch,
    turn: Turn[Any],
    schedule: Callable[[], Budget],
    show: Callable[[SearchReport], SearchReport],
) -> float:
    """Wait until the search of a turn has ended or should end. The caller must end it.

    Return the longest delay of this thread in seconds: how much longer than requested a wait took, on a loaded machine.

    Args:
        search: the running search.
        turn: its request receives reports from the first visit on.
        schedule: returns the current limits of the clock, which may change.
        show: changes a report before the request receives it.
    """
    request, limits, begin = turn.request, turn.limits, time.monotonic()
    # A search that ends at once needs no look at its report, which would take longer.
    if schedule().hard > begin and search.wait(FIRST_LOOK):
        return 0.0
    on_report = request.on_report
    first_report = request.interval if request.first_report is None else request.first_report
    has_end = not request.infinite and bool(
        search.settings.solver or limits.depth or (request.ponder and limits.playouts)
    )
    lateness, awaited, next_look = 0.0, begin, begin
    next_report = math.inf if on_report is None else begin + first_report
    while True:
        now = time.monotonic()
        lateness = max(lateness, now - awaited)
        plan = schedule()
        if now >= plan.hard or request.is_stopped or (turn.adviser.is_done and not request.is_unlimited):
            return lateness
        on_clock = plan.soft != math.inf
        if now > next_look and (on_clock or has_end):
            report = search.report(pv_length=limits.depth or 0)
            next_look = now + (time.monotonic() - now) / LOOK_SHARE
            if (has_end and turn.has_enough(report)) or (on_clock and is_settled(report, begin, now, plan)):
                return lateness
        if on_report is not None and now >= next_report:
            report = search.report(pv_length=request.pv_length)
            if report.visits:
                on_report(show(report))
            next_report = now + (request.interval if report.visits else POLL)  # the first one waits for an evaluation
        now = time.monotonic()
        awaited = now + max(0.0, min(POLL, plan.hard - now, next_report - now))
        if search.wait(awaited - now):
            return lateness


def is_settled(report: SearchReport, begin: float, now: float, plan: Budget) -> bool:
    """Return whether a search on a clock may end: time is up and the best move has most visits, or no move can catch
    up.

    `begin` is the start of the search, which may be before the clock started (pondering).
    """
    moves = report.candidates
    if not moves:
        return False
    first, second = sorted((0, *(move.visits for move in moves)), reverse=True)[:2]
    if report.depth:  # alpha-beta: nodes are no votes, and one of them can refute the best move
        base = min(max(plan.start, plan.free), plan.soft)  # another limit may end the move before its free time does
        return now >= base + report.time_share * (plan.soft - base)
    if now >= plan.soft:
        return moves[0].visits == first
    remaining = report.playouts / max(now - begin, 1e-3) * (plan.soft - now)
    is_early = now - plan.start <= 0.1 * (plan.soft - plan.start)
    return not is_early and first - second > LEAD_TO_STOP * remaining


def end_search(search: PositionSearch, patience: float, pv_length: int = 60) -> SearchReport:
    """End a search that must have an answer, and return its report, even if its evaluator has failed.

    If the threads need more than `patience` seconds, the current report is returned, and the search's next call waits
    for them. An error of an evaluator or a worker is raised only if the search has found no move.
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


def choose(report: SearchReport, temperature: float, rng: np.random.Generator, only_below: float = 1.0) -> int:
    """Return the best move of a report, or a move drawn by visits if the temperature is above 0; see `draw`."""
    if temperature <= 0.0:
        return report.moves[0].move
    moves = report.candidates
    visits = np.array([move.visits for move in moves], np.float64)
    return moves[draw(visits, temperature, rng, only_below)].move


def temperature_at(ply: int, temperature: float, temperature_moves: int) -> float:
    return temperature if temperature_moves == 0 or ply < temperature_moves else 0.0


class LostMoves:
    def __init__(self) -> None:
        self._plies: dict[int, set[int]] = {BLACK: set(), WHITE: set()}

    def count(self, color: int, ply: int, is_lost: bool) -> int:
        """Record whether a move looks lost. Return how many moves of this side in a row did; a ply counts once."""
        lost = {earlier for earlier in self._plies[color] if earlier < ply}
        if is_lost:
            lost.add(ply)
        else:
            lost.clear()
        self._plies[color] = lost
        return len(lost)
