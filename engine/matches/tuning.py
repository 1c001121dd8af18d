"""`yomi tune`: tuning of search parameters by matches, with simultaneous perturbation stochastic approximation (SPSA).

Two players with different values play each pair of games. Each value of the first player is moved up or down at random.
The second player's values are moved the opposite way. Then all values move towards the winner's, in proportion to the
difference between the first player's score and one half.

The method is Spall's ("Implementation of the simultaneous perturbation algorithm", 1998). The gain and the perturbation
fall during the tuning. They are set by their values at the end, as in the testing frameworks of Stockfish and Leela.

One pair measures all parameters at once, so the number of games hardly grows with the number of parameters. That suits
matches, whose single results are almost only noise. A Bayesian optimizer would need hundreds of games per point, and a
library larger than yomi's own dependencies.

All values are in [0, 1]: fractions of the parameter's range.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.clusters.actors import ClusterOptions
from yomi.engine.clusters.jobs import Run
from yomi.engine.game import Game, Say
from yomi.engine.matches.compare import describe, duel_config, duel_run, named, open_player
from yomi.engine.matches.duel import DuelTask
from yomi.engine.matches.parts import check_journal
from yomi.engine.matches.results import JOURNAL_NAME, MatchError, MatchJournal, points_of, read_journal
from yomi.engine.matches.schedule import INTERVAL
from yomi.engine.matches.score import MatchState
from yomi.engine.matches.series import Series, SeriesPlayer
from yomi.engine.matches.settings import TuneSettings, tunable
from yomi.engine.options import TABLE, Options
from yomi.errors import reraised
from yomi.settings import OptionError, did_you_mean

ALPHA, GAMMA = 0.602, 0.101  # exponents with which gain and perturbation fall (Spall)
STABILITY = 0.1  # delay of the gain's fall, as a fraction of all pairs
# Perturbation at the end, as a fraction of the range. The information of a pair grows with its square, and a large
# one does no harm if strength falls off alike on both sides. In simulated matches of 4000 games for two parameters,
# whose strength fell by 25, 50 and 150 Elo from the middle to the ends of the ranges, the result lacked 1.1, 0.7 and
# 0.2 Elo with 0.15, and 5.7, 6.6 and 2.7 Elo with the usual 0.05.
C_END = 0.15
R_END_PAIRS = 40.0  # default gain at the end, times the number of pairs; 0.002 for 20,000 pairs, as in Stockfish
# The result is the mean over this last fraction of the iterations, which fluctuates less than single ones
AVERAGED = 0.5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that is tuned, with its range."""

    name: str
    low: float
    high: float
    start: float
    is_whole: bool = False  # rounded to an integer

    def value(self, share: float) -> float:
        value = self.low + (self.high - self.low) * share
        return round(value) if self.is_whole else value

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Spsa:
    """The schedule and the update rule of a tuning."""

    parameters: Sequence[Parameter]
    iterations: int
    batch: int  # pairs per iteration; each has its own perturbation
    seed: int
    c_end: float = C_END
    # Gain at the end: a pair won twice moves a value by twice this times the perturbation. 0 selects R_END_PAIRS /
    # pairs.
    r_end: float = 0.0

    @property
    def start(self) -> Floats:
        """Values before the first iteration, [parameters]."""
        return np.array([parameter.share(parameter.start) for parameter in self.parameters])

    def tasks(self, values: Floats, iteration: int) -> list[DuelTask]:
        """Return the games of an iteration (from 0), whose players have values near `values`."""
        tasks = []
        for pair in range(iteration * self.batch, (iteration + 1) * self.batch):
            moved = self._perturbation(iteration) * self._signs(pair)
            changes = self.settings(values + moved), self.settings(values - moved)
            tasks += [DuelTask(2 * pair + game, changes) for game in range(2)]
        return tasks

    def step(self, values: Floats, iteration: int, points: Mapping[int, int]) -> Floats:
        """Return the values after an iteration. `points` are its games' points by number (see `GameResult.points`)."""
        pairs, total = iteration * self.batch, self.iterations * self.batch
        put_off = STABILITY * total
        r_end = self.r_end or R_END_PAIRS / total
        ratio = r_end * ((put_off + total) / (put_off + pairs + 1.0)) ** ALPHA
        perturbation = self._perturbation(iteration)
        gain = ratio * self.c_end**2 / perturbation  # Spall's a_k / c_k, where a_end is r_end * c_end ** 2
        moved = values.copy()
        for pair in range(pairs, pairs + self.batch):
            moved += gain * (points[2 * pair] + points[2 * pair + 1] - 2) * self._signs(pair)
        return moved.clip(0.0, 1.0)

    def replay(self, points: Mapping[int, int]) -> list[Floats]:
        """Return the values before each iteration, and after the last complete one."""
        found = [self.start]
        while all(number in points for number in self._numbers(len(found) - 1)) and len(found) <= self.iterations:
            found.append(self.step(found[-1], len(found) - 1, points))
        return found

    def result(self, history: Sequence[Floats]) -> Floats:
        """Return the tuned values: the mean of the last values in the history."""
        count = max(1, round(AVERAGED * (len(history) - 1)))
        mean: Floats = np.mean(history[-count:], axis=0)
        return mean

    def settings(self, values: Floats) -> dict[str, float]:
        """Convert values to search settings within the parameters' ranges."""
        pairs = zip(self.parameters, values.clip(0.0, 1.0).tolist(), strict=True)
        return {parameter.name: parameter.value(share) for parameter, share in pairs}

    def _numbers(self, iteration: int) -> range:
        return range(2 * iteration * self.batch, 2 * (iteration + 1) * self.batch)

    def _perturbation(self, iteration: int) -> float:
        pairs, total = iteration * self.batch, self.iterations * self.batch
        return float(self.c_end * (total / (pairs + 1.0)) ** GAMMA)

    def _signs(self, pair: int) -> Floats:
        rng = np.random.default_rng([self.seed, pair])
        return np.where(rng.integers(0, 2, len(self.parameters)) > 0, 1.0, -1.0)


