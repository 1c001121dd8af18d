"""What plays for a client in tests: known moves, after as long as is asked for."""

import time
from typing import Any

from tests.fakes.game_servers import POINTS
from yomi.engine.clock import Clocks
from yomi.engine.go.cgos.codec import Setup
from yomi.engine.go.cgos.game import GoReply
from yomi.engine.players.request import Decision, Request
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.engine.servers.game import MoveTask
from yomi.engine.shogi.notation import parse_usi


class FakeSeat:
    """Records its calls.

    Attributes:
        seconds: how long a move takes.
        failures: how many moves from now on fail.
        calls: what was asked for.
        turns: the tasks.
        lags: the lag of each move.
    """

    name = "fake"

    def __init__(self, seconds: float = 0.0, ponders: bool = False, failures: int = 0) -> None:
        self.seconds, self.ponders, self.failures = seconds, ponders, failures
        self.calls: list[str] = []
        self.turns: list[MoveTask] = []
        self.lags: list[float] = []

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        request.clocks = clocks
        self.lags.append(lag)

    def think(self, turn: MoveTask) -> Any:
        self.turns.append(turn)
        self.calls.append(f"{'ponder' if turn.request.ponder else 'think'} {len(turn.moves)}")
        if self.failures:
            self.failures -= 1
            raise RuntimeError("out of order")
        while turn.request.is_pondering and not turn.request.is_stopped:
            turn.request.wait(1.0)
        end = time.monotonic() + self.seconds
        while not turn.request.is_stopped and time.monotonic() < end:
            time.sleep(0.005)
        return self.decide(turn)

    def decide(self, turn: MoveTask) -> Any:
        raise NotImplementedError

    def end(self, result: str) -> None:
        self.calls.append(f"end {result}")

    def close(self) -> None:
        self.calls.append("close")


class FakeGoSeat(FakeSeat):
    """Plays the first free point."""

    def begin(self, setup: Setup, them: int) -> None:
        self.calls.append("begin")

    def decide(self, turn: MoveTask) -> GoReply:
        assert len(set(turn.moves)) == len(turn.moves)
        vertex = next(point for point in POINTS if point not in turn.moves)
        return GoReply(vertex, '{"winrate":0.5}', "50.0%")


class FakeShogiSeat(FakeSeat):
    """Moves Black's rook to and fro and expects the same of White."""

    centipawns = 600.0
    decision: Decision | None = None
    """What is decided in place of a move."""

    def begin(self, max_moves: int, entering_king: str | None = None) -> None:
        self.calls.append(f"begin {max_moves} {entering_king or 'own rule'}")

    def decide(self, turn: MoveTask) -> Decision:
        if self.decision is not None:
            return self.decision
        side = len(turn.moves) // 2 % 2
        move = parse_usi(("2h3h", "3h2h")[side])
        answer = parse_usi(("8b7b", "7b8b")[side])
        report = SearchReport(playouts=1, moves=(MoveReport(move, 1, 0.75, pv=(move, answer)),))
        return Decision(move, ponder=answer, report=report)
