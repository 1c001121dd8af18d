"""Variants of ONNX files for GPUs: half precision, inputs of packed bits that the graph unpacks, fused operators."""

import copy
import hashlib
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from yomi.errors import reraised
from yomi.nets.errors import NetworkError
from yomi.nets.files import default_cache_dir, source_digest, write_atomically
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.onnx_file import data_files

# Increase it with every change of the written files: cached files of other versions are ignored.
VERSION = 6
# Suffix of the names of packed inputs.
SUFFIX = "_packed"
# Three small operators unpack bits in the graph. They work in every provider, even on a processor. TensorRT's direct
# use has a kernel instead (native/cuda/unpack.cu), which saves the operators' memory traffic.
BITS = 8
# An output is wide from this many numbers a row on.
WIDE = 64
# ONNX operators that change no number: they reshape or copy their input.
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
# Operators that stay in float32 in half precision: sums over a board, and operators that may exceed 65,504.
KEEP_FLOAT = (
    *("ReduceMean", "ReduceSum", "ReduceMax", "GlobalAveragePool", "GlobalMaxPool", "Softmax", "Pow", "Sqrt"),
    *("Reciprocal", "LayerNormalization", "InstanceNormalization", "Exp", "Log"),
)


@dataclass(frozen=True, slots=True)
class Variant:
    """The changes that make a variant of an ONNX file."""

    # Compute in float16. Inputs and narrow outputs stay float32; wide outputs (policy, ownership) become float16.
    half: bool = False
    # Inputs that are packed, named with SUFFIX: uint8[B, 8 * ceil(n / 64)], where n is the numbers of a row.
    #
    # An input whose channels are constant over the board (dlshogi's second) has one bit for each channel.
    packed: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()  # the inputs in `packed` that are constant over the board
    side: int = 0  # board size N that open input sizes are fixed to; 0 leaves them open

    # Work around two faults of onnxruntime's WebGPU provider; see `_compute_outputs` and `_pad_channels`.
    webgpu: bool = False
    fused: bool = False  # use onnxruntime's own operators for attention and norms of CUDA, see `_fuse`

    @property
    def name(self) -> str:
        inputs = "-".join((*self.packed, "over", *self.constant)) if self.packed else "plain"
        marks = "".join(f"-{name}" for name in ("webgpu", "fused") if getattr(self, name))
        return f"{'fp16' if self.half else 'fp32'}-{inputs}{self.side or ''}{marks}"


def variant_file(path: Path, variant: Variant, cache_dir: Path | None = None) -> Path:
    """Return the file of a variant of `path` with all weights. It is created on first use and cached.

    Raises:
        NetworkError: the file cannot be read, has no such inputs, or the cache cannot be written.
    """
    if variant == Variant() and not data_files(path):
        return path
    folder = (cache_dir or default_cache_dir()) / "nets"
    key = hashlib.sha256(f"{source_digest(path)} {variant.name} {VERSION}".encode()).hexdigest()[:16]
    entry = folder / f"{key}-gpu.onnx"
    if entry.exists():
        return entry
    content = make_variant(path, variant)
    with reraised(OSError, NetworkError, f"{entry}: cannot be written: "):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(entry, content)
    return entry


def make_variant(path: Path, variant: Variant) -> bytes:
    """Return a variant of an ONNX file as the content of a file.

    Raises:
        NetworkError: it cannot be read, or has no such inputs.
    """
    try:
        model = onnx.load(os.fspath(path))
    except Exception as error:  # protobuf's own kinds
        raise NetworkError(f"{path}: cannot be read as ONNX: {str(error).splitlines()[0]}") from error
    for tensor in model.graph.input if variant.side else ():
        for dimension in tensor.type.tensor_type.shape.dim[2:]:
            dimension.dim_value = variant.side
    if variant.half:
        try:
            model = _halve(model)
        except Exception as error:  # the converter checks nothing
            raise NetworkError(f"{path}: cannot be converted to float16: {error or type(error).__name__}") from error
    if variant.fused:
        _fuse(model)
    for name in variant.packed:
        _unpack_input(path, model.graph, name, is_constant=name in variant.constant)
    if variant.webgpu:
        _compute_outputs(model.graph)
        _pad_channels(model)
    content: bytes = model.SerializeToString()
    return content


def _compute_outputs(graph: onnx.GraphProto) -> None:
    """End every output with a computation: recorded commands would omit the copy of an output that is a reshape."""
    for name in [output.name for output in graph.output]:
        if not any(name in node.output and node.op_type in VIEWS for node in graph.node):
            continue
        view, negated = f"{name}/view", f"{name}/negated"
        for node in graph.node:
            for names in (node.input, node.output):
                for index, each in enumerate(names):
                    names[index] = view if each == name else each
        # Negating twice changes no number, and onnxruntime does not optimise it away.
        graph.node.append(helper.make_node("Neg", [view], [negated], name=negated))
        graph.node.append(helper.make_node("Neg", [negated], [name], name=f"{name}/computed"))


