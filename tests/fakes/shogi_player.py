"""A player of shogi without a search and without kernels, for tests of the protocol."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence

from engine.games.shogi.moves import board_move, drop
from engine.games.shogi.notation import parse_usi
from engine.games.shogi.pieces import HAND_TYPES, color_of
from engine.games.shogi.placement import Placement
from engine.games.shogi.sfen import format_sfen, parse_sfen
from engine.options import Options
from engine.players.shogi_base import Line, LoadingError, MateAnswer, Progress, ShogiDecision, Task

STARTPOS = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"


@functools.cache
def legal_moves(placement: Placement) -> list[int]:
    """Return the legal moves (drop-pawn mates included) in a fixed order."""
    own = [
        square
        for square in range(81)
        if placement.board[square] and color_of(placement.board[square]) == placement.side
    ]
    moves = [board_move(source, target, plus) for source in own for target in range(81) for plus in (False, True)]
    hand = placement.hands[placement.side - 1]
    moves += [drop(kind, target) for kind, count in zip(HAND_TYPES, hand, strict=True) if count for target in range(81)]
    return [move for move in moves if placement.why_not(move) is None]


class FakeShogiPlayer:
    """Plays the first legal move after `seconds`, or when it is stopped.

    Args:
        options: settings.
        seconds: how long a move takes; a task that ponders or is infinite takes as long.
        load_seconds: how long loading takes.
        error: what loading ends with.
        fail: raised while thinking.
    """

    description = "fake"

    def __init__(
        self,
        options: Options | None = None,
        seconds: float = 0.0,
        load_seconds: float = 0.0,
        error: str | None = None,
        fail: Exception | None = None,
    ) -> None:
        self.options = options or Options.for_game("shogi")
        self.seconds = seconds
        self.load_seconds = load_seconds
        self.error = error
        self.fail = fail
        self.calls: list[str] = []
        self.tasks: list[Task] = []
        self.loaded_net: str | None = "nothing yet"
        self.placement = parse_sfen(STARTPOS)
        self.mate: MateAnswer | None = MateAnswer()
        self._inside = threading.Lock()

    @property
    def needs_loading(self) -> bool:
        return self.options.net != self.loaded_net

    def load(self) -> None:
        self.calls.append("load")
        time.sleep(self.load_seconds)
        if self.error is not None:
            raise LoadingError(self.error)
        self.loaded_net = self.options.net

    def set_position(self, sfen: str, moves: Sequence[str]) -> None:
        assert not self._inside.locked(), "the game changes under a search"
        placement = parse_sfen(STARTPOS if sfen == "startpos" else sfen)
        for i, text in enumerate(moves):
            move = parse_usi(text)
            why = placement.why_not(move)
            if why is not None:
                raise ValueError(f"illegal move {i + 1} {text}: {why}")
            placement = placement.after(move)
        self.placement = placement

    def think(self, task: Task, on_report: Callable[[Progress], None]) -> ShogiDecision:
        with self._inside:
            return self._think(task, on_report)

    def _think(self, task: Task, on_report: Callable[[Progress], None]) -> ShogiDecision:
        self.tasks.append(task)
        changed = threading.Event()
        task.on_change = changed.set
        moves = [move for move in legal_moves(self.placement) if task.moves is None or move in task.moves]
        seconds = self.seconds if task.limits.seconds is None else min(self.seconds, task.limits.seconds)
        begin = time.monotonic()
        visits = 0
        while not task.is_stopped and (left := begin + seconds - time.monotonic()) > 0:
            if changed.wait(min(left, self.options.report_interval)):
                changed.clear()
                continue
            visits += 1
            on_report(self._progress(moves, visits))
        if self.fail is not None:
            raise self.fail
        if not moves:
            return ShogiDecision(None)
        after = legal_moves(self.placement.after(moves[0]))
        return ShogiDecision(moves[0], ponder=after[0] if after else None, progress=self._progress(moves, visits + 1))

    def _progress(self, moves: Sequence[int], visits: int) -> Progress:
        lines = tuple(Line((move,), 0.5 - 0.125 * min(i, 3)) for i, move in enumerate(moves))
        return Progress(lines, seconds=0.25, playouts=16 * visits, seldepth=2, fullness=0.125)

    def find_mate(self, task: Task) -> MateAnswer | None:
        with self._inside:
            changed = threading.Event()
            task.on_change = changed.set
            seconds = self.seconds if task.limits.seconds is None else min(self.seconds, task.limits.seconds)
            if not task.is_stopped:
                changed.wait(seconds)
            return self.mate

    def diagram(self) -> str:
        return format_sfen(self.placement)

    def legal_moves(self) -> Sequence[int]:
        return legal_moves(self.placement)

    def new_game(self) -> None:
        assert not self._inside.locked()
        self.calls.append("new_game")

    def clear(self) -> None:
        assert not self._inside.locked()
        self.calls.append("clear")

    def close(self) -> None:
        self.calls.append("close")
