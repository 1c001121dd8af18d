"""Reads ONNX files without onnx or onnxruntime: inputs, outputs, metadata, names of weight files, nodes and weights."""

import math
import mmap
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError

# Either library takes longer to import than a second start of the engine may take. An ONNX file is one protobuf
# message. The header is read from its outer fields; all others are skipped by their length. Field numbers: onnx.proto.
T = TypeVar("T")
Message: TypeAlias = memoryview
Attribute: TypeAlias = int | float | str | list[int] | npt.NDArray[Any]

_MODEL_IR_VERSION, _MODEL_GRAPH, _MODEL_METADATA = 1, 7, 14
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_STRING, _ATTRIBUTE_TENSOR, _ATTRIBUTE_INTS = 2, 3, 4, 5, 8
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_EXTERNAL_DATA = 1, 2, 8, 13
_FLOAT_DATA, _INT32_DATA, _INT64_DATA, _RAW_DATA, _DOUBLE_DATA, _DATA_LOCATION = 4, 5, 7, 9, 10, 14
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# ONNX's numbers of the element types that inputs, outputs and weights of networks may have.
ELEMENT_TYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}
# numpy's own limit in its version 1.
MAX_AXES = 32


class MalformedError(Exception):
    """The bytes are not the protobuf message that was expected."""


class UnsupportedGraphError(ValueError):
    """yomi's own kernels cannot compute a graph. onnxruntime perhaps can. The message contains the reason."""


# -- the header --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model."""

    name: str
    element_type: str  # numpy's name of the type; `unknown` if the file has none or an unusual one
    shape: tuple[int, ...] | None  # -1 for an open dimension; None if the file has no shape

    def __str__(self) -> str:
        dimensions = "?" if self.shape is None else "x".join("N" if size < 0 else str(size) for size in self.shape)
        return f"{self.name} ({self.element_type} {dimensions})"


@dataclass(frozen=True)
class OnnxHeader:
    """Inputs, outputs and metadata of an ONNX model, without inputs that only name a weight, as in old files."""

    input_tensors: tuple[TensorInfo, ...]
    output_tensors: tuple[TensorInfo, ...]
    metadata: dict[str, str]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.input_tensors)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(tensor.name for tensor in self.output_tensors)


def read_onnx_header(path: Path) -> OnnxHeader | None:
    """Return the header of an ONNX file, or None if the file is not one.

    Raises:
        OSError: the file cannot be read.
    """
    return _read(path, _header)


def data_files(path: Path) -> list[str]:
    """Return the sorted names of an ONNX file's weight files as the file spells them; empty for other files.

    Raises:
        OSError: the file cannot be read.
    """
    return _read(path, _data_files) or []


def _read(path: Path, read: Callable[[Message], T]) -> T | None:
    # An empty file cannot be mapped.
    if path.stat().st_size == 0:
        return None
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        try:
            return read(view)
        except (MalformedError, UnicodeDecodeError):
            return None
        finally:
            view.release()


def _header(model: Message) -> OnnxHeader | None:
    ir_version = 0
    inputs: list[TensorInfo] = []
    outputs: list[TensorInfo] = []
    weights: set[str] = set()
    metadata: dict[str, str] = {}
    nodes = 0
    for number, value, content in _fields(model):
        if number == _MODEL_IR_VERSION:
            ir_version = value
        elif number == _MODEL_GRAPH:
            for inner, _, part in _fields(content):
                if inner == _GRAPH_INPUT:
                    inputs.append(_tensor_info(part))
                elif inner == _GRAPH_OUTPUT:
                    outputs.append(_tensor_info(part))
                elif inner == _GRAPH_INITIALIZER:
                    weights.add(_text(part, _TENSOR_NAME))
                nodes += inner == _GRAPH_NODE
        elif number == _MODEL_METADATA:
            metadata[_text(content, 1)] = _text(content, 2)
    if not (0 < ir_version < 1000 and outputs and nodes):
        return None
    return OnnxHeader(tuple(each for each in inputs if each.name not in weights), tuple(outputs), metadata)


