"""Read inputs, outputs, metadata and the names of weight files of an ONNX file without onnx or onnxruntime."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

# Either library takes longer to import than a second start of the engine may take, and reads all weights. An ONNX file
# is one protobuf message. Only its outer fields are read; all others are skipped by their length. Field numbers:
# onnx.proto.
T = TypeVar("T")
_Buffer: TypeAlias = memoryview
_MODEL_IR_VERSION, MODEL_GRAPH, _MODEL_METADATA = 1, 7, 14
GRAPH_NODE, GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_NODE_ATTRIBUTE, _ATTRIBUTE_TENSOR = 5, 5
_TENSOR_NAME, _TENSOR_EXTERNAL_DATA = 8, 13
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# ONNX's numbers of the element types that inputs and outputs of networks may have.
ELEMENT_TYPES = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}


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
    """Inputs, outputs and metadata of an ONNX model. Inputs that only name a weight, as in old files, are left out."""

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
    return _read(path, _model)


def data_files(path: Path) -> list[str]:
    """Return the names of an ONNX file's weight files, as the file spells them; empty for other files.

    Raises:
        OSError: the file cannot be read.
    """
    return _read(path, _locations) or []


def _read(path: Path, read: Callable[[_Buffer], T]) -> T | None:
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


class MalformedError(Exception):
    """The bytes are not the expected protobuf message."""


def _model(view: _Buffer) -> OnnxHeader | None:
    ir_version = 0
    inputs: list[TensorInfo] = []
    outputs: list[TensorInfo] = []
    weights: set[str] = set()
    metadata: dict[str, str] = {}
    nodes = 0
    for number, value, start, end in fields(view, 0, len(view)):
        if number == _MODEL_IR_VERSION:
            ir_version = value
        elif number == MODEL_GRAPH:
            for inner, _, inner_start, inner_end in fields(view, start, end):
                if inner == _GRAPH_INPUT:
                    inputs.append(_tensor(view, inner_start, inner_end))
                elif inner == _GRAPH_OUTPUT:
                    outputs.append(_tensor(view, inner_start, inner_end))
                elif inner == GRAPH_INITIALIZER:
                    weights.add(_text(view, inner_start, inner_end, _TENSOR_NAME))
                nodes += inner == GRAPH_NODE
        elif number == _MODEL_METADATA:
            metadata[_text(view, start, end, 1)] = _text(view, start, end, 2)
    if not (0 < ir_version < 1000 and outputs and nodes):
        return None
    return OnnxHeader(tuple(each for each in inputs if each.name not in weights), tuple(outputs), metadata)


def _locations(view: _Buffer) -> list[str]:
    """Return the sorted names of files with external data."""
    # External data can belong to initializers and to tensors inside nodes.
    found: set[str] = set()
    for start, end in _messages(view, 0, len(view), MODEL_GRAPH):
        for number, _, inner_start, inner_end in fields(view, start, end):
            if number == GRAPH_INITIALIZER:
                found |= _external(view, inner_start, inner_end)
            elif number == GRAPH_NODE:
                for attribute in _messages(view, inner_start, inner_end, _NODE_ATTRIBUTE):
                    for tensor in _messages(view, *attribute, _ATTRIBUTE_TENSOR):
                        found |= _external(view, *tensor)
    return sorted(found)


def _external(view: _Buffer, start: int, end: int) -> set[str]:
    entries = _messages(view, start, end, _TENSOR_EXTERNAL_DATA)
    return {_text(view, *entry, 2) for entry in entries if _text(view, *entry, 1) == "location"}


def _tensor(view: _Buffer, start: int, end: int) -> TensorInfo:
    """Read name, type and shape of a ValueInfoProto (by TypeProto.Tensor and TensorShapeProto)."""
    kind = "unknown"
    shape: tuple[int, ...] | None = None
    for type_start, type_end in _messages(view, start, end, 2):
        for tensor_start, tensor_end in _messages(view, type_start, type_end, 1):
            for number, value, inner_start, inner_end in fields(view, tensor_start, tensor_end):
                if number == 1:
                    kind = ELEMENT_TYPES.get(value, "unknown")
                elif number == 2:
                    shape = tuple(_dimension(view, *span) for span in _messages(view, inner_start, inner_end, 1))
    return TensorInfo(_text(view, start, end, 1), kind, shape)


def _dimension(view: _Buffer, start: int, end: int) -> int:
    # A dimension has a size, or a name if it is open.
    return next((value for number, value, _, _ in fields(view, start, end) if number == 1 and value > 0), -1)


def _messages(view: _Buffer, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    for number, _, inner_start, inner_end in fields(view, start, end):
        if number == wanted:
            yield inner_start, inner_end


def _text(view: _Buffer, start: int, end: int, wanted: int) -> str:
    for number, _, inner_start, inner_end in fields(view, start, end):
        if number == wanted:
            return bytes(view[inner_start:inner_end]).decode("utf-8")
    return ""


def fields(view: _Buffer, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, varint value, start, end) for each field of a message. Start and end are of non-varint data."""
    position = start
    while position < end:
        tag, position = varint(view, position, end)
        number, wire = tag >> 3, tag & 7
        value, inner_start, inner_end = 0, position, position
        if wire == _VARINT:
            value, position = varint(view, position, end)
        elif wire == _FIXED64:
            inner_end = position = position + 8
        elif wire == _FIXED32:
            inner_end = position = position + 4
        elif wire == _BYTES:
            length, inner_start = varint(view, position, end)
            inner_end = position = inner_start + length
        else:
            raise MalformedError
        if position > end or number == 0:
            raise MalformedError
        yield number, value, inner_start, inner_end


def varint(view: _Buffer, position: int, end: int) -> tuple[int, int]:
    """Return a base-128 number and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            # The buffer ends inside of the number.
            raise MalformedError
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise MalformedError
            return value, position
    raise MalformedError