def _pad_channels(model: onnx.ModelProto) -> None:
    """Add a channel of zeros to the input of each convolution that WebGPU computes wrongly.

    With onnxruntime-ep-webgpu 0.4 those are kernels larger than 1x1 on 3n channels, unless 4 divides 3n. The 45 planes
    of AlphaZero's shogi networks are an example.
    """
    opset = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    kernels = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes, build = list[onnx.NodeProto](), GraphBuilder("padded/")
    for node in model.graph.node:
        kernel = kernels.get(node.input[1]) if node.op_type == "Conv" else None
        is_grouped = any(each.name == "group" and each.i != 1 for each in node.attribute)
        if kernel is not None and not is_grouped and len(kernel.dims) == 4 and math.prod(kernel.dims[2:]) > 1:
            channels = kernel.dims[1]
            if channels % 3 == 0 and channels % 4:
                pads = [0, 0, 0, 0, 0, 1, 0, 0]  # before and after, by axis
                wider = np.pad(numpy_helper.to_array(kernel), list(zip(pads[:4], pads[4:], strict=True)))
                if opset < 11:  # the pads are an attribute
                    node.input[0] = build.op("Pad", node.input[0], pads=pads)
                else:
                    node.input[0] = build.op("Pad", node.input[0], build.shape(*pads))
                node.input[1] = build.constant(wider, wider.dtype)
                nodes.append(build.nodes[-1])
        nodes.append(node)
    model.graph.initializer.extend(build.constants)
    _set_nodes(model.graph, nodes)


def _set_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    kept = [copy.deepcopy(node) for node in nodes]  # deleting from the graph would clear them
    del graph.node[:]
    graph.node.extend(kept)


