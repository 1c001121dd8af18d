"""Ratings: published tables, simulated matches, speed, and what is left open by the games."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tests import intervals
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.matches.rating import BETA, Ratings, Sprt, expected_score, fit, outcome_probabilities
from yomi.engine.options import Options, Value


@dataclass(frozen=True)
class Duel:
    """A table of two players as printed: W, D, L of the first; rating and error; CFS; advantage; draw rate."""

    score: tuple[int, int, int]
    rating: float
    error: float
    cfs: int
    advantage: tuple[float, float]
    draws: tuple[float, float]


DUELS = [
    Duel((52, 35, 31), 33.1, 27.0, 99, (78.07, 28.27), (31.47, 4.53)),
    Duel((69, 21, 34), 51.3, 29.6, 100, (-23.29, 30.44), (17.86, 3.51)),
    Duel((79, 12, 29), 79.7, 34.5, 100, (57.38, 34.96), (11.31, 3.23)),
    Duel((52, 42, 49), 3.7, 23.5, 62, (2.40, 25.59), (29.38, 3.84)),
    Duel((82, 26, 40), 52.2, 26.5, 100, (51.98, 27.50), (18.75, 3.27)),
    Duel((87, 26, 33), 72.0, 28.4, 100, (85.79, 30.30), (20.28, 3.60)),
]
"""Matches of one GPU's dlshogi and two versions of Suisho that its author published in 2021, rated by Ordo."""


def with_advantage(fitted: Callable[[float], Ratings], wanted: float) -> Ratings:
    """Return the fit whose advantage is the wanted one; it grows with the argument of `fitted`."""
    low, high = -15.0, 30.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (middle, high) if fitted(middle).advantage < wanted else (low, middle)
    ratings = fitted(low)
    assert ratings.advantage == pytest.approx(wanted, abs=0.1)
    return ratings


def by_color(score: tuple[int, int, int], black_points: float) -> np.ndarray:
    """Split a score evenly between the colors, but for `black_points` that Black has of all."""
    won, drawn, lost = score
    games = sum(score)
    extra = (black_points - games / 2) / 2
    """Wins that move from White's games to Black's, for each player."""
    counts = np.zeros((2, 2, 3))
    counts[0, 1] = won / 2 + extra, drawn / 2, lost / 2 - extra
    counts[1, 0] = lost / 2 + extra, drawn / 2, won / 2 - extra
    return counts


@pytest.mark.parametrize("duel", DUELS, ids=lambda duel: "-".join(map(str, duel.score)))
def test_published_duels(duel: Duel) -> None:
    """The tables do not say who won with which color, but for the advantage: the split that gives it is taken."""
    games = sum(duel.score)
    ratings = with_advantage(lambda points: fit("AB", by_color(duel.score, games / 2 + points)), duel.advantage[0])
    assert ratings.advantage_error == pytest.approx(duel.advantage[1], abs=3)
    assert ratings.elo == pytest.approx([duel.rating, -duel.rating], abs=5)
    assert ratings.elo == pytest.approx([duel.rating, -duel.rating], rel=0.02)
    assert ratings.errors == pytest.approx([duel.error, duel.error], rel=0.06)
    assert 100 * ratings.superiority(0, 1) == pytest.approx(duel.cfs, abs=2)
    assert 100 * ratings.draw_rate == pytest.approx(duel.draws[0], abs=1.2)
    assert 100 * ratings.draw_error == pytest.approx(duel.draws[1], abs=0.5)


LEAGUES = [
    ([(151, 33, 64), (87, 57, 101), (60, 48, 133)], [87.3, -12.7, -74.6], [28.2, 27.1, 28.5], [100, 99], 37.14, 20.20),
    ([(170, 52, 74), (93, 68, 133), (84, 68, 140)], [79.6, -32.9, -46.7], [24.6, 25.0, 24.7], [100, 73], 43.31, 22.59),
]


