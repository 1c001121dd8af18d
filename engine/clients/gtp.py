"""The client of a GTP engine: games, moves with the engine's evaluation, and analyses."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from yomi.engine.clients.client import (
    STOP_TIMEOUT,
    TIMEOUT,
    EngineClient,
    EngineError,
    EngineMove,
    Evaluation,
    RefusedError,
    no_answer,
)
from yomi.engine.clients.spec import EngineLimits
from yomi.engine.clock import Clock, Clocks, TimeSettings, TimeSystem
from yomi.engine.color import BLACK
from yomi.nets.text import parse_json

REPORT_INTERVAL = "20"  # centiseconds between reports of engines that report their evaluation only while they search
# Commands that choose a move and report its evaluation, with their arguments; see `GtpClient.first_known`.
GENMOVES = {"cgos-genmove_analyze": "", "kata-genmove_analyze": REPORT_INTERVAL, "lz-genmove_analyze": REPORT_INTERVAL}
# Commands that analyse a position until the next command.
ANALYSES = {"kata-analyze": f"{REPORT_INTERVAL} rootInfo true", "lz-analyze": REPORT_INTERVAL}
KATA_LIMITS = {"visits": "maxVisits", "playouts": "maxPlayouts", "seconds": "maxTime"}


class GtpClient(EngineClient):
    _sent_moves = 0

    def _greet(self) -> None:
        self.title = self.ask("name", self.timeout).strip()
        self.title += f" {self.ask('version').strip()}"
        self.known = frozenset(self.ask("list_commands").split())
        for command in self.spec.commands:
            self.ask(command)
        self._set_limits()

    # -- commands ----------------------------------------------------------------------------------------------------

    def ask(self, command: str, timeout: float = TIMEOUT) -> str:
        """Send a command and return the text of its answer. Raises RefusedError if the answer is an error."""
        return self._answer(command, self.process.send(command), timeout)[0]

    def knows(self, command: str) -> bool:
        return command in self.known

    def first_known(self, commands: Mapping[str, str], color: str) -> str:
        """Return the first of `commands` (name -> arguments after the color) that the engine knows; empty if none."""
        return next((f"{name} {color} {rest}".rstrip() for name, rest in commands.items() if self.knows(name)), "")

    def analyse(
        self, command: str, seconds: float, is_enough: Callable[[str], bool] = lambda line: False
    ) -> Iterator[tuple[float, str]]:
        """Send a command that begins an analysis. Yield its lines with the seconds since then.

        The analysis ends after some seconds, or when `is_enough` returns true for a line.
        """
        begin = self.process.send(command)
        end: float | None = None
        while True:
            try:
                at, line = self.process.line(begin + seconds if end is None else end + STOP_TIMEOUT)
            except TimeoutError:
                if end is not None:
                    raise EngineError(no_answer("name", STOP_TIMEOUT)) from None
                end = self.process.send("name")
                continue
            if line.startswith("?"):
                raise RefusedError(f"refused '{command}': {line[1:].strip()[:200]}")
            if not line.strip():
                break
            if is_enough(line) and end is None:
                end = self.process.send("name")
            yield at - begin, line
        if end is not None:
            self._answer("name", end, STOP_TIMEOUT)

    # -- games -------------------------------------------------------------------------------------------------------

    def new_game(
        self, size: int, komi: float | None, rules: str, clock: TimeSettings, handicap: Sequence[str] = ()
    ) -> None:
        """Set up the board for a game.

        `rules` are in KataGo's form, or empty. `handicap` are the vertices of Black's stones before White's first move.
        """
        self.ask(f"boardsize {size}", self.timeout)
        self.ask("clear_board", self.timeout)
        self._sent_moves = 0
        if rules and self.knows("kata-set-rules"):
            self.ask(f"kata-set-rules {rules}", self.timeout)
        if komi is not None:
            self.ask(f"komi {komi:g}")
        if handicap and self.knows("set_free_handicap"):
            self.ask(f"set_free_handicap {' '.join(handicap)}")
        else:
            for vertex in handicap:
                self.ask(f"play B {vertex}")
        if command := self._time_command(clock):
            self.ask(command)

    def set_limits(self, limits: EngineLimits, clock: TimeSettings) -> None:
        """Change the limits and the clock of the moves to come."""
        self.spec = replace(self.spec, limits=limits)
        self._set_limits()
        if command := self._time_command(clock):
            self.ask(command)

    def play(self, color: str, vertex: str) -> None:
        """Play a move that the engine did not choose."""
        self.ask(f"play {color} {vertex}")
        self._sent_moves += 1

    def choose(self, start: str, moves: Sequence[str], color: int, clocks: Clocks) -> EngineMove:
        return self.genmove(self._play_all(moves, color), clocks[color])

    def search(self, start: str, moves: Sequence[str], color: int, clocks: Clocks) -> None:
        own = self._play_all(moves, color)
        self.ask(f"kata-search {own}", self._allowed(clocks[color]) + self.timeout)

    def game_over(self, result: str) -> None:
        """Do nothing: GTP has no command for results."""

    def genmove(self, color: str, clock: Clock) -> EngineMove:
        """Make the engine choose a move, which it also plays on its own board."""
        if clock.settings.is_limited and self.knows("time_left"):
            self.ask(self._time_left(color, clock))
        command = (self.spec.evaluations and self.first_known(GENMOVES, color)) or f"genmove {color}"
        text, seconds = self._answer(command, self.process.send(command), self._allowed(clock) + self.timeout)
        # The last line is the move; the last report before it is the engine's evaluation.
        *reports, last = [line.strip() for line in text.splitlines() if line.strip()] or [""]
        if not last:
            raise EngineError(f"answered nothing to '{command}'")
        self._sent_moves += 1
        report = next((line for line in reversed(reports) if line.startswith(("{", "info "))), "")
        return EngineMove(last.removeprefix("play ").strip(), seconds, read_evaluation(report, command), report=report)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _play_all(self, moves: Sequence[str], color: int) -> str:
        """Play the moves that the engine does not know yet. Return the letter of `color`, the side to move then."""
        own, other = "BW" if color == BLACK else "WB"
        for number in range(self._sent_moves, len(moves)):
            self.play(own if (len(moves) - number) % 2 == 0 else other, moves[number])
        return own

    def _answer(self, command: str, begin: float, timeout: float) -> tuple[str, float]:
        """Return the answer to a command that was sent at `begin`, and the seconds that it took."""
        lines: list[str] = []
        arrived = begin
        while True:
            at, line = self._line(command, begin, timeout)
            if not line.strip():
                if lines:
                    break
                continue  # empty lines before an answer mean nothing
            if not lines and line[:1] not in ("=", "?"):
                raise EngineError(f"answered '{line[:80]}' to '{command}': expected = or ?")
            lines.append(line)
            arrived = at
        first = re.sub(r"^[=?][0-9]*[ \t]?", "", lines[0])
        text = "\n".join([first, *lines[1:]])
        if lines[0][0] == "?":
            raise RefusedError(f"refused '{command}': {' '.join(text.split())[:200]}")
        return text, arrived - begin

    def _set_limits(self) -> None:
        # `new_game` sends the clock.
        limits = self.spec.limits
        if limits.nodes is not None or limits.depth is not None:
            raise RefusedError("nodes and depth are limits of USI: expected playouts, visits or time")
        for name, parameter in KATA_LIMITS.items():
            value = getattr(limits, name)
            if value is None:
                continue
            if self.knows("kata-set-param"):
                self.ask(f"kata-set-param {parameter} {_number(value)}")
            elif name == "playouts" and self.knows("uct_param_player"):  # Fuego
                self.ask(f"uct_param_player max_games {value}")
            elif name != "seconds":  # seconds are sent by new_game
                raise RefusedError(
                    f"{self.title} knows no command for {name}: expected them in its command line, or as init=COMMAND"
                )

    def _time_command(self, clock: TimeSettings) -> str:
        seconds = self.spec.limits.seconds
        if seconds is not None and not self.knows("kata-set-param"):
            stones = next((n for n in range(1, 101) if (n * seconds) % 1 < 0.01), 100)  # GTP has whole seconds
            return f"time_settings 0 {max(round(stones * seconds), 1)} {stones}"
        match clock.system:
            case TimeSystem.NONE:
                return "time_settings 0 1 0" if self.knows("time_settings") else ""  # GTP's "no limit"
            case TimeSystem.ABSOLUTE:
                return f"time_settings {_number(clock.main)} 0 0"
            case TimeSystem.CANADIAN:
                return f"time_settings {_number(clock.main)} {_number(clock.period)} {clock.count}"
            case TimeSystem.BYOYOMI:
                if command := self._periods_command():
                    return f"{command} byoyomi {_number(clock.main)} {_number(clock.period)} {clock.count}"
                main = clock.main + clock.period * (clock.count - 1)
                return f"time_settings {_number(main)} {_number(clock.period)} 1"
            case _:
                if self.knows("kata-time_settings"):
                    return f"kata-time_settings fischer {_number(clock.main)} {_number(clock.increment)}"
        raise RefusedError(f"{self.title} knows no command for increments (kata-time_settings)")

    def _periods_command(self) -> str:
        return next((name for name in ("kata-time_settings", "kgs-time_settings") if self.knows(name)), "")

    def _time_left(self, color: str, clock: Clock) -> str:
        system, main, count = clock.settings.system, clock.main, clock.count
        if system is TimeSystem.BYOYOMI and not self._periods_command():
            main, count = main + clock.period * (count - 1), 1
        main_text, period_text = map(self._time_text, (main, clock.period))
        # Engines may read zero main time as no time at all, so a period follows instead.
        in_main = float(main_text) > 0 or system in (TimeSystem.ABSOLUTE, TimeSystem.FISCHER)
        return f"time_left {color} {f'{main_text} 0' if in_main else f'{period_text} {count}'}"

    def _time_text(self, seconds: float) -> str:
        # GTP 2 takes whole seconds; engines with kata-time_settings take fractions.
        if self.knows("kata-time_settings"):
            return f"{math.floor(1000.0 * seconds + 1e-6) / 1000.0:.3f}"
        return f"{math.floor(seconds)}"


def _number(seconds: float) -> str:
    # GTP 2 takes whole seconds.
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def read_evaluation(report: str, command: str) -> Evaluation | None:
    """Read CGOS's JSON, or the moves of KataGo or Leela Zero, the best first. Return None for other reports."""
    if report.startswith("{"):
        return _read_json(report)
    moves = read_moves(report, command)
    return replace(moves[0], visits=1 + own_visits(moves)) if moves and moves[0].rank == 1 else None  # 1: the root


