"""Configurations, learning rates and early stopping: what needs no PyTorch."""

from pathlib import Path
from typing import Any

import pytest

from tests.looping import looped
from yomi.nets.errors import NetworkError
from yomi.nets.training.config import RECIPES, TrainingConfig, parse_config, read_config
from yomi.nets.training.progress import EarlyStopping, learning_rate

GOOD: dict[str, Any] = {
    "network": {"kind": "go", "name": "small", "blocks": 4},
    "data": {"folders": ["a"]},
    "training": {"steps": 10, "learning_rate": 1, "milestones": [3, 6]},
}


def test_a_configuration_is_read(tmp_path: Path) -> None:
    config = parse_config(GOOD, tmp_path)
    assert config.options == {"blocks": 4}
    assert config.training.learning_rate == 1.0
    assert config.training.milestones == (3, 6)
    assert config.folder == tmp_path
    for path in sorted(Path(__file__).parents[2].glob("nets/recipes/*.toml")):
        assert read_config(path).name


@looped(
    ("table", "key", "value", "message"),
    [
        ("network", "name", "a b", "expected both"),
        ("network", "name", "größe", "letters and digits of ASCII"),
        ("network", "name", "-_-", "expected both"),
        ("network", "name", "a" * 97, "name of 1 to 96"),
        ("network", "start", "net.bin.gz", "found beside kind = 'go' and options"),
        ("data", "folders", "a", "folders: expected a list, each text, found 'a'"),
        ("data", "symmetries", "some", "expected one of random, stored, none"),
        ("training", "steps", 0, "steps: expected an integer of at least 1, found 0"),
        ("training", "steps", 2.5, "steps: expected an integer of at least 1, found 2.5"),
        ("training", "seed", -1, "seed: expected an integer from 0 to 9223372036854775807, found -1"),
        ("training", "seed", 10**30, "expected an integer from 0 to 9223372036854775807, found 1000"),
        ("training", "learning_rate", -1, r"learning_rate: expected a number of at least 0, found -1"),
        ("training", "learning_rate", float("nan"), "learning_rate: expected a number of at least 0, found nan"),
        ("training", "learning_rate", float("inf"), "learning_rate: expected a number of at least 0, found inf"),
        ("training", "momentum", -1.0, "momentum: expected a number from 0 to 1, found -1.0"),
        ("training", "weight_decay", -1.0, "weight_decay: expected a number of at least 0, found -1.0"),
        ("training", "decay", 1.5, "decay: expected a number from 0 to 1, found 1.5"),
        ("training", "clip", -1.0, "clip: expected a number of at least 0, found -1.0"),
        ("training", "warmup", -3, "warmup: expected an integer of at least 0, found -3"),
        ("training", "average_start", -5, "average_start: expected an integer of at least 0, found -5"),
        ("training", "threads", -2, "threads: expected an integer from 0 to 1024, found -2"),
        ("training", "test_batches", -3, "test_batches: expected an integer of at least 0, found -3"),
        ("training", "patience", -2, "patience: expected an integer of at least -1, found -2"),
        ("data", "search_value", 3.0, r"\[data\] search_value: expected a number from 0 to 1, found 3.0"),
        ("loss", "value", -1.0, r"\[loss\] value: expected a number of at least 0, found -1.0"),
        ("training", "optimizer", "lion", "expected one of adamw, adam, sgd"),
        ("training", "speed", 1, r"\[training\] unknown setting 'speed', expected one of steps"),
        ("teacher", "network", 6, r"\[teacher\] network: expected text, found 6"),
        ("loss", "policy", "much", "policy: expected a number of at least 0, found 'much'"),
    ],
)
def test_wrong_configurations(table: str, key: str, value: Any, message: str) -> None:
    tables = {**GOOD, table: {**GOOD.get(table, {}), key: value}}
    with pytest.raises(NetworkError, match=message):
        parse_config(tables)


def test_missing_parts(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"\[training\] no steps found"):
        parse_config({**GOOD, "training": {}})
    with pytest.raises(NetworkError, match=r"table \[net\] found"):
        parse_config({**GOOD, "net": {}})
    path = tmp_path / "a.toml"
    with pytest.raises(NetworkError, match="expected a configuration"):
        read_config(path)
    path.write_text("steps = ")
    with pytest.raises(NetworkError, match=r"a\.toml: "):
        read_config(path)


def test_keys_are_set_over_a_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    sets = ["network.blocks=10", "network.name = ten", 'training.device="cpu"', "data.folders=['a', 'b']"]
    config = read_config(Path("go"), sets)
    assert (config.options["blocks"], config.name, config.training.device) == (10, "ten", "cpu")
    assert list(config.data.folders) == ["a", "b"]
    assert read_config(Path("go")).options["blocks"] == 6
    for word in ("blocks=3", "network.blocks", "network.=3", ".blocks=3"):
        with pytest.raises(NetworkError, match=f"--set: '{word}' found, expected TABLE.KEY=VALUE"):
            read_config(Path("go"), [word])
    with pytest.raises(NetworkError, match="steps: expected an integer of at least 1, found 'many'"):
        read_config(Path("go"), ["training.steps=many"])


def test_learning_rates() -> None:
    steps = TrainingConfig(steps=10, learning_rate=1.0, schedule="steps", milestones=(3, 6), factor=0.1, warmup=2)
    rates = [learning_rate(steps, step) for step in range(8)]
    assert rates == pytest.approx([0.5, 1.0, 1.0, 0.1, 0.1, 0.1, 0.01, 0.01])
    cosine = TrainingConfig(steps=11, learning_rate=2.0, schedule="cosine", final=0.1)
    assert learning_rate(cosine, 0) == 2.0
    assert learning_rate(cosine, 5) == pytest.approx(1.1)
    assert learning_rate(cosine, 10) == pytest.approx(0.2)


@pytest.mark.parametrize(("patience", "stopped_after"), [(0, 3), (1, 6), (2, 7), (-1, None)])
def test_patience_is_kerass(patience: int, stopped_after: int | None) -> None:
    """Losses that fail once, then improve, then fail for good: patience 1 needs two failures in a row."""
    stopping = EarlyStopping(patience)
    stopped = None
    for number, loss in enumerate([5.0, 4.0, 4.5, 3.0, 3.5, 3.1, 3.0, 3.2], 1):
        improved = stopping.update(loss)
        assert improved == (number in (1, 2, 4))
        if stopping.stops and stopped is None:
            stopped = number
    assert stopped == stopped_after


def test_recipes_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in RECIPES.glob("*.toml"):
        config, by_path = read_config(Path(file.stem)), read_config(file)
        assert config.name == by_path.name
        assert config.folder == Path(".")
        paths = [*config.data.folders, config.start, config.teacher.network]
        assert not [path for path in paths if ".." in path]
        assert [f"../../{path}" for path in config.data.folders] == list(by_path.data.folders)
    assert read_config(Path("go")).data.folders[0] == "data/go-9"
    with pytest.raises(NetworkError, match=r"og: No such file .*: expected .*, or a recipe: aya-policy, .*, go, "):
        read_config(Path("og"))
    with pytest.raises(NetworkError, match="or a recipe"):
        read_config(Path("other/go"))


def test_a_file_takes_precedence_over_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("go").mkdir()
    assert read_config(Path("go")).name == "yomi-go-b6c96"
    Path("go").rmdir()
    Path("go").write_text('[network]\nkind = "go"\nname = "mine"\n[data]\nfolders = ["a"]\n[training]\nsteps = 1\n')
    assert read_config(Path("go")).name == "mine"
