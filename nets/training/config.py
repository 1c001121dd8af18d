"""The configuration of a training: a TOML file with the tables below, every key checked.

[network]
kind = "go"             # see yomi.nets.definitions.catalog; the other keys are that network's options
name = "small"
start = "b6c96.bin.gz"  # in place of those options: a file that is trained further, see STARTABLE
[data]
folders = ["data/9"]
[training]
steps = 20000
[loss]
ownership = 0.5
[teacher]
network = "b6c96.bin.gz"
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from yomi.nets.errors import NetworkError
from yomi.nets.text import parse_toml, read_toml

RECIPES = Path(__file__).parents[1] / "recipes"
TO_CHECKOUT = "../../"
"""Prefix of each path in a recipe: the checkout's folder relative to the recipe's."""
OPTIMIZERS = ("adamw", "adam", "sgd", "muon")
SCHEDULES = ("constant", "cosine", "steps")
AVERAGES = ("none", "ema", "swa")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")
SYMMETRIES = ("random", "stored", "none")
DEVICES = ("auto", "cpu", "cuda")
STARTABLE = ("go", "sparse-shogi")
"""Kinds that can start from a file, KataGo's or a sparse network's (yomi.nets.definitions.start)."""
NAME = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_-]{1,96}")
"""Allowed network names. The name is also the file name, and in the file one ASCII word."""
RANGES = {
    **dict.fromkeys(("steps", "batch", "test_every", "checkpoint_every"), (1, math.inf)),
    **dict.fromkeys(("learning_rate", "weight_decay", "clip", "warmup", "final", "factor"), (0, math.inf)),
    **dict.fromkeys(("average_start", "test_batches"), (0, math.inf)),
    **dict.fromkeys(("momentum", "decay"), (0, 1)),
    "seed": (0, 2**63 - 1),
    "threads": (0, 1024),
    "loaders": (1, 64),
    "patience": (-1, math.inf),
}
"""Minimum and maximum of the numbers in [training]."""

T = TypeVar("T")


@dataclass(frozen=True)
class DataConfig:
    """The data to learn from."""

    folders: tuple[str, ...]
    """Data sets, relative to the configuration's folder."""
    symmetries: str = "random"
    """random: a random one each time (shogi: mirrored or not); stored: as chosen when the set was made; none."""
    search_value: float = 0.0
    """Share of the players' search values in the value target. The rest is the game's result."""


@dataclass(frozen=True)
class TrainingConfig:
    """How to learn."""

    steps: int
    """Number of steps. 0, not allowed in files: unlimited, for a training that is given its batches
    (`yomi.nets.training.loop`).
    """
    batch: int = 256
    seed: int = 1
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 1e-4
    clip: float = 0.0
    """Maximum norm of the gradient; 0 for none."""
    warmup: int = 0
    """Steps in which the learning rate rises from 0."""
    schedule: str = "constant"
    """cosine: falls to `final` of its value at the last step; steps: is multiplied by `factor` at each milestone."""
    final: float = 0.01
    milestones: tuple[int, ...] = ()
    factor: float = 0.1
    average: str = "none"
    """ema or swa: test and export an average of the weights of many steps."""
    decay: float = 0.999
    """Decay of the exponential average."""
    average_start: int = 0
    """Step from which weights are averaged."""
    precision: str = "auto"
    """auto: bf16 on GPUs and processors that multiply it, otherwise fp32."""
    device: str = "auto"
    threads: int = 0
    """Threads that compute on the CPU; 0 for PyTorch's choice. One is faster for small networks on busy machines."""
    loaders: int = 1
    """Threads that read, unpack and transform batches ahead. Their number does not change the batches."""
    test_every: int = 1000
    test_batches: int = 0
    """Batches of a test; 0 for the whole set."""
    checkpoint_every: int = 500
    patience: int = -1
    """Stop after this number of tests, plus one, in a row without a lower loss (Keras's patience); -1: never."""


@dataclass(frozen=True)
class LossConfig:
    """Weights of the losses. Losses without an output or a label do not count."""

    policy: float = 1.0
    value: float = 1.0
    score: float = 1.0
    """COSUMI's score networks: mean absolute error in points."""
    points: float = 0.0
    """Loss of the map whose mean is the score: absolute errors of all points against their owners, summed, in points.
    One number a board says little about the single points; with 0.3 the score is learned much faster (nets/README.md).
    """
    lead: float = 0.25
    score_mean: float = 0.1
    score_stdev: float = 0.05
    short_value_error: float = 0.3
    """Loss of the squared error that the network predicts of its own value. Nearly KataGo's weight."""
    short_score_error: float = 0.2
    """The same for its own score."""
    ownership: float = 0.5
    hints: float = 200.0
    """Loss of the trunk after each block against the teacher's: the share of its channels' variance that is missed,
    averaged. Small weights hinder more than they help (nets/README.md).
    """


@dataclass(frozen=True)
class TeacherConfig:
    """A network whose inner maps are learned besides the labels (FitNets, Romero et al. 2015)."""

    network: str = ""
    """A KataGo network whose trunk has the shape of the trained network's, relative to the configuration's folder."""


