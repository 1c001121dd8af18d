"""What the protocols and the command line need of a player of Go; `engine.players.go` is the real one.

One thread (the protocol's loop) calls a player. The one exception is `interrupt`, which any thread may call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.players.analyst import Model
from engine.players.raw_evaluation import RawEvaluation
from engine.search.limits import Limits
from engine.search.report import SearchReport

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engine.games.go.game import GoGame
    from engine.options import Options, Value
    from engine.players.go_time import Clock


@dataclass(frozen=True, slots=True)
class GoDecision:
    """A move that a player has chosen."""

    move: int
    """Point or PASS; also given when `resign` is set (what it would have played)."""
    resign: bool
    report: SearchReport
    """The search behind it; without moves where none can be played any more."""


class GoThinker(Protocol):
    """A player of Go with its game, its clock and its search."""

    game: GoGame
    """The game as it stands. Its owner changes it in place (play, undo, komi, rules) or replaces it, while nothing
    searches; the player looks at it afresh whenever a search starts and keeps what still applies."""
    clock: Clock
    """Both sides' time. The player asks it for the budget of a move; who plays the moves starts and stops it."""
    options: Options
    """The settings in force."""

    @property
    def description(self) -> str:
        """What plays: the network's or evaluator's name, on one line."""

    @property
    def model(self) -> Model | None:
        """The network; None where there is none."""

    def genmove(
        self,
        color: int,
        *,
        avoid: Sequence[int] = (),
        allow: Sequence[int] | None = None,
        limits: Limits | None = None,
        cleanup: bool = False,
        on_report: Callable[[SearchReport], None] | None = None,
        interval: float = 1.0,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> GoDecision:
        """Choose a move for `color` in `game`, without playing it; block until it is chosen.

        A game that passes or a repetition have ended is played on: whoever asks for a move wants one.

        Args:
            color: BLACK or WHITE, also out of turn.
            avoid: Moves that are not to be chosen.
            allow: Where given, the only moves that may be chosen.
            limits: In place of those that follow from the options and the clock.
            cleanup: Capture all dead stones before passing, whatever the option says (kgs-genmove_cleanup), as far as
                the time for the move lets them be found.
            on_report: Called in this thread every `interval` seconds while the search runs. An exception
                that it raises stops the search and leaves this method.
            interval: Seconds.
            is_stopped: Whether an answer is wanted at once; asked when the search has been started, for an `interrupt`
                before that finds nothing to end.
        """

    def start_analysis(self, color: int, *, avoid: Sequence[int] = (), allow: Sequence[int] | None = None) -> None:
        """Search without limit from `game` with `color` to move; return at once."""

    def report(self) -> SearchReport:
        """Report the search that runs, or the last one after it was stopped; may be called at any time."""

    def stop(self) -> None:
        """End any search in the background (analysis, pondering); return when it is quiet. Nothing runs: no effect."""

    def interrupt(self) -> None:
        """Make the `genmove` that runs in another thread end soon with what it has; callable from any thread."""

    def ponder(self) -> None:
        """Search `game` in the background until `stop` (or until memory is full); return at once.

        A game that passes have ended is not searched: no move is to come.
        """

    def evaluate(
        self, symmetry: int | None, *, color: int | None = None, optimism: float | None = None
    ) -> RawEvaluation:
        """Evaluate `game` once, without search.

        Args:
            symmetry: 0 to 7; None averages over all.
            color: Who is to move; None for whose turn it is.
            optimism: Share of the optimistic policy, 0 to 1, where the network has one; None for the search's at the
                root.
        """

    def final_ownership(self) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end, [area] row by row from the top left, +1 Black.

        From the network where there is one, or from rollouts; takes at most about a second.
        """

    def set_option(self, name: str, value: Value) -> None:
        """Change a setting (already checked by `Options.set`) and bring the search in line with it.

        Raises:
            ValueError: This setting cannot be changed while the program runs.
            NetworkError, EvaluatorError: There is no evaluator for it; it stays as it was.
        """

    def clear_cache(self) -> None:
        """Forget the tree and all cached evaluations."""

    def prepare(self) -> None:
        """Load what the board and the rules of `game` need, before a clock runs; nothing where it is loaded.

        Raises:
            NetworkError, EvaluatorError: There is no evaluator for them.
        """

    def new_game(self) -> None:
        """Forget what belongs to the last game (tree, resignation count); load what the board of this one needs.

        Raises:
            NetworkError, EvaluatorError: There is no evaluator for this board.
        """

    def close(self) -> None:
        """Stop everything and release devices and threads; nothing may be called afterwards."""
