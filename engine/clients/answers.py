"""What engines answer when they are asked for a move."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An engine's opinion of the position in which it chose its move, for the side to move."""

    winrate: float | None = None
    """In [0, 1]."""
    score: float | None = None
    """Go: points of lead; shogi: centipawns."""
    visits: int | None = None
    """Visits or nodes, as the engine counts them."""
    pv: tuple[str, ...] = ()
    mate: int | None = None
    """Shogi: plies to the mate; negative if the side to move is mated; None if the engine reports none."""

    def __str__(self) -> str:
        """Return it for a record of Go."""
        parts = []
        if self.winrate is not None:
            parts.append(f"{100 * self.winrate:.1f}%")
        if self.score is not None:
            parts.append(f"{self.score:+.1f}")
        if self.visits is not None:
            parts.append(f"{self.visits} visits")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class EngineMove:
    """A move that an engine chose."""

    move: str
    """As the protocol writes it; also `resign`, and `win` in shogi."""
    seconds: float
    """From the command to the answer."""
    evaluation: Evaluation | None = None
    """None if the engine reported none."""
    reply: str = ""
    """USI: the opponent's move that the engine expects; empty for none."""
    report: str = ""
    """GTP: the last line before the move, as the engine wrote it; empty for none."""
