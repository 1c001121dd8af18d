"""An analyst without a search, and a session of the analysis protocol without threads: lines in, lines out."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tests.fakes.player import FakePlayer
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.analysis.fields import Settings
from yomi.engine.go.analysis.session import Session
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.setup import Analysis, check_profile
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.search.types import Owners


class FakeAnalyst:
    """Makes its analyses up as FakePlayer does.

    A query of more than 1,000 visits goes on until it is stopped. `requests` records what was asked for.
    """

    def __init__(self) -> None:
        self.requests: list[Request[GoGame]] = []
        self.began = threading.Event()
        self.calls: list[str] = []
        self._player = FakePlayer(Options(size=9))

    setup_line = "fake"
    models = (
        {
            "name": "fake",
            "internalName": "fake",
            "maxBatchSize": 4,
            "usesHumanSLProfile": False,
            "version": 8,
            "usingFP16": "false",
        },
    )

    def analyze(
        self, request: Request[GoGame], on_report: Callable[[Analysis], None], *, all_owners: bool = False
    ) -> Analysis:
        self.requests.append(request)
        options, player = request.options, self._player
        assert options is not None
        report = player.decide(Request(request.game, avoid=request.avoid, allow=request.allow)).report
        raw = player.evaluate(request.game, 0)
        if all_owners and report.ownership is not None:
            half = np.float32(0.5) * report.ownership
            owners = Owners(half, np.abs(half), 0.25)
            moves = tuple(replace(move, owners=owners) for move in report.moves)
            report = replace(report, moves=moves, ownership_stdev=np.abs(report.ownership))
        analysis = Analysis(report, raw.policy, raw)
        if request.first_report is not None:
            on_report(analysis)
        if (options.visits or 0) > 1000:
            self.began.set()
            assert request.wait(60)
        return analysis

    def check_profile(self, options: Options) -> None:
        check_profile(options, UniformEvaluator())

    def raise_visits(self, goals: Mapping[int, int]) -> None:
        self.calls.append(f"raise_visits {dict(goals)}")

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
        self.loaded.set()
        self._analysts = [self.fake]

    def send(self, line: str | bytes) -> str:
        self.written.clear()
        self.handle(line if isinstance(line, bytes) else line.encode())
        while self._waiting:
            task = self._take(0)
            assert task is not None
            self._analyze(self.fake, task)
            del self._running[0]
        return "".join(self.written)
