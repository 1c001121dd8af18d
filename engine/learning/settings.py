"""Settings of `yomi learn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from yomi.engine.learning.policies import check_policy
from yomi.nets.user_files import check_function
from yomi.settings import choice, flag, make_settings, number, option

# Default loss weights of learning. Ownership teaches a young network much, so it weighs more than in training.
LOSSES = {"score_mean": 0.25, "ownership": 1.0}

GUMBEL = "gumbel"
# Its defaults: it learns from few visits, so that every position is learned.
WITH_GUMBEL = {"visits": 32, "full_share": 1.0}


_number = partial(number, live=False)


def parse_growth(text: str) -> list[tuple[int, int]]:
    """Return the rows and blocks of `40000:6,80000:8`. Raises ValueError for other text."""
    growth = [(0, 0)]
    for word in filter(None, text.replace(" ", "").split(",")):
        rows, blocks = (
            int(number) if number.isascii() and number.isdecimal() else 0 for number in word.partition(":")[::2]
        )
        if rows <= growth[-1][0] or blocks <= growth[-1][1]:
            raise ValueError(f"expected ROWS:BLOCKS, both ascending, such as 40000:6,80000:8, found {text!r}")
        growth.append((rows, blocks))
    return growth[1:]


def _check_growth(text: str) -> str:
    return ",".join(f"{rows}:{blocks}" for rows, blocks in parse_growth(text))


@dataclass(frozen=True)
class SelfPlaySettings:
    """Settings of self-play and of the rows. Those marked `live` may change when a run continues."""

    # a table: the formatter would give each argument a line
    # fmt: off
    search: str = option(
        "puct", "choose the search of self-play: puct, gumbel, or a function of your own", kind="own", live=False,
        read=check_policy, word="NAME", more="gumbel learns from few visits. FILE.py:NAME is a function in a file."
    )
    visits: int = _number(100, 2, None, "make this many visits in a full search; its position is learned",
                          more="gumbel: 32.")
    cheap_visits: int = _number(20, 2, None, "make this many visits in a cheap search; its position is not learned")
    full_share: float = _number(0.25, 0.01, 1, "make this fraction of the searches full",
                                more="gumbel: 1.")
    games: int = _number(
        16, 1, None, "play this many games at the same time in each process", live=True, names=("at_once", "games")
    )
    keep_tree: bool = flag(False, "reuse the subtree of the played move; its visits count", live=False)
    noise: float = _number(0.25, 0, 1, "mix this share of Dirichlet noise into the root priors of full searches")
    noise_total: float = _number(10.8, 0.01, None, "set the sum of the noise's Dirichlet parameters (as in KataGo)")
    forced_playouts: float = _number(2.0, 0, None, "force sqrt(X * prior * visits) visits of each tried root move",
                                     more="The policy target leaves them out.")
    considered: int = _number(16, 2, None, "gumbel: compare this many moves")
    value_scale: float = _number(0.5, 0, None, "gumbel: weigh values against the policy with this factor (c_scale)")
    value_visits: float = _number(50.0, 0, None, "gumbel: add this to the visits in that weight (c_visit)")
    temperature: float = _number(0.8, 0, None, "choose moves by visits with this temperature at the start of a game")
    end_temperature: float = _number(0.15, 0, None, "choose moves with this temperature late in a game")
    half_life: float = _number(0.0, 0, None, "halve the temperature difference every X moves; 0: the board size")
    opening: float = _number(1.0, 0, None, "draw X * 0.3 * board size first moves from the policy, on average")
    forks: float = _number(0.05, 0, 1, "begin this fraction of games from an earlier game, with another move")
    reanalyze: float = _number(0.0, 0, 0.9, "search past games again with the newest network, in this share of games",
                               live=True)
    targets: str = option("", "add columns to the rows by a function of your own: FILE.py:NAME", kind="own", live=False,
                          read=lambda name: name and check_function(name), word="FILE.py:NAME")
    surprise: float = _number(0.5, 0, 1, "distribute this fraction of rows by policy surprise")
    won: float = _number(0.95, 0.5, 1, "reduce visits if both sides' searches exceed this winrate; 1: never")
    won_visits: float = _number(0.4, 0.05, 1, "keep this fraction of visits then")
    resign: float = _number(0.0, 0, 0.5, "resign below this winrate; 0: never")
    played_out: float = _number(0.2, 0, 1, "play on after a resignation in this fraction of games, to check it")
    opponent: str = option("", "let this engine (as in yomi match) play one side of some games", word="ENGINE")
    opponent_share: float = _number(0.1, 0, 1, "let the engine play in at most this fraction of games", live=True)
    # fmt: on


@dataclass(frozen=True)
class LearnSettings(SelfPlaySettings):
    """All settings of a run."""

    # fmt: off
    rows: int = _number(1000, 1, None, "train a network after this many new rows")
    window: int = _number(10_000, 1, None, "train on this many newest rows at first; grows by KataGo's power law")
    passes: float = _number(4.0, 0.01, None, "train on each row this often on average: the pace of training")
    batch: int = _number(128, 1, None, "use this many rows in a training step")
    learning_rate: float = _number(2e-3, 0, None, "train with this learning rate", live=True)
    optimizer: str = choice("muon", ("muon", "adamw", "adam", "sgd"), "train with this optimizer", live=False)
    grow: str = option("", "add blocks to the network when the run has this many rows", kind="own", read=_check_growth,
                       word="ROWS:BLOCKS", more="40000:6,80000:8 grows twice. The play stays the same at first.")
    search_value: float = _number(0.25, 0, 1, "mix this fraction of the search's value into the value target")
    without_network: int = _number(
        0, 0, None, "train the first N networks on games of the default evaluator (Go: rollouts)"
    )
    gate: int = _number(0, 0, None, "require half the points in N games against the best network; 0: no gate",
                        live=True)
    ladder: int = _number(32, 0, None, "play this many games against each anchor; 0: none", live=True)
    ladder_every: int = _number(5, 1, None, "play the ladder after every Nth network", live=True)
    match_visits: int = _number(50, 2, None, "make this many visits per move in gate and ladder", live=True)
    keep: float = _number(20.0, 0.01, None, "keep this many GiB of the newest rows and records", live=True)
    seed: int = _number(1, 0, None, "set the random seed")
    # fmt: on


def learn_settings(given: Mapping[str, Any]) -> LearnSettings:
    """Return the settings of a run from the values `given`. Some defaults depend on the search. Raises OptionError."""
    defaults = WITH_GUMBEL if given.get("search") == GUMBEL else {}
    return make_settings(LearnSettings, {**defaults, **given})


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
        # A mean over about one generation: over many generations it lags behind (docs/how-to/learning.md).
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
