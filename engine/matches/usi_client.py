"""A USI engine as a player of games of shogi."""

from __future__ import annotations

import math
import re

from engine.clock import TimeSystem
from engine.color import BLACK, WHITE
from engine.games.shogi.scores import MATE_SCORE, winrate_of
from engine.matches.answers import Answer, Evaluation
from engine.matches.engine_client import EngineClient
from engine.matches.limits import GameClock
from engine.matches.process import EngineFailure, Refusal

OPTION_LIMITS = {"visits": ("UCT_NodeLimit",), "playouts": ("Const_Playout", "NodesLimit")}
"""Options of yomi, dlshogi and FukauraOu that limit a search in other ways than `go nodes`."""
FOREVER = 3_600_000
"""Milliseconds given to engines whose search an option ends."""
CENTIPAWNS = 600.0
"""Of a logit of the winrate, by which scores become winrates where both engines' are compared."""


class UsiClient(EngineClient):
    """One running USI engine."""

    options: dict[str, str]
    """What the engine says of each of its options."""

    def _greet(self) -> None:
        if self.spec.commands:
            raise Refusal("init commands are for GTP engines: expected option.NAME=VALUE")
        self.options = {}
        for line in self._ask("usi", "usiok"):
            if line.startswith("id name "):
                self.title = line.removeprefix("id name ").strip()
            elif found := re.match(r"option name (.+?) type (.*)", line):
                self.options[found[1]] = found[2]
        self._set_options()
        self._ask("isready", "readyok")

    def new_game(self) -> None:
        """Prepare for a game.

        Raises:
            EngineFailure: the engine fails.
        """
        self._ask("isready", "readyok")
        self.process.send("usinewgame")

    def go(self, position: str, color: int, clocks: dict[int, GameClock]) -> Answer:
        """Let the engine choose a move.

        Args:
            position: as after `position`.
            color: who is to move: this engine.
            clocks: of both colors.

        Raises:
            EngineFailure: it fails, or is silent for longer than its time and the timeout.
        """
        command = self._go_command(color, clocks)
        patience = self._patience(clocks[color])
        begin = self.process.send(f"position {position}", command)
        evaluation: Evaluation | None = None
        while True:
            try:
                at, line = self.process.line(begin + patience)
            except TimeoutError:
                raise EngineFailure(f"no answer to '{command}' within {patience:.0f} s") from None
            if line.startswith("info "):
                evaluation = read_info(line, evaluation)
            elif line.startswith("bestmove"):
                return Answer(line[len("bestmove") :].strip().split(" ")[0], at - begin, evaluation)

    def game_over(self, result: str) -> None:
        """Tell the engine how the game ended: win, lose or draw.

        Raises:
            EngineFailure: the engine has gone.
        """
        self.process.send(f"gameover {result}")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _ask(self, command: str, last: str) -> list[str]:
        """Send a command and return the lines up to one that is `last`."""
        deadline = self.process.send(command) + self.timeout
        lines: list[str] = []
        while True:
            try:
                _, line = self.process.line(deadline)
            except TimeoutError:
                raise EngineFailure(f"no {last} within {self.timeout:.0f} s after '{command}'") from None
            if line.strip() == last:
                return lines
            lines.append(line.strip())

    def _set_options(self) -> None:
        wanted = dict(self.spec.options)
        limits = self.limits
        for name, candidates in OPTION_LIMITS.items():
            value = getattr(limits, name)
            if value is None:
                continue
            option = next((each for each in candidates if each in self.options), None)
            if option is None:
                raise Refusal(
                    f"{self.title} has no option for {name} ({', '.join(candidates)}): expected nodes or time"
                )
            wanted[option] = str(value)
        if limits.stones is not None or (limits.periods or 1) > 1:
            raise Refusal("USI has one byo-yomi period of one move: expected neither stones nor periods")
        for name, text in wanted.items():
            if name not in self.options and not name.startswith("USI_"):
                raise Refusal(f"{self.title} has no option {name}: expected one of {', '.join(self.options)}")
            self.process.send(f"setoption name {name} value {text}" if text else f"setoption name {name}")

    def _go_command(self, color: int, clocks: dict[int, GameClock]) -> str:
        limits, own = self.limits, clocks[color].settings
        words = ["go"]
        if clocks[color].is_limited:
            for name, side in (("btime", BLACK), ("wtime", WHITE)):
                clock = clocks[side]
                words.append(f"{name} {milliseconds(max(clock.left.main - clock.settings.increment, 0.0))}")
            if own.system is TimeSystem.FISCHER:
                for name, side in (("binc", BLACK), ("winc", WHITE)):
                    words.append(f"{name} {milliseconds(clocks[side].settings.increment)}")
            elif own.system is TimeSystem.BYOYOMI:
                words.append(f"byoyomi {milliseconds(own.period)}")
        elif limits.seconds is not None:
            words.append(f"movetime {milliseconds(limits.seconds)}")
        if limits.nodes is not None:
            words.append(f"nodes {limits.nodes}")
        if limits.depth is not None:
            words.append(f"depth {limits.depth}")
        return " ".join(words) if len(words) > 1 else f"go btime 0 wtime 0 byoyomi {FOREVER}"


def milliseconds(seconds: float) -> int:
    """Return a time as USI has it, never more than it is."""
    return math.floor(1000.0 * seconds + 1e-6)


def read_info(line: str, before: Evaluation | None) -> Evaluation | None:
    """Read a report of a search; lines without a score, or of lines beyond the best, leave what was known before."""
    words = line.split()
    if "score" not in words or ("multipv" in words and words[words.index("multipv") + 1 :][:1] != ["1"]):
        return before
    at = words.index("score")
    kind, text, *_ = [*words[at + 1 : at + 3], "", ""]
    found = _score(kind, text)
    if found is None:
        return before
    score, mate = found
    nodes = words[words.index("nodes") + 1] if "nodes" in words[:-1] else ""
    pv = tuple(words[words.index("pv") + 1 :]) if "pv" in words else ()
    visits = int(nodes) if nodes.isdecimal() else None
    return Evaluation(winrate_of(score, CENTIPAWNS), score, visits, pv or (before.pv if before else ()), mate)


def _score(kind: str, text: str) -> tuple[float, int | None] | None:
    """Return centipawns and mate of `score cp N` or `score mate N` (`+` and `-`: a mate of unknown length is of 1)."""
    match = re.fullmatch(r"([+-]?)([0-9]{0,18})", text)
    if match is None or (kind == "cp" and not match[2]) or kind not in ("cp", "mate"):
        return None
    sign = -1 if match[1] == "-" else 1
    number = int(match[2] or 0)
    if kind == "cp":
        return float(sign * number), None
    return float(sign * (MATE_SCORE - number)), sign * max(number, 1)
