"""Converts batches to tensors on the device: unpacks planes, and applies symmetries to planes and labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from yomi.nets.data.batches import Batch
from yomi.nets.data.columns import MOVES, OWNER_SCALE, POINTS, UNKNOWN_OWNER, Array, kind_of
from yomi.nets.data.symmetry import symmetries_of
from yomi.nets.definitions.sparse import SparseInput
from yomi.nets.metadata import LEVEL_SCALE, FeatureSet
from yomi.nets.sparse import SparseEncoder

# All rows of a batch.
WHOLE = slice(None)


@dataclass(frozen=True, eq=False)
class Example:
    """A batch in the form that network and losses read."""

    # Inputs of the network: planes [B, C, N, N] and globals [B, G, 1, 1], or a SparseInput.
    inputs: tuple[Any, ...]
    # The columns with labels, by name, in the network's symmetry: policy indices int64[B, K], their shares [B, K],
    # points [B, N * N] in [-1, 1], numbers [B]. NaN is unknown. `value` is the target: see `search_value` and `decay`.
    labels: dict[str, Tensor]

    @property
    def rows(self) -> int:
        return len(self.labels["value"])


@dataclass(eq=False)
class Decoder:
    """Converts batches of one feature set to examples."""

    features: FeatureSet
    device: torch.device  # of the examples
    symmetries: str  # random, stored or none
    seed: int  # with the step, determines random symmetries
    search_value: float  # share of the column `search_value` in the value, if the batch has it
    encoder: SparseEncoder | None = None  # encodes the inputs of a sparse network; None: the network reads planes
    decay: int = 0  # power of the column `progress` with which the result counts

    def __post_init__(self) -> None:
        self._tables: dict[int, tuple[Tensor, Tensor]] = {}
        self._shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=self.device)

    def example(self, batch: Batch, *, turned: bool = True, part: slice = WHOLE) -> Example:
        """Return a batch, or a part of it, on the device. If `turned` is false, no symmetry is applied."""
        columns = {name: self._tensor(array[part]) for name, array in batch.columns.items()}
        chosen = self._symmetry(batch, columns, part) if turned else None
        seen = sources = None
        if chosen is not None:
            seen, sources = (table[chosen] for table in self._tables_of(batch.size))
        inputs: tuple[Any, ...]
        if self.encoder is None:
            inputs = self._dense(columns, batch.size, sources)
        else:
            inputs = (self._sparse(self.encoder, batch, part, sources),)
        labels = {}
        for name, column in columns.items():
            if (kind := kind_of(name)) is not None and kind.is_label:
                labels[name] = _label(column, kind.form, seen, sources)
        labels["value"] = self._value(labels)
        return Example(inputs, labels)

    def _value(self, labels: dict[str, Tensor]) -> Tensor:
        """Return the value's target: the result, and instead of a part of it the search's value or 0."""
        value = labels["value"]
        share, rest = torch.ones_like(value), torch.zeros_like(value)
        if self.decay and "progress" in labels:
            share = labels["progress"].nan_to_num(1.0) ** self.decay
        if self.search_value and "search_value" in labels:
            searched = labels["search_value"]
            share = torch.where(searched.isnan(), share, share * (1.0 - self.search_value))
            rest = searched.nan_to_num(0.0)
        return rest + share * (value - rest)

    def _tensor(self, array: Array) -> Tensor:
        if array.dtype == np.uint16:
            array = array.astype(np.int32)
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor

    def _dense(self, columns: dict[str, Tensor], size: int, sources: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return planes [B, C, N, N] and globals [B, G, 1, 1]. `sources` [B, N * N]: old index of each new point."""
        features, packed = self.features, columns["planes"]
        bits = ((packed[:, :, None] >> self._shifts) & 1).flatten(1)[:, : features.bits * size * size]
        # Turned as bytes: float32 took 33 µs a row instead of 26 in Go on 19x19, and 26 instead of 16 in shogi.
        bits, levels = (
            _turned(each.reshape(len(packed), -1, size, size), sources)
            for each in (bits, columns["levels"] if features.levels else bits[:, :0])
        )
        parts = [bits.float()]
        if features.levels:
            parts.append(torch.tanh(LEVEL_SCALE * levels.float()))
        globals_ = columns["globals"].float() if "globals" in columns else parts[0].new_zeros((len(packed), 0))
        globals_ = globals_[:, :, None, None]
        if features.joined:
            parts.append(globals_.expand(-1, -1, size, size))
        planes = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        return planes.contiguous(memory_format=torch.channels_last), globals_[:, : features.extras]

    def _sparse(self, encoder: SparseEncoder, batch: Batch, part: slice, sources: Tensor | None) -> SparseInput:
        """Return the inputs of a sparse network. For `sources` see `_dense`."""
        levels = batch.columns["levels"][part]
        levels = levels.reshape(len(levels), self.features.levels, -1)
        if sources is not None:
            levels = np.take_along_axis(levels, sources.cpu().numpy()[:, None], 2)
        found = encoder.encode(levels, batch.columns["globals"][part])
        owners = np.repeat(np.arange(len(levels)), np.diff(found.starts))
        places = owners * self.features.policy_size(batch.size) + found.labels
        return SparseInput(
            active=self._tensor(found.active.astype(np.int64)),
            active_starts=self._tensor(found.active_starts[:-1]),
            places=self._tensor(places),
            found=found,
            encoder=encoder,
        )

    def _symmetry(self, batch: Batch, columns: dict[str, Tensor], part: slice) -> Tensor | None:
        """Return the symmetry of each row, or None if no symmetry is applied."""
        if self.symmetries == "none" or (self.symmetries == "stored" and "symmetry" not in columns):
            return None
        if self.symmetries == "stored":
            return columns["symmetry"].long()
        count = len(self._tables_of(batch.size)[0])
        # The whole batch is drawn, so that several processes together use the same numbers as one.
        chosen = np.random.default_rng([self.seed, batch.step]).integers(0, count, batch.rows)
        return torch.from_numpy(chosen[part]).to(self.device)

    def _tables_of(self, size: int) -> tuple[Tensor, Tensor]:
        """Return the new index of each move [S, P], and the old index of the point at each index [S, N * N]."""
        if size not in self._tables:
            tables = symmetries_of(self.features, size)
            moves, sources = (torch.from_numpy(each).to(self.device) for each in (tables.moves, tables.sources))
            self._tables[size] = moves, sources
        return self._tables[size]


def _turned(planes: Tensor, sources: Tensor | None) -> Tensor:
    """Return planes [B, C, N, N] in another symmetry, see `_dense`, with the channels last in memory."""
    if sources is not None:
        planes = planes.flatten(2).gather(2, sources[:, None].expand(-1, planes.shape[1], -1)).view(planes.shape)
    return planes.contiguous(memory_format=torch.channels_last)


def _label(column: Tensor, form: str, moves: Tensor | None, sources: Tensor | None) -> Tensor:
    """Return a column of labels in another symmetry.

    `moves` is the new index of each move, `sources` the old index of the point at each index.
    """
    if form == MOVES:
        return column.long() if moves is None else moves.gather(1, column.long())
    if form == POINTS:
        points = (column.float() / OWNER_SCALE).masked_fill(column == UNKNOWN_OWNER, float("nan"))
        return points if sources is None else points.gather(1, sources)
    return column.float()
