"""What the analysis protocol needs of an analyst of Go; `yomi.engine.go.players.analyst` is the real one.

An analyst searches positions one after the other. One thread asks it; any may call `interrupt` and `clear_cache`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from yomi.engine.go.players.raw_evaluation import Model, RawEvaluation
from yomi.engine.search.types import SearchReport

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.go.game import GoGame
    from yomi.engine.players.request import Request


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyst says of a position, at the end of a search or while it runs."""

    report: SearchReport
    policy: npt.NDArray[np.float32]
    """[area + 1], row by row from the top left, pass last, NaN illegal: the root's priors."""
    raw: RawEvaluation | None = None
    """What the network says of the position without a search; None if there is no network."""
    moves_ownership: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Owners by move of the root, as SearchReport.ownership (+1 the side to move at the root), if they were wanted."""


class Analyst(Protocol):
    """Analyses positions of any size and rules."""

    @property
    def description(self) -> str:
        """What judges, on one line."""

    @property
    def model(self) -> Model | None:
        """The network; None if there is none."""

    def analyze(
        self, request: Request[GoGame], on_report: Callable[[Analysis], None], *, moves_ownership: bool = False
    ) -> Analysis:
        """Search a position to its limits, or until the request is stopped.

        Args:
            request: the position; its `on_report` is not used.
            on_report: called in this thread during the search as the request's intervals say.
            moves_ownership: tell who owns each point after each move of the report.

        Raises:
            EvaluatorError: the network cannot be used for this board.
        """

    def clear_cache(self) -> None:
        """Forget all evaluations; a search that runs goes on."""

    def close(self) -> None:
        """Release devices and threads; nothing may be called afterwards."""