def read_moves(line: str, command: str) -> list[Evaluation]:
    """Return the moves of a line `info move ...` of KataGo or Leela Zero, without those that cannot be read."""
    unit = 10000.0 if command.startswith("lz-") else 1.0
    found = (_read_info(part, unit) for part in re.split(r"\b(?=info move )", line))
    return [move for move in found if move is not None]


def own_visits(moves: Iterable[Evaluation]) -> int:
    # KataGo repeats the visits of a searched move at its symmetric moves.
    return sum(move.visits or 0 for move in moves if not move.symmetry_of)


def _read_json(line: str) -> Evaluation | None:
    try:
        data = parse_json(line)
        moves = data.get("moves") or [{}]
        pv = (str(moves[0].get("move", "")), *str(moves[0].get("pv", "")).split())
        visits = data.get("visits")
        return Evaluation(
            _float(data.get("winrate")), _float(data.get("score")), None if visits is None else int(visits), pv
        )
    except (ValueError, TypeError, AttributeError, IndexError, KeyError, OverflowError, RecursionError):
        return None  # the move counts anyway


def _read_info(line: str, unit: float) -> Evaluation | None:
    words = line.partition(" rootInfo ")[0].split()
    pairs = dict(itertools.pairwise(words))
    try:
        pv = tuple(words[words.index("pv") + 1 :]) if "pv" in words else ()
        return Evaluation(
            _finite(pairs["winrate"]) / unit,
            _float(pairs.get("scoreLead")),
            int(pairs.get("edgeVisits", pairs["visits"])),  # a shared node has more visits than the move
            pv,
            prior=_finite(pairs.get("prior", 0.0)) / unit,
            rank=int(pairs.get("order", 0)) + 1,
            symmetry_of=pairs.get("isSymmetryOf", ""),
        )
    except (ValueError, KeyError):
        return None


def _float(value: object) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: object) -> float:
    number = float(str(value))
    if not math.isfinite(number):
        raise ValueError(f"found {number}, expected a finite number")
    return number
