"""The client of a USI engine: games, analyses, and searches that may ponder and can be stopped."""

import math
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from yomi.engine.clients.client import (
    STOP_TIMEOUT,
    EngineClient,
    EngineError,
    EngineMove,
    Evaluation,
    RefusedError,
    no_answer,
)
from yomi.engine.clock import Clock, Clocks
from yomi.engine.color import BLACK, WHITE
from yomi.engine.records import CENTIPAWNS, MATE_SCORE, winrate_of

# Options of yomi, dlshogi and FukauraOu that limit a search in other ways than `go nodes`.
OPTION_LIMITS = {"visits": ("UCT_NodeLimit",), "playouts": ("Const_Playout", "NodesLimit")}
# Options of YaneuraOu, dlshogi and yomi for delays on the way to the clock, in milliseconds. A match needs little.
MARGINS = ("NetworkDelay", "NetworkDelay2", "ByoyomiMargin", "Byoyomi_Margin", "Time_Margin")
LOCAL_MARGIN = 30
FOREVER = 3600.0  # seconds given to engines whose search an option ends
POLL = 0.5  # seconds between checks whether a move is overdue


class UsiClient(EngineClient):
    increment_first = True
    decimals = 3
    options: dict[str, str]  # type and range of each option, as the engine reports them

    def _greet(self) -> None:
        if self.spec.commands:
            raise RefusedError("init commands are for GTP engines: expected option.NAME=VALUE")
        self.options = {}
        for line in self._ask("usi", "usiok"):
            if line.startswith("id name "):
                self.title = line.removeprefix("id name ").strip()
            elif found := re.match(r"option name (.+?) type (.*)", line):
                self.options[found[1]] = found[2]
        self._set_options()
        self._ask("isready", "readyok")

    def set_option(self, name: str, text: str) -> None:
        """Set an option between games. An empty text presses a button."""
        self.process.send(f"setoption name {name} value {text}" if text else f"setoption name {name}")

    def lower_margins(self) -> None:
        """Ask for short reserves of time, since the clock is on this machine. The user's own options stay."""
        if "--lag" in self.spec.command or "--byoyomi-margin" in self.spec.command:
            return
        for name in MARGINS:
            found = dict(re.findall(r"(default|min) ([0-9]+)", self.options.get(name, "")))
            value = max(LOCAL_MARGIN, int(found.get("min", 0)))
            if name not in self.spec.options and int(found.get("default", 0)) > value:
                self.set_option(name, str(value))

    def new_game(self) -> None:
        self._ask("isready", "readyok")
        self.process.send("usinewgame")

    def start(
        self,
        sfen: str,
        moves: Sequence[str],
        limits: str,
        allowed: float = math.inf,
        clock_start: float | None = None,
    ) -> "UsiSearch":
        """Start a search. The last one must have ended.

        Args:
            sfen: initial position, or `startpos`.
            moves: moves since then.
            limits: the words after `go`, including `ponder` and `infinite`.
            allowed: seconds that the engine may take, without the timeout.
            clock_start: when its clock started (`time.monotonic`); None for now.
        """
        start = sfen if sfen == "startpos" else f"sfen {sfen}"
        position = " ".join(["position", start, *(["moves", *moves] if moves else [])])
        return UsiSearch(self, position, f"go {limits}", allowed, clock_start)

    def choose(self, start: str, moves: Sequence[str], color: int, clocks: Clocks) -> EngineMove:
        return self.start(start, moves, self._limits(color, clocks), self._allowed(clocks[color])).wait()

    def analyse(self, sfen: str, moves: Sequence[str], seconds: float) -> Iterator[tuple[float, str]]:
        """Make the engine analyse for some seconds. Yield its reports with the seconds since the command."""
        search = self.start(sfen, moves, "infinite")
        yield from search.reports(seconds)
        search.stop()
        yield from search.reports()

    def game_over(self, result: str) -> None:
        self.process.send(f"gameover {result}")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _ask(self, command: str, last: str) -> list[str]:
        begin = self.process.send(command)
        lines: list[str] = []
        while (line := self._line(command, begin, self.timeout)[1].strip()) != last:
            lines.append(line)
        return lines

    def _set_options(self) -> None:
        wanted = dict(self.spec.options)
        limits = self.spec.limits
        for name, candidates in OPTION_LIMITS.items():
            value = getattr(limits, name)
            if value is None:
                continue
            option = next((each for each in candidates if each in self.options), None)
            if option is None:
                raise RefusedError(
                    f"{self.title} has no option for {name} ({', '.join(candidates)}): expected nodes or time"
                )
            wanted[option] = str(value)
        if limits.stones is not None or (limits.periods or 1) > 1:
            raise RefusedError("USI has one byo-yomi period of one move: expected neither stones nor periods")
        for name, text in wanted.items():
            if name not in self.options and not name.startswith("USI_"):
                raise RefusedError(f"{self.title} has no option {name}: expected one of {', '.join(self.options)}")
            self.set_option(name, text)

    def _limits(self, color: int, clocks: Clocks) -> str:
        limits, words = self.spec.limits, []
        if clocks[color].settings.is_limited:
            # The clock has added the increment of this move already; engines add it themselves.
            left = {
                side: replace(clock, main=max(clock.main - clock.settings.increment, 0.0))
                for side, clock in clocks.items()
            }
            words.append(clock_words(left, color))
        elif limits.seconds is not None:
            words.append(f"movetime {_milliseconds(limits.seconds)}")
        if limits.nodes is not None:
            words.append(f"nodes {limits.nodes}")
        if limits.depth is not None:
            words.append(f"depth {limits.depth}")
        return " ".join(words) or clock_words(dict.fromkeys((BLACK, WHITE), Clock.of(0.0, FOREVER)))


