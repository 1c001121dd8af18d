"""The format of data sets: a folder with a manifest and, for each shard, a folder of .npy files that are memory-mapped.

    manifest.json             feature set, options, sources
    train-19-00000/           a shard of positions on boards of one size, for training (test-...: held out)
        shard.json            split, board size, rows, CRC-32 of each array's content
        planes.npy ...        one array for each column that the set has, rows first (yomi.nets.data.columns)

Values are for the side to move, except in feature sets that encode colors (`aya-50`): there they are Black's. NaN in a
float column and -128 in `ownership` mean unknown. Positions are shuffled over the whole set when it is made.
"""

import contextlib
import json
import mmap
import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from yomi.nets.arrays import read_header
from yomi.nets.data.columns import COLUMNS, MOVES, OWN, POINTS, SHARES, Array, cast, kind_of
from yomi.nets.errors import NetworkError
from yomi.nets.files import naming, remove_drafts, sync_file, sync_folder, write_atomically
from yomi.nets.metadata import FeatureSet, feature_set
from yomi.nets.text import first_difference, parse_json
from yomi.system import patiently

Arrays: TypeAlias = Mapping[str, Array]

FORMAT = 1
SPLITS = ("train", "test")
ALWAYS = ("planes", "policy_moves", "policy_weights", "value")


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest, which describes a data set."""

    feature_set: str
    # How the set was made. A run resumes only with the same options.
    options: Mapping[str, Any] = field(default_factory=dict)
    # Name of each source with the first digits of its digest. A run resumes only with the same sources. A set without
    # digests can be read but not resumed.
    sources: tuple[str, ...] = ()

    @property
    def features(self) -> FeatureSet:
        return feature_set(self.feature_set)

    def to_json(self) -> str:
        record = {"format": FORMAT, "feature_set": self.feature_set, "sources": list(self.sources)}
        return json.dumps({**record, "options": dict(self.options)}, indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True)
class Column:
    """Position and form of an array inside its file. No file stays open."""

    # Mapping an array from these numbers takes a tenth of the time of reading its header.
    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def map(self) -> Array:
        """Return the array, memory-mapped. It holds a file descriptor while it exists."""
        with self.path.open("rb", buffering=0) as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return np.ndarray(self.shape, self.dtype, content, self.offset, self.strides)


@dataclass(frozen=True)
class Shard:
    path: Path
    split: str
    size: int  # board size N
    rows: int
    # CRC-32 of each column's content; empty for shards of early versions.
    crc: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def number(self) -> int:
        """The number at the end of the shard's name. Raises NetworkError if there is none."""
        number = self.path.name.rpartition("-")[2]
        if not number.isdecimal():
            raise NetworkError(f"{self.path}: a name without a number found, expected one such as train-09-00012")
        return int(number)

    def open(self) -> dict[str, np.memmap[Any, np.dtype[Any]]]:
        """Return the columns, memory-mapped.

        Raises:
            NetworkError: a file is broken or has another number of rows.
        """
        columns = {}
        for path in sorted(self.path.glob("*.npy")):
            try:
                with path.open("rb") as stream:
                    header = read_header(stream, path.stat().st_size)
                columns[path.stem] = np.memmap(path, header.dtype, "r", header.offset, header.shape)
            except OSError as error:
                raise NetworkError(f"{path}: {error.strerror or error}: expected an array") from None
            except NetworkError as error:
                raise NetworkError(f"{path}: {error}") from None
            if header.shape[:1] != (self.rows,):
                rows = header.shape[0] if header.shape else "no"
                raise NetworkError(f"{path}: {rows} rows found, expected {self.rows}")
        return columns

    def places(self, columns: Mapping[str, np.memmap[Any, np.dtype[Any]]]) -> dict[str, Column]:
        """Return the positions of columns that `open` has mapped."""
        return {
            name: Column(self.path / f"{name}.npy", array.dtype, array.shape, array.strides, array.offset)
            for name, array in columns.items()
        }


@dataclass(frozen=True)
class Dataset:
    """A data set to read. More shards may still be written to its folder."""

    folder: Path
    manifest: Manifest
    shards: tuple[Shard, ...]

    def rows(self, split: str) -> int:
        return sum(shard.rows for shard in self.shards if shard.split == split)


def shard_name(split: str, size: int, number: int) -> str:
    return f"{split}-{size:02d}-{number:05d}"


