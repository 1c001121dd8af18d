"""Objects from a user's own Python file, named as `FILE.py:NAME`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from yomi.nets.errors import LineError


class PythonFileError(LineError, ValueError):
    """There is no such file, or nothing of that name in it."""


def is_in_file(name: str) -> bool:
    return ".py:" in name


def load_object(name: str, folder: Path = Path(".")) -> Any:
    """Execute FILE.py, relative to `folder`, and return its NAME.

    The file's own exceptions are not caught, because its author needs the traceback.

    Raises:
        PythonFileError: there is no such file or name.
    """
    path, _, wanted = name.rpartition(":")
    return load_from_source(read_source(name, folder), str(folder / path), wanted)


def read_source(name: str, folder: Path = Path(".")) -> str:
    """Return the text of FILE.py, relative to `folder`. Raises PythonFileError if it cannot be read."""
    path = folder / name.rpartition(":")[0]
    if not path.is_file():
        raise PythonFileError(f"no file {path} found, expected one of Python")
    return path.read_text(encoding="utf-8")


def load_from_source(source: str, path: str, wanted: str) -> Any:
    """Execute the text of a file and return its object called `wanted`. Raises PythonFileError if it has none."""
    module = ModuleType(f"yomi_user_{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(source, path, "exec"), module.__dict__)
    if not hasattr(module, wanted):
        own = ", ".join(key for key in vars(module) if not key.startswith("_"))
        raise PythonFileError(f"{path}: no {wanted} found, expected one of its names: {own}")
    return getattr(module, wanted)
