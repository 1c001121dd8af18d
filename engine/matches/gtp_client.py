"""A GTP engine as a player of games of Go."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence

from engine.clock import TimeSettings, TimeSystem
from engine.games.go.rules import Rules
from engine.matches.answers import Answer, Evaluation
from engine.matches.engine_client import EngineClient
from engine.matches.limits import GameClock
from engine.matches.process import EngineFailure, Refusal

BASIC_TIMEOUT = 60.0
"""Seconds for commands that are no search."""
REPORT_INTERVAL = 20
"""Centiseconds between reports of engines that show their evaluation only while they search."""

GENMOVES = {
    "cgos-genmove_analyze": "",
    "kata-genmove_analyze": f"{REPORT_INTERVAL} maxmoves 1",
    "lz-genmove_analyze": f"{REPORT_INTERVAL}",
}
"""Commands that tell what an engine thinks of its move; see `GtpClient.analysing_command`."""
KATA_LIMITS = {"visits": "maxVisits", "playouts": "maxPlayouts", "seconds": "maxTime"}
"""Parameters of kata-set-param."""


class GtpClient(EngineClient):
    """One running GTP engine."""

    def _greet(self) -> None:
        self.title = self.ask("name", self.timeout).strip()
        self.title += f" {self.ask('version').strip()}"
        self.known = frozenset(self.ask("list_commands").split())
        for command in self.spec.commands:
            self.ask(command)
        self._set_limits()

    # -- commands ----------------------------------------------------------------------------------------------------

    def ask(self, command: str, timeout: float = BASIC_TIMEOUT) -> str:
        """Send a command and return what is answered.

        Raises:
            EngineFailure: an error, no answer in time, or something that is no answer.
        """
        text, _ = self._exchange(command, timeout)
        return text

    def _exchange(self, command: str, timeout: float) -> tuple[str, float]:
        """Return the answer without its mark, and the seconds until its last line before the empty one."""
        begin = self.process.send(command)
        lines: list[str] = []
        arrived = begin
        while True:
            try:
                at, line = self.process.line(begin + timeout)
            except TimeoutError:
                raise EngineFailure(f"no answer to '{command}' within {timeout:.0f} s") from None
            if not line.strip():
                if lines:
                    break
                continue  # empty lines before an answer mean nothing
            if not lines and line[:1] not in ("=", "?"):
                raise EngineFailure(f"answered '{line[:80]}' to '{command}': expected = or ?")
            lines.append(line)
            arrived = at
        first = re.sub(r"^[=?][0-9]*[ \t]?", "", lines[0])
        text = "\n".join([first, *lines[1:]])
        if lines[0][0] == "?":
            raise Refusal(f"refused '{command}': {' '.join(text.split())[:200]}")
        return text, arrived - begin

    def knows(self, command: str) -> bool:
        """Whether the engine has a command."""
        return command in self.known

    def analysing_command(self, commands: Mapping[str, str], color: str) -> str:
        """Return the first of some commands that the engine knows, for a color; empty where it knows none.

        Args:
            commands: by their names what follows the color, best first.
            color: as the engine gets it.
        """
        return next((f"{name} {color} {rest}".rstrip() for name, rest in commands.items() if self.knows(name)), "")

    def choose(self, command: str, timeout: float) -> tuple[Answer, list[str]]:
        """Return the move that a command answers, alone or as `play VERTEX` after reports, and the reports.

        Raises:
            EngineFailure: as `ask`.
        """
        text, seconds = self._exchange(command, timeout)
        *reports, last = [line.strip() for line in text.splitlines() if line.strip()] or [""]
        if not last:
            raise EngineFailure(f"answered nothing to '{command}'")
        move = last.removeprefix("play ").strip()
        return Answer(move, seconds, read_evaluation(reports, command)), reports

    # -- games -------------------------------------------------------------------------------------------------------

    def new_game(self, size: int, komi: float, rules: Rules, clock: TimeSettings) -> None:
        """Set the board up for a game.

        Raises:
            EngineFailure: the engine refuses.
        """
        self.ask(f"boardsize {size}", self.timeout)
        self.ask("clear_board", self.timeout)
        if self.knows("kata-set-rules"):
            self.ask(f"kata-set-rules {rules}", self.timeout)
        self.ask(f"komi {komi:g}")
        if command := self._time_command(clock):
            self.ask(command)

    def play(self, color: str, vertex: str) -> None:
        """Tell of a move of the other side, or of the opening.

        Raises:
            EngineFailure: the engine takes it for illegal, or fails.
        """
        self.ask(f"play {color} {vertex}")

    def genmove(self, color: str, clock: GameClock) -> Answer:
        """Let the engine choose a move, and play it on its board.

        Raises:
            EngineFailure: it fails, or is silent for longer than its time and the timeout.
        """
        if clock.is_limited and self.knows("time_left"):
            self.ask(self._time_left(color, clock))
        command = self.analysing_command(GENMOVES, color) if self.spec.evaluations else ""
        answer, _ = self.choose(command or f"genmove {color}", self._patience(clock))
        return answer

    def final_score(self, timeout: float) -> str:
        """Return the engine's `final_score`.

        Raises:
            EngineFailure: it has none.
        """
        return self.ask("final_score", timeout).strip()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _set_limits(self) -> None:
        """Tell the engine the limits that are no clock, once and for all."""
        limits = self.limits
        if limits.nodes is not None or limits.depth is not None:
            raise Refusal("nodes and depth are limits of USI: expected playouts, visits or time")
        for name, parameter in KATA_LIMITS.items():
            value = getattr(limits, name)
            if value is None:
                continue
            if self.knows("kata-set-param"):
                self.ask(
                    f"kata-set-param {parameter} {value:g}"
                    if name == "seconds"
                    else f"kata-set-param {parameter} {value}"
                )
            elif name == "playouts" and self.knows("uct_param_player"):  # Fuego
                self.ask(f"uct_param_player max_games {value}")
            elif name != "seconds":  # which new_game tells
                raise Refusal(
                    f"{self.title} knows no command for {name}: expected them in its command line, or as init=COMMAND"
                )

    def _time_command(self, clock: TimeSettings) -> str:
        """Return the command that tells the time of a game; empty for none."""
        seconds = self.limits.seconds
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
        raise Refusal(f"{self.title} knows no command for increments (kata-time_settings)")

    def _periods_command(self) -> str:
        """Return the command that tells byo-yomi with its periods; empty where the engine knows none."""
        return next((name for name in ("kata-time_settings", "kgs-time_settings") if self.knows(name)), "")

    def _time_left(self, color: str, clock: GameClock) -> str:
        """Return the command that tells a clock, in the terms of `_time_command`.

        What is too little of main time to be told is left out where a period follows: zero may be read as no time.
        """
        left, system = clock.left, clock.settings.system
        main, count = left.main, left.count
        if system is TimeSystem.BYOYOMI and not self._periods_command():
            main, count = main + left.period * (count - 1), 1
        main_text, period_text = map(self._told_time, (main, left.period))
        in_main = float(main_text) > 0 or system in (TimeSystem.ABSOLUTE, TimeSystem.FISCHER)
        return f"time_left {color} {f'{main_text} 0' if in_main else f'{period_text} {count}'}"

    def _told_time(self, seconds: float) -> str:
        """Return a time that is left, in whole seconds where the engine may know no others; never more than it is."""
        if self.knows("kata-time_settings"):
            return f"{math.floor(1000.0 * seconds + 1e-6) / 1000.0:.3f}"
        return f"{math.floor(seconds)}"


def _number(seconds: float) -> str:
    """Return seconds as GTP 2 wants them, whole where they are."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def read_evaluation(lines: Sequence[str], command: str) -> Evaluation | None:
    """Read the last report of an engine: CGOS's JSON, or a line `info move ...` of KataGo's or Leela Zero's form.

    Args:
        lines: that came before the move.
        command: asked for the move; Leela Zero's (`lz-...`) has winrates in ten-thousandths.
    """
    unit = 10000.0 if command.startswith("lz-") else 1.0
    for line in reversed(lines):
        if line.startswith("{"):
            return _read_json(line)
        if line.startswith("info "):
            return _read_info(line, unit)
    return None


def _read_json(line: str) -> Evaluation | None:
    try:
        data = json.loads(line)
        moves = data.get("moves") or [{}]
        pv = (str(moves[0].get("move", "")), *str(moves[0].get("pv", "")).split())
        visits = data.get("visits")
        return Evaluation(
            _float(data.get("winrate")), _float(data.get("score")), None if visits is None else int(visits), pv
        )
    except (ValueError, TypeError, AttributeError, IndexError, KeyError):
        return None  # what an engine says beside its move is its own affair


def _read_info(line: str, unit: float) -> Evaluation | None:
    words = line.split(" info ")[0].split()
    pairs = dict(itertools.pairwise(words))
    try:
        pv = tuple(words[words.index("pv") + 1 :]) if "pv" in words else ()
        return Evaluation(float(pairs["winrate"]) / unit, _float(pairs.get("scoreLead")), int(pairs["visits"]), pv)
    except (ValueError, KeyError):
        return None


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))
