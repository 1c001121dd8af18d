"""The feature sets for data against their slow twins on random games."""

from typing import Any

import numpy as np
import pytest

from tests.naive import go_features
from tests.naive.go_ladder import TooLongError
from tests.unit.go_twins import random_game
from yomi.native.go.aya import AYA_SCRATCH_DTYPE, write_aya
from yomi.native.go.outputs import squash, write_stones

NOTHING = np.zeros(0, np.float32)


def points_of(plane: Any) -> set[int]:
    return set(np.flatnonzero(plane.reshape(-1)).tolist())


def test_stones_and_liberties() -> None:
    scratch = np.zeros(1, AYA_SCRATCH_DTYPE)[0]
    for seed in range(4):
        size = (5, 7, 9, 13)[seed]
        planes = np.full((3, size, size), 9.0, np.float32)
        for pos, history, game in random_game(size, 0, False, seed, size * size):
            write_stones(pos, history, 0, scratch, planes, NOTHING)
            assert points_of(planes[0]) == {p for p, c in enumerate(game.board) if c == game.side}
            assert points_of(planes[1]) == {p for p, c in enumerate(game.board) if c == 3 - game.side}
            counts = go_features.liberty_counts(game.board)
            assert planes[2].reshape(-1).tolist() == counts
            squash(planes)
            np.testing.assert_allclose(planes[2].reshape(-1), np.tanh(0.05 * np.array(counts)), atol=1e-6)


@pytest.mark.early
@pytest.mark.slow
@pytest.mark.parametrize("count", [49, 50])
def test_aya(count: int) -> None:
    scratch = np.zeros(1, AYA_SCRATCH_DTYPE)[0]
    seen = np.zeros(count, int)
    compared = skipped = 0
    for seed in range(14):
        size = (5, 6, 7)[seed % 3]
        planes = np.full((count, size, size), 9.0, np.float32)
        kos: list[int | None] = [None]
        for ply, (pos, history, game) in enumerate(random_game(size, 0, False, seed, 2 * size * size, 0.01)):
            kos.append(game.simple_ko)
            if (ply + seed) % 5:
                continue
            try:
                expected = go_features.aya(game, kos, count)
            except TooLongError:
                skipped += 1
                continue
            before = pos.tobytes()
            write_aya(pos, history, 0, scratch, planes, NOTHING)
            assert pos.tobytes() == before
            assert len(expected) == count
            for plane, points in enumerate(expected):
                assert points_of(planes[plane]) == points, (plane, game.board)
                seen[plane] += bool(points)
            compared += 1
    assert compared > 5 * skipped
    assert (seen > 0).all(), np.flatnonzero(seen == 0)
