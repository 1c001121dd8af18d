"""Our own kernels give the outputs that KataGo gave for the same planes, from several threads at once."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go
from tests.golden.test_katago_outputs import check_value, legal_of, processed, reference, under_symmetries
from tests.shared_data import shared_path
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.networks import raw_outputs
from yomi.nets.katago.outputs import RawOutputs

NETWORK = "g170-b6c96-s175395328-d26788732"


def path_of(network: str) -> Path:
    return shared_path("data", "katago", f"{network}.bin.gz")


def run(evaluator: Any, row: dict[str, Any]) -> RawOutputs:
    symmetries = [entry["symmetry"] for entry in row["evals"]]
    return under_symmetries(partial(raw_outputs, evaluator), row, symmetries)


@pytest.mark.slow
def test_reference_outputs_from_two_threads() -> None:
    rows = reference("reference.jsonl.gz")
    evaluators = {size: load_go(path_of(NETWORK), size) for size in {row["boardXSize"] for row in rows}}
    assert all("native kernels" in evaluator.description for evaluator in evaluators.values())
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda row: run(evaluators[row["boardXSize"]], row), rows))
    for row, raw in zip(rows, outputs, strict=True):
        policies = [[*entry["policy"], entry["policyPass"]] for entry in row["evals"]]
        legal = np.stack([legal_of(policy) for policy in policies])
        out = processed(raw, evaluators[row["boardXSize"]].info, row, legal, 0.0)
        expected = np.where(legal, np.array(policies, dtype=float), 0.0)
        np.testing.assert_allclose(out.policy, expected, atol=1e-4)
        for index, entry in enumerate(row["evals"]):
            check_value(out, index, entry, row)


def test_choice_of_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    path = path_of(NETWORK)
    assert "native kernels" in load_go(path, 9).description
    assert "onnxruntime" in load_go(path, 9, backend="onnx").description
    with pytest.raises(EvaluatorError, match="backend native found for device cuda, expected auto or onnx"):
        load_go(path, 9, device="cuda", backend="native")
    with pytest.raises(EvaluatorError, match="backend gpu found"):
        load_go(path, 9, backend="gpu")
