"""Sparse networks: sums of table rows instead of planes, for processors and single positions.

The first layer is the sum of the active rows, clipped to [0, 1] and squared. Its first units go through two small
layers to the value, to which each row also adds a number of its own. The other units are multiplied with the sum of a
legal move's rows, one from each move table; that product is the move's logit. yomi.native.sparse.network computes this
in the search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from yomi.nets.data.metrics import ILLEGAL
from yomi.nets.data.sparse import SparseEncoder, SparseRows
from yomi.nets.definitions.base import Network
from yomi.nets.errors import NetworkError
from yomi.nets.features import SHOGI_BOARD, feature_set
from yomi.nets.sparse.file import HIDDEN, LAST, ONE, WIDTH_STEP

MOVE_ONE = 160
"""The integer for 1 in the sums of move rows."""
ROW_LIMIT, BIAS_LIMIT, MOVE_LIMIT = 127 / ONE, 32.0, 127 / MOVE_ONE
"""Maximum weights: rows of the first layer and of moves have 8 bits, and the sum of MAX_ROWS and a bias has 16."""
MAX_ROWS = 132
LEAK = 0.2
"""Slope of the clipped activation in training."""


@dataclass(frozen=True, eq=False)
class SparseInput:
    """The input of the network: an encoder's rows as tensors on the device."""

    active: Tensor
    """int64[A]"""
    active_starts: Tensor
    """int64[B]"""
    places: Tensor
    """int64[M]: index of each move's logit in the flattened policies of the B positions."""
    found: SparseRows
    """The rows as numpy arrays."""
    encoder: SparseEncoder
    """Computes the products of moves on a processor."""

    @property
    def rows(self) -> int:
        """B."""
        return len(self.active_starts)


class _MoveLogits(torch.autograd.Function):
    """Logits of moves on a processor by the encoder's kernels: ten times as fast as PyTorch's operations."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, table: Tensor, bias: Tensor, x: SparseInput) -> Tensor:
        ctx.save_for_backward(units, table)
        ctx.x, ctx.threads = x, torch.get_num_threads()
        arrays = [each.detach().numpy() for each in (units, table, bias)]
        return torch.from_numpy(x.encoder.logits(arrays[0], arrays[1], arrays[2], x.found, ctx.threads))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        units, table = (each.detach().numpy() for each in ctx.saved_tensors)
        found = ctx.x.encoder.gradients(units, table, ctx.x.found, slopes[0].contiguous().numpy(), ctx.threads)
        return (*map(torch.from_numpy, found), None)


def move_logits(units: Tensor, table: Tensor, bias: Tensor, x: SparseInput) -> Tensor:
    """Return the logit of each move [M]: the product of its position's units with the sum of its rows, plus biases."""
    if units.device.type == "cpu":
        logits: Tensor = _MoveLogits.apply(units.contiguous(), table, bias, x)
        return logits
    rows = torch.from_numpy(x.found.rows).to(units.device, torch.int64)
    counts = torch.from_numpy(x.found.starts[1:] - x.found.starts[:-1]).to(units.device)
    summed = functional.embedding_bag(rows, table, mode="sum")
    return (summed * units.repeat_interleave(counts, 0)).sum(1) + bias[rows].sum(1)


