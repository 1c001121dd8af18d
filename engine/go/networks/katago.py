"""What all evaluators of KataGo's networks (and our own with the same features) share, whatever computes them."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.network import NetworkEvaluator
from native.go.outputs import decode
from native.go.spec import go_spec
from nets.katago.outputs import scales_of

if TYPE_CHECKING:
    from native.calls import Calls
    from native.spec import GameSpec
    from native.tree.arrays import Batch
    from nets.katago.network import FloatArray
    from nets.katago.outputs import RawOutputs
    from nets.metadata import NetworkInfo

ROOT_OPTIMISM, TREE_OPTIMISM = 0.2, 1.0
"""Share of the optimistic policy at the root and below it, as KataGo's GTP engine has it."""
OPTIMISM = np.array([TREE_OPTIMISM, ROOT_OPTIMISM], np.float32)


class KataGoEvaluator(NetworkEvaluator):
    """A network for one board size. `run` and `evaluate` may be called by several threads at once."""

    def __init__(self, info: NetworkInfo, device: str, batch_size: int, precision: str) -> None:
        """Hold what every backend needs; see the base class."""
        super().__init__(info, device, batch_size, precision)
        scales = scales_of(info)
        self._scales = np.array([scales.score_mean, scales.score_stdev, scales.lead], np.float32)
        self.may_have_no_result = False
        """Whether a game can end without a result under the rules that are played; false until it is set."""

    def spec(self, size: int) -> GameSpec:
        """Return what a search with this network has to know of Go on a `size` × `size` board."""
        areas = self.info.prefer_pass_alive_under_suicide_rules
        return go_spec(size, suicide_areas=areas, judges_agreement=True)

    @abstractmethod
    def run(self, planes: FloatArray, extras: FloatArray) -> RawOutputs:
        """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]. The GIL is released."""

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows."""
        self.bind_outputs(self.run(batch.planes[:rows], batch.extras[:rows]), batch).run(rows)

    def bind_outputs(self, raw: RawOutputs, batch: Batch) -> Calls:
        """Return the call that writes raw outputs into a batch."""
        return decode.bind(
            raw.policy,
            raw.value,
            raw.misc,
            raw.ownership,
            self._scales,
            OPTIMISM,
            batch.is_root,
            self.may_have_no_result,
            batch.logits,
            batch.values,
            batch.ownership,
        )
