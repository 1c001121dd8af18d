"""Another GTP engine in yomi's place."""

from __future__ import annotations

import json
import re
import time

from yomi.engine.clients.client import EngineError, Evaluation
from yomi.engine.clients.gtp import GtpClient
from yomi.engine.clients.spec import GameClock
from yomi.engine.clock import TimeSettings, TimeSystem
from yomi.engine.color import LETTERS
from yomi.engine.go.cgos.yomi_seat import RULES, GoReply, GoStart
from yomi.engine.go.gtp.formats import number
from yomi.engine.servers.seat import EngineSeat, GaveUpError
from yomi.engine.servers.settings import Account

NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove", "quit")


class GtpSeat(EngineSeat[GtpClient]):
    """See yomi.engine.go.cgos.yomi_seat.GoSeat for what each method promises."""

    ponders = False
    """The engine does as it likes in the opponent's time."""

    def __init__(self, account: Account) -> None:
        """Start the engine.

        Raises:
            GaveUpError: it cannot be started, or lacks what is needed.
        """
        super().__init__(account, GtpClient)
        missing = [command for command in NEEDED if not self._client.knows(command)]
        if missing:
            self._client.close()
            raise GaveUpError(f"{account.name}: {self.name} has no command {missing[0]}: expected {', '.join(NEEDED)}")

    def begin(self, start: GoStart) -> None:
        """Set the engine up for a game, as far as it has come."""
        client = self._client
        client.new_game(start.size, start.komi, str(RULES), TimeSettings(TimeSystem.ABSOLUTE, start.seconds))
        for command, text in (("cgos-opponent_name", start.opponent), ("cgos-opponent_rating", start.rating)):
            if text and client.knows(command):
                client.ask(f"{command} {text}")
        for color, vertex in start.moves:
            self.play(color, vertex)

    def play(self, color: int, vertex: str) -> None:
        """Tell the engine of a move."""
        self._client.play(LETTERS[color], vertex)

    def genmove(self, color: int, left: float, at: float, lag: float) -> GoReply:
        """Have the engine choose a move; it is told the time without the lag."""
        clock = TimeSettings(TimeSystem.ABSOLUTE, max(left - lag - (time.monotonic() - at), 0.0))
        found = self._client.genmove(LETTERS[color], GameClock(clock, 0.0))
        vertex = found.move.lower()
        if not re.fullmatch(r"[a-z][0-9]{1,2}|pass|resign", vertex):
            raise EngineError(f"answered '{found.move[:80]}' to genmove: expected a move")
        raw = found.report if found.report.startswith("{") else ""
        return GoReply(vertex, raw or analysis_of(vertex, found.evaluation), str(found.evaluation or ""))

    def hurry(self) -> None:
        """Nothing can be done."""

    def ponder(self) -> None:
        """Nothing has to be done."""

    def end(self, result: str) -> None:
        """Tell the engine the result, if it has a command for it."""
        if self._client.knows("cgos-gameover"):
            self._client.ask(f"cgos-gameover {result}")


def analysis_of(vertex: str, evaluation: Evaluation | None) -> str:
    """Return an evaluation of a move in CGOS's form; empty if there is none."""
    if evaluation is None or evaluation.winrate is None:
        return ""
    data: dict[str, object] = {"winrate": float(number(evaluation.winrate))}
    if evaluation.score is not None:
        data["score"] = evaluation.score
    if evaluation.visits is not None:
        data["visits"] = evaluation.visits
    move = {"move": vertex.upper(), **data, "pv": " ".join(evaluation.pv[1:]).upper()}
    return json.dumps({"moves": [move], **data}, separators=(",", ":"))
