"""What a network of Go is, and what it says of a position without search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class RawEvaluation:
    """One evaluation of a position, without search. Values are for White, as KataGo's `kata-raw-nn` prints them."""

    symmetry: int
    """0..7: the symmetry under which the evaluator saw the board; -1 the average of all. All below is turned back."""
    white_win: float
    """Probability in [0, 1]; with `white_loss` and `no_result` the sum is 1."""
    white_loss: float
    no_result: float
    white_lead: float
    """Points."""
    white_score_selfplay: float
    """Points that self-play would end with on average."""
    white_score_stdev: float
    """Points."""
    white_score_mean_square: float
    """Mean of that score's square."""
    policy: npt.NDArray[np.float32]
    """[area + 1], row by row from the top left, pass last, NaN illegal."""
    white_ownership: npt.NDArray[np.float32]
    """[area], +1 White owns the point."""
    extra: tuple[tuple[str, float], ...] = ()
    """Further outputs of the network by the names that KataGo prints (such as varTimeLeft)."""


@dataclass(frozen=True, slots=True)
class Model:
    """A network as `query_models` and `kata-get-models` tell it."""

    name: str
    """The network's own."""
    version: int
    """KataGo's model version."""
    batch_size: int
    """Positions that are evaluated together."""
    precision: str
    """What it computes with: fp32, int16, int8, bf16, fp16."""

    def to_json(self, net: str | None) -> dict[str, Any]:
        """Return what KataGo tells of a network that was read from the file `net`."""
        return {
            "name": Path(net or self.name).name,
            "internalName": self.name,
            "maxBatchSize": self.batch_size,
            "usesHumanSLProfile": False,
            "version": self.version,
            "usingFP16": str(self.precision == "fp16").lower(),
        }