def open_dataset(folder: str | Path) -> Dataset:
    """Read the manifest and find the shards.

    Raises:
        NetworkError: there is no manifest, or it has another format.
    """
    folder = Path(folder)
    record = _read_json(folder / "manifest.json")
    if record.get("format") != FORMAT:
        raise NetworkError(f"{folder}: data set of format {record.get('format')!r} found, expected {FORMAT}")
    try:
        manifest = Manifest(str(record["feature_set"]), dict(record["options"]), tuple(map(str, record["sources"])))
    except (KeyError, TypeError, ValueError) as error:
        raise NetworkError(
            f"{folder}/manifest.json: {error} missing or broken, expected a data set's manifest"
        ) from None
    feature_set(manifest.feature_set)
    paths = (path.parent for path in sorted(folder.glob("*/shard.json")))
    return Dataset(folder, manifest, tuple(read_shard(path) for path in paths if not path.name.startswith(".")))


def read_shard(folder: Path) -> Shard:
    """Read a shard's shard.json.

    Raises:
        NetworkError: there is none, or it is broken.
    """
    path = folder / "shard.json"
    record = _read_json(path)
    try:
        crc = {str(name): int(value) for name, value in dict(record.get("crc32", {})).items()}
        shard = Shard(path.parent, str(record["split"]), int(record["size"]), int(record["rows"]), crc)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise NetworkError(f"{path}: {record!r} found, expected split, size and rows") from None
    if shard.split not in SPLITS:
        raise NetworkError(f"{path}: split {shard.split!r} found, expected one of {', '.join(SPLITS)}")
    return shard


def _read_json(path: Path) -> dict[str, Any]:
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}: expected a data set (made by yomi dataset make)") from None
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"{path}: broken JSON ({error})") from None
    if not isinstance(record, dict):
        raise NetworkError(f"{path}: {type(record).__name__} found, expected an object")
    return record