def _data_files(model: Message) -> list[str]:
    # External data can belong to initializers and to tensors inside nodes.
    tensors: list[Message] = []
    for graph in _parts(model, _MODEL_GRAPH):
        tensors += _parts(graph, _GRAPH_INITIALIZER)
        for node in _parts(graph, _GRAPH_NODE):
            for attribute in _parts(node, _NODE_ATTRIBUTE):
                tensors += _parts(attribute, _ATTRIBUTE_TENSOR)
    entries = [entry for tensor in tensors for entry in _parts(tensor, _TENSOR_EXTERNAL_DATA)]
    return sorted({_text(entry, 2) for entry in entries if _text(entry, 1) == "location"})


def _tensor_info(message: Message) -> TensorInfo:
    """Read name, type and shape of a ValueInfoProto (by TypeProto.Tensor and TensorShapeProto)."""
    kind = "unknown"
    shape: tuple[int, ...] | None = None
    for type_ in _parts(message, 2):
        for tensor in _parts(type_, 1):
            for number, value, content in _fields(tensor):
                if number == 1:
                    kind = ELEMENT_TYPES.get(value, "unknown")
                elif number == 2:
                    shape = tuple(_dimension(part) for part in _parts(content, 1))
    return TensorInfo(_text(message, 1), kind, shape)


def _dimension(message: Message) -> int:
    # A dimension has a size, or a name if it is open.
    return next((value for number, value, _ in _fields(message) if number == 1 and value > 0), -1)


# -- the graph ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Node:
    kind: str
    inputs: tuple[str, ...]  # an empty name is an omitted input
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """The nodes of a graph in the order of computation, and the weights by name."""

    nodes: tuple[Node, ...]
    weights: dict[str, npt.NDArray[Any]]


def read_onnx_graph(path: Path) -> OnnxGraph:
    """Read a whole ONNX file.

    Raises:
        NetworkError: the file is damaged, or weights are not finite.
        UnsupportedGraphError: weights are in another file or in an unsupported form. The message has no path.
        OSError: it cannot be read.
    """
    model = memoryview(path.read_bytes())
    nodes: list[Node] = []
    weights: dict[str, npt.NDArray[Any]] = {}
    try:
        for graph in _parts(model, _MODEL_GRAPH):
            for number, _, content in _fields(graph):
                if number == _GRAPH_NODE:
                    nodes.append(_node(content))
                elif number == _GRAPH_INITIALIZER:
                    name, array = _tensor(content)
                    weights[name] = array
    except (MalformedError, UnicodeDecodeError, struct.error):
        raise NetworkError(f"{path}: a damaged ONNX file found, expected a whole one") from None
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    return OnnxGraph(tuple(nodes), weights)


def _node(message: Message) -> Node:
    inputs = tuple(map(_decoded, _parts(message, _NODE_INPUT)))
    outputs = tuple(map(_decoded, _parts(message, _NODE_OUTPUT)))
    attributes = dict(map(_attribute, _parts(message, _NODE_ATTRIBUTE)))
    known = {name: value for name, value in attributes.items() if value is not None}
    return Node(_text(message, _NODE_KIND), inputs, outputs, known)


def _attribute(message: Message) -> tuple[str, Attribute | None]:
    """Return the name and value of an attribute. The value is None for kinds that are not needed (graphs, strings)."""
    value: Attribute | None = None
    integers: list[int] = []
    for number, integer, content in _fields(message):
        if number == _ATTRIBUTE_FLOAT:
            value = float(struct.unpack("<f", content)[0])
        elif number == _ATTRIBUTE_INT:
            value = _signed(integer)
        elif number == _ATTRIBUTE_STRING:
            value = _decoded(content)
        elif number == _ATTRIBUTE_TENSOR:
            value = _tensor(content)[1]
        elif number == _ATTRIBUTE_INTS:
            integers += _integers(integer, content)
    return _text(message, 1), integers or value


