"""When a game of shogi is over, and who has won it."""

from __future__ import annotations

from yomi.engine.play import (
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
    Referee,
)
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import guilty_of
from yomi.engine.shogi.records.record import GameRecord

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
OCCURRENCES = 4
"""How often a position has stood when the game ends by repetition."""


def ending_of(record: GameRecord) -> str:
    """Return how a recorded game has ended.

    Records call every fault ILLEGAL_ACTION, or ILLEGAL_MOVE: it was perpetual check where the last position stands for
    the fourth time, else an illegal move, which may be the last one or left out.
    """
    if record.ending != "ILLEGAL_MOVE" and guilty_of(record.ending) is None:
        return {"TORYO": RESIGNATION, "TIME_UP": TIME, "KACHI": DECLARATION, **ENDINGS}.get(
            record.ending, record.ending
        )
    positions = [(placement.board, placement.hands, placement.side) for placement in record.placements()]
    return PERPETUAL_CHECK if positions.count(positions[-1]) >= OCCURRENCES else ILLEGAL


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


class ShogiReferee(Referee[ShogiGame]):
    """Ends games by mate, a fourth repetition, or the limit of moves that the game has."""

    def judge(self, game: ShogiGame) -> Ended | None:
        """Return how a game has ended; None while it goes on."""
        outcome = game.outcome()
        return None if outcome is None else Ended(outcome.winner, ENDINGS.get(outcome.ending, PERPETUAL_CHECK))
