"""The format of data sets, the order of batches, and the table of tests."""

import contextlib
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yomi.native.go.planes import symmetry_table
from yomi.nets.data.batches import AHEAD, Batch, BatchSource, Reader, unpack
from yomi.nets.data.metrics import Judged, Table
from yomi.nets.data.shards import (
    Manifest,
    begin_dataset,
    check_content,
    check_shard,
    open_dataset,
    shard_name,
    widths,
    write_shard,
)
from yomi.nets.data.symmetry import symmetries_of
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import feature_set

STONES = feature_set("go-stones-2")


def columns_of(rows: int, size: int, seed: int) -> dict[str, Any]:
    """Return random positions; the policy's move is the row's number in the set, as far as it goes."""
    rng = np.random.default_rng(seed)
    return {
        "planes": rng.integers(0, 256, (rows, widths(STONES, size)["planes"]), np.uint8),
        "policy_moves": rng.integers(0, size * size + 1, (rows, 1)),
        "policy_weights": np.ones((rows, 1)),
        "value": rng.uniform(-1, 1, rows),
    }


def make_set(folder: Path, counts: dict[tuple[str, int], list[int]], sources: tuple[str, ...] = ()) -> Any:
    begin_dataset(folder, Manifest("go-stones-2", sources=sources))
    for (split, size), rows in counts.items():
        for number, count in enumerate(rows):
            write_shard(folder, shard_name(split, size, number), split, size, columns_of(count, size, number))
    return open_dataset(folder)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    dataset = make_set(tmp_path / "set", {("train", 9): [5, 3], ("test", 7): [2]})
    assert dataset.rows("train") == 8
    assert dataset.rows("test") == 2
    columns = dataset.shards[1].open()
    assert columns["value"].dtype == np.float16
    np.testing.assert_array_equal(columns["planes"], columns_of(5, 9, 0)["planes"])
    for shard in dataset.shards:
        check_shard(shard, STONES, shard.size**2 + 1)


def test_a_set_goes_on_only_as_it_began(tmp_path: Path) -> None:
    begin_dataset(tmp_path, Manifest("go-stones-2", {"seed": 1}))
    (tmp_path / ".train-09-00000.part").mkdir()
    assert begin_dataset(tmp_path, Manifest("go-stones-2", {"seed": 1})).shards == ()
    assert not list(tmp_path.glob(".*.part"))
    with pytest.raises(NetworkError, match=r"a data set with options\.seed 1 found, expected 2, or a new folder"):
        begin_dataset(tmp_path, Manifest("go-stones-2", {"seed": 2}))
    with pytest.raises(NetworkError, match="No such file"):
        open_dataset(tmp_path / "nowhere")
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(NetworkError, match="format 99 found, expected 1"):
        open_dataset(tmp_path)


def test_an_option_that_is_null_differs_from_none_at_all(tmp_path: Path) -> None:
    begin_dataset(tmp_path, Manifest("go-stones-2", {"other": None}))
    with pytest.raises(NetworkError, match=r"options \{'other': None\} found, expected \{\}"):
        begin_dataset(tmp_path, Manifest("go-stones-2"))


@pytest.mark.parametrize(
    ("found", "wanted", "message"),
    [
        (("a.sgf 12",), ("a.sgf 34",), "sources.0 a.sgf 12 found, expected a.sgf 34"),
        (("a.sgf", "b.sgf"), ("a.sgf 12", "b.sgf 34"), "sources.0 a.sgf found, expected a.sgf 12"),
        (("a.sgf 12",), ("a.sgf 12", "b.sgf 34"), "sources.1 None found, expected b.sgf 34"),
    ],
)
def test_a_set_goes_on_only_with_the_same_sources(
    found: tuple[str, ...], wanted: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    begin_dataset(tmp_path, Manifest("go-stones-2", sources=found))
    with pytest.raises(NetworkError, match=re.escape(message)):
        begin_dataset(tmp_path, Manifest("go-stones-2", sources=wanted))
    assert open_dataset(tmp_path).manifest.sources == found


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("value", np.full(4, 2.0, np.float16), "beyond -1 to 1"),
        ("value", np.zeros((4, 1), np.float16), "another number of axes"),
        ("policy_moves", np.zeros((4, 2), np.uint16), "policy_moves and policy_weights of different shapes"),
        ("short_value", np.full(4, 2.0, np.float16), "beyond -1 to 1"),
        ("policy_moves", np.full((4, 1), 82, np.uint16), "an index from 82 on"),
        ("policy_weights", np.full((4, 1), -1.0, np.float16), "shares beyond"),
        ("planes", np.zeros((4, 3), np.uint8), "expected 21 a row"),
        ("value", np.zeros(3, np.float16), "3 rows found, expected 4"),
        ("value", np.zeros(4, np.float64), "float64 found"),
        ("other", np.zeros(4, np.float16), "column 'other' found"),
        ("own_moves", np.zeros((4, 2), np.uint16), "own_moves and own_weights of different shapes"),
        ("own_points", np.zeros((4, 80), np.int8), "expected 81 a row"),
        ("own_number", np.zeros((4, 2), np.float16), "another number of axes"),
    ],
)
def test_damage_is_found(name: str, array: Any, message: str, tmp_path: Path) -> None:
    shard = make_set(tmp_path, {("train", 9): [4]}).shards[0]
    np.save(shard.path / f"{name}.npy", array)
    with pytest.raises(NetworkError, match=message):
        check_shard(shard, STONES, 82)


