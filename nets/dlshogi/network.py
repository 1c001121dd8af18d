"""Shogi networks in ONNX files: recognises them by inputs and outputs, and reads the settings beside them.

Two forms. Both read boards [9][9] = [file][rank], so that a point's index is the square:

* dlshogi's: `input1` [N, 62, 9, 9], `input2` [N, 57 or 119, 9, 9] whose channels are constant over the board,
  `output_policy` [N, 27 * 81] as logits and `output_value` [N, 1], a probability to win for the side to move.
* AlphaZero's, as dlshogi's author published it for cshogi: one input [N, 45, 9, 9], a policy [N, 139 * 81] as logits
  and a value [N, 1] in [-1, 1].
"""

import enum
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError
from yomi.nets.metadata import ALPHAZERO_DIRECTIONS, DLSHOGI_DIRECTIONS, NetworkInfo
from yomi.nets.onnx_file import OnnxGraph, OnnxHeader, TensorInfo, UnsupportedGraphError, read_onnx_graph
from yomi.nets.onnx_program import Ends, write_program

FloatArray: TypeAlias = npt.NDArray[np.float32]

SIDE = 9
AREA = SIDE * SIDE
DLSHOGI_PLANES = 62
# Channels of `input2`: hands and check; with the entering kings' features as well.
DLSHOGI_EXTRAS = (57, 119)
ALPHAZERO_PLANES = 45
# Largest fixed batch of a file: the arrays of a batch are allocated before the first evaluation.
MAX_ROWS = 1 << 14
_NAMES = ("input1", "input2", "output_policy", "output_value")
_FLOATS = ("float32", "float16")


class ShogiForm(enum.IntEnum):
    """The form of a network's inputs and outputs. `form` in the position record has the same numbers."""

    DLSHOGI = 0
    ALPHAZERO = 1


@dataclass(frozen=True)
class ShogiNetwork:
    """The inputs and outputs of a shogi network's file."""

    form: ShogiForm
    board: TensorInfo  # the input of planes
    hands: TensorInfo | None  # dlshogi's second input
    policy: TensorInfo
    value: TensorInfo

    @property
    def extras(self) -> int:
        return 0 if self.hands is None else _channels(self.hands)

    @property
    def planes(self) -> int:
        return ALPHAZERO_PLANES if self.form is ShogiForm.ALPHAZERO else DLSHOGI_PLANES

    @property
    def directions(self) -> int:
        """Number of policy labels for each square."""
        return ALPHAZERO_DIRECTIONS if self.form is ShogiForm.ALPHAZERO else DLSHOGI_DIRECTIONS

    @property
    def policy_size(self) -> int:
        return self.directions * AREA

    @property
    def is_chance(self) -> bool:
        """Whether the value is a probability to win, in [0, 1], instead of [-1, 1]."""
        return self.form is ShogiForm.DLSHOGI

    def signed(self, values: FloatArray) -> FloatArray:
        return 2.0 * values - 1.0 if self.is_chance else values

    @property
    def fixed_rows(self) -> int | None:
        """Batch size, if the file is for batches of one size only; otherwise None."""
        shape = self.board.shape
        return shape[0] if shape is not None and shape[0] > 0 else None

    @property
    def ends(self) -> Ends:
        hands = None if self.hands is None else self.hands.name
        names = self.board.name, self.policy.name, self.policy_size, self.value.name, hands
        return Ends(SIDE, *names, channels=self.planes, extras=self.extras)

    @property
    def feature_set(self) -> str:
        if self.form is ShogiForm.ALPHAZERO:
            return f"alphazero-shogi-{ALPHAZERO_PLANES}"
        return f"dlshogi-{DLSHOGI_PLANES}-{self.extras}"

    def describe(self, name: str, source_file: str, source_sha256: str) -> NetworkInfo:
        """Return the metadata that players and `yomi net info` read."""
        value = ("probability to win" if self.is_chance else "value in [-1, 1]") + " for the side to move"
        return NetworkInfo(
            game="shogi",
            board_size=SIDE,
            feature_set=self.feature_set,
            name=name,
            source_file=source_file,
            source_sha256=source_sha256,
            model_version=0,
            policy_channels=self.directions,
            misc_channels=0,
            outputs={self.policy.name: f"policy logits, {self.directions} labels a square", self.value.name: value},
        )


def recognise(header: OnnxHeader) -> ShogiNetwork | None:
    """Return the form of a shogi network in an ONNX file; None if the file does not look like one.

    Raises:
        NetworkError: the shogi network has a shape that cannot be used. The message has no path.
    """
    named = set(header.inputs) | set(header.outputs)
    # Shapes decide, since exporters choose names. A file with dlshogi's names and other shapes is refused.
    network = _by_shapes(header)
    if network is None:
        if len(named & set(_NAMES)) >= 3:
            found = ", ".join(map(str, (*header.input_tensors, *header.output_tensors)))
            raise NetworkError(
                f"{found} found, expected dlshogi's input1 Nx62x9x9, input2 Nx57x9x9 or Nx119x9x9, "
                "output_policy Nx2187 and output_value Nx1"
            )
        return None
    tensors = [network.board, network.policy, network.value, *([network.hands] if network.hands else [])]
    for tensor in tensors:
        if tensor.element_type not in _FLOATS:
            raise NetworkError(f"{tensor} found, expected float32 or float16")
        if tensor.shape is not None and tensor.shape[:1] > (MAX_ROWS,):
            raise NetworkError(f"{tensor} found, expected batches of at most {MAX_ROWS} rows")
    return network


