"""How long a move of shogi may take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.clock import Clock
from yomi.engine.color import BLACK, WHITE
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.players.time_management import Lateness
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.players.player import ShogiPlayer, find_budget, moves_left

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
        reserve = min(min(lag + margin, 0.2 * byoyomi) + lateness, 0.9 * byoyomi)
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
        used = (budget.soft if ply % 8 else budget.hard) + 0.9 * min(lag, 0.2 * byoyomi or lag)
        if budget.hard == 0:
            used = 0.01  # nothing is left but to play at once
        elif ply == 80:
            used += lateness
        assert used <= left + byoyomi
        left = max(0.0, left - used) + increment


def test_only_byoyomi_is_free() -> None:
    assert find_budget(Clock.of(60, 10), 0, 0.0, 0.0).free == pytest.approx(10)
    assert find_budget(Clock.of(60, 0, 10), 0, 0.0, 0.0).free == 0.0
    budget = find_budget(Clock.of(0, 10), 0, 0.0, 0.0)
    assert budget.free == budget.soft


def test_time_is_used() -> None:
    assert find_budget(Clock.of(0, 10), 0, 0.2, 0.1).soft == pytest.approx(9.7)
    assert find_budget(Clock.of(0, 0.3), 0, 0.2, 0.1).soft == pytest.approx(0.24)
    for byoyomi, used in ((10, 9.9), (1, 0.9), (0.1, 0.08)):  # by default
        options = Options.for_game("shogi")
        budget = find_budget(Clock.of(0, byoyomi), 0, options.lag, options.byoyomi_margin)
        assert budget.soft == budget.hard == pytest.approx(used)
    assert 10 < find_budget(Clock.of(600), 0, 0.2, 0.1).soft < 20
    assert find_budget(Clock.of(5), 0, 0.2, 0.1).soft < 0.5
    assert moves_left(0) > moves_left(40) > moves_left(100) == moves_left(400)


def player_with_lag(lag: float) -> ShogiPlayer:
    """Return a player without evaluator and search."""
    player = object.__new__(ShogiPlayer)
    player.options = Options.for_game("shogi")
    player.options.set("lag", lag)
    player._delay, player._reported, player._answered = Lateness(), 0.0, None
    return player


def test_the_reserve_follows_the_delay_that_the_clock_shows(caplog: pytest.LogCaptureFixture) -> None:
    player, game = player_with_lag(0.1), ShogiGame()
    player._answered = game, Clock.of(60, 5), 3.0
    for text in ("7g7f", "3c3d"):
        game = game.continued("startpos", [*map(format_usi, (move for _, move in game.moves)), text])
    request = Request(game, clocks={BLACK: Clock.of(56.6, 5), WHITE: Clock()})
    player._note_delay(request)
    assert player._excess(player.options) == pytest.approx(0.3)
    assert caplog.messages == ["moves lose 0.40 s on the way to the clock: reserved from now on"]
    for clock in (Clock.of(0, 5), Clock.of(60), Clock.of(60, increment=5)):
        quiet, late = (find_budget(clock, 2, 0.1, 0.0, 0.0, excess) for excess in (0.0, 0.3))
        assert late.soft < quiet.soft
    assert find_budget(Clock.of(0, 5), 2, 0.1, 0.0, 0.0, 0.3).hard == pytest.approx(4.6)
    assert find_budget(Clock.of(60), 2, 0.1, 0.0, 0.0, 0.3) == find_budget(Clock.of(60), 2, 0.4, 0.0)


def test_clocks_of_other_games_and_without_main_time_show_no_delay() -> None:
    player, other = player_with_lag(0.1), ShogiGame().continued("startpos", ["2g2f", "3c3d"])
    before = ShogiGame()
    for game, main in ((other.continued("startpos", ["7g7f", "3c3d", "2g2f"]), 50.0), (other, 0.0), (other, 58.0)):
        player._answered = before, Clock.of(60, 5), 3.0
        player._note_delay(Request(game, clocks={BLACK: Clock.of(main, 5), WHITE: Clock.of(main, 5)}))
        assert player._excess(player.options) == 0.0


def test_lateness_is_kept_in_reserve_once() -> None:
    for clock in (Clock.of(60), Clock.of(60, increment=1), Clock.of(0, 30)):
        quiet, late = find_budget(clock, 0, 0.2, 0.1), find_budget(clock, 0, 0.2, 0.1, lateness=1.5)
        assert 0.9 * quiet.soft < late.soft < quiet.soft
        assert quiet.hard - 1.6 < late.hard < quiet.hard
