"""Read nodes and weights of an ONNX file without onnx."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError
from yomi.nets.onnx_header import (
    ELEMENT_TYPES,
    GRAPH_INITIALIZER,
    GRAPH_NODE,
    MODEL_GRAPH,
    MalformedError,
    fields,
    varint,
)

# Importing onnx takes a second. Field numbers below come from onnx.proto, messages GraphProto, NodeProto,
# AttributeProto and TensorProto.
Attribute: TypeAlias = int | float | str | list[int] | npt.NDArray[Any]

# numpy's own limit in its version 1.
MAX_AXES = 32
_FLOAT_DATA, _INT32_DATA, _INT64_DATA, _RAW_DATA, _DOUBLE_DATA, _DATA_LOCATION = 4, 5, 7, 9, 10, 14


class UnsupportedGraphError(ValueError):
    """yomi's own kernels cannot compute a graph, though onnxruntime may. The message has the reason."""


@dataclass(frozen=True, eq=False)
class Node:
    kind: str
    inputs: tuple[str, ...]  # an empty name is an omitted input
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """Nodes in the order of computation, and the weights by name."""

    nodes: tuple[Node, ...]
    weights: dict[str, npt.NDArray[Any]]


def read_onnx_graph(path: Path) -> OnnxGraph:
    """Read a whole ONNX file.

    Raises:
        NetworkError: the file is damaged, or weights are not finite.
        UnsupportedGraphError: weights are in another file or in an unsupported form. The message has no path.
        OSError: it cannot be read.
    """
    view = memoryview(path.read_bytes())
    nodes: list[Node] = []
    weights: dict[str, npt.NDArray[Any]] = {}
    try:
        for number, _, start, end in fields(view, 0, len(view)):
            if number != MODEL_GRAPH:
                continue
            for inner, _, inner_start, inner_end in fields(view, start, end):
                if inner == GRAPH_NODE:
                    nodes.append(_node(view, inner_start, inner_end))
                elif inner == GRAPH_INITIALIZER:
                    name, array = _tensor(view, inner_start, inner_end)
                    weights[name] = array
    except (MalformedError, UnicodeDecodeError, struct.error):
        raise NetworkError(f"{path}: a damaged ONNX file found, expected a whole one") from None
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    return OnnxGraph(tuple(nodes), weights)


def _node(view: memoryview, start: int, end: int) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    kind = ""
    attributes: dict[str, Attribute] = {}
    for number, _, inner_start, inner_end in fields(view, start, end):
        if number == 1:
            inputs.append(_text(view, inner_start, inner_end))
        elif number == 2:
            outputs.append(_text(view, inner_start, inner_end))
        elif number == 4:
            kind = _text(view, inner_start, inner_end)
        elif number == 5:
            name, value = _attribute(view, inner_start, inner_end)
            if value is not None:
                attributes[name] = value
    return Node(kind, tuple(inputs), tuple(outputs), attributes)


def _attribute(view: memoryview, start: int, end: int) -> tuple[str, Attribute | None]:
    """Return name and value. The value is None for kinds that nothing here reads (graphs, strings)."""
    name = ""
    value: Attribute | None = None
    integers: list[int] = []
    for number, number_value, inner_start, inner_end in fields(view, start, end):
        if number == 1:
            name = _text(view, inner_start, inner_end)
        elif number == 2:
            value = float(struct.unpack_from("<f", view, inner_start)[0])
        elif number == 3:
            value = _signed(number_value)
        elif number == 4:
            value = _text(view, inner_start, inner_end)
        elif number == 5:
            value = _tensor(view, inner_start, inner_end)[1]
        elif number == 8:
            integers += _integers(view, number_value, inner_start, inner_end)
    return name, integers or value


def _tensor(view: memoryview, start: int, end: int) -> tuple[str, npt.NDArray[Any]]:
    """Return name and content of a TensorProto.

    Raises:
        NetworkError: content and shape do not agree, or a number is not finite.
        UnsupportedGraphError: the type is unusual, or the content is in another file.
    """
    shape: list[int] = []
    name, kind = "", 0
    content: npt.NDArray[Any] | None = None
    numbers: list[int] = []
    for number, value, inner_start, inner_end in fields(view, start, end):
        if number == 1:
            shape += _integers(view, value, inner_start, inner_end)
        elif number == 2:
            kind = value
        elif number == 8:
            name = _text(view, inner_start, inner_end)
        elif number == _RAW_DATA:
            content = np.frombuffer(view[inner_start:inner_end], np.uint8)
        elif number in (_FLOAT_DATA, _DOUBLE_DATA):
            # Packed numbers are one field. Without packing, each number has a field.
            part = np.frombuffer(view[inner_start:inner_end], np.uint8)
            content = part if content is None else np.concatenate([content, part])
        elif number in (_INT32_DATA, _INT64_DATA):
            numbers += _integers(view, value, inner_start, inner_end)
        elif number == _DATA_LOCATION and value:
            raise UnsupportedGraphError(f"weights {name!r} lie in another file")
    if kind not in ELEMENT_TYPES:
        raise UnsupportedGraphError(f"weights {name!r} are of ONNX type {kind}")
    dtype = np.dtype(ELEMENT_TYPES[kind])
    if content is not None:
        array = content.view(dtype) if content.size % dtype.itemsize == 0 else content
    else:
        # float16 is stored as the integer of its bits.
        stored = np.dtype(np.uint16) if dtype == np.float16 else dtype
        if stored.kind in "iu" and numbers:
            low, high = np.iinfo(stored).min, np.iinfo(stored).max
            if not low <= min(numbers) <= max(numbers) <= high:
                raise NetworkError(f"weights {name!r} with {min(numbers)} to {max(numbers)} found, expected {dtype}")
        array = np.array(numbers, stored).view(dtype)
    if len(shape) > MAX_AXES or min(shape, default=0) < 0 or array.size != math.prod(shape):
        raise NetworkError(f"weights {name!r} with {array.size} numbers found, expected shape {shape}")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise NetworkError(f"weights {name!r} with NaN found, expected numbers")
    return name, array.reshape(shape)


def _text(view: memoryview, start: int, end: int) -> str:
    return bytes(view[start:end]).decode("utf-8")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _integers(view: memoryview, value: int, start: int, end: int) -> Iterator[int]:
    # A single number has no bytes of its own; several are packed into one field.
    if start == end:
        yield _signed(value)
    while start < end:
        value, start = varint(view, start, end)
        yield _signed(value)
