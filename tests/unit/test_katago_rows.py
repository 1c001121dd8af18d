"""KataGo's training rows: what they contain of a data set, and what comes back."""

import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yomi.engine.cli.main import main
from yomi.nets.data.katago_rows import from_katago, to_katago
from yomi.nets.data.shards import Manifest, begin_dataset, check_shard, open_dataset, shard_name, write_shard
from yomi.nets.metadata import feature_set

FEATURES = feature_set("katago-v7")
EXACT = ("planes", "value", "search_value", "short_value", "short_score", "lead", "score_mean", "komi")


def columns_of(rows: int, size: int) -> dict[str, Any]:
    rng = np.random.default_rng(size)
    area = size * size
    bits = rng.random((rows, 22, area)) < 0.3
    bits[:, 0] = True
    moves = rng.permuted(np.tile(np.arange(area + 1), (rows, 1)), axis=1)[:, :4]
    shares = rng.dirichlet(np.ones(4), rows)
    shares[-1] = 0.0  # a row without a policy
    value = rng.choice([-1.0, 0.0, 1.0], rows)
    value[-1] = np.nan
    lead = rng.integers(-area, area, rows) + 0.5
    owners = rng.choice([-127, 0, 127], (rows, area))
    owners[-1] = -128
    found = {
        "planes": np.packbits(bits.reshape(rows, -1), axis=1),
        "globals": rng.choice([0.0, 0.5, 1.0], (rows, 19)),
        "policy_moves": moves,
        "policy_weights": shares,
        "own_reply_moves": moves[:, ::-1],
        "own_reply_weights": shares[:, ::-1],
        "value": value,
        "search_value": rng.integers(-8, 9, rows) / 8.0,
        "short_value": rng.integers(-8, 9, rows) / 8.0,
        "short_score": lead - 1.0,
        "lead": lead,
        "score_mean": lead,
        "komi": np.full(rows, -7.5),
        "ownership": owners,
        "ply": np.arange(rows),
    }
    found["score_mean"] = np.where(np.isnan(value), np.nan, lead)
    for name in ("search_value", "short_value", "short_score"):
        found[name] = np.where(np.isnan(value), np.nan, found[name])
    return found


def make_set(folder: Path, sizes: tuple[int, ...] = (5, 9)) -> dict[int, dict[str, Any]]:
    begin_dataset(folder, Manifest("katago-v7"))
    for number, size in enumerate(sizes, 1):
        write_shard(folder, shard_name("train", size, number), "train", size, columns_of(6, size))
        write_shard(folder, shard_name("test", size, number), "test", size, columns_of(2, size))
    return {shard.size: shard.open() for shard in open_dataset(folder).shards if shard.split == "train"}


def dense(moves: Any, weights: Any, size: int) -> Any:
    found = np.zeros((len(moves), size * size + 1))
    np.add.at(found, (np.arange(len(moves))[:, None], moves.astype(int)), weights.astype(float))
    return found


@pytest.mark.parametrize("side", [9, 19])
def test_rows_come_back(side: int) -> None:
    size, columns = 9, {name: np.asarray(array) for name, array in columns_of(6, 9).items()}
    arrays = to_katago(columns, size, side)
    ((found_size, found),) = from_katago(arrays)
    assert found_size == size
    for name in EXACT:
        np.testing.assert_array_equal(found[name], columns[name], err_msg=name)
    np.testing.assert_array_equal(found["globals"], columns["globals"])
    np.testing.assert_array_equal(found["ownership"], columns["ownership"])
    for moves, weights in (("policy_moves", "policy_weights"), ("own_reply_moves", "own_reply_weights")):
        wanted = dense(columns[moves], columns[weights], size)
        np.testing.assert_allclose(dense(found[moves], found[weights], size), wanted, atol=2e-4, err_msg=moves)


def test_a_row_is_katagos() -> None:
    columns = columns_of(3, 5)
    columns["lead"] = columns["score_mean"] = np.array([2.0, -6.5, 30.0])
    arrays = to_katago({name: np.asarray(array) for name, array in columns.items()}, 5, 7)
    planes = np.unpackbits(arrays["binaryInputNCHWPacked"], axis=2)[:, :, :49].reshape(3, 22, 7, 7)
    bits = np.unpackbits(columns["planes"], axis=1)[:, : 22 * 25].reshape(3, 22, 5, 5)
    np.testing.assert_array_equal(planes[:, :, :5, :5], bits)
    assert planes[:, :, 5:].sum() == planes[:, :, :, 5:].sum() == 0
    targets, policy = arrays["globalTargetsNC"], arrays["policyTargetsNCMove"]
    assert {name: array.dtype.name for name, array in arrays.items()} == {
        "binaryInputNCHWPacked": "uint8",
        "globalInputNC": "float32",
        "policyTargetsNCMove": "int16",
        "globalTargetsNC": "float32",
        "scoreDistrN": "int8",
        "valueTargetsNCHW": "int8",
    }
    for row in range(2):
        best = int(columns["policy_weights"][row].argmax())
        move = int(columns["policy_moves"][row][best])
        place = 49 if move == 25 else move // 5 * 7 + move % 5
        assert policy[row, 0].argmax() == place
        assert abs(int(policy[row, 0].sum()) - 10_000) <= 4
        assert targets[row, 0] - targets[row, 1] == columns["value"][row]
        assert targets[row, 16] - targets[row, 17] == columns["search_value"][row]
        assert arrays["scoreDistrN"][row].sum() == 100
    np.testing.assert_array_equal(policy[2], 1)  # uniform without a target
    np.testing.assert_array_equal(targets[:, 26], [1, 1, 0])
    np.testing.assert_array_equal(targets[:, 35], [0, 0, 1])
    np.testing.assert_array_equal(targets[:, 27], [1, 1, 0])
    middle = 49 + 60
    scores = arrays["scoreDistrN"]
    assert (scores[0, middle + 1], scores[0, middle + 2]) == (50, 50)  # 2 is between 1.5 and 2.5
    assert scores[1, middle - 7] == 100  # -6.5


