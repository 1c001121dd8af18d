"""Rows of `yomi selfplay`, and the records beside them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer
from tests.sgf import read_sgf
from yomi.engine.cli.main import main
from yomi.engine.go import record_files
from yomi.engine.go.learning import GoRecorder
from yomi.engine.learning.rows import Collection
from yomi.engine.options import Options
from yomi.engine.registry import GO, SHOGI
from yomi.engine.selfplay import Series
from yomi.engine.shogi.records.csa import read_csa
from yomi.engine.shogi.records.files import load_records
from yomi.engine.shogi.records.packed import read_hcpe3
from yomi.engine.shogi.selfplay import ShogiRecorder
from yomi.engine.shogi.settings import SelfplayShogiSettings
from yomi.nets.data.columns import UNKNOWN_OWNER
from yomi.nets.data.shards import open_dataset
from yomi.nets.errors import NetworkError


def test_rows_of_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = Options(size=5, rules="tromp-taylor")
    collection = Collection(tmp_path / "a", GO.learnable(options))
    series = Series(GO, FakePlayer(options), GoRecorder(None, options), collection)
    files = [series.play(number).files for number in range(2)]
    resigned = FakePlayer(options, resign_at=3)
    series = Series(GO, resigned, GoRecorder(None, options), series.collection)
    series.play(2)
    series.close()
    (shard,) = open_dataset(tmp_path / "a").shards
    (path,) = (tmp_path / "a" / "games").iterdir()
    games = record_files.load_records(path)
    moves = [len(game.game().moves) for game in games]
    assert moves[2] == 3
    columns = shard.open()
    assert np.bincount(columns["game"]).tolist() == moves
    assert columns["ply"].tolist() == [ply for count in moves for ply in range(count)]
    shares = [ply / count for count in moves for ply in range(count)]
    np.testing.assert_allclose(columns["progress"], shares, atol=1e-3)
    assert np.isfinite(columns["lead"][columns["game"] < 2]).all()
    assert np.isnan(columns["lead"][columns["game"] == 2]).all()
    assert np.isfinite(columns["short_value"]).all()
    assert (columns["ownership"] == UNKNOWN_OWNER).all(1).tolist() == (columns["game"] == 2).tolist()
    assert main(["dataset", "check", str(tmp_path / "a")]) == 0
    assert f"{sum(moves)} positions replayed from their records" in capsys.readouterr().out
    for game in (read_sgf(files[0][".sgf"]), games[0]):
        first = next(node for node in game.nodes() if node.move)
        assert len(first.other["VN"]) > 1
        assert all(":" in value for value in first.other["VN"])


def test_rows_of_shogi_after_openings(tmp_path: Path) -> None:
    options = replace(Options.for_game("shogi"), max_moves=20)
    openings = tmp_path / "openings.sfen"
    openings.write_text("sfen lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 12 moves 3c3d\n")
    recorder = ShogiRecorder(SelfplayShogiSettings(("csa", "hcpe3"), str(openings)), options)
    collection = Collection(tmp_path / "a", SHOGI.learnable(options))
    series = Series(SHOGI, FakeShogiPlayer(options), recorder, collection)
    files = series.play(0).files
    series.close()
    (shard,) = open_dataset(tmp_path / "a").shards
    (path,) = (tmp_path / "a" / "games").iterdir()
    (record,) = load_records(path)
    (written,) = read_csa(files[".csa"].decode())
    (packed,) = read_hcpe3(files[".hcpe3"])
    assert len(record.moves) == 20 - 11
    searched = [index for index, note in enumerate(record.moves) if note.counts]
    assert shard.open()["ply"].tolist() == searched
    assert [note.counts for note in packed.moves] == [note.counts for note in written.moves]
    assert [bool(note.counts) for note in written.moves] == [bool(note.counts) for note in record.moves]
    assert main(["dataset", "check", str(tmp_path / "a")]) == 0


def test_a_collection_goes_on(tmp_path: Path) -> None:
    options = Options(size=5)
    for _ in range(2):
        series = Series(GO, FakePlayer(options), GoRecorder(None, options), Collection(tmp_path, GO.learnable(options)))
        series.play(0)
        series.close()
    assert [shard.path.name for shard in open_dataset(tmp_path).shards] == ["train-05-00001", "train-05-00002"]
    with pytest.raises(NetworkError, match="feature_set katago-v7 found, expected dlshogi-62-57"):
        Collection(tmp_path, SHOGI.learnable(Options.for_game("shogi")))
