"""Files of users on a full disk: one writer keeps the old file, and nothing else writes files."""

import ast
import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import yomi
from yomi.engine.cli.main import main
from yomi.nets.files import append_lines, write_atomically

ROOT = Path(__file__).parents[2]
PRODUCT = ("bench", "engine", "native", "nets", "yomi/library", "yomi/web")

# Functions that write files by themselves, each with its reason. All others use yomi.nets.files.
ALLOWED = {
    "engine/cli/main.py: drop_stdout": "the null device",
    "engine/cli/main.py: open_closed": "the null device",
    "engine/cli/output.py: LogFile": "a log of lines for people",
    "engine/selfplay.py: _append": "rows for append_whole",
    "engine/cli/train.py: _note_start": "a journal for append_object",
    "engine/evaluators/devices.py: _cuda_fault": "the null device",
    "engine/go/datasets/games.py: _save_part": "to the stream of atomic_writer",
    "engine/learning/journal.py: Journal.append": "a journal for append_object",
    "engine/learning/page.py: _is_going_on": "only the lock",
    "engine/learning/spool.py: SelfPlayGame.to_bytes": "to memory",
    "engine/learning/spool.py: Spool.add": "overwrites what a full disk left",
    "engine/learning/store.py: Store.__init__": "only the lock",
    "engine/learning/store.py: Store.tidy": "a whole shard gets another name",
    "engine/reviews/scans.py: ReviewJournal._append": "a journal for append_object",
    "engine/reviews/shares.py: ReviewShare.__init__": "a journal for append_object",
    "engine/reviews/shares.py: merge": "a journal for append_object",
    "engine/matches/results.py: MatchJournal.__init__": "a journal for append_object",
    "engine/matches/results.py: write_journal": "a journal for append_object",
    "engine/pictures.py: picture": "to memory",
    "engine/servers/runner.py: Reporter.__init__": "lines of events, which yomi does not read",
    "native/cache_folder.py: _link_files": "links to kernels",
    "native/cache_folder.py: locked": "only the lock",
    "native/cache_folder.py: write_json": "the writer of native, which imports nothing of nets",
    "nets/data/katago_rows.py: _write": "to memory",
    "nets/data/shards.py: write_shard": "to a new folder that gets its name at the end",
    "nets/files.py: append_lines": "the writer",
    "nets/files.py: atomic_writer": "the writer",
    "nets/files.py: draft_folder": "the writer",
    "nets/files.py: sync_file": "flushes a file",
    "nets/training/progress.py: plot_curves": "to memory",
    "nets/training/weights.py: save_checkpoint": "to memory",
    "yomi/web/reviews.py: Reviews._search": "a record in a folder of its own, which is removed",
}
MODES = {"open": 1, "fdopen": 1, "ZipFile": 1}  # place of the mode, one less for methods of paths
WRITERS = {
    "write_text", "write_bytes", "savefig", "tofile", "FileHandler", "NamedTemporaryFile", "mkstemp", "symlink_to",
}  # fmt: skip
OF_MODULES = {
    "np": {"save", "savez", "savez_compressed", "savetxt"},
    "onnx": {"save", "save_model"},
    "os": {"rename", "replace", "link", "symlink", "truncate"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move"},
    "torch": {"save"},
}


def written(node: ast.Call) -> bool:
    """Whether a call opens a file for writing, or writes one."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    module = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    if name in OF_MODULES.get(module, ()) or name in WRITERS:
        return True
    if (module, name) == ("os", "open"):
        return "O_RDONLY" not in ast.unparse(node)
    if name not in MODES:
        return False
    is_method = isinstance(function, ast.Attribute) and module not in ("gzip", "lzma", "os", "io", "zipfile")
    place = 0 if is_method else MODES[name]
    modes = [each.value for each in node.keywords if each.arg == "mode"] or node.args[place : place + 1]
    texts = [str(mode.value) if isinstance(mode, ast.Constant) else ast.unparse(mode) for mode in modes]
    return any(text == "mode" or re.fullmatch("[rwaxbt+]*[wax+][rwaxbt+]*", text) for text in texts)


def writing_functions(text: str) -> list[str]:
    """Return the names of functions and classes with such a call."""
    if (
        re.search(r"open\(|ZipFile|write_|save|\b(os|shutil)\.|tofile|FileHandler|Temporary|mkstemp|symlink", text)
        is None
    ):
        return []
    found: list[str] = []
    left: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
    while left:
        tree, name = left.pop()
        for node in ast.iter_child_nodes(tree):
            inner = f"{name}.{node.name}".strip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else name
            if isinstance(node, ast.Call) and written(node):
                found.append(name or "the module")
            if isinstance(node, ast.ClassDef) and any("FileHandler" in ast.unparse(base) for base in node.bases):
                found.append(inner)
            left.append((node, inner))
    return found


def test_all_files_are_written_by_the_one_writer() -> None:
    found = set()
    for path in (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")):
        found |= {f"{path.relative_to(ROOT)}: {name}" for name in writing_functions(path.read_text("utf-8"))}
    assert found == set(ALLOWED)


def test_the_check_sees_the_kinds_of_writing() -> None:
    lines = (
        'open(p, "w")', 'p.open("ab")', 'open(p, mode="x")', "p.write_text(t)", "np.save(p, a)", "shutil.copy(a, b)",
        "os.replace(a, b)", 'zipfile.ZipFile(p, "w")', "open(p, mode)", "os.open(p, os.O_WRONLY)",
    )  # fmt: skip
    assert [line for line in lines if writing_functions(line) != ["the module"]] == []
    lines = (
        "open(p)", 'p.open("rb")', 'open(p, encoding="utf-8")', "webbrowser.open(page)", "os.open(p, os.O_RDONLY)",
        'text.replace("a", "b")',
    )  # fmt: skip
    assert [line for line in lines if writing_functions(line)] == []


# -- behavior ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def limit_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return a function that limits the size of files, as a disk with so many free bytes does for the first file."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python 3.11 does not notice that it has written only a part
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def error_of(words: Sequence[object], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that fails, and return the last line on stderr."""
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("size", [0, 9])
def test_the_writer_keeps_the_old_file(size: int, tmp_path: Path, limit_files: Callable[[int], None]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    limit_files(size)
    with pytest.raises(OSError, match="File too large") as caught:
        write_atomically(path, b"new content")
    assert caught.value.filename == str(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"file": b"old"}


def test_the_writer_keeps_permissions_links_and_long_names(tmp_path: Path) -> None:
    path, link, long = tmp_path / "file", tmp_path / "link", tmp_path / ("棋" * 83 + ".sgf")
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomically(link, b"new")
    write_atomically(long, b"long")
    assert (link.is_symlink(), path.read_bytes(), long.read_bytes()) == (True, b"new", b"long")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_writer_writes_to_pipes_and_devices(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"text")
    assert (os.read(reader, 9), pipe.is_fifo()) == (b"text", True)
    os.close(reader)
    write_atomically(Path(os.devnull), b"text")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("old", [b"", b"one\n", b"one\ncut"])
def test_lines_are_appended_whole_or_not_at_all(old: bytes, tmp_path: Path, limit_files: Callable[[int], None]) -> None:
    path = tmp_path / "lines"
    path.write_bytes(old)
    whole = old[: old.rfind(b"\n") + 1]
    limit_files(len(whole) + 3)
    with pytest.raises(OSError, match="File too large"):
        append_lines(path, "another\n")
    assert path.read_bytes() == whole
    append_lines(path, "a\n")
    assert path.read_bytes() == whole + b"a\n"


RECORD = "(;SZ[5]KM[7]RU[Chinese];B[cc];W[bb])"
REVIEW = ("--visits", 2, "--evaluator", "uniform", "--quick", 0)


def test_a_review_keeps_the_files_of_the_last_one(
    tmp_path: Path, limit_files: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.sgf").write_text(RECORD)
    words = ["review", tmp_path / "a.sgf", *REVIEW, "--html", "--json", tmp_path / "a.json"]
    assert main(list(map(str, words))) == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 4
    smallest = min(len(content) for path, content in before.items() if path.name != "a.sgf")
    limit_files(smallest - 1)
    assert error_of(words, capsys).startswith(f"yomi: error: cannot write {tmp_path}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.suffix != ".jsonl"} == before


@pytest.mark.parametrize(
    "words",
    [
        "selfplay go --games 1 --visits 2 --evaluator uniform --size 5 --out OUT",
        "duel go --games 2 --visits 2 --second visits=3 --evaluator uniform --size 5 --processes 1 --out OUT",
        "match go --games 2 --size 5 yomi:evaluator=uniform,visits=2 yomi:evaluator=uniform,visits=3 --out OUT",
        "tune go --games 2 --visits 2 --evaluator uniform --size 5 --parameter c_puct 1:2 --processes 1 --out OUT",
    ],
)
def test_a_run_without_room_leaves_no_part_of_a_file(
    words: str, tmp_path: Path, limit_files: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    limit_files(40)
    assert error_of(words.replace("OUT", str(out)).split(), capsys).startswith(f"yomi: error: {out}")
    assert [path for path in out.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "run",
    [
        lambda out: yomi.selfplay("go", 1, visits=2, evaluator="uniform", size=5, out=out),
        lambda out: yomi.duel("go", {"visits": 3}, games=2, visits=2, evaluator="uniform", size=5, out=out),
        lambda out: yomi.dataset(out, out.with_name("a.sgf")),
    ],
    ids=["selfplay", "duel", "dataset"],
)
def test_the_library_names_the_file_without_room(
    run: Callable[[Path], object], tmp_path: Path, limit_files: Callable[[int], None]
) -> None:
    (tmp_path / "a.sgf").write_text("(;SZ[19]KM[7]RU[Chinese]RE[B+9];B[cc];W[bb];B[dd];W[pp])")
    with contextlib.suppress(yomi.Error):  # kernels that are not in the cache are compiled now
        run(tmp_path / "before")
    limit_files(40)
    with pytest.raises(yomi.Error, match=f"^{tmp_path}.*: File too large$"):
        run(tmp_path / "out")


@pytest.mark.parametrize(
    "words",
    [
        "review RECORD --out OUT/x", "review RECORD --json OUT/x.json", "review RECORD --out OUT/x --task 1/2",
        "selfplay go --out OUT", "selfplay go --out OUT/x/y", "match go yomi:visits=2 yomi:visits=3 --out OUT/x",
        "match go yomi:visits=2 yomi:visits=3 --plot OUT/x.png", "duel go --second visits=3 --out OUT/x",
        "rate RECORD --plot OUT/x.png", "play go --evaluator uniform --save OUT/x.sgf",
        "dataset make RECORD --out OUT/x", "dataset openings RECORD --out OUT/x", "dataset import RECORD --out OUT/x",
        "dataset convert RECORD OUT/x.hcpe", "net compress yomi-go-b6c96 --out OUT/x.bin.xz",
        "bench tree --json OUT/x.json", "bench nps --csv OUT/x.csv",
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    for name in (
        "native.precompile.compile_names",
        "engine.reviews.run.Reviewers.review",
        "engine.game.Game.load_player",
    ):
        monkeypatch.setattr(f"yomi.{name}", work)
    out, record = tmp_path / "file", tmp_path / "a.sgf"
    out.write_text("no folder")
    record.write_text(RECORD)
    found = error_of(words.replace("OUT", str(out)).replace("RECORD", str(record)).split(), capsys)
    assert str(out) in found
    assert "Not a directory" in found or "no folder" in found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sgf", "file"]
