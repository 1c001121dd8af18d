"""Two real networks give the outputs that KataGo gave for the same planes, under all eight symmetries."""

import functools
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.shared_data import shared_path
from yomi.nets.katago.outputs import Outputs, RawOutputs, has_no_result, post_process
from yomi.nets.load import open_file, prepare
from yomi.nets.metadata import NetworkInfo


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def reference(name: str) -> list[dict[str, Any]]:
    """Return the rows of square boards."""
    with gzip.open(shared_path("data", "katago", name), "rt") as stream:
        rows = [json.loads(line) for line in stream]
    return [row for row in rows if row["boardXSize"] == row["boardYSize"]]


@functools.cache
def session(network: str, size: int, cache: Path) -> tuple[onnxruntime.InferenceSession, NetworkInfo]:
    path, info = prepare(open_file(shared_path("data", "katago", f"{network}.bin.gz")), size, cache)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]), info


def turned(planes: np.ndarray, symmetry: int) -> np.ndarray:
    """Return what the network sees: rows flipped (bit 0), then columns (bit 1), then transposed (bit 2)."""
    if symmetry & 1:
        planes = planes[..., ::-1, :]
    if symmetry & 2:
        planes = planes[..., ::-1]
    if symmetry & 4:
        planes = np.swapaxes(planes, -1, -2)
    return planes


def points_back(values: np.ndarray, symmetry: int, size: int) -> np.ndarray:
    """Map [..., A] back to board coordinates."""
    inverse = {5: 6, 6: 5}.get(symmetry, symmetry)
    return turned(values.reshape(*values.shape[:-1], size, size), inverse).reshape(values.shape)


def under_symmetries(
    run: Callable[[np.ndarray, np.ndarray], RawOutputs], row: dict[str, Any], symmetries: list[int]
) -> RawOutputs:
    """Return the raw outputs, in board coordinates, for one position under each symmetry.

    `run` returns the outputs for planes and numbers.
    """
    size = row["boardXSize"]
    planes = np.zeros((22, size * size), np.float32)
    for plane, points in zip(planes, row["spatial"], strict=True):
        plane[points] = 1.0
    planes = planes.reshape(22, size, size)
    batch = np.stack([turned(planes, symmetry) for symmetry in symmetries])
    raw = run(batch, np.tile(np.float32(row["global"]), (len(symmetries), 1)))
    for index, symmetry in enumerate(symmetries):
        raw.policy[index, :, :-1] = points_back(raw.policy[index, :, :-1], symmetry, size)
        raw.ownership[index] = points_back(raw.ownership[index], symmetry, size)
    return raw


def evaluate(network: str, row: dict[str, Any], symmetries: list[int], cache: Path) -> tuple[RawOutputs, NetworkInfo]:
    net, info = session(network, row["boardXSize"], cache)
    outputs = ["policy", "value", "misc", "ownership"]

    def run(planes: np.ndarray, numbers: np.ndarray) -> RawOutputs:
        return RawOutputs(*net.run(outputs, {"spatial": planes, "global": numbers}))

    return under_symmetries(run, row, symmetries), info


def processed(raw: RawOutputs, info: NetworkInfo, row: dict[str, Any], legal: np.ndarray, optimism: float) -> Outputs:
    possible = has_no_result(row["rules"]["ko"], row["rules"]["scoring"])
    return post_process(raw, legal, possible, info, optimism=optimism)


def check_value(out: Outputs, index: int, expected: dict[str, Any], row: dict[str, Any]) -> None:
    """Compare with numbers that are from White's point of view."""
    white = row["toMove"] == "W"
    sign = 1.0 if white else -1.0
    win, loss = (out.win, out.loss) if white else (out.loss, out.win)
    assert win[index] == pytest.approx(expected["whiteWin"], abs=1e-4)
    assert loss[index] == pytest.approx(expected["whiteLoss"], abs=1e-4)
    assert out.no_result[index] == pytest.approx(expected["noResult"], abs=1e-4)
    assert sign * out.lead[index] == pytest.approx(expected["whiteLead"], abs=1e-3)
    np.testing.assert_allclose(sign * out.ownership[index], expected["whiteOwnership"], atol=1e-3)


def legal_of(policy: list[float | None]) -> np.ndarray:
    """Return which moves have a probability: illegal ones are null or negative."""
    return np.array([probability is not None and probability >= 0 for probability in policy])


def test_version_8_under_all_symmetries(cache: Path) -> None:
    rows = reference("reference.jsonl.gz")
    assert len(rows) > 50
    for row in rows:
        evals = row["evals"]
        symmetries = [entry["symmetry"] for entry in evals]
        assert sorted(symmetries) == list(range(8))
        raw, info = evaluate(row["net"], row, symmetries, cache)
        policies = [[*entry["policy"], entry["policyPass"]] for entry in evals]
        legal = np.stack([legal_of(policy) for policy in policies])
        out = processed(raw, info, row, legal, 0.0)
        for index, entry in enumerate(evals):
            expected = np.where(legal[index], np.array(policies[index], dtype=float), 0.0)
            np.testing.assert_allclose(out.policy[index], expected, atol=1e-4)
            check_value(out, index, entry, row)
            sign = 1.0 if row["toMove"] == "W" else -1.0
            assert sign * out.score_mean[index] == pytest.approx(entry["whiteScoreSelfplay"], abs=1e-3)
            assert out.score_mean_square[index] == pytest.approx(entry["whiteScoreSelfplaySq"], rel=1e-4)
            np.testing.assert_allclose(raw.misc[index], entry["raw"]["misc"], atol=1e-3)


def test_version_17_under_all_symmetries_and_with_optimism(cache: Path) -> None:
    rows = reference("reference_v17.jsonl.gz")
    assert len(rows) > 50
    for row in rows:
        raw, info = evaluate(row["net"], row, [row["symmetry"]], cache)
        legal = legal_of(row["policy"])
        out = processed(raw, info, row, legal[None], row["policyOptimism"])
        expected = np.where(legal, np.array(row["policy"], dtype=float), 0.0)
        np.testing.assert_allclose(out.policy[0], expected, atol=1e-4)
        check_value(out, 0, row, row)
        sign = 1.0 if row["toMove"] == "W" else -1.0
        assert out.shortterm_winloss_error is not None
        assert out.shortterm_score_error is not None
        assert sign * out.score_mean[0] == pytest.approx(row["whiteScoreMean"], abs=1e-3)
        assert out.score_mean_square[0] == pytest.approx(row["whiteScoreMeanSq"], rel=1e-4)
        assert out.variance_time[0] == pytest.approx(row["varTimeLeft"], rel=1e-4)
        assert out.shortterm_winloss_error[0] == pytest.approx(row["shorttermWinlossError"], rel=1e-4)
        assert out.shortterm_score_error[0] == pytest.approx(row["shorttermScoreError"], rel=1e-4)
