"""An analyst without a search, and a session of the analysis protocol without threads: lines in, lines out."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from engine.options import Options
from engine.players.analyst import Analysis, Assignment, Model
from engine.protocols.analysis.overrides import Settings
from engine.protocols.analysis.session import Session
from tests.fakes.player import FakePlayer


class FakeAnalyst:
    """Makes its analyses up as FakePlayer does.

    A query of more than 1,000 visits goes on until it is stopped. `assignments` records what was asked for.
    """

    def __init__(self) -> None:
        self.assignments: list[Assignment] = []
        self.began = threading.Event()
        self.calls: list[str] = []
        self._player = FakePlayer(Options(size=9))
        self._interrupted = threading.Event()

    description = "fake"
    model = Model("fake", 8, 4, "fp32")

    def analyze(self, assignment: Assignment, on_report: Callable[[Analysis], None]) -> Analysis:
        self.assignments.append(assignment)
        player, game = self._player, assignment.game
        player.game = game
        report = player.genmove(game.side_to_move, avoid=assignment.avoid, allow=assignment.allow).report
        raw = player.evaluate(0)
        owners = {move.move: np.float32(0.5) * np.float32(report.ownership) for move in report.moves}
        analysis = Analysis(report, raw.policy, raw, owners if assignment.moves_ownership else {})
        if assignment.first_report is not None:
            on_report(analysis)
        if (assignment.limits.visits or 0) > 1000:
            self._interrupted.clear()
            self.began.set()
            if not assignment.stopped.is_set():
                assert self._interrupted.wait(60)
        return analysis

    def interrupt(self) -> None:
        self.calls.append("interrupt")
        self._interrupted.set()

    def clear_cache(self) -> None:
        self.calls.append("clear_cache")

    def close(self) -> None:
        self.calls.append("close")


class ScriptedAnalysis(Session):
    """A session that answers each line in full before the next; `send` returns the lines written."""

    def __init__(self, options: Options | None = None) -> None:
        self.written: list[str] = []
        self.fake = FakeAnalyst()
        super().__init__(Settings(options or Options(visits=16, evaluator="uniform")), lambda: [], self.written.append)
        self.load()
        self._loader.join()
        self._analysts = [self.fake]

    def _load(self) -> None:
        """Start no threads."""

    def send(self, line: str | bytes) -> str:
        self.written.clear()
        self.handle(line if isinstance(line, bytes) else line.encode())
        while self._waiting:
            task = self._take(0)
            assert task is not None
            self._analyze(self.fake, task)
            del self._running[0]
        return "".join(self.written)