def test_symmetries_are_the_kernels() -> None:
    for size in (5, 9):
        tables = symmetries_of(feature_set("katago-v7"), size)
        for symmetry in range(8):
            np.testing.assert_array_equal(tables.moves[symmetry], symmetry_table(size, size, symmetry))
        np.testing.assert_array_equal(tables.points, tables.moves[:, :-1])


def test_batches_come_in_an_order_that_the_seed_decides(tmp_path: Path) -> None:
    dataset = make_set(tmp_path, {("train", 9): [64, 32], ("train", 7): [48]})
    source, again = BatchSource([dataset], "train", 16, 1), BatchSource([dataset], "train", 16, 1)
    other = BatchSource([dataset], "train", 16, 2)
    assert source.epoch_batches == 9
    steps = [source.batch(step) for step in range(18)]
    # The later epoch first: nothing depends on what was asked before.
    for step in (*range(9, 18), *range(9)):
        np.testing.assert_array_equal(again.batch(step).columns["planes"], steps[step].columns["planes"])
    assert any(len(other.batch(s).columns["planes"]) and other.batch(s).size != steps[s].size for s in range(9))
    rows = sorted(row.tobytes() for batch in steps[:9] for row in batch.columns["planes"])
    stored = sorted(row.tobytes() for shard in dataset.shards for row in shard.open()["planes"])
    assert rows == stored
    with Reader(source, 3, 7, lambda batch: batch.step) as reader:
        assert list(reader) == [3, 4, 5, 6]
    with pytest.raises(NetworkError, match="no positions of split test"):
        BatchSource([dataset], "test", 16, 1)


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        (0, {5: 64, 7: 20, 9: 48}),
        (200, {5: 64, 7: 20, 9: 48}),
        (100, {5: 40, 7: 20, 9: 40}),
        (10, {5: 4, 7: 3, 9: 3}),
        (1, {5: 1, 7: 0, 9: 0}),
    ],
)
def test_positions_are_taken_from_all_shards_alike(positions: int, expected: dict[int, int], tmp_path: Path) -> None:
    dataset = make_set(tmp_path, {("test", 5): [64], ("test", 7): [20], ("test", 9): [48]})
    source = BatchSource([dataset], "test", 16, 0)
    found = dict.fromkeys((5, 7, 9), 0)
    for batch in source.in_order(positions=positions):
        assert 0 < batch.rows <= 16
        found[batch.size] += batch.rows
    assert found == expected


def test_sets_of_other_records_are_told_apart(tmp_path: Path) -> None:
    digests = []
    for number, source in enumerate(("a.sgf 12", "a.sgf 34", "a.sgf 34")):
        folder = tmp_path / str(number) / "set"
        digests.append(BatchSource([make_set(folder, {("train", 9): [8]}, (source,))], "train", 4, 1).digest())
    assert digests[0] != digests[1] == digests[2]


def test_no_shard_stays_open(tmp_path: Path) -> None:
    dataset = make_set(tmp_path, {("train", 5): [2] * 20})
    before = len(os.listdir("/dev/fd"))
    source = BatchSource([dataset], "train", 2, 1)
    batches = [source.batch(step) for step in range(20)] + list(source.in_order())
    assert len(batches) == 40
    assert len(os.listdir("/dev/fd")) == before


