"""Ratings by maximum likelihood: Elo, the first player's advantage and the draw rate, fitted together.

The model:

    x = rating of Black - rating of White + advantage
    E = 1 / (1 + 10^(-x / 400))                          Black's expected score, as in Elo's system
    P(Black wins) + P(draw) / 2 = E
    P(draw) = nu * sqrt(P(Black wins) * P(White wins))   as in Davidson (1970)

The reported draw rate is nu / (2 + nu): the rate of equal players without advantage.

Why not Davidson's whole model, or Rao and Kupper's (BayesElo)? In them draws stretch the scale: the expected score of a
rating difference depends on the number of draws. In Ordo's tables, and here, it does not. Davidson's formula for draws
has one parameter and is symmetric. Unequal players draw less often, and any rate from 0 to 1 is possible.

Each rating has a normal prior of PRIOR_SD Elo. The prior keeps ratings finite if a player has won all games, or if
groups of players never met. It shrinks a difference measured in 100 games by less than 0.1%. In a long chain of players
who met only their neighbors, it pulls the ends together: use a wider prior there. The prior of the advantage is
narrower, because a large advantage in a few games would stretch all differences.

The model takes games as independent. The two games of a pair are not: after most openings one color wins both. `spread`
measures that, and `Ratings.widened` corrects the errors.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, WHITE
from yomi.engine.matches.results import GameResult

BETA = math.log(10.0) / 400.0  # natural logits per Elo
PRIOR_SD = 1000.0  # Elo
PRIOR_SD_ADVANTAGE = 200.0  # Elo
PRIOR_SD_DRAWS = 1.5  # of log nu, around the value of a draw rate of one third
CONFIDENCE = 1.959964  # standard errors of a 95% interval
TINY = 1e-12
MAX_STEPS = 200

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratings:
    """Fitted ratings."""

    players: tuple[str, ...]
    elo: Floats  # [players], mean 0
    covariance: Floats  # [players, players], Elo squared, of the ratings relative to their mean
    advantage: float  # Elo of playing Black
    advantage_error: float  # one standard error, as in Ordo's tables
    draw_rate: float  # of equal players, in [0, 1]
    draw_error: float  # one standard error

    @property
    def errors(self) -> Floats:
        """Half the 95% interval of each rating relative to the mean, [players]."""
        return CONFIDENCE * np.sqrt(np.diag(self.covariance))

    def superiority(self, first: int, second: int) -> float:
        """Return the probability that `first` is stronger than `second` (CFS, LOS)."""
        difference = float(self.elo[first] - self.elo[second])
        return NormalDist().cdf(difference / max(self.difference_error(first, second), TINY))

    def widened(self, spread: float) -> "Ratings":
        """Return the ratings with larger errors, for scores that vary `spread` times as much as usual."""
        return replace(self, covariance=spread * self.covariance)

    def difference_error(self, first: int, second: int) -> float:
        c = self.covariance
        return math.sqrt(max(float(c[first, first] + c[second, second] - 2 * c[first, second]), 0.0))


def expected_score(difference: float) -> float:
    return 1.0 / (1.0 + math.exp(-BETA * difference))


def outcome_probabilities(x: Floats, nu: float) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of Black's win, a draw and White's win, by the module's formulas.

    `x` is Black's advantage in natural logits, of any shape; `nu` >= 0 is Davidson's parameter.
    """
    score = 1.0 / (1.0 + np.exp(-x))
    n = nu * nu
    # a draw's probability d solves (1 - n/4) d^2 + (n/2) d - n E (1 - E) = 0: d^2 = n (E - d/2) (1 - E - d/2)
    a, b, c = 1.0 - n / 4.0, n / 2.0, n * score * (1.0 - score)
    draw = np.zeros_like(score) if n == 0.0 else 2.0 * c / (b + np.sqrt(b * b + 4.0 * a * c))
    return np.maximum(score - draw / 2.0, TINY), draw, np.maximum(1.0 - score - draw / 2.0, TINY)


