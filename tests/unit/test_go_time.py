"""The course of the clocks of Go, and budgets that never lose on time."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, TimeSettings, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.gtp.engine import GtpClocks
from yomi.engine.go.players.player import find_budget, moves_left


def test_own_measuring_and_reports() -> None:
    now = [100.0]
    clock = GtpClocks(lambda: now[0])
    assert not clock.clocks()[BLACK].settings.is_limited
    clock.set(TimeSettings(TimeSystem.ABSOLUTE, 60))
    clock.start(BLACK)
    now[0] += 2
    clock.stop(lag=0.5)
    assert clock.clocks()[BLACK].main == 57.5  # nobody reports: the lag is charged too
    assert clock.clocks()[WHITE].main == 60
    clock.set_left(BLACK, 50, 0)
    assert [clock.clocks()[color].is_exact for color in (BLACK, WHITE)] == [True, False]
    clock.start(BLACK)
    now[0] += 2
    clock.stop(lag=0.5)
    assert clock.clocks()[BLACK].main == 48
    clock.start(BLACK)
    now[0] += 2
    clock.cancel()
    assert clock.clocks()[BLACK].main == 48
    clock.reset()
    assert clock.clocks()[BLACK].main == 60


def test_time_left_without_settings() -> None:
    clock = GtpClocks()
    clock.set_left(BLACK, 30, 0)
    assert clock.settings.system is TimeSystem.ABSOLUTE
    clock = GtpClocks()
    clock.set(TimeSettings())
    clock.set_left(BLACK, 30, 0)
    assert not clock.clocks()[BLACK].settings.is_limited


def full(system: TimeSystem, main: float, period: float = 0.0, count: int = 0, **more: float) -> Clock:
    """Return a clock that shows all the time that its settings give."""
    return Clock(TimeSettings(system, main, period, count, **more), main, period, count)


def test_budgets() -> None:
    assert find_budget(full(TimeSystem.ABSOLUTE, 0), 30, 0.1) == Budget(0, 0)
    assert find_budget(full(TimeSystem.BYOYOMI, 0, 0.5, 1), 30, 0.1) == Budget(0.4, 0.4)
    assert find_budget(full(TimeSystem.BYOYOMI, 0, 0.05, 1), 30, 0.1) == Budget(0, 0)
    assert find_budget(full(TimeSystem.CANADIAN, 0, 5, 1), 30, 0.1) == Budget(4.9, 4.9)
    assert find_budget(full(TimeSystem.FISCHER, 600, increment=20, move_limit=10), 30, 0.1).hard == 9.9
    # main time is used beside overtime, and a move may run over into it
    both = find_budget(full(TimeSystem.BYOYOMI, 1, 10, 3), 30, 0.1)
    assert both.soft == 9.9
    assert both.hard == 10.9


def test_lateness_is_kept_in_reserve_once() -> None:
    for clock in (
        full(TimeSystem.ABSOLUTE, 60),
        full(TimeSystem.FISCHER, 60, increment=1),
        full(TimeSystem.BYOYOMI, 0, 30, 1),
        full(TimeSystem.CANADIAN, 0, 500, 25),
    ):
        quiet, late = find_budget(clock, 40, 0.2), find_budget(clock, 40, 0.2, lateness=1.5)
        assert 0.9 * quiet.soft < late.soft < quiet.soft
        assert quiet.hard - 5 < late.hard < quiet.hard
    # hardly anything is left: what there is stays on the clock
    assert find_budget(full(TimeSystem.ABSOLUTE, 6), 40, 0.2, lateness=1.5) == Budget(0, 0)
    # a period that is hardly longer than lag and lateness is used all the same
    short = find_budget(full(TimeSystem.BYOYOMI, 0, 1, 1), 40, 0.2, lateness=1.5)
    assert short.soft == pytest.approx(0.1)


def test_moves_left_falls_to_a_floor() -> None:
    for area in (81, 169, 361):
        estimates = [moves_left(area, ply) for ply in range(0, 2 * area)]
        assert estimates == sorted(estimates, reverse=True)
        assert estimates[-1] > 10


class Referee:
    """A controller's clock for one side, written down independently of yomi.engine.go.players.player."""

    def __init__(self, s: TimeSettings) -> None:
        self.s = s
        self.main, self.period, self.count = s.main, s.period, s.count

    def move(self, used: float) -> bool:
        """Charge a move; False when it lost on time."""
        s = self.s
        if used > s.move_limit:
            return False
        if s.system is TimeSystem.FISCHER:
            self.main -= used
            lost = self.main < 0
            self.main = min(self.main + s.increment, s.main_limit)
            return not lost
        beyond = max(used - self.main, 0.0)
        self.main = max(self.main - used, 0.0)
        if beyond == 0:
            return True
        if s.system is TimeSystem.ABSOLUTE:
            return False
        if s.system is TimeSystem.BYOYOMI:
            while beyond > s.period:
                beyond -= s.period
                self.count -= 1
            return self.count >= 1
        self.period -= beyond
        if self.period < 0:
            return False
        self.count -= 1
        if self.count == 0:
            self.period, self.count = s.period, s.count
        return True

    def report(self) -> tuple[float, int]:
        """Return what `time_left` would say, in whole seconds as most controllers do."""
        if self.main > 0 or self.s.system in (TimeSystem.ABSOLUTE, TimeSystem.FISCHER):
            return math.floor(self.main), 0
        return math.floor(self.period), self.count