def begin_dataset(folder: str | Path, manifest: Manifest) -> Dataset:
    """Start a data set, or resume one that was made with the same options, and return it.

    Raises:
        NetworkError: the folder contains a data set that was made differently.
        OSError: it cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "manifest.json"
    if not path.exists():
        write_atomically(path, manifest.to_json().encode(), sync=True)
    elif path.read_bytes() != manifest.to_json().encode():
        found, wanted = _compared(open_dataset(folder).manifest), _compared(manifest)
        if found != wanted:
            name, was, now = first_difference("", found, wanted)
            raise NetworkError(f"{folder}: a data set with {name} {was} found, expected {now}, or a new folder")
    remove_drafts(folder)
    return open_dataset(folder)


def _compared(manifest: Manifest) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(manifest.to_json())
    return {**record, "sources": dict(enumerate(record["sources"]))}


def write_shard(folder: Path, name: str, split: str, size: int, columns: Arrays) -> Shard:
    """Write a shard of positions of one board size. It is on the disk when this function returns.

    Raises:
        OSError: it cannot be written; nothing of it remains.
    """
    rows = len(columns["planes"])
    # The shard gets its name when it is whole and on the disk. After a kill or a power cut every shard can be read, and
    # the same command continues with the first one that is missing.
    part = folder / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    crc: dict[str, int] = {}
    try:
        for column, array in columns.items():
            content = cast(column, array)
            crc[column] = zlib.crc32(content.data)
            with naming(folder / name / f"{column}.npy"), (part / f"{column}.npy").open("xb") as stream:
                np.save(stream, content)
        record = {"split": split, "size": size, "rows": rows, "crc32": crc}
        write_atomically(part / "shard.json", (json.dumps(record) + "\n").encode())
        for path in part.iterdir():
            sync_file(path)
        sync_folder(part)
        patiently(lambda: os.rename(part, folder / name))
        sync_folder(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            shutil.rmtree(part)
        raise
    return Shard(folder / name, split, size, rows, crc)


def check_rows(dataset: Dataset, kind: str, features: str, size: int) -> None:
    """Check that all rows fit a network with these features, for boards of `size` (0: any). Raises NetworkError."""
    found = dataset.manifest.feature_set
    if found != features:
        raise NetworkError(
            f"{dataset.folder}: feature set {found} found, expected {features} for network {kind}: "
            "set another network.kind, or use other rows"
        )
    for side in sorted({shard.size for shard in dataset.shards if shard.rows} - {size} if size else ()):
        raise NetworkError(
            f"{dataset.folder}: rows of {side}x{side} boards found, expected {size}x{size} for network {kind}: "
            f"set network.board_size = {side}, or use other rows"
        )


def check_columns(datasets: Sequence[Dataset], needed: Mapping[str, str]) -> None:
    """Check that some rows have the columns that settings need. Raises NetworkError. `needed` is setting -> column."""
    found = {path.stem for dataset in datasets for shard in dataset.shards for path in shard.path.glob("*.npy")}
    for setting in (each for each in needed if needed[each] not in found):
        why = f"rows without {needed[setting]} found, expected it for {setting}: remove that setting, or use other rows"
        raise NetworkError(f"{', '.join(str(dataset.folder) for dataset in datasets)}: {why}")


def widths(features: FeatureSet, size: int) -> dict[str, int]:
    """Return the row length of each column, as far as feature set and board size determine it."""
    area = size * size
    return {
        "planes": (features.bits * area + 7) // 8,
        "levels": features.levels * area,
        "globals": features.globals,
        "ownership": area,
    }


def check_shard(shard: Shard, features: FeatureSet, policy_size: int) -> None:
    """Read a whole shard, and check its layout and its numbers. `check_content` compares its checksums.

    Raises:
        NetworkError: it is damaged.
    """
    columns = shard.open()
    check_layout(shard, columns, features)
    check_numbers(shard, columns, policy_size)


def check_content(shard: Shard) -> None:
    """Compare a shard's arrays with their checksums.

    Raises:
        NetworkError: they differ.
    """
    # Shards of early versions have no checksums.
    columns = shard.open()
    for name, value in shard.crc.items():
        if name not in columns:
            raise NetworkError(f"{shard.path}: no column {name} found, expected {', '.join(shard.crc)}")
        if zlib.crc32(np.ascontiguousarray(columns[name]).data) != value:
            raise NetworkError(f"{shard.path}/{name}.npy: damaged content found, expected CRC-32 {value:08x}")


def check_layout(shard: Shard, columns: Arrays, features: FeatureSet) -> None:
    """Check that a shard has the columns of its features, with the right types and widths.

    Raises:
        NetworkError: it does not.
    """
    expected = widths(features, shard.size)
    needed = [*ALWAYS, *(name for name in ("levels", "globals") if expected[name])]
    if missing := [name for name in needed if name not in columns]:
        raise NetworkError(f"{shard.path}: columns without {', '.join(missing)} found, expected them")
    for name, array in columns.items():
        kind = kind_of(name)
        if kind is None:
            known = f"{', '.join(COLUMNS)}, or {OWN}..."
            raise NetworkError(f"{shard.path}: column {name!r} found, expected one of {known}")
        if array.dtype != kind.dtype:
            raise NetworkError(f"{shard.path}/{name}: {array.dtype} found, expected {kind.dtype.__name__}")
        width = shard.size**2 if kind.form == POINTS else expected.get(name)
        if width is not None and array.shape[1:] != (width,):
            raise NetworkError(f"{shard.path}/{name}: shape {array.shape} found, expected {width} a row")
        if array.ndim != kind.axes:
            raise NetworkError(f"{shard.path}/{name}: shape {array.shape} found, expected another number of axes")
    for moves in _named(columns, MOVES):
        weights = moves.removesuffix("moves") + "weights"
        if weights not in columns or columns[moves].shape != columns[weights].shape:
            raise NetworkError(f"{shard.path}: {moves} and {weights} of different shapes found, expected the same")


def _named(columns: Arrays, form: str) -> list[str]:
    kinds = {name: kind_of(name) for name in columns}
    return [name for name, kind in kinds.items() if kind is not None and kind.form == form]


def check_numbers(shard: Shard, columns: Arrays, policy_size: int) -> None:
    """Check the values and policies of a shard, or of some of its rows.

    Raises:
        NetworkError: a number is outside its range.
    """
    for name in _named(columns, SHARES):
        weights = columns[name].astype(np.float32)
        if not (np.isfinite(weights).all() and (weights >= 0.0).all() and (weights.sum(1) < 1.01).all()):
            raise NetworkError(f"{shard.path}/{name}: shares beyond 0 to 1 found")
    for name in _named(columns, MOVES):
        if (columns[name] >= policy_size).any():
            raise NetworkError(f"{shard.path}/{name}: an index from {policy_size} on found, expected less")
    for name, kind in COLUMNS.items():
        if kind.is_bounded and name in columns and (np.abs(columns[name].astype(np.float32)) > 1.0).any():
            raise NetworkError(f"{shard.path}/{name}: a number beyond -1 to 1 found")
