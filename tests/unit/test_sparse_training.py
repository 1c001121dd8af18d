"""Sparse networks in training: what they compute, what they learn, and that their integers say the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (extra train)")

from tests.unit.test_training import one_thread  # noqa: E402, F401
from yomi.engine.datasets.evaluate_network import evaluate_network  # noqa: E402
from yomi.engine.evaluators.network import open_network  # noqa: E402
from yomi.engine.registry import find_encoder  # noqa: E402
from yomi.engine.shogi.datasets.dataset import make_shogi_dataset  # noqa: E402
from yomi.engine.shogi.game import ShogiGame  # noqa: E402
from yomi.engine.shogi.networks import FORMATS  # noqa: E402
from yomi.engine.shogi.records.csa import format_csa_records  # noqa: E402
from yomi.engine.shogi.records.record import GameRecord, record_of  # noqa: E402
from yomi.engine.shogi.settings import ShogiDataOptions  # noqa: E402
from yomi.native.shogi.planes import policy_index  # noqa: E402
from yomi.native.sparse import network as played  # noqa: E402
from yomi.native.sparse.shogi import INPUTS, MAX_ACTIVE, MOVE_ROWS, TABLES  # noqa: E402
from yomi.native.spec import Inputs  # noqa: E402
from yomi.native.tree.arrays import VALUE  # noqa: E402
from yomi.native.tree.buffers import make_batch  # noqa: E402
from yomi.nets.data.batches import Batch, BatchSource  # noqa: E402
from yomi.nets.data.metrics import ILLEGAL, Judged, Table  # noqa: E402
from yomi.nets.data.shards import Dataset, open_dataset  # noqa: E402
from yomi.nets.definitions import sparse  # noqa: E402
from yomi.nets.definitions.sparse import (  # noqa: E402
    LEAK,
    MAX_ROWS,
    SparseInput,
    SparseShogi,
    clipped_square,
    export_sparse,
    to_tensors,
)
from yomi.nets.errors import NetworkError  # noqa: E402
from yomi.nets.metadata import SHOGI_BOARD, feature_set  # noqa: E402
from yomi.nets.training import losses  # noqa: E402
from yomi.nets.training.config import parse_config  # noqa: E402
from yomi.nets.training.loop import Trainer  # noqa: E402
from yomi.nets.training.tensors import Decoder, Example  # noqa: E402

SMALL = {"dropout": 0.0, "value": 128, "policy": 128}
CPU = torch.device("cpu")


def greedy_record(seed: int, plies: int = 100) -> GameRecord:
    """Return a game in which what takes most is played, and else at random."""
    rng = np.random.default_rng(seed)
    game = ShogiGame()
    while len(game.moves) < plies and (moves := game.legal_moves()):
        board = game.position["board"]
        game.play(max(rng.permutation(moves).tolist(), key=lambda move: int(board[move & 127]) % 16))
    record = record_of(game)
    for recorded, placement in zip(record.moves, record.placements(), strict=False):
        black, white = (sum(hand) for hand in placement.hands)
        recorded.score = 300 * (black - white) * (1 if placement.side == 1 else -1)
    record.ending = "TORYO"
    return record


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Return some hundred positions."""
    folder = tmp_path_factory.mktemp("boards")
    (folder / "a.csa").write_text(format_csa_records([greedy_record(seed) for seed in range(8)]))
    options = ShogiDataOptions(features=SHOGI_BOARD, test_share=0.25, score_scale=600.0)
    return make_shogi_dataset([folder / "a.csa"], folder / "set", options, lambda text: None)


def decoder(symmetries: str = "none") -> Decoder:
    """Return what makes examples of boards."""
    return Decoder(feature_set(SHOGI_BOARD), CPU, symmetries, 3, 0.0, find_encoder(SHOGI_BOARD))


def batch_of(dataset: Dataset, rows: int = 64) -> Batch:
    return BatchSource([dataset], "train", rows, 1).batch(0)


def example_of(dataset: Dataset) -> Example:
    return decoder().example(batch_of(dataset))


