"""Makes data sets from game files: finds and reads the files, and divides rows into shards."""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from yomi.engine.datasets.shards import ShardWork
from yomi.engine.game import Game, Say
from yomi.engine.records import MAX_RECORD_BYTES, LeftOut, refuse_special
from yomi.errors import reraised
from yomi.native.jit import CACHE_DIRECTORY, kernel_key
from yomi.nets.data.shards import SPLITS, shard_name
from yomi.nets.errors import NetworkError
from yomi.nets.files import name_with_digest

GO_SUFFIXES = (".sgf", ".gib", ".ngf", ".sgfs", ".sgfs.xz", ".sgfs.gz", ".sgf.gz")
_PART = 1 << 20
MAKE = ShardWork("dataset make")
# Split, board size, name and rows of a shard.
Planned = tuple[str, int, str, npt.NDArray[Any]]


def find_files(paths: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
    """Return the given files, and the files in folders that end in one of `suffixes`, sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.name.lower().endswith(tuple(suffixes)))
        elif path.exists():
            found.append(path)
        else:
            raise NetworkError(f"{path}: no such file, expected game records")
    if not found:
        place = paths[0] if paths else "an empty list"
        raise NetworkError(f"{place}: no records found, expected files that end in {', '.join(suffixes)}")
    return found


def readable_files(
    paths: Sequence[Path], suffixes: Sequence[str], left_out: LeftOut
) -> tuple[list[Path], tuple[str, ...]]:
    """Return the readable files of `find_files`, with descriptions for a manifest. Others go to `left_out`."""
    names: dict[Path, str] = {}
    for path in find_files(paths, suffixes):
        try:
            refuse_special(path)
            names[path] = name_with_digest(path)
        except OSError as error:
            left_out.add(path, error.strerror)
        except NetworkError as error:
            left_out.add(path, error)
    if not names:
        raise NetworkError(left_out.faults[0])
    return list(names), tuple(names.values())


def open_file(path: Path) -> IO[bytes]:
    """Open a file, decompressing .xz and .gz."""
    with reraised(OSError, NetworkError, f"{path}: "):
        suffix = path.suffix.lower()
        if suffix == ".xz":
            return cast(IO[bytes], lzma.open(path, "rb"))
        return cast(IO[bytes], gzip.open(path, "rb")) if suffix == ".gz" else path.open("rb")


def _expect_size(path: Path, size: int) -> None:
    if size > MAX_RECORD_BYTES:
        raise NetworkError(f"{path}: a text of more than {MAX_RECORD_BYTES} bytes found, expected smaller ones")


def sgf_texts(path: Path) -> Iterator[bytes]:
    """Yield the texts that hold games: each line of a collection (.sgfs), otherwise the whole file."""
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


def held_out(count: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return a mask [count] of the games held out for tests: at least one if there are two or more."""
    number = round(count * share)
    if share > 0.0 and count > 1:
        number = min(max(number, 1), count - 1)
    # Whole games are held out, so that no test position has a neighbor in training.
    held = np.zeros(count, np.bool_)
    held[np.random.default_rng(seed).permutation(count)[:number]] = True
    return held


def plan_shards(
    rows: npt.NDArray[Any], held: npt.NDArray[np.bool_], sizes: npt.NDArray[np.integer[Any]], shard_rows: int
) -> list[Planned]:
    """Divide the rows of a data set into shards.

    Args:
        rows: rows of the whole set in their final order [n].
        held: mask of the rows that are held out [n].
        sizes: board size of each row [n].
        shard_rows: rows of each shard, except the last of its split and size.
    """
    planned = []
    for split in SPLITS:
        for size in np.unique(sizes).tolist():
            chosen = rows[(sizes == size) & (held == (split == "test"))]
            for number, begin in enumerate(range(0, len(chosen), shard_rows)):
                planned.append((split, size, shard_name(split, size, number), chosen[begin : begin + shard_rows]))
    return planned


def announce_kernels(game: Game[Any, Any], say: Say) -> None:
    """Compile the game's kernels. Tell the user if kernels for data sets must be compiled later."""
    game.compile(say)
    if not (CACHE_DIRECTORY / f"datasets-{kernel_key('datasets')}").exists():
        say("the first data set compiles kernels of its own, which takes about half a minute")
