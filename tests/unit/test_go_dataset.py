"""Data sets of Go from records: what is chosen, what is written, and that a run that was stopped goes on."""

import functools
import gc
import gzip
import hashlib
import lzma
import shutil
import threading
import weakref
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go
from tests.looping import looped
from tests.naive.katago_networks import RandomNetworks
from yomi.engine.cli.main import main
from yomi.engine.datasets import making
from yomi.engine.datasets.making import GO_SUFFIXES, find_files, readable_files, sgf_texts
from yomi.engine.evaluators.devices import CPU, Device
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.datasets import games as go_games
from yomi.engine.go.datasets import teacher as go_teacher
from yomi.engine.go.datasets.dataset import GoDataOptions, choose_games, choose_positions, make_go_dataset
from yomi.engine.go.datasets.games import GameTable, Row, blank_columns, read_games
from yomi.engine.go.datasets.teacher import NetworkTeacher, seed_of
from yomi.engine.go.game import SCORINGS, GoGame
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.go.scoring import read_result
from yomi.engine.go.settings import LABELS_VERSION
from yomi.engine.go.sgf import to_sgf
from yomi.engine.play import RESIGNATION, SCORE, TIME
from yomi.engine.players import precision
from yomi.engine.records import LeftOut
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.native.datasets.go_games import GAME_DTYPE
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.spec import Inputs
from yomi.nets.data.batches import BatchSource, unpack
from yomi.nets.data.shards import check_shard, open_dataset
from yomi.nets.errors import NetworkError
from yomi.nets.katago.write import write_network
from yomi.nets.metadata import feature_set

CHINESE = PRESETS["chinese"]


def random_record(size: int, seed: int, plies: int, result: str, handicap: bool = False) -> str:
    game = GoGame(square(size), CHINESE)
    if handicap:
        game.place_handicap([2 * (size + 1) + 2, 3 * (size + 1) + 3])
    rng = np.random.default_rng(seed)
    for _ in range(plies):
        game.play(game.side_to_move, int(rng.choice(game.legal_moves()[:-1])))
    return to_sgf(game, result=result).replace("\n", "")


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "games.sgfs"
    results = ["B+R", "W+R", "W+2.5", "B+20.5", "W+T", "", "0"]
    lines = [random_record((7, 9)[seed % 2], seed, 30 + seed, results[seed % 7]) for seed in range(14)]
    lines += [lines[0], random_record(9, 99, 40, "B+R", handicap=True), "(;GM[1]SZ[9];B[aa];W[aa])", "no game"]
    path.write_text("\n".join(lines) + "\n")
    return path


def random_network(folder: Path) -> Path:
    path = folder / "net.bin"
    path.write_bytes(write_network(RandomNetworks(8, seed=4).network(["ordinary", "gpool"])))
    return path


def quiet(text: str) -> None:
    """Say nothing."""


def make(path: Path, folder: Path, labels: Any = None, **options: Any) -> Any:
    return make_go_dataset([path], folder, GoDataOptions(**options), labels, quiet)


def read_all(paths: list[Path], folder: Path, rules: Rules | None = CHINESE) -> tuple[GameTable, Counter[str]]:
    return read_games(paths, folder, rules, lambda read, bad: None, LeftOut(print))


@looped(
    ("text", "winner", "ending", "points"),
    [
        ("B+R", 1, RESIGNATION, None),
        ("W+Resign", 2, RESIGNATION, None),
        ("W+3.5", 2, SCORE, 3.5),
        ("Black+3.5", 1, SCORE, 3.5),
        ("Jigo", 0, SCORE, 0.0),
        ("0", 0, SCORE, 0.0),
        ("B+T", 1, TIME, None),
        ("Void", None, SCORE, None),
        ("黑中盘胜", 1, RESIGNATION, None),
        ("白胜3.5目", 2, SCORE, 3.5),
        ("흑 불계승", 1, RESIGNATION, None),
        ("White wins by time", 2, TIME, None),
        ("", None, SCORE, None),
    ],
)
def test_results(text: str, winner: int | None, ending: str, points: float | None) -> None:
    found = read_result(text)
    assert found[:2] == (winner, ending)
    assert found[2] == points if points is not None else np.isnan(found[2])


