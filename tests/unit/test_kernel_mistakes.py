"""What is said of a mistake in a kernel: by numba where it knows the line, by us where it does not."""

import ast
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from yomi.native import precompile as warmup

LINE = "    total = half(word.number, 2.0)"
KERNELS = f"""
import numpy as np
from yomi.native.jit import inlined, kernel

@inlined
def half(number, share):
    return number / share

@kernel
def inner(word):
{LINE}
    return total

@kernel
def outer(words):
    return inner(words[0])

def compile_outer():
    outer(np.zeros(1, np.dtype([("number", np.float64)])))
"""
RUN = """
import typecheck
from yomi.native.kernel_groups import GROUPS, Group

def compile_edited():
    from yomi.native.edited import compile_outer
    compile_outer()

GROUPS["edited"] = Group(compile_edited, (), 1.0)
typecheck.main(["edited"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    total = half(word.number, 2.0)", ""),
        (LINE.replace("half", "hafl"), "name 'hafl' is not defined"),
        (LINE.replace(", 2.0", ""), "missing a required argument: 'share'"),
        (LINE.replace("number", "numbre"), "KeyError: 'numbre'"),
        (LINE.replace("number", "number[0]"), "No implementation of function"),
        (LINE.replace("= half", "= = half"), "SyntaxError"),
    ],
)
def test_the_line_that_was_edited_is_named(line: str, said: str, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "go", "shogi", "tree", "forward", "datasets", "cuda")
    package = tmp_path / "yomi"
    shutil.copytree(warmup.ROOT / "native", package / "native", ignore=ignored)
    for path in (warmup.ROOT / "yomi").glob("*.py"):
        shutil.copy(path, package)
    shutil.copy(Path(__file__).parents[1] / "typecheck.py", tmp_path)
    source = package / "native" / "edited.py"
    text = KERNELS.replace(LINE, line)
    source.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "YOMI_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", RUN]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    if not said:
        assert (found.returncode, found.stderr) == (0, "")
        return
    assert found.returncode == 1
    number = text[: text.index(line)].count("\n") + 1
    assert found.stderr.startswith(f"{source}:{number}: {line.strip()}\n"), found.stderr
    assert said in found.stderr


def test_one_mistake_ends_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = f"raise SystemExit('noise\\n{warmup.MISTAKE}board.py:7: x = y\\nNameError: y')"
    scripts = iter(["import time; time.sleep(600)", failing])
    popen = subprocess.Popen
    started: list[subprocess.Popen[bytes]] = []

    def start(_: list[str], **how: object) -> subprocess.Popen[bytes]:
        started.append(popen([sys.executable, "-c", next(scripts)], **how))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(subprocess, "Popen", start)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^compiling failed: board.py:7: x = y\nNameError: y$"):
        warmup.compile_names(["go"], lambda line: None)
    assert time.monotonic() - begin < 60
    assert all(process.poll() is not None for process in started)


SOURCES = [
    path for folder in ("engine", "native", "nets", "bench", "tests") for path in (warmup.ROOT / folder).rglob("*.py")
]
MAKERS = ("array", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like")
FORMER_WAIVERS = """
@allocating_kernel
def decides_about_drop(pos, history, move):
    positions = np.empty(3, POSITION_DTYPE)
    promoted, waived, later = positions[0], positions[1], positions[2]
    copy(promoted, pos)
"""


def decorators(function: ast.FunctionDef) -> set[str]:
    """Return the names of a function's decorators."""
    found = (node.func if isinstance(node, ast.Call) else node for node in function.decorator_list)
    return {ast.unparse(node).rpartition(".")[2] for node in found}


def functions(tree: ast.AST, *kinds: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and decorators(node) & set(kinds):
            yield node


def makes_records(node: ast.AST) -> bool:
    """Return whether an expression allocates an array that may be one of records: a type of numpy has no records."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("astype", "copy"):
        return True
    if ast.unparse(node.func.value) != "np" or node.func.attr not in MAKERS:
        return False
    kinds = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    is_like = node.func.attr.endswith("_like") or node.func.attr == "array"
    return is_like if not kinds else not any(ast.unparse(kind).startswith("np.") for kind in kinds)


def records_of_own_arrays(source: str, inlined: set[str]) -> list[int]:
    """Return the lines of kernels that do more with an array of records of their own than pass it to a kernel.

    Args:
        source: text of a module.
        inlined: names of kernels that become part of their callers before arrays are freed (`inlined_early`).
    """
    faults = []
    for function in functions(ast.parse(source), "allocating_kernel", "inlined_early"):
        parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
        own: set[str] = set()

        def is_own(node: ast.AST, own: set[str] = own) -> bool:
            return makes_records(node) or (isinstance(node, ast.Name) and node.id in own)

        for _ in range(3):  # names of names
            for node in ast.walk(function):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        pairs = [(target, node.value)]
                        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                            pairs = list(zip(target.elts, node.value.elts, strict=True))
                        own |= {name.id for name, value in pairs if isinstance(name, ast.Name) and is_own(value)}
        for node in ast.walk(function):
            parent = parents.get(node)
            if not is_own(node) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                continue
            if isinstance(parent, ast.Tuple):
                parent = parents[parent]
            is_call = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func is not node
            is_passed = is_call and ast.unparse(parent.func) not in inlined and ast.unparse(parent.func).islower()
            is_size = isinstance(parent, ast.Attribute) and parent.attr in ("shape", "size")
            if not (is_passed or is_size or isinstance(parent, ast.Assign)):
                faults.append(node.lineno)
    return faults


def test_no_kernel_takes_records_out_of_an_array_of_its_own() -> None:
    """After its last use numba frees an array; the use of a record does not count."""
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    kernels = {path: text for path, text in texts.items() if "allocating_kernel" in text or "inlined_early" in text}
    inlined = {f.name for text in kernels.values() for f in functions(ast.parse(text), "inlined_early")}
    faults = {path: lines for path, text in kernels.items() if (lines := records_of_own_arrays(text, inlined))}
    assert not faults, "records may outlive their array: pass the array to another kernel"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (FORMER_WAIVERS, [5, 5, 5]),
        ("@allocating_kernel\ndef f(pos):\n    play(np.empty(2, DTYPE)[0])", [3]),
        ("@allocating_kernel\ndef f(pos):\n    a, b = np.empty(2, DTYPE), 1\n    c = a\n    return c[b:]", [5]),
        (
            "@allocating_kernel\ndef f(pos):\n    a = positions.copy()\n    early(a)\n    for b in a:\n        g(b)",
            [4, 5],
        ),
        ("@allocating_kernel\ndef f(pos):\n    a = Thread(np.zeros(2, DTYPE))", [3]),
        ("@allocating_kernel\ndef f(pos):\n    a = np.empty(9, np.uint16)\n    g(np.empty(2, DTYPE), a[0])", []),
    ],
)
def test_records_of_own_arrays_are_found(text: str, lines: list[int]) -> None:
    assert sorted(records_of_own_arrays(text, {"early"})) == lines
