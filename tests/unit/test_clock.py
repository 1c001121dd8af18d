"""Time settings, what moves cost, and the time that is kept for lags."""

import pytest

from tests.looping import looped
from yomi.engine.clock import RESERVE_MOVES, Clock, ClockError, TimeSettings, TimeSystem, lag_reserve

ALL = tuple(TimeSystem)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((300, 0, 0), TimeSettings(TimeSystem.ABSOLUTE, 300)),
        ((300, 30, 5), TimeSettings(TimeSystem.CANADIAN, 300, 30, 5)),
        ((0, 10, 1), TimeSettings(TimeSystem.CANADIAN, 0, 10, 1)),
        ((0, 10, 0), TimeSettings()),
        ((0, 0, 0), TimeSettings(TimeSystem.ABSOLUTE, 0)),
        ((10, 0, 5), TimeSettings(TimeSystem.ABSOLUTE, 10)),
    ],
)
def test_time_settings_of_gtp(numbers: tuple[float, float, int], expected: TimeSettings) -> None:
    assert TimeSettings.from_gtp(*numbers) == expected


@looped(
    ("text", "expected"),
    [
        ("none", TimeSettings()),
        ("absolute 10.5", TimeSettings(TimeSystem.ABSOLUTE, 10.5)),
        ("Canadian 60 300 25", TimeSettings(TimeSystem.CANADIAN, 60, 300, 25)),
        ("byoyomi 60 30 5", TimeSettings(TimeSystem.BYOYOMI, 60, 30, 5)),
        ("byo-yomi 0 0.5 1", TimeSettings(TimeSystem.BYOYOMI, 0, 0.5, 1)),
        ("byoyomi 60 30 0", TimeSettings(TimeSystem.ABSOLUTE, 60)),
        ("fischer 60 5", TimeSettings(TimeSystem.FISCHER, 60, increment=5)),
        ("fischer-capped 60 5 90 20", TimeSettings(TimeSystem.FISCHER, 60, 0, 0, 5, 90, 20)),
        ("fischer-capped 60 5 -1 -1", TimeSettings(TimeSystem.FISCHER, 60, 0, 0, 5)),
    ],
)
def test_named_settings(text: str, expected: TimeSettings) -> None:
    assert TimeSettings.parse(text.split(), ALL) == expected


@looped(
    "text",
    ["", "blitz 3", "absolute", "absolute x", "absolute -1", "absolute inf", "absolute nan", "canadian 1 2 2.5",
     "byoyomi 1 2", "fischer 1 2 3", "fischer-capped 60 5 30 -1", "none 1", "absolute 1e11"],
)  # fmt: skip
def test_wrong_settings(text: str) -> None:
    with pytest.raises(ClockError):
        TimeSettings.parse(text.split(), ALL)


def test_a_move_is_charged() -> None:
    def readings(clock: Clock) -> tuple[float, float, int]:
        return clock.main, clock.period, clock.count

    clock = Clock.full(TimeSettings(TimeSystem.CANADIAN, 10, 30, 3)).after(4)
    assert readings(clock) == (6, 30, 3)
    clock = clock.after(8)
    assert readings(clock) == (0, 28, 2)
    clock = clock.after(8)
    assert readings(clock) == (0, 20, 1)
    assert readings(clock.after(8)) == (0, 30, 3)
    byoyomi = Clock.full(TimeSettings(TimeSystem.BYOYOMI, 0, 10, 3))
    assert readings(byoyomi.after(9.9)) == (0, 10, 3)
    assert readings(byoyomi.after(10.5)) == (0, 10, 2)
    fischer = Clock.full(TimeSettings(TimeSystem.FISCHER, 10, increment=5, main_limit=12))
    assert readings(fischer.after(1)) == (12, 0, 0)
    assert readings(fischer.after(7)) == (8, 0, 0)


def test_the_reserve_for_lag_has_a_floor() -> None:
    assert lag_reserve(0.0, 100) == 0.0
    assert lag_reserve(0.5, 100) == 0.5 * 61
    assert lag_reserve(0.5, 3) == lag_reserve(0.5, RESERVE_MOVES) == 8.0
