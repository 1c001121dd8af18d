"""Steps per second of `yomi.env` in Go with random moves, and of pgx on the same processor if it is installed.

Only the steps are timed, with the beginnings of new games. The choice of actions is not.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.library.environments import env
from yomi.nets.installation import pip_command

Mask: TypeAlias = npt.NDArray[np.bool_]
TURNS = 3  # of both sides, one after the other; the best counts


@dataclass
class Side:
    mask: Mask  # the legal actions now
    step: Callable[[npt.NDArray[np.int32]], Mask]  # plays actions, and begins new games for finished ones


def run(seconds: float, sizes: Sequence[int], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Measure each board size with each number of games, about `seconds` each.

    Returns:
        Rows with `board`, `games`, `steps_per_second`, and `pgx_per_second`, None without pgx.
    """
    rows = []
    for size in sizes:
        for count in counts:
            sides = [_ours(size, count)]
            if (other := _pgx(size, count)) is not None:
                sides.append(other)
            best = [0.0] * len(sides)
            for _ in range(TURNS):
                best = [max(old, _rate(side, seconds / TURNS)) for old, side in zip(best, sides, strict=True)]
            row: dict[str, Any] = {"board": f"{size}x{size}", "games": count, "steps_per_second": best[0]}
            rows.append(row | {"pgx_per_second": best[1] if best[1:] else None})
    return rows


def _rate(side: Side, seconds: float) -> float:
    """Return the steps per second of all games together."""
    rng, spent, steps = np.random.default_rng(1), 0.0, 0
    side.mask = side.step(_random_actions(rng, side.mask))  # compiles
    while spent < seconds:
        actions = _random_actions(rng, side.mask)
        begin = time.perf_counter()
        side.mask = side.step(actions)
        spent += time.perf_counter() - begin
        steps += len(actions)
    return steps / spent


def _random_actions(rng: np.random.Generator, mask: Mask) -> npt.NDArray[np.int32]:
    actions: npt.NDArray[np.int32] = (rng.random(mask.shape, np.float32) * mask).argmax(1).astype(np.int32)
    return actions


def _ours(size: int, count: int) -> Side:
    games = env("go", count, size=size)

    def step(actions: npt.NDArray[np.int32]) -> Mask:
        state = games.step(actions)
        return (games.reset(state.terminated) if state.terminated.any() else state).legal_action_mask

    return Side(games.reset().legal_action_mask, step)


def _pgx(size: int, count: int) -> Side | None:
    """Return the environment of pgx, which has boards of 9×9 and 19×19; None if it is not installed."""
    try:
        import jax
        import pgx
        from pgx.experimental import auto_reset
    except ImportError as error:
        print(f"yomi: measured without pgx ({error}); to compare: {pip_command('install', 'pgx')}", file=sys.stderr)
        return None
    if size not in (9, 19):
        return None
    games: Any = pgx.make(f"go_{size}x{size}")
    advance: Any = jax.jit(jax.vmap(auto_reset(games.step, games.init)))
    keys = jax.random.split(jax.random.PRNGKey(1), count)
    state: Any = jax.jit(jax.vmap(games.init))(keys)

    def step(actions: npt.NDArray[np.int32]) -> Mask:
        nonlocal state
        state = advance(state, actions, keys)
        mask: Mask = np.asarray(state.legal_action_mask)
        np.asarray(state.observation)  # waits for it
        return mask

    return Side(np.asarray(state.legal_action_mask), step)
