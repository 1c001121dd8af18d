"""Tables of a training, damaged ones, and the picture of their curves."""

from pathlib import Path
from typing import Any

import pytest

from yomi.nets.training.progress import CsvLog, plot_curves, read_log

NAMES = ("learning_rate", "total", "policy", "hints")


def table(path: Path) -> CsvLog:
    log = CsvLog(path, NAMES, 0)
    for step in (50, 100, 150):
        log.add(step, {"learning_rate": 0.01, "total": 3.0 - step / 100, "policy": 2.0})
    return log


@pytest.mark.parametrize(
    "damage", [bytes(200_000), b"175,0.0", b"\xff\xfe,1,2,3,4\n", b"200,x,1,1,\n", b"250,1,1,1,,9\n"]
)
def test_damaged_rows_are_left_out(tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "train.csv"
    table(path)
    path.write_bytes(path.read_bytes() + damage)
    assert [row["step"] for row in read_log(path)] == ["50", "100", "150"]
    assert "train.csv: 1 damaged rows left out" in caplog.text
    log = CsvLog(path, NAMES, 100)
    log.add(150, {"total": 1.0})
    assert [row["step"] for row in read_log(path)] == ["50", "100", "150"]


def test_a_damaged_head_leaves_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    table(path)
    path.write_bytes(bytes(40) + path.read_bytes()[40:])
    CsvLog(path, NAMES, 100).add(150, {"total": 1.0})
    assert [row["step"] for row in read_log(path)] == ["150"]


def test_the_picture_has_only_curves_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    drawn: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: drawn.append(figure))
    table(tmp_path / "train.csv")
    plot_curves(tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "curves.png")
    (figure,) = drawn
    assert [axes.get_title() for axes in figure.axes] == ["train: learning_rate", "train: total", "train: policy"]
    assert all(len(axes.lines[0].get_xdata()) == 3 for axes in figure.axes)
