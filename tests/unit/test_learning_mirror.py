"""The second place of a run, in a memory that fsspec writes to."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from yomi.engine.learning import mirror
from yomi.engine.learning.journal import LearningError
from yomi.engine.learning.mirror import Mirror

pytestmark = pytest.mark.skipif(find_spec("fsspec") is None, reason="fsspec is not installed (the extra cluster)")
URL = "memory://bucket/run"


@pytest.fixture
def place() -> Iterator[Any]:
    """Return fsspec's files in memory, which are there for the whole process."""
    import fsspec

    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a run."""
    names = ("settings.json", "state.json", "journal.jsonl", "networks/a.bin.gz", "games/05-00001.sgf")
    names += ("rows/train-05-00001/value.npy", "rows/.train-05-00002.x.part/value.npy", "pending-05.rows")
    for name in names:
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "run"


def content_of(place: Any) -> dict[str, str]:
    return {name.removeprefix("/bucket/run/"): place.cat(name).decode() for name in place.find("/bucket/run")}


def test_copies_what_is_closed_and_later_only_what_is_new(folder: Path, place: Any) -> None:
    copier = Mirror(folder, URL, lambda line: None)
    assert copier.copy() == 6
    found = content_of(place)
    assert found["rows/train-05-00001/value.npy"] == "rows/train-05-00001/value.npy"
    assert not [name for name in found if "part" in name or "pending" in name]
    assert copier.copy() == 0
    (folder / "journal.jsonl").write_text("longer than before")
    (folder / "games/05-00002.sgf").write_text("new")
    (folder / "games/05-00001.sgf").unlink()
    assert copier.copy() == 2
    assert content_of(place)["journal.jsonl"] == "longer than before"
    assert "games/05-00001.sgf" in content_of(place)


def test_goes_on_where_it_ended_and_mends_what_was_cut_short(folder: Path, place: Any) -> None:
    Mirror(folder, URL, lambda line: None).copy()
    place.pipe("/bucket/run/networks/a.bin.gz", b"netw")
    assert Mirror(folder, URL, lambda line: None).copy() == 3  # and those that change
    assert content_of(place)["networks/a.bin.gz"] == "networks/a.bin.gz"


def test_a_failure_is_one_line_and_tried_again(folder: Path, place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    tried = []
    monkeypatch.setattr(mirror, "INTERVAL", 0.01)
    real = type(place).put_file

    def put(self: Any, *arguments: Any) -> None:
        tried.append(arguments)
        if len(tried) < 4:
            raise PermissionError("no\nway")
        real(self, *arguments)

    monkeypatch.setattr(type(place), "put_file", put)
    copier = Mirror(folder, URL, lines.append)
    copier.start()
    while len(tried) < 4:
        copier._thread.join(0.01)
    copier.close()
    assert lines == [f"mirror {URL}: no; tried again every 0 s"]
    assert len(content_of(place)) == 6


@pytest.mark.parametrize("url", ["nothing://bucket", "s3://bucket/run"])
def test_a_place_that_cannot_be_written_to_is_one_line(folder: Path, url: str) -> None:
    if url.startswith("s3") and find_spec("s3fs") is not None:
        pytest.skip("s3fs is installed")
    with pytest.raises(LearningError, match=rf"^--mirror {url}: .*expected a URL that fsspec can write to$"):
        Mirror(folder, url, lambda line: None)
