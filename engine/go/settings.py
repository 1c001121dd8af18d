"""Settings that commands have for Go only."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from yomi.engine.datasets.settings import MakeSettings, PlaySettings
from yomi.settings import choice, flag, number, option

MIN_SIZE, MAX_SIZE = 2, 19  # boards of `yomi dataset play`
UNIQUES = ("none", "move", "position")
TRUSTS = ("all", "resigned", "rollouts")
DEVICE = "run the teacher on auto, cpu, cuda, tensorrt or another device"
PRECISION = "run the teacher in auto, fp32, int16, int8 or bf16"
LABELS_VERSION = 1  # Version of the meaning of labels. A set continues only with labels of the same version.


@dataclass(frozen=True)
class PlayGoSettings:
    handicap: int = number(0, 0, None, "give Black N handicap stones, 2 to 9")


@dataclass(frozen=True)
class LearnGoSettings:
    sizes: tuple[int, ...] = number((), 1, None, "also play on these boards, each with an equal share of evaluations")
    handicap_share: float = number(0.0, 0, 1, "give Black a few stones in this share of the games", word="S")
    any_rules: bool = flag(False, "draw superko and suicide for each game")


@dataclass(frozen=True, kw_only=True)
class GoDataOptions(MakeSettings):
    """Settings that determine a data set made from records. The manifest stores them."""

    # a table: the formatter would give each argument a line
    # fmt: off
    rules: str = option("guess", "use these rules for records that name none; guess: as in reviews")
    sizes: tuple[int, ...] = number(
        (), 1, None, "use only boards of this size; repeatable", names=("size",), repeats=True
    )
    positions: int = number(0, 0, None, "take N positions of each game, spread evenly; 0: all")
    unique: str = choice("move", UNIQUES, "drop repeated positions: none, with the same move, or all")
    handicap: bool = flag(False, "also use handicap games")
    trust: str = choice("all", TRUSTS, "trust results: all, resigned, or rollouts (also clear or confirmed counts)")
    rollouts: int = number(500, 1, None, "play N rollouts for --trust rollouts")
    narrow: float = number(3.0, 0, None, "confirm counts by up to P points with rollouts", word="P")
    believed_only: bool = flag(False, "leave out games without a trusted result")
    black_wins: float = number(
        0.0, 0, 0.9, "leave out White's wins until Black has won this share; 0: leave none out", word="S"
    )
    visits: int = number(1, 1, None, "label with searches of N visits; 1: the network alone")
    teacher: str | None = ""  # name and digest of the teacher's file
    scores: str = ""  # source of the points labels: `rollouts` or a network's name and digest, then the stages
    precision: str = ""  # of the networks that label; empty if there are none
    labels_version: int = LABELS_VERSION
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class MakeGoSettings(GoDataOptions):
    teacher: str | None = option(None, "label with a KataGo network instead of results", kind="file", word="NET")
    shard_rows: int = number(0, 0, None, "set the positions of a shard; 0: fewer if searches label points")
    device: str = option("auto", DEVICE)
    precision: str = option("auto", PRECISION)
    score_search: str | None = option(
        None, "label points by searches for the fair komi, with a network or `rollouts`", word="NET"
    )
    score_stages: str | None = option(
        None, "set steps of komi and playouts", word="P:N,...", unset="10:2000,4:20000,2:50000"
    )


@dataclass(frozen=True, kw_only=True)
class PlayOptions(PlaySettings):
    """Settings that determine a data set made from a network's games. The manifest stores them."""

    size: int = number(MISSING, MIN_SIZE, MAX_SIZE, "play on boards of this size")
    kept: float = number(0.25, 0.001, 1, "keep this share of each game's positions", word="S")
    visits: int = number(1, 1, None, "label with searches of N visits; 1: the network alone")
    random_moves: float = number(0.03, 0, 1, "draw this share of the moves at random", word="S")
    test_share: float = number(0.03, 0, 0.9, "hold out this share of the shards", word="S")
    precision: str = option("auto", PRECISION)
    teacher: str = ""  # name and digest of the teacher's file
    temperatures: tuple[float, float] = (0.6, 1.3)  # range from which each game draws the temperature of the policy
    labels_version: int = LABELS_VERSION
    features: str = "katago-v7"


@dataclass(frozen=True, kw_only=True)
class PlayGoDataSettings(PlayOptions):
    teacher: str = option(MISSING, "play and label with this KataGo network", kind="file", word="NET")
    device: str = option("auto", DEVICE)


SETTINGS = {
    "play": PlayGoSettings,
    "learn": LearnGoSettings,
    "dataset make": MakeGoSettings,
    "dataset play": PlayGoDataSettings,
}