def _tensor(message: Message) -> tuple[str, npt.NDArray[Any]]:
    """Return the name and content of a TensorProto.

    Raises:
        NetworkError: content and shape do not agree, or a number is not finite.
        UnsupportedGraphError: the type is unusual, or the content is in another file.
    """
    shape: list[int] = []
    name, kind = "", 0
    stored: npt.NDArray[Any] | None = None
    numbers: list[int] = []
    for number, value, content in _fields(message):
        if number == _TENSOR_SHAPE:
            shape += _integers(value, content)
        elif number == _TENSOR_TYPE:
            kind = value
        elif number == _TENSOR_NAME:
            name = _decoded(content)
        elif number == _RAW_DATA:
            stored = np.frombuffer(content, np.uint8)
        elif number in (_FLOAT_DATA, _DOUBLE_DATA):
            # Packed numbers are one field. Without packing, each number has a field.
            part = np.frombuffer(content, np.uint8)
            stored = part if stored is None else np.concatenate([stored, part])
        elif number in (_INT32_DATA, _INT64_DATA):
            numbers += _integers(value, content)
        elif number == _DATA_LOCATION and value:
            raise UnsupportedGraphError(f"weights {name!r} lie in another file")
    if kind not in ELEMENT_TYPES:
        raise UnsupportedGraphError(f"weights {name!r} are of ONNX type {kind}")
    dtype = np.dtype(ELEMENT_TYPES[kind])
    if stored is not None:
        array = stored.view(dtype) if stored.size % dtype.itemsize == 0 else stored
    else:
        # float16 is stored as the integer of its bits.
        bits = np.dtype(np.uint16) if dtype == np.float16 else dtype
        if bits.kind in "iu" and numbers:
            low, high = np.iinfo(bits).min, np.iinfo(bits).max
            if not low <= min(numbers) <= max(numbers) <= high:
                raise NetworkError(f"weights {name!r} with {min(numbers)} to {max(numbers)} found, expected {dtype}")
        array = np.array(numbers, bits).view(dtype)
    if len(shape) > MAX_AXES or min(shape, default=0) < 0 or array.size != math.prod(shape):
        raise NetworkError(f"weights {name!r} with {array.size} numbers found, expected shape {shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise NetworkError(f"weights {name!r} with NaN found, expected numbers")
    return name, array.reshape(shape)


# -- protobuf ----------------------------------------------------------------------------------------------------------


def _fields(message: Message) -> Iterator[tuple[int, int, Message]]:
    """Yield (number, varint value, content) for each field of a message. The content of a varint is empty."""
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        number, wire = tag >> 3, tag & 7
        value, start = 0, position
        if wire == _VARINT:
            value, start = _varint(message, position)
            position = start
        elif wire == _FIXED64:
            position += 8
        elif wire == _FIXED32:
            position += 4
        elif wire == _BYTES:
            length, start = _varint(message, position)
            position = start + length
        else:
            raise MalformedError
        if position > end or number == 0:
            raise MalformedError
        yield number, value, message[start:position]


def _varint(message: Message, position: int) -> tuple[int, int]:
    """Return the base-128 number at a position, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            # The message ends inside of the number.
            raise MalformedError
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise MalformedError
            return value, position
    raise MalformedError


def _parts(message: Message, wanted: int) -> Iterator[Message]:
    return (content for number, _, content in _fields(message) if number == wanted)


def _text(message: Message, wanted: int) -> str:
    return next(map(_decoded, _parts(message, wanted)), "")


def _decoded(content: Message) -> str:
    return bytes(content).decode("utf-8")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _integers(value: int, content: Message) -> Iterator[int]:
    # A single number has no content of its own; several are packed into one field.
    if not content:
        yield _signed(value)
    position = 0
    while position < len(content):
        number, position = _varint(content, position)
        yield _signed(number)
