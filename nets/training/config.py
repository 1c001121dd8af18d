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
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

from yomi.errors import reraised
from yomi.nets.errors import NetworkError
from yomi.nets.text import parse_toml, read_toml, set_keys
from yomi.nets.user_files import is_in_file
from yomi.settings import OptionError, choice, make_settings, number, option, rows_of

RECIPES = Path(__file__).parents[1] / "recipes"
TO_CHECKOUT = "../../"
"""Prefix of each path in a recipe: the checkout's folder relative to the recipe's."""
STARTABLE = ("go", "sparse-shogi")
"""Kinds that can start from a file, KataGo's or a sparse network's (yomi.nets.definitions.catalog)."""
NAME = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_-]{1,96}")
"""Allowed network names. The name is also the file name, and in the file one ASCII word."""

DECAYS = {"none": 0, "linear": 1, "cubic": 3}
"""Powers of a position's progress, with which results count (Yamashita 2016)."""


@dataclass(frozen=True)
class DataConfig:
    """The data from which a network learns."""

    folders: tuple[str, ...] = option(
        MISSING, "read these data sets", more="Paths are relative to the configuration's folder."
    )
    symmetries: str = choice(
        "random", ("random", "stored", "none"), "transform positions",
        more="random: another symmetry each time (shogi: mirrored or not). stored: as chosen when the set was made.",
    )  # fmt: skip
    search_value: float = number(0.0, 0, 1, "mix this share of the players' search values into the value target")
    label_decay: str = choice(
        "none", tuple(DECAYS), "weaken the result as the value target of early positions",
        more="linear: it counts by the share of the game's moves that were played before; cubic: by its third power."
        " The rest is the search's value if `search_value` is above 0, otherwise 0.",
    )  # fmt: skip


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained: steps, batches, optimizer and others."""

    # fmt: off
    # The code may set 0 steps: unlimited, for a training that is given its batches (yomi.nets.training.loop).
    steps: int = number(MISSING, 1, None, "train this many steps")
    batch: int = number(256, 1, None, "set the positions of a step")
    seed: int = number(1, 0, 2**63 - 1, "set the seed of all random choices")
    optimizer: str = choice("adamw", ("adamw", "adam", "sgd", "muon"), "choose the optimizer")
    learning_rate: float = number(1e-3, 0, None, "set the learning rate")
    dropout: float = number(0.0, 0, 1, "set this share of the outputs of all layers ReLU, Mish and SiLU to zero")
    momentum: float = number(0.9, 0, 1, "set the momentum of sgd and muon")
    weight_decay: float = number(1e-4, 0, None, "set the weight decay")
    clip: float = number(0.0, 0, None, "limit the norm of the gradient; 0: no limit")
    warmup: int = number(0, 0, None, "raise the learning rate from 0 in this many steps")
    schedule: str = choice(
        "constant", ("constant", "cosine", "steps"), "choose how the learning rate falls",
        more="cosine: to `final` of its value at the last step. steps: it is multiplied by `factor` at each milestone.",
    )
    final: float = number(0.01, 0, None, "set the last learning rate of cosine, as a share of the first")
    milestones: tuple[int, ...] = option((), "set the steps of the schedule `steps`")
    factor: float = number(0.1, 0, None, "multiply the learning rate by this at each milestone")
    average: str = choice("none", ("none", "ema", "swa"), "test and export an average of the weights of many steps")
    decay: float = number(0.999, 0, 1, "set the decay of the exponential average (ema)")
    average_start: int = number(0, 0, None, "average the weights from this step on")
    precision: str = choice(
        "auto", ("auto", "fp32", "bf16", "fp16"), "choose the number format",
        more="auto: bf16 on GPUs and processors that multiply it, otherwise fp32.",
    )
    device: str = choice("auto", ("auto", "cpu", "cuda"), "choose where to train")
    threads: int = number(
        0, 0, 1024, "set the threads that compute on the processor; 0: PyTorch's choice",
        more="One is faster for small networks on busy machines.",
    )
    loaders: int = number(
        1, 1, 64, "set the threads that read, unpack and transform batches ahead",
        more="Their number does not change the batches.",
    )
    test_every: int = number(1000, 1, None, "test after every Nth step")
    test_batches: int = number(0, 0, None, "test on this many batches; 0: the whole test set")
    checkpoint_every: int = number(500, 1, None, "write a checkpoint after every Nth step")
    patience: int = number(
        -1, -1, None, "stop after N + 1 tests in a row without a lower loss; -1: never", more="As in Keras.",
    )
    # fmt: on


@dataclass(frozen=True)
class LossConfig:
    """Weights of the losses. Losses without an output or a label are ignored."""

    # fmt: off
    policy: float = number(1.0, 0, None, "weigh the policy")
    value: float = number(1.0, 0, None, "weigh the value")
    score: float = number(1.0, 0, None, "weigh the score of COSUMI's score networks: mean absolute error in points")
    points: float = number(
        0.0, 0, None, "weigh the map whose mean is the score: sum of absolute errors, in points",
        more="The score alone says little about single points. With 0.3 it is learned faster (yomi help training).",
    )
    lead: float = number(0.25, 0, None, "weigh the lead")
    score_mean: float = number(0.1, 0, None, "weigh the mean score")
    score_stdev: float = number(0.05, 0, None, "weigh the standard deviation of the score")
    # Nearly KataGo's weight.
    short_value_error: float = number(0.3, 0, None, "weigh the predicted squared error of the value")
    short_score_error: float = number(0.2, 0, None, "weigh the predicted squared error of the score")
    ownership: float = number(0.5, 0, None, "weigh the ownership")
    hints: float = number(
        200.0, 0, None, "weigh the trunk after each block against the teacher's",
        more="Mean share of its channels' variance that is missed. Small weights hinder more than they help"
        " (yomi help training).",
    )
    # fmt: on


# Columns of the rows that losses compare with, if they have another name
LABELS = {"policy": "policy_moves", "score": "lead", "points": "ownership"}


@dataclass(frozen=True)
class TeacherConfig:
    """A network whose inner maps are targets besides the labels (FitNets, Romero et al. 2015)."""

    network: str = option(
        "", "learn the trunk of this KataGo network, which has the same shape",
        more="The path is relative to the configuration's folder.",
    )  # fmt: skip


@dataclass(frozen=True)
class Config:
    """A complete configuration."""

    kind: str
    name: str
    options: Mapping[str, Any]
    data: DataConfig
    training: TrainingConfig
    loss: LossConfig = field(default_factory=LossConfig)
    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    start: str = ""
    """A KataGo network to start from, relative to the configuration's folder. Its shape is the network's."""
    own_losses: Mapping[str, float] = field(default_factory=dict)
    """Keys of [loss] that name losses of a user's own network."""
    folder: Path = Path(".")
    """Folder of the file; data folders are relative to it."""

    def to_dict(self) -> dict[str, Any]:
        """Return all settings that determine the result, as plain values."""
        record = dataclasses.asdict(self)
        del record["folder"]
        return record

    def needed_columns(self) -> dict[str, str]:
        """Return the column that each setting needs to have an effect, by setting. Defaults need no such columns."""
        plain = vars(LossConfig())
        chosen = {name: weight for name, weight in vars(self.loss).items() if weight not in (0.0, plain[name])}
        names = {name: LABELS.get(name, name.removesuffix("_error")) for name in chosen if name != "hints"}
        needed = {f"loss.{name} = {chosen[name]}": column for name, column in names.items()}
        if self.data.search_value:
            needed[f"data.search_value = {self.data.search_value}"] = "search_value"
        if self.data.label_decay != "none":
            needed[f"data.label_decay = {self.data.label_decay}"] = "progress"
        return needed | ({"data.symmetries = stored": "symmetry"} if self.data.symmetries == "stored" else {})


def read_config(path: Path, sets: Sequence[str] = ()) -> Config:
    """Read a configuration file, or the bundled recipe of that name. `TABLE.KEY=VALUE` of `sets` replaces values.

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
        return parse_config(set_keys(tables, sets), folder)
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    except ValueError as error:
        raise NetworkError(f"--set: {error}") from None


def parse_config(tables: Mapping[str, Any], folder: Path = Path(".")) -> Config:
    """Check the tables of a configuration.

    Raises:
        NetworkError: a table, key or value is wrong.
    """
    known = ("network", *TABLES)
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
    weights, own = dict(tables.get("loss", {})), {}
    if is_in_file(kind):  # the trainer knows the names of its losses
        own = {key: weights.pop(key) for key in list(weights) if key not in rows_of(LossConfig)}
    with reraised(OptionError, NetworkError):
        data, training, loss, teacher = (
            make_settings(kind, weights if table == "loss" else tables.get(table, {}), f"[{table}] ")
            for table, kind in TABLES.items()
        )
    return Config(kind, name, network, data, training, loss, teacher, start, own, folder)


TABLES: dict[str, Any] = {"data": DataConfig, "training": TrainingConfig, "loss": LossConfig, "teacher": TeacherConfig}
