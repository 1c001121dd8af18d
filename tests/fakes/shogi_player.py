"""A player of shogi without a search, for tests of the protocol, the terminal and self-play."""

import threading
import time
from collections.abc import Sequence

from yomi.engine.options import Options
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision, LoadingError, Request
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.mate import MateAnswer


class FakeShogiPlayer:
    """Plays the legal move whose number is lowest, after `seconds` or when it is stopped.

    Args:
        options: settings.
        seconds: how long a move takes; a request that ponders or is infinite takes as long.
        load_seconds: how long loading takes.
        error: what loading ends with.
        fail: raised while thinking.
        resign_at: the ply at which it resigns.
        declares: declare wins where that can be done.
    """

    description = setup_line = "fake"

    def __init__(
        self,
        options: Options | None = None,
        seconds: float = 0.0,
        load_seconds: float = 0.0,
        error: str | None = None,
        fail: Exception | None = None,
        resign_at: int | None = None,
        *,
        declares: bool = True,
    ) -> None:
        self.options = options or Options.for_game("shogi")
        self.seconds = seconds
        self.load_seconds = load_seconds
        self.error = error
        self.fail = fail
        self.resign_at = resign_at
        self.declares = declares
        self.calls: list[str] = []
        self.requests: list[Request[ShogiGame]] = []
        self.loaded_net: str | None = "nothing yet"
        self.mate = MateAnswer()
        self._inside = threading.Lock()

    def needs_loading(self, game: ShogiGame) -> bool:
        return self.options.net != self.loaded_net

    def load(self, game: ShogiGame) -> None:
        self.calls.append("load")
        time.sleep(self.load_seconds)
        if self.error is not None:
            raise LoadingError(self.error)
        self.loaded_net = self.options.net

    choose = Player.choose

    def decide(self, request: Request[ShogiGame]) -> Decision:
        with self._inside:
            self.calls.append("decide")
            return self._decide(request)

    def _decide(self, request: Request[ShogiGame]) -> Decision:
        self.requests.append(request)
        game = request.game.copy()
        if self.declares and game.can_declare and not request.infinite:
            return Decision(None, win=True)
        moves = sorted(move for move in game.legal_moves() if request.allow is None or move in request.allow)
        visits, begin, seconds = 0, time.monotonic(), self._seconds(request)
        changed = threading.Event()
        request.listen(changed.set)
        while not request.is_stopped and (left := begin + seconds - time.monotonic()) > 0:
            if changed.wait(min(left, request.interval)):
                changed.clear()
                continue
            visits += 1
            if request.on_report is not None:
                request.on_report(self._report(game, moves, visits))
        if self.fail is not None:
            raise self.fail
        if not moves:
            return Decision(None)
        resign = self.resign_at is not None and game.ply >= self.resign_at
        after = game.copy()
        after.play(moves[0])
        answer = min(after.legal_moves(), default=None)
        return Decision(moves[0], resign, ponder=answer, report=self._report(game, moves, visits + 1))

    def _seconds(self, request: Request[ShogiGame]) -> float:
        limit = request.limits.seconds
        return self.seconds if limit is None else min(self.seconds, limit)

    def _report(self, game: ShogiGame, moves: Sequence[int], visits: int) -> SearchReport:
        reports = tuple(MoveReport(move, visits, 0.75 - 0.125 * min(i, 3), pv=(move,)) for i, move in enumerate(moves))
        return SearchReport(
            game.side_to_move,
            seconds=0.25,
            visits=16 * visits,
            playouts=16 * visits,
            moves=reports,
            deepest=2,
            fullness=0.125,
            unit="nodes",
        )

    def find_mate(self, request: Request[ShogiGame]) -> MateAnswer:
        with self._inside:
            changed = threading.Event()
            request.listen(changed.set)
            if not request.is_stopped:
                changed.wait(self._seconds(request))
            return self.mate

    def new_game(self, game: ShogiGame) -> None:
        assert not self._inside.locked()
        self.calls.append("new_game")

    def clear(self) -> None:
        assert not self._inside.locked()
        self.calls.append("clear")

    def close(self) -> None:
        self.calls.append("close")
