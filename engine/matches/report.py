"""Tables of a match: ratings, results by color, endings. As text, Markdown, JSON and a plot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.matches.rating import (
    CONFIDENCE,
    Difference,
    Ratings,
    color_note,
    count,
    difference,
    fit,
    pair_colors,
    pair_counts,
    spread,
)
from yomi.engine.matches.results import FAULTS, ORDER, GameResult, WinDrawLoss
from yomi.engine.pictures import figure, save

HEADINGS = ("#", "PLAYER", "RATING", "ERROR", "POINTS", "PLAYED", "(%)", "CFS(%)", "W", "D", "L", "D(%)")
MORE_HEADINGS = ("s/game", "s/move", "faults")


@dataclass(frozen=True, slots=True)
class PlayerRow:
    """A player's row of the table."""

    rank: int
    player: str
    rating: float  # Elo; the mean of all players is 0
    error: float  # half the 95% interval
    score: WinDrawLoss
    cfs: float | None  # probability in percent of being stronger than the next player; None for the last one
    seconds: float | None  # mean time per game; None if unknown
    seconds_per_move: float | None
    faults: int  # games lost by a crash, silence, an illegal move or on time


@dataclass(frozen=True, slots=True)
class PairScores:
    """The scores of two players by color, from the point of view of the first player."""

    first: str
    second: str
    black: WinDrawLoss  # playing Black
    white: WinDrawLoss  # playing White
    difference: Difference  # of the first from the second
    note: str = ""  # why the games do not show the difference, or ""

    @property
    def verdict(self) -> str:
        return self.note or str(self.difference)

    def by_color(self) -> list[tuple[str, WinDrawLoss]]:
        """Return labels and scores: all games, Black against White, then each player with each color."""
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
class MatchReport:
    rows: tuple[PlayerRow, ...]
    pairs: tuple[PairScores, ...]
    advantage: float  # Elo of playing Black
    advantage_error: float  # one standard error, like draw_error
    draw_rate: float  # percent, of equal players
    draw_error: float
    games: int
    duplicates: int  # games left out because another one has the same moves
    endings: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return to_text(self).rstrip()


def without_duplicates(results: Iterable[GameResult]) -> list[GameResult]:
    """Omit games with the same players, colors and moves as an earlier game. Games without moves stay."""
    seen: set[tuple[str, str, str]] = set()
    kept = []
    for result in results:
        identity = (result.black, result.white, result.key)
        if not result.key or not result.plies or identity not in seen:
            kept.append(result)
        seen.add(identity)
    return kept


