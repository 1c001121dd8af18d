"""KataGo's networks on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.evaluators.gpu import fill, for_kernels, open_engine, pack
from engine.go.networks.katago import OPTIMISM, KataGoEvaluator
from native.go.outputs import decode_rows
from native.spec import Inputs
from native.tree.buffers import make_batch
from nets.katago.outputs import RawOutputs
from nets.packed import Variant

if TYPE_CHECKING:
    from native.tree.arrays import Batch
    from nets.katago.network import FloatArray
    from nets.metadata import NetworkInfo

OUTPUTS = ("policy", "value", "misc", "ownership")
BATCH_SIZE, LARGEST_BATCH = 64, 256
"""Rows of a batch on 19x19, and at most on smaller boards, of which as many are filled as make the same points."""


def default_rows(size: int) -> int:
    """Return the rows of a batch for boards of `size`: a power of two."""
    return 1 << (min(LARGEST_BATCH, max(1, BATCH_SIZE * 19**2 // size**2)).bit_length() - 1)


class GpuKataGoEvaluator(KataGoEvaluator):
    """Evaluates batches in the one thread that made it; planes travel as bits."""

    inputs = Inputs.BITS

    def __init__(
        self,
        path: Path,
        info: NetworkInfo,
        device: str,
        backend: str = "auto",
        *,
        batch_size: int | None = None,
        precision: str = "auto",
    ) -> None:
        """Load an ONNX file that nets.load.prepare has returned.

        Args:
            path: the ONNX file.
            info: what nets.load.prepare says of it.
            device: auto, cuda or tensorrt, the latter two with or without a number.
            backend: onnx, tensorrt or auto.
            batch_size: rows of a batch; None for `default_rows`.
            precision: auto, fp32 or fp16.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        device = "cuda" if device == "auto" else device
        precision = "fp32" if precision == "fp32" else "fp16"
        super().__init__(info, device, batch_size or default_rows(info.board_size), precision)
        variant = Variant(half=self.precision == "fp16", packed=("spatial",))
        self._engine, self.backend = open_engine(path, device, backend, self.batch_size, OUTPUTS, variant)
        try:  # what decodes the outputs is compiled now, not in a game
            self.evaluate(make_batch(self.spec(info.board_size), 1, self.inputs), 1)
        except BaseException:
            self.close()
            raise

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows."""
        for part, outputs in self._outputs(batch.bits[:rows], batch.extras):
            policy, value, misc, ownership = map(for_kernels, outputs)
            decode_rows(
                part.stop - part.start,
                policy,
                value,
                misc,
                ownership,
                self._scales,
                OPTIMISM,
                batch.is_root[part],
                self.may_have_no_result,
                batch.logits[part],
                batch.values[part],
                batch.ownership[part],
            )

    def run(self, planes: FloatArray, extras: FloatArray) -> RawOutputs:
        """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]."""
        parts = [
            [output.astype(np.float32) for output in outputs] for _, outputs in self._outputs(pack(planes), extras)
        ]
        policy, value, misc, ownership = (np.concatenate(each) for each in zip(*parts, strict=True))
        return RawOutputs(policy=policy, value=value, misc=misc, ownership=ownership)

    def _outputs(
        self, bits: npt.NDArray[np.uint64], extras: FloatArray
    ) -> Iterator[tuple[slice, list[npt.NDArray[Any]]]]:
        """Yield the outputs of all rows of `bits`, as many at a time as the engine takes; valid until the next."""
        for begin in range(0, len(bits), self._engine.rows):
            part = slice(begin, min(begin + self._engine.rows, len(bits)))
            fill(self._engine, "spatial", bits[part])
            fill(self._engine, "global", extras[part])
            yield part, self._engine.run(part.stop - part.start)

    def close(self) -> None:
        """Release the device."""
        self._engine.close()
