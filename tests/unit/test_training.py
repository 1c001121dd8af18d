"""Training: batches as tensors, losses, schedules, and that a run which was stopped goes on exactly."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (extra train)")

from tests.naive.katago_forward import forward  # noqa: E402
from yomi.nets.data.batches import (  # noqa: E402
    BatchSource,
    WindowSource,
    unpack,
)
from yomi.nets.data.shards import Manifest, begin_dataset, open_dataset, shard_name, widths, write_shard  # noqa: E402
from yomi.nets.data.symmetry import symmetries_of  # noqa: E402
from yomi.nets.definitions.catalog import make  # noqa: E402
from yomi.nets.definitions.export import export_file  # noqa: E402
from yomi.nets.definitions.go import UNTAUGHT_MISC  # noqa: E402
from yomi.nets.definitions.katago import to_katago  # noqa: E402
from yomi.nets.errors import NetworkError  # noqa: E402
from yomi.nets.katago.file import read_network  # noqa: E402
from yomi.nets.katago.outputs import RawOutputs, describe, post_process  # noqa: E402
from yomi.nets.metadata import feature_set  # noqa: E402
from yomi.nets.training import loop, losses  # noqa: E402
from yomi.nets.training.config import LossConfig, TeacherConfig, TrainingConfig, parse_config  # noqa: E402
from yomi.nets.training.loop import Trainer  # noqa: E402
from yomi.nets.training.progress import read_log  # noqa: E402
from yomi.nets.training.tensors import Decoder  # noqa: E402
from yomi.nets.training.weights import Average, load_checkpoint  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compute in one thread: the machine is shared, and sums come in one order."""
    monkeypatch.setattr(loop, "can_plot", lambda: False)  # a picture takes longer than these trainings
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def columns_of(name: str, rows: int, size: int, seed: int) -> dict[str, Any]:
    """Return positions with something to learn: the move is where the first plane's first bit stands."""
    features = feature_set(name)
    rng = np.random.default_rng(seed)
    area = size * size
    bits = rng.random((rows, features.bits, area)) < 0.3
    bits[:, 0] = True
    move = rng.integers(0, area, rows)
    bits[:, 1] = False
    bits[np.arange(rows), 1, move] = True
    value = np.where(move < area // 2, 1.0, -1.0)
    ownership = np.where(bits[:, 2 % features.bits], 127, -127)
    ownership[0, :3] = -128
    return {
        "planes": np.packbits(bits.reshape(rows, -1), axis=1),
        **({"globals": rng.random((rows, features.globals))} if features.globals else {}),
        **({"levels": rng.integers(0, 9, (rows, widths(features, size)["levels"]))} if features.levels else {}),
        "policy_moves": np.stack([move, (move + 1) % area], 1),
        "policy_weights": np.tile([0.75, 0.25], (rows, 1)),
        "value": value,
        "search_value": np.where(np.arange(rows) % 2, 0.0, np.nan),
        "lead": 10.0 * value,
        "score_mean": 9.0 * value,
        "score_stdev": np.full(rows, 5.0),
        "komi": np.full(rows, -7.5),
        "ownership": ownership,
    }


def make_set(folder: Path, name: str, sizes: tuple[int, ...] = (5, 7), rows: int = 48) -> Any:
    begin_dataset(folder, Manifest(name))
    for size in sizes:
        write_shard(folder, shard_name("train", size, 0), "train", size, columns_of(name, rows, size, size))
        write_shard(folder, shard_name("test", size, 0), "test", size, columns_of(name, 16, size, 100 + size))
    return open_dataset(folder)


SMALL_GO = {"blocks": 1, "channels": 8, "pooled": 4, "pooling_blocks": [0], "head": 4, "hidden": 8, "kernel": 3}
SMALL_TRANSFORMER = {
    "channels": 8,
    "trunk": [{"kind": "bottleneck", "inner": [{"kind": "attention", "heads": 2}, {"kind": "ffn"}]}],
    **{"tip": "rms", "activation": "silu", "head": 4, "hidden": 8, "kernel": 3},
}


def config_of(folder: Path, training: dict[str, Any], network: dict[str, Any] = SMALL_GO, **data: Any) -> Any:
    tables = {
        "network": {"kind": "go", "name": "tiny", **network},
        "data": {"folders": ["set"], **data},
        "training": {"steps": 12, "batch": 16, "learning_rate": 0.01, "test_every": 6, **training},
    }
    return parse_config(tables, folder)


@pytest.mark.parametrize("name", ["katago-v7", "cosumi-3", "alphazero-shogi-45", "dlshogi-62-57"])
def test_tensors_are_what_evaluators_see(name: str, tmp_path: Path) -> None:
    size = 9
    source = BatchSource([make_set(tmp_path, name, (size,))], "train", 16, 1)
    decoder = Decoder(source.features, torch.device("cpu"), "random", 1, 0.0)
    batch = source.batch(0)
    planes, extras = unpack(batch, source.features)
    plain = decoder.example(batch, turned=False)
    np.testing.assert_allclose(plain.inputs[0].numpy(), planes, atol=1e-6)
    np.testing.assert_allclose(plain.inputs[1].numpy()[:, :, 0, 0], extras, atol=1e-6)
    turned = decoder.example(batch)
    symmetries = symmetries_of(source.features, size)
    count = 8 if source.features.game == "go" else 2
    chosen = np.random.default_rng([1, batch.step]).integers(0, count, batch.rows)
    assert len(set(chosen)) > count // 2
    for row, symmetry in enumerate(chosen):
        points, moves = symmetries.points[symmetry], symmetries.moves[symmetry]
        seen = turned.inputs[0][row].flatten(1).numpy()
        np.testing.assert_array_equal(seen[:, points], plain.inputs[0][row].flatten(1).numpy())
        assert turned.labels["policy_moves"][row].tolist() == moves[batch.columns["policy_moves"][row]].tolist()
        owners = turned.labels["ownership"][row].numpy()
        np.testing.assert_array_equal(owners[points], plain.labels["ownership"][row].numpy())


def test_losses_know_what_is_not_known(tmp_path: Path) -> None:
    source = BatchSource([make_set(tmp_path, "katago-v7", (5,))], "train", 16, 1)
    example = Decoder(source.features, torch.device("cpu"), "none", 1, 0.5).example(source.batch(0))
    searched = source.batch(0).columns["search_value"].astype(np.float32)
    value = source.batch(0).columns["value"].astype(np.float32)
    mixed = np.where(np.isnan(searched), value, (value + searched) / 2)
    np.testing.assert_allclose(example.labels["value"].numpy(), mixed)
    shares = torch.log(example.labels["policy_weights"])
    policy = torch.full((16, 26), -20.0).scatter(1, example.labels["policy_moves"], shares)
    perfect = {
        "policy": policy,
        "score": (example.labels["lead"] - example.labels["komi"])[:, None],
        "value": example.labels["value"][:, None],
        "misc": torch.stack([9 * value_of(example) / 20, torch.log(torch.expm1(torch.full((16,), 0.25)))], 1),
        "ownership": 20.0 * torch.nan_to_num(example.labels["ownership"]),
    }
    perfect["misc"] = torch.cat([perfect["misc"], (example.labels["lead"] / 20)[:, None], torch.zeros(16, 1)], 1)
    found = losses.losses(perfect, example)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert found["policy"].item() == pytest.approx(entropy, abs=1e-3)
    for name in ("score", "value", "lead", "score_mean", "score_stdev", "ownership"):
        assert found[name].item() == pytest.approx(0.0, abs=1e-3), name
    nothing = {"policy": torch.zeros(16, 26, requires_grad=True), "value": torch.zeros(16, 1, requires_grad=True)}
    example.labels["value"][:] = float("nan")
    example.labels["policy_weights"][:] = 0.0
    weights = SimpleNamespace(**dataclasses.asdict(LossConfig()))
    total = losses.weighted(losses.losses(nothing, example), weights, nothing, example)
    total.backward()
    assert total.item() == 0.0
    assert all(torch.isfinite(each.grad).all() for each in nothing.values())


@pytest.mark.parametrize("search_value", [0.0, 0.25])
@pytest.mark.parametrize(("decay", "power"), [("none", 0), ("linear", 1), ("cubic", 3)])
def test_results_count_less_in_early_positions(decay: str, power: int, search_value: float, tmp_path: Path) -> None:
    columns = columns_of("katago-v7", 8, 5, 1)
    columns["progress"] = progress = np.array([0, 0, 0.25, 0.5, 0.5, 0.75, np.nan, np.nan])
    begin_dataset(tmp_path / "set", Manifest("katago-v7"))
    write_shard(tmp_path / "set", "train-05-00000", "train", 5, {**columns, "search_value": [-0.5, np.nan] * 4})
    trainer = Trainer(config_of(tmp_path, {}, label_decay=decay, search_value=search_value), tmp_path / "run")
    expected = []
    for row, result in enumerate(columns["value"]):
        share = 1.0 if np.isnan(progress[row]) else progress[row] ** power
        searched = row % 2 == 0 and search_value > 0.0
        share *= 1.0 - search_value if searched else 1.0
        expected.append(share * result + (1.0 - share) * (-0.5 if searched else 0.0))
    found = trainer.decoder.example(trainer.source.batch(0)).labels["value"]
    np.testing.assert_allclose(found.numpy(), expected)


def test_dropout_is_for_the_units_of_a_training(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "aya-50", (9,))
    tables = {
        "network": {"kind": "aya-value", "name": "tiny", "filters": 4, "board_size": 9},
        "data": {"folders": ["set"]},
        "training": {"steps": 2, "batch": 16, "precision": "fp32", "dropout": 0.5},
    }
    config = parse_config(tables, tmp_path)
    trainer = Trainer(config, tmp_path / "run")
    units: list[Any] = []
    trainer.network.act.register_forward_hook(lambda module, _, output: units.append(output.detach()))
    example = trainer.decoder.example(trainer.source.batch(0))
    trainer.network.train()(*example.inputs)
    trainer.network.eval()(*example.inputs)
    assert ((units[0] == 0) & (units[1] > 0)).any()
    plain = make("aya-value", config.options)
    plain.load_state_dict(trainer.network.state_dict())
    torch.testing.assert_close(trainer.network(*example.inputs), plain.eval()(*example.inputs))
    with pytest.raises(NetworkError, match=r"dropout = 0\.1 found, expected 0 for network sparse-shogi: it has no "):
        loop.add_dropout(make("sparse-shogi", {"value": 128}), 0.1, "sparse-shogi")


@pytest.mark.parametrize("side", [5, 3, 1])
def test_points_of_a_score_are_owned(side: int, tmp_path: Path) -> None:
    source = BatchSource([make_set(tmp_path, "cosumi-3", (5,))], "train", 16, 1)
    example = Decoder(source.features, torch.device("cpu"), "none", 1, 0.0).example(source.batch(0))
    ownership = example.labels["ownership"].numpy()
    known = np.isfinite(ownership).all(1)
    assert 0 < known.sum() < 16  # make_set leaves some owners unknown
    points = np.random.default_rng(1).normal(0.0, 20.0, (16, side, side)).astype(np.float32)
    cut = (5 - side) // 2
    expected = []
    for row in np.flatnonzero(known):
        parts = points[row] / side**2
        for y, x in np.ndindex(5, 5):
            parts[min(max(y - cut, 0), side - 1), min(max(x - cut, 0), side - 1)] -= ownership[row, 5 * y + x]
        expected.append(np.abs(parts).sum())
    outputs = {"points": torch.from_numpy(points)[:, None]}
    assert losses.losses(outputs, example)["points"].item() == pytest.approx(np.mean(expected), rel=1e-5)


def value_of(example: Any) -> Any:
    """Return the result's sign of each row: the score's labels were made of it."""
    return torch.sign(example.labels["score_mean"])


def state_of(trainer: Any) -> dict[str, Any]:
    return {name: each.clone() for name, each in trainer.network.state_dict().items()}


@pytest.mark.parametrize(("optimizer", "dropout"), [("adamw", 0.0), ("sgd", 0.3)])
def test_a_run_that_was_killed_goes_on_exactly(
    optimizer: str, dropout: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LOG_EVERY", 2)
    make_set(tmp_path / "set", "katago-v7")
    training: dict[str, Any] = {"optimizer": optimizer, "average": "ema", "schedule": "cosine"}
    training |= {"warmup": 3, "checkpoint_every": 4, "dropout": dropout}
    config = config_of(tmp_path, training)
    whole = Trainer(config, tmp_path / "whole")
    whole.run(quietly)
    first = Trainer(config, tmp_path / "parts")
    train_step = first.train_step

    def killed(example: Any) -> Any:
        if first.step == 7:
            raise KeyboardInterrupt
        return train_step(example)

    monkeypatch.setattr(first, "train_step", killed)
    with pytest.raises(KeyboardInterrupt):
        first.run(quietly)
    assert rows_of(tmp_path / "parts", "train.csv").keys() == {"2", "4", "6"}
    assert rows_of(tmp_path / "parts", "test.csv").keys() == {"6"}
    # What it has done since its checkpoint is lost, and done again; how many threads read makes no difference.
    second = Trainer(config_of(tmp_path, {**training, "loaders": 3}), tmp_path / "parts")
    assert second.step == 4
    second.run(quietly)
    assert second.step == whole.step == 12
    for name, value in state_of(whole).items():
        assert torch.equal(value, second.network.state_dict()[name]), name
    assert whole.average is not None
    assert second.average is not None
    for name, value in whole.average.state.items():
        assert torch.equal(value, second.average.state[name]), name
    for name, steps in {"train.csv": ["2", "4", "6", "8", "10", "12"], "test.csv": ["6", "12"]}.items():
        assert list(rows_of(tmp_path / "whole", name)) == steps
        assert rows_of(tmp_path / "whole", name) == rows_of(tmp_path / "parts", name)
    with pytest.raises(NetworkError, match="a run of another network found"):
        Trainer(parse_config({**tables_of(config), "network": other_network()}, tmp_path), tmp_path / "parts")


def open_ended(folder: Path, training: dict[str, Any], network: dict[str, Any] = SMALL_GO) -> Any:
    """Return a configuration without data and without a last step."""
    config = config_of(folder, training, network, folders=[])
    return dataclasses.replace(config, training=dataclasses.replace(config.training, steps=0))


def window_of(dataset: Any, generation: int, steps: int = 4) -> WindowSource:
    shards = [shard for shard in dataset.shards if shard.split == "train"]
    return WindowSource(dataset.manifest.features, shards, 16, steps, 1, generation)


def test_windows_follow_each_other(tmp_path: Path) -> None:
    dataset = make_set(tmp_path / "set", "katago-v7")
    windows = [window_of(dataset, generation) for generation in range(3)]
    config = open_ended(tmp_path, {"average": "ema", "warmup": 10, "checkpoint_every": 3})
    whole = Trainer(config, tmp_path / "whole", source=windows[0])
    assert whole.tests is None
    rates = []
    for window in windows:
        whole.use(window)
        whole.run(quietly)
        rates.append(whole.optimizer.param_groups[0]["lr"])
    assert (whole.step, whole.begun) == (12, 8)
    assert rates == pytest.approx([0.004, 0.008, 0.01])
    parts = Trainer(config, tmp_path / "parts", source=windows[0])
    parts.run(quietly)
    parts.run(quietly)  # there is nothing left of the window
    assert parts.step == 4
    parts = Trainer(config, tmp_path / "parts", source=windows[1])
    assert (parts.step, parts.begun) == (4, 4)
    parts.run(quietly, stop_at=6)
    parts = Trainer(config, tmp_path / "parts", source=windows[1])
    assert (parts.step, parts.begun) == (6, 4)
    parts.run(quietly)
    parts.use(windows[2])
    parts.run(quietly)
    for name, value in state_of(whole).items():
        assert torch.equal(value, parts.network.state_dict()[name]), name
    assert parts.export().exists()


def test_given_sources_are_tested_on_the_data_sets(tmp_path: Path) -> None:
    dataset = make_set(tmp_path / "set", "katago-v7")
    trainer = Trainer(config_of(tmp_path, {"test_every": 2}), tmp_path / "run", source=window_of(dataset, 0))
    trainer.run(quietly)
    assert list(rows_of(tmp_path / "run", "test.csv")) == ["2", "4"]


def test_what_goes_on_without_an_end_needs_a_source(tmp_path: Path) -> None:
    dataset = make_set(tmp_path / "set", "katago-v7")
    config = open_ended(tmp_path, {})
    with pytest.raises(NetworkError, match=r"\[data\] folders = \[\] found"):
        Trainer(config, tmp_path / "run")
    data = dataclasses.replace(config.data, folders=("set",))
    with pytest.raises(NetworkError, match=r"\[training\] steps = 0 found, expected at least 1"):
        Trainer(dataclasses.replace(config, data=data), tmp_path / "run")
    with pytest.raises(NetworkError, match="schedule = 'cosine' found without a last step"):
        Trainer(open_ended(tmp_path, {"schedule": "cosine"}), tmp_path / "run", source=window_of(dataset, 0))
    other = window_of(make_set(tmp_path / "other", "aya-49"), 0)
    trainer = Trainer(config, tmp_path / "run", source=window_of(dataset, 0))
    with pytest.raises(NetworkError, match="source: feature set aya-49 found, expected katago-v7 for network go"):
        trainer.use(other)


def rows_of(folder: Path, name: str) -> dict[str, dict[str, str]]:
    """Return the rows of a run's table by their steps, but for how fast it was."""
    rows = read_log(folder / name)
    assert len({row["step"] for row in rows}) == len(rows)
    return {row["step"]: row | {"positions_per_second": ""} for row in rows}


def quietly(step: int, values: dict[str, float]) -> None:
    """Say nothing."""


def test_a_run_goes_on_with_the_settings_of_its_optimizer_by_now(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    training = {"optimizer": "sgd", "momentum": 0.5, "weight_decay": 0.1}
    Trainer(config_of(tmp_path, training), tmp_path / "run").run(quietly, 3)
    changed = Trainer(config_of(tmp_path, {**training, "momentum": 0.9, "weight_decay": 0.001}), tmp_path / "run")
    assert changed.step == 3
    groups = changed.optimizer.param_groups
    assert [(group["weight_decay"], group["momentum"]) for group in groups] == [(0.001, 0.9), (0.0, 0.9)]
    changed.run(quietly, 4)
    with pytest.raises(NetworkError, match=r"checkpoint\.pt: optimizer sgd found, expected adamw, or a new folder"):
        Trainer(config_of(tmp_path, {}), tmp_path / "run")


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_what_no_label_teaches_says_the_same_of_every_position(optimizer: str, tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    config = config_of(tmp_path, {"steps": 3, "optimizer": optimizer, "weight_decay": 0.1})
    config = dataclasses.replace(config, options={**config.options, "activation": "mish"})
    trainer = Trainer(config, tmp_path / "run")
    trainer.run(quietly)
    head = read_network(trainer.export()).value_head
    assert head.sv3.weights.shape[1] == 6
    assert head.sv3.weights[:, :3].all()
    assert not head.sv3.weights[:, 3:].any()
    np.testing.assert_array_equal(head.sv3_bias.bias[3:], np.float32(UNTAUGHT_MISC))


def make_uncertain_set(folder: Path) -> Any:
    """Write equal positions that turn out better or worse by chance: by more where a global says so."""
    columns = columns_of("katago-v7", 256, 5, 1)
    rng = np.random.default_rng(2)
    wild = np.arange(256) % 2 == 1
    sign = rng.choice([-1.0, 1.0], 256)
    columns["globals"] = np.where(np.arange(19) == 0, wild[:, None], 0.0)
    labels = {"value": np.full(256, 0.3), "lead": np.full(256, 5.0), "score_mean": np.full(256, 5.0)}
    by_value, by_score = sign * np.where(wild, 0.6, 0.2), sign * np.where(wild, 10.0, 3.0)
    later = {"short_value": 0.3 + by_value, "short_score": 5.0 + by_score}
    later["short_value"][:10] = np.nan
    del columns["search_value"]
    begin_dataset(folder, Manifest("katago-v7"))
    write_shard(folder, shard_name("train", 5, 0), "train", 5, {**columns, **labels, **later})
    return open_dataset(folder)


@pytest.mark.parametrize("version", [11, 14])
def test_short_term_errors_are_those_of_the_networks_own_value(version: int, tmp_path: Path) -> None:
    source = BatchSource([make_uncertain_set(tmp_path / "set")], "train", 256, 1)
    training = {"steps": 500, "batch": 64, "learning_rate": 0.02, "schedule": "cosine", "precision": "fp32"}
    network = {**SMALL_GO, "activation": "mish", "version": version, "short_errors": True}
    config = config_of(tmp_path, training, network)
    config = dataclasses.replace(config, loss=LossConfig(policy=0.0, ownership=0.0))
    Trainer(config, tmp_path / "run").run(quietly, 50)
    trainer = Trainer(config, tmp_path / "run")
    assert trainer.network.state_dict()["misc.weight"][4:].any(1).all()  # what was taught stays
    seen: list[dict[str, float]] = []
    trainer.run(lambda step, values: seen.append(values))
    assert {"short_value_error", "short_score_error"} <= set(seen[0])
    exported = read_network(trainer.export())
    assert exported.version == version
    assert not exported.value_head.sv3.weights[:, 3].any()  # nothing teaches how much time is left
    planes, globals_ = unpack(source.batch(0), source.features)
    raw = [forward(exported, planes[row], globals_[row]) for row in range(32)]
    stacked = {name: np.stack([np.float32(each[name]) for each in raw]) for name in raw[0]}
    found = post_process(RawOutputs(**stacked), np.ones((32, 26), np.bool_), False, describe(exported, 5, "", ""))
    wild = globals_[:32, 0] > 0.5
    assert 8 < wild.sum() < 24
    np.testing.assert_allclose(found.shortterm_winloss_error, np.where(wild, 0.6, 0.2), atol=0.06)
    np.testing.assert_allclose(found.shortterm_score_error, np.where(wild, 10.0, 3.0), atol=1.0)


def test_short_term_errors_are_taught_only_where_that_is_wanted(tmp_path: Path) -> None:
    make_uncertain_set(tmp_path / "set")
    seen: list[dict[str, float]] = []
    trainer = Trainer(config_of(tmp_path, {"steps": 2}, {**SMALL_GO, "version": 10}), tmp_path / "run")
    trainer.run(lambda step, values: seen.append(values))
    assert "short_value_error" not in seen[0]
    assert not trainer.network.state_dict()["misc.weight"][3:].any()
    assert make("go", {**SMALL_GO, "short_errors": True}).version == 10
    export_file(make("go", {**SMALL_GO, "version": 10}), "given", tmp_path, {})
    trainer = Trainer(config_of(tmp_path, {"steps": 2}, {"start": "given.bin.gz"}), tmp_path / "further")
    trainer.run(quietly)
    assert trainer.network.state_dict()["misc.weight"][4:].any(1).all()


@pytest.mark.parametrize("average", ["none", "ema"])
def test_a_run_that_began_with_something_random_there_says_the_same_from_now_on(average: str, tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    config = config_of(tmp_path, {"average": average})
    before = Trainer(config, tmp_path / "run")
    for state in filter(None, (before.network.state_dict(), before.average and before.average.state)):
        state["misc.weight"][3:] = 1.0
        state["misc.bias"][3:] = 2.0
    before.run(quietly, 2)
    trainer = Trainer(config, tmp_path / "run")
    for step in (2, 3):
        trainer.run(quietly, step)
        head = read_network(trainer.export()).value_head
        assert head.sv3.weights[:, :3].all()
        assert not head.sv3.weights[:, 3:].any()
        np.testing.assert_array_equal(head.sv3_bias.bias[3:], np.float32(UNTAUGHT_MISC))


def test_a_run_goes_on_in_half_precision(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    Trainer(config_of(tmp_path, {"precision": "fp32"}), tmp_path / "run").run(quietly, 3)
    for precision, last in (("fp16", 5), ("fp16", 6), ("fp32", 7)):
        trainer = Trainer(config_of(tmp_path, {"precision": precision}), tmp_path / "run")
        trainer.run(quietly, last)
        assert trainer.step == last
        assert bool(load_checkpoint(trainer.checkpoint)["scaler"]) == (precision == "fp16")


@pytest.mark.parametrize("average", ["ema", "swa"])
def test_a_mean_that_is_wanted_later_begins_with_the_weights_of_then(average: str, tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    Trainer(config_of(tmp_path, {}), tmp_path / "run").run(quietly, 3)
    changed = Trainer(config_of(tmp_path, {"average": average}), tmp_path / "run")
    assert changed.average is not None
    for name, value in state_of(changed).items():
        assert torch.equal(value, changed.average.state[name]), name
    assert changed.average.count == 0
    changed.run(quietly, 4)
    assert changed.average.count == 1


@pytest.mark.parametrize("test_every", [6, 7])
def test_a_checkpoint_is_not_replaced_by_one_that_is_no_number(test_every: int, tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    config = config_of(tmp_path, {"checkpoint_every": 4, "test_every": test_every})

    def total(*given: Any) -> Any:
        return losses.weighted(*given) * (float("nan") if trainer.step == 5 else 1.0)

    trainer = Trainer(config, tmp_path / "run", total=total)
    with pytest.raises(NetworkError, match=f"loss nan at step {min(test_every, 8)} found, expected a number"):
        trainer.run(quietly)
    assert load_checkpoint(trainer.checkpoint)["step"] == 4
    assert Trainer(config, tmp_path / "run").step == 4


@pytest.mark.parametrize(("loss", "found"), [(None, "NoneType"), (torch.zeros(2), r"torch.Size\(\[2\]\)")])
def test_a_loss_is_a_tensor_with_one_number(loss: Any, found: str, tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    trainer = Trainer(config_of(tmp_path, {}), tmp_path / "run", total=lambda *given: loss)
    with pytest.raises(NetworkError, match=f"loss: {found} found, expected a tensor with one number"):
        trainer.run(quietly)


def test_weights_that_are_no_numbers_are_not_kept(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    trainer = Trainer(config_of(tmp_path, {}), tmp_path / "run")
    trainer.run(quietly, 2)
    next(trainer.network.parameters()).data[0] = float("inf")
    with pytest.raises(NetworkError, match="weights that are not finite at step 2 found, expected numbers"):
        trainer.save()
    assert Trainer(config_of(tmp_path, {}), tmp_path / "run").step == 2


def tables_of(config: Any) -> dict[str, Any]:
    record = config.to_dict()
    return {"data": {"folders": list(record["data"]["folders"])}, "training": {"steps": 12}}


def other_network() -> dict[str, Any]:
    return {"kind": "go", "name": "tiny", **SMALL_GO, "hidden": 9}


@pytest.mark.parametrize("network", [SMALL_GO, SMALL_TRANSFORMER])
def test_training_learns_and_exports(network: dict[str, Any], tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7", rows=256)
    training = {"steps": 150, "batch": 64, "test_every": 150, "average": "swa", "average_start": 120}
    config = config_of(tmp_path, training, network)
    trainer = Trainer(config, tmp_path / "run")
    before = trainer.test().values()
    seen: list[dict[str, float]] = []
    trainer.run(lambda step, values: seen.append(values))
    after = trainer.test().values()
    assert after["policy_loss"] < 0.8 * before["policy_loss"]
    assert after["ownership_error"] < before["ownership_error"]
    assert len(seen) == 3
    assert {"policy", "value", "lead", "score_mean", "score_stdev", "ownership"} <= set(seen[0])
    path = trainer.export()
    exported = read_network(path)
    assert exported.name == "tiny"
    average = trainer.average
    assert average is not None
    np.testing.assert_array_equal(exported.trunk.conv.weights, average.state["conv.weight"].numpy())


def test_a_run_begins_with_a_katago_network(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    torch.manual_seed(3)
    given = make("go", SMALL_TRANSFORMER)
    given.state_dict()["misc.weight"][3:] = 0.5  # what KataGo's own training taught stays
    path = export_file(given, "given", tmp_path, {})
    config = config_of(tmp_path, {"steps": 2, "weight_decay": 0.0}, {"start": "given.bin.gz"})
    trainer = Trainer(config, tmp_path / "run")
    before, given_network = read_network(trainer.export()), read_network(path)
    np.testing.assert_array_equal(before.trunk.conv.weights, given_network.trunk.conv.weights)
    trainer.run(quietly, stop_at=1)
    trainer = Trainer(config, tmp_path / "run")
    assert trainer.step == 1
    trainer.run(quietly)
    after = read_network(trainer.export())
    assert (after.trunk.conv.weights != before.trunk.conv.weights).any()
    np.testing.assert_array_equal(after.value_head.sv3.weights[:, 3:], 0.5)
    with pytest.raises(NetworkError, match="a run of another network found"):
        Trainer(config_of(tmp_path, {"steps": 2}, SMALL_TRANSFORMER), tmp_path / "run")


def test_other_networks_learn_from_their_features(tmp_path: Path) -> None:
    small = {
        "aya-policy": ({"filters": 4}, "aya-49", 9),
        "aya-value": ({"filters": 4, "board_size": 9}, "aya-50", 9),
        "cosumi-stack": ({"filters": 4, "layers": 4, "norm": "after", "board_size": 9}, "cosumi-3", 9),
        "dlshogi-resnet": ({"blocks": 1, "channels": 8}, "dlshogi-62-57", 9),
        "alphazero-shogi": ({"blocks": 1, "filters": 8}, "alphazero-shogi-45", 9),
    }
    for kind, (options, features, size) in small.items():
        folder = tmp_path / kind
        make_set(folder / "set", features, (size,))
        network = {"kind": kind, "name": "tiny", **options}
        tables = {"network": network, "data": {"folders": ["set"]}, "training": {"steps": 3, "batch": 16}}
        trainer = Trainer(parse_config(tables, folder), folder / "run")
        trainer.run(lambda step, values: None)
        assert trainer.export().exists()
        assert trainer.test().values()


def test_a_teacher_shows_how_it_gets_there(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7", rows=256)
    torch.manual_seed(2)
    teacher = make("go", SMALL_GO)
    for parameter in teacher.parameters():
        parameter.data.normal_(0.0, 0.3)
    export_file(teacher, "teacher", tmp_path, {})
    training = {"steps": 100, "batch": 64, "optimizer": "muon", "test_every": 100}
    config = config_of(tmp_path, training)
    config = dataclasses.replace(config, teacher=TeacherConfig("teacher.bin.gz"), loss=LossConfig(hints=10.0))
    seen: list[dict[str, float]] = []
    Trainer(config, tmp_path / "run").run(lambda step, values: seen.append(values))
    assert seen[-1]["hints"] < 0.3 < 0.6 < seen[0]["hints"]


def test_hints_are_shares_of_variances() -> None:
    torch.manual_seed(1)
    wanted = torch.randn(4, 3, 5, 5) * torch.tensor([1.0, 5.0, 0.0])[:, None, None]
    found = torch.randn(4, 3, 5, 5, requires_grad=True)
    loss = losses.hints([found, wanted], [wanted, wanted])
    variance = wanted.var((0, 2, 3), correction=0).clamp(min=losses.MIN_VARIANCE)
    expected = (((found - wanted) ** 2).mean((0, 2, 3)) / variance).mean() / 2
    torch.testing.assert_close(loss, expected)
    gradients = [torch.autograd.grad(each, found)[0] for each in (loss, expected)]
    torch.testing.assert_close(gradients[0], gradients[1])


def test_hints_are_computed_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels far from zero that hardly change: bfloat16 would leave nothing of their variance."""
    make_set(tmp_path / "set", "katago-v7")
    export_file(make("go", SMALL_GO), "teacher", tmp_path, {})
    config = config_of(tmp_path, {"precision": "bf16"})
    trainer = Trainer(dataclasses.replace(config, teacher=TeacherConfig("teacher.bin.gz")), tmp_path / "run")
    example = trainer.decoder.example(trainer.source.batch(0))
    wanted = 5.0 + 0.1 * torch.randn(16, 8, *example.inputs[0].shape[2:])
    seen: list[Any] = []
    share = losses.hints

    def hints(maps: Any, wanted: Any) -> Any:
        seen.append(maps[0].detach().double())
        return share(maps, wanted)

    monkeypatch.setattr(trainer.teacher, "maps", lambda example: [wanted])
    monkeypatch.setattr(losses, "hints", hints)
    found = trainer.train_step(example)["hints"]
    exact = wanted.double()
    expected = ((seen[0] - exact) ** 2).mean((0, 2, 3)) / exact.var((0, 2, 3), correction=0)
    assert found.item() == pytest.approx(expected.mean().item(), rel=1e-3)


def test_teachers_of_another_shape_are_refused(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "katago-v7")
    export_file(make("go", {**SMALL_GO, "channels": 6}), "teacher", tmp_path, {})
    config = dataclasses.replace(config_of(tmp_path, {}), teacher=TeacherConfig("teacher.bin.gz"))
    with pytest.raises(NetworkError, match="1 blocks of 6 channels found, expected the learner's 1 of 8"):
        Trainer(config, tmp_path / "run")
    make_set(tmp_path / "other" / "set", "cosumi-3", (9,))
    network = {"kind": "cosumi-stack", "name": "tiny", "filters": 4, "layers": 4, "norm": "after", "board_size": 9}
    tables = {"network": network, "data": {"folders": ["set"]}, "teacher": {"network": "../teacher.bin.gz"}}
    with pytest.raises(NetworkError, match="expected none except for networks of kind go"):
        Trainer(parse_config({**tables, "training": {"steps": 3}}, tmp_path / "other"), tmp_path / "run")


def test_wrong_data_are_refused(tmp_path: Path) -> None:
    make_set(tmp_path / "set", "aya-49", (9,))
    with pytest.raises(NetworkError, match="feature set aya-49 found, expected katago-v7 for network go"):
        Trainer(config_of(tmp_path, {}), tmp_path / "run")


@pytest.mark.parametrize("given", [False, True])
def test_averaged_weights_have_batch_norms_of_their_own(given: bool, tmp_path: Path) -> None:
    dataset = make_set(tmp_path / "set", "katago-v7", (5,), rows=256)
    training = {"steps": 40, "average": "swa", "learning_rate": 0.03, "precision": "fp32"}
    config = config_of(tmp_path, training, {**SMALL_GO, "norm": "batch"}, symmetries="none")
    trainer = Trainer(config, tmp_path / "run", source=window_of(dataset, 0, 40) if given else None)
    trainer.run(quietly)
    before = state_of(trainer)
    path = trainer.export()
    assert all(torch.equal(value, before[name]) for name, value in state_of(trainer).items())
    assert trainer.average is not None
    # What each norm sees when the averaged network is shown the last batches, in plain means over them.
    network = make("go", {**SMALL_GO, "norm": "batch"})
    network.load_state_dict(trainer.average.state)
    stale = norms_of(to_katago(network, "stale"))
    norms = {name: each for name, each in network.named_modules() if isinstance(each, torch.nn.BatchNorm2d)}
    seen: dict[str, list[Any]] = {name: [] for name in norms}
    for name, norm in norms.items():
        norm.register_forward_hook(lambda module, inputs, output, name=name: seen[name].append(inputs[0].detach()))
    for step in range(8, 40):
        example = trainer.decoder.example(trainer.source.batch(step))
        network.train()(*example.inputs)
    exported = norms_of(read_network(path))
    assert len(exported) == len(stale) == 3
    for name in stale:
        naive = [np.mean([m.numpy() for m in f], 0) for f in moments_of(seen[f"{name}.norm"])]
        for found, wanted, old in zip(exported[name], naive, stale[name], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
            assert np.abs(old - wanted).max() > 100 * np.abs(found - wanted).max(), name


def moments_of(maps: list[Any]) -> list[list[Any]]:
    """Return the means and the variances over each map's boards."""
    return [[each.mean((0, 2, 3)) for each in maps], [each.var((0, 2, 3)) for each in maps]]


def norms_of(network: Any) -> dict[str, tuple[Any, Any]]:
    """Return means and variances of some norms of a KataGo network, by our names."""
    block = network.trunk.blocks[0]
    norms = {"blocks.0.norm1": block.norm1, "blocks.0.norm2": block.norm2, "norm_v1": network.value_head.norm_v1}
    return {name: (norm.mean, norm.variance) for name, norm in norms.items()}


def test_averages() -> None:
    module = torch.nn.Linear(1, 1, bias=False)
    config = TrainingConfig(steps=9, average="swa", average_start=2)
    swa, ema = Average(module, config), Average(module, TrainingConfig(steps=9, average="ema", decay=0.5))
    expected = module.weight.item()
    for step, value in enumerate([8.0, 7.0, 1.0, 2.0, 6.0]):
        module.weight.data.fill_(value)
        swa.update(module, step)
        ema.update(module, step)
        expected += (1 - min(0.5, (1 + step) / (10 + step))) * (value - expected)
    assert float(swa.state["weight"]) == pytest.approx(3.0)
    assert float(ema.state["weight"]) == pytest.approx(expected)
