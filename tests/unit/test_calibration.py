"""The fastest way to search is found; it is used where options leave it open, for its network, size and machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from yomi.engine import calibration
from yomi.engine.calibration import tune
from yomi.engine.evaluators.base import EvaluatorError, Fault
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.players import setup as go_setup
from yomi.engine.options import Options, Value
from yomi.engine.players import setup
from yomi.engine.players.setup import TUNED, Tuning, load_tuning, save_tuning, tuned
from yomi.engine.registry import GAMES, GO
from yomi.engine.search.search import Search
from yomi.engine.shogi.players import setup as shogi_setup

CHOICE: dict[str, Value] = {
    "device": "cpu",
    "backend": "native",
    "precision": "fp32",
    "batch_size": 16,
    "workers": 3,
    "batches_in_flight": 1,
}


class Silent(UniformEvaluator):
    """An evaluator of the options. `made` and `closed` list those of a test."""

    made: ClassVar[list[Silent]] = []
    closed: ClassVar[list[Silent]] = []

    def __init__(self, options: Options) -> None:
        super().__init__(options.batch_size or 4)
        self.precision = "int16" if options.precision == "auto" and options.backend == "native" else "fp32"
        self.backend = options.backend
        self.made.append(self)

    def close(self) -> None:
        self.closed.append(self)


def make_queue(options: Options, *_: Any, **how: Any) -> InlineQueue:
    if options.device != "cpu":
        raise EvaluatorError(f"device {options.device}: no GPU")
    return InlineQueue(Silent(options))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Silent.made.clear()
    Silent.closed.clear()
    for module in (go_setup, shogi_setup):
        monkeypatch.setattr(module, "make_queue", make_queue)
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.bin.gz"
    path.write_bytes(b"a network")
    return path


def test_a_choice_is_kept_and_used(net: Path) -> None:
    options = Options(net=str(net), visits=5)
    assert tuned(options, "go", 9) is options
    save_tuning(net, 9, Tuning(CHOICE, 1234.5))
    assert load_tuning(net, 9) == Tuning(CHOICE, 1234.5)
    chosen = tuned(options, "go", 9)
    assert {name: chosen.get(name) for name in CHOICE} == CHOICE
    assert chosen.visits == 5
    assert options.workers is None


def test_a_choice_is_for_one_size_network_and_machine(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tuning(net, 9, Tuning(CHOICE, 1.0))
    assert load_tuning(net, 13) is None
    other = tmp_path / "other.bin.gz"
    other.write_bytes(b"another network")
    assert load_tuning(other, 9) is None
    renamed = tmp_path / "renamed.bin.gz"
    renamed.write_bytes(net.read_bytes())
    assert load_tuning(renamed, 9) is not None
    monkeypatch.setattr(setup, "machine_facts", lambda: {"processor": "another", "cores": 64})
    assert load_tuning(net, 9) is None


@pytest.mark.parametrize(("name", "value"), [("workers", 1), ("precision", "fp32"), ("device", "cpu")])
def test_what_the_user_chose_stands(net: Path, name: str, value: Value) -> None:
    save_tuning(net, 9, Tuning(CHOICE, 1.0))
    options = Options(net=str(net))
    options.set(name, value)
    assert tuned(options, "go", 9) is options


def test_without_a_network_nothing_is_tuned(tmp_path: Path) -> None:
    options = Options(evaluator="rollouts")
    assert tuned(options, "go", 9) is options
    missing = Options(net=str(tmp_path / "missing.bin.gz"))
    assert tuned(missing, "go", 9) is missing


@pytest.mark.parametrize("damage", ["{", "[]", '{"choice": {}}', "workers"])
def test_a_damaged_file_is_named_and_left_out(
    net: Path, cache: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_tuning(net, 9, Tuning(CHOICE, 1.0))
    if damage == "workers":
        data = json.loads(path.read_text())
        data["choice"]["workers"] = -1
        damage = json.dumps(data)
    path.write_text(damage)
    for _ in range(3):  # players ask at every move
        assert load_tuning(net, 9) is None
    assert caplog.text.count(f"{path} cannot be used") == 1
    path.write_text(f"{damage} ")
    assert load_tuning(net, 9) is None
    assert caplog.text.count(f"{path} cannot be used") == 2


def test_a_choice_reads_as_flags() -> None:
    assert str(Tuning(CHOICE, 1234.5)) == (
        "--device cpu --backend native --precision fp32 --batch-size 16 --workers 3 --batches-in-flight 1 "
        "(1,234 evaluations/s)"
    )


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_the_fastest_way_is_found(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With evaluators that say nothing, and rates that are made up: fp32, 8 rows and 3 workers are fastest."""
    fault = Fault("not here", "buy one")
    monkeypatch.setattr(calibration, "find_fault", lambda kind: None if kind == "tensorrt" else fault)

    def counts(search: Search, position: Any, seconds: float) -> dict[str, float]:
        evaluator = search.queue.evaluator
        assert isinstance(evaluator, Silent)
        search.set_position(position)
        rate = 1000.0 * (evaluator.precision == "fp32") + 100.0 * (evaluator.batch_size == 8)
        return {"evaluations_per_second": rate + 50.0 * (search.settings.workers == 3)}

    for module in (calibration, setup):
        monkeypatch.setattr(module, "usable_cores", lambda: 3)
    monkeypatch.setattr(calibration, "search_counts", counts)
    said: list[str] = []
    options = Options.for_game(game)
    options.net, options.size, options.memory = "net.bin.gz", 5, 2**24
    found, rows = tune(options, GAMES[game], 0.1, said.append)
    assert found.choice == {
        "device": "cpu",
        "backend": "native",
        "precision": "fp32",
        "batch_size": 8,
        "workers": 3,
        "batches_in_flight": 1,
    }
    assert found.evaluations_per_second == 1150.0
    assert {tuple(row) for row in rows} == {(*TUNED, "evaluations_per_second")}
    assert {(row["backend"], row["precision"]) for row in rows} == {
        ("native", "int16"),
        ("native", "fp32"),
        ("onnx", "fp32"),
    }
    assert "tensorrt, tensorrt, auto: device tensorrt: no GPU" in said
    assert not any("rtx" in line for line in said)
    assert len(Silent.closed) == 4 + 6 + 2


