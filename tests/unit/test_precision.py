"""Fewer bits stand in for fp32 only where both agree, and the verdict is kept."""

import functools
import json
import math
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.contract.networks import load_go, load_shogi
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import CPU, Device
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.setup import make_queue as go_queue
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.options import Options
from yomi.engine.players import precision
from yomi.engine.players.precision import Agreement, compare, record, with_suitable_precision
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.setup import make_queue as shogi_queue
from yomi.native.go.spec import go_spec
from yomi.native.shogi.spec import shogi_spec
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE, Batch
from yomi.nets.files import source_digest
from yomi.nets.katago.write import write_network
from yomi.nets.metadata import NetworkInfo
from yomi.nets.models import PRECISION_DIR, default_network, network_of_levels

SPEC = go_spec(5)


def begin() -> GoGame:
    return GoGame(square(5), PRESETS["tromp-taylor"])


INFO = NetworkInfo(
    game="go",
    board_size=5,
    feature_set="katago-v7",
    name="scripted",
    source_file="scripted.bin.gz",
    source_sha256="ab" * 32,
    model_version=10,
    policy_channels=1,
    misc_channels=4,
)


class Scripted(UniformEvaluator):
    """A network whose policy and value follow from the position; `error` is added to its values."""

    info = INFO
    spec = SPEC
    device = CPU
    agreement = ""
    backend = "scripted kernels"
    is_exact = False
    fallback_reason = ""

    def __init__(self, name: str, *, error: float = 0.0, other_move_every: int = 0) -> None:
        super().__init__(1, Inputs.NUMBERS)
        self.precision = name
        self.error = error
        self.other_move_every = other_move_every
        self.is_closed = False
        self._count = 0

    def evaluate(self, batch: Batch, rows: int) -> None:
        for row in range(rows):
            self._count += 1
            weights = np.arange(batch.logits.shape[1], dtype=np.float32)
            seed = float(batch.planes[row].sum())
            logits = np.sin(weights * (seed + 1.0))
            turned = self.other_move_every and self._count % self.other_move_every == 0
            batch.logits[row] = -logits if turned else logits
            batch.values[row] = 0.0
            batch.values[row, VALUE] = np.sin(seed) * 0.5 + self.error
        batch.ownership[:rows] = 0.0

    def bind(self, batch: Batch) -> None:
        """Return None: it is Python."""

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precision, "record", functools.partial(record, positions=precision.MIN_POSITIONS))
    return tmp_path


def test_equal_evaluators_agree() -> None:
    agreement = compare(record(Scripted("fp32"), begin, precision.MIN_POSITIONS, math.inf), Scripted("int16"))
    assert agreement == Agreement(precision.MIN_POSITIONS, 1.0, 0.0)
    assert agreement.is_enough


def test_differences_are_measured() -> None:
    recorded = record(Scripted("fp32"), begin, 200, math.inf)
    agreement = compare(recorded, Scripted("int16", error=0.03, other_move_every=4))
    assert agreement.value_error == pytest.approx(0.03, abs=1e-6)
    assert agreement.same_move == pytest.approx(0.75, abs=0.02)
    assert not agreement.is_enough


def test_games_are_drawn_from_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Watching(Scripted):
        """Remembers the positions that it is asked about."""

        def evaluate(self, batch: Batch, rows: int) -> None:
            seen.extend(batch.keys[:rows].tolist())
            super().evaluate(batch, rows)

    monkeypatch.setattr(precision, "GAME_PLIES", 20)
    record(Watching("fp32"), begin, 200, math.inf)
    starts = [index for index, key in enumerate(seen) if key == seen[0]]
    assert len({tuple(seen[start : start + 20]) for start in starts}) == len(starts) >= 10
    assert len(set(seen)) > 0.9 * len(seen)


@pytest.mark.parametrize(
    ("same_move", "error", "expected"), [(0.95, 0.02, True), (0.949, 0.0, False), (1, 0.021, False)]
)
def test_what_is_enough(same_move: float, error: float, expected: bool) -> None:
    assert Agreement(400, same_move, error).is_enough is expected


class Factory:
    """Makes scripted networks and notes them; none may be in memory when another is made."""

    def __init__(self, error: float, fastest: str = "int16", error_of_fastest: float = 0.0) -> None:
        self.errors = {"int16": error, "fp32": 0.0}
        self.errors |= {} if fastest == "int16" else {fastest: error_of_fastest}
        self.fastest = fastest
        self.made: list[str] = []
        self._last: weakref.ref[Scripted] = weakref.ref(INFO)

    def __call__(self, name: str) -> Scripted:
        last = self._last() if self.made else None
        assert last is None, f"{last.precision} is in memory, closed: {last.is_closed}"
        chosen = self.fastest if name == "auto" else name
        made = Scripted(chosen, error=self.errors[chosen])
        self.made.append(made.precision)
        self._last = weakref.ref(made)
        return made


