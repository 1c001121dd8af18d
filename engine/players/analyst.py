"""What the analysis protocol needs of an analyst of Go; `engine.players.go_analyst` is the real one.

An analyst searches positions one after the other, each by itself unless its assignment says otherwise: nothing of an
earlier search shows in a result but that evaluations of the network need not be made again. One thread asks it; any may
call `interrupt` and `clear_cache`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.players.raw_evaluation import RawEvaluation
from engine.search.limits import Limits
from engine.search.report import SearchReport

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engine.games.go.game import GoGame
    from engine.options import Options


@dataclass(frozen=True, slots=True)
class Assignment:
    """A position to analyse, and how."""

    game: GoGame
    """Stays as it is."""
    options: Options
    """The settings of this search; those of sizes and threads are the analyst's own."""
    limits: Limits
    avoid: tuple[int, ...] = ()
    """Moves of the root that are not searched."""
    allow: tuple[int, ...] | None = None
    """Where given, the only moves of the root that are searched."""
    pv_length: int = 15
    """Moves of a principal variation after the first, at most."""
    moves_ownership: bool = False
    """Tell who owns each point after each move of the report."""
    first_report: float | None = None
    """Seconds until the first report during the search; None for no such report."""
    report_every: float | None = None
    """Seconds between further reports; None for none."""
    raw: bool = True
    """Ask what the network says without a search."""
    keep_tree: bool = False
    """Go on with the tree of the assignment before, where its position leads to this one."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set before `interrupt` is called, so that a search which has not begun yet ends at once, too."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyst says of a position, at the end of a search or while it runs."""

    report: SearchReport
    policy: npt.NDArray[np.float32]
    """[area + 1], row by row from the top left, pass last, NaN illegal: the root's priors."""
    raw: RawEvaluation | None = None
    """What the network says of the position without a search; None where there is no network, or nobody asked."""
    moves_ownership: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Owners by move of the root, as SearchReport.ownership (+1 the side to move at the root), where asked for."""


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
    """What it computes with: fp32, int16, fp16."""

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


class Analyst(Protocol):
    """Analyses positions of any size and rules."""

    @property
    def description(self) -> str:
        """What judges, on one line."""

    @property
    def model(self) -> Model | None:
        """The network; None where there is none."""

    def analyze(self, assignment: Assignment, on_report: Callable[[Analysis], None]) -> Analysis:
        """Search a position to its limits or until `interrupt`.

        Args:
            assignment: the position.
            on_report: called in this thread during the search as the assignment asks.

        Raises:
            EvaluatorError, NetworkError: the network cannot be used for this board.
        """

    def interrupt(self) -> None:
        """Make the `analyze` that runs in another thread end as soon as it has a move; none runs: no effect."""

    def clear_cache(self) -> None:
        """Forget all evaluations; a search that runs goes on."""

    def close(self) -> None:
        """Release devices and threads; nothing may be called afterwards."""