@pytest.mark.parametrize("share", [0.4, 0.6])
@pytest.mark.parametrize(("scores", "elo", "errors", "cfs", "advantage", "draws"), LEAGUES)
def test_published_leagues(
    scores: list[tuple[int, int, int]],
    elo: list[float],
    errors: list[float],
    cfs: list[int],
    advantage: float,
    draws: float,
    share: float,
) -> None:
    """Games and draws of each pair follow from the totals; wins but for one number, which makes no difference."""
    games = [sum(score) for score in scores]
    counts = np.zeros((3, 3, 3))
    wins: dict[tuple[int, int], float] = {}
    played, drawn = {}, {}
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        played[i, j] = (games[i] + games[j] - games[k]) / 2
        drawn[i, j] = (scores[i][1] + scores[j][1] - scores[k][1]) / 2
    wins[0, 1] = share * (played[0, 1] - drawn[0, 1]) + 13
    wins[0, 2] = scores[0][0] - wins[0, 1]
    wins[1, 2] = scores[1][0] - (played[0, 1] - drawn[0, 1] - wins[0, 1])
    assert all(0 <= wins[pair] <= played[pair] - drawn[pair] for pair in wins)

    def fitted(extra: float) -> Ratings:
        for i, j in wins:
            won, lost = wins[i, j], played[i, j] - drawn[i, j] - wins[i, j]
            counts[i, j] = won / 2 + extra, drawn[i, j] / 2, lost / 2 - extra
            counts[j, i] = lost / 2 + extra, drawn[i, j] / 2, won / 2 - extra
        return fit("ABC", counts)

    ratings = with_advantage(fitted, advantage)
    assert ratings.elo == pytest.approx(elo, abs=3)
    assert ratings.errors == pytest.approx(errors, abs=1.5)
    assert [100 * ratings.superiority(i, i + 1) for i in (0, 1)] == pytest.approx(cfs, abs=4)
    assert 100 * ratings.draw_rate == pytest.approx(draws, abs=1)


def test_a_published_league_with_its_colors() -> None:
    """Two of dlshogi and Suisho; Black's wins, draws and losses. The printed ratings also have 52 duplicate games."""
    counts = np.zeros((3, 3, 3), int)
    counts[0, 1], counts[1, 0] = (117, 0, 67), (123, 1, 58)
    counts[0, 2], counts[2, 0] = (155, 5, 46), (81, 3, 120)
    counts[1, 2], counts[2, 1] = (152, 12, 41), (71, 6, 128)
    ratings = fit(["2th-1", "2th-2", "suisho4-10th"], counts)
    assert ratings.elo == pytest.approx([40.4, 59.6, -100.0], abs=5)
    assert ratings.errors == pytest.approx([16.4, 16.9, 17.5], abs=1)
    assert 100 * ratings.superiority(1, 0) == pytest.approx(91, abs=5)
    assert 60 < ratings.advantage < 100  # 59% of the points


