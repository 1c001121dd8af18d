"""The folder of a learning run: every finished game is in one place, whatever was killed or broken."""

import contextlib
import hashlib
import json
import linecache
import logging
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from yomi.engine.cli import train
from yomi.engine.cli.flags import given_settings, settings_of
from yomi.engine.cli.main import build
from yomi.engine.color import BLACK
from yomi.engine.learning import run
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.page import status_text, write_page
from yomi.engine.learning.run import RunSettings
from yomi.engine.learning.settings import LearnSettings, learn_settings
from yomi.engine.learning.spool import SelfPlayGame
from yomi.engine.learning.store import Store
from yomi.engine.machine import start_facts
from yomi.engine.registry import GAMES
from yomi.nets.data.shards import check_shard, open_dataset, widths
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import feature_set
from yomi.nets.user_files import keep_files, load_object
from yomi.system import LOCKED_AT, lock_file

KATAGO = feature_set("katago-v7")
ASKED = {"game": "go", "size": 5, "visits": 100, "games": 32}


def played(number: int, rows: int = 3, size: int = 5) -> SelfPlayGame:
    """Return a game whose rows' values are its number / 64."""
    width = widths(KATAGO, size)
    columns: dict[str, Any] = {
        "planes": np.zeros((rows, width["planes"]), np.uint8),
        "globals": np.zeros((rows, width["globals"]), np.float16),
        "policy_moves": np.zeros((rows, 4), np.uint16),
        "policy_weights": np.tile(np.array([1, 0, 0, 0], np.float16), (rows, 1)),
        "value": np.full(rows, number / 64, np.float16),
        "ply": np.arange(rows, dtype=np.uint16),
    }
    return SelfPlayGame(columns, f"game {number}\n".encode(), BLACK, 2.0, 10, size, "0123abcd")


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Give what opens the folder `run` as a new process would."""
    with contextlib.ExitStack() as stack:

        def opened(**changes: Any) -> Store:
            store = Store(tmp_path / "run", ASKED | changes, frozenset({"games"}), "katago-v7", ".sgf")
            stack.callback(store.close)
            return store

        yield opened


def games_of(store: Store) -> list[int]:
    """Return the numbers of all games kept, in shards and out of them."""
    found = [round(64 * float(game.rows["value"][0])) for game in store.games]
    for shard in store.dataset.shards:
        columns = shard.open()
        firsts = np.flatnonzero(columns["ply"] == 0)
        found += np.rint(64 * columns["value"][firsts].astype(np.float64)).astype(int).tolist()
    return sorted(found)


def test_games_become_shards_with_their_records_beside_them(open_store: Callable[..., Store]) -> None:
    store = open_store()
    for number in range(4):
        store.add(played(number))
    assert store.rows == 12
    store.close_shards()
    store.add(played(9, rows=2))
    store.close_shards()
    first, second = store.dataset.shards
    assert (first.rows, second.rows, store.rows) == (12, 2, 14)
    for shard in store.dataset.shards:
        check_shard(shard, KATAGO, 26)
    assert first.open()["game"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert (store.folder / "games/05-00001.sgf").read_text() == "game 0\ngame 1\ngame 2\ngame 3\n"
    assert (store.folder / "games/05-00002.sgf").read_text() == "game 9\n"


def test_boards_of_each_size_have_shards_of_their_own(open_store: Callable[..., Store]) -> None:
    store = open_store()
    for number, size in enumerate((5, 7, 5)):
        store.add(played(number, size=size))
    store.close_shards()
    assert [(shard.path.name, shard.rows) for shard in store.dataset.shards] == [
        ("train-05-00001", 6),
        ("train-07-00002", 3),
    ]


@pytest.mark.slow
def test_no_byte_at_which_a_kill_cuts_the_file_loses_a_game_before(open_store: Callable[..., Store]) -> None:
    store = open_store()
    ends = []
    for number in range(3):
        store.add(played(number))
        ends.append((store.folder / "pending-05.rows").stat().st_size)
    path = store.folder / "pending-05.rows"
    whole = path.read_bytes()
    for length in range(0, len(whole) + 1, 37):
        store.close()
        path.write_bytes(whole[:length])
        store = open_store()
        kept = sum(end <= length for end in ends)
        assert games_of(store) == list(range(kept))
        store.add(played(7))
        assert games_of(store) == [*range(kept), 7]
        store.close()
        store = open_store()
        assert games_of(store) == [*range(kept), 7]


@pytest.mark.parametrize("step", ["before the shard", "after the shard"])
def test_a_kill_while_a_shard_is_made_neither_loses_nor_doubles_games(
    open_store: Callable[..., Store], step: str
) -> None:
    store = open_store()
    for number in range(3):
        store.add(played(number))
    before = (store.folder / "pending-05.rows").read_bytes()
    store.close_shards()
    store.close()
    (store.folder / "pending-05.rows").write_bytes(before)
    if step == "before the shard":
        shutil.rmtree(store.folder / "rows/train-05-00001")
    store = open_store()
    assert games_of(store) == [0, 1, 2]
    store.add(played(3))
    store.close_shards()
    assert games_of(store) == [0, 1, 2, 3]


def test_a_full_disk_keeps_what_there_was(open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    store.add(played(0))
    real = Path.open

    def full(self: Path, *args: Any, **more: Any) -> Any:
        file = real(self, *args, **more)
        return _Full(file) if self.name.startswith("pending") else file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(OSError, match="No space"):
            store.add(played(1))
    assert games_of(store) == [0]
    store.add(played(2))
    store.close()
    assert games_of(open_store()) == [0, 2]


class _Full:
    """A file on a disk that is full."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        """Write a part."""
        self._file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    def __enter__(self) -> "_Full":
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_another_run_is_refused_with_what_differs(open_store: Callable[..., Store], tmp_path: Path) -> None:
    open_store().close()
    with pytest.raises(LearningError, match=r"run with visits 100 .now 200. found: use the same settings"):
        open_store(visits=200)
    open_store(games=64).close()  # this one may be changed
    (tmp_path / "run/settings.json").write_text('{"format": 2}')
    with pytest.raises(LearningError, match="format 2 found, expected 1"):
        open_store()
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(LearningError, match="files found that are not a run"):
        Store(other, ASKED, frozenset(), "katago-v7", ".sgf")


def test_one_process_at_a_time(open_store: Callable[..., Store]) -> None:
    store = open_store()
    with pytest.raises(LearningError, match="another process uses this run"):
        open_store()
    store.close()
    open_store()


def test_a_network_is_what_its_name_says(open_store: Callable[..., Store], tmp_path: Path) -> None:
    store = open_store()
    made = tmp_path / "made.bin.gz"
    made.write_bytes(b"weights")
    name = store.keep_network(made)
    assert store.network(name).read_bytes() == b"weights"
    assert not made.exists()
    store.network(name).write_bytes(b"weig")
    with pytest.raises(LearningError, match="content and name do not match"):
        store.network(name)
    with pytest.raises(LearningError, match="no network ffff found"):
        store.network("ffff")


def test_a_broken_shard_is_named(open_store: Callable[..., Store]) -> None:
    store = open_store()
    store.add(played(0))
    store.close_shards()
    (store.folder / "rows/train-05-00001/value.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(NetworkError, match=r"train-05-00001[/\\]value\.npy"):
        open_dataset(store.folder / "rows").shards[0].open()


def test_the_oldest_rows_go_but_the_window_stays(open_store: Callable[..., Store]) -> None:
    store = open_store()
    for number in range(6):
        store.add(played(number))
        store.close_shards()
    store.tidy(0, 6)
    assert games_of(store) == [4, 5]
    assert sorted(path.name for path in (store.folder / "games").iterdir()) == ["05-00005.sgf", "05-00006.sgf"]
    store.add(played(6))
    store.close_shards()
    assert store.newest_shard == 7


def test_the_mean_of_what_games_end_with_is_kept(open_store: Callable[..., Store]) -> None:
    store = open_store()
    for number in range(400):
        store.add(played(number % 60, rows=0))
    store.update()
    store.close()
    assert open_store().leads[5] == pytest.approx(2.0 * (1.0 - math.exp(-2.0)), rel=0.01)


def test_two_threads_change_the_state_and_neither_undoes_the_other(open_store: Callable[..., Store]) -> None:
    store = open_store()

    def train() -> None:
        for generation in range(1, 201):
            store.update(generation=generation)

    thread = threading.Thread(target=train)
    thread.start()
    while thread.is_alive():
        before = store.state.generation
        store.pass_time(1.0)
        assert store.state.generation >= before
    thread.join()
    assert store.state.generation == 200


def damaged(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return found


@pytest.mark.slow
def test_a_flipped_byte_loses_one_game_and_no_more_than_those_behind_it(
    open_store: Callable[..., Store], caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    path, ends = store.folder / "pending-05.rows", [8]
    for number in range(4):
        store.add(played(number))
        ends.append(path.stat().st_size)
    store.close()
    whole = path.read_bytes()
    for at in [*range(0, 24), *range(24, len(whole), 101), *(end + each for end in ends[:-1] for each in range(8))]:
        path.write_bytes(damaged(whole, at))
        store = open_store()
        hit = sum(end <= at for end in ends) - 1
        found = games_of(store)
        assert set(range(4)) - {hit} == set(found) or (at < ends[hit] + 8 and found == list(range(max(0, hit))))
        (line,) = warnings_in(caplog)
        assert line.startswith(f"{path}: ")
        store.add(played(7))
        store.close()
        store = open_store()
        assert games_of(store) == [*found, 7]
        assert not warnings_in(caplog)
        store.close()


def test_zeros_behind_the_games_are_dropped(open_store: Callable[..., Store], caplog: pytest.LogCaptureFixture) -> None:
    store = open_store()
    store.add(played(3))
    store.close()
    path = store.folder / "pending-05.rows"
    path.write_bytes(path.read_bytes() + bytes(5000))
    assert games_of(open_store()) == [3]
    assert warnings_in(caplog) == [f"{path}: 5000 damaged bytes dropped, 1 games kept"]


@pytest.mark.parametrize("text", ["[]", "3", "", "\0\0\0\0", "{", "null", "[" * 100_000])
@pytest.mark.parametrize("name", ["settings.json", "state.json"])
def test_settings_and_states_that_are_none_are_one_line(open_store: Callable[..., Store], name: str, text: str) -> None:
    store = open_store()
    store.update(generation=1)
    store.close()
    (store.folder / name).write_text(text)
    with pytest.raises(LearningError, match=rf"{name}: .*restore it from a copy, or use a new folder") as error:
        open_store()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"generation": "x"}, "generation 'x' found, expected a whole number"),
        ({"generation": -1}, "generation -1 found, expected a whole number"),
        ({"steps": 1.5}, "steps 1.5 found, expected a whole number"),
        ({"planned_rows": True}, "planned_rows True found"),
        ({"seconds": float("nan")}, "seconds nan found, expected a number"),
        ({"leads": []}, r"leads \[\] found, expected numbers by board size"),
        ({"leads": {"5": "2"}}, "leads .* found, expected numbers by board size"),
        ({"leads": {"x": 2}}, "leads .* found, expected numbers by board size"),
        ({"network": 3}, "network 3 found, expected 16 hexadecimal digits"),
        ({"network": "../etc"}, "network '../etc' found"),
        ({"other": 1}, "field 'other' found, expected generation, network"),
    ],
)
def test_a_state_of_wrong_types_is_one_line(
    open_store: Callable[..., Store], values: dict[str, Any], message: str
) -> None:
    open_store().close()
    store = open_store()
    store.close()
    (store.folder / "state.json").write_text(json.dumps(values))
    with pytest.raises(LearningError, match=rf"state\.json: {message}"):
        open_store()


def test_damaged_lines_of_the_journal_are_left_out(
    open_store: Callable[..., Store], caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    for number in range(3):
        store.journal.append("stop", why=str(number))
    store.close()
    path = store.folder / "journal.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + bytes(len(second) - 1) + b"\n" + third + bytes(100))
    store = open_store()
    assert [event["why"] for event in store.journal.read()] == ["0", "2"]
    (line,) = warnings_in(caplog)
    assert line.startswith(f"{path}, line 2: expected an event as JSON")
    store.journal.append("stop", why="3")
    assert [event["why"] for event in store.journal.read()] == ["0", "2", "3"]


@pytest.mark.slow
def test_no_flipped_byte_of_the_journal_ends_the_run_or_its_page(open_store: Callable[..., Store]) -> None:
    store = open_store()
    store.journal.append("start", version="1", settings={"game": "go"})
    counts = {"rows": 3, "games": 1, "moves": 9, "evaluations": 90, "black": 1, "white": 0, "drawn": 0}
    engines = {"engine_games": 2, "engine_points": 1.5, "reanalyzed": 1, "lead": 2.5}
    store.journal.append("selfplay", generation=0, network="a", seconds=1.5, **counts, **engines)
    losses = {"policy": 2.5, "total": 3.0}
    store.journal.append("training", generation=1, steps=5, seconds=1.0, window=3, losses=losses)
    score = {"wins": 10, "losses": 9, "draws": 1}
    store.journal.append("match", generation=1, network="b", against="uniform", seconds=1.0, **score)
    path = store.folder / "journal.jsonl"
    whole = path.read_bytes()
    store.close()
    for at in range(0, len(whole), 3):
        path.write_bytes(damaged(whole, at))
        store = open_store()
        status_text(store.folder)
        write_page(store.folder)
        store.close()


@pytest.mark.parametrize("name", ["value.npy", "planes.npy", "policy_moves.npy", "shard.json"])
@pytest.mark.parametrize("how", ["flip", "zeros", "cut", "missing"])
def test_a_damaged_shard_is_set_aside_and_its_record_stays(
    open_store: Callable[..., Store], name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(window=100)
    for number in range(3):
        store.add(played(number))
        store.close_shards()
    store.update(planned_rows=9, planned_shard=3)
    store.close()
    path = store.folder / "rows/train-05-00003" / name
    content = path.read_bytes()
    path.write_bytes(
        {"flip": damaged(content, len(content) - 1), "zeros": bytes(len(content)), "cut": content[:-2]}.get(how, b"")
    )
    if how == "missing":
        path.unlink()
    store = open_store(window=100)
    assert games_of(store) == [0, 1]
    (line,) = warnings_in(caplog)
    assert "train-05-00003" in line
    assert line.endswith("left out, and renamed to .train-05-00003.damaged")
    assert store.planned().rows("train") == 6
    store.add(played(5))
    store.close_shards()
    assert games_of(store) == [0, 1, 5]
    assert store.newest_shard == 4
    assert (store.folder / "games/05-00003.sgf").read_text() == "game 2\n"
    store.close()
    open_store(window=100)
    assert not warnings_in(caplog)


def test_rows_of_shards_that_were_removed_still_count(open_store: Callable[..., Store]) -> None:
    store = open_store()
    for number in range(6):
        store.add(played(number))
        store.close_shards()
    store.tidy(0, 6)
    assert store.rows == 18
    store.close()
    assert open_store().rows == 18


def promote(store: Store, number: int) -> str:
    made = store.folder.parent / "made.bin.gz"
    made.write_bytes(f"weights {number}".encode())
    name = store.keep_network(made)
    store.update(network=name, generation=number)
    store.journal.append("promotion", generation=number, network=name)
    return name


@pytest.mark.parametrize("how", ["missing", "cut", "zeros"])
def test_a_damaged_network_falls_back_to_the_one_before(
    open_store: Callable[..., Store], how: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    names = [promote(store, number) for number in range(3)]
    store.close()
    for left in (2, 1, 0):
        path = next((store.folder / "networks").glob(f"{names[left]}.*"))
        if how == "missing":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:3] if how == "cut" else bytes(9))
        store = open_store()
        assert store.state.network == (names[left - 1] if left else "")
        *_, line = warnings_in(caplog)
        before = f"network {names[left - 1]}, promoted before, takes its place" if left else "training makes the next"
        assert line == f"{store.folder / 'networks'}: no network {names[left]} found, which state.json names: {before}"
        assert names[left] not in store.networks().values()
        store.close()


@pytest.mark.parametrize("content", [b"", bytes(90), b"[]", b"3", b'{"format": ', b'{"format": 1}'])
def test_a_damaged_manifest_is_written_again(open_store: Callable[..., Store], content: bytes) -> None:
    store = open_store()
    store.add(played(0))
    store.close_shards()
    store.close()
    (store.folder / "rows/manifest.json").write_bytes(content)
    assert games_of(open_store()) == [0]


def test_locks_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: set[tuple[int, int]] = set()

    def locking(descriptor: int, mode: int, count: int) -> None:
        place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        if place in locked:
            raise OSError(13, "Permission denied")
        locked.add(place)

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setattr(sys, "platform", "win32")
    path = tmp_path / "file"
    with path.open("ab") as first, path.open("ab") as second:
        first.write(b"line")
        assert lock_file(first.fileno(), wait=False)
        assert not lock_file(second.fileno(), wait=False)
        first.write(b" more")
    assert path.read_bytes() == b"line more"
    assert {place for _, place in locked} == {LOCKED_AT}


# -- the user's files --------------------------------------------------------------------------------------------------


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    files = {"search": ("mine.py", b"one"), "start": ("net.onnx", b"net")}
    keep_files(tmp_path, files, accept_changed=False)
    keep_files(tmp_path, {**files, "search": ("moved.py", b"one")}, accept_changed=False)
    changed = {**files, "search": ("mine.py", b"two")}
    for other in (changed, {"start": files["start"]}, {**files, "loss": ("loss.py", b"")}):
        with pytest.raises(
            NetworkError, match="use the unchanged file or a new folder, or add --accept-changed"
        ) as error:
            keep_files(tmp_path, other, accept_changed=False)
        assert len(str(error.value).splitlines()) == 1
    keep_files(tmp_path, changed, accept_changed=True)
    keep_files(tmp_path, changed, accept_changed=False)
    kept = {path.read_bytes() for path in (tmp_path / "files").glob("*.py")}
    assert kept == {b"one", b"two"}, "the earlier file stays"
    digest = hashlib.sha256(b"two").hexdigest()
    assert json.loads((tmp_path / "files" / "files.json").read_text())["search"] == f"mine.py {digest}"


def test_a_run_and_its_files_may_be_moved(tmp_path: Path) -> None:
    asked = {"search": "/home/a/mine.py:Search", "network": {"kind": "/home/a/net.py:Net", "start": "/home/a/x.bin"}}
    Store(tmp_path / "run", asked, frozenset(), "go-stones-2", ".onnx").close()
    (tmp_path / "run").rename(tmp_path / "moved")
    moved = json.loads(json.dumps(asked).replace("/home/a", "/mnt"))
    Store(tmp_path / "moved", moved, frozenset(), "go-stones-2", ".onnx").close()
    with pytest.raises(LearningError, match=r"search '/mnt/mine.py:Search' \(now '/mnt/mine.py:Other'\)"):
        Store(tmp_path / "moved", {**moved, "search": "/mnt/mine.py:Other"}, frozenset(), "go-stones-2", ".onnx")


def test_a_start_names_what_it_ran_on() -> None:
    facts = start_facts()
    assert {"host", "cpu", "cores", "python", "numpy", "numba"} <= set(facts)


@pytest.mark.parametrize("use", ["search", "targets", "network", "loss"])
def test_a_run_of_which_a_file_has_changed_is_refused(
    use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`yomi learn` up to its loop. PyTorch is not needed: its modules are replaced."""
    checked: list[Path] = []
    for name in ("generations", "growth", "losses"):
        module: Any = ModuleType(f"yomi.nets.training.{name}")
        module.Generations = lambda folder, *others, **named: SimpleNamespace(check=lambda: checked.append(folder))
        module.check_growth, module.weighted = lambda *others: None, None
        module.BLOCKS, module.POOLING = "blocks", "pooling_blocks"
        monkeypatch.setitem(sys.modules, module.__name__, module)
    mine = tmp_path / "mine.py"
    mine.write_text("def made(*given):\n    return given\n")
    (tmp_path / "net.toml").write_text('[network]\nkind = "mine.py:Net"\n')
    flags = {"search": ["--search", f"{mine}:made"], "targets": ["--targets", f"{mine}:made"]}
    flags["network"] = ["--network", str(tmp_path / "net.toml")]
    words = ["learn", "go", "--size", "5", "--processes", "0", "--out", str(tmp_path / "run"), *flags.get(use, ())]

    def begin(*more: str) -> None:
        args = build(words).parse_args([*words, *more])
        settings = learn_settings(given_settings(LearnSettings, args, train.PREFIX))
        total = load_object(f"{mine}:made") if use == "loss" else None
        asked = settings_of(RunSettings, args)
        tables = run._read_tables(None if asked.network is None else Path(asked.network), "go", [])
        game, options = GAMES["go"], train.collect(args, GAMES["go"])
        run._make_loop(asked, game, options, settings, tables, [], print, total, lambda figures: None).store.close()

    begin()
    begin()
    assert checked == [tmp_path / "run"], "before there is a folder"
    mine.write_text("def made(*given):\n    return given[::-1]\n")
    linecache.clearcache()
    with pytest.raises(NetworkError, match=f"the {use} was .*, now .*: use the unchanged file") as error:
        begin()
    assert len(str(error.value).splitlines()) == 1
    begin("--accept-changed")
    begin()
