"""What was tuned is used where options leave it open, for the network, size and machine that it was tuned on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.options import Options, Value
from engine.players import tuning
from engine.players.tuning import Tuning, load, save, tuned

CHOICE: dict[str, Value] = {
    "device": "cpu",
    "backend": "native",
    "precision": "fp32",
    "batch_size": 16,
    "workers": 3,
    "batches_in_flight": 1,
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.bin.gz"
    path.write_bytes(b"a network")
    return path


def test_a_choice_is_kept_and_used(net: Path) -> None:
    options = Options(net=str(net), visits=5)
    assert tuned(options, 9) is options
    save(net, 9, Tuning(CHOICE, 1234.5))
    assert load(net, 9) == Tuning(CHOICE, 1234.5)
    chosen = tuned(options, 9)
    assert {name: chosen.get(name) for name in CHOICE} == CHOICE
    assert chosen.visits == 5
    assert options.workers is None


def test_a_choice_is_for_one_size_network_and_machine(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(net, 9, Tuning(CHOICE, 1.0))
    assert load(net, 13) is None
    other = tmp_path / "other.bin.gz"
    other.write_bytes(b"another network")
    assert load(other, 9) is None
    renamed = tmp_path / "renamed.bin.gz"
    renamed.write_bytes(net.read_bytes())
    assert load(renamed, 9) is not None
    monkeypatch.setattr(tuning, "machine", lambda: {"processor": "another", "cores": 64})
    assert load(net, 9) is None


@pytest.mark.parametrize(("name", "value"), [("workers", 1), ("precision", "fp32"), ("device", "cpu")])
def test_what_the_user_chose_stands(net: Path, name: str, value: Value) -> None:
    save(net, 9, Tuning(CHOICE, 1.0))
    options = Options(net=str(net))
    options.set(name, value)
    assert tuned(options, 9) is options


def test_without_a_network_nothing_is_tuned(tmp_path: Path) -> None:
    options = Options()
    assert tuned(options, 9) is options
    missing = Options(net=str(tmp_path / "missing.bin.gz"))
    assert tuned(missing, 9) is missing


@pytest.mark.parametrize("damage", ["{", "[]", '{"choice": {}}', "workers"])
def test_a_damaged_file_is_named_and_left_out(
    net: Path, cache: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = save(net, 9, Tuning(CHOICE, 1.0))
    if damage == "workers":
        data = json.loads(path.read_text())
        data["choice"]["workers"] = -1
        damage = json.dumps(data)
    path.write_text(damage)
    assert load(net, 9) is None
    assert f"{path} cannot be used" in caplog.text


def test_a_choice_reads_as_flags() -> None:
    assert str(Tuning(CHOICE, 1234.5)) == (
        "--device cpu --backend native --precision fp32 --batch-size 16 --workers 3 --batches-in-flight 1 "
        "(1,234 evaluations/s)"
    )
