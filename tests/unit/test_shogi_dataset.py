"""Data sets of shogi: hcpe and psv in and out, filters, merged duplicates, and the rows of a set."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yomi.engine.cli.main import main
from yomi.engine.shogi.datasets.dataset import fitted_scale, make_shogi_dataset
from yomi.engine.shogi.datasets.rows import (
    merged,
    placement_of,
    read_rows,
    to_hcpe,
    to_psv,
)
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import Placement, board_move, format_sfen, parse_sfen
from yomi.engine.shogi.records.csa import format_csa_record, format_csa_records
from yomi.engine.shogi.records.files import read_records, to_bytes
from yomi.engine.shogi.records.packed import (
    HCPE_DTYPE,
    PSV_DTYPE,
    from_psv_move,
    pack,
    pack_psv,
    read_hcpe,
    to_psv_move,
    write_hcpe,
)
from yomi.engine.shogi.records.record import GameRecord, RecordError, record_of
from yomi.engine.shogi.settings import ShogiDataOptions
from yomi.native.datasets.packed import HCP, PSV, unpack_board
from yomi.native.shogi.planes import SCRATCH_DTYPE, policy_index, write_planes
from yomi.nets.data.batches import BatchSource, unpack
from yomi.nets.data.shards import check_shard, open_dataset
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import SHOGI_BOARD, feature_set

OPTIONS = ShogiDataOptions(features="dlshogi-62-57", min_moves=50)


def random_record(seed: int, plies: int, ending: str = "TORYO") -> GameRecord:
    """Return a game of random moves with an evaluation for each."""
    rng = np.random.default_rng(seed)
    game = ShogiGame()
    while len(game.moves) < plies and (moves := game.legal_moves()):
        game.play(int(rng.choice(moves)))
    record = record_of(game)
    for recorded in record.moves:
        recorded.score = int(rng.integers(-900, 900))
    record.ending = ending
    return record


def quiet(text: str) -> None:
    """Say nothing."""


def unpacked(data: bytes, form: int) -> Any:
    board, hands = np.ones(81, np.uint8), np.ones((2, 7), np.uint8)
    side = unpack_board(np.frombuffer(data, np.uint8), form, board, hands)
    return tuple(board.tolist()), tuple(tuple(hand) for hand in hands.tolist()), side


def test_packed_boards_are_read() -> None:
    for seed in range(12):
        for placement in random_record(seed, 60 + 20 * seed).placements()[:: 5 + seed]:
            expected = placement.board, placement.hands, placement.side
            assert unpacked(pack(placement), HCP) == expected
            assert unpacked(pack_psv(placement), PSV) == expected


def test_a_board_may_end_with_gold() -> None:
    """All pieces on the board, a gold on the last square: its color is the last of the bits."""
    placement = parse_sfen("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1")
    board = list(placement.board)
    corner, gold = 80, board.index(7)
    board[corner], board[gold] = board[gold], board[corner]
    ending = Placement(tuple(board), placement.hands, placement.side)
    assert ending.board[corner] == 7
    assert unpacked(pack(ending), HCP) == (ending.board, ending.hands, ending.side)
    assert unpacked(pack_psv(ending), PSV) == (ending.board, ending.hands, ending.side)


def test_broken_boards_are_refused() -> None:
    rng = np.random.default_rng(1)
    refused = 0
    for form in (HCP, PSV):
        assert unpacked(b"\0" * 32, form)[2] == 0
        assert unpacked(b"\xff" * 32, form)[2] == 0
        for _ in range(200):
            refused += unpacked(rng.bytes(32), form)[2] == 0
    assert refused > 300


def test_psv_is_yaneuraous() -> None:
    cshogi = pytest.importorskip("cshogi", reason="compares with cshogi (extra test)")
    board = cshogi.Board()
    for seed in range(6):
        record = random_record(seed, 150)
        for placement, recorded in zip(record.placements(), record.moves, strict=False):
            buffer = np.frombuffer(pack_psv(placement), np.uint8).copy()
            board.set_psfen(buffer)
            expected = np.zeros(32, np.uint8)
            board.to_psfen(expected)
            assert expected.tobytes() == buffer.tobytes()
            assert board.turn + 1 == placement.side
            assert cshogi.move16_to_psv(recorded.move) == to_psv_move(recorded.move)
            assert from_psv_move(to_psv_move(recorded.move)) == recorded.move


def test_files_are_converted_without_loss(tmp_path: Path) -> None:
    records = [random_record(seed, 80, ending) for seed, ending in enumerate(("TORYO", "SENNICHITE", "KACHI"))]
    hcpe, psv = tmp_path / "a.hcpe", tmp_path / "a.psv"
    hcpe.write_bytes(write_hcpe(records))
    limits = ShogiDataOptions(min_moves=0)
    rows = read_rows(hcpe, limits, 0)
    assert len(rows) == 240
    psv.write_bytes(to_psv(rows))
    assert psv.stat().st_size == 240 * PSV_DTYPE.itemsize
    back = read_rows(psv, limits, 0)
    assert to_hcpe(back) == hcpe.read_bytes() == to_hcpe(rows)
    assert HCPE_DTYPE.itemsize == 38
    hcpe.write_bytes(hcpe.read_bytes()[:-1])
    with pytest.raises(NetworkError, match="expected whole records of 38"):
        read_rows(hcpe, limits, 0)


def test_marks_of_games_are_kept(tmp_path: Path) -> None:
    """Converting hcpe to psv and back gives the same bytes and, at all stages, the same games."""
    records = [random_record(seed, length) for seed, length in enumerate((40, 50, 60))]
    (tmp_path / "a.csa").write_text(format_csa_records(records))
    for source, target in (("a.csa", "b.hcpe"), ("b.hcpe", "c.psv"), ("c.psv", "d.hcpe"), ("a.csa", "e.psv")):
        assert main(["dataset", "convert", str(tmp_path / source), str(tmp_path / target)]) == 0
        rows = read_rows(tmp_path / target, ShogiDataOptions(min_moves=0), 0)
        assert np.unique(rows["game"], return_counts=True)[1].tolist() == [40, 50, 60]
    assert (tmp_path / "d.hcpe").read_bytes() == (tmp_path / "b.hcpe").read_bytes()
    assert (tmp_path / "e.psv").read_bytes() == (tmp_path / "c.psv").read_bytes()
    plain = write_hcpe(records)
    (tmp_path / "f.hcpe").write_bytes(plain)
    for source, target in (("f.hcpe", "g.psv"), ("g.psv", "h.hcpe")):
        assert main(["dataset", "convert", str(tmp_path / source), str(tmp_path / target)]) == 0
    assert (tmp_path / "h.hcpe").read_bytes() == plain


@pytest.mark.parametrize("suffix", [".hcpe", ".psv", ".hcpe3"])
def test_handicap_games_are_no_training_positions(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "a.kif", tmp_path / f"a{suffix}"
    source.write_text("手合割：二枚落ち\n   1 ３二金(41)\n*評価値 -500\n   2 ７六歩(77)\n   3 投了\n", encoding="utf-8")
    assert main(["dataset", "convert", str(source), str(target)]) == 2
    assert not target.exists()
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith("handicap games or positions without all 40 pieces, which hcpe, hcpe3 and psv cannot hold: 1")
    handicap = read_records(source.read_bytes())
    with pytest.raises(RecordError, match="without all 40 pieces found, such as that of a handicap game"):
        to_bytes(handicap, ".hcpe")
    handicap[0].ending = ""
    with pytest.raises(RecordError, match="without all 40 pieces"):
        to_bytes(handicap, ".hcpe")


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(1, 60)]))
    rows = read_rows(source, OPTIONS, 0)
    for name, data in (("TEACHER.HCPE", source.read_bytes()), ("TEACHER.PSV", to_psv(rows))):
        (tmp_path / name).write_bytes(data)
        assert to_hcpe(read_rows(tmp_path / name, OPTIONS, 0)) == source.read_bytes()


def with_moves(source: Path, target: Path, moves: dict[int, int]) -> Path:
    """Write an hcpe or psv file again with other moves in some of its records."""
    data = np.fromfile(source, HCPE_DTYPE if source.suffix == ".hcpe" else PSV_DTYPE)
    for index, move in moves.items():
        data["move"][index] = move
    data.tofile(target)
    return target


@pytest.mark.parametrize(
    ("suffix", "move"),
    [
        (".hcpe", 16383),
        (".hcpe", 32767),
        (".hcpe", 1 << 15 | 77),
        (".hcpe", 77 << 7 | 77),
        (".psv", 1 << 14 | 40 << 7 | 5),
        (".psv", 1 << 14 | 80 << 7 | 5),  # read as a move of ours it would promote on the board
        (".psv", 3 << 14 | 1 << 7 | 5),
        (".psv", 2 << 7 | 2),
    ],
)
def test_numbers_that_are_no_moves_are_refused(suffix: str, move: int, tmp_path: Path) -> None:
    source, changed = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    (tmp_path / "a.hcpe").write_bytes(write_hcpe([random_record(1, 60)]))
    (tmp_path / "a.psv").write_bytes(to_psv(read_rows(tmp_path / "a.hcpe", OPTIONS, 0)))
    with_moves(source, changed, {7: move, 9: move})
    with pytest.raises(NetworkError, match=rf"b\{suffix}, record 8: move {move} found, expected squares of the board"):
        read_rows(changed, OPTIONS, 0)
    with_moves(source, changed, {7: 0})
    assert np.flatnonzero(read_rows(changed, OPTIONS, 0)["move"] == 0).tolist() == [7]


def test_moves_that_cannot_be_played_are_refused(tmp_path: Path) -> None:
    source, changed = tmp_path / "a.hcpe", tmp_path / "b.hcpe"
    source.write_bytes(write_hcpe([random_record(1, 60)]))
    with_moves(source, changed, {0: board_move(0, 80)})
    with pytest.raises(NetworkError, match=r"^move 1a9i in lnsg.* b - 1: Black has no piece on 1a; expected one that"):
        make_shogi_dataset([changed], tmp_path / "set", OPTIONS, quiet)


def test_a_set_goes_on_only_with_the_same_records(tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(seed, 60) for seed in range(3)]))
    make_shogi_dataset([source], tmp_path / "set", OPTIONS, quiet)
    make_shogi_dataset([source], tmp_path / "set", OPTIONS, quiet)
    source.write_bytes(write_hcpe([random_record(seed, 60) for seed in range(1, 4)]))
    with pytest.raises(NetworkError, match=r"sources.0 a\.hcpe [0-9a-f]{16} found, expected a\.hcpe "):
        make_shogi_dataset([source], tmp_path / "set", OPTIONS, quiet)


def test_positions_without_a_move_have_no_policy(tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(1, 60)]))
    with_moves(source, source, {0: 0, 30: 0})
    (shard,) = make_shogi_dataset([source], tmp_path / "set", replace(OPTIONS, test_share=0.0), quiet).shards
    weights = shard.open()["policy_weights"]
    assert (weights == 0.0).sum() == 2
    assert (weights == 1.0).sum() == len(weights) - 2
    check_shard(shard, feature_set("dlshogi-62-57"), 27 * 81)


def test_a_mate_by_a_dropped_pawn_is_kept_as_it_was_played(tmp_path: Path) -> None:
    """`read_hcpe` does not refuse it either: whether it is a mate is not asked."""
    placement = parse_sfen("7nk/9/7G1/9/9/9/9/9/4K4 b P2r2b3g4s3n4l17p 1")
    source = tmp_path / "a.hcpe"
    packed = np.frombuffer(pack(placement), np.uint8)
    np.array([(packed, 100, parse_usi("P*1b"), 1, 0)], HCPE_DTYPE).tofile(source)
    assert len(read_hcpe(source.read_bytes())) == 1
    (shard,) = make_shogi_dataset([source], tmp_path / "set", replace(OPTIONS, test_share=0.0), quiet).shards
    assert shard.open()["policy_weights"].tolist() == [[1.0]]


def test_records_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "a.csa"
    records = [random_record(1, 60), random_record(2, 30), random_record(3, 70, "CHUDAN")]
    records[0].comment = "black_rate:somebody:3100.5\nwhite_rate:nobody:2900.0"
    path.write_text(format_csa_record(records[0]))
    assert len(read_rows(path, OPTIONS, 0)) == 60
    assert len(read_rows(path, ShogiDataOptions(rating=2900.0), 0)) == 60
    assert len(read_rows(path, ShogiDataOptions(rating=2900.5), 0)) == 0
    near = read_rows(path, ShogiDataOptions(evaluation=300.0), 0)
    assert 0 < len(near) < 60
    assert (np.abs(near["score"]) <= 300.0).all()
    for record in records[1:]:
        path.write_text(format_csa_record(record))
        assert len(read_rows(path, OPTIONS, 0)) == 0


def test_handicap_games_are_left_out(tmp_path: Path) -> None:
    lance = parse_sfen("lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1")
    path = tmp_path / "a.csa"
    path.write_text(format_csa_records([GameRecord(lance, ending="TORYO"), random_record(1, 60)]))
    rows = read_rows(path, ShogiDataOptions(min_moves=0), 0)
    assert len(rows) == 60
    game = ShogiGame(format_sfen(lance))
    for _ in range(60):
        game.play(game.legal_moves()[0])
    handicap = record_of(game, ending="TORYO")
    path.write_text(format_csa_records([random_record(1, 60), handicap, random_record(2, 70)]))
    rows = read_rows(path, OPTIONS, 0)
    assert np.unique(rows["game"], return_counts=True)[1].tolist() == [60, 70]


def test_games_that_are_not_used_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csa"
    unused = [random_record(number, 60, "CHUDAN") for number in range(3, 12)]
    path.write_text(format_csa_records([*unused[:4], random_record(1, 60), *unused[4:], random_record(2, 70)]))
    for seed in range(6):
        words = ["--features", "dlshogi-62-57", "--keep-duplicates", "--test-share", "0.5", "--seed", str(seed)]
        assert main(["dataset", "make", str(path), *words, "--out", str(tmp_path / str(seed))]) == 0
        assert "130 positions of 2 games read" in capsys.readouterr().err
        assert {shard.split for shard in open_dataset(tmp_path / str(seed)).shards} == {"train", "test"}


def test_duplicates_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "a.hcpe"
    path.write_bytes(write_hcpe([random_record(1, 60)]))
    rows = read_rows(path, OPTIONS, 0)
    extra = rows[[5, 5, 9]].copy()
    extra["winner"][:2] = 3 - rows["winner"][5]
    extra["score"] = 100.0
    extra["move"][:2] = 77
    found = merged(np.concatenate([rows, extra]))
    assert len(found) == len({row["packed"].tobytes() for row in rows})
    by_board = {row["packed"].tobytes(): row for row in found}
    fifth, ninth = by_board[rows[5]["packed"].tobytes()], by_board[rows[9]["packed"].tobytes()]
    assert fifth["winner"] == 3 - rows["winner"][5]
    assert fifth["move"] == 77
    assert fifth["score"] == pytest.approx((rows["score"][5] + 200.0) / 3)
    assert ninth["winner"] == rows["winner"][9]
    assert ninth["score"] == pytest.approx((rows["score"][9] + 100.0) / 2)


def test_the_scale_of_evaluations_is_found(tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(seed, 80) for seed in range(3)]))
    rows = np.tile(read_rows(source, OPTIONS, 0), 200)
    rng = np.random.default_rng(1)
    rows["score"] = np.clip(rng.normal(0.0, 1500.0, len(rows)), -30_000, 30_000)
    side = 1 + (rows["packed"][:, 0] & 1).astype(np.int8)
    wins = rng.random(len(rows)) < 1.0 / (1.0 + np.exp(-rows["score"] / 1200.0))
    rows["winner"] = np.where(wins, side, 3 - side)
    assert fitted_scale(rows) == pytest.approx(1200.0, rel=0.03)
    rows["winner"] = 0
    with pytest.raises(NetworkError, match="a winner found"):
        fitted_scale(rows)


@pytest.mark.parametrize("scale", [400.0, 0.0])
def test_evaluations_are_scaled(scale: float, tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(seed, 80) for seed in range(3)]))
    lines: list[str] = []
    options = replace(OPTIONS, test_share=0.0, score_scale=scale)
    dataset = make_shogi_dataset([source], tmp_path / "set", options, lines.append)
    rows = merged(read_rows(source, OPTIONS, 0))
    wanted = np.tanh(np.sort(rows["score"]) / (2.0 * (scale or fitted_scale(rows))))
    found = np.sort(np.concatenate([shard.open()["search_value"] for shard in dataset.shards]))
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    assert any("sigmoid of" in line for line in lines) == (scale == 0.0)


@pytest.mark.parametrize("features", ["dlshogi-62-57", "dlshogi-62-119", "alphazero-shogi-45"])
def test_rows_are_the_positions(features: str, tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(seed, 80) for seed in range(3)]))
    options = ShogiDataOptions(features=features, test_share=0.5, shard_rows=100)
    dataset = make_shogi_dataset([source], tmp_path / "set", options, quiet)
    expected = {}
    for row in merged(read_rows(source, OPTIONS, 0)):
        placement = placement_of(row)
        game = ShogiGame(format_sfen(placement))
        game.position["form"] = int(features.startswith("alphazero"))
        form = dataset.manifest.features
        planes, extras = np.zeros((form.planes, 9, 9), np.float32), np.zeros(form.extras, np.float32)
        write_planes(game.position, game.history, 0, np.zeros(1, SCRATCH_DTYPE)[0], planes, extras)
        won = 0.0 if row["winner"] == 0 else 1.0 if row["winner"] == placement.side else -1.0
        label = int(policy_index(game.position, int(row["move"]), 0))
        expected[planes.tobytes(), extras.tobytes()] = label, won, np.tanh(row["score"] / 1512.17)
    seen = 0
    for shard in dataset.shards:
        check_shard(shard, dataset.manifest.features, 139 * 81 if features.startswith("alpha") else 27 * 81)
        for batch in BatchSource([dataset], shard.split, 64, 0).in_order():
            planes, extras = unpack(batch, dataset.manifest.features)
            for index in range(batch.rows):
                label, won, searched = expected[planes[index].tobytes(), extras[index].tobytes()]
                assert batch.columns["policy_moves"][index, 0] == label
                assert batch.columns["value"][index] == won
                assert batch.columns["search_value"][index] == pytest.approx(searched, abs=1e-3)
                seen += 1
    assert seen >= len(expected)


def test_boards_are_seen_by_the_side_to_move(tmp_path: Path) -> None:
    source = tmp_path / "a.hcpe"
    source.write_bytes(write_hcpe([random_record(seed, 80) for seed in range(3)]))
    options = ShogiDataOptions(features=SHOGI_BOARD, test_share=0.0)
    dataset = make_shogi_dataset([source], tmp_path / "set", options, quiet)
    expected = {}
    for row in merged(read_rows(source, OPTIONS, 0)):
        placement = placement_of(row)
        game = ShogiGame(format_sfen(placement))
        seen = placement if placement.side == 1 else placement.turned()
        won = 0.0 if row["winner"] == 0 else 1.0 if row["winner"] == placement.side else -1.0
        expected[seen.board, seen.hands] = int(policy_index(game.position, int(row["move"]), 0)), won
    (shard,) = dataset.shards
    check_shard(shard, dataset.manifest.features, 27 * 81)
    (batch,) = BatchSource([dataset], "train", 4096, 0).in_order()
    assert batch.rows == shard.rows >= len(expected) > 200
    columns = batch.columns
    for board, hands, label, value in zip(
        columns["levels"], columns["globals"], columns["policy_moves"], columns["value"], strict=True
    ):
        mine, other = (tuple(int(count) for count in each) for each in (hands[:7], hands[7:]))
        assert expected[tuple(board.tolist()), (mine, other)] == (label[0], value)


def test_broken_files_do_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "games"
    folder.mkdir()
    (folder / "a.csa").write_text(format_csa_record(random_record(1, 60)))
    for name, content in (("b.csa", b""), ("c.hcpe", b"123"), ("d.kif", b"\xff\xff\xff")):
        (folder / name).write_bytes(content)
    lines: list[str] = []
    options = replace(OPTIONS, test_share=0.0)
    (shard,) = make_shogi_dataset([folder], tmp_path / "set", options, lines.append).shards
    assert shard.rows == 60
    named = [line for line in lines if line.endswith("left out")]
    assert [Path(line.partition(": ")[0]).name for line in named] == ["b.csa", "c.hcpe", "d.kif"]
    assert "3 left out, of 4 files" in lines
    with pytest.raises(NetworkError, match=r"b\.csa: "):
        make_shogi_dataset([folder / "b.csa"], tmp_path / "other", options, quiet)
    target = tmp_path / "games.hcpe3"
    assert main(["dataset", "convert", str(folder), str(target)]) == 0
    printed = capsys.readouterr()
    assert "1 games written" in printed.out
    assert "2 left out, of 3 files" in printed.err
    assert main(["dataset", "convert", str(folder / "b.csa"), str(tmp_path / "none.hcpe3")]) == 2
    assert not (tmp_path / "none.hcpe3").exists()
