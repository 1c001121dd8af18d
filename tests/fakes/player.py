"""A player without a search: deterministic, instant or as slow as asked; for tests of protocols and command line."""

import threading
import time
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.players.setup import RawEvaluation
from yomi.engine.options import Options
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision, Request
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.native.go.board import BLACK, PASS, WHITE


class FakePlayer:
    """Plays the legal point that the seed ranks first; its reports are made up from the move's rank.

    `seconds` is how long a move takes, unless its request is stopped. `resign_at` is the ply at which it resigns.
    `calls` and `requests` record what the protocol asked for.
    """

    description = setup_line = "fake"
    is_on_gpu = False

    def __init__(self, options: Options | None = None, seconds: float = 0.0, resign_at: int | None = None) -> None:
        self.options = options or Options()
        self.seconds = seconds
        self.resign_at = resign_at
        self.calls: list[str] = []
        self.requests: list[Request[GoGame]] = []
        self.is_searching = False
        self._game = new_game(self.options)
        self._visits = 0
        self._color = BLACK
        self._candidates: list[int] = []

    @property
    def models(self) -> list[dict[str, Any]]:
        return []

    def _rank(self, avoid: Collection[int], allow: Collection[int] | None) -> list[int]:
        game, color = self._game, self._color
        if game.is_over:
            return [PASS]

        def far(point: int) -> float:
            x, y = game.board.coordinates(point)
            return abs(x - (game.board.width - 1) / 2) + abs(y - (game.board.height - 1) / 2)

        points = sorted(game.board.points, key=lambda point: (far(point), point))
        moves = [p for p in points if game.is_legal(color, p) and not self._is_eye(color, p)] + [PASS]
        moves = [move for move in moves if move not in avoid and (allow is None or move in allow)]
        return moves or [PASS]

    def _is_eye(self, color: int, point: int) -> bool:
        colors = self._game.position["color"]
        return all(colors[q] in (color, 3) for q in self._game.board.neighbors(point))

    def _report(self) -> SearchReport:
        visits = self._visits
        moves = tuple(
            MoveReport(
                move=move,
                visits=max(visits >> (i + 1), 1),
                node_visits=max(visits >> (i + 1), 1),
                node_weight=float(max(visits >> (i + 1), 1)),
                weight=float(max(visits >> (i + 1), 1)),
                wanted=float(max(visits >> (i + 1), 1)),
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
                pv_node_visits=(max(visits >> (i + 1), 1),) + (1,) * sum(m != move for m in self._candidates[:3]),
            )
            for i, move in enumerate(self._candidates[:3])
        )
        return SearchReport(
            side_to_move=self._color,
            visits=visits,
            weight=float(visits),
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
        colors = self._game.position["color"]
        signs = {0: 0.0, color: 0.75, 3 - color: -0.75}
        return np.array([signs[int(colors[p])] for p in self._game.board.points], np.float32)

    choose = Player.choose

    def decide(self, request: Request[GoGame]) -> Decision:
        cleanup = request.options is not None and request.options.cleanup
        self.calls.append("decide cleanup" if cleanup else "decide")
        self.requests.append(request)
        self._search(request)
        self._visits = 16
        stopped = threading.Event()
        request.listen(stopped.set)
        if request.is_stopped:
            stopped.set()
        limit = request.limits.seconds
        deadline = time.monotonic() + (self.seconds if limit is None else min(self.seconds, limit))
        while (left := deadline - time.monotonic()) > 0 and not stopped.wait(min(left, request.interval)):
            self._visits += 16
            if request.on_report:
                request.on_report(self._report())
        request.listen(None)
        resign = self.resign_at is not None and len(request.game.moves) >= self.resign_at
        return Decision(self._candidates[0], resign, report=self._report())

    def start(self, request: Request[GoGame]) -> None:
        self.calls.append("ponder" if request.ponder else "analysis")
        self.requests.append(request)
        self._search(request)
        self._visits = 0
        self.is_searching = True

    def _search(self, request: Request[GoGame]) -> None:
        self._game, self._color = request.game, request.game.side_to_move
        self._candidates = self._rank(request.avoid, request.allow)

    def report(self) -> SearchReport:
        self._visits += 16
        return self._report()

    def stop(self) -> None:
        self.is_searching = False

    def interrupt(self) -> None:
        self.calls.append("interrupt")

    def evaluate_human(self, game: GoGame, symmetry: int | None) -> RawEvaluation | None:
        return None

    def check_profile(self, options: Options) -> None: ...

    def evaluate(self, game: GoGame, symmetry: int | None, optimism: float | None = None) -> RawEvaluation:
        self.calls.append(f"evaluate {symmetry} {game.side_to_move} {optimism}")
        self._game = game
        legal = [game.is_legal(game.side_to_move, p) for p in game.board.points]
        policy = np.array([1 / (1 + sum(legal)) if yes else np.nan for yes in [*legal, True]], np.float32)
        owner = self._owner(WHITE)
        return RawEvaluation(symmetry or 0, 0.5, 0.5, 0.0, 0.25, 0.5, 100.25, policy, owner, {"varTimeLeft": 2.0})

    def final_ownership(self, game: GoGame) -> npt.NDArray[np.float32]:
        self._game = game
        return self._owner(BLACK)

    def load(self, game: GoGame) -> None:
        self.calls.append("load")

    def new_game(self, game: GoGame) -> None:
        self.calls.append("new_game")

    def clear(self) -> None:
        self.calls.append("clear")

    def close(self) -> None:
        self.calls.append("close")
