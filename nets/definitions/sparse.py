"""Sparse networks: sums of table rows instead of planes, for processors and single positions.

The first layer is the sum of the active rows, clipped to [0, 1] and squared. Its first units go through two small
layers to the value, to which each row also adds a number of its own. The other units are multiplied with the sum of a
legal move's rows, one from each move table; that product is the move's logit.

A trained network is converted to integers of 8 and 16 bits, and back. Bounds on the weights prove that no position
overflows: yomi.native.sparse.network adds rows in 16 bits, and products with the first layer's outputs in 32 bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from yomi.nets.data.metrics import ILLEGAL
from yomi.nets.definitions.base import Network, describe_outputs, to_numpy
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import SHOGI_BOARD, feature_set
from yomi.nets.sparse import (
    HIDDEN,
    LAST,
    ONE,
    SQUARED_ONE,
    WIDTH_STEP,
    SparseEncoder,
    SparseRows,
    with_rows,
    write_sparse,
)

# The integer for 1 in the sums of move rows.
MOVE_ONE = 160
# Maximum weights: rows of the first layer and of moves have 8 bits, and the sum of MAX_ROWS and a bias has 16.
ROW_LIMIT, BIAS_LIMIT, MOVE_LIMIT = 127 / ONE, 32.0, 127 / MOVE_ONE
MAX_ROWS = 132
# Slope of the clipped activation in training.
LEAK = 0.2


@dataclass(frozen=True, eq=False)
class SparseInput:
    """The input of a sparse network: an encoder's rows, as tensors on the device."""

    active: Tensor  # int64[A]
    active_starts: Tensor  # int64[B]
    places: Tensor  # int64[M]: index of each move's logit in the flattened policies of the B positions
    found: SparseRows  # the rows as numpy arrays
    encoder: SparseEncoder  # computes the products of moves on a processor

    @property
    def rows(self) -> int:
        return len(self.active_starts)


class _MoveLogits(torch.autograd.Function):
    """Logits of moves, computed on a processor by the encoder's kernels."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, table: Tensor, bias: Tensor, x: SparseInput) -> Tensor:
        ctx.save_for_backward(units, table)
        ctx.x, ctx.threads = x, torch.get_num_threads()
        # Ten times as fast as PyTorch's operations.
        arrays = [each.detach().numpy() for each in (units, table, bias)]
        return torch.from_numpy(x.encoder.logits(arrays[0], arrays[1], arrays[2], x.found, ctx.threads))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        units, table = (each.detach().numpy() for each in ctx.saved_tensors)
        found = ctx.x.encoder.gradients(units, table, ctx.x.found, slopes[0].contiguous().numpy(), ctx.threads)
        return (*map(torch.from_numpy, found), None)


def move_logits(units: Tensor, table: Tensor, bias: Tensor, x: SparseInput) -> Tensor:
    """Return the logits of moves [M]: their positions' units times the sums of their rows, plus their biases."""
    if units.device.type == "cpu":
        logits: Tensor = _MoveLogits.apply(units.contiguous(), table, bias, x)
        return logits
    rows = torch.from_numpy(x.found.rows).to(units.device, torch.int64)
    counts = torch.from_numpy(x.found.starts[1:] - x.found.starts[:-1]).to(units.device)
    summed = functional.embedding_bag(rows, table, mode="sum")
    return (summed * units.repeat_interleave(counts, 0)).sum(1) + bias[rows].sum(1)


