"""Find and read game files: files, folders, and collections with one SGF per line, compressed or not."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from yomi.engine.records import MAX_RECORD_BYTES, LeftOut, refuse_special
from yomi.nets.errors import NetworkError
from yomi.nets.files import source_digest


def find_files(paths: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
    """Return the given files, and the files in folders that end in one of `suffixes`, sorted.

    Raises:
        NetworkError: a path does not exist, or nothing is found.
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
    """Return the description of a file in a manifest: its name and the start of its digest.

    Raises:
        NetworkError: the file cannot be read.
    """
    return f"{path.name} {source_digest(path)[:16]}"


def readable_files(
    paths: Sequence[Path], suffixes: Sequence[str], left_out: LeftOut
) -> tuple[list[Path], tuple[str, ...]]:
    """Return the readable files of `find_files`, and their descriptions in a manifest. Others go to `left_out`.

    Raises:
        NetworkError: as `find_files`, or no file can be read.
    """
    names: dict[Path, str] = {}
    for path in find_files(paths, suffixes):
        try:
            refuse_special(path)
            names[path] = named(path)
        except OSError as error:
            left_out.add(path, error.strerror)
        except NetworkError as error:
            left_out.add(path, error)
    if not names:
        raise NetworkError(left_out.faults[0])
    return list(names), tuple(names.values())


def open_file(path: Path) -> IO[bytes]:
    """Open a file, decompressing .xz and .gz.

    Raises:
        NetworkError: the file cannot be opened.
    """
    try:
        suffix = path.suffix.lower()
        if suffix == ".xz":
            return cast(IO[bytes], lzma.open(path, "rb"))
        return cast(IO[bytes], gzip.open(path, "rb")) if suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror or error}") from None


GO_SUFFIXES = (".sgf", ".gib", ".ngf", ".sgfs", ".sgfs.xz", ".sgfs.gz", ".sgf.gz")
_PART = 1 << 20


def _expect_size(path: Path, size: int) -> None:
    if size > MAX_RECORD_BYTES:
        raise NetworkError(f"{path}: a text of more than {MAX_RECORD_BYTES} bytes found, expected smaller ones")


def sgf_texts(path: Path) -> Iterator[bytes]:
    """Yield the texts that hold games: each line of a collection (.sgfs), otherwise the whole file.

    Raises:
        NetworkError: the file cannot be read, its compression is broken, or a text is too long.
    """
    is_collection = ".sgfs" in map(str.lower, path.suffixes)
    try:
        refuse_special(path)
        with open_file(path) as stream:
            if not is_collection:
                text = io.BytesIO()
                while part := stream.read(_PART):  # read(MAX_RECORD_BYTES) would allocate as much at once
                    text.write(part)
                    _expect_size(path, text.tell())
                yield text.getvalue()
                return
            while line := stream.readline(MAX_RECORD_BYTES + 1):
                _expect_size(path, len(line))
                if line.strip():
                    yield line
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise NetworkError(f"{path}: {getattr(error, 'strerror', None) or error}: expected a whole file") from None