def _halve(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    between = _between_kept(model.graph)
    kept = [tensor.name for tensor in (*model.graph.input, *model.graph.output) if not _is_wide_output(model, tensor)]
    half: onnx.ModelProto = convert_float_to_float16(
        model,
        keep_io_types=kept,
        op_block_list=[*DEFAULT_OP_BLOCK_LIST, *KEEP_FLOAT],
        node_block_list=between,
    )
    # Up to version 1.31, onnxruntime's converter adds the same cast for every reader.
    _set_nodes(half.graph, {tuple(node.output): node for node in half.graph.node}.values())
    _join_casts(half.graph, between)
    return half


def _is_wide_output(model: onnx.ModelProto, tensor: onnx.ValueInfoProto) -> bool:
    # Copying a wide output from the GPU takes noticeable time, so it is halved as well.
    lengths = [dimension.dim_value for dimension in tensor.type.tensor_type.shape.dim][1:]
    return math.prod(lengths) >= WIDE and any(tensor.name == output.name for output in model.graph.output)


def _between_kept(graph: onnx.GraphProto) -> list[str]:
    """Return the names of nodes between two operators of KEEP_FLOAT. They stay in float32, too."""
    kept = {output for node in graph.node if node.op_type in KEEP_FLOAT for output in node.output}
    readers: dict[str, list[str]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node.op_type)
    return [
        node.name
        for node in graph.node
        if kept.intersection(node.input)
        and all(readers.get(name) and set(readers[name]) <= set(KEEP_FLOAT) for name in node.output)
    ]


def _join_casts(graph: onnx.GraphProto, between: list[str]) -> None:
    """Pass results from one float32 operator to the next directly, instead of through float16 and back."""
    makers = {output: node for node in graph.node for output in node.output}
    exact: dict[str, str] = {}
    for node in graph.node:
        source = makers.get(node.input[0]) if node.op_type == "Cast" else None
        if source is None or source.op_type != "Cast" or node.attribute[0].i != TensorProto.FLOAT:
            continue
        origin = makers.get(source.input[0])
        if origin is not None and (origin.op_type in KEEP_FLOAT or origin.name in between):
            exact[node.output[0]] = source.input[0]
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = exact.get(name, name)
    _drop_unused(graph, "Cast")


def _drop_unused(graph: onnx.GraphProto, operator: str = "") -> None:
    """Remove nodes with outputs that nobody reads: all such nodes, or only the nodes of an operator."""
    while True:
        used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
        unused = [n for n in graph.node if operator in ("", n.op_type) and not used.intersection(n.output)]
        if not unused:
            return
        for node in unused:
            graph.node.remove(node)


def _unpack_input(path: Path, graph: onnx.GraphProto, name: str, *, is_constant: bool) -> None:
    """Replace an input [B, C, N, N] by its bits. A table contains the eight numbers of each byte."""
    found = next((value for value in graph.input if value.name == name), None)
    if found is None:
        names = ", ".join(str(value.name) for value in graph.input)  # protobuf gives broken UTF-8 as bytes
        raise NetworkError(f"{path}: inputs {names} found, expected one called {name}")
    kind = found.type.tensor_type
    shape = [dimension.dim_value for dimension in kind.shape.dim]
    if (
        kind.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16)
        or len(shape) != 4
        or not all(0 < side < 1 << 16 for side in shape[1:])
    ):
        raise NetworkError(
            f"{path}: input {name} of type {kind.elem_type} and shape {shape} found, expected floats "
            "[batch, channels, N, N]"
        )
    named = kind.shape.dim[0].dim_param
    batch = (named if isinstance(named, str) else "") or shape[0] or "batch"
    channels, points = shape[1], math.prod(shape[2:])
    count = channels if is_constant else channels * points
    width = -(-count // 64) * 8
    table = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    prefix = f"{name}{SUFFIX}"
    build = GraphBuilder(f"{prefix}/")
    # Bytes become indexes through float32, in which every byte is exact. NVIDIA's reference of TensorRT's data types
    # allows no other conversion of uint8, although its Cast operator does.
    index = build.op("Cast", build.op("Cast", prefix, to=TensorProto.FLOAT), to=TensorProto.INT32)
    numbers = build.constant(table, helper.tensor_dtype_to_np_dtype(kind.elem_type))
    row = build.op("Reshape", build.op("Gather", numbers, index, axis=0), build.shape(0, width * BITS))
    used = build.op("Slice", row, build.shape(0), build.shape(count), build.shape(1))
    planes = build.op("Reshape", used, build.shape(0, channels, *([1, 1] if is_constant else shape[2:])))
    if is_constant:
        build.op("Expand", planes, build.shape(1, 1, *shape[2:]))
    build.nodes[-1].output[0] = name
    graph.initializer.extend(build.constants)
    _set_nodes(graph, [*build.nodes, *graph.node])
    graph.input.remove(found)
    graph.input.append(helper.make_tensor_value_info(prefix, TensorProto.UINT8, [batch, width]))


# -- operators of onnxruntime ------------------------------------------------------------------------------------------

# Networks are exported as standard operators, which every provider knows. For attention these write the weights of all
# pairs of points to memory, several times and in half precision also as float32. onnxruntime's own operators do not.
DOMAIN = "com.microsoft"
BY_HEAD, TURNED = [0, 2, 1, 3], [0, 2, 3, 1]  # permutations of [batch, points, heads, width]
CHANNELS = 2  # axis of [batch, points, channels]


class _Graph:
    """The nodes of a graph by output. Lookups skip casts."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self._makers = {output: node for node in graph.node for output in node.output}
        self._readers = {name: node for node in reversed(graph.node) for name in node.input}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}

    def node(self, name: str, operator: str) -> onnx.NodeProto | None:
        """Return the node that computes a tensor, if it has this operator, otherwise None."""
        maker = self._makers.get(self.source(name))
        return maker if maker is not None and maker.op_type == operator else None

    def source(self, name: str) -> str:
        """Return the tensor from which `name` is cast."""
        while (maker := self._makers.get(name)) is not None and maker.op_type == "Cast":
            name = maker.input[0]
        return name

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        tensor = self._constants.get(self.source(name))
        return None if tensor is None else numpy_helper.to_array(tensor)

    def matrix(self, name: str) -> npt.NDArray[Any] | None:
        """Return the constant by which the first reader of a tensor multiplies it, one row for each channel."""
        reader = self._readers.get(name)
        return None if reader is None or reader.op_type not in ("MatMul", "Mul") else self.constant(reader.input[1])

    def viewed(self, name: str, perm: list[int]) -> tuple[str, list[int]] | None:
        """Return (tensor, shape) if `name` is Transpose(Reshape(tensor, shape), perm), otherwise None."""
        turned = self.node(name, "Transpose")
        if turned is None or _attribute(turned, "perm") != perm:
            return None
        reshaped = self.node(turned.input[0], "Reshape")
        shape = None if reshaped is None else self.constant(reshaped.input[1])
        return None if reshaped is None or shape is None else (reshaped.input[0], [int(side) for side in shape])


def _fuse(model: onnx.ModelProto) -> None:
    """Replace attention and root-mean-square norms by onnxruntime's single operators."""
    graph = model.graph
    _replace(graph, "Reshape", _attention)
    _replace(graph, "Add", _rotation)
    _replace(graph, "Mul", _norm)
    _drop_unused(graph)
    if all(each.domain != DOMAIN for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def _replace(
    graph: onnx.GraphProto, operator: str, find: Callable[[_Graph, onnx.NodeProto], onnx.NodeProto | None]
) -> None:
    parts = _Graph(graph)
    for index, node in enumerate(list(graph.node)):
        if node.op_type == operator and (fused := find(parts, node)) is not None:
            graph.node[index].CopyFrom(fused)


def _attention(parts: _Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return one operator for the attention that ends in `node`: weights of pairs of points, times values, by head."""
    joined = parts.node(node.input[0], "Transpose")
    mixed = None if joined is None or _attribute(joined, "perm") != BY_HEAD else parts.node(joined.input[0], "MatMul")
    weights = None if mixed is None else parts.node(mixed.input[0], "Softmax")
    scores = None if weights is None else parts.node(weights.input[0], "MatMul")
    if mixed is None or scores is None or weights is None or _attribute(weights, "axis") not in (3, -1):
        return None
    query = parts.viewed(scores.input[0], BY_HEAD)
    key = parts.viewed(scores.input[1], TURNED)
    value = parts.viewed(mixed.input[1], BY_HEAD)
    if query is None or key is None or value is None or not query[1][2] == key[1][2] == value[1][2]:
        return None
    return helper.make_node(
        "MultiHeadAttention",
        [query[0], key[0], value[0]],
        list(node.output),
        name=f"{node.output[0]}/attention",
        domain=DOMAIN,
        num_heads=query[1][2],
        scale=1.0,  # it is part of the weights
    )


def _rotation(parts: _Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return one operator for the rotation of channel pairs that ends in `node`: x * cosine + quarter turn of x * sine.

    x is a product with weights. Its quarter turn is a product with the same weights in which columns (a, b) are (-b,
    a).
    """
    found = []
    for name in node.input:
        scaled = parts.node(name, "Mul")
        product = None if scaled is None else parts.node(scaled.input[0], "MatMul")
        if scaled is None or product is None:
            return None
        found.append((product, parts.constant(product.input[1]), parts.constant(scaled.input[1])))
    (product, weights, cosine), (turned, turned_weights, sine) = found
    if weights is None or turned_weights is None or cosine is None or sine is None:
        return None
    if product.input[0] != turned.input[0] or not np.array_equal(turned_weights, quarter_turn(weights)):
        return None
    if not all(each.ndim == 2 and (each[:, 0::2] == each[:, 1::2]).all() for each in (cosine, sine)):
        return None
    start, *tables = (f"{node.output[0]}/{name}" for name in ("start", "cosine", "sine"))
    parts.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.int64), start))
    for name, table in zip(tables, (cosine, sine), strict=True):
        parts.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(table[:, 0::2]), name))
    return helper.make_node(
        "RotaryEmbedding",
        [product.output[0], start, *tables],
        list(node.output),
        name=f"{node.output[0]}/rotation",
        domain=DOMAIN,
        interleaved=1,
    )


