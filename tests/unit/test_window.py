"""Windows: how many rows, of which shards, and what their batches are made of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yomi.nets.data.batches import Reader, WindowSource, newest, window_rows
from yomi.nets.data.shards import Shard, shard_name, widths, write_shard
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import feature_set

STONES = feature_set("go-stones-2")


def test_windows_grow_by_a_power_of_the_rows() -> None:
    assert [window_rows(total, 250) for total in (0, 1, 250)] == [0, 1, 250]
    exponent, scale = 0.65, 0.4
    for total, minimum in ((1000, 250), (10**9, 250_000)):
        # As KataGo's shuffle.py has it: a power law through the origin, moved and scaled to slope `scale` at `minimum`.
        law = (total**exponent - minimum**exponent) / (exponent * minimum ** (exponent - 1))
        assert window_rows(total, minimum) == pytest.approx(minimum + scale * law, abs=1)


def made(folder: Path, number: int, size: int, rows: int, *, split: str = "train", **more: Any) -> Shard:
    """Write a shard whose values say (64 * number + row) / 1024 of each row, and whose policies name both."""
    ids = 64 * number + np.arange(rows)
    columns = {
        "planes": np.full((rows, widths(STONES, size)["planes"]), size),
        "policy_moves": np.stack([np.full(rows, number), np.arange(rows) % size**2], 1),
        "policy_weights": np.tile([0.75, 0.25], (rows, 1)),
        "value": ids / 1024,
    }
    return write_shard(folder, shard_name(split, size, number), split, size, columns | more)


def ids_of(source: WindowSource, size: int) -> list[int]:
    """Return the rows that all batches of a size show, in order."""
    batches = [source.batch(step) for step in range(source.steps)]
    values = [batch.columns["value"].astype(float) * 1024 for batch in batches if batch.size == size]
    return [int(value) for value in np.concatenate([*values, []])]


def test_the_newest_shards_are_taken_over_all_sizes(tmp_path: Path) -> None:
    shards = [made(tmp_path, number, size, 10) for number, size in ((0, 5), (9, 7), (10, 5), (100, 7))]
    shards.append(made(tmp_path, 101, 5, 10, split="test"))
    numbers = {rows: [shard.path.name for shard in newest(shards, rows)] for rows in (0, 1, 10, 11, 999)}
    names = ["train-05-00000", "train-07-00009", "train-05-00010", "train-07-00100"]
    assert numbers == {0: [], 1: names[3:], 10: names[3:], 11: names[2:], 999: names}
    with pytest.raises(NetworkError, match="train-new: a name without a number found"):
        newest([Shard(tmp_path / "train-new", "train", 5, 1)], 1)


def test_batches_mix_all_shards_and_show_each_row_once_a_pass(tmp_path: Path) -> None:
    shards = [made(tmp_path, number, 5, 16) for number in range(4)]
    rows = sorted(64 * number + row for number in range(4) for row in range(16))
    source = WindowSource(STONES, shards, 8, 20, 1, 0)
    assert (source.positions, source.epoch_batches, source.steps) == (64, 8, 20)
    shown = ids_of(source, 5)
    assert sorted(shown[:64]) == sorted(shown[64:128]) == rows
    assert len(set(shown[128:])) == 32
    assert shown[:64] != shown[64:128]
    for step in range(20):
        batch = source.batch(step)
        assert batch.step == step
        assert len({int(row) // 64 for row in batch.columns["value"].astype(float) * 1024}) > 1
        np.testing.assert_array_equal(
            batch.columns["policy_moves"][:, 0], batch.columns["value"].astype(float) // 0.0625
        )
    with Reader(source, 18, 20, lambda batch: batch.step) as reader:
        assert list(reader) == [18, 19]
    with pytest.raises(NetworkError, match="batch 20 of a window of 20 asked for"):
        source.batch(20)


def test_seed_and_generation_decide_what_is_drawn(tmp_path: Path) -> None:
    shards = [made(tmp_path, number, size, 32) for number, size in enumerate((5, 7, 5))]
    drawn = {}
    for seed, generation in ((1, 0), (1, 1), (2, 0)):
        source, again = (WindowSource(STONES, shards, 4, 8, seed, generation) for _ in range(2))
        drawn[source.digest()] = tuple(ids_of(source, 5) + ids_of(source, 7))
        assert tuple(ids_of(again, 5) + ids_of(again, 7)) == drawn[again.digest()]
        assert len(set(drawn[source.digest()])) == 32
    assert len(set(drawn.values())) == len(drawn) == 3
    other = WindowSource(STONES, shards[1:], 4, 8, 1, 0)
    assert other.digest() not in drawn


def test_sizes_have_their_share_of_the_batches(tmp_path: Path) -> None:
    shards = [made(tmp_path, 0, 5, 60), made(tmp_path, 1, 7, 30), made(tmp_path, 2, 9, 5)]
    counts = dict.fromkeys((5, 7, 9), 0)
    firsts = set()
    for generation in range(100):
        source = WindowSource(STONES, shards, 4, 10, 1, generation)
        sizes = [source.batch(step).size for step in range(10)]
        assert all(source.batch(step).columns["planes"][0, 0] == size for step, size in enumerate(sizes))
        firsts.add(sizes[0])
        assert (sizes.count(5) in (6, 7), sizes.count(7) in (3, 4), sizes.count(9) in (0, 1)) == (True, True, True)
        counts = {size: counts[size] + sizes.count(size) for size in counts}
    assert firsts >= {5, 7}
    for size, rows in ((5, 60), (7, 30), (9, 5)):
        assert counts[size] == pytest.approx(1000 * rows / 95, abs=15)


def test_shards_may_have_other_labels_and_more_moves(tmp_path: Path) -> None:
    plain = made(tmp_path, 0, 5, 8)
    moves = {"policy_moves": np.tile([1, 2, 3], (8, 1)), "policy_weights": np.tile([0.5, 0.25, 0.25], (8, 1))}
    labels = {"lead": np.full(8, 3.0), "ownership": np.full((8, 25), 127), "symmetry": np.full(8, 5)}
    source = WindowSource(STONES, [plain, made(tmp_path, 1, 5, 8, **moves, **labels)], 16, 1, 1, 0)
    batch = source.batch(0)
    richer = batch.columns["value"] >= 0.0625
    assert richer.sum() == 8
    np.testing.assert_array_equal(batch.columns["policy_weights"][~richer, 2], 0.0)
    np.testing.assert_array_equal(batch.columns["policy_weights"][richer, 2], 0.25)
    np.testing.assert_array_equal(np.isnan(batch.columns["lead"]), ~richer)
    np.testing.assert_array_equal((batch.columns["ownership"] == -128).all(1), ~richer)
    np.testing.assert_array_equal(batch.columns["symmetry"], np.where(richer, 5, 0))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("value", np.zeros(3, np.float16), r"train-05-00001.value\.npy: 3 rows found, expected 8"),
        ("value", None, "train-05-00001: columns without value found"),
        ("value", b"\x93NUMPY", r"train-05-00001.value\.npy: .*expected an array"),
        ("value", np.zeros((8, 1), np.float16), "train-05-00001/value: shape"),
        ("planes", np.zeros((8, 3), np.uint8), "train-05-00001/planes: shape"),
        ("policy_moves", np.full((8, 2), 26, np.uint16), "train-05-00001/policy_moves: an index from 26 on"),
        ("policy_moves", np.zeros((8, 3), np.uint16), "train-05-00001: policy_moves and policy_weights of different"),
        ("lead", np.zeros(8), "train-05-00001/lead: float64 found"),
    ],
)
def test_broken_shards_are_named(name: str, array: Any, message: str, tmp_path: Path) -> None:
    shards = [made(tmp_path, number, 5, 8) for number in range(2)]
    path = shards[1].path / f"{name}.npy"
    if array is None:
        path.unlink()
    elif isinstance(array, bytes):
        path.write_bytes(array)
    else:
        np.save(path, array)
    with pytest.raises(NetworkError, match=message):
        WindowSource(STONES, shards, 8, 4, 1, 0)
    with pytest.raises(NetworkError, match="0 shards without positions found"):
        WindowSource(STONES, [], 8, 4, 1, 0)
