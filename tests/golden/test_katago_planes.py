"""KataGo's own input planes and legal moves, from its reference positions, reproduced exactly."""

import gzip
import json
from typing import Any

import numpy as np
import pytest

from tests.katago_reference import is_supported, set_up
from tests.shared_data import shared_path
from yomi.native.go.board import PASS, POSITION_DTYPE
from yomi.native.go.planes import GLOBALS, PLANES, policy_index, write_planes
from yomi.native.go.rules import MAX_HISTORY, legal_moves
from yomi.native.go.scratch import SCRATCH_DTYPE

Row = dict[str, Any]


def read_rows(name: str) -> list[Row]:
    with gzip.open(shared_path("data", "katago", f"{name}.jsonl.gz"), "rt") as lines:
        return [row for row in map(json.loads, lines) if is_supported(row)]


@pytest.fixture(scope="module")
def memory() -> tuple[Any, Any, Any]:
    return (
        np.zeros(1, POSITION_DTYPE)[0],
        np.zeros(MAX_HISTORY, np.uint64),
        np.zeros(1, SCRATCH_DTYPE)[0],
    )


@pytest.mark.parametrize("name", ["reference", "reference_v17"])
def test_planes_globals_and_legal_moves(name: str, memory: tuple[Any, Any, Any]) -> None:
    pos, history, scratch = memory
    rows = read_rows(name)
    assert len(rows) == {"reference": 54, "reference_v17": 63}[name]
    for row in rows:
        set_up(pos, history, row)
        size = row["boardXSize"]
        spatial = np.full((PLANES, size, size), np.nan, np.float32)
        globals_ = np.full(GLOBALS, np.nan, np.float32)
        write_planes(pos, history, 0, scratch, spatial, globals_)
        for plane in range(PLANES):
            seen = np.flatnonzero(spatial[plane]).tolist()
            assert seen == sorted(row["spatial"][plane]), f"{row['id']}: plane {plane}"
        assert set(np.unique(spatial)) <= {0.0, 1.0}
        np.testing.assert_allclose(globals_, row["global"], rtol=0, atol=1e-6, err_msg=row["id"])
        moves = np.zeros(size * size + 1, np.uint16)
        count = legal_moves(pos, history, moves)
        legal = sorted(policy_index(size, size, int(move), 0) for move in moves[:count])
        policy = row["policy"][:-1] if name == "reference_v17" else row["evals"][0]["policy"]
        assert legal[:-1] == [i for i, p in enumerate(policy) if p is not None and p >= 0], row["id"]
        assert legal[-1] == size * size
        assert int(moves[count - 1]) == PASS


def test_the_reference_shows_what_is_claimed() -> None:
    """Every plane and number that this engine shows at all is used by some position of the reference."""
    rows = read_rows("reference")
    used = {plane for row in rows for plane in range(PLANES) if row["spatial"][plane]}
    assert used == set(range(20)) - {7, 8}
    assert {k for row in rows for k in range(GLOBALS) if row["global"][k]} >= {0, 5, 6, 7, 8, 9, 10, 11, 14, 18}
