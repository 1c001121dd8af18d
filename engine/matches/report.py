"""What is told of a match: ratings, results by color, endings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.color import BLACK, DRAW, WHITE, opponent
from engine.matches.rating import Ratings, count, fit
from engine.matches.results import FAULTS, GameResult


@dataclass(frozen=True, slots=True)
class Score:
    """Wins, draws and losses."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def played(self) -> int:
        """Games."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """A draw is half a point."""
        return self.wins + self.draws / 2

    @property
    def percent(self) -> float:
        """Points in percent of the games; 0 without games."""
        return 100.0 * self.points / self.played if self.played else 0.0

    @property
    def turned(self) -> Score:
        """The other side's."""
        return Score(self.losses, self.draws, self.wins)

    def __add__(self, other: Score) -> Score:
        """Return the score of all games of two."""
        return Score(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)

    def __str__(self) -> str:
        """Return it as in the field's tables: wins-losses-draws."""
        return f"{self.wins}-{self.losses}-{self.draws} ({self.percent:.1f}%)"


@dataclass(frozen=True, slots=True)
class Row:
    """One player."""

    rank: int
    player: str
    rating: float
    """Elo; the mean of all is 0."""
    error: float
    """Half the 95% interval."""
    score: Score
    cfs: float | None
    """Likelihood of being stronger than the next player, in percent; None for the last one."""
    seconds: float | None
    """Mean time that it used in a game; None where the records do not say."""
    seconds_per_move: float | None
    faults: int
    """Games that it lost by a crash, silence, an illegal move or on time."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The games of two players by color; all scores are the first one's."""

    first: str
    second: str
    black: Score
    """Of the first, playing Black."""
    white: Score
    """Of the first, playing White."""

    def by_color(self) -> list[tuple[str, Score]]:
        """Return what each score counts, in words, and the score: of both colors, of Black, then of each player."""
        black, white = self.black, self.white
        return [
            (f"{self.first} vs {self.second}", black + white),
            ("Black vs White", black + white.turned),
            (f"{self.first} playing Black", black),
            (f"{self.first} playing White", white),
            (f"{self.second} playing Black", white.turned),
            (f"{self.second} playing White", black.turned),
        ]


@dataclass(frozen=True, slots=True)
class Report:
    """All that is told of a match."""

    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    advantage: float
    """Elo of playing Black."""
    advantage_error: float
    """One standard error, as is that of the draw rate."""
    draw_rate: float
    """Percent, of equal players."""
    draw_error: float
    games: int
    duplicates: int
    """Games that were left out because another one has the same moves."""
    endings: tuple[tuple[str, int], ...]


def without_duplicates(results: Iterable[GameResult]) -> list[GameResult]:
    """Return the games, of those with the same players, colors and moves only the first; games without moves stay."""
    seen: set[tuple[str, str, str]] = set()
    kept = []
    for result in results:
        identity = (result.black, result.white, result.key)
        if not result.key or not result.plies or identity not in seen:
            kept.append(result)
        seen.add(identity)
    return kept


def players_of(results: Iterable[GameResult]) -> list[str]:
    """Return the names of the players in order of appearance."""
    return list(dict.fromkeys(name for result in results for name in (result.black, result.white)))


def report(results: Sequence[GameResult], *, advantage: bool = True, unique: bool = False) -> Report:
    """Rate the players of some games.

    Args:
        results: the games.
        advantage: fit the first player's advantage.
        unique: leave duplicate games out.
    """
    games = without_duplicates(results) if unique else list(results)
    players = players_of(results)
    counts = count(games, players)
    ratings = fit(players, counts, advantage=advantage)
    order = sorted(range(len(players)), key=lambda i: -ratings.elo[i])
    rows = tuple(_row(rank, order, ratings, games) for rank in range(len(order)))
    pairs = []
    for i in range(len(players)):
        for j in range(i + 1, len(players)):
            if counts[i, j].any() or counts[j, i].any():
                lost, drawn, won = (int(n) for n in counts[j, i])
                pairs.append(
                    Pair(players[i], players[j], Score(*(int(n) for n in counts[i, j])), Score(won, drawn, lost))
                )
    return Report(
        rows,
        tuple(pairs),
        ratings.advantage,
        ratings.advantage_error,
        100.0 * ratings.draw_rate,
        100.0 * ratings.draw_error,
        len(games),
        len(results) - len(games),
        tuple(Counter(result.ending for result in games).most_common()),
    )


def _row(rank: int, order: Sequence[int], ratings: Ratings, games: Sequence[GameResult]) -> Row:
    index = order[rank]
    name = ratings.players[index]
    played = [(game, BLACK if game.black == name else WHITE) for game in games if name in (game.black, game.white)]
    wins = sum(game.winner == color for game, color in played)
    draws = sum(game.winner == DRAW for game, _ in played)
    times = [(game.seconds[color - 1], game.chosen[color - 1]) for game, color in played]
    known = [(seconds, moves) for seconds, moves in times if seconds is not None]
    total, moves = sum(seconds for seconds, _ in known), sum(moves for _, moves in known)
    following = order[rank + 1] if rank + 1 < len(order) else None
    return Row(
        rank + 1,
        name,
        float(ratings.elo[index]),
        float(ratings.errors[index]),
        Score(wins, draws, len(played) - wins - draws),
        None if following is None else 100.0 * ratings.superiority(index, following),
        total / len(known) if known else None,
        total / moves if moves else None,
        sum(game.ending in FAULTS and game.winner == opponent(color) for game, color in played),
    )