class _ClippedSquare(torch.autograd.Function):
    """The square of x clipped to [0, 1]. Outside, the gradient is kept if a step would lead back into the range."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        clipped = x.clamp(0.0, 1.0)
        ctx.save_for_backward(x, clipped)
        return clipped.square()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        (x, clipped), slope = ctx.saved_tensors, slopes[0]
        # Without this gradient the few units before the value die one after another: with 512 units none of 16 was left
        # after 2,400 steps, and the value depended on the rows' own numbers alone.
        leads_back = ((x <= 0.0) & (slope < 0.0)) | ((x >= 1.0) & (slope > 0.0))
        inside = (x > 0.0) & (x < 1.0)
        return slope * torch.where(inside, 2.0 * clipped, leads_back * LEAK)


def clipped_square(x: Tensor) -> Tensor:
    squared: Tensor = _ClippedSquare.apply(x)
    return squared


class SparseShogi(Network):
    """Shogi's sparse network. yomi.native.sparse.shogi defines its rows and tables."""

    is_sparse = True
    feature_set, board_size = SHOGI_BOARD, 9

    # Pieces by side, kind and square, attacked or not, defended or not; hand pieces; squares beside kings; pieces
    # near a king by the king's side, their side and kind.
    INPUTS = 2 * 14 * 81 * 6 + 2 * 28 + 2 * 8 * (29 * 6 + 1) + 2 * 2 * 14 * 49
    # Tables for a move's target, its kind, its origin, and its target relative to the opponent's king and the mover's.
    TABLES = (27 * 81, 21 * 15 * 6 * 3 * 2, 14 * 81 * 6 * 2 + 7, 21 * 81, 21 * 81 * 2)

    def __init__(self, value: int = 512, policy: int = 128, dropout: float = 0.2) -> None:
        """Create a network.

        Args:
            value: number of units for the value.
            policy: number of units for moves.
            dropout: share of the units for moves that are zero in a step of training.

        Raises:
            NetworkError: a number of units that no network of this kind has.
        """
        super().__init__()
        if value % WIDTH_STEP or policy % WIDTH_STEP:
            raise NetworkError(f"value = {value}, policy = {policy} found, expected multiples of {WIDTH_STEP}")
        self.value_units, self.dropout = value, dropout
        self.policy_size = feature_set(self.feature_set).policy_size(self.board_size)
        width = value + policy
        # A sum of 40 rows then lies between -0.4 and 1 for most units of most positions.
        self.rows = nn.Parameter(torch.randn(self.INPUTS, width) * 0.05)
        self.bias = nn.Parameter(torch.full((width,), 0.3))
        self.direct = nn.Parameter(torch.zeros(self.INPUTS, 1))
        self.hidden, self.last, self.out = nn.Linear(value, HIDDEN), nn.Linear(HIDDEN, LAST), nn.Linear(LAST, 1)
        for layer in (self.hidden, self.last):  # units begin where they are neither 0 nor 1
            nn.init.normal_(layer.weight, 0.0, layer.in_features**-0.5)
            nn.init.constant_(layer.bias, 0.4)
        self.moves = nn.Parameter(torch.randn(sum(self.TABLES), policy) * 0.05)
        self.move_bias = nn.Parameter(torch.zeros(sum(self.TABLES)))

    def check_encoder(self, encoder: SparseEncoder) -> None:
        """Check that an encoder's rows fit this network.

        Raises:
            NetworkError: their number differs, or too many may be active.
        """
        own, other = (self.INPUTS, self.TABLES), (encoder.inputs, encoder.tables)
        if own != other or encoder.max_active > MAX_ROWS:
            raise NetworkError(
                f"an encoder of {other[0]} rows, {encoder.max_active} at a time, and tables of {other[1]} found, "
                f"expected {own[0]}, at most {MAX_ROWS}, and {own[1]}"
            )

    def forward(self, x: SparseInput) -> dict[str, Tensor]:
        """Return policy [B, P] (ILLEGAL except for legal moves) and value_logit [B, 1], in float32."""
        with torch.autocast(self.rows.device.type, enabled=False):
            units = clipped_square(self._sums(x, self.rows) + self.bias)
            hidden = clipped_square(self.hidden(units[:, : self.value_units]))
            value = self.out(clipped_square(self.last(hidden))) + self._sums(x, self.direct)
            kept = functional.dropout(units[:, self.value_units :], self.dropout, self.training)
            logits = move_logits(kept, self.moves, self.move_bias, x)
            policy = logits.new_full((x.rows * self.policy_size,), ILLEGAL).scatter(0, x.places, logits)
        return {"policy": policy.view(x.rows, self.policy_size), "value_logit": value}

    def _sums(self, x: SparseInput, table: Tensor) -> Tensor:
        return functional.embedding_bag(x.active, table, x.active_starts, mode="sum")

    def constrain(self) -> None:
        # 8 bits for each row, so that the first layer's sums fit 16 bits in every position.
        with torch.no_grad():
            self.rows.clamp_(-ROW_LIMIT, ROW_LIMIT)
            self.bias.clamp_(-BIAS_LIMIT, BIAS_LIMIT)
            self.moves.clamp_(-MOVE_LIMIT, MOVE_LIMIT)


Array = npt.NDArray[Any]

BYTE, SHORT, LONG = 2**7 - 1, 2**15 - 1, 2**31 - 1
# Maximum sum of |weight| over the integer weights of one product. The first layer's outputs are at most SQUARED_ONE, so
# the product fits 32 bits.
MAX_NORM = LONG // SQUARED_ONE
# Maximum error, as root mean square, that rounding may add to a product with outputs of 1. It adds 0.008 to sums by
# ONE, and 0.05 to a logit of five rows by MOVE_ONE and 128 outputs of 1.
MAX_BLUR = 0.01


