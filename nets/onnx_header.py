"""Reads what an ONNX file says about itself without onnx or onnxruntime: inputs, outputs and metadata.

Importing either library costs more than a second start of the engine may take, and either would read all weights.
An ONNX file is one protobuf message; here only its outer fields are walked and everything else is skipped by length.
Field numbers: onnx.proto, messages ModelProto, GraphProto, ValueInfoProto and StringStringEntryProto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_Buffer: TypeAlias = memoryview
_MODEL_IR_VERSION, _MODEL_GRAPH, _MODEL_METADATA = 1, 7, 14
_GRAPH_NODE, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 11, 12
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class OnnxHeader:
    """The outside of an ONNX model."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    metadata: dict[str, str]


def read_onnx_header(path: Path) -> OnnxHeader | None:
    """Return the header of an ONNX file, or None if the file is not one.

    Raises:
        OSError: the file cannot be read.
    """
    if path.stat().st_size == 0:
        return None
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        try:
            return _model(view)
        except (_MalformedError, UnicodeDecodeError):
            return None
        finally:
            view.release()


class _MalformedError(Exception):
    """The bytes are not the protobuf message that was looked for."""


def _model(view: _Buffer) -> OnnxHeader | None:
    ir_version = 0
    inputs: list[str] = []
    outputs: list[str] = []
    metadata: dict[str, str] = {}
    nodes = 0
    for number, value, start, end in _fields(view, 0, len(view)):
        if number == _MODEL_IR_VERSION:
            ir_version = value
        elif number == _MODEL_GRAPH:
            for inner, _, inner_start, inner_end in _fields(view, start, end):
                if inner == _GRAPH_INPUT:
                    inputs.append(_text(view, inner_start, inner_end, 1))
                elif inner == _GRAPH_OUTPUT:
                    outputs.append(_text(view, inner_start, inner_end, 1))
                nodes += inner == _GRAPH_NODE
        elif number == _MODEL_METADATA:
            metadata[_text(view, start, end, 1)] = _text(view, start, end, 2)
    if not (0 < ir_version < 1000 and outputs and nodes):
        return None
    return OnnxHeader(tuple(inputs), tuple(outputs), metadata)


def _text(view: _Buffer, start: int, end: int, wanted: int) -> str:
    """Return string field `wanted` of the message in [start, end), or an empty string."""
    for number, _, inner_start, inner_end in _fields(view, start, end):
        if number == wanted:
            return bytes(view[inner_start:inner_end]).decode("utf-8")
    return ""


def _fields(view: _Buffer, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, value of a varint, start, end of a length-delimited content) for each field of a message."""
    position = start
    while position < end:
        tag, position = _varint(view, position, end)
        number, wire = tag >> 3, tag & 7
        value, inner_start, inner_end = 0, position, position
        if wire == _VARINT:
            value, position = _varint(view, position, end)
        elif wire == _FIXED64:
            position += 8
        elif wire == _FIXED32:
            position += 4
        elif wire == _BYTES:
            length, inner_start = _varint(view, position, end)
            inner_end = position = inner_start + length
        else:
            raise _MalformedError
        if position > end or number == 0:
            raise _MalformedError
        yield number, value, inner_start, inner_end


def _varint(view: _Buffer, position: int, end: int) -> tuple[int, int]:
    """Return a base-128 number and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise _MalformedError
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise _MalformedError