def _by_shapes(header: OnnxHeader) -> ShogiNetwork | None:
    inputs = {_channels(tensor): tensor for tensor in header.input_tensors}
    if len(inputs) != len(header.input_tensors):
        return None
    if set(inputs) == {ALPHAZERO_PLANES}:
        form, hands = ShogiForm.ALPHAZERO, None
        board, policy_size = inputs[ALPHAZERO_PLANES], ALPHAZERO_DIRECTIONS * AREA
    elif len(inputs) == 2 and DLSHOGI_PLANES in inputs and set(inputs) & set(DLSHOGI_EXTRAS):
        board = inputs.pop(DLSHOGI_PLANES)
        form, hands = ShogiForm.DLSHOGI, next(iter(inputs.values()))
        policy_size = DLSHOGI_DIRECTIONS * AREA
    else:
        return None
    policy = _output(header.output_tensors, policy_size, "output_policy")
    value = _output(header.output_tensors, 1, "output_value")
    if policy is None or value is None or policy is value:
        return None
    return ShogiNetwork(form, board, hands, policy, value)


def _channels(tensor: TensorInfo) -> int:
    """Return C for an input [N, C, 9, 9], and 0 for other shapes."""
    shape = tensor.shape
    return shape[1] if shape is not None and len(shape) == 4 and shape[2:] == (SIDE, SIDE) else 0


def _output(tensors: Sequence[TensorInfo], size: int, name: str) -> TensorInfo | None:
    """Return the output with `size` numbers a row. If the file leaves shapes open, return the output called `name`."""
    for tensor in tensors:
        shape = tensor.shape
        if shape is not None and len(shape) > 1 and min(shape[1:]) > 0 and math.prod(shape[1:]) == size:
            return tensor
        if shape is not None and len(shape) == 1 and size == 1:
            return tensor
    for tensor in tensors:
        if tensor.name == name and (tensor.shape is None or min(tensor.shape[1:], default=1) <= 0):
            return tensor
    return None


_ACTIVATIONS = ("Relu", "Sigmoid", "Mish", "HardSigmoid", "HardSwish", "Elu", "LeakyRelu", "Gelu")


class _Nobody:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def unsupported(graph: OnnxGraph, network: ShogiNetwork) -> str | None:
    """Return the reason why yomi's own kernels cannot compute a graph, or None if they can."""
    builder: Any = _Nobody()
    try:
        write_program(graph, network.ends, builder)
    except UnsupportedGraphError as error:
        return str(error)
    return None


def graph_facts(path: Path, network: ShogiNetwork) -> list[tuple[str, str]]:
    """Return facts about a graph as pairs (name, text). If the graph cannot be read, return only the reason.

    Raises:
        NetworkError: the file is damaged.
    """
    try:
        graph = read_onnx_graph(path)
    except UnsupportedGraphError as error:
        return [_computed_by(str(error))]
    shapes = [
        graph.weights[node.inputs[1]].shape
        for node in graph.nodes
        if node.kind == "Conv" and len(node.inputs) > 1 and node.inputs[1] in graph.weights
    ]
    # A block is two 3×3 convolutions between equal numbers of channels, as in the residual networks of this family.
    wide = [shape for shape in shapes if shape[2:] == (3, 3)]
    channels = wide[0][0] if wide else 0
    blocks = sum(shape[:2] == (channels, channels) for shape in wide) // 2
    counts = Counter(node.kind for node in graph.nodes)
    # The value's own sigmoid occurs once, and is no activation of the network.
    kinds = [kind for kind in _ACTIVATIONS if counts[kind] > 1]
    parameters = sum(array.size for array in graph.weights.values() if array.dtype.kind == "f")
    precisions = sorted({str(array.dtype) for array in graph.weights.values() if array.dtype.kind == "f"})
    return [
        ("blocks", str(blocks)),
        ("channels", str(channels)),
        ("activations", ", ".join(kinds) or "none"),
        ("parameters", f"{parameters:,} ({', '.join(precisions)})"),
        _computed_by(unsupported(graph, network)),
    ]


def _computed_by(reason: str | None) -> tuple[str, str]:
    return "computed by", "own kernels on the CPU, or onnxruntime" if reason is None else f"onnxruntime ({reason})"


def read_settings(network: str | Path) -> dict[str, str]:
    """Return the options that `MODEL.onnx.ini` recommends, by dlshogi's names; empty if there is no such file.

    Empty lines, comments (# or ;) and section headers are skipped. Values are not interpreted here.

    Raises:
        NetworkError: the file cannot be read, is not text, or has a line that is not Name=Value.
    """
    path = Path(f"{network}.ini")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NetworkError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise NetworkError(f"{path}: no UTF-8 text found (byte {error.start}), expected lines Name=Value") from None
    settings: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;[":
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise NetworkError(f"{path}: line {number} is {line!r}, expected Name=Value")
        settings[name.strip()] = value.strip()
    return settings
