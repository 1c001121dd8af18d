"""When a game of shogi is over, and who has won it."""

from __future__ import annotations

from engine.play import (
    ADJUDICATION,
    DECLARATION,
    FAILURE,
    ILLEGAL,
    MATE,
    MAX_MOVES,
    PERPETUAL_CHECK,
    REPETITION,
    RESIGNATION,
    TIME,
    Ended,
)
from engine.shogi.game import ShogiGame

ENDINGS = {"TSUMI": MATE, "SENNICHITE": REPETITION, "MAX_MOVES": MAX_MOVES}
"""Endings by CSA's names; every other one is a perpetual check."""
CSA_NAMES = {
    RESIGNATION: "TORYO",
    ADJUDICATION: "TORYO",
    TIME: "TIME_UP",
    FAILURE: "TIME_UP",
    ILLEGAL: "ILLEGAL_MOVE",
    DECLARATION: "KACHI",
}
"""How records write endings that are not the referee's; an engine that failed has not moved in time."""


def csa_ending(ended: Ended, game: ShogiGame) -> str:
    """Return how a game ended as records of shogi write it."""
    name = CSA_NAMES.get(ended.ending)
    if name is None:
        outcome = game.outcome()
        assert outcome is not None, ended
        return outcome.ending
    if name in ("TORYO", "TIME_UP", "ILLEGAL_MOVE") and ended.winner == game.side_to_move:
        return "CHUDAN"  # the side that was not to move has lost: no record has a word for it
    return name


class ShogiReferee:
    """Ends games by mate, a fourth repetition, or the limit of moves that the game has."""

    def judge(self, game: ShogiGame) -> Ended | None:
        """Return how a game has ended; None while it goes on."""
        outcome = game.outcome()
        return None if outcome is None else Ended(outcome.winner, ENDINGS.get(outcome.ending, PERPETUAL_CHECK))