def quarter_turn(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turn each pair of columns (a, b) into (-b, a)."""
    turned = np.empty_like(weights)
    turned[:, 0::2] = -weights[:, 1::2]
    turned[:, 1::2] = weights[:, 0::2]
    return turned


def _norm(parts: _Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return one operator for the norm that ends in `node`: points times 1 / sqrt(mean(points ** 2) + epsilon)."""
    points, divisor = node.input
    reciprocal = parts.node(divisor, "Reciprocal")
    root = None if reciprocal is None else parts.node(reciprocal.input[0], "Sqrt")
    added = None if root is None else parts.node(root.input[0], "Add")
    mean = None if added is None else parts.node(added.input[0], "ReduceMean")
    square = None if mean is None else parts.node(mean.input[0], "Pow")
    if added is None or mean is None or square is None or _attribute(mean, "axes") != [CHANNELS]:
        return None
    epsilon, power = parts.constant(added.input[1]), parts.constant(square.input[1])
    weights = parts.matrix(node.output[0])
    if epsilon is None or power is None or weights is None or parts.source(square.input[0]) != parts.source(points):
        return None
    if power.item() != 2 or not weights.ndim:
        return None
    ones = numpy_helper.from_array(np.ones(len(weights), weights.dtype), f"{node.output[0]}/ones")
    parts.graph.initializer.append(ones)
    return helper.make_node(
        "SimplifiedLayerNormalization",
        [points, ones.name],
        list(node.output),
        name=f"{node.output[0]}/norm",
        axis=-1,
        epsilon=epsilon.item(),
    )


def _attribute(node: onnx.NodeProto, name: str) -> Any:
    return next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), None)
