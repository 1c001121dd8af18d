"""What every evaluator owes to the search."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.transformers.float16 import convert_float_to_float16

from tests.contract.networks import load_go, write_small_network
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import MixedEvaluator, RolloutEvaluator
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.native.go.board import BLACK, WHITE
from yomi.native.go.planes import policy_index, write_bits, write_planes
from yomi.native.go.spec import go_spec
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, STDEV, VALUE, Batch
from yomi.native.tree.buffers import make_batch
from yomi.nets.katago.write import write_network
from yomi.nets.load import open_file, prepare

SIZE = 9
LINE = "E5 C4 G6 E3 D3 F4 D4 pass E4"
KINDS = ["uniform", "rollouts", "mixed"]
"""Networks of all formats, on all backends: test_networks."""
Make = Callable[[], Any]


@pytest.fixture(scope="module", params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Give what makes the same evaluator again and again."""
    folder = tmp_path_factory.mktemp("net")
    path = write_small_network(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YOMI_CACHE_DIR", str(folder / "cache"))
        yield _maker(request.param, path)


def _maker(kind: str, path: Path) -> Make:
    if kind == "uniform":
        return UniformEvaluator
    if kind == "rollouts":
        return lambda: RolloutEvaluator(2, 4, seed=5)
    return lambda: MixedEvaluator(_katago(path, "native"), 0.4, 2, seed=5)


def _katago(path: Path, backend: str) -> Any:
    return load_go(path, SIZE, "cpu", backend)


def games(colors: tuple[int, int] = (BLACK, WHITE), komi: float = 2.5) -> list[GoGame]:
    """Return the games after each move of a line, in which the first of `colors` begins."""
    game = GoGame(square(SIZE), PRESETS["tromp-taylor"], komi if colors[0] == BLACK else -komi)
    game.set_position([], colors[0])
    result = [game.copy()]
    for ply, vertex in enumerate(LINE.split()):
        game.play(colors[ply % 2], square(SIZE).parse_vertex(vertex))
        result.append(game.copy())
    return result


def batch_of(evaluator: Any, positions: list[GoGame], symmetry: int = 0) -> Batch:
    """Return a batch with a row for each game, as the search would fill it."""
    spec = go_spec(SIZE)
    inputs = evaluator.inputs
    batch = make_batch(spec, len(positions) + 2, inputs)
    scratch = np.zeros(1, spec.scratch_dtype)[0]
    for array in (batch.logits, batch.values, batch.ownership):
        array[...] = np.nan
    for row, game in enumerate(positions):
        batch.symmetry[row] = symmetry
        moves = game.legal_moves()
        batch.move_count[row] = len(moves)
        batch.moves[row, : len(moves)] = moves
        batch.indices[row, : len(moves)] = [policy_index(SIZE, SIZE, move, symmetry) for move in moves]
        if Inputs.BITS in inputs:
            write_bits(game.position, game.history, symmetry, scratch, batch.bits[row], batch.extras[row])
        if Inputs.NUMBERS in inputs:
            write_planes(game.position, game.history, symmetry, scratch, batch.planes[row], batch.extras[row])
        if Inputs.POSITIONS in inputs:
            batch.positions[row] = game.position
    return batch


def legal_logits(batch: Batch, row: int) -> np.ndarray:
    return batch.logits[row, batch.indices[row, : batch.move_count[row]]]


def test_outputs_are_finite_and_in_range(make: Make) -> None:
    evaluator = make()
    assert evaluator.description
    assert "\n" not in evaluator.description
    assert evaluator.batch_size >= 1
    positions = games()
    for symmetry in (0, 5) if evaluator.inputs & Inputs.NETWORK else (0,):
        batch = batch_of(evaluator, positions, symmetry)
        evaluator.evaluate(batch, len(positions))
        for row in range(len(positions)):
            assert np.isfinite(legal_logits(batch, row)).all()
        values = batch.values[: len(positions)]
        assert np.isfinite(values).all()
        assert (np.abs(values[:, VALUE]) <= 1.0).all()
        assert (values[:, STDEV] >= 0.0).all()
        owners = batch.ownership[: len(positions)]
        assert np.isfinite(owners).all()
        assert (np.abs(owners) <= 1.0 + 1e-6).all()
        # rows that are not in use are let alone
        assert np.isnan(batch.values[len(positions) :]).all()
    evaluator.close()


def test_swapping_the_colors_changes_nothing_for_the_side_to_move(make: Make) -> None:
    results = []
    for colors in ((BLACK, WHITE), (WHITE, BLACK)):
        evaluator = make()
        positions = games(colors)
        batch = batch_of(evaluator, positions)
        evaluator.evaluate(batch, len(positions))
        results.append(batch)
        evaluator.close()
    black, white = results
    count = len(LINE.split()) + 1
    for row in range(count):
        by_move = [
            dict(zip(map(int, b.moves[row, : b.move_count[row]]), legal_logits(b, row), strict=True))
            for b in (black, white)
        ]
        assert by_move[0] == pytest.approx(by_move[1], abs=1e-4)
    assert black.values[:count] == pytest.approx(white.values[:count], abs=1e-3)
    assert black.ownership[:count] == pytest.approx(white.ownership[:count], abs=1e-4)


def test_rollouts_see_who_owns_a_won_board() -> None:
    evaluator, boards = RolloutEvaluator(2, 4, seed=5), []
    for side in (BLACK, WHITE):
        game = GoGame(square(SIZE), PRESETS["tromp-taylor"], 7.0)
        row = [(y + 1) * (SIZE + 1) + x + 1 for y in range(SIZE) for x in range(SIZE)]
        game.set_position([(BLACK, p) for p in row if p not in (row[0], row[2], row[40])], side)
        boards.append(game)
    batch = batch_of(evaluator, boards)
    evaluator.evaluate(batch, 2)
    assert list(batch.values[:2, VALUE]) == [1.0, -1.0]
    assert list(batch.values[:2, LEAD]) == [74.0, -74.0]
    assert (batch.ownership[0] == 1.0).all()
    assert (batch.ownership[1] == -1.0).all()


def test_four_threads_may_call_at_once(make: Make) -> None:
    evaluator = make()
    positions = games()
    expected = batch_of(evaluator, positions)
    evaluator.evaluate(expected, len(positions))
    batches = [batch_of(evaluator, positions) for _ in range(4)]
    failures: list[BaseException] = []

    def call(batch: Batch) -> None:
        try:
            for _ in range(5):
                evaluator.evaluate(batch, len(positions))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for batch in batches:
        assert np.isfinite(batch.values[: len(positions)]).all()
        if not isinstance(evaluator, RolloutEvaluator | MixedEvaluator):
            assert batch.logits[: len(positions)] == pytest.approx(expected.logits[: len(positions)], abs=2e-4)
            assert batch.values[: len(positions)] == pytest.approx(expected.values[: len(positions)], abs=2e-3)
    evaluator.close()


def test_a_mixture_lies_between_network_and_rollouts(tmp_path: Path) -> None:
    path = write_small_network(tmp_path)
    positions = games()
    found = {}
    for weight in (0.0, 0.25, 1.0):
        evaluator = MixedEvaluator(_katago(path, "native"), weight, 3, seed=9)
        batch = batch_of(evaluator, positions, symmetry=3)
        evaluator.evaluate(batch, len(positions))
        found[weight] = batch
    for field in ("values", "ownership"):
        plain, mixed, rollouts = (getattr(found[weight], field)[: len(positions)] for weight in (0.0, 0.25, 1.0))
        assert mixed == pytest.approx(0.75 * plain + 0.25 * rollouts, abs=1e-3)
        assert np.abs(plain - rollouts).max() > 0.1
    network = _katago(path, "native")
    batch = batch_of(network, positions, symmetry=3)
    network.evaluate(batch, len(positions))
    assert found[0.0].values[: len(positions)] == pytest.approx(batch.values[: len(positions)], abs=1e-3)


@pytest.mark.parametrize("backend", ["native", "onnx"])
def test_a_network_says_how_it_is_shown_areas(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    network = RandomNetworks(15, seed=3).network(["ordinary"])
    for asked in (False, True):
        path = tmp_path / f"{asked}.bin"
        path.write_bytes(write_network(replace(network, prefer_pass_alive_under_suicide_rules=asked)))
        evaluator = _katago(path, backend)
        assert evaluator.spec == go_spec(SIZE, suicide_areas=asked, judges_agreement=True)
        evaluator.close()


def _fixed(model: onnx.ModelProto) -> onnx.ModelProto:
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_value = 1
    return model


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_fixed, r"input spatial \(float32 1x22x9x9\) found"),
        (partial(convert_float_to_float16, keep_io_types=False), r"input spatial \(float16 Nx22x9x9\) found"),
    ],
)
def test_go_files_with_other_inputs_are_refused_when_they_are_loaded(
    change: Callable[[onnx.ModelProto], onnx.ModelProto], found: str, tmp_path: Path
) -> None:
    made, _ = prepare(open_file(write_small_network(tmp_path)), SIZE, tmp_path / "cache")
    path = tmp_path / "other.onnx"
    onnx.save(change(onnx.load(made)), path)
    with pytest.raises(EvaluatorError, match=f"other.onnx: {found}, expected float32 for batches of any size"):
        load_go(path, SIZE, "cpu")


def test_what_onnxruntime_says_of_a_go_file_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    evaluator = load_go(write_small_network(tmp_path), SIZE, "cpu", "onnx")
    evaluator.format.outputs = ("nothing",)
    with pytest.raises(EvaluatorError, match="onnxruntime: ") as caught:
        evaluator.run(np.zeros((1, 22, SIZE, SIZE), np.float32), np.zeros((1, 19), np.float32))
    assert "\n" not in str(caught.value)
