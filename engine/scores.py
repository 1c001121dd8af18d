"""Winrates as centipawns, and back: what records keep of an evaluation and what USI shows.

A logit of the winrate is worth `scale` centipawns.
"""

import math
from dataclasses import dataclass

MATE_SCORE = 30_000
"""Centipawns of a mate in a record, less its plies."""
MAX_USI_CENTIPAWNS = 30_000
"""What USI shows a sure win as where no mate is known."""


@dataclass(frozen=True, slots=True)
class Score:
    """How the scores of positions are shown."""

    unit: str
    """In tables."""
    digits: int
    """Behind the point."""
    axis: str
    """In pictures."""
    limit: float = math.inf
    """Scores are drawn up to here."""
    mean_limit: float = math.inf
    """Scores and losses count up to here in a mean: a mate is 30,000 centipawns."""


def record_score(winrate: float, mate: int | None, scale: float) -> int:
    """Return centipawns for the side to move, as records keep them.

    Mates and winrates share one number there, so that a winrate gives MATE_SCORE / 2 at most and is never taken for a
    mate; USI has a word for mates, see `usi_centipawns`.

    Args:
        winrate: in [0, 1].
        mate: plies to a mate, negative where it is the side to move that is mated; None or 0 for none.
        scale: centipawns of a logit.
    """
    if mate:
        return MATE_SCORE - mate if mate > 0 else -MATE_SCORE - mate
    bounded = min(max(winrate, 1e-9), 1.0 - 1e-9)
    score = scale * math.log(bounded / (1.0 - bounded))
    return round(min(max(score, -MATE_SCORE / 2), MATE_SCORE / 2))


def usi_centipawns(winrate: float, scale: float) -> int:
    """Return the centipawns of a winrate in [0, 1] as USI shows them, beside which mates have a word of their own.

    Args:
        winrate: one that is sure gives MAX_USI_CENTIPAWNS, beyond which no other one goes.
        scale: centipawns of a logit.
    """
    if winrate <= 0.0 or winrate >= 1.0:
        return MAX_USI_CENTIPAWNS if winrate >= 1.0 else -MAX_USI_CENTIPAWNS
    score = scale * math.log(winrate / (1.0 - winrate))
    return max(-MAX_USI_CENTIPAWNS, min(MAX_USI_CENTIPAWNS, round(score)))


def winrate_of(score: float, scale: float) -> float:
    """Return the winrate in [0, 1] of a score in centipawns; `scale` is that of a logit.

    This is 1 / (1 + exp(-score / scale)), which overflows for a score such as -99999.
    """
    return 0.5 + 0.5 * math.tanh(score / (2.0 * scale))
