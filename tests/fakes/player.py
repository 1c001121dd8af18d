"""A player without a search: deterministic, instant or as slow as asked; for tests of protocols and command line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from engine.games.go.game import GoGame
from engine.games.go.rules import Rules
from engine.games.go.vertex import board_points
from engine.options import Options, Value
from engine.players.analyst import Model
from engine.players.go_base import GoDecision
from engine.players.go_time import Clock
from engine.players.raw_evaluation import RawEvaluation
from engine.search.limits import Limits
from engine.search.report import MoveReport, SearchReport
from native.go.board import BLACK, PASS, WHITE


class FakePlayer:
    """Plays the legal point that the seed ranks first; its reports are made up from the move's rank.

    `seconds` is how long a move takes; `interrupt` ends it. `resign_at` is the ply at which it resigns. `calls`
    records what the protocol asked for.
    """

    def __init__(self, options: Options | None = None, seconds: float = 0.0, resign_at: int | None = None) -> None:
        self.options = options or Options()
        self.game = GoGame(self.options.size, Rules.parse(self.options.rules), self.options.komi)
        self.clock = Clock()
        self.seconds = seconds
        self.resign_at = resign_at
        self.calls: list[str] = []
        self.is_searching = False
        self._interrupted = threading.Event()
        self._visits = 0
        self._color = BLACK
        self._candidates: list[int] = []

    @property
    def description(self) -> str:
        return "fake"

    @property
    def model(self) -> Model | None:
        return None

    def _rank(self, color: int, avoid: Sequence[int], allow: Sequence[int] | None) -> list[int]:
        game = self.game
        if game.is_over:
            return [PASS]
        middle = (game.size - 1) / 2
        stride = game.size + 1

        def far(point: int) -> float:
            return abs(point % stride - 1 - middle) + abs(point // stride - 1 - middle)

        points = sorted(board_points(game.size), key=lambda point: (far(point), point))
        moves = [p for p in points if game.is_legal(color, p) and not self._is_eye(color, p)] + [PASS]
        moves = [move for move in moves if move not in avoid and (allow is None or move in allow)]
        return moves or [PASS]

    def _is_eye(self, color: int, point: int) -> bool:
        colors = self.game.position["color"]
        stride = self.game.size + 1
        return all(colors[q] in (color, 3) for q in (point - 1, point + 1, point - stride, point + stride))

    def _report(self) -> SearchReport:
        visits = self._visits
        moves = tuple(
            MoveReport(
                move=move,
                visits=max(visits >> (i + 1), 1),
                winrate=0.5 - 0.0625 * i,
                utility=-0.125 * i,
                score_lead=1.5 - i,
                score_stdev=10.0,
                prior=0.5 / (i + 1),
                lcb=0.4375 - 0.0625 * i,
                utility_lcb=-0.25 * (i + 1),
                order=i,
                pv=(move, *(m for m in self._candidates[:3] if m != move)),
                pv_visits=(max(visits >> (i + 1), 1),) + (1,) * sum(m != move for m in self._candidates[:3]),
            )
            for i, move in enumerate(self._candidates[:3])
        )
        return SearchReport(
            side_to_move=self._color,
            visits=visits,
            playouts=visits,
            evaluations=visits,
            seconds=0.25,
            winrate=0.5,
            utility=0.0,
            score_lead=1.5,
            score_stdev=10.0,
            moves=moves,
            ownership=self._owner(self._color),
        )

    def _owner(self, color: int) -> npt.NDArray[np.float32]:
        colors = self.game.position["color"]
        signs = {0: 0.0, color: 0.75, 3 - color: -0.75}
        return np.array([signs[int(colors[p])] for p in board_points(self.game.size)], np.float32)

    def genmove(
        self,
        color: int,
        *,
        avoid: Sequence[int] = (),
        allow: Sequence[int] | None = None,
        limits: Limits | None = None,
        cleanup: bool = False,
        on_report: Callable[[SearchReport], None] | None = None,
        interval: float = 1.0,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> GoDecision:
        self.calls.append("genmove cleanup" if cleanup else "genmove")
        self._color, self._candidates = color, self._rank(color, avoid, allow)
        self._visits = 16
        self._interrupted.clear()
        if is_stopped():
            self._interrupted.set()
        seconds = self.seconds if limits is None or limits.seconds is None else min(self.seconds, limits.seconds)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self._interrupted.wait(min(left, interval)):
            self._visits += 16
            if on_report:
                on_report(self._report())
        resign = self.resign_at is not None and len(self.game.moves) >= self.resign_at
        return GoDecision(self._candidates[0], resign, self._report())

    def start_analysis(self, color: int, *, avoid: Sequence[int] = (), allow: Sequence[int] | None = None) -> None:
        self.calls.append("analysis")
        self._color, self._candidates = color, self._rank(color, avoid, allow)
        self._visits = 0
        self.is_searching = True

    def report(self) -> SearchReport:
        self._visits += 16
        return self._report()

    def stop(self) -> None:
        self.is_searching = False

    def interrupt(self) -> None:
        self._interrupted.set()

    def ponder(self) -> None:
        self.calls.append("ponder")
        self.is_searching = True

    def evaluate(
        self, symmetry: int | None, *, color: int | None = None, optimism: float | None = None
    ) -> RawEvaluation:
        self.calls.append(f"evaluate {symmetry} {color} {optimism}")
        game = self.game
        legal = [game.is_legal(color or game.side_to_move, p) for p in board_points(game.size)]
        policy = np.array([1 / (1 + sum(legal)) if yes else np.nan for yes in [*legal, True]], np.float32)
        owner = self._owner(WHITE)
        return RawEvaluation(
            symmetry or 0, 0.5, 0.5, 0.0, 0.25, 0.5, 10.0, 100.25, policy, owner, (("varTimeLeft", 2.0),)
        )

    def final_ownership(self) -> npt.NDArray[np.float32]:
        return self._owner(BLACK)

    def set_option(self, name: str, value: Value) -> None:
        self.calls.append(f"set {name}")

    def clear_cache(self) -> None:
        self.calls.append("clear_cache")

    def prepare(self) -> None:
        self.calls.append("prepare")

    def new_game(self) -> None:
        self.calls.append("new_game")

    def close(self) -> None:
        self.calls.append("close")
