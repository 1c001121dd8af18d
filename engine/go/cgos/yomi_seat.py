"""What plays Go for a client: yomi's own player."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from yomi.engine.clients.client import Evaluation
from yomi.engine.clock import Clock, TimeSettings, TimeSystem
from yomi.engine.color import opponent
from yomi.engine.go.game import GoGame
from yomi.engine.go.gtp.formats import cgos_json
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.vertex import format_vertex, parse_vertex
from yomi.engine.players.request import Request
from yomi.engine.servers.seat import Seat, YomiSeat

RULES = PRESETS["tromp-taylor"].with_rule("suicide", "false")
"""CGOS's: area, positional superko, no suicide; what stands at the end is alive."""


@dataclass(frozen=True, slots=True)
class GoStart:
    """A game, as far as it has come."""

    size: int
    komi: float
    seconds: float
    """Time of each side for the whole game."""
    opponent: str
    rating: str
    moves: tuple[tuple[int, str], ...]
    """(color, vertex) so far."""
    is_new: bool
    """It begins; else it goes on, and what was thought about it may be kept."""


@dataclass(frozen=True, slots=True)
class GoReply:
    """A move that is chosen."""

    vertex: str
    """A point, `pass` or `resign`."""
    analysis: str = ""
    """In CGOS's form (JSON); empty where there is none."""
    comment: str = ""
    """The evaluation for the record."""


class GoSeat(Seat, Protocol):
    """See yomi.engine.servers.seat.Seat; one thread calls it, but for `hurry`."""

    def begin(self, start: GoStart) -> None:
        """Take up a game."""

    def play(self, color: int, vertex: str) -> None:
        """Play the opponent's move."""

    def genmove(self, color: int, left: float, at: float, lag: float) -> GoReply:
        """Choose a move and play it; block until it is chosen.

        Args:
            color: whose.
            left: seconds on our clock.
            at: when it started (time.monotonic()).
            lag: seconds that each move loses on its way.
        """

    def hurry(self) -> None:
        """Make a `genmove` that runs end soon, if that can be done; any thread may call."""

    def ponder(self) -> None:
        """Think in the opponent's time until the next call; return at once. Called if it `ponders`."""


class YomiGoSeat(YomiSeat[GoPlayer]):
    """yomi's own player."""

    def __init__(self, player: GoPlayer) -> None:
        """Play with `player`."""
        super().__init__(player)
        self._current: Request[GoGame] | None = None

    def begin(self, start: GoStart) -> None:
        """Take up a game; what its board needs is loaded here, before a clock runs."""
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
        """Play a move; whether it was legal is up to the server, whose rule of ko may be another."""
        self._player.stop()
        self._game.play(color, parse_vertex(vertex, self._game.size), strict=False)

    def genmove(self, color: int, left: float, at: float, lag: float) -> GoReply:
        """Choose a move and play it."""
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
        """Think in the opponent's time."""
        request = self._request(self._game.side_to_move)
        request.ponder = True
        self._player.start(request)

    def end(self, result: str) -> None:
        """Stop thinking."""
        self._player.stop()

    def _request(self, color: int) -> Request[GoGame]:
        game = self._game.copy()
        game.turn_to(color)
        return Request(game, hide_history=self._player.options.ignore_pre_root_history)