def simulate(elo: np.ndarray, advantage: float, nu: float, games: int, rng: np.random.Generator) -> np.ndarray:
    """Return counts of games between random pairs."""
    size = len(elo)
    counts = np.zeros((size, size, 3), int)
    black = rng.integers(size, size=games)
    white = (black + rng.integers(1, size, size=games)) % size
    p = np.stack(outcome_probabilities(BETA * (elo[black] - elo[white] + advantage), nu), axis=1)
    outcome = (rng.random(games)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    np.add.at(counts, (black, white, np.minimum(outcome, 2)), 1)
    return counts


def test_known_ratings_are_recovered_within_the_error_bars() -> None:
    rng = np.random.default_rng(1)
    elo = np.array([-310.0, -120.0, -15.0, 5.0, 40.0, 80.0, 120.0, 200.0])
    elo -= elo.mean()
    inside, advantages, draws = 0, [], []
    repetitions = 200
    for _ in range(repetitions):
        ratings = fit(range(8), simulate(elo, 30.0, 0.5, 10_000, rng))  # type: ignore[arg-type]  # names do not matter
        inside += int((np.abs(ratings.elo - elo) < ratings.errors).sum())
        advantages.append((ratings.advantage - 30.0) / ratings.advantage_error)
        draws.append((ratings.draw_rate - 0.2) / ratings.draw_error)
    assert 0.935 < inside / (8 * repetitions) < 0.965
    assert np.std(advantages) == pytest.approx(1, abs=0.15)
    assert np.std(draws) == pytest.approx(1, abs=0.15)
    assert np.mean(advantages) == pytest.approx(0, abs=0.25)


def test_ten_thousand_games_of_many_players_are_rated_at_once() -> None:
    rng = np.random.default_rng(2)
    counts = simulate(rng.normal(0, 200, 100), 30.0, 0.5, 10_000, rng)
    begin = time.process_time()  # of this process alone: the machine may be busy
    fit(range(100), counts)  # type: ignore[arg-type]
    assert time.process_time() - begin < 20.0


def test_expected_scores_keep_their_meaning_whatever_the_draws() -> None:
    x = np.linspace(-5, 5, 21)
    for nu in (0.0, 0.5, 2.0, 40.0):
        win, draw, loss = outcome_probabilities(x, nu)
        assert win + draw + loss == pytest.approx(np.ones(21))
        assert win + draw / 2 == pytest.approx(1 / (1 + np.exp(-x)))
        assert draw[10] == pytest.approx(nu / (2 + nu))
        assert draw**2 == pytest.approx(nu**2 * win * loss)
    assert expected_score(400 * np.log10(3)) == pytest.approx(0.75)


def test_intervals_contain_the_true_difference() -> None:
    """Exact for ten pairs. More than 97% is due to whole numbers of pairs."""
    for pairs in (2, 6, 10):
        covered = intervals.coverage(pairs, intervals.KINDS)
        assert min(covered) > 0.93, dict(zip(intervals.KINDS, covered, strict=True))
    covered = intervals.coverage(10, {name: intervals.KINDS[name] for name in list(intervals.KINDS)[:3]})
    assert max(covered) < 0.97


def test_split_pairs_are_no_proof() -> None:
    test = Sprt(0.0, 20.0)
    assert test.verdict((0, 0, 20, 0, 0)) == ""
    assert test.verdict((0, 0, 500, 0, 120)) == "elo1"


def test_games_that_leave_things_open() -> None:
    counts = np.zeros((2, 2, 3), int)
    counts[0, 1, 0] = counts[1, 0, 2] = 50  # the first has won all
    ratings = fit("AB", counts)
    assert 200 < ratings.elo[0] < 2000
    assert ratings.draw_rate == 0
    assert ratings.draw_error == pytest.approx(1 / 102, rel=0.02)
    counts[:] = 0
    counts[0, 1, 1] = counts[1, 0, 1] = 50  # all drawn
    ratings = fit("AB", counts)
    assert ratings.elo == pytest.approx([0, 0], abs=1e-6)
    assert ratings.draw_rate > 0.9
    counts[:] = 0
    counts[0, 1, 0] = counts[1, 0, 0] = 50  # Black has won all
    assert fit("AB", counts).advantage > 200
    assert fit("AB", counts, advantage=False).advantage == 0
    counts[:] = 0
    counts[0, 1] = 30, 0, 10  # the first was always Black: advantage or strength, nobody knows
    assert fit("AB", counts).errors[0] > 200


@pytest.mark.parametrize(
    ("values", "komi"),
    [({"size": 5}, 25.0), ({"size": 7}, 9.0), ({"size": 7, "komi": 7.5}, 7.5), ({"size": 9}, None)],
)
def test_small_boards_have_a_fair_komi(values: dict[str, Value], komi: float | None) -> None:
    assert GO.fair(Options.for_game("go").with_values(values)).komi == komi
