"""The user's files that decide a run, such as its search: copies in the run's folder, with their SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.nets.text import parse_json

FOLDER, INDEX = "files", "files.json"
ACCEPT = "--accept-changed"


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
    """Return name and content of a file. Raises NetworkError."""
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}") from None
