"""Networks for shogi on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.gpu import fill, open_engine
from engine.evaluators.shogi import FloatArray, ShogiEvaluator
from nets.dlshogi.network import ShogiForm
from nets.packed import Variant

if TYPE_CHECKING:
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
        packed = (network.board.name, *hands) if network.form is ShogiForm.DLSHOGI else ()
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

    def run(self, planes: FloatArray, extras: FloatArray, logits: FloatArray) -> FloatArray:
        """Write the logits and return the values; see the base class."""
        network, rows = self.network, self._engine.rows
        values = np.empty(len(planes), np.float32)
        for begin in range(0, len(planes), rows):
            part = slice(begin, min(begin + rows, len(planes)))
            count = part.stop - begin
            fill(self._engine, network.board.name, planes[part])
            if network.hands is not None:
                fill(self._engine, network.hands.name, extras[part])
            policy, value = self._engine.run(count)
            logits[part] = policy.reshape(count, network.policy_size)
            values[part] = value.reshape(count)
        return values

    def close(self) -> None:
        """Release the device."""
        self._engine.close()