# -- yomi tune ---------------------------------------------------------------------------------------------------------

UNIT = "iterations"
NAMES, CONFIRM_NAMES = ("up", "down"), ("tuned", "start")
CONFIRMATION = "confirmation"
QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class TuneReport:
    """The result of a tuning that has ended."""

    values: Mapping[str, float]  # of the parameters
    text: str  # the values over time, and the last match

    def __str__(self) -> str:
        return self.text


def read_range(game: Game[Any, Any], name: str, text: str) -> tuple[str, list[float]]:
    """Return the name of a parameter, and the numbers of `LOW:HIGH[:START]`. Raises OptionError."""
    known = tunable(game.name)
    key = name.replace("-", "_")
    if key not in known:
        raise OptionError(f"--parameter {name}: expected one of {', '.join(known)}{did_you_mean(key, known)}")
    where = f"--parameter {name} {text}"
    with reraised(OptionError, OptionError, f"{where}: "):
        values = [float(TABLE[key].parse(value) or 0.0) for value in text.split(":")]
    if len(values) not in (2, 3) or not values[0] < values[1] or not values[0] <= values[-1] <= values[1]:
        raise OptionError(f"{where}: expected LOW:HIGH or LOW:HIGH:START, in this order")
    return key, values


def tune(
    game: Game[Any, Any],
    players: tuple[Options, Options],
    ranges: Mapping[str, list[float]],
    settings: TuneSettings,
    say: Say,
    *,
    cluster: ClusterOptions | None = None,
    words: Sequence[str] = (),
) -> TuneReport:
    """Play the missing games of a tuning and of its last match.

    Args:
        game: game of the tuning.
        players: result of `duel_players`, both equal.
        ranges: LOW, HIGH, and maybe START by name of the parameter; see `read_range`.
        settings: settings of the tuning.
        say: receives lines of progress.
        cluster: plays the games; None: this machine.
        words: the command line, for the description of the run.

    Raises:
        MatchError, OptionError, ClusterError: a setting is wrong, or the games cannot be played.
    """
    config = duel_config(game, players, settings, say)
    batch = min(settings.pairs, -(-settings.games // 2))
    iterations = -(-settings.games // (2 * batch))
    own = {"iterations": iterations, "batch": batch, "c_end": settings.c_end, "r_end": settings.r_end}
    tuned = {"ranges": ranges, "seed": settings.seed, **{name: value for name, value in own.items() if value}}
    described = {**describe(game, players, config), "tuning": tuned}
    run = Run("tune", words, None, iterations, UNIT, {"games": settings.games}, {})

    def count_done(journal: MatchJournal) -> int:
        return len(make_spsa(tuned, journal.kept["start"]).replay(points_of(journal.results))) - 1

    with Series(
        duel_run(game, players, described, run),
        settings.out,
        game,
        described,
        make_kept=lambda: {"start": _start(game, players[0], ranges)},
        count_done=count_done,
    ) as series:
        made = make_spsa(tuned, series.journal.kept["start"])
        with closing(open_player(game, players, config, settings, 2 * batch, say, cluster)) as player:
            values = _play_iterations(series, made, player, say)
            if settings.confirm:
                first = 2 * made.iterations * made.batch  # the tuning has used the openings before
                changes = values, made.settings(made.start)
                tasks = [DuelTask(first + n, changes) for n in range(settings.confirm + settings.confirm % 2)]
                with MatchJournal(series.folder / CONFIRMATION, {**described, "tuned": values}) as last:
                    known = points_of(last.results)
                    tasks = [task for task in tasks if task.number not in known]
                    say(f"{_format_values(values)} against the start: {len(tasks)} games")
                    for played in player.play(tasks):
                        last.add(named(played, CONFIRM_NAMES))
    return TuneReport(values, status(Path(settings.out)))


def _start(game: Game[Any, Any], options: Options, ranges: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the start of each parameter: START in its range, otherwise the value in the options."""
    found = {name: values[2] for name, values in ranges.items() if len(values) == 3}
    if len(found) < len(ranges):
        with game.benchmark_setup(options) as (_, _, settings):
            for name, (low, high, *_) in ranges.items():
                value = found.setdefault(name, getattr(settings, name))
                if value is None or not low <= value <= high:
                    text = "none" if value is None else f"{value:g}"
                    raise OptionError(f"--parameter {name} {low:g}:{high:g}: starts at {text}, expected LOW:HIGH:START")
    return found


def make_spsa(tuned: Mapping[str, Any], start: Mapping[str, float]) -> Spsa:
    ranges = tuned["ranges"].items()
    parameters = [
        Parameter(name, low, high, start[name], TABLE[name].kind == "int") for name, (low, high, *_) in ranges
    ]
    return Spsa(parameters, **{name: value for name, value in tuned.items() if name != "ranges"})


def _play_iterations(series: Series, spsa: Spsa, player: SeriesPlayer[DuelTask], say: Say) -> dict[str, float]:
    points = series.state.points
    history = spsa.replay(points)
    if points:
        say(f"{len(points)} games are in {series.journal.path}; the tuning continues with iteration {len(history)}")
    say(f"{spsa.iterations - len(history) + 1} iterations of {2 * spsa.batch} games begin")
    while (iteration := len(history) - 1) < spsa.iterations:
        begin = time.perf_counter()
        tasks = [task for task in spsa.tasks(history[-1], iteration) if task.number not in points]
        reported = 0.0  # the first game is reported: the first iteration may take minutes
        for count, _ in enumerate(series.store(named(played, NAMES) for played in player.play(tasks)), 1):
            if count < len(tasks) and time.monotonic() - reported >= INTERVAL:
                reported = time.monotonic()
                say(f"iteration {iteration + 1}/{spsa.iterations}: {count}/{len(tasks)} games")
        history.append(spsa.step(history[-1], iteration, points))
        values = spsa.settings(history[-1])
        series.journal.keep({**series.journal.kept, "iteration": iteration + 1, "values": values})
        speed = len(tasks) / (time.perf_counter() - begin)
        say(f"{iteration + 1}/{spsa.iterations}: {_format_values(values)}; {speed:.2f} games/s")
    return spsa.settings(spsa.result(history))


def _format_values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def done(folder: Path, run: Run, games: Mapping[str, Game[Any, Any]]) -> frozenset[int]:
    """Return the numbers of the finished iterations. Errors: see `check_journal`."""
    results = check_journal(folder, run, games)
    if (folder / CONFIRMATION / JOURNAL_NAME).exists():
        check_journal(folder / CONFIRMATION, run, games)
    found, _ = read_journal(folder / JOURNAL_NAME)
    spsa = make_spsa(run.settings["tuning"], found["kept"]["start"])
    return frozenset(range(len(spsa.replay(points_of(results))) - 1))


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return lines with the values over time and the last match. Raises MatchError if a journal cannot be read."""
    return [line for folder in folders for line in status(folder).splitlines()]


def status(folder: Path) -> str:
    """Return the status of a tuning as text: the values over time, and the last match."""
    path = folder / JOURNAL_NAME
    found, results = read_journal(path)
    if "tuning" not in found:
        raise MatchError(f"{path}: a match found, expected the journal of yomi tune")
    spsa = make_spsa(found["tuning"], found["kept"]["start"])
    history = spsa.replay(points_of(results))
    done = len(history) - 1
    columns = {
        "start": history[0],
        **{f"{share:.0%}": history[round(share * done)] for share in QUARTERS},
        "now": history[-1],
        "tuned": spsa.result(history),
    }
    lines = [f"{done} of {spsa.iterations} iterations, {len(results)} games; tuned: mean of the last half"]
    rows = [["parameter", "range", *columns]]
    for number, parameter in enumerate(spsa.parameters):
        values = [f"{parameter.value(float(shares[number])):.4g}" for shares in columns.values()]
        rows.append([parameter.name, f"{parameter.low:g} to {parameter.high:g}", *values])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines += ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if (folder / CONFIRMATION / JOURNAL_NAME).exists():
        _, last = read_journal(folder / CONFIRMATION / JOURNAL_NAME)
        score = MatchState()
        for game, points in points_of(last).items():
            score.note(game, points)
        lines.append(f"tuned against start: {score.line()}")
    return "\n".join(lines)
