"""Where games come from: files, folders of files, and collections of one SGF a line, compressed or not."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from nets.errors import NetworkError
from nets.files import source_digest


def find_files(paths: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
    """Return files as they are and the files of folders that end in one of `suffixes`, sorted.

    Raises:
        NetworkError: a path that is not there, or nothing found.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.name.lower().endswith(tuple(suffixes)))
        elif path.exists():
            found.append(path)
        else:
            raise NetworkError(f"{path}: no such file, expected game records")
    if not found:
        raise NetworkError(f"{paths[0]}: no records found, expected files that end in {', '.join(suffixes)}")
    return found


def named(path: Path) -> str:
    """Return how a manifest tells a file: its name, and the beginning of its digest.

    Raises:
        NetworkError: it cannot be read.
    """
    return f"{path.name} {source_digest(path)[:16]}"


def open_file(path: Path) -> IO[bytes]:
    """Open a file that may be compressed.

    Raises:
        NetworkError: it cannot be opened.
    """
    try:
        suffix = path.suffix.lower()
        if suffix == ".xz":
            return cast(IO[bytes], lzma.open(path, "rb"))
        return cast(IO[bytes], gzip.open(path, "rb")) if suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror or error}") from None


SGF_SUFFIXES = (".sgf", ".sgfs", ".sgfs.xz", ".sgfs.gz", ".sgf.gz")


def sgf_texts(path: Path) -> Iterator[bytes]:
    """Yield the texts of a file, which hold games: each line of a collection (.sgfs), else the whole file.

    Raises:
        NetworkError: the file cannot be read, or its compression is broken.
    """
    try:
        with open_file(path) as stream:
            if ".sgfs" in map(str.lower, path.suffixes):
                yield from (line for line in stream if line.strip())
            else:
                yield stream.read()
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise NetworkError(f"{path}: {error}: expected a whole file") from None
