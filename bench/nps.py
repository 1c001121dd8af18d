"""`bench nps`: nodes per second of the search, of its evaluator alone, and of other engines by their own counts.

GTP engines report visits by `kata-analyze` or `lz-analyze` (one per descent of the tree). USI engines report nodes by
`go infinite`; each engine defines its own. All get the same positions and the same time.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from yomi.bench.measure import best_batch, evaluator_rate
from yomi.engine.calibration import search_counts
from yomi.engine.cli.output import say
from yomi.engine.cli.parser import CliError
from yomi.engine.clients.client import EngineError
from yomi.engine.clients.gtp import ANALYSES, GtpClient
from yomi.engine.clients.spec import YOMI, EngineSpec, SpecError, parse_spec, with_unique_names
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK
from yomi.engine.default_network import alpha_beta_file
from yomi.engine.go.points import format_color
from yomi.engine.registry import GAMES
from yomi.engine.search.search import Search
from yomi.engine.shogi.notation import format_usi
from yomi.errors import reraised
from yomi.nets.files import write_atomically
from yomi.nets.text import csv_lines

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.go.game import GoGame
    from yomi.engine.options import Options
    from yomi.engine.shogi.game import ShogiGame

# Seconds to wait for an engine's start.
START_TIMEOUT = 300.0

EVALUATED, DESCENDED, MOVED, OWN = "evaluated", "descended", "moved", "own count"
# yomi's rates: positions evaluated, descents of the tree, moves made on a board.
COUNTS = {
    EVALUATED: "evaluations_per_second",
    DESCENDED: "playouts_per_second",
    MOVED: "moves_per_second",
}
# Kind of count that USI engines report as nodes, by engine name.
KNOWN_COUNTS = ((r"dlshogi|gct", EVALUATED), (r"yaneura|suisho|stockfish|apery|gikou|gpsshogi", MOVED))
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.mean,
    "median": statistics.median,
    "min": min,
    "max": max,
}

Measured = tuple[Any, dict[str, float]]  # a position and its rates


def run(
    options: Options, seconds: float, game: Game[Any, Any], against: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], list[Rival]]:
    """Search each position of a game for `seconds`. Before and after, measure a tree's evaluator alone for half that
    time.

    Other engines then search the same position for the same time, one after another.

    Args:
        options: options of yomi.
        seconds: time for each position and engine.
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
    """Yield the positions with the rates of a tree search, and of its evaluator alone."""
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
    """Yield the positions with their nodes per second, which stand for evaluations, playouts and moves."""
    with contextlib.closing(game.make_player(options)) as player:
        search = player.search
        games = game.benchmark_positions(options).games
        search_counts(search, games[0], 0.5)
        for position in games:
            yield position, search_counts(search, position, seconds)


