"""A small run, cut at every moment: the same command continues from each state that the disk may be in.

Every eleventh state is replayed, of all four kinds in turn. With YOMI_EVERY_STATE=1 in the environment all are, in some
minutes.
"""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.power_cut import Recorder, restore, states
from tests.unit.test_learning_store import KATAGO, played
from yomi.engine.learning.loop import Goal, Loop
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.spool import SelfPlayGame
from yomi.engine.learning.store import Store
from yomi.engine.learning.workers import Delivery, Task
from yomi.engine.options import Options
from yomi.engine.registry import GAMES
from yomi.nets.data.shards import Dataset, check_shard
from yomi.nets.files import write_atomically
from yomi.settings import make_settings

SETTINGS = make_settings(LearnSettings, {"rows": 6, "window": 12, "ladder": 0, "keep": 1000.0})


class Players:
    """Deliver games of three rows, whose values are their numbers."""

    def __init__(self, store: Store, note: Callable[[SelfPlayGame], None]) -> None:
        self._number, self._note = store.rows // 3, note

    def use(self, task: Task) -> None:
        """Play with a network that is there."""
        assert task.options.net is None or Path(task.options.net).exists()

    def take(self, seconds: float) -> list[Delivery]:
        """Return the next game."""
        game = played(self._number)
        self._number += 1
        self._note(game)
        return [Delivery([game], 1)]

    def close(self) -> None:
        """Do nothing."""


class Learner:
    """Makes networks whose content is their number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def first(self) -> Path:
        """Write network 0."""
        return self._write(0)

    def run(
        self, dataset: Dataset, generation: int, rows: int, before: int, steps: int, progress: Any
    ) -> tuple[Path, int]:
        """Read all rows, and write a checkpoint and a network."""
        for shard in dataset.shards:
            check_shard(shard, KATAGO, 26)
        progress(steps, {"total": 1.0, "seconds": 1.0})
        write_atomically(self._folder / "checkpoint.pt", str(steps).encode(), sync=True)
        return self._write(generation), dataset.rows("train")

    def _write(self, generation: int) -> Path:
        self._folder.mkdir(exist_ok=True)
        path = self._folder / "net.bin.gz"
        write_atomically(path, f"network {generation}".encode())
        return path


def learn(folder: Path, networks: int, note: Callable[[SelfPlayGame], None] = lambda game: None) -> Store:
    """Do what the command does, up to a number of networks."""
    game, options = GAMES["go"], Options(size=5)
    store = Store(folder, {"game": "go", "size": 5, "window": 12}, frozenset(), "katago-v7", ".sgf")
    players = Players(store, note)
    learner = Learner(folder / "train")
    Loop(game, options, SETTINGS, store, players, lambda: learner, print, beside=False).run(Goal(generations=networks))
    return store


@pytest.mark.early
@pytest.mark.slow
def test_every_state_that_a_power_cut_leaves_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        recorder = Recorder(tmp_path / "run", patch)
        learn(tmp_path / "run", 2, lambda game: recorder.scan())
        recorder.scan()
        recorder.close()
    monkeypatch.setattr("os.fsync", lambda descriptor: None)  # the replays may be lost
    monkeypatch.setattr("yomi.engine.learning.loop.start_facts", dict)  # starts git
    every, folder = list(states(recorder.events)), tmp_path / "cut"
    assert len(every) > 900
    for tree in every if os.environ.get("YOMI_EVERY_STATE") else every[::11]:
        restore(tree, folder)
        store = learn(folder, 3)
        assert store.state.generation == 3
        assert (store.folder / "networks" / f"{store.state.network}.bin.gz").read_bytes() == b"network 3"
        numbers = [round(64 * float(value)) for shard in store.dataset.shards for value in shard.open()["value"]]
        assert sorted(set(numbers)) == sorted(numbers[::3]), "a game is there twice, or in parts"
        shutil.rmtree(folder)
    told = {record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING}
    assert all("pending-05.rows: " in line for line in told), "state.json names what was not flushed before it"
