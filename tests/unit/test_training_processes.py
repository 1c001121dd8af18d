"""Training by several processes: on a tiny network, by gloo."""

import dataclasses
import multiprocessing
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (extra train)")

from tests.unit.test_training import config_of, make_set, quietly  # noqa: E402
from yomi.nets.errors import NetworkError  # noqa: E402
from yomi.nets.training import loop, processes  # noqa: E402
from yomi.nets.training.loop import Trainer  # noqa: E402
from yomi.nets.training.processes import started  # noqa: E402
from yomi.nets.training.progress import read_log  # noqa: E402
from yomi.nets.training.weights import load_checkpoint  # noqa: E402


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(loop, "can_plot", lambda: False)
    make_set(tmp_path / "set", "katago-v7")  # some owners are unknown: not as many in either part of a batch
    training = {"steps": 6, "average": "ema", "precision": "fp32", "threads": 1, "loaders": 2}
    return config_of(tmp_path, training)


def test_two_processes_learn_what_one_does(config: Any, tmp_path: Path) -> None:
    folders = tmp_path / "whole", tmp_path / "parts"
    for stop in (2, 5, 6):
        Trainer(config, folders[0]).run(quietly, stop)
    Trainer(config, folders[1]).run(quietly, 2)
    with started(2, config, folders[1], "cpu", 6) as group:
        pair = Trainer(config, folders[1], "cpu", group=group)
        assert (pair.step, group.rank, group.count) == (2, 0, 2)
        pair.run(quietly, 6, lambda: pair.step == 5)  # as a signal does, which stops both
    assert pair.step == 5
    Trainer(config, folders[1]).run(quietly)  # alone again
    states = [load_checkpoint(folder / "checkpoint.pt") for folder in folders]
    for kind in ("network", "average"):
        for name, value in states[0][kind].items():
            torch.testing.assert_close(states[1][kind][name], value, rtol=1e-4, atol=1e-6)
    tables = [read_log(folder / "train.csv") for folder in folders]
    for whole, parts in zip(*tables, strict=True):
        for name in ("step", "total", "policy", "value", "score_mean", "ownership"):
            assert float(parts[name]) == pytest.approx(float(whole[name]), rel=1e-4)


def test_the_loss_of_a_process_is_told(config: Any, tmp_path: Path) -> None:
    broken = dataclasses.replace(config, folder=tmp_path / "nowhere")
    with (
        pytest.raises(NetworkError, match=r"a process of the training is lost: NetworkError: .*nowhere.* expected"),
        started(2, broken, tmp_path / "run", "cpu", 6) as group,
    ):
        group.any(False)


def test_a_process_that_ends_late_is_reported() -> None:
    link, other = multiprocessing.Pipe()
    sentinel, end = multiprocessing.Pipe(duplex=False)
    process = SimpleNamespace(sentinel=sentinel, exitcode=None, join=lambda seconds: None)

    def finish() -> None:
        process.exitcode = 1
        other.send("OSError: no data")
        end.close()

    threading.Timer(0.2, finish).start()  # its connection broke before
    assert processes._lost([link], [process]) == "OSError: no data"


def test_a_process_without_an_exit_code_yet_is_reported() -> None:
    link, other = multiprocessing.Pipe()
    sentinel, end = multiprocessing.Pipe(duplex=False)
    process = SimpleNamespace(sentinel=sentinel, exitcode=None)
    process.join = lambda seconds: setattr(process, "exitcode", 1)
    other.send("OSError: no data")
    end.close()
    assert processes._lost([link], [process]) == "OSError: no data"
