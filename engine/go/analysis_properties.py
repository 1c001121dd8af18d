"""Properties of SGF in which KaTrain and LizzieYzy keep their analyses. Both programs then show yomi's."""

from __future__ import annotations

import base64
import gzip
import json

import numpy as np

from yomi.engine.color import WHITE
from yomi.engine.go.points import Board
from yomi.engine.review import Candidate, Opinion, ownership_values

CANDIDATES, PV_MOVES = 8, 10  # of a position: moves, and moves of their lines
ENGINE = "yomi"  # LizzieYzy takes one word


def lizzie_analysis(opinion: Opinion, board: Board) -> str:
    """Return the value of LZ: winrate of the side that moved last, visits, lead; then moves, for the side to move.

    Winrates of moves and priors are in hundredths of a percent.
    """
    assert opinion.score is not None
    moves = " info ".join(
        f"move {board.vertex(each.move)} visits {each.visits} winrate {round(10_000 * each.winrate)}"
        f" prior {round(10_000 * each.prior)} scoreMean {each.score or 0.0:.2f} pv {' '.join(_line(each, board))}"
        for each in opinion.candidates[:CANDIDATES]
    )
    return f"{ENGINE} {100 * (1.0 - opinion.winrate):.1f} {opinion.visits} {opinion.score:.1f} 0.0\n{moves}"


def katrain_analysis(opinion: Opinion, board: Board) -> list[str]:
    """Return the values of KT: ownership and policy as half floats, and the rest as JSON, each compressed.

    Winrates, scores and ownership are Black's. The policy of moves without visits is 0.
    """
    policy = np.zeros(board.area + 1, np.float16)
    for each in opinion.candidates:
        policy[board.index(each.move)] = each.prior
    assert opinion.score is not None
    moves = {
        board.vertex(each.move): {
            "move": board.vertex(each.move),
            "order": order,
            "visits": each.visits,
            "prior": each.prior,
            "winrate": _black(each.winrate, opinion, 1.0),
            "scoreLead": _black(each.score or 0.0, opinion, 0.0),
            "pv": _line(each, board),
        }
        for order, each in enumerate(opinion.candidates[:CANDIDATES])
    }
    root = {"visits": opinion.visits, "winrate": _black(opinion.winrate, opinion, 1.0)}
    root["scoreLead"] = _black(opinion.score, opinion, 0.0)
    data = json.dumps({"moves": moves, "root": root, "completed": True}, separators=(",", ":"))
    ownership = ownership_values(opinion.ownership).astype(np.float16)
    # no time stamp: equal analyses give equal files
    parts = (gzip.compress(part, mtime=0) for part in (ownership.tobytes(), policy.tobytes(), data.encode()))
    return [base64.standard_b64encode(part).decode() for part in parts]


def _black(value: float, opinion: Opinion, total: float) -> float:
    return round(total - value if opinion.color == WHITE else value, 4) + 0.0  # never -0.0


def _line(candidate: Candidate, board: Board) -> list[str]:
    # KaTrain's pass is "pass", as in GTP
    return [board.vertex(move) for move in candidate.pv[:PV_MOVES]]
