"""Settings of `yomi learn`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yomi.engine.learning.policies import POLICIES
from yomi.engine.option_row import OptionError

# Default loss weights of learning. Ownership teaches a young network much, so it weighs more than in training.
LOSSES = {"score_mean": 0.25, "ownership": 1.0}


def setting(
    default: Any,
    text: str,
    low: float = 0.0,
    high: float = float("inf"),
    *,
    live: bool = False,
    choices: Any = (),
    flag: str = "",
) -> Any:
    """Return a dataclass field with the metadata of a setting.

    Args:
        default: default value.
        text: help text, a verb phrase.
        low: minimum of a number.
        high: maximum of a number.
        live: whether a run may continue with another value.
        choices: allowed words. POLICIES may get more searches later.
        flag: name of the flag with `_` for `-`, if it differs from the name in the run's files.
    """
    metadata = {"text": text, "low": low, "high": high, "live": live, "choices": choices, "flag": flag}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class SelfPlaySettings:
    """Settings of self-play and of the rows."""

    search: str = setting("puct", "search by puct, or by gumbel, which learns from few visits", choices=POLICIES)
    visits: int = setting(100, "make this many visits in a full search; its position is learned", 2)
    cheap_visits: int = setting(20, "make this many visits in a cheap search; its position is not learned", 2)
    full_share: float = setting(0.25, "make this fraction of the searches full", 0.01, 1)
    games: int = setting(16, "play this many games at the same time in each process", 1, live=True, flag="at_once")
    keep_tree: bool = setting(False, "reuse the subtree of the played move; its visits count")
    noise: float = setting(0.25, "mix this fraction of Dirichlet noise into the root priors of full searches", 0, 1)
    noise_total: float = setting(10.8, "set the sum of the noise's Dirichlet parameters (as in KataGo)", 0.01)
    forced_playouts: float = setting(2.0, "force sqrt(X * prior * visits) visits of each tried root move; not learned")
    considered: int = setting(16, "gumbel: compare this many moves", 2)
    temperature: float = setting(0.8, "choose moves by visits with this temperature at the start of a game")
    end_temperature: float = setting(0.15, "choose moves with this temperature late in a game")
    half_life: float = setting(0.0, "halve the temperature difference every X moves; 0: the board size", 0)
    opening: float = setting(1.0, "draw X * 0.3 * board size first moves from the policy, on average")
    forks: float = setting(0.05, "begin this fraction of games from an earlier game, with another move", 0, 1)
    reanalyze: float = setting(
        0.0, "search past games again with the newest network, in this fraction of games", 0, 0.9, live=True
    )
    surprise: float = setting(0.5, "distribute this fraction of rows by policy surprise", 0, 1)
    won: float = setting(0.95, "reduce visits if recent searches of both sides exceed this winrate; 1: never", 0.5, 1)
    won_visits: float = setting(0.4, "keep this fraction of visits then", 0.05, 1)
    resign: float = setting(0.0, "resign below this winrate; 0: never", 0, 0.5)
    played_out: float = setting(0.2, "play on after a resignation in this fraction of games, to check it", 0, 1)
    opponent: str = setting("", "let this engine (as in yomi match) play one side of some games", live=True)
    opponent_share: float = setting(0.1, "let the engine play in at most this fraction of games", 0, 1, live=True)


@dataclass(frozen=True)
class LearnSettings(SelfPlaySettings):
    """All settings of a run."""

    rows: int = setting(1000, "train a network after this many new rows", 1)
    window: int = setting(10_000, "train on this many newest rows at first; grows by KataGo's power law", 1)
    passes: float = setting(4.0, "train on each row this often on average: the pace of training", 0.01)
    batch: int = setting(128, "use this many rows in a training step", 1)
    learning_rate: float = setting(2e-3, "train with this learning rate", 0, live=True)
    optimizer: str = setting("muon", "train with this optimizer", choices=("muon", "adamw", "adam", "sgd"))
    search_value: float = setting(0.25, "mix this fraction of the search's value into the value target", 0, 1)
    without_network: int = setting(0, "train the first N networks on games of the default evaluator (Go: rollouts)", 0)
    gate: int = setting(0, "require half the points in N games against the best network; 0: no gate", live=True)
    ladder: int = setting(32, "play this many games against each anchor; 0: none", live=True)
    ladder_every: int = setting(5, "play the ladder after every Nth network", 1, live=True)
    match_visits: int = setting(50, "make this many visits per move in gate and ladder", 2, live=True)
    keep: float = setting(20.0, "keep this many GiB of the newest rows and records", 0.01, live=True)
    seed: int = setting(1, "set the random seed")


def flag_name(row: dataclasses.Field[Any]) -> str:
    return str(row.metadata["flag"] or row.name)


def make_settings(values: Mapping[str, Any]) -> LearnSettings:
    """Return the default settings with some values replaced.

    Raises:
        OptionError: a name is unknown, or a value has the wrong type or is out of range.
    """
    known = {row.name: row for row in dataclasses.fields(LearnSettings)}
    for name, value in values.items():
        if name not in known:
            raise OptionError(f"setting {name}: expected one of {', '.join(known)}")
        row = known[name]
        wanted, given = type(row.default), type(value)
        if given is not wanted and not (wanted is float and given is int):
            raise OptionError(f"{name} {value!r}: expected {wanted.__name__}")
        choices = row.metadata["choices"]
        name = flag_name(row)
        if choices and value not in choices:
            raise OptionError(f"{name} {value}: expected one of {', '.join(choices)}")
        if wanted in (int, float) and not row.metadata["low"] <= value <= row.metadata["high"]:
            raise OptionError(f"{name} {value}: expected {row.metadata['low']:g} to {row.metadata['high']:g}")
    return LearnSettings(**values)


def reference() -> str:
    """Return the table of settings in docs/LEARNING.md."""
    lines = ["| setting | default | |", "|---|---|---|"]
    for row in dataclasses.fields(LearnSettings):
        live = "; live" if row.metadata["live"] else ""
        default = f"{row.default:g}" if isinstance(row.default, float) else str(row.default) or "none"
        lines.append(f"| `{flag_name(row)}` | {default} | {row.metadata['text']}{live} |")
    return "\n".join(lines) + "\n"


def training_tables(
    settings: LearnSettings, network: Mapping[str, Any], tables: Mapping[str, Any], threads: int
) -> dict[str, Any]:
    """Return the configuration of the training (see `yomi.nets.training.config`).

    `network` is the table [network] without the name. `tables` are the user's, which override the settings. 0 threads
    leave the number to PyTorch.
    """
    training = {
        "batch": settings.batch,
        "learning_rate": settings.learning_rate,
        "optimizer": settings.optimizer,
        "schedule": "constant",
        "warmup": 20,
        "average": "ema",
        # A mean over about one generation: over many generations it lags behind (docs/LEARNING.md).
        "decay": 1.0 - 1.0 / max(20.0, settings.rows * settings.passes / settings.batch),
        "seed": settings.seed,
        "threads": threads,
    }
    return {
        "network": {"name": "yomi-learn", **network},
        "data": {"search_value": settings.search_value},
        "training": training | dict(tables.get("training", {})),
        "loss": LOSSES | dict(tables.get("loss", {})),
    }
