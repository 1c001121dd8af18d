"""`yomi dataset vary`: positions beside those of a data set of boards, with what an engine says of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.units import FakeUnitPool
from yomi.engine.cli.main import main
from yomi.engine.clients.client import EngineMove, Evaluation
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.clock import Clocks
from yomi.engine.clusters import jobs
from yomi.engine.datasets import shards as units
from yomi.engine.shogi.datasets import varied
from yomi.engine.shogi.datasets.dataset import make_shogi_dataset
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.placement import parse_sfen
from yomi.engine.shogi.records.csa import format_csa_records
from yomi.engine.shogi.records.record import record_of
from yomi.engine.shogi.settings import ShogiDataOptions
from yomi.nets.data.shards import Dataset, check_shard, open_dataset
from yomi.nets.metadata import SHOGI_BOARD

SCALE = 600.0


class FakeEngine:
    """Counts pieces, and says nothing of a position in check."""

    seen: list[str]

    def __init__(self, spec: EngineSpec) -> None:
        assert spec.limits.nodes == 150
        type(self).seen = []

    def new_game(self) -> None:
        pass

    def choose(self, sfen: str, moves: Sequence[str], color: int, clocks: Clocks) -> EngineMove:
        assert not moves
        assert parse_sfen(sfen).side == color
        self.seen.append(sfen)
        if ShogiGame(sfen).in_check:
            return EngineMove("resign", 0.0)
        return EngineMove("resign", 0.0, Evaluation(score=score_of(sfen)))

    def close(self) -> None:
        pass


def score_of(sfen: str) -> float:
    """Return what the engine says of a position: pieces in hand, those of the side to move less the other's."""
    placement = parse_sfen(sfen)
    black, white = (sum(hand) for hand in placement.hands)
    return 100.0 * (black - white if placement.side == 1 else white - black)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Return the positions of three random games, a shard a game."""
    monkeypatch.setattr(varied, "UsiClient", FakeEngine)
    records = []
    for seed in range(3):
        game, rng = ShogiGame(), np.random.default_rng(seed)
        while len(game.moves) < 60:
            game.play(rng.choice(game.legal_moves()))
        records.append(record_of(game))
        records[-1].ending = "TORYO"
    (tmp_path / "a.csa").write_text(format_csa_records(records))
    options = ShogiDataOptions(features=SHOGI_BOARD, test_share=0.3, shard_rows=50)
    return make_shogi_dataset([tmp_path / "a.csa"], tmp_path / "games", options, lambda text: None)


def vary(source: Dataset, *words: str) -> int:
    flags = ["--engine", "fake", "--nodes", "150", "--score-scale", str(SCALE), "--shard-rows", "40", *words]
    return main(["dataset", "vary", str(source.folder), *flags])


def placements(dataset: Dataset) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    rows = []
    for shard in dataset.shards:
        columns = shard.open()
        pairs = zip(columns["levels"], columns["globals"].astype(int), strict=True)
        rows += [(tuple(board.tolist()), tuple(hands.tolist())) for board, hands in pairs]
    return rows


def test_rows_are_one_to_three_moves_further_and_say_what_the_engine_does(source: Dataset, tmp_path: Path) -> None:
    assert vary(source, "--positions", "100", "--out", str(tmp_path / "out")) == 0
    made = open_dataset(tmp_path / "out")
    rows = placements(made)
    assert 100 <= len(rows) < 140
    known = set(placements(source))
    assert sum(row in known for row in rows) < len(rows) / 4
    spoken = [sfen for sfen in FakeEngine.seen if not ShogiGame(sfen).in_check]
    assert len(spoken) == len(rows)
    found = {shard.path.name: shard.open() for shard in made.shards}
    for name, columns in found.items():
        check_shard(made.shards[sorted(found).index(name)], made.manifest.features, 2187)
        assert not columns["policy_weights"].any()
        np.testing.assert_array_equal(columns["value"], columns["search_value"])
        hands = columns["globals"].astype(float)
        scores = 100.0 * (hands[:, :7].sum(1) - hands[:, 7:].sum(1))
        np.testing.assert_allclose(columns["value"], np.tanh(scores / (2 * SCALE)), atol=1e-3)
    assert {shard.split for shard in made.shards} <= {shard.split for shard in source.shards}


@pytest.mark.slow
def test_a_run_goes_on_and_comes_out_the_same(source: Dataset, tmp_path: Path) -> None:
    vary(source, "--positions", "100", "--out", str(tmp_path / "whole"))
    for positions in ("30", "100"):
        vary(source, "--positions", positions, "--out", str(tmp_path / "parts"))
    assert placements(open_dataset(tmp_path / "parts")) == placements(open_dataset(tmp_path / "whole"))
    vary(source, "--positions", "100", "--seed", "2", "--out", str(tmp_path / "other"))
    assert placements(open_dataset(tmp_path / "other")) != placements(open_dataset(tmp_path / "whole"))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_set_in_parts_is_the_whole_set(count: int, source: Dataset, tmp_path: Path) -> None:
    assert vary(source, "--shards", "6", "--out", str(tmp_path / "whole")) == 0
    for number in range(count, 0, -1):
        task = f"{number}/{count}"
        assert vary(source, "--shards", "6", "--task", task, "--out", str(tmp_path / "parts")) == 0
    assert main(["merge", str(tmp_path / "parts"), "--out", str(tmp_path / "merged")]) == 0
    files = [path.relative_to(tmp_path / "whole") for path in sorted((tmp_path / "whole").rglob("*.*"))]
    assert len(files) > 6 * 5
    for file in files:
        if file.name != "run.json":
            assert (tmp_path / "merged" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert len(list((tmp_path / "merged").rglob("*.*"))) == len(files)


@pytest.mark.slow
def test_a_cluster_makes_the_whole_set(source: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert vary(source, "--shards", "6", "--out", str(tmp_path / "whole")) == 0
    monkeypatch.setattr(FakeUnitPool, "made", [], raising=False)
    monkeypatch.setattr(units, "UnitPool", FakeUnitPool)
    monkeypatch.setattr(jobs, "require_package", lambda package, use: None)
    assert vary(source, "--shards", "6", "--cluster", "local", "--out", str(tmp_path / "other")) == 0
    assert FakeUnitPool.made[0].lost
    files = [path.relative_to(tmp_path / "whole") for path in sorted((tmp_path / "whole").rglob("*.*"))]
    for file in files:
        if file.name != "run.json":
            assert (tmp_path / "other" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert len(list((tmp_path / "other").rglob("*.*"))) == len(files)
    assert vary(source, "--positions", "6", "--cluster", "local", "--out", str(tmp_path / "third")) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shards", "2"], "--positions, --shards: expected one of them"),
        (["--task", "1/2"], "--task 1/2 with --positions: expected --shards"),
        (["--moves", "0"], "--moves: expected an integer of at least 1"),
        (["--score-scale", "fit"], "--score-scale: expected 50 to 20000 centipawns, found 'fit'"),
        (["--net", "yomi-shogi-6x64.onnx"], "a network of layers found, expected a sparse one"),
        (["--seed", "3"], "a data set with options.seed"),
    ],
)
def test_what_cannot_be_is_refused(
    source: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    vary(source, "--positions", "20", "--out", str(tmp_path / "out"))
    if words[0] == "--net":
        from yomi.nets.models import default_network

        words = ["--net", str(default_network("shogi"))]
    capsys.readouterr()
    assert vary(source, "--positions", "20", "--out", str(tmp_path / "out"), *words) == 2
    assert message in capsys.readouterr().err


def test_an_engine_that_values_nothing_ends_it(
    source: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEngine, "choose", lambda *_: EngineMove("resign", 0.0))
    assert vary(source, "--positions", "20", "--out", str(tmp_path / "out")) == 2
    assert "fake: no evaluation of any position found, expected some" in capsys.readouterr().err


def test_only_boards_are_varied(tmp_path: Path, source: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    options = ShogiDataOptions(features="dlshogi-62-57", test_share=0.3, shard_rows=50)
    planes = make_shogi_dataset([tmp_path / "a.csa"], tmp_path / "planes", options, lambda text: None)
    assert vary(planes, "--positions", "20", "--out", str(tmp_path / "out")) == 2
    assert "features dlshogi-62-57 found, expected shogi-board" in capsys.readouterr().err
