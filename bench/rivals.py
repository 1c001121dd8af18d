"""Nodes per second of other engines, GTP or USI: the same positions for the same time, each engine's own counting.

GTP engines are asked by `kata-analyze` or `lz-analyze`, which show visits (a descent of the tree each); USI engines by
`go infinite`, whose reports show nodes, and what a node is depends on the engine.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from yomi.engine.cli.games import GAMES
from yomi.engine.cli.parser import CliError
from yomi.engine.clients.client import EngineError
from yomi.engine.clients.gtp import GtpClient
from yomi.engine.clients.spec import YOMI, EngineSpec, SpecError, parse_spec, with_unique_names
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clock import TimeSettings
from yomi.engine.color import BLACK
from yomi.engine.go.vertex import format_color, format_vertex
from yomi.engine.shogi.notation import format_usi

if TYPE_CHECKING:
    from yomi.engine.go.game import GoGame
    from yomi.engine.shogi.game import ShogiGame

START_TIMEOUT = 300.0
"""Seconds that an engine has to start."""
REPORT_INTERVAL = 5
"""Centiseconds between reports of GTP engines."""
ANALYSES = {"kata-analyze": f"{REPORT_INTERVAL} rootInfo true", "lz-analyze": f"{REPORT_INTERVAL}"}
"""Commands of GTP engines that show visits; see `GtpClient.first_known`."""

EVALUATED, DESCENDED, MOVED, OWN = "evaluated", "descended", "moved", "own count"
COUNTS = {
    EVALUATED: "evaluations_per_second",
    DESCENDED: "playouts_per_second",
    MOVED: "moves_per_second",
}
"""yomi's rates by what is counted: positions evaluated, descents of the tree, moves made on a board."""
KNOWN_COUNTS = ((r"dlshogi|gct", EVALUATED), (r"yaneura|suisho|stockfish|apery|gikou|gpsshogi", MOVED))
"""What USI engines count as nodes, by their names."""
SUMMARIES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.mean,
    "median": statistics.median,
    "min": min,
    "max": max,
}


class GtpRival:
    """A GTP engine with an analysing command."""

    counting = DESCENDED

    def __init__(self, spec: EngineSpec) -> None:
        """Start it.

        Raises:
            EngineError: it does not start, or cannot analyse.
        """
        self.name = spec.name
        self._client = GtpClient(spec, timeout=START_TIMEOUT)
        self.close = self._client.close
        if not self._client.first_known(ANALYSES, format_color(BLACK)):
            self.close()
            raise EngineError(f"has no analysing command: expected {' or '.join(ANALYSES)}")

    def measure(self, game: GoGame, seconds: float) -> float | None:
        """Return visits per second of a search of a position from scratch; None if it reports none.

        Raises:
            EngineError: it fails.
        """
        client = self._client
        client.new_game(game.size, game.komi, str(game.rules), TimeSettings())
        if client.knows("clear_cache"):
            client.ask("clear_cache")
        for color, move in game.moves:
            client.play(format_color(color), format_vertex(move, game.size))
        command = client.first_known(ANALYSES, format_color(game.side_to_move))
        return _rate(client.analyse(command, seconds), visits_of)


class UsiRival:
    """A USI engine."""

    def __init__(self, spec: EngineSpec) -> None:
        """Start it.

        Raises:
            EngineError: it does not start.
        """
        self.name = spec.name
        self._client = UsiClient(spec, timeout=START_TIMEOUT)
        self.close = self._client.close
        title = self._client.title.lower()
        self.counting = next((kind for pattern, kind in KNOWN_COUNTS if re.search(pattern, title)), OWN)

    def measure(self, game: ShogiGame, seconds: float) -> float | None:
        """Return nodes per second; see `GtpRival.measure`."""
        self._client.new_game()
        moves = [format_usi(move) for _, move in game.moves]
        return _rate(self._client.analyse(game.initial_sfen, moves, seconds), nodes_of)


def _rate(lines: Iterable[tuple[float, str]], count_of: Callable[[str], int | None]) -> float | None:
    """Return the count per second of the last line of an analysis that has one; None if that is 0."""
    last = (0.0, 0)
    for seconds, line in lines:
        if (count := count_of(line)) is not None:
            last = (seconds, count)
    return last[1] / last[0] if last[1] else None


def visits_of(line: str) -> int | None:
    """Return the visits of the root in a line of an analysis: those of rootInfo, or the sum over the moves."""
    if not line.startswith("info "):
        return None
    root = re.search(r"rootInfo .*?\bvisits ([0-9]+)", line)
    if root:
        return int(root[1])
    return sum(int(number) for number in re.findall(r"\binfo move \S+ visits ([0-9]+)", line))


def nodes_of(line: str) -> int | None:
    """Return the nodes in a report of a USI engine."""
    found = re.search(r"\bnodes ([0-9]+)", line)
    return int(found[1]) if found else None


KINDS: dict[str, type[GtpRival] | type[UsiRival]] = {"gtp": GtpRival, "usi": UsiRival}
Rival: TypeAlias = GtpRival | UsiRival
"""Another engine that is measured. `counting` is what it counts: EVALUATED, DESCENDED, MOVED or OWN."""


def open_rivals(commands: Sequence[str], game: str) -> list[Rival]:
    """Start other engines; none is called yomi, as the one that is measured is.

    Args:
        commands: players as for `yomi match`.
        game: go or shogi.

    Raises:
        CliError: one is not well described, does not start, or cannot be measured.
    """
    try:
        others = [parse_spec(text, game, GAMES[game].protocol) for text in commands]
        _, *specs = with_unique_names([EngineSpec(YOMI, ()), *others])
    except SpecError as error:
        raise CliError(f"--against: {error}") from None
    rivals: list[Rival] = []
    for spec in specs:
        try:
            rivals.append(KINDS[GAMES[game].protocol](spec))
        except EngineError as error:
            close_rivals(rivals)
            raise CliError(f"--against {spec.name}: {error}") from None
    return rivals


def close_rivals(rivals: Sequence[Rival]) -> None:
    """End them."""
    for rival in rivals:
        rival.close()


def column(rival: Rival) -> str:
    """Return the heading of a rival's rates."""
    return f"{rival.name} ({rival.counting})"


def measure(rival: Rival, game: Any, seconds: float) -> float | None:
    """Return a rival's nodes per second; None where it reports none.

    Raises:
        CliError: it fails.
    """
    time.sleep(0.05)  # whoever searched before has stopped by now
    try:
        return rival.measure(game, seconds)
    except EngineError as error:
        raise CliError(f"--against {rival.name}: {error}") from None


def ratio_rows(rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> list[dict[str, Any]]:
    """Return the ratios of yomi's mean, median, minimum and maximum to each rival's.

    Where the rival's counting is known, only the same is compared, else all three; positions for which it reported
    nothing do not count.

    Args:
        rows: one for each position; those of `yomi.bench.nps.run` named mean and so on are passed over.
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
    """Return a ratio as the field's tables do: 23.94% (1/4.2), 310.00% (3.1)."""
    if ratio <= 0.0:
        return "0%"
    inverse = 1.0 / ratio
    other = f"1/{inverse:.1f}" if 1.0 < inverse < 10 else f"1/{inverse:.0f}" if inverse >= 10 else f"{ratio:.1f}"
    return f"{100.0 * ratio:.2f}% ({other})"
