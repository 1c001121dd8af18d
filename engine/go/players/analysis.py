"""The interface between the analysis protocol and its analysts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from yomi.engine.go.players.raw_evaluation import Model, RawEvaluation
from yomi.engine.search.report import SearchReport

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.go.game import GoGame
    from yomi.engine.players.request import Request


@dataclass(frozen=True, slots=True)
class Analysis:
    """The state of a position's analysis, during or after the search."""

    report: SearchReport
    # Priors of the root [area + 1], row by row from the top left, pass last, NaN for illegal moves.
    policy: npt.NDArray[np.float32]
    raw: RawEvaluation | None = None  # the network's outputs without search; None without a network
    # By move of the root: [area] ownership, +1 for the side to move at the root. Empty unless requested.
    moves_ownership: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)


class Analyst(Protocol):
    """Searches positions of any size and rules, one after the other. One thread calls it, but any thread may call
    `clear_cache`.
    """

    @property
    def description(self) -> str: ...

    @property
    def model(self) -> Model | None:
        """The network; None if there is none."""

    def analyze(
        self, request: Request[GoGame], on_report: Callable[[Analysis], None], *, moves_ownership: bool = False
    ) -> Analysis:
        """Search a position to its limits, or until the request is stopped.

        Args:
            request: the position; its `on_report` is ignored.
            on_report: called in this thread during the search, at the request's intervals.
            moves_ownership: also find the ownership after each reported move.

        Raises:
            EvaluatorError: the network cannot be used for this board.
        """

    def clear_cache(self) -> None:
        """Forget all evaluations. A running search continues."""

    def close(self) -> None:
        """Release devices and threads. The analyst cannot be used afterwards."""