def test_a_good_candidate_is_taken_and_compared_once(cache: Path) -> None:
    first, second = Factory(0.001), Factory(0.001)
    assert with_suitable_precision(first, "auto", begin).precision == "int16"
    assert first.made == ["int16", "fp32", "int16"]
    assert len(list((cache / "precision").iterdir())) == 1
    known = with_suitable_precision(second, "auto", begin)
    assert known.precision == "int16"
    assert known.agreement == "same best move in 100.0% of 100 positions, mean value error 0.0010"
    assert len(second.made) == 1


@pytest.mark.parametrize(
    ("errors", "chosen", "tries"),
    [
        ((0.0, 0.001), "bf16", ["bf16", "fp32", "bf16"]),
        ((0.5, 0.001), "int16", ["bf16", "fp32", "bf16", "int16"]),
        ((0.5, 0.5), "fp32", ["bf16", "fp32", "bf16", "int16", "fp32"]),
    ],
)
def test_the_fastest_candidate_that_agrees_is_taken(
    errors: tuple[float, float], chosen: str, tries: list[str], cache: Path
) -> None:
    factory = Factory(errors[1], "bf16", errors[0])
    assert with_suitable_precision(factory, "auto", begin).precision == chosen
    assert factory.made == tries
    again = Factory(errors[1], "bf16", errors[0])
    assert with_suitable_precision(again, "auto", begin).precision == chosen
    candidates = ["bf16", "int16", "fp32"]
    assert again.made == candidates[: candidates.index(chosen) + 1]


def test_the_first_start_tells_what_was_chosen_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    with_suitable_precision(Factory(0.0), "auto", begin)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("yomi: comparing int16 with fp32")
    assert second == (
        "yomi: scripted.bin.gz on 5x5: int16 by scripted kernels, as good as fp32: "
        "same best move in 100.0% of 100 positions, mean value error 0.0000"
    )
    with_suitable_precision(Factory(0.0), "auto", begin)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("asked", ["auto", "fp32"])
