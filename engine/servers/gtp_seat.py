"""Another GTP engine in yomi's place."""

from __future__ import annotations

import json
import math
import re
import time

from engine.clock import TimeSettings, TimeSystem
from engine.matches.answers import Evaluation
from engine.matches.gtp_client import GtpClient
from engine.matches.process import EngineFailure
from engine.protocols.gtp.formats import number
from engine.servers.cgos_codec import LETTERS
from engine.servers.go_seat import RULES, GoReply, GoStart
from engine.servers.seat import PATIENCE, EngineSeat, GaveUpError
from engine.servers.settings import Account

NEEDED = ("boardsize", "clear_board", "komi", "play", "genmove", "quit")
GENMOVES = {"cgos-genmove_analyze": "", "kata-genmove_analyze": "100 ownership true", "lz-genmove_analyze": "100"}
"""Commands that tell what the engine thinks of its move; reports come every 100 centiseconds."""


class GtpSeat(EngineSeat[GtpClient]):
    """See engine.servers.go_seat.GoSeat for what each method promises."""

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
        client.new_game(start.size, start.komi, RULES, TimeSettings(TimeSystem.ABSOLUTE, start.seconds))
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
        client, letter = self._client, LETTERS[color]
        left = max(left - lag - (time.monotonic() - at), 0.0)
        if client.knows("time_left"):
            is_exact = client.knows("kata-time_settings")  # others take whole seconds only
            client.ask(f"time_left {letter} {f'{left:.3f}' if is_exact else math.floor(left)} 0")
        command = client.analysing_command(GENMOVES, letter) or f"genmove {letter}"
        answer, reports = client.choose(command, left + PATIENCE)
        vertex = answer.move.lower()
        if not re.fullmatch(r"[a-z][0-9]{1,2}|pass|resign", vertex):
            raise EngineFailure(f"answered '{answer.move[:80]}' to '{command}': expected a move")
        raw = next((line for line in reversed(reports) if line.startswith("{")), "")
        return GoReply(vertex, raw or analysis_of(vertex, answer.evaluation), str(answer.evaluation or ""))

    def hurry(self) -> None:
        """Nothing can be done."""

    def ponder(self) -> None:
        """Nothing has to be done."""

    def end(self, result: str) -> None:
        """Tell the engine the result, where it wants to know."""
        if self._client.knows("cgos-gameover"):
            self._client.ask(f"cgos-gameover {result}")


def analysis_of(vertex: str, evaluation: Evaluation | None) -> str:
    """Return an evaluation of a move in CGOS's form; empty where there is none."""
    if evaluation is None or evaluation.winrate is None:
        return ""
    data: dict[str, object] = {"winrate": float(number(evaluation.winrate))}
    if evaluation.score is not None:
        data["score"] = evaluation.score
    if evaluation.visits is not None:
        data["visits"] = evaluation.visits
    move = {"move": vertex.upper(), **data, "pv": " ".join(evaluation.pv[1:]).upper()}
    return json.dumps({"moves": [move], **data}, separators=(",", ":"))