def test_horizons_are_those_of_the_game() -> None:
    """Values are followed ply by ply: each holds until the next search of the game, the result follows at the end."""
    columns, size = {name: np.asarray(array) for name, array in columns_of(8, 5).items()}, 5
    games, plies = np.array([4, 4, 9, 4, 4, 9, 4, 4]), np.array([7, 2, 0, 3, 7, 1, 9, 6])  # one row twice
    black = {4: {2: 0.25, 3: -0.5, 6: 0.5, 7: 0.125, 9: -0.75}, 9: {0: 0.0, 1: 0.5}}
    results, signs = {4: -1.0, 9: np.nan}, np.where(plies % 2, -1.0, 1.0)  # nobody knows the result of game 9
    searched = [black[game][ply] for game, ply in zip(games.tolist(), plies.tolist(), strict=True)]
    columns |= {"game": games, "ply": plies, "search_value": signs * searched}
    columns["value"] = signs * [results[game] for game in games.tolist()]
    targets = to_katago(columns, size, size)["globalTargetsNC"]
    for row, (game, ply, sign) in enumerate(zip(games.tolist(), plies.tolist(), signs, strict=True)):
        if game == 9:
            assert targets[row, 22] == 0.0
            continue
        values, last = [], black[game][ply]
        for later in range(ply, 10):
            last = black[game].get(later, last)
            values.append(last)
        values.append(results[game])
        for start, factor in ((4, 0.176), (8, 0.056), (12, 0.016)):
            now, left, wanted = 1.0 / (1.0 + factor * 25), 1.0, 0.0
            for value in values[:-1]:
                wanted += left * now * value
                left *= 1.0 - now
            wanted += left * values[-1]
            assert targets[row, start] - targets[row, start + 1] == pytest.approx(sign * wanted, abs=1e-5)
        changes = [(after - before) ** 2 for before, after in itertools.pairwise(values)]
        time = sum(turn * change for turn, change in enumerate(changes, 1)) / sum(changes)
        assert targets[row, 22] == pytest.approx(time, abs=1e-4)


def test_a_data_set_goes_out_and_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = make_set(tmp_path / "set")
    assert main(["dataset", "export", str(tmp_path / "set"), str(tmp_path / "out"), "--side", "9"]) == 0
    assert "12 positions written" in capsys.readouterr().out
    assert json.loads((tmp_path / "out/train.json").read_text()) == {"range": [0, 12]}
    assert json.loads((tmp_path / "out/train/00000.json").read_text()) == {"num_rows": 12}
    assert json.loads((tmp_path / "out/val/00000.json").read_text()) == {"num_rows": 4}
    assert main(["dataset", "import", str(tmp_path / "out/train"), "--out", str(tmp_path / "back")]) == 0
    shards = {shard.size: shard for shard in open_dataset(tmp_path / "back").shards}
    assert shards.keys() == before.keys()
    for size, shard in shards.items():
        check_shard(shard, FEATURES, size * size + 1)
        assert sorted(map(bytes, shard.open()["planes"])) == sorted(map(bytes, before[size]["planes"]))
    digests = {path: path.stat().st_mtime_ns for path in (tmp_path / "back").glob("*/*.npy")}
    assert main(["dataset", "import", str(tmp_path / "out/train"), "--out", str(tmp_path / "back")]) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "back").glob("*/*.npy")} == digests


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("globalInputNC", np.zeros((3, 7), np.float32), "globalInputNC of shape (3, 7) found, expected (3, 19)"),
        (
            "globalTargetsNC",
            np.zeros((3, 9), np.float32),
            "globalTargetsNC of shape (3, 9) found, expected 3 rows of 80",
        ),
        ("valueTargetsNCHW", None, "no array valueTargetsNCHW found, expected KataGo's training rows"),
    ],
)
def test_other_files_are_refused(
    name: str, array: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = to_katago({key: np.asarray(each) for key, each in columns_of(3, 5).items()}, 5, 5)
    arrays = {**{key: each for key, each in arrays.items() if key != name}, **({} if array is None else {name: array})}
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    (tmp_path / "rows.npz").write_bytes(stream.getvalue())
    assert main(["dataset", "import", str(tmp_path / "rows.npz"), "--out", str(tmp_path / "back")]) == 2
    assert message in capsys.readouterr().err


def test_boards_larger_than_the_side_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_set(tmp_path / "set", (9,))
    assert main(["dataset", "export", str(tmp_path / "set"), str(tmp_path / "out"), "--side", "7"]) == 2
    assert "--side 7 found, expected 9 to 19 for boards of 9×9" in capsys.readouterr().err
