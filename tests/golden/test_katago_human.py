"""A small human-SL network gives the outputs that KataGo gave, for 50 positions and six profiles.

The weights are random. The numbers are those of KataGo 1.17.2 (Eigen) without symmetry; see `human_cases`.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tests.contract.networks import load_go
from tests.golden.human_cases import NUMBERS, PROFILES, games, network, numbers_of
from yomi.engine.go.analysis.results import View, _human_info, _raw_info
from yomi.engine.go.players.setup import evaluate_position
from yomi.nets.katago.human_profile import HumanProfile
from yomi.nets.katago.outputs import has_no_result
from yomi.nets.katago.write import write_network


@pytest.mark.parametrize("backend", ["native", "onnx"])
def test_outputs_equal_katagos(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    path = tmp_path / "human.bin.gz"
    path.write_bytes(gzip.compress(write_network(network())))
    expected = np.array(json.loads(gzip.decompress(NUMBERS.read_bytes()))).reshape(-1, len(PROFILES), 10)
    found = np.zeros_like(expected)
    evaluators = {}
    for number, (game, _) in enumerate(games()):
        size = game.board.side
        if size not in evaluators:
            evaluators[size] = load_go(path, size, backend=backend)
        evaluator = evaluators[size]
        evaluator.format.may_have_no_result = has_no_result(game.rules.ko, game.rules.scoring)
        for place, profile in enumerate(PROFILES):
            game.imitate(HumanProfile.parse(profile))
            raw = evaluate_position(evaluator, game, 0, 0.0)
            white = View(is_own=True)
            info = _raw_info(raw, white) | _human_info(raw, white)
            found[number, place] = numbers_of(info, raw.policy)
            # KataGo reports the same for both networks.
            assert info["rawScoreSelfplayStdev"] == info["humanScoreStdev"]
    # The policy and the winrate; the lead and the scores, in points, have seven digits.
    np.testing.assert_allclose(found[..., :5], expected[..., :5], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[..., 5:], expected[..., 5:], rtol=1e-5, atol=2e-5)
    # Profiles matter: otherwise all of this could be equal without them.
    assert np.abs(expected[:, 0, :5] - expected[:, 1, :5]).max(axis=1).min() > 1e-3
