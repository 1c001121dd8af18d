"""Settings that commands have for shogi only."""

from __future__ import annotations

import functools
from dataclasses import MISSING, dataclass
from typing import Any

from yomi.engine.datasets.settings import SHARD_ROWS, MakeSettings
from yomi.settings import choice, flag, number, option

# Formats of records and their suffixes; .kifu is KIF in UTF-8.
RECORD_FORMATS = {"csa": ".csa", "kif": ".kifu", "usi": ".usi", "hcpe": ".hcpe", "hcpe3": ".hcpe3"}
# Centipawns of dlshogi's sigmoid: this score is a winrate of 1 / (1 + 1 / e).
SCORE_SCALE = 756.0864962951762
MIN_SCALE, MAX_SCALE = 50.0, 20_000.0  # range of the sigmoid's centipawns
FIT = 0.0  # value of score_scale: fitted to the results
MAX_MOVES = 1536  # of a game


def _read_scale(text: str, *, may_fit: bool) -> float:
    if text == "fit" and may_fit:
        return FIT
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not MIN_SCALE <= scale <= MAX_SCALE:
        fit = ", or fit" * may_fit
        raise ValueError(f"expected {MIN_SCALE:g} to {MAX_SCALE:g} centipawns{fit}, found {text!r}")
    return scale


def _scale(text: str, *, may_fit: bool) -> Any:
    read = functools.partial(_read_scale, may_fit=may_fit)
    return option(SCORE_SCALE, text, kind="own", read=read, word="CP")


def _openings(text: str = "begin with positions or lines of a file", unset: str = "") -> Any:
    return option(None, text, kind="file", unset=unset)


@dataclass(frozen=True)
class PlayShogiSettings:
    # a table: the formatter would give each argument a line
    # fmt: off
    sfen: str | None = option(None, "begin with this position", word="SFEN", unset="the usual one")
    handicap: str | None = option(
        None, "let White give this handicap: lance, rook, 2-piece, 香落ち, 飛車落ち, 二枚落ち, ...", word="NAME"
    )
    board: str = choice(
        "auto", ("auto", "japanese", "letters"), "draw pieces in kanji or letters; auto: kanji if the terminal can"
    )
    # fmt: on


@dataclass(frozen=True)
class SelfplayShogiSettings:
    format: tuple[str, ...] = option(
        ("csa",), "write records in these forms", kind="choice", choices=tuple(RECORD_FORMATS)
    )
    openings: str | None = _openings()


@dataclass(frozen=True)
class LearnShogiSettings:
    openings: str | None = _openings()


@dataclass(frozen=True, kw_only=True)
class ShogiDataOptions(MakeSettings):
    """Settings that determine a data set made from records. The manifest stores them."""

    # a table: the formatter would give each argument a line
    # fmt: off
    rating: float = number(0.0, 0, None, "leave out games with a player rated lower or not at all; 0: none", word="R")
    evaluation: float = number(
        0.0, 0, None, "leave out positions with greater evaluations in centipawns; 0: none", word="CP"
    )
    score_scale: float = _scale("set the winrate sigmoid's centipawns; fit: by the results", may_fit=True)
    merge: bool = True  # duplicates of a position
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class MakeShogiSettings(ShogiDataOptions):
    keep_duplicates: bool = flag(False, "do not merge repeated positions")


@dataclass(frozen=True)
class ShogiPlayOptions:
    """Settings that determine which positions come from an engine's games. They are stored with the positions."""

    engine: str = option(MISSING, "play both sides with this USI engine; see below", word="COMMAND")
    nodes: int = number(MISSING, 1, None, "search this many nodes a move")
    openings: str | None = ""  # name and digest of the file
    opening_moves: int = number(8, 0, None, "play 1 to N random moves after the opening; 0: none")
    random_moves: float = number(0.02, 0, 1, "play this share of later moves at random", word="S")
    resign_score: int = number(3000, 1, None, "end a game at this evaluation in centipawns", word="CP")
    resign_moves: int = number(3, 1, None, "end it after this many such moves of each side")
    max_moves: int = number(320, 1, MAX_MOVES, "draw a game after this many moves")
    shard_rows: int = number(SHARD_ROWS, 1, None, "set the positions of a shard")
    seed: int = number(1, 0, None, "set the seed of all random choices")


@dataclass(frozen=True, kw_only=True)
class PlayShogiDataSettings(ShogiPlayOptions):
    positions: int = number(MISSING, 1, None, "make at least this many positions")
    processes: int | None = number(None, 1, None, "run this many engines at a time", unset="the number of cores")
    openings: str | None = _openings("begin with records or lines `startpos moves ...`", "the usual position")


@dataclass(frozen=True, kw_only=True)
class ShogiVaryOptions:
    """Settings that determine which positions near other positions are made. The manifest stores them."""

    engine: str = option(MISSING, "label positions with this USI engine (as in yomi match)", word="COMMAND")
    nodes: int = number(MISSING, 1, None, "limit the nodes of each evaluation")
    net: str | None = ""  # name and digest of the network that moves are drawn from
    moves: int = number(3, 1, None, "play 1 to N moves after a position")
    temperature: float = number(1.8, 0.01, 100, "set the temperature of the network's policy", word="T")
    score_scale: float = _scale("set the winrate sigmoid's centipawns", may_fit=False)
    shard_rows: int = number(SHARD_ROWS, 1, None, "set the positions of a shard")
    seed: int = number(1, 0, None, "set the seed of all random choices")


@dataclass(frozen=True, kw_only=True)
class VarySettings(ShogiVaryOptions):
    """Settings of `yomi dataset vary`."""

    positions: int | None = number(None, 1, None, "make at least this many positions")
    shards: int | None = number(None, 1, None, "make this many shards; tasks need a fixed number")
    net: str | None = option(None, "draw moves with this sparse network", kind="file", word="NET", unset="yomi's own")


SETTINGS = {
    "play": PlayShogiSettings,
    "selfplay": SelfplayShogiSettings,
    "learn": LearnShogiSettings,
    "dataset make": MakeShogiSettings,
    "dataset play": PlayShogiDataSettings,
}