def test_the_first_start_tells_of_a_fallback(asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = tmp_path / "small.bin"
    made = RandomNetworks(15)
    network = made.network(["ordinary"])
    object.__setattr__(network.trunk.blocks[0], "conv1", made.conv(8, 8, 5))
    net.write_bytes(write_network(network))
    options = Options(net=str(net), device="cpu", precision=asked)
    go_queue(options, square(5), PRESETS["chinese"]).close()
    reason = "ordinary has a convolution of 5x5 points"
    expected = f"yomi: small.bin on 5x5: fp32 by onnxruntime, not by native kernels: {reason}\n"
    assert capsys.readouterr().err == expected
    go_queue(options, square(5), PRESETS["chinese"]).close()
    assert capsys.readouterr().err == ""
    go_queue(options, square(7), PRESETS["chinese"]).close()
    assert "on 7x7" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_costs_no_start(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "told").write_text("")
    for _ in range(2):
        with_suitable_precision(lambda _: Scripted("fp32"), "auto", begin)
        why = "for which there is nothing faster on this machine"
        assert capsys.readouterr().err == f"yomi: scripted.bin.gz on 5x5: fp32 by scripted kernels, {why}\n"


def test_the_only_precision_of_a_network_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Exact(Scripted):
        is_exact = True

    assert with_suitable_precision(lambda _: Exact("int8"), "auto", begin).precision == "int8"
    assert capsys.readouterr() == ("", "")


def test_a_precision_that_a_network_lacks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert with_suitable_precision(lambda _: Scripted("int16"), "int8", begin).precision == "int16"
    why = "because int8 has no effect on this network"
    assert capsys.readouterr().err == f"yomi: scripted.bin.gz on 5x5: int16 by scripted kernels, {why}\n"
    with_suitable_precision(lambda _: Scripted("int16"), "int16", begin)
    assert capsys.readouterr().err == ""


def test_a_bad_candidate_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        factory = Factory(0.5)
        chosen = with_suitable_precision(factory, "auto", begin)
        assert chosen.precision == "fp32"
        assert not chosen.is_closed
        assert "int16 is replaced by fp32" in caplog.text
        assert "mean value error 0.5000" in caplog.text
        caplog.clear()


@pytest.mark.parametrize("stage", ["record", "compare"])
def test_a_comparison_that_fails_releases_the_device(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    made: list[Scripted] = []

    def make(name: str) -> Scripted:
        made.append(Scripted("fp32" if name == "fp32" else "int16"))
        return made[-1]

    def fail(*_: object) -> None:
        raise EvaluatorError("lost")

    monkeypatch.setattr(precision, stage, fail)
    with pytest.raises(EvaluatorError, match="lost"):
        with_suitable_precision(make, "auto", begin)
    assert [each.is_closed for each in made] == [True] * (2 if stage == "record" else 3)


def test_what_was_asked_for_is_not_compared(cache: Path) -> None:
    factory = Factory(0.5)
    assert with_suitable_precision(factory, "int16", begin).precision == "int16"
    assert len(factory.made) == 1
    assert not (cache / "precision").exists()


def test_a_damaged_verdict_is_replaced(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    with_suitable_precision(Factory(0.0), "auto", begin)
    (verdict,) = (cache / "precision").iterdir()
    verdict.write_text('{"positions": 4')
    factory = Factory(0.0)
    with_suitable_precision(factory, "auto", begin)
    assert "cannot be read" in caplog.text
    assert factory.made == ["int16", "fp32", "int16"]
    assert json.loads(verdict.read_text())["positions"] >= precision.MIN_POSITIONS


def test_verdicts_belong_to_a_network_a_size_and_a_kind_of_device(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = Device("cuda"), Device("webgpu", 1)
    infos = INFO, replace(INFO, board_size=9), replace(INFO, source_sha256="cd" * 32)
    for info, device in [*((info, CPU) for info in infos), *((INFO, device) for device in gpu)]:
        factory = Factory(0.0)

        def make(name: str, factory: Factory = factory, info: NetworkInfo = info, device: Device = device) -> Scripted:
            made = factory(name)
            made.info, made.device = info, device
            return made

        with_suitable_precision(make, "auto", begin)
        board = f"{info.board_size}x{info.board_size}"
        assert f"comparing int16 with fp32, once for this network on {board} ..." in capsys.readouterr().err
    assert len(list((cache / "precision").iterdir())) == 5


OWN = [(default_network("shogi"), 9)]
OWN += [(net, size) for net in (default_network("go"), network_of_levels("go")) if net for size in (9, 13, 19)]


def test_verdicts_of_our_own_networks_come_with_them() -> None:
    names = [f"{source_digest(net)[:32]}-{size}" for net, size in OWN]
    expected = {f"{name}-int16-{precision.VERSION}.json" for name in names}
    found = {path.name for path in PRECISION_DIR.iterdir()}
    assert expected <= found
    others = {name.replace("int16", each) for name in expected for each in ("bf16", "int8")}
    assert found <= expected | others  # where there was such a processor
    for path in PRECISION_DIR.iterdir():
        verdict = Agreement(**json.loads(path.read_text()))
        assert verdict.positions == precision.POSITIONS
        assert verdict.is_enough


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_our_own_networks_are_not_compared_again(game: str, capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    options = Options(net=str(default_network(game)), device="cpu")
    queue = go_queue(options, square(9), PRESETS["chinese"]) if game == "go" else shogi_queue(options)
    queue.close()
    assert "comparing" not in capsys.readouterr().err
    assert not (cache / "precision").exists()


def test_a_message_about_a_shogi_network_names_no_board(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    class OfShogi(Scripted):
        spec = shogi_spec()

    with_suitable_precision(lambda _: OfShogi("fp32"), "auto", begin)
    assert capsys.readouterr().err.startswith(f"yomi: {INFO.source_file}: fp32 by scripted kernels")


@pytest.mark.early
@pytest.mark.slow
def test_the_verdict_on_our_network_for_go_still_holds() -> None:
    net = str(default_network("go"))
    reference, candidate = (load_go(net, 9, "cpu", "auto", 1, name) for name in ("fp32", "auto"))
    recorded = record(reference, lambda: GoGame(square(9), PRESETS["chinese"]), seconds=math.inf)
    assert compare(recorded, candidate).is_enough


@pytest.mark.slow
def test_the_verdict_on_our_network_for_shogi_still_holds() -> None:
    net = str(default_network("shogi"))
    reference, candidate = (load_shogi(net, "cpu", "auto", 1, name) for name in ("fp32", "auto"))
    assert compare(record(reference, ShogiGame, seconds=math.inf), candidate).is_enough