def test_games_are_read_once_and_chosen(collection: Path, tmp_path: Path) -> None:
    table, refused = read_all([collection], tmp_path)
    assert len(table.games) == 16
    assert refused.total() == 2
    again, refused_again = read_all([collection], tmp_path)
    for name in GAME_DTYPE.names or ():
        np.testing.assert_array_equal(again.games[name], table.games[name])
    assert refused_again == refused
    chosen, believed = choose_games(table, GoDataOptions())
    assert len(chosen.games) == 14  # neither the duplicate nor the handicap game
    assert believed.tolist() == [winner >= 0 for winner in chosen.games["winner"]]
    assert choose_games(table, GoDataOptions(trust="resigned"))[1].sum() == 4
    checked = choose_games(table, GoDataOptions(trust="rollouts", rollouts=50))[1]
    assert 6 <= checked.sum() < 12  # resignations and the clear count, and what rollouts of these random games confirm
    thin, _ = choose_games(table, GoDataOptions(black_wins=0.6))
    wins = [int((thin.games["winner"] == color).sum()) for color in (1, 2)]
    assert wins == [4, 3]
    with pytest.raises(NetworkError, match="0 of 16 games left"):
        choose_games(table, GoDataOptions(min_moves=500))


def test_rules_of_records_that_name_none(tmp_path: Path) -> None:
    path = tmp_path / "two.sgf"
    path.write_text(
        "(;GM[1]SZ[9]KM[6.5];B[cc];W[gg])\n(;GM[1]SZ[9]KM[7.5];B[dd])\n(;GM[1]SZ[9]KM[7.5]RU[Japanese];B[dd])\n"
    )
    scorings = {
        rules: read_all([path], tmp_path / "parts", rules)[0].games["scoring"].tolist() for rules in (None, CHINESE)
    }
    area, territory = SCORINGS["AREA"], SCORINGS["TERRITORY"]
    assert scorings == {None: [territory, area, territory], CHINESE: [area, area, territory]}


def test_one_bad_game_leaves_the_others_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "many.sgf"
    games = [f"(;GM[1]SZ[9];B[{letter}{letter}])" for letter in "abcdefgh"]
    games[2] = "(;GM[1]SZ[9];B[cc];W[dd];B[zz];W[ee])"  # ends before a move off the board
    games[3] = "(;GM[1]SZ[99];B[aa])"  # cannot be read
    games[5] = "(;GM[1]SZ[9];B[aa];W[aa])"  # nor played
    path.write_text("\n".join(games))
    table, refused = read_all([path], tmp_path / "parts")
    assert table.games["moves"].tolist() == [1, 1, 2, 1, 1, 1]
    assert refused == {
        "board size 99: expected 2 to 19": 1,
        "move 2 of the record: illegal move W A9: occupied": 1,
    }


def test_one_bad_file_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.sgf").write_text(random_record(7, 1, 30, "B+R"))
    (tmp_path / "b.sgf").write_text("no game")
    (tmp_path / "c.sgfs.xz").write_bytes(lzma.compress(random_record(7, 2, 30, "B+R").encode())[:-20])
    (tmp_path / "d.sgf.gz").write_bytes(b"not compressed")
    (tmp_path / "e.ngf").write_text("Rated\n9\nwhite\nblack\n\n0\n0\n6\n\n5\nWhite wins\n1\nPMABBDDDD\n")
    (tmp_path / "f.sgf").symlink_to(tmp_path / "gone")
    lines: list[str] = []
    left_out = LeftOut(lines.append)
    files, names = readable_files([tmp_path], GO_SUFFIXES, left_out)
    assert len(files) == len(names) == 5
    table, _ = read_games(files, tmp_path / "parts", CHINESE, lambda read, bad: None, left_out)
    assert table.games["size"].tolist() == [7, 9]
    assert [line.partition(": ")[0] for line in lines] == [
        str(tmp_path / name) for name in ("f.sgf", "b.sgf", "c.sgfs.xz", "d.sgf.gz")
    ]
    left_out.report(6)
    assert lines[-1] == "4 left out, of 6 files"
    with pytest.raises(NetworkError, match="a device, expected a file"):
        readable_files([Path("/dev/zero")], GO_SUFFIXES, LeftOut(lines.append))


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    records = [random_record(7, seed, 30, "B+R") for seed in range(3)]
    content = "\n".join(records).encode()
    (tmp_path / "A.SGFS").write_bytes(content)
    (tmp_path / "B.SGFS.GZ").write_bytes(gzip.compress(content))
    (tmp_path / "C.SGFS.XZ").write_bytes(lzma.compress(content))
    files = find_files([tmp_path], GO_SUFFIXES)
    assert [len(list(sgf_texts(path))) for path in files] == [3, 3, 3]
    assert [text.strip() for path in files for text in sgf_texts(path)] == [each.encode() for each in records] * 3