def report(results: Sequence[GameResult], *, advantage: bool = True, unique: bool = False) -> MatchReport:
    """Rate the players of some games.

    Args:
        results: the games.
        advantage: fit the first player's advantage.
        unique: leave out duplicate games.
    """
    games = without_duplicates(results) if unique else list(results)
    players = list(dict.fromkeys(name for result in results for name in (result.black, result.white)))
    counts = count(games, players)
    ratings = fit(players, counts, advantage=advantage)
    ratings = ratings.widened(spread(games, ratings))
    order = sorted(range(len(players)), key=lambda i: -ratings.elo[i])
    rows = tuple(_row(rank, order, ratings, games) for rank in range(len(order)))
    scores = {(i, j): WinDrawLoss(*counts[i, j].tolist()) for i in range(len(players)) for j in range(len(players))}
    pairs = [
        PairScores(players[i], players[j], scores[i, j], scores[j, i].turned, *_compare(games, ratings, i, j))
        for i, j in combinations(range(len(players)), 2)
        if scores[i, j].games or scores[j, i].games
    ]
    return MatchReport(
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


def _compare(results: Sequence[GameResult], ratings: Ratings, first: int, second: int) -> tuple[Difference, str]:
    """Return the difference of two players, and the reason why their games do not show it, or ""."""
    names = ratings.players[first], ratings.players[second]
    games = [game for game in results if game.black in names and game.white in names]
    counts = pair_counts(games, names[0])
    if 2 * sum(counts) >= len(games) - 1:  # one pair may be unfinished
        return difference(counts), color_note(sum(counts), pair_colors(games))
    elo = float(ratings.elo[first] - ratings.elo[second])
    error = CONFIDENCE * ratings.difference_error(first, second)
    return Difference(elo, elo - error, elo + error, ratings.superiority(first, second)), ""


def _row(rank: int, order: Sequence[int], ratings: Ratings, games: Sequence[GameResult]) -> PlayerRow:
    index = order[rank]
    name = ratings.players[index]
    played = [(game, BLACK if game.black == name else WHITE) for game in games if name in (game.black, game.white)]
    wins = sum(game.winner == color for game, color in played)
    draws = sum(game.winner == DRAW for game, _ in played)
    times = [(game.seconds[color - 1], game.chosen[color - 1]) for game, color in played]
    known = [(seconds, moves) for seconds, moves in times if seconds is not None]
    total, moves = sum(seconds for seconds, _ in known), sum(moves for _, moves in known)
    following = order[rank + 1] if rank + 1 < len(order) else None
    return PlayerRow(
        rank + 1,
        name,
        float(ratings.elo[index]),
        float(ratings.errors[index]),
        WinDrawLoss(wins, draws, len(played) - wins - draws),
        None if following is None else 100.0 * ratings.superiority(index, following),
        total / len(known) if known else None,
        total / moves if moves else None,
        sum(game.ending in FAULTS and game.winner == opponent(color) for game, color in played),
    )


# -- output formats ---------------------------------------------------------------------------------------------------


def _cells(row: PlayerRow) -> list[str]:
    score = row.score
    draws = 100.0 * score.draws / score.games if score.games else 0.0
    return [
        str(row.rank),
        row.player,
        f"{round(row.rating, 1) + 0.0:.1f}",
        f"{row.error:.1f}",
        f"{score.points:.1f}",
        str(score.games),
        f"{score.percent:.0f}",
        "---" if row.cfs is None else f"{row.cfs:.0f}",
        str(score.wins),
        str(score.draws),
        str(score.losses),
        f"{draws:.0f}",
        "-" if row.seconds is None else f"{row.seconds:.2f}",
        "-" if row.seconds_per_move is None else f"{row.seconds_per_move:.3f}",
        str(row.faults),
    ]


def _facts(report: MatchReport) -> list[str]:
    lines = [
        f"First-player advantage = {round(report.advantage, 2) + 0.0:.2f} +/- {report.advantage_error:.2f}",
        f"Draw rate (equal opponents) = {report.draw_rate:.2f} % +/- {report.draw_error:.2f}",
        f"Scores of pairs: {ORDER}",
    ]
    endings = ", ".join(f"{ending} {number}" for ending, number in report.endings if ending)
    games = f"{report.games} games" + (f", {report.duplicates} duplicates left out" if report.duplicates else "")
    return [*lines, f"{games}: {endings}" if endings else games]


def to_text(report: MatchReport) -> str:
    """Return the tables in the form of Ordo and cshogi, with additional columns."""
    lines = [[*HEADINGS, *MORE_HEADINGS], *map(_cells, report.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = []
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        cells[1] = f"{line[1].ljust(widths[1])} :"
        texts.append("  ".join(cells).replace("  ", " ", 1))
    pairs = []
    for pair in report.pairs:
        first, *others = (f"{what}: {score}" for what, score in pair.by_color())
        pairs.append([f"{first}, {pair.verdict}", *others])
    return "\n\n".join("\n".join(part) for part in (texts, _facts(report), *pairs)) + "\n"


def to_markdown(report: MatchReport) -> str:
    headings = [*HEADINGS, *MORE_HEADINGS]
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join('---' if h == 'PLAYER' else '---:' for h in headings)}|"]
    lines += [f"| {' | '.join(map(_escaped, _cells(row)))} |" for row in report.rows]
    lines += ["", *(f"- {fact}" for fact in _facts(report)), ""]
    lines += [
        f"| pair ({ORDER}) | both colors | Black vs White | first as Black | first as White | difference |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for pair in report.pairs:
        scores = pair.by_color()[:4]  # without the second player's
        cells = [scores[0][0], *(str(score) for _, score in scores), pair.verdict]
        lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    return "\n".join(lines) + "\n"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def plot_ratings(report: MatchReport, path: Path) -> None:
    """Draw the ratings with their 95% intervals.

    Raises:
        PlotError: from `figure` and `save`.
    """
    rows = report.rows[::-1]
    drawn = figure(7.0, 1.2 + 0.4 * len(rows))
    axes = drawn.add_subplot()
    axes.errorbar([row.rating for row in rows], range(len(rows)), xerr=[row.error for row in rows], fmt="o", capsize=4)
    axes.set_yticks(range(len(rows)), [row.player for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("Elo (mean 0, 95% intervals)")
    axes.set_title(f"{report.games} games")
    axes.grid(axis="x", alpha=0.3)
    save(drawn, path)


def plot_boxes(values: Mapping[str, Sequence[float]], label: str, path: Path) -> None:
    """Draw a box plot of values by name.

    Raises:
        PlotError: from `figure` and `save`.
    """
    drawn = figure(1.5 + 1.5 * len(values), 4.5)
    axes = drawn.add_subplot()
    axes.boxplot(list(values.values()), showmeans=True)
    axes.set_xticks(range(1, len(values) + 1), list(values), rotation=15)
    axes.set_yscale("log")
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
    save(drawn, path)