class UsiSearch:
    """A search of a USI engine, from `go` to `bestmove`.

    One thread reads its reports or waits for its move; any thread may call `stop` and `ponderhit`. The move is due
    `allowed` seconds plus the client's timeout after the clock started, and STOP_TIMEOUT seconds after `stop`.
    """

    def __init__(self, client: UsiClient, position: str, go: str, allowed: float, clock_start: float | None) -> None:
        self._process, self._timeout = client.process, client.timeout
        self._lock = threading.Lock()
        self._last_word = ""  # the last word sent: ponderhit or stop
        self._due = (math.inf, "")  # when the move is overdue, and the fault then
        self._overdue_since: float | None = None
        self._failure: EngineError | None = None  # why a word could not be sent
        self._evaluation: Evaluation | None = None
        self._move: EngineMove | None = None
        self._begin = self._process.send(position, go)
        self._expect(go, self._begin if clock_start is None else clock_start, allowed + self._timeout)

    def stop(self) -> None:
        """Ask for the move at once. If this cannot be sent, the call that waits for the move raises the error."""
        with self._lock:
            self._say("stop", time.monotonic(), STOP_TIMEOUT)

    def ponderhit(self, allowed: float, clock_start: float) -> None:
        """Confirm the guess of a pondering engine, unless it was stopped. For the arguments see `start`."""
        with self._lock:
            if not self._last_word:
                self._say("ponderhit", clock_start, allowed + self._timeout)

    def reports(self, seconds: float = math.inf) -> Iterator[tuple[float, str]]:
        """Yield each `info` line with the seconds since `go`, until the move comes or `seconds` have passed."""
        end = self._begin + seconds
        at = self._begin
        while self._move is None and at < end:
            at = min(time.monotonic() + POLL, end)
            try:
                at, line = self._process.line(at)
            except TimeoutError:
                line = ""
            if line.startswith("info "):
                self._evaluation = read_info(line, self._evaluation)
                yield at - self._begin, line
            elif line.startswith("bestmove"):
                move, word, reply = [*line.split()[1:], "", "", ""][:3]
                reply = reply if word == "ponder" else ""
                self._move = EngineMove(move, at - self._begin, self._evaluation, reply)
            if self._move is None:
                self._check(at)

    def wait(self) -> EngineMove:
        for _ in self.reports():
            pass
        assert self._move is not None
        return self._move

    def _say(self, word: str, begin: float, patience: float) -> None:
        """Send a word once, unless the engine has answered already. The caller holds the lock."""
        if self._move is not None or self._last_word == word:
            return
        self._last_word = word
        self._expect(word, begin, patience)
        try:
            self._process.send(word)
        except EngineError as error:
            self._failure = error

    def _expect(self, command: str, begin: float, patience: float) -> None:
        self._due = min(self._due, (begin + patience, no_answer(command, patience)))

    def _check(self, at: float) -> None:
        """Raise EngineError if a word could not be sent, or if the move is overdue at time `at`."""
        if self._failure is not None:
            raise self._failure
        due, fault = self._due
        if at <= due:
            self._overdue_since = None
        elif self._overdue_since is None:
            self._overdue_since = at
        elif at >= self._overdue_since + POLL:  # not at once: after a standstill the move may wait behind a late report
            raise EngineError(fault)


def clock_words(clocks: Clocks, color: int = BLACK) -> str:
    """Return the clocks in the words of USI's `go`. Increments are given if `color` has no byo-yomi."""
    black, white = clocks[BLACK], clocks[WHITE]
    words = f"btime {_milliseconds(black.main)} wtime {_milliseconds(white.main)}"
    increments = black.settings.increment, white.settings.increment
    if not clocks[color].settings.period and any(increments):
        return "{} binc {} winc {}".format(words, *map(_milliseconds, increments))
    return f"{words} byoyomi {_milliseconds(clocks[color].settings.period)}"


def _milliseconds(seconds: float) -> int:
    return math.floor(1000.0 * seconds + 1e-6)


def read_info(line: str, before: Evaluation | None) -> Evaluation | None:
    """Return the evaluation in a report; or `before`, if the report has no score or is not about the best line.

    A score that is only a bound is ignored if there is an earlier evaluation.
    """
    words = line.split()
    if "score" not in words or ("multipv" in words and words[words.index("multipv") + 1 :][:1] != ["1"]):
        return before
    at = words.index("score")
    kind, text, *_ = [*words[at + 1 : at + 3], "", ""]
    found = _score(kind, text)
    is_bound = words[at + 3 : at + 4] in (["lowerbound"], ["upperbound"])
    if found is None or (is_bound and before is not None):
        return before
    score, mate = found
    nodes = words[words.index("nodes") + 1] if "nodes" in words[:-1] else ""
    pv = tuple(words[words.index("pv") + 1 :]) if "pv" in words else ()
    visits = int(nodes) if re.fullmatch(r"[0-9]{1,18}", nodes) else None
    return Evaluation(winrate_of(score, CENTIPAWNS), score, visits, pv or (before.pv if before else ()), mate)


def _score(kind: str, text: str) -> tuple[float, int | None] | None:
    """Return (centipawns, plies to mate or None) of `cp N` or `mate N`. Without a number a mate counts as one ply."""
    match = re.fullmatch(r"([+-]?)([0-9]{0,18})", text)
    if match is None or (kind == "cp" and not match[2]) or kind not in ("cp", "mate"):
        return None
    sign = -1 if match[1] == "-" else 1
    number = int(match[2] or 0)
    if kind == "cp":
        return float(sign * number), None
    return float(sign * (MATE_SCORE - number)), sign * max(number, 1)
