"""Post-processing of raw outputs, case by case."""

import numpy as np
import pytest

from yomi.nets.katago.network import OutputScales
from yomi.nets.katago.outputs import (
    RawOutputs,
    has_no_result,
    policy_probabilities,
    post_process,
    shortterm_errors,
    value_probabilities,
)
from yomi.nets.metadata import NetworkInfo


def test_policy_leaves_illegal_moves_out() -> None:
    logits = np.float32([[[1.0, 2.0, 50.0]]])
    policy = policy_probabilities(logits, np.array([[True, True, False]]))
    np.testing.assert_allclose(policy, [[1 / (1 + np.e), np.e / (1 + np.e), 0.0]], rtol=1e-6)


def test_optimism_mixes_the_channels() -> None:
    logits = np.float32([[[0.0, 0.0], [0.0, 10.0]]])
    legal = np.ones((1, 2), np.bool_)
    np.testing.assert_allclose(policy_probabilities(logits, legal), [[0.5, 0.5]])
    mixed = policy_probabilities(np.float32([[[0.0, 2.0]]]), legal)
    np.testing.assert_allclose(policy_probabilities(logits, legal, optimism=0.2), mixed, rtol=1e-6)
    alone = policy_probabilities(logits[:, :1], legal, optimism=0.2)
    np.testing.assert_allclose(alone, [[0.5, 0.5]])


def test_no_result_is_dropped_row_by_row() -> None:
    logits = np.zeros((2, 3), np.float32)
    win, loss, no_result = value_probabilities(logits, np.array([True, False]))
    np.testing.assert_allclose(win, [1 / 3, 1 / 2], rtol=1e-6)
    np.testing.assert_allclose(loss, [1 / 3, 1 / 2], rtol=1e-6)
    assert no_result[1] == 0.0
    assert not logits.any()


@pytest.mark.parametrize(
    ("ko_rule", "scoring", "possible"),
    [("SIMPLE", "AREA", True), ("POSITIONAL", "TERRITORY", True), ("SITUATIONAL", "AREA", False)],
)
def test_no_result_depends_on_the_rules(ko_rule: str, scoring: str, possible: bool) -> None:
    assert has_no_result(ko_rule, scoring) is possible


def test_shortterm_errors_by_version() -> None:
    misc = np.float32([[0, 0, 0, 0, 1.0, 2.0]])
    scales = OutputScales(shortterm_value_error=0.25, shortterm_score_error=100.0)
    soft = np.log1p(np.exp([0.5, 1.0, 2.0]))
    assert shortterm_errors(misc[:, :4], 8, scales) == (None, None)
    for version, expected in [
        (9, (soft[1], soft[2] * 10)),
        (13, (np.sqrt(soft[1] * 0.25), np.sqrt(soft[2] * 100))),
        (14, (soft[0] * 0.5, soft[1] * 10)),
    ]:
        np.testing.assert_allclose(np.array(shortterm_errors(misc, version, scales))[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("version", [8, 9])
def test_time_left_is_told_from_version_9_on(version: int) -> None:
    misc = np.float32([[0, 0, 0, 1.0, 0, 0]])[:, : 4 if version == 8 else 6]
    policy, value, ownership = np.zeros((1, 1, 2)), np.zeros((1, 3)), np.zeros((1, 1))
    raw = RawOutputs(*(np.float32(each) for each in (policy, value, misc, ownership)))
    info = NetworkInfo("go", 1, "katago-v7", "name", "file", "", version, 1, misc.shape[1])
    found = post_process(raw, np.ones((1, 2), np.bool_), False, info).variance_time
    if version == 8:
        assert found is None
    else:
        np.testing.assert_allclose(found, 40.0 * np.log1p(np.e), rtol=1e-6)