def test_records_with_more_handicap_than_a_row_holds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "games.sgfs"
    record = random_record(7, 1, 30, "B+R")
    path.write_text("\n".join([record, *(record.replace("SZ[7]", f"SZ[7]HA[{stones}]") for stones in (300, 255))]))
    table, refused = read_all([path], tmp_path / "parts")
    assert table.games["handicap"].tolist() == [0, 255]
    assert refused == {"a handicap of 300: expected at most 255 stones": 1}


@pytest.mark.parametrize("name", ["big.sgf.gz", "big.sgfs.gz", "big.sgfs"])
def test_texts_have_a_largest_size(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "MAX_RECORD_BYTES", 1000)
    path = tmp_path / name
    for size in (1000, 1001):
        text = b"(" + b" " * (size - 2) + b")"
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        if size == 1000:
            assert [*sgf_texts(path)] == [text]
        else:
            with pytest.raises(NetworkError, match="a text of more than 1000 bytes"):
                [*sgf_texts(path)]


def test_a_damaged_part_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "two.sgf"
    path.write_text("(;GM[1]SZ[9];B[cc];W[gg])\n(;GM[1]SZ[5];B[dd])\n")
    first, _ = read_all([path], tmp_path / "parts")
    [part] = (tmp_path / "parts").iterdir()
    whole = part.read_bytes()
    for damaged in (whole[:-30], b"", whole.replace(b"<u2", b"<u4")):
        part.write_bytes(damaged)
        again, _ = read_all([path], tmp_path / "parts")
        assert all((again.games[name] == first.games[name]).all() for name in ("start", "moves", "size"))
        assert "its games are read again" in caplog.text
        assert part.read_bytes()[-100:] == whole[-100:]
        caplog.clear()


def test_files_of_one_name_and_size_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / name / "0001.sgf" for name in ("a", "b")]
    for seed, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(random_record(7, seed, 30, "B+R"))
    assert paths[0].stat().st_size == paths[1].stat().st_size
    for _ in range(2):  # read, and as they were kept
        table, _ = read_all(paths, tmp_path / "parts")
        assert len(table.games) == 2
        assert table.moves(0).tolist() != table.moves(1).tolist()
    other = tmp_path / "c" / "0002.sgf"  # what is read was read before, under another name
    other.parent.mkdir()
    other.write_bytes(paths[0].read_bytes())
    again, _ = read_all([other], tmp_path / "parts")
    assert again.moves(0).tolist() == table.moves(0).tolist()
    assert len(list((tmp_path / "parts").iterdir())) == 2


