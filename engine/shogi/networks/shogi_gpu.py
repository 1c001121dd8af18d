"""Networks for shogi on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.evaluators.gpu import fill, for_kernels, open_engine, pack
from engine.shogi.networks.shogi import FloatArray, ShogiEvaluator
from native.shogi.outputs import decode_rows
from native.shogi.spec import shogi_spec
from native.spec import Inputs, packed_words
from native.tree.buffers import make_batch
from nets.dlshogi.network import AREA, ShogiForm
from nets.packed import Variant

if TYPE_CHECKING:
    from native.tree.arrays import Batch
    from nets.dlshogi.network import ShogiNetwork
    from nets.metadata import NetworkInfo

BATCH_SIZE = 128


class GpuShogiEvaluator(ShogiEvaluator):
    """Evaluates batches in the one thread that made it; dlshogi's inputs travel as bits."""

    def __init__(
        self,
        path: Path,
        network: ShogiNetwork,
        info: NetworkInfo,
        device: str,
        backend: str = "auto",
        *,
        batch_size: int | None = None,
        precision: str = "auto",
    ) -> None:
        """Load a file that nets.load.prepare_shogi knows.

        Args:
            path: the ONNX file.
            network: the outside of the file.
            info: what is known of it.
            device: auto, cuda or tensorrt, the latter two with or without a number.
            backend: onnx, tensorrt or auto.
            batch_size: rows of a batch; None for what the file is made for, or BATCH_SIZE.
            precision: auto, fp32 or fp16.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        rows = network.fixed_rows or batch_size or BATCH_SIZE
        device = "cuda" if device == "auto" else device
        is_half = precision != "fp32" or network.board.element_type == "float16"
        super().__init__(network, info, device, rows, "fp16" if is_half else "fp32")
        # AlphaZero's form has counts among its planes.
        hands = () if network.hands is None else (network.hands.name,)
        is_packed = network.form is ShogiForm.DLSHOGI
        self.inputs = Inputs.BITS if is_packed else Inputs.NUMBERS
        packed = (network.board.name, *hands) if is_packed else ()
        variant = Variant(half=is_half, packed=packed, constant=hands if packed else ())
        outputs = (network.policy.name, network.value.name)
        self._engine, self.backend = open_engine(
            path, device, backend, rows, outputs, variant, fixed=network.fixed_rows is not None
        )
        try:
            self.check()
        except BaseException:
            self.close()
            raise

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits and values of the first `rows` rows; shogi has no score and no ownership."""
        if self.inputs is Inputs.BITS:
            end = packed_words(self.network.planes * AREA)
            board, hands = batch.bits[:rows, :end], batch.bits[:rows, end:]
        else:
            board, hands = batch.planes[:rows], batch.extras[:rows]
        for part, policy, value in self._outputs(board, hands):
            decode_rows(
                part.stop - part.start,
                for_kernels(policy),
                for_kernels(value),
                self.network.is_chance,
                batch.logits[part],
                batch.values[part],
            )

    def run(self, planes: FloatArray, extras: FloatArray, logits: FloatArray) -> FloatArray:
        """Write the logits and return the values; see the base class."""
        values = np.empty(len(planes), np.float32)
        inputs = (pack(planes), pack(extras)) if self.inputs is Inputs.BITS else (planes, extras)
        for part, policy, value in self._outputs(*inputs):
            logits[part] = policy
            values[part] = value[:, 0]
        return values

    def _outputs(
        self, board: npt.NDArray[Any], hands: npt.NDArray[Any]
    ) -> Iterator[tuple[slice, npt.NDArray[Any], npt.NDArray[Any]]]:
        """Yield policies [n, P] and values [n, 1] of all rows, as many at a time as the engine takes.

        They are valid until the next.
        """
        network, most = self.network, self._engine.rows
        for begin in range(0, len(board), most):
            part = slice(begin, min(begin + most, len(board)))
            count = part.stop - begin
            fill(self._engine, network.board.name, board[part])
            if network.hands is not None:
                fill(self._engine, network.hands.name, hands[part])
            policy, value = self._engine.run(count)
            yield part, policy.reshape(count, network.policy_size), value.reshape(count, 1)

    def check(self) -> None:
        """Evaluate an empty board; see the base class. What decodes a batch is compiled here too, not in a game."""
        super().check()
        self.evaluate(make_batch(shogi_spec(*self.spec_features), 1, self.inputs), 1)

    def close(self) -> None:
        """Release the device."""
        self._engine.close()