def test_a_reader_that_is_left_early_ends(tmp_path: Path) -> None:
    source = BatchSource([make_set(tmp_path, {("train", 9): [64]})], "train", 4, 1)
    made = []
    with Reader(source, 0, 10_000, lambda batch: made.append(batch.step), 2) as reader:
        next(iter(reader))
    assert len(made) <= AHEAD + 1
    assert not any(thread.name.startswith("reader") for thread in threading.enumerate())


def test_batches_of_several_threads_come_in_order(tmp_path: Path) -> None:
    source = BatchSource([make_set(tmp_path, {("train", 9): [16] * 4})], "train", 4, 1)
    slow = threading.Event()

    def make(batch: Batch) -> bytes:
        if batch.step == 3:  # the others overtake it
            assert slow.wait(300)
        elif batch.step == 5:
            slow.set()
        elif batch.step == 37:
            raise NetworkError("step 37")
        return batch.columns["planes"].tobytes()

    expected = [source.batch(step).columns["planes"].tobytes() for step in range(37)]
    with Reader(source, 0, 40, make, 3) as reader:
        made = iter(reader)
        assert [next(made) for _ in expected] == expected
        with pytest.raises(NetworkError, match="step 37"):
            next(made)


def test_levels_and_constant_planes_are_unpacked(tmp_path: Path) -> None:
    features = feature_set("cosumi-3")
    columns = columns_of(2, 9, 0) | {"levels": np.full((2, 81), 4), "komi": np.zeros(2)}
    begin_dataset(tmp_path, Manifest(features.name))
    write_shard(tmp_path, shard_name("train", 9, 0), "train", 9, columns)
    source = BatchSource([open_dataset(tmp_path)], "train", 2, 0)
    planes, extras = unpack(next(source.in_order()), features)
    assert planes.shape == (2, 3, 9, 9)
    assert extras.shape == (2, 0)
    np.testing.assert_allclose(planes[:, 2], np.tanh(0.2), rtol=1e-6)
    np.testing.assert_array_equal(planes[0, 0].reshape(-1)[:8], np.unpackbits(columns["planes"][0, :1]))


def test_the_table_of_a_test() -> None:
    logits = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]], np.float32))
    columns = {
        "planes": np.zeros((2, 1), np.uint8),
        "policy_moves": np.array([[0, 1], [2, 0]], np.uint16),
        "policy_weights": np.array([[0.75, 0.25], [1.0, 0.0]], np.float16),
        "value": np.array([1.0, np.nan], np.float16),
        "lead": np.array([3.0, -2.0], np.float16),
        "komi": np.array([-7.0, 7.0], np.float16),
    }
    table = Table()
    table.add(Judged(logits, np.array([0.5, 0.1], np.float32), np.array([11.0, -9.0], np.float32)), columns)
    values = table.values()
    expected = (-0.75 * np.log(0.7) - 0.25 * np.log(0.2) - np.log(0.3)) / 2
    assert values["policy_loss"] == pytest.approx(expected, abs=1e-6)
    assert values["policy_accuracy"] == 0.5
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    assert values["policy_entropy"] == pytest.approx(-(shares * np.log(shares)).sum() / 2, abs=1e-6)
    assert values["value_loss"] == pytest.approx(-np.log(0.75))
    assert values["value_accuracy"] == 1.0
    assert values["value_error"] == pytest.approx(0.25)
    assert values["score_error"] == pytest.approx((8.0 + 7.0) / 2)
    without = Table()
    without.add(Judged(lead=np.array([11.0, -9.0], np.float32), counts_komi=False), columns)
    assert without.values() == {"score_error": pytest.approx((1.0 + 0.0) / 2)}


def test_no_flipped_bit_of_a_header_is_another_error(tmp_path: Path) -> None:
    shard = make_set(tmp_path, {("train", 9): [4]}).shards[0]
    path = shard.path / "value.npy"
    whole = path.read_bytes()
    for at in range(128):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            with contextlib.suppress(NetworkError):
                check_shard(shard, STONES, 82)
                check_content(shard)


@pytest.mark.parametrize("name", ["planes", "value", "policy_weights"])
def test_other_content_than_was_written_is_found(name: str, tmp_path: Path) -> None:
    shard = make_set(tmp_path, {("train", 9): [4]}).shards[0]
    check_content(shard)
    path = shard.path / f"{name}.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(NetworkError, match=rf"{name}\.npy: damaged content found, expected CRC-32"):
        check_content(shard)