STEP = 0.004
"""The least time that an answer takes."""


def play_out(
    s: TimeSettings, area: int, moves: int, lag: float, reports: bool, seed: int, lateness: float = 0.0
) -> None:
    """Play one side of a game whose moves take up to the hard limit and then up to the lag; assert that it survives.

    Each move is late by up to `lateness` besides; in sudden death only one is, in the second half of the game.
    """
    rng = random.Random(seed)
    now = [100.0]
    clock, referee = GtpClocks(lambda: now[0]), Referee(s)
    clock.set(s)
    late_move = rng.randrange(moves // 2, moves)
    for i in range(moves):
        if reports:
            clock.set_left(BLACK, *referee.report())
        clock.start(BLACK)
        budget = find_budget(clock.clocks()[BLACK], moves_left(area, 2 * i), lag, lateness)
        assert 0 <= budget.soft <= budget.hard
        thought = rng.choice([budget.soft, rng.uniform(0, budget.hard), budget.hard]) + STEP * rng.random()
        if s.system is not TimeSystem.ABSOLUTE or i == late_move:
            thought += rng.choice([lateness, rng.uniform(0, lateness)])
        now[0] += thought
        clock.stop(lag)
        assert referee.move(thought + rng.uniform(0, lag - STEP)), f"lost on move {i}: {budget}, {thought}"


@looped("lateness", [0.0, 1.5])
@looped("reports", [True, False])
@looped(("size", "moves"), [(9, 45), (13, 70)])
def test_sudden_death_of_ten_seconds(size: int, moves: int, reports: bool, lateness: float) -> None:
    for seed in range(200):
        play_out(TimeSettings(TimeSystem.ABSOLUTE, 10), size**2, moves, 0.1, reports, seed, lateness)


@pytest.mark.parametrize("lateness", [0.0, 0.7])
@pytest.mark.parametrize("main", [0, 3])
def test_byo_yomi_of_one_second(main: int, lateness: float) -> None:
    for seed in range(100):
        for s in (
            TimeSettings(TimeSystem.BYOYOMI, main, 1, 1),
            TimeSettings(TimeSystem.BYOYOMI, main, 1, 3),
            TimeSettings(TimeSystem.CANADIAN, main, 1, 1),
        ):
            play_out(s, 81, 60, 0.2, seed % 2 == 0, seed, lateness)


@settings(max_examples=200, deadline=None)
@given(
    system=st.sampled_from([TimeSystem.BYOYOMI, TimeSystem.CANADIAN]),
    main=st.floats(0, 120),
    each=st.floats(0.3, 30),
    count=st.integers(1, 25),
    late=st.floats(0, 1),
    reports=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_overtime_is_never_lost(
    system: TimeSystem, main: float, each: float, count: int, late: float, reports: bool, seed: int
) -> None:
    period = each * count if system is TimeSystem.CANADIAN else each
    lateness = late * max(0.0, MAX_RESERVE_SHARE * each - 0.2)
    play_out(TimeSettings(system, main, period, count), 361, 120, 0.2, reports, seed, lateness)


@settings(max_examples=200, deadline=None)
@given(
    main=st.floats(1, 300),
    increment=st.floats(0.3, 20),
    cap=st.floats(1, 3),
    limit=st.floats(0.5, 60),
    late=st.floats(0, 1),
    reports=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_fischer_is_never_lost(
    main: float, increment: float, cap: float, limit: float, late: float, reports: bool, seed: int
) -> None:
    s = TimeSettings(TimeSystem.FISCHER, main, increment=increment, main_limit=main * cap, move_limit=limit)
    lateness = late * (min(main, increment, limit) - 0.2 - STEP)
    play_out(s, 361, 150, 0.2, reports, seed, lateness)


def test_the_time_is_used() -> None:
    """A ten-minute game spends most of its time by the usual end of a game."""
    left = 600.0
    for ply in range(0, 200, 2):
        left -= find_budget(Clock.of(left), moves_left(361, ply), 0.2).soft
    assert 30 < left < 150