@pytest.mark.slow
def test_games_are_read_by_several_processes(collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, refused = read_all([collection], tmp_path / "one")
    monkeypatch.setattr(go_games, "PIECE_GAMES", 5)
    several, refused_by_several = read_all([collection], tmp_path / "several")
    assert refused_by_several == refused
    np.testing.assert_array_equal(several.codes, table.codes)
    for name in GAME_DTYPE.names or ():
        np.testing.assert_array_equal(several.games[name], table.games[name])


def test_positions_are_spread_over_a_game(collection: Path, tmp_path: Path) -> None:
    table, _ = read_all([collection], tmp_path)
    table, _ = choose_games(table, GoDataOptions())
    plies = choose_positions(table, GoDataOptions(positions=16, unique="none"))
    assert len(plies) == 16 * 14
    for index, game in enumerate(table.games):
        own = np.sort(plies[plies["game"] == index], order="ply")
        edges = np.linspace(0, game["moves"], 17).astype(int)
        assert ((own["ply"] >= edges[:-1]) & (own["ply"] < edges[1:])).all()
        assert (own["symmetry"][:8] == own["symmetry"][8:]).all()
        assert sorted(own["symmetry"][:8]) == list(range(8))
    everything = choose_positions(table, GoDataOptions())
    by_position = choose_positions(table, GoDataOptions(unique="position"))
    assert len(by_position) < len(everything) < table.games["moves"].sum()
    assert not (np.diff(everything["game"]) == 0).all()


def test_rows_are_the_positions_and_moves_of_the_games(collection: Path, tmp_path: Path) -> None:
    dataset = make(collection, tmp_path, sizes=(9,), shard_rows=64, test_share=0.2)
    for shard in dataset.shards:
        check_shard(shard, dataset.manifest.features, 82)
    assert dataset.rows("test") > 0
    rows = {}
    for split in ("train", "test"):
        for batch in BatchSource([dataset], split, 64, 0).in_order():
            planes, extras = unpack(batch, dataset.manifest.features)
            for index in range(batch.rows):
                key = planes[index].tobytes(), int(batch.columns["policy_moves"][index, 0])
                numbers = (float(batch.columns[name][index]) for name in ("value", "komi", "progress"))
                rows[key] = extras[index], *numbers
    scratch = np.zeros(1, SCRATCH_DTYPE)[0]
    found = 0
    for seed in (1, 3):  # W+R, B+20.5
        game = GoGame(square(9), CHINESE)
        rng = np.random.default_rng(seed)
        for ply in range(30 + seed):
            move = int(rng.choice(game.legal_moves()[:-1]))
            spatial, globals_ = np.zeros((22, 9, 9), np.float32), np.zeros(19, np.float32)
            write_planes(game.position, game.history, 0, scratch, spatial, globals_)
            key = spatial.tobytes(), int(policy_index(9, 9, move, 0))
            if key in rows:
                extras, value, komi, progress = rows[key]
                assert progress == pytest.approx(ply / (30 + seed), abs=1e-3)
                np.testing.assert_allclose(extras, globals_, atol=1e-3)
                won = (seed == 3) == (game.side_to_move == 1)
                assert value == (1.0 if won else -1.0)
                assert komi == (-7.5 if game.side_to_move == 1 else 7.5)
                found += 1
            game.play(game.side_to_move, move)
    assert found > 60


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*.npy") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_run_that_was_stopped_goes_on(collection: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    make(collection, whole, shard_rows=100, features="aya-50")
    stopped = tmp_path / "stopped"
    shutil.copytree(whole, stopped)
    lost = sorted(stopped.glob("train-*"))[1::2]
    for shard in lost:
        shutil.rmtree(shard)
    kept = sorted(stopped.glob("train-*"))[0]
    stamp = (kept / "planes.npy").stat().st_mtime_ns
    make(collection, stopped, shard_rows=100, features="aya-50")
    assert lost
    assert (kept / "planes.npy").stat().st_mtime_ns == stamp
    assert contents(stopped) == contents(whole)


def test_a_set_goes_on_only_with_the_same_records(tmp_path: Path) -> None:
    path = tmp_path / "games.sgfs"
    lines = [random_record(7, seed, 40, "B+R") for seed in range(6)]
    path.write_text("\n".join(lines) + "\n")
    dataset = make(path, tmp_path / "set", test_share=0.4)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert dataset.manifest.sources == (f"games.sgfs {digest}",)
    before = contents(tmp_path / "set")
    path.write_text("\n".join(lines[1:]) + "\n")
    with pytest.raises(NetworkError, match=rf"sources.0 games.sgfs {digest} found, expected games.sgfs "):
        make(path, tmp_path / "set", test_share=0.4)
    assert contents(tmp_path / "set") == before


@pytest.mark.parametrize("visits", [1, 8])
def test_a_teacher_labels(visits: int, collection: Path, tmp_path: Path) -> None:
    network = random_network(tmp_path)
    teacher = NetworkTeacher(network, visits, CPU, "fp32", 1)
    dataset = make(collection, tmp_path / "set", teacher, sizes=(7,), limit=40, teacher="net", visits=visits)
    teacher.close()
    columns = dataset.shards[0].open()
    check_shard(dataset.shards[0], dataset.manifest.features, 50)
    weights = columns["policy_weights"].astype(np.float32)
    np.testing.assert_allclose(weights.sum(1), 1.0, atol=0.01)
    assert (np.diff(weights, axis=1) <= 0.0).all()
    for name in ("value", "lead", "score_mean", "score_stdev"):
        assert np.isfinite(columns[name]).all()
    assert (columns["ownership"] != -128).all()
    if visits > 1:
        assert ((weights > 0.0).sum(1) < visits).all()


def test_a_set_goes_on_only_with_labels_of_one_kind(collection: Path, tmp_path: Path) -> None:
    network = random_network(tmp_path)
    words = ["dataset", "make", str(collection), "--size", "7", "--limit", "20", "--precision"]
    labelled = ["--teacher", str(network), "--out", str(tmp_path / "labelled")]
    assert main([*words, "fp32", *labelled]) == 0
    assert main([*words, "fp32", *labelled]) == 0
    assert main([*words, "auto", *labelled]) == 2
    options = open_dataset(tmp_path / "labelled").manifest.options
    assert (options["precision"], options["labels_version"]) == ("fp32", LABELS_VERSION)
    results = ["--out", str(tmp_path / "results")]
    assert main([*words, "fp32", *results]) == 0
    assert main([*words, "auto", *results]) == 0  # no network labels


@pytest.mark.parametrize("visits", [1, 4])
def test_a_device_is_used_by_one_thread(
    visits: int, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = random_network(tmp_path)
    users: set[str] = set()

    class Watched:
        """An evaluator that notes who calls it, as one on a GPU minds."""

        def __init__(self, inner: Any) -> None:
            users.add(threading.current_thread().name)
            self.inner = inner
            self.info, self.batch_size, self.spec = inner.info, inner.batch_size, inner.spec
            self.precision, self.fallback_reason = inner.precision, inner.fallback_reason
            self.format = inner.format
            self.inputs = Inputs.NUMBERS

        def run(self, planes: Any, extras: Any) -> Any:
            users.add(threading.current_thread().name)
            return self.inner.run(planes, extras)

        def evaluate(self, batch: Any, rows: int) -> None:
            users.add(threading.current_thread().name)
            self.inner.evaluate(batch, rows)

        def close(self) -> None:
            users.add(threading.current_thread().name)

    def open_watched(formats: Any, path: Path, size: int) -> Any:
        return SimpleNamespace(load=lambda device, **options: Watched(make_katago(path, size)))

    monkeypatch.setattr(go_teacher, "open_network", open_watched)
    teacher = NetworkTeacher(network, visits, Device("cuda"), "fp32", 1)
    make(collection, tmp_path / "set", teacher, sizes=(7,), limit=150, teacher="net", visits=visits)
    teacher.close()
    assert users == {"teacher_0"}


def make_katago(path: Path, size: int) -> Any:
    return load_go(path, size, "cpu")


def test_wrong_sources(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="no such file"):
        make(tmp_path / "nowhere", tmp_path / "a")
    empty = tmp_path / "empty.sgf"
    empty.write_text("")
    with pytest.raises(NetworkError, match="0 usable games found"):
        make(empty, tmp_path / "b")
    with pytest.raises(NetworkError, match="feature set dlshogi-62-57 of shogi found"):
        make(empty, tmp_path / "c", features="dlshogi-62-57")


@pytest.mark.parametrize("visits", [1, 8])
def test_a_teacher_knows_the_rules_of_every_position(visits: int, tmp_path: Path) -> None:
    """Under the simple ko rule a game may end without a result, under positional superko it may not."""
    network = random_network(tmp_path)
    teacher = NetworkTeacher(network, visits, CPU, "fp32", 1)
    games = [GoGame(square(7), PRESETS[name], 7.0) for name in ("chinese", "tromp-taylor", "chinese", "japanese")]
    rows = [Row(game.position, game.history, None, 0) for game in games]
    together, apart = (blank_columns(feature_set("katago-v7"), 7, 4, 32, judged=True) for _ in range(2))
    teacher.label(rows, together, 0)
    for index, row in enumerate(rows):
        teacher.label([row], apart, index)
    teacher.close()
    for name in ("value", "lead", "policy_moves", "ownership"):
        np.testing.assert_allclose(together[name].astype(np.float32), apart[name].astype(np.float32), atol=2e-3)
    assert together["value"][0] == together["value"][2] != together["value"][1]


def test_searches_know_which_games_have_a_result(tmp_path: Path) -> None:
    network = tmp_path / "net.bin"
    made = RandomNetworks(8, seed=4).network(["ordinary", "gpool"])
    made.value_head.v3_bias.bias[2] = 2.0
    network.write_bytes(write_network(made))
    teacher = NetworkTeacher(network, 8, CPU, "fp32", 1)
    columns = blank_columns(feature_set("katago-v7"), 7, 1, 32, judged=True)
    evaluator = make_katago(network, 7)
    for name, expected in (("chinese", True), ("tromp-taylor", False), ("japanese", True)):
        game = GoGame(square(7), PRESETS[name], 7.0)
        teacher.search(game.position, game.history, columns, 0)
        values = {}
        for possible in (False, True):
            evaluator.format.may_have_no_result = possible
            settings = SearchSettings(memory=2**22, cache_size=0, seed=seed_of(game.position, 1))
            search = Search(evaluator.spec, InlineQueue(evaluator), settings)
            search.set_position(game)
            values[possible] = 2.0 * search.run(Limits(visits=8)).winrate - 1.0
        assert columns["value"][0] == np.float16(values[expected]) != np.float16(values[not expected])
    evaluator.close()
    teacher.close()


def test_searches_leave_the_mean_of_the_score(collection: Path, tmp_path: Path) -> None:
    network = random_network(tmp_path)
    labels = []
    for visits in (1, 8):
        teacher = NetworkTeacher(network, visits, CPU, "fp32", 1)
        folder = tmp_path / f"set{visits}"
        dataset = make(collection, folder, teacher, sizes=(7,), limit=40, teacher="net", visits=visits)
        teacher.close()
        labels.append(dataset.shards[0].open())
    np.testing.assert_array_equal(labels[0]["score_mean"], labels[1]["score_mean"])
    assert (labels[0]["lead"] != labels[1]["lead"]).any()
    assert (labels[1]["score_mean"] != labels[1]["lead"]).any()


def test_searches_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does their memory wait for the garbage collector."""
    network = random_network(tmp_path)
    teacher = NetworkTeacher(network, 8, CPU, "fp32", 1)
    made: list[weakref.ref[Search]] = []
    new_search = teacher.new_search

    def noted(position: Any, settings: SearchSettings) -> Search:
        search = new_search(position, settings)
        made.append(weakref.ref(search))
        return search

    monkeypatch.setattr(teacher, "new_search", noted)
    columns = blank_columns(feature_set("katago-v7"), 7, 1, 32, judged=True)
    game = GoGame(square(7), CHINESE)
    gc.disable()
    try:
        for _ in range(3):
            teacher.search(game.position, game.history, columns, 0)
    finally:
        gc.enable()
    teacher.close()
    assert [search() for search in made] == [None, None, None]


def test_fewer_bits_label_only_where_they_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precision, "record", functools.partial(precision.record, positions=precision.MIN_POSITIONS))
    network = random_network(tmp_path)

    def make_either(formats: Any, path: Path, size: int, device: Any, *, precision: str) -> Any:
        """Return an evaluator whose fewer bits are as good on 5×5 alone."""
        evaluator: Any = load_go(path, size, str(device))
        if precision != "fp32":
            evaluator.precision, run = "int16", evaluator._backend.run
            error = np.float32([0.0 if size == 5 else 0.5, 0.0, 0.0])

            def run_worse(inputs: Any) -> Any:
                for part, outputs in run(inputs):
                    yield part, [outputs[0], outputs[1] + error, *outputs[2:]]

            evaluator._backend.run = run_worse
        return evaluator

    monkeypatch.setattr(
        go_teacher, "open_network", lambda *given: SimpleNamespace(load=functools.partial(make_either, *given))
    )
    teacher = NetworkTeacher(network, 1, CPU, "auto", 1)
    assert [teacher.evaluator(size).precision for size in (5, 6)] == ["int16", "fp32"]
    teacher.close()
