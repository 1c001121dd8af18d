"""How long a move of shogi may take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.clock import Clock
from yomi.engine.shogi.players.player import find_budget, moves_left

SECONDS = st.floats(0, 10_000)
DELAY = st.floats(0, 2)


@given(SECONDS, SECONDS, SECONDS, st.integers(0, 600), DELAY, DELAY, DELAY)
def test_a_budget_is_on_the_clock(
    left: float, byoyomi: float, increment: float, ply: int, lag: float, margin: float, lateness: float
) -> None:
    budget = find_budget(Clock.of(left, byoyomi, increment), ply, lag, margin, lateness)
    assert 0 <= budget.soft <= budget.hard
    assert budget.hard <= max(left + byoyomi, increment)
    if byoyomi:
        reserve = min(min(lag + margin, 0.4 * byoyomi) + lateness, 0.9 * byoyomi)
        assert budget.hard <= left + byoyomi - reserve + 1e-6
    else:
        assert budget.hard <= max(0.0, max(left, increment) - lag - lateness) + 1e-6


@looped("lateness", [0.0, 0.5])
@looped("lag", [0.05, 0.2, 1.0])
@looped(("main", "byoyomi", "increment"), [(60, 0, 0), (10, 0, 0.1), (300, 10, 0), (0, 0, 10), (0, 1, 0)])
def test_no_game_is_lost_on_time(main: float, byoyomi: float, increment: float, lag: float, lateness: float) -> None:
    """Every fourth move takes all it may, the others their share, and the lag besides (less in short byo-yomi).

    One of them is late besides.
    """
    left = main + increment
    for ply in range(0, 400 if byoyomi or increment else 240, 2):
        budget = find_budget(Clock.of(left, byoyomi, increment), ply, lag, 0.0, lateness)
        used = (budget.soft if ply % 8 else budget.hard) + 0.9 * min(lag, 0.4 * byoyomi or lag)
        if budget.hard == 0:
            used = 0.01  # nothing is left but to play at once
        elif ply == 80:
            used += lateness
        assert used <= left + byoyomi
        left = max(0.0, left - used) + increment


def test_time_is_used() -> None:
    assert find_budget(Clock.of(0, 10), 0, 0.2, 0.1).soft == pytest.approx(9.7)
    assert find_budget(Clock.of(0, 0.3), 0, 0.2, 0.1).soft == pytest.approx(0.18)
    assert 10 < find_budget(Clock.of(600), 0, 0.2, 0.1).soft < 20
    assert find_budget(Clock.of(5), 0, 0.2, 0.1).soft < 0.5
    assert moves_left(0) > moves_left(40) > moves_left(100) == moves_left(400)


def test_lateness_is_kept_in_reserve_once() -> None:
    for clock in (Clock.of(60), Clock.of(60, increment=1), Clock.of(0, 30)):
        quiet, late = find_budget(clock, 0, 0.2, 0.1), find_budget(clock, 0, 0.2, 0.1, lateness=1.5)
        assert 0.9 * quiet.soft < late.soft < quiet.soft
        assert quiet.hard - 1.6 < late.hard < quiet.hard
