"""`yomi dataset` and `yomi train` as commands."""

import errno
import importlib.util
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.naive.katago_networks import RandomNetworks
from tests.unit.command_lines import error_of
from yomi.engine.cli.main import main
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.sgf import to_sgf
from yomi.nets.data.shards import check_columns, check_rows, open_dataset
from yomi.nets.errors import NetworkError
from yomi.nets.katago.write import write_network
from yomi.nets.training.config import read_config
from yomi.nets.training.progress import can_plot

CONFIG = """
[network]
kind = "go"
name = "tiny"
blocks = 1
channels = 8
pooled = 4
pooling_blocks = []
head = 4
hidden = 8
[data]
folders = ["set"]
[training]
steps = 4
batch = 8
threads = 1
"""


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder with a data set of two games, labelled by a network, and a configuration."""
    records = tmp_path / "games"
    records.mkdir()
    for number, corner in enumerate((9, 12)):
        game = GoGame(square(7), PRESETS["chinese"])
        for move in range(corner, corner + 24):
            if game.is_legal(game.side_to_move, move):
                game.play(game.side_to_move, move)
        (records / f"{number}.sgf").write_text(to_sgf(game, result="B+R"))
    net = tmp_path / "net.bin"
    net.write_bytes(write_network(RandomNetworks(8).network(["ordinary"])))
    (tmp_path / "go.toml").write_text(CONFIG)
    words = ["dataset", "make", str(records), "--out", str(tmp_path / "set"), "--min-moves", "5", "--test-share", "0.5"]
    assert main([*words, "--teacher", str(net), "--device", "cpu", "--precision", "fp32", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "train 7x7" in out
    assert "test 7x7" in out
    return tmp_path


def test_the_speed_of_training_and_of_its_data(made: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra train)")
    assert main(["bench", "train", str(made / "go.toml"), "--for", "0.01", "--json", str(made / "speed.json")]) == 0
    (row,) = json.loads((made / "speed.json").read_text(encoding="utf-8"))["results"]
    assert row["positions_per_second"] == pytest.approx(8 * row["loop_steps_per_second"])
    assert row["ratio"] == pytest.approx(row["loop_steps_per_second"] / row["bare_steps_per_second"])
    assert row["loader_positions_per_second"] > 0.0


def test_data_sets_are_checked_and_described(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "check", str(made / "set")]) == 0
    assert "shards whole" in capsys.readouterr().out
    assert main(["dataset", "describe", str(made / "set")]) == 0
    assert "katago-v7" in capsys.readouterr().out
    assert main(["train", "test", str(made / "net.bin"), str(made / "set"), "--device", "cpu"]) == 0
    table = capsys.readouterr().out
    assert main(["train", "test", str(made / "net.bin"), str(made / "set"), "--device", "cpu", "--limit", "10"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["positions", "10"]
    # A network tested on its own labels: all that differs is the symmetry that each position was labelled under.
    assert "policy accuracy" in table
    assert "ownership error" in table


def test_errors_are_one_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make = ("dataset", "make", str(made / "games"), "--out", str(made / "b"))
    cases = {
        ("dataset", "check", str(made)): "expected a data set",
        (*make, "--test-share", "2"): "from 0 to 0.9",
        (*make, "--features", "dlshogi-62-57", "--score-scale", "soft"): "expected 50 to 20000 centipawns, or fit",
        (*make, "--features", "dlshogi-62-57"): "no records",
        (*make, "--rating", "9"): "--rating is an option for shogi: remove it",
        ("dataset", "convert", str(made / "net.bin"), str(made / "a.csv")): "expected a name that ends in",
        ("train", "test", str(made / "net.bin")): "expected yomi train test NET DATA",
        ("train", "test", str(made / "net.bin"), str(made / "set"), "--limit", "-1"): "an integer of at least 0",
        ("train", str(made / "none.toml")): "expected a configuration",
        ("train", str(made / "go.toml"), "--steps", "-3"): "--steps: expected an integer of at least 1",
    }
    for words, message in cases.items():
        assert message in error_of(capsys, *words)


def test_without_pytorch_training_says_what_to_install(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "training needs torch, which is not installed: " in error_of(capsys, "train", str(made / "go.toml"))


def test_training_from_the_command_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra train)")
    out = made / "run"
    assert main(["train", str(made / "go.toml"), "--out", str(out), "--device", "cpu", "--steps", "2"]) == 0
    assert not (out / "tiny.bin.gz").exists()
    assert main(["train", str(made / "go.toml"), "--out", str(out), "--device", "cpu"]) == 0
    assert "tiny.bin.gz" in capsys.readouterr().out
    assert (out / "curves.png").is_file() == can_plot()
    assert main(["train", "test", str(out / "tiny.bin.gz"), str(made / "set"), "--device", "cpu"]) == 0
    assert "value accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_keeps_what_it_has_done(
    number: int, made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra train)")
    from yomi.nets.training.loop import Trainer

    learn = Trainer.train_step

    def train_step(self: Trainer, example: Any) -> Any:
        if self.step == 1:
            signal.raise_signal(number)
        return learn(self, example)

    before = signal.getsignal(number)
    words = ["train", str(made / "go.toml"), "--out", str(made / "run"), "--device", "cpu"]
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "train_step", train_step)
        assert main(words) == 128 + number
    assert signal.getsignal(number) is before
    error = capsys.readouterr().err
    assert "stopping after this step" in error
    assert f"stopped after step 2, stored in {made / 'run' / 'checkpoint.pt'}: the same command continues" in error
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "from step 2 to 4" in captured.err
    assert "tiny.bin.gz" in captured.out


def test_a_damaged_checkpoint_is_never_to_be_loaded_unsafely(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra train)")
    path = made / "run" / "checkpoint.pt"
    path.parent.mkdir()
    path.write_bytes(b"\x80\x02}q\x00(X\x04\x00\x00\x00stepcposix\nsystem\nq\x01u.")
    assert main(["train", str(made / "go.toml"), "--out", str(path.parent), "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert f"{path}: a damaged file or one of another kind found, expected a checkpoint of format 1" in error
    assert "weights_only" not in error


def test_a_full_disk_names_the_checkpoint(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch (extra train)")

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    assert main(["train", str(made / "go.toml"), "--out", str(made / "run"), "--device", "cpu"]) == 2
    assert f"error: {made / 'run' / 'checkpoint.pt'}: No space left on device\n" in capsys.readouterr().err


def test_rows_of_another_size_are_refused(made: Path) -> None:
    dataset = open_dataset(made / "set")
    features = dataset.manifest.feature_set
    check_rows(dataset, "go", features, 0)
    check_rows(dataset, "cosumi-residual", features, 7)
    with pytest.raises(NetworkError, match=r"set: rows of 7x7 boards found, expected 19x19 .* network\.board_size = 7"):
        check_rows(dataset, "cosumi-residual", features, 19)


def test_rows_of_other_planes_are_refused(made: Path) -> None:
    expected = f"{made / 'set'}: feature set katago-v7 found, expected cosumi-3 for network cosumi-residual: set "
    with pytest.raises(NetworkError, match=re.escape(expected)):
        check_rows(open_dataset(made / "set"), "cosumi-residual", "cosumi-3", 7)


def test_settings_of_labels_that_no_row_has_are_refused(made: Path) -> None:
    datasets = [open_dataset(made / "set")]

    def check(*sets: str) -> None:
        check_columns(datasets, read_config(made / "go.toml", sets).needed_columns())

    check()
    check("loss.lead=0.5", "loss.ownership=0.0", "loss.points=0.3")
    for setting, column in (
        ("data.search_value = 0.5", "search_value"),
        ("data.label_decay = linear", "progress"),
        ("loss.short_value_error = 0.1", "short_value"),
        ("data.symmetries = stored", "symmetry"),
    ):
        text = f"{made / 'set'}: rows without {column} found, expected it for {setting}: remove that setting, or use "
        with pytest.raises(NetworkError, match=re.escape(text)):
            check(re.sub(r" = ([a-z]+)", r"='\1'", setting).replace(" ", ""))
