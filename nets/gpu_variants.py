"""Variants of ONNX files for GPUs: half precision, and packed inputs of bits that the graph unpacks."""

from __future__ import annotations

import copy
import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from yomi.nets.errors import NetworkError
from yomi.nets.files import default_cache_dir, source_digest, write_atomically
from yomi.nets.gpu_fusion import fuse
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
    """The changes to an ONNX file."""

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
    fused: bool = False  # use onnxruntime's own operators, see `yomi.nets.gpu_fusion`

    @property
    def name(self) -> str:
        inputs = "-".join((*self.packed, "over", *self.constant)) if self.packed else "plain"
        marks = "".join(f"-{name}" for name in ("webgpu", "fused") if getattr(self, name))
        return f"{'fp16' if self.half else 'fp32'}-{inputs}{self.side or ''}{marks}"


def variant_file(path: Path, variant: Variant, cache_dir: Path | None = None) -> Path:
    """Return the file of a variant of `path` with all weights, created on first use and cached.

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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(entry, content)
    except OSError as error:
        raise NetworkError(f"{entry}: cannot be written: {error.strerror or error}") from error
    return entry


def make_variant(path: Path, variant: Variant) -> bytes:
    """Return the content of a variant of an ONNX file.

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
        fuse(model)
    for name in variant.packed:
        _unpack_input(path, model.graph, name, is_constant=name in variant.constant)
    if variant.webgpu:
        _compute_outputs(model.graph)
        _pad_channels(model)
    content: bytes = model.SerializeToString()
    return content


def _compute_outputs(graph: onnx.GraphProto) -> None:
    """End every output with a computation: recorded commands leave out the copy of an output that is a reshape."""
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
    nodes = list[onnx.NodeProto]()
    for node in model.graph.node:
        kernel = kernels.get(node.input[1]) if node.op_type == "Conv" else None
        is_grouped = any(each.name == "group" and each.i != 1 for each in node.attribute)
        if kernel is not None and not is_grouped and len(kernel.dims) == 4 and math.prod(kernel.dims[2:]) > 1:
            channels = kernel.dims[1]
            if channels % 3 == 0 and channels % 4:
                name = f"{node.output[0]}/padded"
                pads = [0, 0, 0, 0, 0, 1, 0, 0]  # before and after, by axis
                wider = np.pad(numpy_helper.to_array(kernel), list(zip(pads[:4], pads[4:], strict=True)))
                constants = {f"{name}/kernel": wider, f"{name}/pads": np.array(pads, np.int64)}
                if opset < 11:  # the pads are an attribute
                    del constants[f"{name}/pads"]
                    nodes.append(helper.make_node("Pad", [node.input[0]], [name], name=name, pads=pads))
                else:
                    nodes.append(helper.make_node("Pad", [node.input[0], f"{name}/pads"], [name], name=name))
                model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in constants.items())
                node.input[0], node.input[1] = name, f"{name}/kernel"
        nodes.append(node)
    nodes = [copy.deepcopy(node) for node in nodes]  # deleting from the graph would clear them
    del model.graph.node[:]
    model.graph.node.extend(nodes)


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
    _drop_repeated_casts(half.graph)
    _join_casts(half.graph, between)
    return half


def _drop_repeated_casts(graph: onnx.GraphProto) -> None:
    # Up to version 1.31, onnxruntime's converter adds the same cast for every reader.
    unique = {tuple(node.output): copy.deepcopy(node) for node in graph.node}
    del graph.node[:]
    graph.node.extend(unique.values())


def _is_wide_output(model: onnx.ModelProto, tensor: onnx.ValueInfoProto) -> bool:
    # Copying a wide output from the GPU takes noticeable time, so it is halved as well.
    lengths = [dimension.dim_value for dimension in tensor.type.tensor_type.shape.dim][1:]
    return math.prod(lengths) >= WIDE and any(tensor.name == output.name for output in model.graph.output)


def _between_kept(graph: onnx.GraphProto) -> list[str]:
    """Return the names of nodes between operators of KEEP_FLOAT, such as the epsilon of a norm's mean square."""
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
    """Pass the results of float32 operators on directly, instead of through float16 and back."""
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
    used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    while unused := [node for node in graph.node if node.op_type == "Cast" and node.output[0] not in used]:
        for node in unused:
            graph.node.remove(node)
        used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}


def _unpack_input(path: Path, graph: onnx.GraphProto, name: str, *, is_constant: bool) -> None:
    """Replace an input [B, C, N, N] by its bits. A table gives the eight numbers of each byte."""
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
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    prefix = f"{name}{SUFFIX}"
    constants = {
        "table": table.astype(dtype),
        "flat": np.array([0, width * BITS], np.int64),
        "zero": np.array([0], np.int64),
        "count": np.array([count], np.int64),
        "axis": np.array([1], np.int64),
        "shape": np.array([0, channels, *([1, 1] if is_constant else shape[2:])], np.int64),
        "board": np.array([1, 1, *shape[2:]], np.int64),
    }
    # Bytes become indexes through float32, in which every byte is exact. NVIDIA's reference of TensorRT's data types
    # allows no other conversion of uint8, although its Cast operator does.
    nodes = [
        helper.make_node("Cast", [prefix], [f"{prefix}/byte"], to=TensorProto.FLOAT),
        helper.make_node("Cast", [f"{prefix}/byte"], [f"{prefix}/index"], to=TensorProto.INT32),
        helper.make_node("Gather", [f"{prefix}/table", f"{prefix}/index"], [f"{prefix}/bits"], axis=0),
        helper.make_node("Reshape", [f"{prefix}/bits", f"{prefix}/flat"], [f"{prefix}/row"]),
        helper.make_node(
            "Slice",
            [f"{prefix}/row", f"{prefix}/zero", f"{prefix}/count", f"{prefix}/axis"],
            [f"{prefix}/numbers"],
        ),
        helper.make_node(
            "Reshape", [f"{prefix}/numbers", f"{prefix}/shape"], [f"{prefix}/channels" if is_constant else name]
        ),
    ]
    if is_constant:
        nodes.append(helper.make_node("Expand", [f"{prefix}/channels", f"{prefix}/board"], [name]))
    for node in nodes:
        node.name = node.output[0]
    graph.initializer.extend(
        numpy_helper.from_array(value, f"{prefix}/{part}")
        for part, value in constants.items()
        if is_constant or part != "board"
    )
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
    graph.input.remove(found)
    graph.input.append(helper.make_tensor_value_info(prefix, TensorProto.UINT8, [batch, width]))