def to_tensors(network: SparseShogi) -> dict[str, Array]:
    """Return the tensors of a network's file, by the field names of native's SparseNetwork.

    Raises:
        NetworkError: weights exceed the range, or rounding would lose too much.
    """
    hidden, hidden_scale = _hidden(to_numpy(network.hidden.weight))
    parts, units = len(network.TABLES), network.moves.shape[1]
    if parts * BYTE * units > MAX_NORM:
        raise NetworkError(f"{units} units for moves found, expected at most {MAX_NORM // (parts * BYTE)}")
    return {
        "rows": _rounded("rows of the first layer", to_numpy(network.rows), ONE, BYTE).astype(np.int8),
        "bias": _rounded("its biases", to_numpy(network.bias), ONE, SHORT - MAX_ROWS * BYTE).astype(np.int16),
        "direct": to_numpy(network.direct)[:, 0],
        "hidden": hidden,
        "hidden_bias": to_numpy(network.hidden.bias),
        "last": np.ascontiguousarray(to_numpy(network.last.weight).T),
        "last_bias": to_numpy(network.last.bias),
        "out": np.concatenate([to_numpy(network.out.weight)[0], to_numpy(network.out.bias)]),
        "moves": _rounded("rows of moves", to_numpy(network.moves), MOVE_ONE, BYTE).astype(np.int8),
        "move_bias": to_numpy(network.move_bias),
        "scales": np.array([hidden_scale, 1.0 / (MOVE_ONE * SQUARED_ONE)], np.float32),
    }


def export_sparse(network: SparseShogi, name: str, training: Mapping[str, str]) -> bytes:
    """Return the content of a network's file. `training` describes the origin of the weights.

    Raises:
        NetworkError: see `to_tensors`.
    """
    return write_sparse(to_tensors(network), describe_outputs(network, name, training, ("policy", "value_logit"), {}))


def from_sparse(tensors: Mapping[str, Array]) -> SparseShogi:
    """Return a network with the tensors of a file. Except for rounding, its weights are exact.

    Raises:
        NetworkError: the tensors are for another game.
    """
    width, value = tensors["rows"].shape[1], tensors["hidden"].shape[1]
    network = SparseShogi(value, width - value)
    hidden_scale, moves_scale = (float(scale) * SQUARED_ONE for scale in tensors["scales"])
    tensors = with_rows(tensors, SparseShogi.INPUTS)
    values = {
        "rows": tensors["rows"] / ONE,
        "bias": tensors["bias"] / ONE,
        "direct": tensors["direct"][:, None],
        "hidden.weight": tensors["hidden"] * hidden_scale,
        "hidden.bias": tensors["hidden_bias"],
        "last.weight": tensors["last"].T,
        "last.bias": tensors["last_bias"],
        "out.weight": tensors["out"][None, :-1],
        "out.bias": tensors["out"][-1:],
        "moves": tensors["moves"] * moves_scale,
        "move_bias": tensors["move_bias"],
    }
    own = network.state_dict()
    for name, array in values.items():
        if own[name].shape != array.shape:
            raise NetworkError(f"{name} {array.shape} found, expected {tuple(own[name].shape)} in shogi")
    network.load_state_dict({name: torch.from_numpy(np.array(array, np.float32)) for name, array in values.items()})
    return network


def _rounded(name: str, weights: Array, one: int, most: int) -> Array:
    """Return weights as integers. 1.0 becomes `one`.

    Raises:
        NetworkError: a weight is greater than `most`, or not finite.
    """
    rounded: Array = np.rint(weights * one)
    if not (np.abs(rounded) <= most).all():
        raise NetworkError(f"{name} of up to {np.abs(weights).max():g} found, expected at most {most / one:g}")
    return rounded


def _hidden(weights: Array) -> tuple[Array, float]:
    """Return the second layer in 16 bits, and the integer that stands for 1 in its products with outputs."""
    magnitudes = np.abs(weights)
    greatest, norm = magnitudes.max(), magnitudes.sum(1).max()
    if not np.isfinite(norm):
        raise NetworkError("the layer behind the first: numbers that are not finite found")
    bounds = [(greatest, SHORT), (norm, MAX_NORM - 0.5 * weights.shape[1])]
    factor = min([most / number for number, most in bounds if number > 0.0], default=1.0)
    # Rounding adds an error of 1 / sqrt(12) to each weight.
    blur = np.sqrt(weights.shape[1] / 12.0) / factor
    if blur > MAX_BLUR:
        raise NetworkError(
            f"the layer behind the first: weights of up to {greatest:g} found, of which rounding to 16 bits leaves "
            f"products {blur:.3f} off, expected at most {MAX_BLUR:g}"
        )
    return np.rint(weights * factor).astype(np.int16), 1.0 / (factor * SQUARED_ONE)