@dataclass(frozen=True)
class Config:
    """A whole configuration file."""

    kind: str
    name: str
    options: Mapping[str, Any]
    data: DataConfig
    training: TrainingConfig
    loss: LossConfig = field(default_factory=LossConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    start: str = ""
    """A KataGo network to start from, relative to the configuration's folder. Its shape is the network's."""
    folder: Path = Path(".")
    """Folder of the file; data folders are relative to it."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything that determines the result, as plain values."""
        record = dataclasses.asdict(self)
        del record["folder"]
        return record


def read_config(path: Path) -> Config:
    """Read a configuration file, or the bundled recipe of that name.

    Paths in a recipe that is given by name are relative to the current folder.

    Raises:
        NetworkError: it cannot be read, or a table, key or value is wrong.
    """
    recipe = RECIPES / f"{path}.toml"
    is_recipe = path.name == str(path) and not path.is_file() and recipe.is_file()
    try:
        if is_recipe:
            tables, folder = parse_toml(recipe.read_text(encoding="utf-8").replace(f'"{TO_CHECKOUT}', '"')), Path(".")
        else:
            tables, folder = read_toml(path), path.parent
    except OSError as error:
        names = ", ".join(sorted(file.stem for file in RECIPES.glob("*.toml")))
        expected = f"expected a configuration (TOML), or a recipe: {names}"
        raise NetworkError(f"{path}: {error.strerror}: {expected}") from None
    except ValueError as error:
        raise NetworkError(f"{path}: {error}") from None
    try:
        return parse_config(tables, folder)
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def parse_config(tables: Mapping[str, Any], folder: Path = Path(".")) -> Config:
    """Check the tables of a configuration.

    Raises:
        NetworkError: a table, key or value is wrong.
    """
    known = ("network", "data", "training", "loss", "teacher")
    for name, table in tables.items():
        if name not in known or not isinstance(table, dict):
            raise NetworkError(f"table [{name}] found, expected one of {', '.join(known)}")
    network = dict(tables.get("network", {}))
    kind, name, start = network.pop("kind", None), network.pop("name", None), network.pop("start", "")
    if not isinstance(kind, str) or not isinstance(name, str) or not NAME.fullmatch(name):
        raise NetworkError(
            f"[network] kind = {kind!r}, name = {name!r} found, "
            "expected both, the name of 1 to 96 letters and digits of ASCII, - and _"
        )
    if not isinstance(start, str) or (start and (kind not in STARTABLE or network)):
        raise NetworkError(
            f"[network] start = {start!r} found beside kind = {kind!r} and options {list(network)}, "
            f"expected the name of a file, a kind of {', '.join(STARTABLE)}, and no options"
        )
    data = _table(DataConfig, "data", tables.get("data", {}))
    training = _table(TrainingConfig, "training", tables.get("training", {}))
    choices = {
        "optimizer": OPTIMIZERS,
        "schedule": SCHEDULES,
        "average": AVERAGES,
        "precision": PRECISIONS,
        "device": DEVICES,
    }
    for key, allowed in choices.items():
        _one_of(f"[training] {key}", getattr(training, key), allowed)
    _one_of("[data] symmetries", data.symmetries, SYMMETRIES)
    for key, (low, high) in RANGES.items():
        _in_range(f"[training] {key}", getattr(training, key), low, high)
    _in_range("[data] search_value", data.search_value, 0, 1)
    loss = _table(LossConfig, "loss", tables.get("loss", {}))
    for key, weight in dataclasses.asdict(loss).items():
        _in_range(f"[loss] {key}", weight, 0, math.inf)
    teacher = _table(TeacherConfig, "teacher", tables.get("teacher", {}))
    return Config(kind, name, network, data, training, loss, teacher, start, folder)


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise NetworkError(f"{key} = {value!r} found, expected one of {', '.join(allowed)}")


def _in_range(key: str, value: float, low: float, high: float) -> None:
    """Check the range of a number; nan and inf are refused."""
    if not low <= value <= high or value == math.inf:
        expected = f"at least {low}" if high == math.inf else f"{low} to {high}"
        raise NetworkError(f"{key} = {value} found, expected {expected}")


def _table(kind: type[T], name: str, values: Mapping[str, Any]) -> T:
    """Return a dataclass filled from a table."""
    fields = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    converted: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            raise NetworkError(f"[{name}] {key} found, expected one of {', '.join(fields)}")
        converted[key] = _converted(f"[{name}] {key}", value, str(fields[key].type))
    for key, item in fields.items():
        if key not in converted and item.default is dataclasses.MISSING:
            raise NetworkError(f"[{name}] without {key} found, expected it")
    return kind(**converted)


def _converted(key: str, value: Any, wanted: str) -> Any:
    """Return a TOML value converted to the type of a field."""
    if wanted.startswith("tuple"):
        inner = int if "int" in wanted else str
        if isinstance(value, list) and all(type(item) is inner for item in value):
            return tuple(value)
    elif wanted == "float" and type(value) in (int, float):
        return float(value)
    elif type(value).__name__ == wanted:
        return value
    raise NetworkError(f"{key} = {value!r} found, expected {wanted}")
