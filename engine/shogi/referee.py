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

ENDINGS = {"TSUMI": MATE, "SENNICHITE": REPETITION, "MAX_MOVES": MAX_MOVES}  # by CSA name; others are perpetual check
# CSA names of endings that the referee does not decide. A failed engine counts as out of time.
CSA_NAMES = {
    RESIGNATION: "TORYO",
    ADJUDICATION: "TORYO",
    TIME: "TIME_UP",
    FAILURE: "TIME_UP",
    ILLEGAL: "ILLEGAL_MOVE",
    DECLARATION: "KACHI",
}
OCCURRENCES = 4  # a position's fourth occurrence ends the game


def ending_of(record: GameRecord) -> str:
    """Return how a recorded game ended, in terms of yomi.engine.play.

    Records use ILLEGAL_ACTION or ILLEGAL_MOVE for every foul. It was perpetual check if the last position occurred four
    times, otherwise an illegal move (recorded or not).
    """
    if record.ending != "ILLEGAL_MOVE" and guilty_of(record.ending) is None:
        return {"TORYO": RESIGNATION, "TIME_UP": TIME, "KACHI": DECLARATION, **ENDINGS}.get(
            record.ending, record.ending
        )
    positions = [(placement.board, placement.hands, placement.side) for placement in record.placements()]
    return PERPETUAL_CHECK if positions.count(positions[-1]) >= OCCURRENCES else ILLEGAL


def csa_ending(ended: Ended, game: ShogiGame) -> str:
    """Return CSA's name for the ending of a game."""
    name = CSA_NAMES.get(ended.ending)
    if name is None:
        outcome = game.outcome()
        assert outcome is not None, ended
        return outcome.ending
    if name in ("TORYO", "TIME_UP", "ILLEGAL_MOVE") and ended.winner == game.side_to_move:
        return "CHUDAN"  # the side that was not to move has lost: no record has a word for it
    return name


class ShogiReferee(Referee[ShogiGame]):
    """Ends games by mate, a fourth repetition, or the move limit."""

    def judge(self, game: ShogiGame) -> Ended | None:
        outcome = game.outcome()
        return None if outcome is None else Ended(outcome.winner, ENDINGS.get(outcome.ending, PERPETUAL_CHECK))
