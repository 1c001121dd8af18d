"""Tuning by perturbations: simulated games whose best values are known."""

from collections.abc import Mapping

import numpy as np
import pytest

from yomi.engine.matches.rating import difference, expected_score
from yomi.engine.matches.tuning import Parameter, Spsa

BEST = {"a": 1.4, "b": 15.0}


def make(iterations: int, seed: int) -> Spsa:
    return Spsa((Parameter("a", 0.0, 2.0, 0.8), Parameter("b", 0.0, 50.0, 20.0, is_whole=True)), iterations, 16, seed)


def elo(settings: Mapping[str, float]) -> float:
    """Return the strength: 50 Elo less at each end of a range than in the middle, were that the best value."""
    return -200.0 * (((settings["a"] - BEST["a"]) / 2.0) ** 2 + ((settings["b"] - BEST["b"]) / 50.0) ** 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_values_are_found(seed: int) -> None:
    spsa, rng, points = make(125, seed), np.random.default_rng(seed), dict[int, int]()
    history = spsa.replay(points)
    for iteration in range(125):
        for task in spsa.tasks(history[-1], iteration):
            first, second = task.changes
            points[task.number] = 2 * int(rng.random() < expected_score(elo(first) - elo(second)))
        history.append(spsa.step(history[-1], iteration, points))
    assert np.array_equal(spsa.replay(points), history)  # what a journal of the games leads to
    found = spsa.settings(spsa.result(history))
    assert isinstance(found["b"], int)
    assert elo(found) > -4.0  # -20 at the start


def test_a_pair_has_the_same_values_and_no_two_the_same_moves() -> None:
    spsa = make(4, 1)
    tasks = spsa.tasks(spsa.start, 0)
    assert [task.number for task in tasks] == list(range(32))
    assert all(tasks[2 * pair].changes == tasks[2 * pair + 1].changes for pair in range(16))
    assert {(each["a"] > 0.8, each["b"] > 20) for each, _ in (task.changes for task in tasks)} == {
        (up, right) for up in (False, True) for right in (False, True)
    }
    level = dict.fromkeys(range(32), 1)
    assert np.array_equal(spsa.step(spsa.start, 0, level), spsa.start)


def test_the_difference_of_two_players_and_its_error() -> None:
    even = difference((10, 20, 40, 20, 10))
    assert even.elo == pytest.approx(0.0)
    assert even.superiority == pytest.approx(0.5)
    assert [even.low, even.high] == pytest.approx([-37.0, 37.0], abs=1.0)  # 0.5 ± 1.96 * 0.27 / sqrt(100)
    better = difference((0, 10, 30, 40, 20))
    assert better.low > 0.0
    assert better.superiority > 0.999
    assert difference((0, 0, 0, 0, 500)).elo > 1000.0
    nothing = difference((0, 0, 0, 0, 0))
    assert nothing.superiority == 0.5
    assert nothing.low < -100.0
    assert nothing.high > 100.0
