"""Processes that play: what becomes of those that cannot."""

from pathlib import Path

import pytest

from engine.cli.games import GAMES
from engine.learning import workers
from engine.learning.errors import LearningError
from engine.learning.settings import make_settings
from engine.learning.workers import Processes, Task
from engine.options import Options


def take_often(processes: Processes) -> None:
    for _ in range(1000):
        processes.take(1.0)


def test_where_no_process_can_play_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "RESTART_SECONDS", 0.0)
    lost: list[str] = []
    missing = Options(size=5, evaluator="onnx", net=str(tmp_path / "missing.bin.gz"), workers=1)
    processes = Processes(1, GAMES["go"], make_settings({}), 1, lambda number, why: lost.append(why))
    try:
        processes.use(Task(missing, "missing", {}))
        with pytest.raises(LearningError, match=r"no process can play: .*missing\.bin\.gz"):
            take_often(processes)
    finally:
        processes.close()
    assert len(lost) == workers.FAILURES
