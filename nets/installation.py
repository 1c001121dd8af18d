"""What yomi's extras install, and the command that does it however yomi itself came here.

The commands name the packages and not yomi: "yomi-engine[train]" means nothing to pip where yomi came from a folder, a
wheel or a repository, or runs from a folder without having been installed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

DISTRIBUTION = "yomi-engine"
ROOT = Path(__file__).resolve().parent.parent
EXTRA_OF = {
    **dict.fromkeys(("onnx", "onnxruntime"), "onnx"),
    "tensorrt": "tensorrt",
    "pycuda": "pycuda",
    **dict.fromkeys(("torch", "onnxscript"), "train"),
    "matplotlib": "plot",
    "shtab": "completion",
    **dict.fromkeys(("ray", "fsspec"), "cluster"),
}
"""The extra that brings a package which only some commands need."""


def pip_command(*words: str) -> str:
    """Return a command of pip for the environment that yomi runs in, as a shell takes it."""
    python = Path(sys.executable).name
    if shutil.which(python) != sys.executable:  # that environment is not the active one
        python = sys.executable
    begin = [python, "-m", "pip"]
    if importlib.util.find_spec("pip") is None:  # an environment of uv's
        words = (*words[:1], "--python", sys.executable, *words[1:])
        begin = ["uv", "pip"]
    return " ".join(f'"{word}"' if re.search(r"[\s<>=;*\[\]]", word) else word for word in (*begin, *words))


def extra_command(extra: str, *, remove: Sequence[str] = (), leave_out: Sequence[str] = ()) -> str:
    """Return the command that installs what an extra of yomi brings, after removing packages that it clashes with.

    Args:
        extra: its name.
        remove: packages to be removed.
        leave_out: packages of the extra that are not to be installed.
    """
    wanted = [each for each in _requirements(extra) if re.split(r"[\s\[<>=~;!]", each)[0] not in leave_out]
    command = pip_command("install", *wanted)
    return f"{pip_command('uninstall', '-y', *remove)} && {command}" if remove else command


def missing_line(package: str, use: str, extra: str = "") -> str:
    """Return one line that says that `use` needs a package, and what installs an extra that brings it.

    Args:
        package: what is missing.
        use: what needs it.
        extra: the extra; EXTRA_OF's where none is given.
    """
    return f"{use} needs {package}, which is not installed: {extra_command(extra or EXTRA_OF[package])}"


def _requirements(extra: str) -> list[str]:
    """Return what an extra brings, by the folder that this runs from, or by the installed distribution.

    Raises:
        RuntimeError: neither says it: yomi's packages were copied without pyproject.toml.
    """
    project = ROOT / "pyproject.toml"
    if project.is_file():
        return list(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"][extra])
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        raise RuntimeError(f"{ROOT}: no pyproject.toml found, expected one where yomi is not installed") from None
    parts = [line.partition(";") for line in lines]
    return [requirement.strip() for requirement, _, marker in parts if re.search(rf"extra\s*==\s*.{extra}\b", marker)]
