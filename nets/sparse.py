"""Sparse networks: the interface of a game's encoder, the network's file, and predictions in numpy.

A position has active rows of the first layer, and each legal move has rows of the move table. Data sets contain boards;
the caller passes the encoder that finds the rows, because this package knows no rules.

The file is safetensors: a header of JSON, whose `__metadata__` contains the record of `yomi.nets.metadata`, and the
tensors. They are the fields of `yomi.native.sparse.network.SparseNetwork`, except that `hidden` is [HIDDEN, V].
"""

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from yomi.errors import reraised
from yomi.nets.data.metrics import ILLEGAL, Judged
from yomi.nets.data.shards import Arrays
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import NetworkInfo
from yomi.nets.text import parse_json

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows of B positions, one after the other: A active rows and M legal moves in total."""

    active: npt.NDArray[np.int32]  # int[A]: rows of the first layer
    active_starts: npt.NDArray[np.int64]  # int[B + 1]: first active row of each position
    rows: npt.NDArray[np.int32]  # int[M, parts]: rows of the move table
    labels: npt.NDArray[np.int32]  # int[M]: policy index of each move, unique within a position
    starts: npt.NDArray[np.int64]  # int[B + 1]: first move of each position


class SparseEncoder(Protocol):
    """Finds the rows of a game's positions, and computes products for moves on a processor. Thread-safe."""

    inputs: int  # number of rows of the first layer
    max_active: int  # maximum number of active rows of a position
    # Number of rows of each move table. A move has one row in each; the tables are concatenated.
    tables: tuple[int, ...]

    def encode(self, levels: npt.NDArray[np.uint8], globals_: npt.NDArray[Any]) -> SparseRows:
        """Return the rows of positions. `levels` is [B, levels, N * N] as in data sets, and `globals_` [B, globals]."""

    def logits(
        self, units: FloatArray, table: FloatArray, bias: FloatArray, found: SparseRows, threads: int
    ) -> FloatArray:
        """Return each move's logit: units of its position, times the sum of the move's rows, plus their biases.

        Args:
            units: [B, P].
            table: [R, P], all move tables.
            bias: [R].
            found: the rows of the positions.
            threads: number of threads to use.
        """

    def gradients(
        self, units: FloatArray, table: FloatArray, found: SparseRows, slopes: FloatArray, threads: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients of units, table and bias, given `slopes` [M] of the logits. Arguments: see `logits`."""


# Returns the encoder of a feature set, or None. It must be a function that pickle can send by name to other processes.
FindEncoder = Callable[[str], SparseEncoder | None]


def no_encoder(feature_set: str) -> None:
    """Return None. This is the `FindEncoder` of games without an encoder."""


Array = npt.NDArray[Any]

METADATA = "__metadata__"
TYPES: dict[str, np.dtype[Any]] = {"I8": np.dtype("i1"), "I16": np.dtype("<i2"), "F32": np.dtype("<f4")}
_NAMES = {kind: name for name, kind in TYPES.items()}
_LENGTH = 8
MAX_HEADER = 1 << 20
# Units of the two layers before the value.
HIDDEN, LAST = 16, 32
# The units for the value, and those for moves, are multiples of this.
WIDTH_STEP = 128
# The integers for 1 in the first layer's sums and in its outputs, whose maximum is 1. yomi.native.sparse.network has
# the same constants; this module may not import it.
ONE, SQUARED_ONE = 256, 4096


# Tensors with one or more numbers for each row of the first layer.
ROWWISE = ("rows", "direct")


def looks_sparse(start: bytes) -> bool:
    """Return whether a file that begins with these bytes (at least 9) may be safetensors."""
    return 0 < int.from_bytes(start[:_LENGTH], "little") <= MAX_HEADER and start[_LENGTH : _LENGTH + 1] == b"{"


def write_sparse(tensors: Mapping[str, Array], info: NetworkInfo) -> bytes:
    """Return a network as the content of a file.

    Raises:
        NetworkError: the tensors are no sparse network's.
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
    # safetensors allows spaces at the end of the header. They align the tensors.
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
    with reraised(NetworkError, NetworkError, f"{path}: "):
        return NetworkInfo.from_props(header.get(METADATA, {}))


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
    with reraised(NetworkError, NetworkError, f"{path}: "):
        check_tensors(tensors)
    return tensors


def with_rows(tensors: Mapping[str, Array], rows: int) -> dict[str, Array]:
    """Return a network's tensors, in which the first layer has `rows` rows. New rows are zero."""
    # Rows that later versions add come last, so older files play as before.
    missing = max(0, rows - len(tensors["rows"]))
    padded = {name: np.pad(tensors[name], [(0, missing), *[(0, 0)] * (tensors[name].ndim - 1)]) for name in ROWWISE}
    return {**tensors, **padded}


def joined(values: Mapping[str, Array], moves: Mapping[str, Array]) -> dict[str, Array]:
    """Return a network with the position values of one network and the move policy of another.

    Raises:
        NetworkError: the networks have different rows.
    """
    found, expected = ([len(each[name]) for name in ("rows", "moves")] for each in (moves, values))
    if found != expected:
        raise NetworkError(f"{found[0]} rows and {found[1]} of moves found, expected {expected[0]} and {expected[1]}")
    # The two parts share no unit.
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
    """Check that the tensors are a sparse network's, finite, and of shapes that fit together.

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


def judge(tensors: Mapping[str, Array], encoder: SparseEncoder, columns: Arrays, policy_size: int) -> Judged:
    """Return the policy and value of positions. Moves that are not legal are ILLEGAL.

    Args:
        tensors: tensors of the network's file.
        encoder: encoder of the network's game.
        columns: columns of the batch, with levels and globals.
        policy_size: number of policy labels.
    """
    count = len(columns["levels"])
    found = encoder.encode(columns["levels"].reshape(count, 1, -1), columns["globals"])
    first = np.add.reduceat(tensors["rows"][found.active].astype(np.int32), found.active_starts[:-1], axis=0)
    direct = np.add.reduceat(tensors["direct"][found.active], found.active_starts[:-1])
    hidden_scale, moves_scale = (float(scale) * SQUARED_ONE for scale in tensors["scales"])
    units = _clipped_square((first + tensors["bias"]) / np.float32(ONE))
    width = tensors["hidden"].shape[1]
    hidden = units[:, :width] @ (tensors["hidden"].T * np.float32(hidden_scale)) + tensors["hidden_bias"]
    last = _clipped_square(hidden) @ tensors["last"] + tensors["last_bias"]
    logit = _clipped_square(last) @ tensors["out"][:-1] + tensors["out"][-1] + direct
    table = tensors["moves"] * np.float32(moves_scale)
    logits = encoder.logits(np.ascontiguousarray(units[:, width:]), table, tensors["move_bias"], found, 1)
    policy = np.full((count, policy_size), ILLEGAL, np.float32)
    policy[np.repeat(np.arange(count), np.diff(found.starts)), found.labels] = logits
    return Judged(policy, np.tanh(logit / 2.0).astype(np.float32))


def _clipped_square(sums: Array) -> FloatArray:
    return np.asarray(np.square(sums.clip(0.0, 1.0)), np.float32)
