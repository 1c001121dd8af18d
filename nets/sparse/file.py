"""The file of a sparse network: safetensors, with yomi's metadata in the header.

    8 bytes            length n of the header, lowest byte first
    n bytes            JSON: for each tensor its type, shape and place; `__metadata__` with the record of
                       yomi.nets.metadata
    the rest           the tensors, lowest bytes first

Any reader of safetensors knows such files. The tensors are the fields of yomi.native.sparse.network.SparseNetwork:
integers of 8 and 16 bits, scaled so that no sum overflows, and float32; `hidden` lies unit by unit, [HIDDEN, V].
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError
from yomi.nets.metadata import NetworkInfo
from yomi.nets.text import parse_json

Array = npt.NDArray[Any]

METADATA = "__metadata__"
TYPES: dict[str, np.dtype[Any]] = {"I8": np.dtype("i1"), "I16": np.dtype("<i2"), "F32": np.dtype("<f4")}
_NAMES = {kind: name for name, kind in TYPES.items()}
_LENGTH = 8
MAX_HEADER = 1 << 20
HIDDEN, LAST = 16, 32
"""Units of the two layers before the value."""
WIDTH_STEP = 128
"""The units for the value, and those for moves, are multiples of this."""
ONE, SQUARED_ONE = 256, 4096
"""The integers for 1 in the first layer's sums and in its outputs, whose maximum is 1. yomi.native.sparse.network has
the same constants; this module may not import it.
"""


ROWWISE = ("rows", "direct")
"""Tensors with one or more numbers for each row of the first layer."""


def looks_sparse(start: bytes) -> bool:
    """Whether a file that begins with these bytes, at least 9, may be safetensors."""
    return 0 < int.from_bytes(start[:_LENGTH], "little") <= MAX_HEADER and start[_LENGTH : _LENGTH + 1] == b"{"


def write_sparse(tensors: Mapping[str, Array], info: NetworkInfo) -> bytes:
    """Return the content of a network's file.

    Raises:
        NetworkError: the tensors are not those of a sparse network.
    """
    check_tensors(tensors)
    header: dict[str, Any] = {METADATA: info.to_props()}
    place = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    parts = [np.ascontiguousarray(tensor).tobytes() for tensor in tensors.values()]
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *parts])


def read_info(path: Path) -> NetworkInfo:
    """Return the metadata of a network's file. The tensors are not read.

    Raises:
        NetworkError: the file is of another kind.
        OSError: it cannot be read.
    """
    header, _ = _read_header(path)
    try:
        return NetworkInfo.from_props(header.get(METADATA, {}))
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def read_sparse(path: Path) -> dict[str, Array]:
    """Return the tensors of a network.

    Raises:
        NetworkError: the file is cut short or broken, or not a sparse network.
        OSError: it cannot be read.
    """
    header, first = _read_header(path)
    data = np.fromfile(path, np.uint8, offset=first)
    tensors = {}
    for name, entry in header.items():
        if name == METADATA:
            continue
        try:
            kind, shape = TYPES[entry["dtype"]], tuple(operator.index(side) for side in entry["shape"])
            begin, end = (operator.index(place) for place in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise NetworkError(
                f"{path}: tensor {name} {entry!r} found, expected {', '.join(TYPES)} with its place"
            ) from None
        size = math.prod(shape) * kind.itemsize  # Python's integers do not wrap around
        if not (0 <= begin <= end <= len(data) and end - begin == size and min(shape, default=1) > 0):
            raise NetworkError(
                f"{path}: tensor {name} of {size} bytes at {begin} to {end} of {len(data)} found, expected all of it"
            )
        tensors[name] = data[begin:end].view(kind).reshape(shape)
    try:
        check_tensors(tensors)
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    return tensors


def with_rows(tensors: Mapping[str, Array], rows: int) -> dict[str, Array]:
    """Return a network's tensors with `rows` rows of the first layer. New rows are zero.

    Rows that later versions add come last, so older files play as before.
    """
    missing = max(0, rows - len(tensors["rows"]))
    padded = {name: np.pad(tensors[name], [(0, missing), *[(0, 0)] * (tensors[name].ndim - 1)]) for name in ROWWISE}
    return {**tensors, **padded}


def joined(values: Mapping[str, Array], moves: Mapping[str, Array]) -> dict[str, Array]:
    """Return a network with the values of one network and the moves of another. These parts share no unit.

    Raises:
        NetworkError: the networks have different rows.
    """
    found, expected = ([len(each[name]) for name in ("rows", "moves")] for each in (moves, values))
    if found != expected:
        raise NetworkError(f"{found[0]} rows and {found[1]} of moves found, expected {expected[0]} and {expected[1]}")
    first, second = values["hidden"].shape[1], moves["hidden"].shape[1]
    return {
        **values,
        "rows": np.concatenate([values["rows"][:, :first], moves["rows"][:, second:]], 1),
        "bias": np.concatenate([values["bias"][:first], moves["bias"][second:]]),
        "moves": moves["moves"],
        "move_bias": moves["move_bias"],
        "scales": np.array([values["scales"][0], moves["scales"][1]], np.float32),
    }


def check_tensors(tensors: Mapping[str, Array]) -> None:
    """Check that the tensors are those of a sparse network, finite, and of shapes that fit together.

    Raises:
        NetworkError: they are not. The message has no path.
    """
    byte, short, single = TYPES.values()
    inputs, value, policy, moves = (
        tensors[name].shape[axis] if name in tensors and tensors[name].ndim == 2 else 0
        for name, axis in (("rows", 0), ("hidden", 1), ("moves", 1), ("moves", 0))
    )
    expected = {
        "rows": (byte, (inputs, value + policy)),
        "bias": (short, (value + policy,)),
        "direct": (single, (inputs,)),
        "hidden": (short, (HIDDEN, value)),
        "hidden_bias": (single, (HIDDEN,)),
        "last": (single, (HIDDEN, LAST)),
        "last_bias": (single, (LAST,)),
        "out": (single, (LAST + 1,)),
        "moves": (byte, (moves, policy)),
        "move_bias": (single, (moves,)),
        "scales": (single, (2,)),
    }
    if set(tensors) != set(expected):
        raise NetworkError(f"tensors {', '.join(sorted(tensors))} found, expected {', '.join(sorted(expected))}")
    for name, (kind, shape) in expected.items():
        tensor = tensors[name]
        if tensor.dtype != kind or tensor.shape != shape:
            raise NetworkError(f"{name} {tensor.dtype} {tensor.shape} found, expected {kind} {shape}")
        if kind == single and not np.isfinite(tensor).all():
            raise NetworkError(f"{name} with numbers that are not finite found")
    if not value or not policy or value % WIDTH_STEP or policy % WIDTH_STEP:
        raise NetworkError(f"{value} and {policy} units found, expected multiples of {WIDTH_STEP}")


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header, and the position of the first tensor."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH), "little")
        text = stream.read(length) if length <= MAX_HEADER else b""
        size = stream.seek(0, 2)
    if not _LENGTH < length + _LENGTH <= size or length > MAX_HEADER:
        raise NetworkError(
            f"{path}: a header of {length} bytes in a file of {size} found, expected 1 to {MAX_HEADER} (safetensors)"
        )
    try:
        header = parse_json(text)
    except ValueError as error:
        raise NetworkError(f"{path}: a broken header found ({error}), expected one of safetensors") from None
    if not isinstance(header, dict) or not isinstance(header.get(METADATA, {}), dict):
        raise NetworkError(f"{path}: a header without tables found, expected one of safetensors")
    return header, _LENGTH + length