def test_what_fails_while_it_is_measured_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: dict[tuple[str, str, int], int] = {}

    def counts(search: Search, position: Any, seconds: float) -> dict[str, float]:
        evaluator = search.queue.evaluator
        assert isinstance(evaluator, Silent)
        way = evaluator.backend, evaluator.precision, evaluator.batch_size
        searches[way] = searches.get(way, 0) + 1
        if evaluator.backend == "onnx":
            raise RuntimeError("the session is broken")
        if evaluator.batch_size == 32 and searches[way] == 4:
            raise RuntimeError("out of memory")
        return {"evaluations_per_second": 10.0 * evaluator.batch_size + 100.0 * (evaluator.precision == "fp32")}

    monkeypatch.setattr(calibration, "usable_cores", lambda: 1)
    monkeypatch.setattr(calibration, "search_counts", counts)
    said: list[str] = []
    found, rows = tune(Options(net="net.bin.gz", size=5, memory=2**24, device="cpu"), GO, 0.1, said.append)
    assert (found.choice["backend"], found.choice["batch_size"]) == ("native", 16)
    assert {row["batch_size"] for row in rows} == {1, 2, 4, 8, 16}
    failures = [line for line in said if "evaluations/s" not in line]
    assert [line.rpartition(": ")[2] for line in failures] == 2 * ["the session is broken"] + ["out of memory"]
    assert "backend native, precision fp32, batch_size 32, workers 1" in failures[-1]
    assert len(Silent.closed) == 4 + 6 + 1


@pytest.mark.parametrize("game", ["go", "shogi"])
@pytest.mark.parametrize("fails", ["search_settings", "Search"])
def test_what_was_started_is_closed_where_setting_up_fails(
    fails: str, game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: Any) -> Any:
        raise MemoryError

    setup = go_setup if game == "go" else shogi_setup
    monkeypatch.setattr(calibration if fails == "Search" else setup, fails, too_much)
    with pytest.raises(MemoryError):
        tune(Options(net="net.bin.gz", size=5, device="cpu"), GAMES[game], 0.1, lambda line: None)
    assert len(Silent.made) == 1
    assert Silent.closed == Silent.made


def test_no_way_to_compute_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> Any:
        raise EvaluatorError("no onnxruntime")

    monkeypatch.setattr(go_setup, "make_queue", none)
    with pytest.raises(EvaluatorError, match="no backend can compute this network on this machine"):
        tune(Options(net="net.bin.gz", size=5), GO, 0.1, lambda line: None)
