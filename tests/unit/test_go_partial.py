"""Networks that say only a part: what is made of it, and what stands in for the rest."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go
from tests.contract.partial_networks import write_aya_policy, write_aya_value, write_cosumi
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import PartialFormat
from yomi.engine.go.players.setup import go_subject, make_queue
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.options import Options
from yomi.native.go.outputs import POINTS, decode_partial
from yomi.native.go.planes import policy_index, symmetry_table
from yomi.native.go.priors import prior_logit
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, SCORE, VALUE, Batch
from yomi.native.tree.buffers import make_batch
from yomi.nets.errors import NetworkError

SIZE = 5
RULES = PRESETS["tromp-taylor"]


def batch_of(symmetry: int = 0) -> Batch:
    """Return a batch of a game's positions with Black and with White to move."""
    game = GoGame(square(SIZE), RULES, komi=7.0)
    batch = make_batch(go_subject(SIZE).spec, 2, Inputs.POSITIONS)
    for row, vertex in enumerate(("C3", "C2")):
        game.play(game.side_to_move, square(SIZE).parse_vertex(vertex))
        moves = game.legal_moves()
        batch.positions[row], batch.symmetry[row], batch.move_count[row] = game.position, symmetry, len(moves)
        batch.moves[row, : len(moves)] = moves
        batch.indices[row, : len(moves)] = [policy_index(SIZE, SIZE, move, symmetry) for move in moves]
    batch.values[...] = batch.ownership[...] = batch.logits[...] = np.nan
    return batch


def shares(batch: Batch, row: int) -> Any:
    """Return the priors of the legal moves."""
    logits = batch.logits[row, batch.indices[row, : batch.move_count[row]]].astype(np.float64)
    return np.exp(logits) / np.exp(logits).sum()


def by_patterns(batch: Batch, row: int) -> Any:
    moves = batch.moves[row, : batch.move_count[row]]
    weights = np.exp([float(prior_logit(batch.positions[row], move)) for move in moves])
    return weights / weights.sum()


@pytest.mark.slow
def test_what_is_made_of_a_part() -> None:
    nothing, black, points = np.zeros((2, 0), np.float32), np.float32([[0.5], [0.5]]), np.float32([[10.0], [10.0]])
    policy = np.random.default_rng(1).standard_normal((2, SIZE**2)).astype(np.float32)
    batch = batch_of(symmetry=6)
    decode_partial.bind(policy, black, nothing, True, batch).run(2)
    assert batch.values.tolist() == [[-0.5, *[0.0] * 6], [0.5, *[0.0] * 6]]  # White to move, then Black
    assert not batch.ownership.any()
    for row in range(2):
        found, patterns = shares(batch, row), by_patterns(batch, row)
        wanted = np.exp(policy[row, batch.indices[row, : batch.move_count[row] - 1]].astype(np.float64))
        assert found[-1] == pytest.approx(patterns[-1], rel=1e-3)
        assert found[:-1] / found[:-1].sum() == pytest.approx(wanted / wanted.sum(), rel=1e-3)
    decode_partial.bind(nothing, nothing, points, False, batch).run(2)
    assert batch.values[:, LEAD].tolist() == batch.values[:, SCORE].tolist() == [17.0, 3.0]
    assert batch.values[:, VALUE] == pytest.approx(np.tanh(np.array([17.0, 3.0]) / POINTS))
    for row in range(2):
        assert shares(batch, row) == pytest.approx(by_patterns(batch, row), rel=1e-3)


def test_the_end_of_a_game_has_no_moves() -> None:
    nothing, policy, batch = np.zeros((2, 0), np.float32), np.ones((2, SIZE**2), np.float32), batch_of()
    batch.move_count[...] = 0
    decode_partial.bind(policy, nothing, nothing, True, batch).run(2)
    assert (batch.logits[:, :-1] == 1.0).all()
    assert not batch.values.any()


@pytest.mark.parametrize(("write", "planes"), [(write_aya_policy, 49), (lambda folder: write_cosumi(folder, SIZE), 3)])
def test_networks_see_the_board_under_each_symmetry(write: Any, planes: int, tmp_path: Path) -> None:
    form = load_go(write(tmp_path), SIZE, "cpu", "onnx").format
    assert isinstance(form, PartialFormat)
    seen = []
    for symmetry in range(8):
        calls, (shown, _) = form.encode(batch_of(symmetry))
        calls.run(2)
        seen.append(shown.reshape(2, planes, -1))
        np.testing.assert_array_equal(seen[symmetry][..., symmetry_table(SIZE, SIZE, symmetry)[:-1]], seen[0])
    assert seen[0].any()
    assert seen[0].max() <= 1.0  # liberties as tanh


def described(tmp_path: Path, **options: Any) -> str:
    queue = make_queue(Options(device="cpu", precision="fp32", **options), square(SIZE), RULES)
    queue.close()
    return queue.evaluator.description


def test_what_judges_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    policy, value = str(write_aya_policy(tmp_path)), str(write_aya_value(tmp_path, SIZE))
    assert described(tmp_path, net=policy).endswith("fp32), 100% rollouts")
    assert described(tmp_path, net=policy, value_net=value).count("native kernels") == 2
    assert described(tmp_path, net=policy, value_net=value, rollout_weight=0.5).endswith("fp32), 50% rollouts")
    assert "rollouts" not in described(tmp_path, net=value)
    with pytest.raises(NetworkError, match="a network without values found"):
        described(tmp_path, net=value, value_net=policy)
    with pytest.raises(EvaluatorError, match="leave out --value-net"):
        described(tmp_path, evaluator="rollouts", value_net=value)
    with pytest.raises(NetworkError, match="made for boards of size 9, expected one for size 5"):
        described(tmp_path, net=str(write_aya_value(tmp_path, 9)))
    other = str(write_cosumi(tmp_path, SIZE))
    assert "onnxruntime" in described(tmp_path, net=policy, value_net=other)


def test_moves_of_one_and_values_of_the_other(tmp_path: Path) -> None:
    policy, value = write_aya_policy(tmp_path), write_aya_value(tmp_path, SIZE)
    found = {}
    for name, options in {"both": {"value_net": str(value)}, "policy": {}, "value": {}}.items():
        net = value if name == "value" else policy
        queue = make_queue(
            Options(net=str(net), device="cpu", precision="fp32", seed=1, **options), square(SIZE), RULES
        )
        found[name] = batch_of()
        calls = queue.bind(found[name])
        assert calls is not None
        calls.run(2)
        queue.close()
    np.testing.assert_array_equal(found["both"].logits, found["policy"].logits)
    np.testing.assert_array_equal(found["both"].values, found["value"].values)
    assert set(np.abs(found["policy"].values[:, VALUE]).tolist()) <= {0.0, 1.0}  # lost, drawn or won


def test_scores_that_a_network_does_not_tell_are_those_of_rollouts(tmp_path: Path) -> None:
    policy, value = write_aya_policy(tmp_path), write_aya_value(tmp_path, SIZE)
    options = Options(net=str(policy), value_net=str(value), device="cpu", precision="fp32", rollout_weight=0.5)
    queue, batch = make_queue(options, square(SIZE), RULES), batch_of()
    calls = queue.bind(batch)
    assert calls is not None
    calls.run(2)
    queue.close()
    assert set(np.abs(batch.ownership).ravel().tolist()) - {0.0} == {1.0}  # 0 if a point is neutral
    assert (np.abs(batch.values[:, VALUE]) < 1.0).all()
