"""A small network of version 15 with transformer blocks gives the outputs that KataGo gave, from the moves on.

The weights are random: a bottleneck around attention and a feed-forward net, attention with learnt RoPE and without
any, an RMS norm at the trunk's tip. The numbers are those of KataGo 1.17.2 (Eigen): `kata-raw-nn` under symmetries 0, 3
and 5 after the same moves, with Tromp-Taylor rules and komi 7.5.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.setup import evaluate_position
from yomi.engine.go.points import square
from yomi.engine.go.rules import Rules

FOLDER = Path(__file__).parent / "katago"
NETWORK = FOLDER / "transformer-version-15.bin.gz"


def rows() -> list[dict[str, Any]]:
    with gzip.open(FOLDER / "transformer-version-15.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("backend", ["native", "onnx"])
@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["boardXSize"]))
def test_outputs_equal_katagos(
    row: dict[str, Any], backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    size = row["boardXSize"]
    game = GoGame(square(size), Rules.parse("tromp-taylor"), komi=row["komi"])
    for _, vertex in row["moves"]:
        game.play(game.side_to_move, square(size).parse_vertex(vertex))
    evaluator = load_go(NETWORK, size, backend=backend)
    assert len(row["evals"]) == 3
    for expected in row["evals"]:
        found = evaluate_position(evaluator, game, expected["symmetry"])
        assert found.white_win == pytest.approx(expected["whiteWin"], abs=1e-5)
        assert found.white_loss == pytest.approx(expected["whiteLoss"], abs=1e-5)
        assert found.white_lead == pytest.approx(expected["whiteLead"], abs=1e-2)
        policy = [np.nan if p is None else p for p in (*expected["policy"], expected["policyPass"])]
        np.testing.assert_allclose(found.policy, policy, atol=1e-5)
        np.testing.assert_allclose(found.white_ownership, expected["whiteOwnership"], atol=1e-4)
        for name, value in found.extra.items():
            assert value == pytest.approx(expected[name], abs=2e-3)
