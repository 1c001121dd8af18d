"""Every reader of files in the project: good files, how they are read, and the errors that it documents."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx

from tests.fakes.books import write_apery, write_yaneuraou, write_ybb
from tests.fuzz.harness import Files, Reader
from tests.naive import nnue
from tests.naive.katago_networks import RandomNetworks, write_text
from tests.naive.shogi_networks import NetworkShape
from tests.naive.shogi_networks import write_network as write_shogi
from tests.unit.shogi_records import BOD, JKF, KI2_TEXT, KIF_TEXT
from tests.unit.test_go_gib_ngf import GIB, NGF, UGF
from yomi.bench.beside_cshogi import ProblemError, read_problems
from yomi.bench.choices import ChoicesError, Sayings
from yomi.bench.levels import LevelsError, read_pairings
from yomi.engine.cli import match, net
from yomi.engine.cli.parser import CliError
from yomi.engine.clients.spec import SpecError, parse_spec_table
from yomi.engine.clusters.jobs import JobError, Part, Run, Task, begin_run, read_run
from yomi.engine.color import BLACK, WHITE
from yomi.engine.datasets.making import sgf_texts
from yomi.engine.evaluators import program_cache
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.network import open_network
from yomi.engine.go.datasets import games as go_games
from yomi.engine.go.networks import FORMATS as GO_FORMATS
from yomi.engine.go.networks import make_program
from yomi.engine.go.sgf import SgfError
from yomi.engine.learning import run, store
from yomi.engine.learning.journal import Journal as LearningJournal
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.spool import SelfPlayGame, Spool
from yomi.engine.matches.report import report, to_text
from yomi.engine.matches.results import GameResult, MatchError, MatchJournal, points_of, read_journal, read_results
from yomi.engine.matches.schedule import load_openings
from yomi.engine.options import OptionError, Options, read_config
from yomi.engine.players import precision, setup
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES
from yomi.engine.reviews.shares import done, merge, results
from yomi.engine.servers.settings import PasswordError, SettingsError, from_file, read_settings
from yomi.engine.shogi.book import BookError, BookMove, choose, open_book
from yomi.engine.shogi.datasets import played
from yomi.engine.shogi.datasets.openings import BalanceLimits, balanced_openings
from yomi.engine.shogi.datasets.rows import merged, move_fault, read_rows, to_hcpe, to_psv
from yomi.engine.shogi.networks import FORMATS as SHOGI_FORMATS
from yomi.engine.shogi.players.setup import network_defaults
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.record import GameRecord, RecordError, parse_usi_line
from yomi.engine.shogi.settings import ShogiDataOptions
from yomi.nets.arrays import read_npz
from yomi.nets.data.katago_rows import from_katago, to_katago
from yomi.nets.data.shards import Manifest, begin_dataset, check_shard, open_dataset, shard_name, widths, write_shard
from yomi.nets.dlshogi import random_network
from yomi.nets.errors import NetworkError
from yomi.nets.files import source_digest
from yomi.nets.gpu_variants import Variant, make_variant
from yomi.nets.katago.outputs import describe
from yomi.nets.katago.write import write_network
from yomi.nets.load import NetworkInfo, open_file, prepare
from yomi.nets.metadata import feature_set
from yomi.nets.nnue import FEATURES, WIDTH_STEP, Architecture, read_nnue
from yomi.nets.sparse import HIDDEN, LAST, read_info, read_sparse, write_sparse
from yomi.nets.training.config import read_config as read_training_config
from yomi.nets.training.progress import CsvLog

SIZE = 7
LINE = "startpos moves 7g7f 3c3d 2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d P*2c 2d2f 8e8f 8g8f 8b8f P*8g 8f8b"


@contextlib.contextmanager
def isolated(cache: Path) -> Iterator[None]:
    """Use a cache folder of its own."""
    with mock.patch.dict(os.environ, {"YOMI_CACHE_DIR": str(cache)}):
        yield


def _written(write: Callable[[Path], object]) -> Callable[[], Files]:
    """Return a function that returns the files which `write` writes into a folder."""

    def files() -> Files:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder)
            return {
                str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
            }

    return files


# -- networks ------------------------------------------------------------------------------------------------------


def _katago_files() -> Files:
    small = write_network(RandomNetworks(11).network(["ordinary", "gpool"], channels=4))
    late = write_network(RandomNetworks(15).network(["attention", "ffn-gated"], channels=4, meta=True))
    text = write_text(RandomNetworks(8).network(["ordinary"], channels=2))
    return {
        "old.bin": small,
        "new.bin": late,
        "net.txt": text,
        "net.bin.gz": gzip.compress(small, 1),
        "net.bin.xz": lzma.compress(late, preset=0),
    }


def _read_katago(path: Path) -> None:
    net.facts(path)
    form = open_network(GO_FORMATS, path, SIZE)
    form.program("fp32", keep=False)


@_written
def _onnx_files(folder: Path) -> None:
    with mock.patch.object(random_network, "HIDDEN", 1):
        write_shogi(folder / "net.onnx", NetworkShape(1, 4))
        swish = NetworkShape(1, 4, activation="swish", half=True, squeeze=2, folded=False)
        write_shogi(folder / "half.onnx", swish)
        write_shogi(folder / "integers.onnx", NetworkShape(0, 1))
        model = onnx.load(folder / "integers.onnx")
        for name, data in (("int32", "int32_data"), ("int64", "int64_data"), ("int8", "int32_data")):
            tensor = onnx.TensorProto(name=name, dims=[3], data_type=onnx.TensorProto.DataType.Value(name.upper()))
            getattr(tensor, data).extend((1, 2, 3))
            model.graph.initializer.append(tensor)
        onnx.save(model, folder / "integers.onnx")


def _read_shogi_onnx(path: Path) -> None:
    net.facts(path)
    open_network(SHOGI_FORMATS, path, 9).load(backend="native").close()


@_written
def _go_onnx_files(folder: Path) -> None:
    (folder / "net.bin").write_bytes(write_network(RandomNetworks(11).network(["ordinary"], channels=2)))
    target, _ = prepare(open_file(folder / "net.bin"), SIZE, folder / "cache")
    shutil.copy(target, folder / "net.onnx")
    shutil.rmtree(folder / "cache")
    (folder / "net.bin").unlink()


def _read_go_onnx(path: Path) -> None:
    net.facts(path)
    source_digest(path)
    open_network(GO_FORMATS, path, SIZE).onnx_file()


@_written
def _converted_files(folder: Path) -> None:
    (folder / "net.bin").write_bytes(write_network(RandomNetworks(11).network(["ordinary"], channels=2)))
    prepare(open_file(folder / "net.bin"), SIZE, folder / "cache")


def _read_converted(path: Path) -> None:
    folder = path.parent if path.name == "net.bin" else path.parents[2]
    prepare(open_file(folder / "net.bin"), SIZE, folder / "cache")


def _sparse_files() -> Files:
    rng = np.random.default_rng(1)

    def floats(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    tensors = {
        "rows": rng.integers(-9, 9, (3, 256)).astype(np.int8),
        "bias": rng.integers(-9, 9, 256).astype(np.int16),
        "direct": floats(3),
        "hidden": rng.integers(-9, 9, (HIDDEN, 128)).astype(np.int16),
        "hidden_bias": floats(HIDDEN),
        "last": floats(HIDDEN, LAST),
        "last_bias": floats(LAST),
        "out": floats(LAST + 1),
        "moves": rng.integers(-9, 9, (4, 128)).astype(np.int8),
        "move_bias": floats(4),
        "scales": np.array([0.001, 0.001], np.float32),
    }
    info = NetworkInfo("shogi", 9, "shogi-board", "tiny", "", "", 0, 1, 0)
    return {"net.safetensors": write_sparse(tensors, info)}


def _read_sparse_network(path: Path) -> None:
    read_sparse(path)
    read_info(path)
    net.facts(path)
    with contextlib.suppress(NetworkError):  # a tiny network has not the rows that shogi has
        open_network(SHOGI_FORMATS, path, 9)


def _nnue_files() -> Files:
    features = next(row for row in FEATURES if row.name == "K-P")
    architecture = Architecture(features, WIDTH_STEP, (8, 32))
    return {"nn.bin": nnue.file_of(architecture, nnue.random_tensors(architecture, 1))}


def _sfnn_files() -> Files:
    features = next(row for row in FEATURES if row.name == "K-P")
    architecture = Architecture(features, WIDTH_STEP, (7, 32), 9)
    return {"nn.bin": nnue.file_of(architecture, nnue.random_tensors(architecture, 1))}


def _read_nnue_file(path: Path) -> None:
    read_nnue(path)
    net.facts(path)
    open_network(SHOGI_FORMATS, path, 9)


def _read_variant(path: Path) -> None:
    make_variant(path, Variant(packed=("input1", "input2"), constant=("input2",), side=9))


def _program_files() -> Files:
    network = RandomNetworks(11).network(["ordinary"], channels=2)
    program, info = make_program(network, SIZE, "fp32"), describe(network, SIZE, "net.bin", "0" * 64)

    def write(folder: Path) -> None:
        with isolated(folder), mock.patch.object(program_cache, "WORTH", 1):
            program_cache.keep_program(program, info, "fp32")

    [content] = _written(write)().values()
    return {"program.bin": content}


def _read_program(path: Path) -> None:
    with mock.patch.object(program_cache, "_path", return_value=path):
        program_cache.load_program("0" * 64, SIZE, "fp32")


INI = b"""\xef\xbb\xbf# dlshogi's settings
[engine]
C_init=144
C_base=28288
; comment
Softmax_Temperature = 174
DfPn_Min_Search_Millisecs=300
"""


def _read_ini(path: Path) -> None:
    options = Options.for_game("shogi")
    options.net = str(path).removesuffix(".ini")
    network_defaults(options)


# -- data sets -----------------------------------------------------------------------------------------------------


@_written
def _dataset_files(folder: Path) -> None:
    features = feature_set("katago-v7")
    width = widths(features, 3)
    rng = np.random.default_rng(1)
    columns = {
        "planes": rng.integers(0, 256, (4, width["planes"])),
        "globals": rng.normal(size=(4, width["globals"])),
        "policy_moves": rng.integers(0, 10, (4, 1)),
        "policy_weights": np.ones((4, 1)),
        "value": rng.uniform(-1, 1, 4),
        "ownership": rng.integers(-127, 127, (4, 9)),
    }
    begin_dataset(folder, Manifest("katago-v7", {"seed": 1}, ("a.sgf 12",)))
    write_shard(folder, shard_name("train", 3, 0), "train", 3, columns)


def _read_dataset(path: Path) -> None:
    folder = path.parent if path.name == "manifest.json" else path.parents[1]
    dataset = open_dataset(folder)
    for shard in dataset.shards:
        check_shard(shard, dataset.manifest.features, dataset.manifest.features.policy_size(shard.size))
        for column in shard.places(shard.open()).values():
            np.asarray(column.map()).tobytes()  # reads all of it


@_written
def _go_part_files(folder: Path) -> None:
    table, refused = go_games._read_piece([SGF], go_games.Rules.parse("chinese"))
    go_games._save_part(folder / "part.npz", table, refused, 1)


def _katago_rows_files() -> Files:
    rows = {
        "planes": np.full((2, (22 * 9 + 7) // 8), 255, np.uint8),
        "globals": np.zeros((2, 19), np.float16),
        "policy_moves": np.zeros((2, 4), np.uint16),
        "policy_weights": np.ones((2, 4), np.float16) / 4,
        "value": np.ones(2, np.float16),
    }
    content = io.BytesIO()
    arrays: dict[str, Any] = to_katago(rows, 3, 3)
    np.savez_compressed(content, **arrays)
    return {"rows.npz": content.getvalue()}


def _read_katago_rows(path: Path) -> None:
    with path.open("rb") as stream:
        for size, columns in from_katago(read_npz(stream, 1 << 24)):
            assert len(columns["planes"][0]) == (22 * size * size + 7) // 8


def _collection_files() -> Files:
    line = SGF.replace(b"\n", b" ")
    return {
        "games.sgfs": line + b"\n" + line + b"\n",
        "games.sgfs.gz": gzip.compress(line),
        "games.sgfs.xz": lzma.compress(line),
        "game.sgf.gz": gzip.compress(SGF),
    }


def _read_collection(path: Path) -> None:
    go_games._read_piece([*sgf_texts(path)], go_games.Rules.parse("chinese"))


def _record() -> GameRecord:
    record = parse_usi_line(LINE)
    record.black, record.white, record.ending = "sente", "gote", "TORYO"
    for number, recorded in enumerate(record.moves):
        recorded.score, recorded.seconds = 10 * number, 2.0
        recorded.counts = ((recorded.move, 3),)
    return record


@_written
def _packed_files(folder: Path) -> None:
    hcpe = to_bytes([_record()], ".hcpe")
    (folder / "games.hcpe").write_bytes(hcpe)
    rows = read_rows(folder / "games.hcpe", ShogiDataOptions(min_moves=0), 0)
    (folder / "games.psv").write_bytes(to_psv(rows))
    (folder / "games.hcpe3").write_bytes(to_bytes([_record()], ".hcpe3"))


def _read_packed(path: Path) -> None:
    rows = read_rows(path, ShogiDataOptions(min_moves=1), 0)
    move_fault(rows[0]) if len(rows) else None
    merged(rows)
    to_hcpe(rows)
    to_psv(rows)


def _opening_files() -> Files:
    files = {f"games{suffix}": to_bytes([_record()], suffix) for suffix in (".hcpe", ".csa", ".kifu")}
    return {**files, "games.sfen": f"{LINE}\n".encode()}


def _read_balanced(path: Path) -> None:
    left_out = LeftOut(lambda line: None)
    balanced_openings([path], BalanceLimits(plies=(2, 5), min_moves=5), left_out)
    if left_out.faults:
        raise NetworkError(left_out.faults[0])


PLAY_OPTIONS = played.ShogiPlayOptions("engine", 100)


@_written
def _played_files(folder: Path) -> None:
    played._Files(folder, PLAY_OPTIONS)
    (folder / "games-000000-000003.hcpe").write_bytes(to_bytes([_record()], ".hcpe"))


# -- records -------------------------------------------------------------------------------------------------------

SGF = """(;GM[1]FF[4]CA[UTF-8]AP[test:1]SZ[9]KM[6.5]RU[Chinese]HA[2]AB[gc][cg]PB[黒]PW[白]RE[B+12.5]
DT[2024-01-01]TM[600]OT[3x30 byo-yomi]C[first \\] comment];W[ee]BL[1.5]C[50%];B[cc]MN[7](;W[gg]LB[aa:1]TR[bb];B[tt])
(;W[fc]AE[cc]PL[B];B[]))
""".encode()
PLAIN_SGF = b"(;GM[1]SZ[9]KM[7]RU[tromp-taylor]RE[W+R];B[ee];W[ec];B[cd]C[a\\]b];W[])"


def _go_files() -> Files:
    return {
        "game.sgf": SGF,
        "plain.sgf": PLAIN_SGF,
        "two.sgf": SGF + SGF,
        "game.gib": GIB.encode(),
        "game.ngf": NGF.encode(),
        "game.ugf": UGF.encode(),
    }


def _read_go(path: Path) -> None:
    kind = GAMES["go"].matches()
    records = kind.load_records(path)
    for record in records:
        kind.result_of(record)
        record.to_sgf()
        with contextlib.suppress(SgfError):
            record.game()
    with contextlib.suppress(MatchError):
        load_openings(path, None, kind, {"size": 9}, LeftOut(lambda line: None))


def _shogi_files() -> Files:
    return {
        "game.csa": to_bytes([_record(), _record()], ".csa"),
        "game.kif": to_bytes([_record()], ".kif"),
        "notes.kifu": KIF_TEXT.encode(),
        "game.ki2": KI2_TEXT.encode(),
        "board.kifu": BOD.encode(),
        "game.usi": f"# comment\n{LINE}\nsfen 4k4/9/9/9/9/9/9/9/4K4 b G2r2b3g4s4n4l18p 1 moves G*5b\n".encode(),
        "game.jkf": json.dumps(JKF).encode(),
    }


def _read_shogi(path: Path) -> None:
    kind = GAMES["shogi"].matches()
    try:
        records = load_records(path)
    except RecordError:
        records = load_records(path, cut=True)
    for record in records:
        kind.result_of(record)
        with contextlib.suppress(RecordError):
            record.game()
        for suffix in (".csa", ".kifu", ".usi"):
            to_bytes([record], suffix)


@_written
def _book_files(folder: Path) -> None:
    game = parse_usi_line(LINE)
    positions = [
        (placement, [BookMove(recorded.move, 5, 30, 10, None), BookMove(recorded.move, 1, -30, 3, recorded.move)])
        for placement, recorded in zip(game.placements(), game.moves, strict=False)
    ]
    write_apery(folder / "book.bin", positions)
    write_yaneuraou(folder / "book.db", positions)
    write_ybb(folder / "book.ybb", positions)


def _read_book(path: Path) -> None:
    with contextlib.closing(open_book(path)) as book:
        for placement in parse_usi_line(LINE).placements()[:4]:
            book.moves(placement)
            choose(book, placement, random.Random(1), lambda move: True, Options.for_game("shogi"))


# -- settings ------------------------------------------------------------------------------------------------------

OPTIONS = b"""visits = 400
komi = 6.5
seconds = 1.5
ponder = true
net = "none"
rules = "chinese"
memory = "64M"
gpus = "none"
"""
MATCH = b"""games = 4
size = 9
komi = 7
cpus = [0, 1]
sprt = "0,10"
resign_below = 0.05
visits = 100
[[players]]
engine = "yomi:visits=10,root-noise=0.1"
options = {a = 1, b = "x"}
env = {A = "1"}
init = ["komi 7"]
[[players]]
engine = ["gnugo", "--mode", "gtp"]
name = "gnu"
seconds = 1.5
"""
SERVERS = b"""records = "games"
events = "events.jsonl"
in_turn = false
[servers.home]
protocol = "cgos"
host = "127.0.0.1"
port = 6809
size = 9
[servers.wars]
protocol = "csa"
host = "localhost"
port = 4081
game_name = "floodgate-300-10F"
keepalive = 60
[accounts.a]
server = "home"
user = "a"
password_file = "~/.a"
games = 3
engine.visits = 400
engine.c_puct = 1.5
[accounts.b]
server = "wars"
user = "b"
password_env = "B"
command = "./engine 'x y'"
usi_options = {USI_Hash = 64}
go = "byoyomi 1000"
"""
TRAINING = b"""[network]
kind = "go"
name = "small"
blocks = 4
[data]
folders = ["data/9"]
search_value = 0.5
[training]
steps = 20000
milestones = [1, 2]
learning_rate = 1e-3
optimizer = "adamw"
[loss]
ownership = 0.5
[teacher]
network = "b6c96.bin.gz"
"""
LEARNING = b"""[network]
kind = "go"
name = "small"
start = "x.bin.gz"
[training]
batch = 64
[loss]
ownership = 0.5
"""


def _read_match(path: Path) -> None:
    values, players = match.read_file(path)
    for player in players:
        parse_spec_table(player, "go", "gtp")
    repr(values)


def _read_servers(path: Path) -> None:
    for protocol in ("cgos", "csa"):
        read_settings(path, protocol)


def _read_password(path: Path) -> None:
    path.chmod(0o600)
    from_file(path)


# -- what yomi keeps for itself ------------------------------------------------------------------------------------


@_written
def _tuning_files(folder: Path) -> None:
    choice = {name: setup.TABLE[name].default for name in setup.TUNED}
    with mock.patch.object(setup, "_tuning_file", return_value=folder / "tuned.json"):
        setup.save_tuning(Path("net.bin"), SIZE, setup.Tuning(choice, 1000.0))


def _read_tuning(path: Path) -> None:
    with mock.patch.object(setup, "_tuning_file", return_value=path):
        found = setup.load_tuning(Path("net.bin"), SIZE)
        str(found)


def _read_verdict(path: Path) -> None:
    with mock.patch.object(precision, "PRECISION_DIR", path.parent):
        found = precision._known(path.name)
        if found is not None:
            str(found)
            assert found.is_enough in (True, False)


def _result(number: int, winner: int) -> GameResult:
    return GameResult(
        number, "a", "b", winner, "resign", "B+R", 30, (1.5, None), (15, 15), number // 2, f"k{number}", "2024-01-01",
        ("1.sgf",), "",
    )  # fmt: skip


@_written
def _journal_files(folder: Path) -> None:
    with MatchJournal(folder, {"game": "go", "players": ["a", "b"]}, lambda: {"openings": ["C3"]}) as journal:
        for number, winner in enumerate((BLACK, WHITE, 0, BLACK)):
            journal.add(_result(number, winner))
        journal.keep({"openings": ["D4"]})


def _read_review_part(path: Path) -> None:
    run = Run("review", [], Task(1, 1), 2, "records", {"json": "all.json"}, {})
    done(path.parent, run, GAMES)
    results([path.parent], run)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(OSError):  # the part lacks its files
        merge([Part(path.parent, run, frozenset())], Path(folder))


@_written
def _run_file(folder: Path) -> None:
    run = Run("match", ["match", "a b"], Task(2, 3), 4, "pairs of games", {"size": 9}, {"a net": "a.bin 0123"})
    begin_run(folder, run, 0, is_new=True)


def _read_match_journal(path: Path) -> None:
    _, results = read_journal(path)
    points_of(results)
    found = read_results([path], list(GAMES.values()))
    made = report(found, advantage=True, unique=True)
    to_text(made)
    json.dumps(asdict(made))
    with MatchJournal(path.parent, {"game": "go", "players": ["a", "b"]}, lambda: {"openings": ["C3"]}) as journal:
        points_of(journal.results)


@_written
def _csv_files(folder: Path) -> None:
    log = CsvLog(folder / "train.csv", ("policy", "value"), 0)
    for step in range(3):
        log.add(step, {"policy": 1.5, "value": 0.25})


def _level_files() -> Files:
    table = {
        "9x9, no network": {
            "date": "2024-01-01",
            "cores": 2,
            "pairings": {"2": [5, 1, 2], "3": [4, 0, 4]},
            "ratings": {"1": {"elo": 0.0, "error": 0.0, "games": 0}, "2": {"elo": 100.5, "error": 50.0, "games": 8}},
        }
    }
    return {"levels.json": json.dumps(table, indent=1).encode()}


@_written
def _spool_files(folder: Path) -> None:
    rows = {"value": np.zeros(2, np.float16), "planes": np.zeros((2, 3), np.uint8)}
    game = SelfPlayGame(rows, SGF, BLACK, 3.5, 20, 9, "rollouts")
    spool = Spool(folder / "pending-09.rows", 0)
    spool.add(game)
    spool.add(game)


@_written
def _run_files(folder: Path) -> None:
    run = store.Store(folder, {"seed": 1, "size": [9]}, frozenset(), "go-stones-2", ".sgf")
    run.update(generation=1, leads={"9": 0.5}, seconds=3.0)
    run.journal.append("start", version="1", settings={})
    run.journal.append("lost", part="player", why="x")
    run.close()
    (folder / ".lock").unlink()


def _read_run(path: Path) -> None:
    folder = path.parent if path.parent.name != "rows" else path.parents[1]
    run = store.Store(folder, {"seed": 1, "size": [9]}, frozenset(), "go-stones-2", ".sgf")
    try:
        assert run.rows >= 0
        assert run.leads is not None
        LearningJournal(folder / "journal.jsonl").read()
        run.networks()
    finally:
        run.close()


VERDICT = b'{"positions": 400, "same_move": 0.99, "value_error": 0.01}'
SAYINGS = b'["e", "p", "move", 0.5]\n["e", "p", "x", "D4"]\n'
REVIEWED = (
    b'{"unit": 1, "path": "a.sgf", "folder": ".", "games": [{"name": "a", "files": {".html": "a.yomi.html"}}], '
    b'"reviewed": [{"file": "a.sgf", "number": 1}], "cells": [["Black", "White"]]}\n'
)
PROBLEMS = b"# a comment\nsfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1\n"


def _one(name: str, content: bytes) -> Callable[[], Files]:
    return lambda: {name: content}


_ALL = (
    Reader("katago", _read_katago, (NetworkError,), _katago_files, cost=4),
    Reader("shogi-onnx", _read_shogi_onnx, (NetworkError, EvaluatorError), _onnx_files, cost=4),
    Reader("go-onnx", _read_go_onnx, (NetworkError, EvaluatorError), _go_onnx_files),
    Reader("converted", _read_converted, (NetworkError,), _converted_files, fixed=("net.bin",), cost=4),
    Reader("variant", _read_variant, (NetworkError,), lambda: {"net.onnx": _onnx_files()["net.onnx"]}),
    Reader("sparse", _read_sparse_network, (NetworkError,), _sparse_files),
    Reader("nnue", _read_nnue_file, (NetworkError,), _nnue_files, cost=2),
    Reader("sfnn", _read_nnue_file, (NetworkError,), _sfnn_files, cost=2),
    Reader("program", _read_program, (), _program_files),
    Reader("ini", _read_ini, (NetworkError, OptionError), lambda: {"net.bin.ini": INI}),
    Reader("shards", _read_dataset, (NetworkError,), _dataset_files),
    Reader("katago-rows", _read_katago_rows, (NetworkError,), _katago_rows_files),
    Reader("go-part", go_games._load_part, (NetworkError,), _go_part_files),
    Reader("go-collection", _read_collection, (NetworkError,), _collection_files, cost=8),
    Reader("hcpe-psv", _read_packed, (NetworkError,), _packed_files),
    Reader("balanced-openings", _read_balanced, (NetworkError,), _opening_files),
    Reader("go-records", _read_go, (SgfError, MatchError), _go_files, cost=2),
    Reader("shogi-records", _read_shogi, (RecordError,), _shogi_files, cost=2),
    Reader("book", _read_book, (BookError,), _book_files),
    Reader("options", lambda path: read_config(path, "go"), (OptionError,), _one("options.toml", OPTIONS)),
    Reader("match-settings", _read_match, (CliError, SpecError, OptionError), _one("match.toml", MATCH)),
    Reader("servers", _read_servers, (SettingsError,), _one("servers.toml", SERVERS)),
    Reader("training", read_training_config, (NetworkError,), _one("training.toml", TRAINING)),
    Reader("learning-network", run._read_tables, (OptionError,), _one("network.toml", LEARNING)),
    Reader("password", _read_password, (PasswordError,), _one("password", b"secret\nnot read\n")),
    Reader("tuning", _read_tuning, (), _tuning_files),
    Reader("precision", _read_verdict, (), _one("v.json", VERDICT)),
    Reader("match-journal", _read_match_journal, (MatchError,), _journal_files),
    Reader("run", lambda path: read_run(path.parent).command_line(None), (JobError,), _run_file),
    Reader("review-part", _read_review_part, (JobError,), _one("records.jsonl", REVIEWED)),
    Reader("training-log", lambda path: CsvLog(path, ("policy", "value"), 1), (NetworkError,), _csv_files),
    Reader("played", lambda path: played._Files(path.parent, PLAY_OPTIONS), (NetworkError,), _played_files),
    Reader("levels", read_pairings, (LevelsError,), _level_files),
    Reader("choices", Sayings, (ChoicesError,), _one("said.jsonl", SAYINGS)),
    Reader("problems", read_problems, (ProblemError,), _one("mates.txt", PROBLEMS)),
    Reader("learning-spool", lambda path: Spool(path, 0), (LearningError, NetworkError), _spool_files),
    Reader("learning-run", _read_run, (LearningError, NetworkError), _run_files),
)  # fmt: skip
READERS = {reader.name: reader for reader in _ALL}