def lively(seed: int = 5) -> SparseShogi:
    """Return a small network all of whose numbers say something."""
    torch.manual_seed(seed)
    network = SparseShogi(**SMALL)
    with torch.no_grad():
        for tensor in (network.direct, network.move_bias):
            tensor.normal_(0.0, 0.1)
    return network


def test_rows_and_tables_are_shogis() -> None:
    network = SparseShogi(**SMALL)
    assert (SparseShogi.INPUTS, SparseShogi.TABLES) == (INPUTS, TABLES)
    assert sum(TABLES) == MOVE_ROWS
    assert MAX_ROWS == MAX_ACTIVE
    assert (sparse.HIDDEN, sparse.LAST, sparse.WIDTH_STEP) == (played.HIDDEN, played.LAST, played.WIDTH_STEP)
    assert (sparse.ONE, sparse.SQUARED_ONE) == (played.ONE, 1 << played.SQUARED_BITS)
    assert network.count() == (INPUTS + 1) * 256 + INPUTS + MOVE_ROWS * 129 + 129 * 16 + 17 * 32 + 33


def naive_logits(network: SparseShogi, x: SparseInput) -> Any:
    """Return the moves' logits by plain indexing."""
    sums = torch.stack(
        [network.rows[x.active[first:last]].sum(0) for first, last in zip(*ends(x.found.active_starts), strict=True)]
    )
    outputs = clipped_square(sums + network.bias)
    owners = np.repeat(np.arange(x.rows), np.diff(x.found.starts))
    rows = torch.from_numpy(x.found.rows).long()
    summed = network.moves[rows].sum(1)
    return (outputs[owners, network.value_units :] * summed).sum(1) + network.move_bias[rows].sum(1)


def ends(starts: Any) -> tuple[list[int], list[int]]:
    return starts[:-1].tolist(), starts[1:].tolist()


