"""The engines that play for a CGOS client: yomi's own player, or another GTP engine.

One thread calls a seat, but any thread may call `hurry`.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace

from yomi.engine.clients.client import EngineError, Evaluation
from yomi.engine.clients.gtp import GtpClient
from yomi.engine.clients.spec import GameClock
from yomi.engine.clock import Clock, TimeSettings, TimeSystem
from yomi.engine.color import LETTERS, opponent
from yomi.engine.go.cgos.codec import cgos_json
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.vertex import format_vertex, parse_vertex
from yomi.engine.players.request import Request
from yomi.engine.servers.seat import EngineSeat, GaveUpError, YomiSeat
from yomi.engine.servers.settings import Account

# CGOS's rules: area, positional superko, no suicide, all stones alive at the end.
RULES = PRESETS["tromp-taylor"].with_rule("suicide", "false")


@dataclass(frozen=True, slots=True)
class GoStart:
    """A game so far."""

    size: int
    komi: float
    seconds: float
    opponent: str
    rating: str
    moves: tuple[tuple[int, str], ...]  # (color, vertex)
    is_new: bool  # Whether the game begins. If it continues, the engine may keep its tree.


@dataclass(frozen=True, slots=True)
class GoReply:
    vertex: str  # a point, `pass` or `resign`
    analysis: str = ""  # JSON in CGOS's form; empty if there is none
    comment: str = ""  # the evaluation for the record


class YomiGoSeat(YomiSeat[GoPlayer]):
    """The seat of yomi's own player."""

    def __init__(self, player: GoPlayer) -> None:
        super().__init__(player)
        self._current: Request[GoGame] | None = None

    def begin(self, start: GoStart) -> None:
        """Set up a game, and load everything for its board before a clock runs."""
        player = self._player
        player.stop()
        self._game = GoGame(start.size, RULES, start.komi)
        self._settings = TimeSettings(TimeSystem.ABSOLUTE, start.seconds)
        if start.is_new:
            player.new_game(self._game)
        else:
            player.load(self._game)
        for color, vertex in start.moves:
            self.play(color, vertex)

    def play(self, color: int, vertex: str) -> None:
        """Play a move. Legality is not checked, because the server's ko rule may differ."""
        self._player.stop()
        self._game.play(color, parse_vertex(vertex, self._game.size), strict=False)

    def genmove(self, color: int, left: float, at: float, lag: float) -> GoReply:
        """Choose a move, play it and return it.

        Args:
            color: the side to play.
            left: seconds on our clock.
            at: when the clock started (time.monotonic()).
            lag: seconds that a move loses in transit.
        """
        player, size = self._player, self._game.size
        request = self._request(color)
        request.options = replace(player.options, lag=player.options.lag + lag)
        request.clocks = dict.fromkeys((color, opponent(color)), Clock(self._settings, left))
        request.start = at
        self._current = request
        decision = player.decide(request)
        report = decision.report
        analysis = cgos_json(report, size) if report.moves else ""
        comment = str(Evaluation(report.winrate, report.score_lead, report.visits)) if analysis else ""
        if decision.resign or decision.move is None:
            return GoReply("resign", analysis, comment)
        self._game.play(color, decision.move)
        return GoReply(format_vertex(decision.move, size).lower(), analysis, comment)

    def hurry(self) -> None:
        """Make a running `genmove` end soon."""
        if self._current is not None:
            self._current.stop()

    def ponder(self) -> None:
        """Start pondering until the next call; return at once. Called only if `ponders` is set."""
        request = self._request(self._game.side_to_move)
        request.ponder = True
        self._player.start(request)

    def end(self, result: str) -> None:
        self._player.stop()

    def _request(self, color: int) -> Request[GoGame]:
        game = self._game.copy()
        game.turn_to(color)
        return Request(game, hide_history=self._player.options.ignore_pre_root_history)


NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove", "quit")


class GtpSeat(EngineSeat[GtpClient]):
    ponders = False  # the engine decides by itself whether it ponders

    def __init__(self, account: Account) -> None:
        """Start the engine. Raises GaveUpError if it does not start, or lacks a command."""
        super().__init__(account, GtpClient)
        missing = [command for command in NEEDED if not self._client.knows(command)]
        if missing:
            self._client.close()
            raise GaveUpError(f"{account.name}: {self.name} has no command {missing[0]}: expected {', '.join(NEEDED)}")

    def begin(self, start: GoStart) -> None:
        client = self._client
        client.new_game(start.size, start.komi, str(RULES), TimeSettings(TimeSystem.ABSOLUTE, start.seconds))
        for command, text in (("cgos-opponent_name", start.opponent), ("cgos-opponent_rating", start.rating)):
            if text and client.knows(command):
                client.ask(f"{command} {text}")
        for color, vertex in start.moves:
            self.play(color, vertex)

    def play(self, color: int, vertex: str) -> None:
        self._client.play(LETTERS[color], vertex)

    def genmove(self, color: int, left: float, at: float, lag: float) -> GoReply:
        """Ask the engine for a move. Its clock is reduced by the lag."""
        clock = TimeSettings(TimeSystem.ABSOLUTE, max(left - lag - (time.monotonic() - at), 0.0))
        found = self._client.genmove(LETTERS[color], GameClock(clock, 0.0))
        vertex = found.move.lower()
        if not re.fullmatch(r"[a-z][0-9]{1,2}|pass|resign", vertex):
            raise EngineError(f"answered '{found.move[:80]}' to genmove: expected a move")
        raw = found.report if found.report.startswith("{") else ""
        return GoReply(vertex, raw or analysis_of(vertex, found.evaluation), str(found.evaluation or ""))

    def hurry(self) -> None:
        """GTP has no command for this."""

    def ponder(self) -> None: ...

    def end(self, result: str) -> None:
        """Send the result, if the engine has a command for it."""
        if self._client.knows("cgos-gameover"):
            self._client.ask(f"cgos-gameover {result}")


def analysis_of(vertex: str, evaluation: Evaluation | None) -> str:
    """Return an evaluation of a move in CGOS's form; empty if there is none."""
    if evaluation is None or evaluation.winrate is None:
        return ""
    data: dict[str, object] = {"winrate": float(f"{evaluation.winrate:.6g}")}
    if evaluation.score is not None:
        data["score"] = evaluation.score
    if evaluation.visits is not None:
        data["visits"] = evaluation.visits
    move = {"move": vertex.upper(), **data, "pv": " ".join(evaluation.pv[1:]).upper()}
    return json.dumps({"moves": [move], **data}, separators=(",", ":"))


GoSeat = YomiGoSeat | GtpSeat
