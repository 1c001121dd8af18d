"""The results of analysts of Go, and a network's results without search."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.search.types import SearchReport


@dataclass(frozen=True, slots=True)
class Analysis:
    """The state of a position's analysis, during or after the search."""

    report: SearchReport
    # Priors of the root [area + 1], row by row from the top left, pass last, NaN for illegal moves.
    policy: npt.NDArray[np.float32]
    raw: RawEvaluation | None = None  # the network's outputs without search; None without a network
    # By move of the root: [area] ownership, +1 for the side to move at the root. Empty unless requested.
    moves_ownership: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawEvaluation:
    """A network's outputs for one position, from White's point of view, as in KataGo's `kata-raw-nn`."""

    # Symmetry of the evaluation, 0 to 7, or -1 for the average of all. The fields below are in the board's orientation.
    symmetry: int
    white_win: float  # probability; sums to 1 with `white_loss` and `no_result`
    white_loss: float
    no_result: float
    white_lead: float  # points
    white_score_selfplay: float  # mean final score of self-play, in points
    white_score_stdev: float  # points
    white_score_mean_square: float  # mean square of the final score
    policy: npt.NDArray[np.float32]  # [area + 1], row by row from the top left, pass last, NaN for illegal moves
    white_ownership: npt.NDArray[np.float32]  # [area], +1 for White
    extra: tuple[tuple[str, float], ...] = ()  # further outputs by KataGo's names, such as varTimeLeft


@dataclass(frozen=True, slots=True)
class Model:
    """A network's metadata, as `query_models` and `kata-get-models` report it."""

    name: str
    version: int  # KataGo's model version
    batch_size: int  # positions evaluated together
    precision: str  # fp32, int16, int8, bf16 or fp16

    def to_json(self, net: str | None) -> dict[str, Any]:
        """Return KataGo's JSON for a network read from the file `net`."""
        return {
            "name": Path(net or self.name).name,
            "internalName": self.name,
            "maxBatchSize": self.batch_size,
            "usesHumanSLProfile": False,
            "version": self.version,
            "usingFP16": str(self.precision == "fp16").lower(),
        }
