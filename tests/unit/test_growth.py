"""Networks that grow between generations play on as before."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (extra train)")

from tests.unit.test_training import SMALL_TRANSFORMER, make_set, one_thread  # noqa: E402, F401
from yomi.engine.learning.settings import LearnSettings, parse_growth  # noqa: E402
from yomi.nets.definitions.catalog import make  # noqa: E402
from yomi.nets.errors import NetworkError  # noqa: E402
from yomi.nets.metadata import feature_set  # noqa: E402
from yomi.nets.training.generations import (  # noqa: E402
    Generations,
    check_growth,
    grow,
)
from yomi.nets.training.weights import load_checkpoint, save_checkpoint  # noqa: E402
from yomi.settings import OptionError, make_settings  # noqa: E402

GO = {"channels": 8, "pooled": 4, "pooling_blocks": [0, 2], "head": 4, "hidden": 8, "kernel": 3}
SMALL: list[tuple[str, dict[str, Any]]] = [
    ("go", GO),
    ("go", {**GO, "norm": "batch", "activation": "mish"}),
    ("go", {key: value for key, value in GO.items() if key != "pooling_blocks"}),
    ("dlshogi-resnet", {"channels": 8}),
    ("alphazero-shogi", {"filters": 8}),
]
GROWTH = [(1000, 3)]


class Run:
    """A tiny run of learning, without its games."""

    def __init__(self, folder: Path, kind: str, options: dict[str, Any], optimizer: str = "muon") -> None:
        self.kind, self.options, self.folder = kind, options, folder
        self.features = make(kind, {**options, **self.blocks(3)}).feature_set
        game = feature_set(self.features).game
        self.size = 5 if game == "go" else 9
        self.dataset = make_set(folder / "set", self.features, (self.size,), rows=64)
        training = {"batch": 16, "optimizer": optimizer, "average": "ema", "decay": 0.5, "precision": "fp32"}
        self.tables = {"network": {"kind": kind, "name": "tiny", "blocks": 1, **options}, "training": training}
        self.said: list[str] = []

    def blocks(self, count: int) -> dict[str, Any]:
        pooling = [index for index in self.options.get("pooling_blocks", [2]) if index < count]
        return {"blocks": count, **({"pooling_blocks": pooling} if self.kind == "go" else {})}

    def learner(self, growth: Any = GROWTH) -> Generations:
        return Generations(self.folder / "train", self.tables, 100, growth=growth, say=self.said.append)

    def train(self, learner: Generations, generation: int, rows: int) -> bytes:
        path, _ = learner.run(self.dataset, generation, rows, 3 * generation - 3, 3 * generation, lambda *_: None)
        return path.read_bytes()

    def state(self) -> dict[str, Any]:
        return load_checkpoint(self.folder / "train" / "checkpoint.pt")

    def network(self, blocks: int, weights: dict[str, Any]) -> Any:
        network = make(self.kind, {**self.options, **self.blocks(blocks)})
        network.load_state_dict(weights)
        return network

    def inputs(self) -> tuple[Any, Any]:
        torch.manual_seed(7)
        features = feature_set(self.features)
        planes = (torch.rand(32, features.planes, self.size, self.size) < 0.3).float()
        planes[:, 0] = 1.0
        return planes, torch.rand(32, features.extras, 1, 1)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("kind", "options"), SMALL)
def test_a_grown_network_has_the_same_outputs(
    kind: str, options: dict[str, Any], training: bool, tmp_path: Path
) -> None:
    run = Run(tmp_path, kind, options)
    learner = run.learner()
    run.train(learner, 1, 500)
    before = run.state()
    _, blocks = grow(tmp_path / "train/checkpoint.pt", learner._config, GROWTH, 1000)
    assert blocks == 3
    after = run.state()
    inputs = run.inputs()
    for weights in ("network", "average"):
        small, large = run.network(1, before[weights]), run.network(3, after[weights])
        assert large.count() > small.count()
        wanted, found = small.train(training)(*inputs), large.train(training)(*inputs)
        for name, output in wanted.items():
            assert output.std() > 0.0
            torch.testing.assert_close(found[name], output, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kind", "options"), SMALL)
def test_new_blocks_learn(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    run = Run(tmp_path, kind, options)
    learner = run.learner()
    for generation, rows in enumerate((500, 999, 1000, 1500), 1):
        run.train(learner, generation, rows)
        weights = run.state()["network"]
        small = make(kind, {**options, **run.blocks(1)}).state_dict()
        assert (set(weights) == set(small)) == (generation < 3)
    assert run.said == ["network 3 grows to 3 blocks"]
    assert run.state()["step"] == 12
    without = dict(weights)
    inputs = run.inputs()
    wanted = run.network(3, weights).eval()(*inputs)
    for name in without.keys() - small.keys():
        if name.endswith(("conv2.weight", "second.1.weight", "second.1.bias")):
            without[name] = torch.zeros_like(without[name])
    found = run.network(3, without).eval()(*inputs)
    assert not torch.allclose(found["policy"], wanted["policy"], atol=1e-3)


def test_a_run_of_version_0_2_0_continues(tmp_path: Path) -> None:
    """For small networks that version named the left-out pooling blocks, here none."""
    run = Run(tmp_path, "go", {key: value for key, value in GO.items() if key != "pooling_blocks"})
    run.train(run.learner(), 1, 500)
    state = run.state()
    config = json.loads(state["config"])
    config["options"]["pooling_blocks"] = []
    save_checkpoint(tmp_path / "train/checkpoint.pt", {**state, "config": json.dumps(config, sort_keys=True)})
    for generation, (rows, pooling) in enumerate(((500, []), (1000, [2]), (1000, [2])), 2):
        run.train(run.learner(), generation, rows)
        assert json.loads(run.state()["config"])["options"]["pooling_blocks"] == pooling


@pytest.mark.parametrize("optimizer", ["muon", "adamw", "sgd"])
def test_the_optimizer_keeps_its_state_of_old_weights(optimizer: str, tmp_path: Path) -> None:
    run = Run(tmp_path, "go", GO, optimizer)
    learner = run.learner()
    run.train(learner, 1, 500)

    def by_name(trainer: Any) -> dict[str, Any]:
        names = {id(parameter): name for name, parameter in trainer.network.named_parameters()}
        return {names[id(parameter)]: dict(state) for parameter, state in trainer.optimizer.state.items() if state}

    assert learner._trainer is not None
    before = by_name(learner._trainer)
    learner.run(run.dataset, 2, 1000, 3, 3, lambda *_: None)
    after = by_name(learner._trainer)
    assert after.keys() == before.keys()
    assert len(before) > 20
    for name, state in before.items():
        for key, value in state.items():
            torch.testing.assert_close(after[name][key], value)
    run.train(learner, 2, 1000)
    assert "blocks.2.conv1.weight" in by_name(learner._trainer)


def test_a_run_that_ends_at_any_moment_grows_alike(tmp_path: Path) -> None:
    files = []
    for name in ("whole", "killed"):
        run = Run(tmp_path / name, "go", GO)
        learner = run.learner()
        for generation, rows in enumerate((500, 1000, 1500), 1):
            if name == "killed":  # before the second network, and between growth and training
                learner = run.learner()
                if generation == 2:
                    grow(run.folder / "train/checkpoint.pt", learner._config, GROWTH, rows)
            files.append(run.train(learner, generation, rows))
    assert files[:3] == files[3:]


def test_a_network_keeps_its_blocks_if_growth_is_left_out(tmp_path: Path) -> None:
    run = Run(tmp_path, "go", GO)
    run.train(run.learner(), 1, 1000)
    run.train(run.learner([]), 2, 1500)
    run.train(run.learner([(1000, 2)]), 3, 2000)
    assert "blocks.2.conv1.weight" in run.state()["network"]
    assert "blocks.3.conv1.weight" not in run.state()["network"]
    assert "blocks.2.pooling.weight" in run.state()["network"]
    assert run.said == []  # it began with three blocks


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"kind": "sparse-shogi"}, "grow: network of kind sparse-shogi found, expected go without start and trunk, "),
        ({"kind": "mine.py:Net", "blocks": 1}, "grow: network of kind mine.py:Net found, expected go without"),
        ({"kind": "go", **SMALL_TRANSFORMER}, "grow: network of kind go with trunk found, expected go without"),
        ({"kind": "go", "start": "a.bin.gz"}, "grow: network of kind go with start found, expected go without"),
        ({"kind": "dlshogi-resnet", "activation": "swish"}, "grow: network of kind dlshogi-resnet with activation"),
        ({"kind": "go", "blocks": 6}, "grow: blocks = 6 found, expected more than the 6 of [network]"),
        ({"kind": "go"}, "grow: blocks = 6 found, expected more than the 6 of [network]"),
        ({"kind": "go", "pooling_blocks": 1}, "network go: pooling_blocks = 1 found, expected a value such as (2, 4)"),
    ],
)
def test_networks_that_cannot_grow_are_refused(network: dict[str, Any], message: str) -> None:
    check_growth(network, [])
    with pytest.raises(NetworkError) as caught:
        check_growth(network, [(1000, 6)])
    assert str(caught.value).startswith(message)


def test_steps_of_growth() -> None:
    assert make_settings(LearnSettings, {"grow": [" 40000:6", "80000:8"]}).grow == "40000:6,80000:8"
    assert parse_growth("40000:6,80000:8") == [(40000, 6), (80000, 8)]
    assert parse_growth("") == []
    for wrong in ("40000", "40000:", ":6", "0:6", "6:x", "1:2,3:2", "5:1,4:2", "1:-2", "1:2:3", "1:²"):
        with pytest.raises(OptionError, match="grow: expected ROWS:BLOCKS, both ascending, such as 40000:6,80000:8"):
            make_settings(LearnSettings, {"grow": wrong})
