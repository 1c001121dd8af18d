"""Devices that fail at random moments of a game: the game continues with legal moves and in time."""

import os
import random
import threading
import time
from typing import Any

import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from yomi.engine.evaluators.base import DeviceLostError
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.game import Game
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.go.players import player as go_player
from yomi.engine.options import Options
from yomi.engine.shogi.descriptor import GAME as SHOGI
from yomi.engine.shogi.players import player as shogi_player
from yomi.native.tree.arrays import Batch

FAULTS = ("lost", "memory", "nan", "hang", "driver")
GAMES = 20 if os.environ.get("YOMI_EVERY_STATE") else 4  # of each fault
MOVES, VISITS = 8, 24
HANG, HANGS = 0.2, 1.0  # seconds: after which a device is given up, and that it hangs
IN_TIME = 300.0  # seconds for a move on a busy machine; a lost game would wait for ever


class Plan:
    """One fault, at call number `moment` of all devices together."""

    def __init__(self, fault: str, moment: int) -> None:
        self.fault = fault
        self.moment = moment
        self.calls = 0
        self.has_failed = False
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Count a call, and return whether it fails."""
        with self._lock:
            self.calls += 1
            if self.calls != self.moment:
                return False
            self.has_failed = True
            return True


class Device(ScriptedEvaluator):
    """A device that follows a plan. With the fault "driver" it cannot be set up again after its failure."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(batch_size=4)
        if plan.has_failed and plan.fault == "driver":
            raise RuntimeError("the driver is gone")
        self.plan = plan

    def evaluate(self, batch: Batch, rows: int) -> None:
        fails = self.plan.is_due()
        fault = self.plan.fault
        if fails and fault == "lost":
            raise DeviceLostError("the device is lost")
        if fails and fault in ("memory", "driver"):
            raise RuntimeError("out of memory")
        if fails and fault == "hang":
            time.sleep(HANGS)
        super().evaluate(batch, rows)
        if fails and fault == "nan":
            batch.values[rows - 1, 0] = float("nan")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("game", [GO, SHOGI], ids=lambda game: game.name)
def test_a_fault_at_any_moment_of_a_game(game: Game[Any, Any], fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(f"{game.name} {fault}")
    options = Options.for_game(game.name)
    options.evaluator, options.size, options.workers, options.memory = "uniform", 9, 1, 2**22
    options.visits, options.batches_in_flight, options.seed = VISITS, 2, 1
    failed = 0
    for _ in range(GAMES):
        plan = Plan(fault, rng.randint(1, MOVES * VISITS // 6))
        queues: list[EvaluationWorkers] = []

        def make_queue(*_: object, plan: Plan = plan, queues: list[EvaluationWorkers] = queues) -> EvaluationWorkers:
            queues.append(EvaluationWorkers([lambda: Device(plan)] * 2, hang=HANG))
            return queues[-1]

        for module in (go_player, shogi_player):
            monkeypatch.setattr(module, "make_queue", make_queue)
        player = game.make_player(options)
        state = game.new_game(options)
        for _ in range(MOVES):
            begin = time.monotonic()
            decision = player.choose(state)
            assert time.monotonic() - begin < IN_TIME
            assert all(0.0 <= move.winrate <= 1.0 for move in decision.report.moves)
            assert decision.move is not None
            state.push(decision.move)  # refuses illegal moves
        player.close()
        failed += plan.has_failed
    assert failed >= GAMES // 2, "the moments are those of a game"