def rates_by_engine(rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> dict[str, list[float | None]]:
    """Return the rates in all positions by column, such as `yomi (evaluated)`. An unreported rate is None."""
    columns = {f"yomi ({kind})": key for kind, key in COUNTS.items()} | {
        column(rival): column(rival) for rival in rivals
    }
    positions = [row for row in rows if row["position"] not in SUMMARIES]
    return {name: [row[key] for row in positions] for name, key in columns.items()}


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> None:
    """Write a line for each position and engine: position, engine (kind of count), nodes per second.

    Raises:
        OSError: the file cannot be written.
    """
    lines = [["position", "engine", "per_second"]]
    for name, rates in rates_by_engine(rows, rivals).items():
        texts = ("" if rate is None else f"{rate:.1f}" for rate in rates)
        lines += [[str(number), name, text] for number, text in enumerate(texts, 1)]
    write_atomically(path, csv_lines(lines).encode())


# -- other engines -----------------------------------------------------------------------------------------------------


class GtpRival:
    """A GTP engine with an analysis command."""

    counting = DESCENDED

    def __init__(self, spec: EngineSpec) -> None:
        self.name = spec.name
        self._client = GtpClient(spec, timeout=START_TIMEOUT)
        self.close = self._client.close
        if not self._client.first_known(ANALYSES, format_color(BLACK)):
            self.close()
            raise EngineError(f"has no analysing command: expected {' or '.join(ANALYSES)}")

    def measure(self, game: GoGame, seconds: float) -> float | None:
        client = self._client
        client.new_game(game.board.side, game.komi, str(game.rules), TimeSettings())
        if client.knows("clear_cache"):
            client.ask("clear_cache")
        for color, move in game.moves:
            client.play(format_color(color), game.board.vertex(move))
        command = client.first_known(ANALYSES, format_color(game.side_to_move))
        return _rate(client.analyse(command, seconds), visits_of)


class UsiRival:
    def __init__(self, spec: EngineSpec) -> None:
        self.name = spec.name
        self._client = UsiClient(spec, timeout=START_TIMEOUT)
        self.close = self._client.close
        title = self._client.title.lower()
        self.counting = next((kind for pattern, kind in KNOWN_COUNTS if re.search(pattern, title)), OWN)

    def measure(self, game: ShogiGame, seconds: float) -> float | None:
        self._client.new_game()
        moves = [format_usi(move) for _, move in game.moves]
        return _rate(self._client.analyse(game.initial_sfen, moves, seconds), nodes_of)


def _rate(lines: Iterable[tuple[float, str]], count_of: Callable[[str], int | None]) -> float | None:
    """Return the count per second of the last line that contains a count; None if there is none or it is 0."""
    last = (0.0, 0)
    for seconds, line in lines:
        if (count := count_of(line)) is not None:
            last = (seconds, count)
    return last[1] / last[0] if last[1] else None


def visits_of(line: str) -> int | None:
    """Return the visits of the root in an analysis line, from rootInfo or as the sum over the moves."""
    if not line.startswith("info "):
        return None
    root = re.search(r"rootInfo .*?\bvisits ([0-9]+)", line)
    if root:
        return int(root[1])
    return sum(int(number) for number in re.findall(r"\binfo move \S+ visits ([0-9]+)", line))


def nodes_of(line: str) -> int | None:
    """Return the node count of a USI engine's report."""
    found = re.search(r"\bnodes ([0-9]+)", line)
    return int(found[1]) if found else None


KINDS: dict[str, type[GtpRival] | type[UsiRival]] = {"gtp": GtpRival, "usi": UsiRival}
# Another engine to measure. `counting` is EVALUATED, DESCENDED, MOVED or OWN.
Rival: TypeAlias = GtpRival | UsiRival


# None is called yomi, the measured engine's name.
def open_rivals(commands: Sequence[str], game: str) -> list[Rival]:
    """Start other engines.

    Args:
        commands: players as in `yomi match`.
        game: go or shogi.

    Raises:
        CliError: a player is not described well, does not start, or cannot be measured.
    """
    with reraised(SpecError, CliError, "--against: "):
        others = [parse_spec(text, game, GAMES[game].protocol) for text in commands]
        _, *specs = with_unique_names([EngineSpec(YOMI, ()), *others])
    rivals: list[Rival] = []
    for spec in specs:
        try:
            rivals.append(KINDS[GAMES[game].protocol](spec))
        except EngineError as error:
            close_rivals(rivals)
            raise CliError(f"--against {spec.name}: {error}") from None
    return rivals


def close_rivals(rivals: Sequence[Rival]) -> None:
    for rival in rivals:
        rival.close()


def column(rival: Rival) -> str:
    return f"{rival.name} ({rival.counting})"


def measure(rival: Rival, game: Any, seconds: float) -> float | None:
    """Return nodes per second of a search from scratch; None if the engine reports none.

    Raises:
        EngineError: the engine fails.
    """
    time.sleep(0.05)  # the previous search has stopped by now
    with reraised(EngineError, CliError, f"--against {rival.name}: "):
        return rival.measure(game, seconds)


def ratio_rows(rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> list[dict[str, Any]]:
    """Return rows with the ratio of yomi's nodes per second to each rival's: of mean, median, minimum and maximum.

    If the rival's kind of count is known, only that kind is compared, otherwise all three. Positions without a report
    from the rival do not count.

    Args:
        rows: one for each position; rows named mean and so on are skipped.
        rivals: the other engines.
    """
    positions = [row for row in rows if row["position"] not in SUMMARIES]
    made: list[dict[str, Any]] = [{"ratio": name} for name in SUMMARIES]
    for rival in rivals:
        known = [row for row in positions if row[column(rival)] is not None]
        for kind in [rival.counting] if rival.counting in COUNTS else COUNTS:
            for cells, function in zip(made, SUMMARIES.values(), strict=True):
                own, other = ([row[key] for row in known] for key in (COUNTS[kind], column(rival)))
                cells[f"yomi {kind}/{rival.name}"] = percent(function(own) / function(other)) if known else None
    return made


def percent(ratio: float) -> str:
    """Return a ratio as percentage and factor, such as 23.94% (1/4.2) or 310.00% (3.1)."""
    if ratio <= 0.0:
        return "0%"
    inverse = 1.0 / ratio
    other = f"1/{inverse:.1f}" if 1.0 < inverse < 10 else f"1/{inverse:.0f}" if inverse >= 10 else f"{ratio:.1f}"
    return f"{100.0 * ratio:.2f}% ({other})"