def test_units_slope_outside_only_where_a_step_leads_back_inside() -> None:
    x = torch.tensor([-0.5, -0.5, 0.5, 1.5, 1.5], requires_grad=True)
    units = clipped_square(x)
    assert units.tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]
    (units * torch.tensor([-1.0, 1.0, 1.0, -1.0, 1.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([-LEAK, 0.0, 1.0, 0.0, LEAK])


@pytest.mark.parametrize("threads", [1, 3])
def test_logits_and_gradients_are_those_of_plain_indexing(threads: int, dataset: Dataset) -> None:
    torch.set_num_threads(threads)
    network, (x,) = lively(), example_of(dataset).inputs
    policy = network(x)["policy"]
    found = policy.view(-1)[x.places]
    expected = naive_logits(network, x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert (policy > ILLEGAL / 2).sum() == len(x.places)
    weights = torch.randn(len(found), generator=torch.Generator().manual_seed(1))
    parameters = [network.rows, network.bias, network.moves, network.move_bias]
    for own, wanted in zip(
        torch.autograd.grad((found * weights).sum(), parameters),
        torch.autograd.grad((expected * weights).sum(), parameters),
        strict=True,
    ):
        assert wanted.abs().max() > 0.1
        torch.testing.assert_close(own, wanted, atol=1e-4, rtol=1e-4)


def test_policy_is_learned_over_legal_moves(dataset: Dataset) -> None:
    batch = batch_of(dataset)
    example = decoder().example(batch)
    policy = lively()(*example.inputs)["policy"]
    legal = policy > ILLEGAL / 2
    rows = []
    for row, (label, weight) in enumerate(
        zip(example.labels["policy_moves"][:, 0], example.labels["policy_weights"][:, 0], strict=True)
    ):
        if weight and legal[row, label]:
            rows.append(-torch.log_softmax(policy[row][legal[row]], 0)[(legal[row].cumsum(0) - 1)[label]])
    found = losses.losses({"policy": policy}, example)["policy"]
    torch.testing.assert_close(found, torch.stack(rows).mean())
    table = Table()
    table.add(Judged(policy=policy.detach().numpy()), batch.columns)
    assert table.values()["policy_loss"] == pytest.approx(found.item(), abs=1e-4)
    # a target that the search does not try counts nothing
    one = policy.detach().clone()
    one[0, example.labels["policy_moves"][0, 0]] = ILLEGAL
    torch.testing.assert_close(losses.losses({"policy": one}, example)["policy"], torch.stack(rows[1:]).mean())
    table = Table()
    table.add(Judged(policy=one.numpy()), batch.columns)
    assert table.counts["policy_loss"] == len(rows) - 1
    assert np.isfinite(list(table.values().values())).all()


def test_positions_without_legal_moves_say_nothing_of_the_policy() -> None:
    mated = ShogiGame("4k4/4G4/4G4/9/9/9/9/9/4K4 w 2r2b2g4s4n4l18p 1")
    assert not mated.legal_moves()
    board, hands = mated.placement.turned().board, mated.placement.turned().hands
    columns = {
        "planes": np.zeros((1, 0), np.uint8),
        "levels": np.array([board], np.uint8),
        "globals": np.array([hands], np.float16).reshape(1, 14),
        "policy_moves": np.zeros((1, 1), np.uint16),
        "policy_weights": np.ones((1, 1), np.float16),
        "value": np.array([-1.0], np.float16),
    }
    network = lively()
    example = decoder().example(Batch(9, columns))
    found = losses.losses(network(*example.inputs), example)
    assert found["policy"].item() == 0.0
    sum(found.values()).backward()  # type: ignore[union-attr]
    assert all(torch.isfinite(each.grad).all() for each in network.parameters())


def test_mirrored_boards_are_seen_the_same(dataset: Dataset) -> None:
    """The network mirrors boards itself, but for kings in the middle; targets go with the moves."""
    batch = batch_of(dataset, 128)
    plain, turned = (decoder(name).example(batch) for name in ("none", "random"))
    kings = (batch.columns["levels"] == 8).argmax(1) // 9
    network = lively()
    values, losses_ = [], []
    for example in (plain, turned):
        outputs = network(*example.inputs)
        values.append(outputs["value_logit"][:, 0])
        share = torch.log_softmax(outputs["policy"], 1).gather(1, example.labels["policy_moves"])
        losses_.append(share[:, 0])
    aside = torch.from_numpy(kings != 4)
    assert (plain.labels["policy_moves"] != turned.labels["policy_moves"]).any()
    for first, second in (values, losses_):
        torch.testing.assert_close(first[aside], second[aside], atol=1e-5, rtol=1e-5)
        assert not torch.allclose(first[~aside], second[~aside], atol=1e-3)


# -- integers -----------------------------------------------------------------------------------------------------


def test_what_is_played_says_what_was_trained(dataset: Dataset, tmp_path: Path) -> None:
    """The kernels of the search compute from positions and integers; training from rows and floats."""
    network = lively()
    path = tmp_path / "small.safetensors"
    path.write_bytes(export_sparse(network, "small", {"recipe": "test"}))
    games = [ShogiGame() for _ in range(3)]
    for seed, game in enumerate(games):
        for recorded in greedy_record(seed, 60).moves[: 40 + seed]:
            game.play(recorded.move)
    evaluator = open_network(FORMATS, path, 9).load(precision="auto")
    batch = make_batch(evaluator.spec, len(games), Inputs.POSITIONS)
    columns: dict[str, Any] = {"levels": [], "globals": []}
    for row, game in enumerate(games):
        legal = game.searched_moves()
        batch.positions[row] = game.position
        batch.move_count[row], batch.moves[row, : len(legal)] = len(legal), legal
        batch.indices[row, : len(legal)] = [policy_index(game.position, move, 0) for move in legal]
        placement = game.placement if game.side_to_move == 1 else game.placement.turned()
        columns["levels"].append(placement.board)
        columns["globals"].append([count for hand in placement.hands for count in hand])
    evaluator.evaluate(batch, len(games))
    encoder = find_encoder(SHOGI_BOARD)
    assert encoder is not None
    rows = {
        "planes": np.zeros((3, 0), np.uint8),
        "levels": np.array(columns["levels"], np.uint8),
        "globals": np.array(columns["globals"], np.float16),
        "policy_moves": np.zeros((3, 1), np.uint16),
        "policy_weights": np.zeros((3, 1), np.float16),
        "value": np.zeros(3, np.float16),
    }
    outputs = {name: each.detach().numpy() for name, each in network(*decoder().example(Batch(9, rows)).inputs).items()}
    for row, game in enumerate(games):
        found = batch.values[row, VALUE]
        assert found == pytest.approx(np.tanh(outputs["value_logit"][row, 0] / 2.0), abs=5e-3)
        places = batch.indices[row, : len(game.searched_moves())]
        np.testing.assert_allclose(batch.logits[row, places], outputs["policy"][row, places], atol=0.1)
        assert outputs["policy"][row, places].std() > 0.2


def worst(tensors: dict[str, Any], tables: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return the largest sum of the first layer, product behind it, sum of moves' rows and product with it."""
    wide = {name: each.astype(np.int64) for name, each in tensors.items() if each.dtype != np.float32}
    first = np.sort(np.abs(wide["rows"]), 0)[-MAX_ROWS:].sum(0) + np.abs(wide["bias"])
    hidden = 4096 * np.abs(wide["hidden"]).sum(1)
    parts = np.split(wide["moves"], np.cumsum(tables)[:-1])
    summed = sum(np.abs(part).max(0) for part in parts)
    product = 4096 * sum(np.abs(part).sum(1).max() for part in parts)
    return int(first.max()), int(hidden.max()), int(summed.max()), int(product)


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0])
@pytest.mark.parametrize("lone", [False, True])
def test_integers_cannot_overflow(size: float, lone: bool) -> None:
    """All weights as large as they may be, of one sign; and a single unit that has it all."""
    network = SparseShogi(**SMALL)
    with torch.no_grad():
        for weight in (network.rows, network.moves):
            weight.fill_(-1.0)
        network.bias.fill_(-99.0)
        weight = network.hidden.weight
        weight.fill_(0.0 if lone else -size)
        weight[:, 3] = -size
    network.constrain()
    first, hidden, summed, product = worst(to_tensors(network), network.TABLES)
    assert max(first, summed) <= 32767
    assert max(hidden, product) <= 2**31 - 1
    # one of both bounds is nearly met: nothing is given away
    largest = int(np.abs(to_tensors(network)["hidden"].astype(np.int64)).max())
    assert max(hidden / 2**31, largest / 32767) > 0.98


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rows", 9.0, r"rows of the first layer of up to 9 found, expected at most 0\.496"),
        ("bias", -199.0, r"its biases of up to 199 found, expected at most 62\.5"),
        ("moves", -5.0, r"rows of moves of up to 5 found, expected at most 0\.79"),
    ],
)
def test_weights_stay_where_integers_can_hold_them(name: str, value: float, message: str) -> None:
    network = lively()
    with torch.no_grad():
        network.state_dict()[name][::3] = value
    with pytest.raises(NetworkError, match=message):
        to_tensors(network)
    network.constrain()
    first, _, _, product = worst(to_tensors(network), network.TABLES)
    assert first <= 32767
    assert product <= 2**31 - 1
    with torch.no_grad():
        network.state_dict()[name][0] = torch.nan
    with pytest.raises(NetworkError, match="of up to nan found"):
        to_tensors(network)


def test_more_units_than_products_have_room_for_are_refused() -> None:
    with pytest.raises(NetworkError, match="896 units for moves found, expected at most 825"):
        to_tensors(SparseShogi(128, 896))


def test_what_rounding_would_lose_is_refused() -> None:
    network = lively()
    with torch.no_grad():
        network.hidden.weight[0, 0] = 3e3
    with pytest.raises(NetworkError, match=r"^the layer behind.* weights of up to 3000 found, .* off, "):
        to_tensors(network)
    with torch.no_grad():
        network.hidden.weight[0, 0] = torch.nan
    with pytest.raises(NetworkError, match="not finite"):
        to_tensors(network)


# -- training ------------------------------------------------------------------------------------------------------


def config_of(dataset: Dataset, **training: Any) -> Any:
    tables = {
        "network": {"kind": "sparse-shogi", "name": "tiny", **SMALL},
        "data": {"folders": [str(dataset.folder)], "search_value": 1.0},
        "training": {
            **{"steps": 40, "batch": 128, "learning_rate": 5e-4, "precision": "fp32", "test_every": 20},
            **training,
        },
    }
    return parse_config(tables)


def test_it_learns(dataset: Dataset, tmp_path: Path) -> None:
    seen: list[dict[str, float]] = []
    trainer = Trainer(config_of(dataset), tmp_path / "run", find_encoder=find_encoder)
    before = trainer.test().values()
    trainer.run(lambda step, values: seen.append(values))
    after = trainer.test().values()
    assert after["policy_loss"] < before["policy_loss"] - 0.4
    assert after["policy_accuracy"] > before["policy_accuracy"]
    path = trainer.export()
    assert path.name == "tiny.safetensors"
    by_file = evaluate_network(FORMATS, path, dataset, "test", 0, "auto", find_encoder).values()
    assert by_file == pytest.approx(after, abs=6e-3)  # one of 199 winners told may be another one
    assert open_network(FORMATS, path, 9).load(precision="auto").info.training["step"] == "40"


def test_a_file_is_trained_further(dataset: Dataset, tmp_path: Path) -> None:
    given = lively()
    (tmp_path / "given.safetensors").write_bytes(export_sparse(given, "given", {}))
    config = replace(config_of(dataset), options={}, start=str(tmp_path / "given.safetensors"))
    trainer = Trainer(config, tmp_path / "run", find_encoder=find_encoder)
    for name, found in trainer.network.state_dict().items():
        torch.testing.assert_close(found, given.state_dict()[name], rtol=1e-3, atol=4e-3)
    trainer.run(lambda step, values: None, stop_at=1)
    assert (trainer.network.state_dict()["rows"] != given.state_dict()["rows"]).any()
    missing = replace(config, start=str(tmp_path / "missing.safetensors"))
    with pytest.raises(NetworkError, match=r"missing\.safetensors: cannot be read"):
        Trainer(missing, tmp_path / "other", find_encoder=find_encoder)


def test_it_goes_on_exactly(dataset: Dataset, tmp_path: Path) -> None:
    config = config_of(dataset, steps=8, loaders=2, average="ema")
    whole = Trainer(config, tmp_path / "whole", find_encoder=find_encoder)
    whole.run(lambda step, values: None)
    Trainer(config, tmp_path / "parts", find_encoder=find_encoder).run(lambda step, values: None, 3)
    parts = Trainer(config, tmp_path / "parts", find_encoder=find_encoder)
    parts.run(lambda step, values: None)
    for name, weights in whole.network.state_dict().items():
        torch.testing.assert_close(parts.network.state_dict()[name], weights, rtol=0.0, atol=0.0)
    assert parts.export().read_bytes() == whole.export().read_bytes()


def test_encoders_that_do_not_fit_are_refused(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="of feature set shogi-board found without an encoder"):
        Trainer(config_of(dataset), tmp_path / "run")

    class Other:
        inputs, max_active, tables = 100, 41, (3, 4, 5)

    with pytest.raises(NetworkError, match=r"an encoder of 100 rows, 41 at a time, and tables of \(3, 4, 5\) found"):
        Trainer(config_of(dataset), tmp_path / "run", find_encoder=lambda name: Other())  # type: ignore[arg-type, return-value]
    with pytest.raises(NetworkError, match="value = 100, policy = 128 found, expected multiples of 128"):
        SparseShogi(100, 128)
    assert open_dataset(dataset.folder).manifest.features.name == SHOGI_BOARD