def fit(
    players: Sequence[str], counts: npt.ArrayLike, *, advantage: bool = True, prior_sd: float = PRIOR_SD
) -> Ratings:
    """Fit ratings to the results of all pairs.

    Args:
        players: names.
        counts: [players, players, 3]: wins, draws and losses of Black (first index) against White (second index).
        advantage: fit the first player's advantage, otherwise 0.
        prior_sd: standard deviation of the prior, in Elo.
    """
    table = np.asarray(counts, np.float64)
    black, white = np.nonzero(table.sum(axis=2))
    games = table[black, white]
    has_draws = bool(games[:, 1].any())
    size = len(players)
    theta = np.zeros(size + 2)  # ratings and advantage in logits, log nu
    free = np.ones(size + 2, bool)
    free[size] = advantage
    free[size + 1] = has_draws
    prior = np.full(size + 2, (BETA * prior_sd) ** -2)  # precision of each parameter
    prior[size:] = (BETA * PRIOR_SD_ADVANTAGE) ** -2, PRIOR_SD_DRAWS**-2
    posterior = partial(_posterior, prior=prior, black=black, white=white, games=games, has_draws=has_draws)
    current, gradient, information = posterior(theta)
    for _ in range(MAX_STEPS):
        step = np.zeros_like(theta)
        step[free] = np.linalg.solve(information[np.ix_(free, free)], gradient[free])
        scale = min(1.0, 2.0 / float(np.abs(step).max() + TINY))
        while not (found := posterior(theta + scale * step))[0] >= current - 1e-9:
            scale /= 2.0
        theta += scale * step
        current, gradient, information = found
        if float(np.abs(scale * step).max()) < 1e-9:
            break
    covariance = np.zeros_like(information)
    covariance[np.ix_(free, free)] = np.linalg.inv(information[np.ix_(free, free)])
    return _ratings(tuple(players), theta, covariance, has_draws, float(games.sum()))


def _ratings(players: tuple[str, ...], theta: Floats, covariance: Floats, has_draws: bool, games: float) -> Ratings:
    size = len(players)
    centre = np.eye(size) - 1.0 / max(size, 1)
    nu = math.exp(theta[size + 1]) if has_draws else 0.0
    rate = nu / (2.0 + nu)
    slope = 2.0 * nu / (2.0 + nu) ** 2  # of the rate by log nu
    draw_error = slope * math.sqrt(covariance[size + 1, size + 1])
    if not has_draws:  # that of a rate of which nothing is known but that no game was drawn
        draw_error = math.sqrt((games + 1.0) / (games + 3.0)) / (games + 2.0)
    return Ratings(
        players,
        (centre @ theta[:size]) / BETA,
        centre @ covariance[:size, :size] @ centre / BETA**2,
        float(theta[size]) / BETA,
        math.sqrt(covariance[size, size]) / BETA,
        rate,
        draw_error,
    )


def _posterior(
    theta: Floats,
    prior: Floats,
    black: npt.NDArray[np.intp],
    white: npt.NDArray[np.intp],
    games: Floats,
    has_draws: bool,
) -> tuple[float, Floats, Floats]:
    """Return the log posterior, its gradient [n], and the expected information [n, n]."""
    size = len(theta) - 2
    x = theta[black] - theta[white] + theta[size]
    nu = math.exp(theta[size + 1]) if has_draws else 0.0
    n = nu * nu
    win, draw, loss = outcome_probabilities(x, nu)
    score = win + draw / 2.0
    spread = score * (1.0 - score)
    slope = 2.0 * (1.0 - n / 4.0) * draw + n / 2.0  # of the draws' equation by d
    if has_draws:
        draw_by_x = n * (1.0 - 2.0 * score) / slope * spread
        draw_by_nu = 2.0 * n * (draw * draw / 4.0 - draw / 2.0 + spread) / slope
    else:
        draw_by_x = draw_by_nu = np.zeros_like(x)
    by_x = np.stack([spread - draw_by_x / 2.0, draw_by_x, -spread - draw_by_x / 2.0], axis=1)
    by_nu = np.stack([-draw_by_nu / 2.0, draw_by_nu, -draw_by_nu / 2.0], axis=1)
    p = np.stack([win, np.maximum(draw, TINY), loss], axis=1)
    value = float((games * np.log(p)).sum() - 0.5 * (prior * theta**2).sum())
    total = games.sum(axis=1)
    g_x, g_nu = (games * by_x / p).sum(axis=1), float((games * by_nu / p).sum())
    i_xx, i_xn = total * (by_x**2 / p).sum(axis=1), total * (by_x * by_nu / p).sum(axis=1)
    gradient = -prior * theta
    np.add.at(gradient, black, g_x)
    np.add.at(gradient, white, -g_x)
    gradient[size] += g_x.sum()
    gradient[size + 1] += g_nu
    information = np.diag(prior)
    ends = ((black, 1.0), (white, -1.0), (np.full_like(black, size), 1.0))
    for first, sign in ends:
        for second, other in ends:
            np.add.at(information, (first, second), sign * other * i_xx)
        np.add.at(information, (first, np.full_like(first, size + 1)), sign * i_xn)
        np.add.at(information, (np.full_like(first, size + 1), first), sign * i_xn)
    information[size + 1, size + 1] += float((total * (by_nu**2 / p).sum(axis=1)).sum())
    return value, gradient, information


