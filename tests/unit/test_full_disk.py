"""Files of users on a full disk: one writer keeps the old file, and nothing else writes files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("bench", "engine", "native", "nets", "yomi")

# Functions that write files by themselves, each with its reason. All others use yomi.nets.files.
ALLOWED = {
    "engine/cli/main.py: drop_stdout": "the null device",
    "engine/cli/main.py: open_closed": "the null device",
    "engine/cli/output.py: LogFile": "a log of lines for people",
    "engine/cli/review_parts.py: ReviewShare.__init__": "a journal for append_object",
    "engine/cli/review_parts.py: merge": "a journal for append_object",
    "engine/cli/review_progress.py: ReviewJournal.append": "a journal for append_object",
    "engine/cli/selfplay.py: _append": "rows for append_whole",
    "engine/datasets/units.py: to_files": "to memory",
    "engine/evaluators/devices.py: _quiet": "the null device",
    "engine/go/datasets/games.py: _save_part": "to the stream of atomic_writer",
    "engine/learning/journal.py: Journal.append": "a journal for append_object",
    "engine/learning/page.py: _is_going_on": "only the lock",
    "engine/learning/spool.py: SelfPlayGame.to_bytes": "to memory",
    "engine/learning/spool.py: Spool.add": "overwrites what a full disk left",
    "engine/learning/store.py: Store.__init__": "only the lock",
    "engine/learning/store.py: Store.keep_network": "a whole file gets another name",
    "engine/learning/store.py: Store.tidy": "a whole shard gets another name",
    "engine/learning/store.py: _set_aside": "a whole file gets another name",
    "engine/matches/results.py: MatchJournal.__init__": "a journal for append_object",
    "engine/matches/results.py: write_journal": "a journal for append_object",
    "engine/pictures.py: picture": "to memory",
    "engine/servers/runner.py: Reporter.__init__": "lines of events, which yomi does not read",
    "native/build_kernels.py: build": "to a new folder",
    "native/cache_folder.py: _link_files": "links to kernels",
    "native/cache_folder.py: locked": "only the lock",
    "native/cache_folder.py: write_file": "the writer of native, which imports nothing of nets",
    "nets/data/katago_rows.py: _write": "to memory",
    "nets/data/shards.py: write_shard": "to a new folder that gets its name at the end",
    "nets/files.py: append_lines": "the writer",
    "nets/files.py: atomic_writer": "the writer",
    "nets/files.py: draft_folder": "the writer",
    "nets/files.py: sync_file": "flushes a file",
    "nets/training/progress.py: plot_curves": "to memory",
    "nets/training/weights.py: save_checkpoint": "to memory",
}
MODES = {"open": 1, "fdopen": 1, "ZipFile": 1}  # place of the mode, one less for methods of paths
WRITERS = {
    "write_text",
    "write_bytes",
    "savefig",
    "tofile",
    "FileHandler",
    "NamedTemporaryFile",
    "mkstemp",
    "symlink_to",
}
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


def writing_functions(tree: ast.AST, name: str = "") -> Iterator[str]:
    """Yield the names of functions and classes with such a call."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{name}.{node.name}".strip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else name
        if isinstance(node, ast.Call) and written(node):
            yield name or "the module"
        if isinstance(node, ast.ClassDef) and any("FileHandler" in ast.unparse(base) for base in node.bases):
            yield inner
        yield from writing_functions(node, inner)


def test_all_files_are_written_by_the_one_writer() -> None:
    found = set()
    for path in (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")):
        if path.resolve() == path:  # yomi/engine and the others are links
            found |= {
                f"{path.relative_to(ROOT)}: {name}" for name in writing_functions(ast.parse(path.read_text("utf-8")))
            }
    assert found == set(ALLOWED)


def test_the_check_sees_the_kinds_of_writing() -> None:
    lines = (
        'open(p, "w")',
        'p.open("ab")',
        'open(p, mode="x")',
        "p.write_text(t)",
        "np.save(p, a)",
        "shutil.copy(a, b)",
        "os.replace(a, b)",
        'zipfile.ZipFile(p, "w")',
        "open(p, mode)",
        "os.open(p, os.O_WRONLY)",
    )
    assert [line for line in lines if list(writing_functions(ast.parse(line))) != ["the module"]] == []
    lines = (
        "open(p)",
        'p.open("rb")',
        'open(p, encoding="utf-8")',
        "webbrowser.open(page)",
        "os.open(p, os.O_RDONLY)",
        'text.replace("a", "b")',
    )
    assert [line for line in lines if list(writing_functions(ast.parse(line)))] == []