class _ClippedSquare(torch.autograd.Function):
    """min(max(x, 0), 1) squared, with a gradient outside of [0, 1] as well if a step would lead back inside.

    Without that gradient the few units before the value die one after another: with 512 units none of 16 was left after
    2,400 steps, and the value depended on the rows' own numbers alone.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        clipped = x.clamp(0.0, 1.0)
        ctx.save_for_backward(x, clipped)
        return clipped.square()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Tensor:
        (x, clipped), slope = ctx.saved_tensors, slopes[0]
        leads_back = ((x <= 0.0) & (slope < 0.0)) | ((x >= 1.0) & (slope > 0.0))
        inside = (x > 0.0) & (x < 1.0)
        return slope * torch.where(inside, 2.0 * clipped, leads_back * LEAK)


def clipped_square(x: Tensor) -> Tensor:
    """Return min(max(x, 0), 1) squared; see _ClippedSquare."""
    squared: Tensor = _ClippedSquare.apply(x)
    return squared


class SparseNetwork(Network):
    """A sparse network of any game. The game's encoder determines the rows."""

    is_sparse = True

    def __init__(
        self,
        features: str,
        board_size: int,
        inputs: int,
        tables: tuple[int, ...],
        value: int,
        policy: int,
        dropout: float,
    ) -> None:
        """Create the module.

        Args:
            features: the feature set of the boards.
            board_size: N.
            inputs: rows of the first layer.
            tables: rows of each table of moves.
            value: units for the value.
            policy: units for moves.
            dropout: share of these that a step of training does without.

        Raises:
            NetworkError: a number of units that no network of this kind has.
        """
        super().__init__()
        if value % WIDTH_STEP or policy % WIDTH_STEP:
            raise NetworkError(f"value = {value}, policy = {policy} found, expected multiples of {WIDTH_STEP}")
        self.feature_set, self.board_size = features, board_size
        self.tables, self.value_units, self.dropout = tuple(tables), value, dropout
        self.policy_size = feature_set(features).policy_size(board_size)
        width = value + policy
        # A sum of 40 rows then lies between -0.4 and 1 for most units of most positions.
        self.rows = nn.Parameter(torch.randn(inputs, width) * 0.05)
        self.bias = nn.Parameter(torch.full((width,), 0.3))
        self.direct = nn.Parameter(torch.zeros(inputs, 1))
        self.hidden, self.last, self.out = nn.Linear(value, HIDDEN), nn.Linear(HIDDEN, LAST), nn.Linear(LAST, 1)
        for layer in (self.hidden, self.last):  # units begin where they are neither 0 nor 1
            nn.init.normal_(layer.weight, 0.0, layer.in_features**-0.5)
            nn.init.constant_(layer.bias, 0.4)
        self.moves = nn.Parameter(torch.randn(sum(tables), policy) * 0.05)
        self.move_bias = nn.Parameter(torch.zeros(sum(tables)))

    def check_encoder(self, encoder: SparseEncoder) -> None:
        """Check that an encoder's rows fit this network.

        Raises:
            NetworkError: their number differs, or too many may be active.
        """
        own, other = (len(self.rows), self.tables), (encoder.inputs, encoder.tables)
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
        """Clip rows to 8 bits, so that the first layer's sums fit 16 bits for every position."""
        with torch.no_grad():
            self.rows.clamp_(-ROW_LIMIT, ROW_LIMIT)
            self.bias.clamp_(-BIAS_LIMIT, BIAS_LIMIT)
            self.moves.clamp_(-MOVE_LIMIT, MOVE_LIMIT)


class SparseShogi(SparseNetwork):
    """Shogi's sparse network. yomi.native.shogi.sparse defines its rows and tables."""

    INPUTS = 2 * 14 * 81 * 6 + 2 * 28 + 2 * 8 * (29 * 6 + 1) + 2 * 2 * 14 * 49
    """Pieces by side, kind and square, attacked or not, defended or not; pieces in hand; squares beside kings; pieces
    near a king by the king's side, their side and kind.
    """
    TABLES = (27 * 81, 21 * 15 * 6 * 3 * 2, 14 * 81 * 6 * 2 + 7, 21 * 81, 21 * 81 * 2)
    """Target of a move, its kind, its origin, and its target relative to the opponent's king and to the mover's king.
    """

    def __init__(self, value: int = 512, policy: int = 128, dropout: float = 0.2) -> None:
        """Create a network with `value` units for the value and `policy` units for moves; see SparseNetwork.

        Raises:
            NetworkError: they are no multiples of 128.
        """
        super().__init__(SHOGI_BOARD, 9, self.INPUTS, self.TABLES, value, policy, dropout)
