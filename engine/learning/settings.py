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

    search: str = setting(
        "puct", "how moves are searched: puct, or gumbel, which learns from few visits", choices=POLICIES
    )
    visits: int = setting(100, "visits of a full search, whose position is learned", 2)
    cheap_visits: int = setting(20, "visits of the other searches, which only carry the game on", 2)
    full_share: float = setting(0.25, "share of the searches that are full", 0.01, 1)
    games: int = setting(16, "games that one process plays at the same time", 1, live=True, flag="at_once")
    keep_tree: bool = setting(False, "go on with what was searched below a move; its visits count")
    noise: float = setting(0.25, "share of Dirichlet noise in the root's priors of full searches", 0, 1)
    noise_total: float = setting(10.8, "sum of the noise's parameters (KataGo's)", 0.01)
    forced_playouts: float = setting(2.0, "a root move once tried gets sqrt(this * prior * visits), not learned")
    considered: int = setting(16, "gumbel: moves that are compared", 2)
    temperature: float = setting(0.8, "of the choice among visited moves at the beginning of a game")
    end_temperature: float = setting(0.15, "the same late in a game")
    half_life: float = setting(0.0, "moves in which it comes half of the way; 0: the board's side", 0)
    opening: float = setting(1.0, "mean number of first moves that are drawn from the policy, in board sides times 0.3")
    forks: float = setting(
        0.05, "share of the games that begin from a position of an earlier one, with another move", 0, 1
    )
    reanalyze: float = setting(
        0.0, "share of the games that are earlier ones, searched anew with the newest network", 0, 0.9, live=True
    )
    surprise: float = setting(0.5, "share of the rows that goes to positions by the policy's surprise", 0, 1)
    won: float = setting(0.95, "winrate from which, for both sides of late, fewer visits are made; 1: never", 0.5, 1)
    won_visits: float = setting(0.4, "share of the visits that are left then", 0.05, 1)
    resign: float = setting(0.0, "winrate below which a side resigns; 0: never", 0, 0.5)
    played_out: float = setting(0.2, "share of the games that are played on all the same, to see who was right", 0, 1)
    opponent: str = setting(
        "", "an engine from outside that plays one side of some games, as yomi match has it", live=True
    )
    opponent_share: float = setting(0.1, "share of the games that it plays in, at most", 0, 1, live=True)


@dataclass(frozen=True)
class LearnSettings(SelfPlaySettings):
    """All settings of a run."""

    rows: int = setting(1000, "new rows between two networks", 1)
    window: int = setting(10_000, "rows of the window at first; it grows with all rows by KataGo's power law", 1)
    passes: float = setting(4.0, "how often a row is learned on average: the pace of training", 0.01)
    batch: int = setting(128, "rows of a training step", 1)
    learning_rate: float = setting(2e-3, "of training", 0, live=True)
    optimizer: str = setting("muon", "of training", choices=("muon", "adamw", "adam", "sgd"))
    search_value: float = setting(0.25, "share of the search's value in the value that is learned", 0, 1)
    without_network: int = setting(
        0, "networks that learn from games of what the game has without one, such as rollouts", 0
    )
    gate: int = setting(0, "games against the best network that a new one has to win half of; 0: no gate", live=True)
    ladder: int = setting(32, "games against each anchor that tell the strength; 0: none", live=True)
    ladder_every: int = setting(5, "networks between two such matches", 1, live=True)
    match_visits: int = setting(50, "visits of a move in gate and ladder", 2, live=True)
    keep: float = setting(20.0, "GiB of rows and records that are kept, the newest", 0.01, live=True)
    seed: int = setting(1, "of everything that is drawn")


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

    Args:
        settings: settings of the run.
        network: table [network] without the name.
        tables: the user's tables [training] and [loss], which override the settings.
        threads: processor threads; 0 leaves the number to PyTorch.
    """
    training = {
        "batch": settings.batch,
        "learning_rate": settings.learning_rate,
        "optimizer": settings.optimizer,
        "schedule": "constant",
        "warmup": 20,
        "average": "ema",
        # A mean of about the last generation: one of many generations lags behind what is learned (docs/LEARNING.md).
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
