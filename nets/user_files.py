"""Files of the user: objects from Python files, named as `FILE.py:NAME`, and copies of files that determine a run."""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from yomi.errors import LineError, reraised
from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.nets.text import parse_json

FOLDER, INDEX = "files", "files.json"
ACCEPT = "--accept-changed"


class PythonFileError(LineError, ValueError):
    """A Python file does not exist, or contains nothing of the wanted name."""


_DEFINED: dict[str, Any] = {}  # the functions of `find_function`


def is_in_file(name: str) -> bool:
    return ".py:" in name


def load_object(name: str, folder: Path = Path(".")) -> Any:
    """Execute FILE.py, relative to `folder`, and return its object NAME.

    The file's own exceptions are not caught, because its author needs the traceback.

    Raises:
        PythonFileError: there is no such file or name.
    """
    path, _, wanted = name.rpartition(":")
    return load_from_source(read_source(name, folder), str(folder / path), wanted)


def find_function(name: str) -> Any:
    """Return the function `FILE.py:NAME`, with an absolute path. The file is executed once.

    Raises:
        PythonFileError: there is no such file or function.
    """
    if name not in _DEFINED:
        define_function(name, read_source(name))
    return _DEFINED[name]


def define_function(name: str, source: str) -> None:
    """Define the function `FILE.py:NAME` from the text of the file. Raises PythonFileError if the text lacks it."""
    path, _, wanted = name.rpartition(":")
    found = load_from_source(source, path, wanted)
    if not callable(found):
        raise PythonFileError(f"{name}: {found!r} found, expected a function")
    _DEFINED[name] = found


def check_function(name: str) -> str:
    """Return `FILE.py:NAME` with its path made absolute. Raises ValueError if there is no such function."""
    if not is_in_file(name):
        raise ValueError(f"expected FILE.py:NAME, found {name!r}")
    name = os.path.abspath(name)
    find_function(name)
    return name


def read_source(name: str, folder: Path = Path(".")) -> str:
    """Return the text of FILE.py, relative to `folder`. Raises PythonFileError if it cannot be read."""
    path = folder / name.rpartition(":")[0]
    if not path.is_file():
        raise PythonFileError(f"{path}: no such file, expected a Python file")
    return path.read_text(encoding="utf-8")


def load_from_source(source: str, path: str, wanted: str) -> Any:
    """Execute the text of a file and return its object `wanted`. Raises PythonFileError if it has none."""
    # numba names machine code after modules: the names of different files must differ.
    module = ModuleType(f"yomi_user_{Path(path).stem}_{hashlib.sha256(source.encode()).hexdigest()[:8]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses look for it
    exec(compile(source, path, "exec"), module.__dict__)
    if not hasattr(module, wanted):
        own = ", ".join(key for key in vars(module) if not key.startswith("_"))
        raise PythonFileError(f"{path}: no {wanted} found, expected one of its names: {own}")
    return getattr(module, wanted)


# -- copies in the folder of a run -------------------------------------------------------------------------------------


def keep_files(folder: Path, files: Mapping[str, tuple[str, bytes]], *, accept_changed: bool) -> None:
    """Copy files into the folder of a run, or compare them with the copies of its last start.

    Args:
        folder: of the run.
        files: name and content by use.
        accept_changed: continue with other files. The earlier copies stay.

    Raises:
        NetworkError: a file has changed, or the index of the copies is damaged.
        OSError: a file cannot be written.
    """
    place = folder / FOLDER / INDEX
    wanted = {use: f"{name} {hashlib.sha256(content).hexdigest()}" for use, (name, content) in files.items()}
    if place.exists():
        try:
            found = parse_json(place.read_bytes())
            digests = {use: str(text).split()[-1] for use, text in found.items()}
        except (ValueError, AttributeError, IndexError):
            raise NetworkError(f"{place}: damaged: restore it from a copy, or use a new folder") from None
        for use in sorted({*found, *wanted}):
            if wanted.get(use, "none").split()[-1] != digests.get(use, "none") and not accept_changed:
                raise NetworkError(
                    f"{folder}: the {use} was {found.get(use, 'none')}, now {wanted.get(use, 'none')}: "
                    f"use the unchanged file or a new folder, or add {ACCEPT}"
                )
    if not wanted and not place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    for use, (name, content) in files.items():
        write_atomically(place.with_name(f"{wanted[use].split()[-1][:16]}-{name}"), content)
    write_atomically(place, (json.dumps(wanted, indent=1, ensure_ascii=False) + "\n").encode())


def content_of(path: Path) -> tuple[str, bytes]:
    """Return the name and the content of a file. Raises NetworkError."""
    with reraised(OSError, NetworkError, f"{path}: "):
        return path.name, path.read_bytes()
