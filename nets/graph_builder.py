"""A small builder of ONNX graphs. Nodes and constants are appended in their order, and get names automatically."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

# Operator set of the graphs: the oldest that has every operator used here, for compatibility with old runtimes.
OPSET = 17
IR_VERSION = 8


class GraphBuilder:
    """Collects the nodes of one ONNX graph. Tensors are identified by their names, which begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._prefix = prefix
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._shapes: list[onnx.ValueInfoProto] = []
        self._count = 0

    def input(self, name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> str:
        """Declare an input with an ONNX element type, by default float32. Return its name."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return name

    def output(self, tensor: str, name: str, shape: Sequence[int | str], kind: int = TensorProto.FLOAT) -> None:
        # An Identity gives the tensor its public name, and lets one tensor be several outputs.
        self.nodes.append(helper.make_node("Identity", [tensor], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        name = self._fresh("const")
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name))
        return name

    def shape(self, *sizes: int) -> str:
        """Store a shape for Reshape and similar operators: 0 copies a dimension, -1 is inferred."""
        return self.constant(sizes, np.int64)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output. Return the output's name."""
        name = self._fresh(kind)
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def annotate(self, tensor: str, shape: Sequence[int | str]) -> str:
        """Declare the shape of a tensor, for cases that shape inference cannot find. Return the tensor."""
        self._shapes.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, list(shape)))
        return tensor

    def split(self, tensor: str, sizes: Sequence[int], axis: int) -> list[str]:
        name = self._fresh("Split")
        names = [f"{name}_{index}" for index in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [tensor, self.shape(*sizes)], names, name=name, axis=axis))
        return names

    def model(self, name: str, metadata: dict[str, str]) -> onnx.ModelProto:
        """Return a model of all appended nodes."""
        graph = helper.make_graph(self.nodes, name, self._inputs, self._outputs, self.constants)
        graph.value_info.extend(self._shapes)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            producer_name="yomi",
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, metadata)
        # An invalid graph is a fault of the caller, not of a user's file: its error is not translated.
        onnx.checker.check_model(model)
        return model

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}{kind}_{self._count}"
