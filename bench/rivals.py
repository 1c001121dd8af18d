"""Nodes per second of other engines, GTP or USI: the same positions for the same time, each engine's own counting.

GTP engines are asked by `kata-analyze` or `lz-analyze`, which show visits (a descent of the tree each); USI engines by
`go infinite`, whose reports show nodes, and what a node is depends on the engine.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from engine.cli.errors import CliError
from engine.color import BLACK
from engine.games.go.vertex import format_color, format_vertex
from engine.games.shogi.notation import format_usi
from engine.matches.gtp_client import GtpClient
from engine.matches.limits import PlayerLimits
from engine.matches.players import YOMI, PlayerError, PlayerSpec, parse_player, with_own_names
from engine.matches.process import EngineFailure
from engine.matches.usi_client import UsiClient

if TYPE_CHECKING:
    from engine.games.go.game import GoGame
    from engine.games.shogi.game import ShogiGame

START_TIMEOUT = 300.0
ANSWER_TIMEOUT = 30.0
"""Seconds that an engine has to end a search."""
REPORT_INTERVAL = 5
"""Centiseconds between reports of GTP engines."""
ANALYSES = {"kata-analyze": f"{REPORT_INTERVAL} rootInfo true", "lz-analyze": f"{REPORT_INTERVAL}"}
"""Commands of GTP engines that show visits; see `GtpClient.analysing_command`."""

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


class Rival(Protocol):
    """Another engine that is measured."""

    name: str
    counting: str
    """What it counts: EVALUATED, DESCENDED, MOVED or OWN."""

    def measure(self, game: Any, seconds: float) -> float | None:
        """Return nodes per second of a search of a position from scratch; None where it reports none (book moves).

        Raises:
            EngineFailure: it fails.
        """

    def close(self) -> None:
        """End it."""


class GtpRival:
    """A GTP engine with an analysing command."""

    def __init__(self, spec: PlayerSpec) -> None:
        """Start it.

        Raises:
            EngineFailure: it does not start, or cannot analyse.
        """
        self.name, self.counting = spec.name, DESCENDED
        self._client = GtpClient(spec, PlayerLimits(), timeout=START_TIMEOUT)
        if not self._client.analysing_command(ANALYSES, format_color(BLACK)):
            self._client.close()
            raise EngineFailure(f"has no analysing command: expected {' or '.join(ANALYSES)}")

    def measure(self, game: GoGame, seconds: float) -> float | None:
        """Return visits per second."""
        client = self._client
        client.new_game(game.size, game.komi, game.rules, PlayerLimits().clock())
        if client.knows("clear_cache"):
            client.ask("clear_cache")
        for color, move in game.moves:
            client.play(format_color(color), format_vertex(move, game.size))
        command = client.analysing_command(ANALYSES, format_color(game.side_to_move))
        begin = time.monotonic()  # the first report may come before `send` is back
        client.process.send(command)
        last = (begin, 0)
        try:
            while True:
                at, line = client.process.line(begin + seconds)
                if (visits := visits_of(line)) is not None:
                    last = (at, visits)
                elif line.startswith("?"):
                    raise EngineFailure(f"refused '{command}': {line[1:].strip()[:200]}")
        except TimeoutError:
            pass
        deadline = client.process.send("name") + ANSWER_TIMEOUT  # any command ends an analysis
        try:
            for marks in range(2):  # the analysis' own empty line, then the answer to `name` with its own
                while (found := client.process.line(deadline))[1].strip():
                    if not marks and (visits := visits_of(found[1])) is not None:
                        last = (found[0], visits)
        except TimeoutError:
            raise EngineFailure(f"does not end its analysis within {ANSWER_TIMEOUT:.0f} s") from None
        return last[1] / (last[0] - begin) if last[1] else None

    def close(self) -> None:
        """End it."""
        self._client.close()


def visits_of(line: str) -> int | None:
    """Return the visits of the root in a line of an analysis: those of rootInfo, or the sum over the moves."""
    if not line.startswith("info "):
        return None
    root = re.search(r"rootInfo .*?\bvisits ([0-9]+)", line)
    if root:
        return int(root[1])
    return sum(int(number) for number in re.findall(r"\binfo move \S+ visits ([0-9]+)", line))


class UsiRival:
    """A USI engine."""

    def __init__(self, spec: PlayerSpec) -> None:
        """Start it.

        Raises:
            EngineFailure: it does not start.
        """
        self.name = spec.name
        self._client = UsiClient(spec, PlayerLimits(), timeout=START_TIMEOUT)
        title = self._client.title.lower()
        self.counting = next((kind for pattern, kind in KNOWN_COUNTS if re.search(pattern, title)), OWN)

    def measure(self, game: ShogiGame, seconds: float) -> float | None:
        """Return nodes per second."""
        client = self._client
        client.new_game()
        moves = " ".join(format_usi(move) for _, move in game.moves)
        position = f"position sfen {game.initial_sfen}"
        begin = time.monotonic()
        client.process.send(f"{position} moves {moves}" if moves else position, "go infinite")
        last, deadline, is_stopped = (begin, 0), begin + seconds, False
        while True:
            try:
                at, line = client.process.line(deadline)
            except TimeoutError:
                if is_stopped:
                    raise EngineFailure(f"no bestmove within {ANSWER_TIMEOUT:.0f} s after stop") from None
                is_stopped, deadline = True, client.process.send("stop") + ANSWER_TIMEOUT
                continue
            if match := re.search(r"^info .*\bnodes ([0-9]+)", line):
                last = (at, int(match[1]))
            elif line.startswith("bestmove"):
                break
        return last[1] / (last[0] - begin) if last[1] else None

    def close(self) -> None:
        """End it."""
        self._client.close()


def open_rivals(commands: Sequence[str], game: str) -> list[Rival]:
    """Start other engines; none is called yomi, as the one that is measured is.

    Args:
        commands: players as for `yomi match`.
        game: go or shogi.

    Raises:
        CliError: one is not well described, does not start, or cannot be measured.
    """
    try:
        _, *specs = with_own_names([PlayerSpec(YOMI, ()), *(parse_player(text, game) for text in commands)])
    except PlayerError as error:
        raise CliError(f"--against: {error}") from None
    rivals: list[Rival] = []
    for spec in specs:
        try:
            rivals.append(GtpRival(spec) if game == "go" else UsiRival(spec))
        except EngineFailure as error:
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
    except EngineFailure as error:
        raise CliError(f"--against {rival.name}: {error}") from None


def ratio_rows(rows: Sequence[Mapping[str, Any]], rivals: Sequence[Rival]) -> list[dict[str, Any]]:
    """Return the ratios of yomi's mean, median, minimum and maximum to each rival's.

    Where the rival's counting is known, only the same is compared, else all three; positions for which it reported
    nothing do not count.

    Args:
        rows: one for each position; those of `bench.nps.run` named mean and so on are passed over.
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