def count(results: Iterable[GameResult], players: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the argument `counts` of `fit`. Games with players outside `players` are omitted."""
    index = {name: number for number, name in enumerate(players)}
    counts = np.zeros((len(players), len(players), 3), np.int64)
    column = {1: 0, 0: 1, 2: 2}
    for result in results:
        if result.black in index and result.white in index:
            counts[index[result.black], index[result.white], column[result.winner]] += 1
    return counts


PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
# The colors decide if one of them wins both games of this share of the pairs. Equal players reach it by chance in 1% of
# the matches with MIN_COLOR_PAIRS.
COLOR_SHARE, MIN_COLOR_PAIRS = 0.8, 6
PRIOR_SPREAD = 3.0  # independent pairs that `spread` adds to those found
PRIOR_PAIRS = (0.5, 0.0, 0.5, 0.0, 0.5)  # added to the counts: a few pairs do not show that a score is impossible


@dataclass(frozen=True, slots=True)
class Sprt:
    elo0: float
    elo1: float  # above elo0
    alpha: float = 0.05  # probability of accepting elo1 although elo0 is true
    beta: float = 0.05  # probability of accepting elo0 although elo1 is true

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ValueError(f"bounds {self.elo0:g} and {self.elo1:g}: expected the first below the second")
        if not (0.0 < self.alpha < 0.5 and 0.0 < self.beta < 0.5):
            raise ValueError(f"error rates {self.alpha:g} and {self.beta:g}: expected numbers from 0 to 0.5")

    @property
    def lower(self) -> float:
        """Log-likelihood ratio at which elo0 is accepted."""
        return math.log(self.beta / (1.0 - self.alpha))

    @property
    def upper(self) -> float:
        """Log-likelihood ratio at which elo1 is accepted."""
        return math.log((1.0 - self.beta) / self.alpha)

    def ratio(self, counts: Sequence[float]) -> float:
        """Return the log-likelihood ratio of elo1 to elo0, given the number of pairs with each of PAIR_SCORES."""
        if not any(counts):
            return 0.0
        weights = [count + prior for count, prior in zip(counts, PRIOR_PAIRS, strict=True)]
        total = sum(weights)
        shares = [weight / total for weight in weights]
        return total * (_log_likelihood(shares, self.elo1) - _log_likelihood(shares, self.elo0))

    def verdict(self, counts: Sequence[float]) -> str:
        """Return "elo1", "elo0", or "" while the test is undecided."""
        ratio = self.ratio(counts)
        return "elo1" if ratio >= self.upper else "elo0" if ratio <= self.lower else ""

    def line(self, counts: Sequence[float]) -> str:
        verdict = {"elo1": f": at least {self.elo1:g} Elo", "elo0": f": at most {self.elo0:g} Elo", "": ""}
        return (
            f"SPRT {self.elo0:g} {self.elo1:g}: LLR {self.ratio(counts):.2f} [{self.lower:.2f}, {self.upper:.2f}]"
            f" after {sum(counts):.0f} pairs {verdict[self.verdict(counts)]}".rstrip()
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """Elo difference of two players, with a 95% interval."""

    elo: float
    low: float
    high: float
    superiority: float  # probability of being stronger at all

    def __str__(self) -> str:
        return f"{self.elo:+.0f} Elo (95%: {self.low:+.0f} to {self.high:+.0f}), stronger with {self.superiority:.1%}"


def difference(counts: Sequence[float]) -> Difference:
    """Return the Elo difference of two players. The error comes from the spread of the pairs' scores.

    PRIOR_PAIRS are added to the pairs, but do not make the error smaller. Without them a few equal pairs would have no
    error. `python -m tests.intervals` measures how often the interval contains the true difference.

    Args:
        counts: number of pairs with each of PAIR_SCORES.
    """
    pairs = sum(counts)
    weights = [count + prior for count, prior in zip(counts, PRIOR_PAIRS, strict=True)]
    total = sum(weights)
    mean = sum(weight * score for weight, score in zip(weights, PAIR_SCORES, strict=True)) / total
    variance = sum(weight * (score - mean) ** 2 for weight, score in zip(weights, PAIR_SCORES, strict=True)) / total
    error = math.sqrt(variance / pairs) if pairs else math.inf
    elo, low, high = _elo(mean), _elo(mean - CONFIDENCE * error), _elo(mean + CONFIDENCE * error)
    return Difference(elo, low, high, NormalDist().cdf((mean - 0.5) / error))


def _elo(score: float) -> float:
    # Limited to the difference of a score of 0.9999.
    score = min(max(score, 1e-4), 1.0 - 1e-4)
    return math.log(score / (1.0 - score)) / BETA


def _log_likelihood(shares: Sequence[float], elo: float) -> float:
    """Return the greatest log-likelihood per pair that a distribution with the mean of `elo` has, minus that of
    `shares`.

    The distribution is p_i = shares_i / (1 + t (a_i - mean)), where t gives the mean.
    """
    mean = expected_score(elo)
    offsets = [score - mean for score in PAIR_SCORES]
    low, high = -1.0 / max(offsets), -1.0 / min(offsets)

    def excess(t: float) -> float:
        return sum(share * offset / (1.0 + t * offset) for share, offset in zip(shares, offsets, strict=True))

    for _ in range(100):  # excess falls from +infinity to -infinity
        middle = (low + high) / 2.0
        if excess(middle) > 0.0:
            low = middle
        else:
            high = middle
    t = (low + high) / 2.0
    return -sum(share * math.log1p(t * offset) for share, offset in zip(shares, offsets, strict=True))


def paired(results: Iterable[GameResult]) -> list[tuple[GameResult, GameResult]]:
    """Return the complete pairs: games 2n and 2n+1 of the same two players with colors exchanged."""
    open_pairs: dict[tuple[int, str, str], GameResult] = {}
    pairs = []
    for game in results:
        is_second = game.number % 2
        key = (game.number // 2, *((game.white, game.black) if is_second else (game.black, game.white)))
        other = open_pairs.get(key)
        if other is None or other.number == game.number:
            open_pairs[key] = game
        else:
            del open_pairs[key]
            pairs.append((other, game) if is_second else (game, other))
    return pairs


def pair_counts(results: Iterable[GameResult], player: str) -> list[int]:
    """Return the number of pairs with each of PAIR_SCORES for a player in a match of two."""
    counts = [0] * len(PAIR_SCORES)
    for pair in paired(results):
        score = sum(game.score if game.black == player else 1.0 - game.score for game in pair)
        counts[PAIR_SCORES.index(score / 2.0)] += 1
    return counts


def color_note(pairs: int, colors: Sequence[int]) -> str:
    """Return a line if the colors decide nearly all pairs, so that the score does not compare the players; otherwise
    "".

    Args:
        pairs: number of pairs.
        colors: number of pairs in which Black, and White, won both games.
    """
    if pairs < MIN_COLOR_PAIRS or max(colors) < COLOR_SHARE * pairs:
        return ""
    name = "Black" if colors[0] > colors[1] else "White"
    return (
        f"no verdict: {name} won both games in {max(colors)} of {pairs} pairs, so the colors decide, not the players; "
        "use a fair --komi (Go) or other --openings"
    )


def pair_colors(results: Iterable[GameResult]) -> tuple[int, int]:
    """Return the number of pairs in which Black won both games, and in which White did."""
    winners = [{game.winner for game in pair} for pair in paired(results)]
    return winners.count({BLACK}), winners.count({WHITE})


def spread(results: Sequence[GameResult], ratings: Ratings) -> float:
    """Return the variance of the scores, divided by that of independent games with these ratings.

    It is computed from the scores of pairs, and is 1 without pairs. It is below 1 if most pairs split.
    """
    pairs = paired(results)
    if not pairs:
        return 1.0
    place = {name: number for number, name in enumerate(ratings.players)}
    games = [game for pair in pairs for game in pair]
    elo = np.array([ratings.elo[place[game.black]] - ratings.elo[place[game.white]] for game in games])
    rate = ratings.draw_rate
    win, draw, _ = outcome_probabilities(BETA * (elo + ratings.advantage), 2.0 * rate / (1.0 - rate))
    expected = win + draw / 2.0
    variance = float((win + draw / 4.0 - expected**2).mean()) * 2.0  # of the points of a pair
    sides = np.tile((1.0, -1.0), len(pairs))  # from the point of view of the first game's Black
    residuals = ((np.array([game.score for game in games]) - expected) * sides).reshape(-1, 2).sum(axis=1)
    freedom = max(0, len(pairs) - len(place) + 1)
    found = (float((residuals**2).sum()) + PRIOR_SPREAD * variance) / ((freedom + PRIOR_SPREAD) * variance)
    share = len(games) / len(results)
    return share * found + 1.0 - share
