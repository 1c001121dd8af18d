"""Where games come from: files, folders of files, and collections of one SGF a line, compressed or not."""

from __future__ import annotations

import gzip
import io
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


MAX_TEXT = 1 << 30
"""Bytes of a text: a compressed file may expand to a thousand times its size."""
_PART = 1 << 20
SGF_SUFFIXES = (".sgf", ".sgfs", ".sgfs.xz", ".sgfs.gz", ".sgf.gz")


def _expect_size(path: Path, size: int) -> None:
    """Check that a text is not larger than MAX_TEXT."""
    if size > MAX_TEXT:
        raise NetworkError(f"{path}: a text of more than {MAX_TEXT} bytes found, expected smaller ones")


def sgf_texts(path: Path) -> Iterator[bytes]:
    """Yield the texts of a file, which hold games: each line of a collection (.sgfs), otherwise the whole file.

    Raises:
        NetworkError: the file cannot be read, its compression is broken, or a text is larger than MAX_TEXT.
    """
    try:
        with open_file(path) as stream:
            if ".sgfs" in map(str.lower, path.suffixes):
                while line := stream.readline(MAX_TEXT + 1):
                    _expect_size(path, len(line))
                    if line.strip():
                        yield line
            else:
                text = io.BytesIO()
                while part := stream.read(_PART):  # read(MAX_TEXT) would allocate as much at once
                    text.write(part)
                    _expect_size(path, text.tell())
                yield text.getvalue()
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise NetworkError(f"{path}: {error}: expected a whole file") from None
