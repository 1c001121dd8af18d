"""The folder of a learning run: every finished game is in one place, whatever was killed or broken."""

import contextlib
import math
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.color import BLACK
from engine.learning.errors import LearningError
from engine.learning.store import Played, Store
from nets.data.shards import check_shard, open_dataset, widths
from nets.errors import NetworkError
from nets.features import feature_set

KATAGO = feature_set("katago-v7")
ASKED = {"game": "go", "size": 5, "visits": 100, "games": 32}


def played(number: int, rows: int = 3, size: int = 5) -> Played:
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
    return Played(columns, f"game {number}\n".encode(), BLACK, 2.0, 10, size, "0123abcd")


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
    with pytest.raises(LearningError, match="run with visits 100 where 200 was asked for: expected the same"):
        open_store(visits=200)
    open_store(games=64).close()  # this one may be changed
    (tmp_path / "run/settings.json").write_text('{"format": 2}')
    with pytest.raises(LearningError, match="format 2 found, expected 1"):
        open_store()
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(LearningError, match="files that are no run found"):
        Store(other, ASKED, frozenset(), "katago-v7", ".sgf")


def test_one_process_at_a_time(open_store: Callable[..., Store]) -> None:
    store = open_store()
    with pytest.raises(LearningError, match="another process learns there"):
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
    with pytest.raises(LearningError, match="content is not that of its name"):
        store.network(name)
    with pytest.raises(LearningError, match="no network ffff found"):
        store.network("ffff")


def test_a_broken_shard_is_named(open_store: Callable[..., Store]) -> None:
    store = open_store()
    store.add(played(0))
    store.close_shards()
    (store.folder / "rows/train-05-00001/value.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(NetworkError, match=r"train-05-00001/value\.npy"):
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
