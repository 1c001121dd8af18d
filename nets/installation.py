"""The packages in yomi's extras, and the command that installs them."""

import importlib.util
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from yomi.errors import LineError
from yomi.language import tr

# Commands name the packages, not "yomi-engine[train]": pip does not know that name if yomi came from a folder, a wheel
# or a repository, or was never installed.
DISTRIBUTION = "yomi-engine"
ROOT = Path(__file__).resolve().parent.parent
# The extra that contains a package which only some commands need.
EXTRA_OF = {
    **dict.fromkeys(("onnx", "onnxruntime"), "onnx"),
    "tensorrt": "tensorrt",
    "pycuda": "pycuda",
    **dict.fromkeys(("torch", "onnxscript"), "train"),
    "tensorboard": "tensorboard",
    "matplotlib": "plot",
    "shtab": "completion",
    **dict.fromkeys(("fastapi", "uvicorn", "pydantic", "starlette", "segno"), "web"),
    "ray": "cluster",
}


class MissingPackageError(LineError):
    """A package that only some commands need is missing. The message contains the command that installs it."""


def require_package(package: str, use: str) -> None:
    """Raise MissingPackageError if a package that `use` needs is missing."""
    if importlib.util.find_spec(package) is None:
        raise MissingPackageError(missing_line(package, use))


def pip_command(*words: str) -> str:
    # A command that the user can paste into a shell.
    python = Path(sys.executable).name
    if shutil.which(python) != sys.executable:  # that environment is not the active one
        python = sys.executable
    begin = [python, "-m", "pip"]
    if importlib.util.find_spec("pip") is None:  # an environment of uv's
        words = (*words[:1], "--python", sys.executable, *words[1:])
        begin = ["uv", "pip"]
    return " ".join(f'"{word}"' if re.search(r"[\s<>=;*\[\]]", word) else word for word in (*begin, *words))


def extra_command(extra: str, *, remove: Sequence[str] = (), leave_out: Sequence[str] = ()) -> str:
    """Return the command that removes clashing packages, and installs an extra without the packages `leave_out`."""
    wanted = [each for each in _requirements(extra) if re.split(r"[\s\[<>=~;!]", each)[0] not in leave_out]
    command = pip_command("install", *wanted)
    return f"{pip_command('uninstall', '-y', *remove)} && {command}" if remove else command


def missing_line(package: str, use: str, extra: str = "") -> str:
    """Return one line for the user: `use` needs a missing `package`, and a command installs it.

    `extra` is the extra to install; the default is in EXTRA_OF.
    """
    command = extra_command(extra or EXTRA_OF[package])
    return tr("{use} needs {package}, which is not installed: {command}", use=use, package=package, command=command)


def _requirements(extra: str) -> list[str]:
    """Return an extra's packages, from the checkout's pyproject.toml or from the installed distribution."""
    import importlib.metadata  # takes 20 ms, and every start of yomi imports this module

    project = ROOT / "pyproject.toml"
    if project.is_file():
        import tomllib

        return list(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"][extra])
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        # yomi's packages were copied without pyproject.toml.
        raise RuntimeError(f"{ROOT}: no pyproject.toml found, expected one where yomi is not installed") from None
    parts = [line.partition(";") for line in lines]
    return [requirement.strip() for requirement, _, marker in parts if re.search(rf"extra\s*==\s*.{extra}\b", marker)]
