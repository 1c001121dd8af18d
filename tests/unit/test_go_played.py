"""Data sets of games that a network plays with itself: what is stored is what the network saw and said."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.datasets.shards import ShardWork
from yomi.engine.evaluators.devices import CPU
from yomi.engine.go.datasets import played as go_played
from yomi.engine.go.datasets.played import PlayOptions, play_go_dataset, shard_names
from yomi.engine.go.datasets.teacher import NetworkTeacher
from yomi.engine.go.networks import raw_outputs
from yomi.nets.data.batches import BatchSource, unpack
from yomi.nets.data.shards import Dataset, check_shard
from yomi.nets.errors import NetworkError
from yomi.nets.katago.outputs import post_process
from yomi.nets.katago.write import write_network

OPTIONS = PlayOptions(size=5, positions=600, kept=0.05, shard_rows=300, seed=3, teacher="test")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nets") / "net.bin"
    path.write_bytes(write_network(RandomNetworks(8, seed=4).network(["ordinary", "gpool"])))
    return path


def play(folder: Path, network: Path, options: PlayOptions = OPTIONS) -> Dataset:
    teacher = NetworkTeacher(network, options.visits, CPU, "fp32", 1)
    try:
        return play_go_dataset(folder, options, teacher, lambda text: None, ShardWork("dataset play"))
    finally:
        teacher.close()


@pytest.fixture(scope="module")
def dataset(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return play(tmp_path_factory.mktemp("data") / "set", network)


def test_shards_are_whole_and_all_different(dataset: Dataset) -> None:
    assert [(shard.split, shard.rows) for shard in dataset.shards] == [("test", 300), ("train", 300)]
    boards = []
    for shard in dataset.shards:
        check_shard(shard, dataset.manifest.features, 26)
        boards.append(shard.open()["planes"].tobytes())
    assert boards[0] != boards[1]


def test_labels_are_what_the_network_says_of_the_stored_position(dataset: Dataset, network: Path) -> None:
    batch = next(BatchSource([dataset], "train", 300, 0).in_order())
    planes, extras = unpack(batch, dataset.manifest.features)
    evaluator = load_go(network, 5, "cpu")
    raw = raw_outputs(evaluator, planes, extras)
    columns = batch.columns
    legal = np.zeros((300, 26), np.bool_)
    rows, places = np.nonzero(columns["policy_weights"])
    legal[rows, columns["policy_moves"][rows, places]] = True
    # No stone stands where a move is, and the same moves are legal in the eyes of the network's input.
    occupied = planes[:, 1:3].any(1).reshape(300, 25)
    assert not (legal[:, :25] & occupied).any()
    for possible in (False, True):
        outputs = post_process(raw, legal, possible, evaluator.info)
        close = np.isclose(columns["value"].astype(np.float32), outputs.win - outputs.loss, atol=2e-3)
        # Territory scoring and the simple ko rule know games without a result; a seventh of these games has neither.
        assert close.mean() > 0.1
        known = np.abs(columns["ownership"] / 127.0 - outputs.ownership) < 6e-3
        assert known.all()
        shares = np.take_along_axis(outputs.policy, columns["policy_moves"].astype(np.int64), 1)
        weights = columns["policy_weights"].astype(np.float32)
        np.testing.assert_allclose(np.where(weights > 0, shares, 0.0), weights, atol=2e-3)
    evaluator.close()


def test_searches_label_the_board_as_it_stands(network: Path, tmp_path: Path) -> None:
    visits = 9
    options = dataclasses.replace(OPTIONS, positions=60, shard_rows=60, visits=visits)
    searched = play(tmp_path / "set", network, options)
    assert searched.manifest.options["visits"] == visits
    columns = searched.shards[0].open()
    planes, extras = unpack(next(BatchSource([searched], "train", 60, 0).in_order()), searched.manifest.features)
    # Each playout but the root's own went to one move: no stone stands there.
    playouts = columns["policy_weights"].astype(np.float64) * (visits - 1)
    tried = playouts > 0.0
    np.testing.assert_allclose(playouts, np.rint(playouts), atol=5e-3)
    np.testing.assert_allclose(playouts.sum(1), visits - 1, atol=1e-2)
    assert 1 < tried.sum(1).mean() < visits
    batch = next(BatchSource([searched], "train", 60, 0).in_order()).columns
    rows, places = np.nonzero(batch["policy_weights"])
    moves = batch["policy_moves"][rows, places]
    on_board = moves < 25
    occupied = planes[:, 1:3].any(1).reshape(60, 25)
    assert occupied.sum() > 200
    assert not occupied[rows[on_board], moves[on_board]].any()
    # The network alone judges otherwise than the search.
    evaluator = load_go(network, 5, "cpu")
    outputs = post_process(raw_outputs(evaluator, planes, extras), np.ones((60, 26), np.bool_), False, evaluator.info)
    evaluator.close()
    assert np.abs(batch["value"].astype(np.float32) - (outputs.win - outputs.loss)).mean() > 1e-3


def test_games_end_and_begin_again_with_other_rules_and_komi(dataset: Dataset) -> None:
    for shard in dataset.shards:
        columns = shard.open()
        assert len(np.unique(np.abs(columns["komi"].astype(np.float32)))) > 5
        scoring = columns["globals"][:, 9]
        assert 0.0 < scoring.mean() < 1.0
        stones = np.unpackbits(columns["planes"], axis=1, count=22 * 25).reshape(-1, 22, 25)[:, 1:3].sum((1, 2))
        assert stones.min() < 3
        assert stones.max() > 15


def test_a_run_that_was_stopped_goes_on(dataset: Dataset, network: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(dataset.folder, folder)
    lost = dataset.shards[1].path.name
    shutil.rmtree(folder / lost)
    again = play(folder, network)
    assert [shard.path.name for shard in again.shards] == [shard.path.name for shard in dataset.shards]
    for name, array in dataset.shards[1].open().items():
        np.testing.assert_array_equal(again.shards[1].open()[name], array)
    with pytest.raises(NetworkError, match=r"options\.kept 0\.05 found, expected 0\.5"):
        play(folder, network, dataclasses.replace(OPTIONS, kept=0.5))


def test_a_set_goes_on_only_with_labels_of_one_kind(network: Path, tmp_path: Path) -> None:
    begun = PlayOptions(size=5, positions=60, shard_rows=60, precision="fp32")
    folder = play(tmp_path / "set", network, begun).folder
    with pytest.raises(NetworkError, match="precision fp32 found, expected auto"):
        play(folder, network, dataclasses.replace(begun, precision="auto"))
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["options"]["labels_version"]  # as before there was one
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(NetworkError, match="labels_version None found, expected 1"):
        play(folder, network, begun)


def test_held_out_shards() -> None:
    splits = [split for split, _ in shard_names(dataclasses.replace(OPTIONS, positions=100 * 300))]
    assert splits == ["test"] * 3 + ["train"] * 97
    assert [split for split, _ in shard_names(dataclasses.replace(OPTIONS, positions=1))] == ["train"]
    none_held = dataclasses.replace(OPTIONS, positions=600, test_share=0.0)
    assert [split for split, _ in shard_names(none_held)] == ["train"] * 2


def test_a_network_is_shown_the_areas_that_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of suicide rules; what is stored is what all other networks see, those that learn from it included."""
    network = tmp_path / "net.bin"
    network.write_bytes(write_network(RandomNetworks(15, seed=4).network(["ordinary"])))
    teacher = NetworkTeacher(network, 1, CPU, "fp32", 1)
    evaluator = teacher.evaluator(5)
    assert evaluator.info.prefer_pass_alive_under_suicide_rules
    shown: dict[bytes, Any] = {}
    run = evaluator.run

    def noted(planes: Any, extras: Any) -> Any:
        shown.update(zip(map(but_for_areas, planes, extras), planes[:, 18:20].copy(), strict=True))
        return run(planes, extras)

    monkeypatch.setattr(evaluator, "run", noted)
    dataset = play_go_dataset(tmp_path / "set", OPTIONS, teacher, lambda text: None, ShardWork("dataset play"))
    teacher.close()
    others = 0
    for split in ("test", "train"):
        planes, extras = unpack(next(BatchSource([dataset], split, 300, 0).in_order()), dataset.manifest.features)
        for each, globals_ in zip(planes, extras, strict=True):
            others += (shown[but_for_areas(each, globals_)] != each[18:20]).any()
    assert others > 0


def but_for_areas(planes: Any, extras: Any) -> bytes:
    """Return what a network sees but for the areas of both sides."""
    return np.delete(planes, (18, 19), axis=0).tobytes() + extras.astype(np.float16).tobytes()


def test_boards_with_too_few_positions_are_refused(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(go_played, "BARREN_POSITIONS", 1000)
    options = dataclasses.replace(OPTIONS, size=2, kept=1.0)
    with pytest.raises(NetworkError, match=r"^\d\d+ different positions on 2x2 found, expected 300: shards of fewer"):
        play(tmp_path / "set", network, options)
