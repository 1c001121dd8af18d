"""Settings of `yomi dataset make` and `yomi dataset play` for all games. The games add their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from typing import Any, TypeVar, cast

from yomi.nets.metadata import FEATURE_SETS
from yomi.settings import choice, number

T = TypeVar("T")
SHARD_ROWS = 16384


@dataclass(frozen=True, kw_only=True)
class MakeSettings:
    features: str = choice("katago-v7", tuple(FEATURE_SETS), "encode the inputs of networks in this way")
    test_share: float = number(0.03, 0, 0.9, "hold out this share of games for tests", word="S")
    limit: int = number(0, 0, None, "limit the positions of the whole set; 0: all")
    shard_rows: int = number(SHARD_ROWS, 1, None, "set the positions of a shard; 256 by default with --score-search")
    min_moves: int = number(20, 0, None, "ignore games with fewer moves")
    seed: int = number(1, 0, None, "set the seed of all random choices")


@dataclass(frozen=True, kw_only=True)
class PlaySettings:
    positions: int = number(MISSING, 1, None, "make at least this many positions")
    shard_rows: int = number(SHARD_ROWS, 1, None, "set the positions of a shard")
    seed: int = number(1, 0, None, "set the seed of all random choices")


def filled(kind: Callable[..., T], settings: object, **others: object) -> T:
    """Return a dataclass `kind`. Values come from `others`, or from fields of `settings` of the same name."""
    values: dict[str, Any] = {**vars(settings), **others}
    names = [field.name for field in dataclasses.fields(cast(Any, kind))]
    return kind(**{name: values[name] for name in names if name in values})
