"""`bench nps`: nodes per second of the search, of a tree's evaluator alone, and of other engines."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.bench.measure import best_batch, evaluator_rate
from yomi.bench.rivals import COUNTS, SUMMARIES, Rival, close_rivals, column, measure, open_rivals
from yomi.engine.calibration import search_counts
from yomi.engine.cli.output import say
from yomi.engine.default_network import alpha_beta_file
from yomi.engine.search.search import Search
from yomi.nets.files import write_atomically
from yomi.nets.text import csv_lines

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options

Measured = tuple[Any, dict[str, float]]  # a position and its rates


def run(
    options: Options, seconds: float, game: Game[Any, Any], against: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], list[Rival]]:
    """Search each position of a game for `seconds`; measure a tree's evaluator alone before and after for half of that.

    Other engines then search the same position for the same time, one after another.

    Args:
        options: of yomi.
        seconds: for each position and engine.
        game: its descriptor.
        against: other engines, as players of `yomi match`.

    Returns:
        One row for each position, then rows named mean, median, min and max; and the other engines, which have been
            closed.

    Raises:
        CliError: another engine cannot be measured.
    """
    with contextlib.ExitStack() as stack:
        rivals = open_rivals(against, game.name)
        stack.callback(close_rivals, rivals)
        measured = _alpha_beta if alpha_beta_file(options, game.name) is not None else _tree
        positions = stack.enter_context(contextlib.closing(measured(options, seconds, game)))
        rows: list[dict[str, Any]] = []
        for number, (position, counts) in enumerate(positions, 1):
            others = {column(rival): measure(rival, position, seconds) for rival in rivals}
            rows.append({"position": str(number), **counts, **others})
            rates = {"yomi": counts["playouts_per_second"], **others}
            figures = (f"{name} {rate:,.0f}" for name, rate in rates.items() if rate is not None)
            say(f"position {number}: {', '.join(figures)} a second")
    count = len(rows)
    for name, function in SUMMARIES.items():
        known = {
            key: [row[key] for row in rows[:count] if row[key] is not None] for key in rows[0] if key != "position"
        }
        rows.append({"position": name, **{key: function(found) if found else None for key, found in known.items()}})
    return rows, rivals


def _tree(options: Options, seconds: float, game: Game[Any, Any]) -> Generator[Measured, None, None]:
    """Yield the positions and their rates in a tree search, and the rates of the evaluator alone."""
    with game.benchmark_setup(options) as (subject, queue, settings):
        games = subject.games
        search = Search(subject.spec, queue, settings)
        search_counts(search, games[0], 0.5)  # warms caches and clocks up
        by_batch = best_batch(queue, subject, settings, min(1.0, seconds / 2))
        best = max(by_batch, key=lambda rows: by_batch[rows])
        how = best, settings.workers, seconds / 2, settings.batches_in_flight
        for position in games:
            before = evaluator_rate(queue, subject, position, *how)
            counts = search_counts(search, position, seconds)
            after = evaluator_rate(queue, subject, position, *how)
            alone = (before + after) / 2
            share = counts["evaluations_per_second"] / alone
            yield position, {**counts, "evaluator_per_second": alone, "share": share}


def _alpha_beta(options: Options, seconds: float, game: Game[Any, Any]) -> Generator[Measured, None, None]:
    """Yield the positions and the nodes a second, which count as evaluations, playouts and moves alike."""
    with contextlib.closing(game.make_player(options)) as player:
        search = player.search
        games = game.benchmark_positions(options).games
        search_counts(search, games[0], 0.5)
        for position in games:
            yield position, search_counts(search, position, seconds)


def rates_by_engine(rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> dict[str, list[float | None]]:
    """Return the rates of all positions by engine and kind of count; None if a position has none."""
    columns = {f"yomi ({kind})": key for kind, key in COUNTS.items()} | {
        column(rival): column(rival) for rival in rivals
    }
    positions = [row for row in rows if row["position"] not in SUMMARIES]
    return {name: [row[key] for row in positions] for name, key in columns.items()}


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> None:
    """Write a line for each position and engine: position, engine (what it counts), nodes per second.

    Raises:
        OSError: the file cannot be written.
    """
    lines = [["position", "engine", "per_second"]]
    for name, rates in rates_by_engine(rows, rivals).items():
        texts = ("" if rate is None else f"{rate:.1f}" for rate in rates)
        lines += [[str(number), name, text] for number, text in enumerate(texts, 1)]
    write_atomically(path, csv_lines(lines).encode())
