"""What GoGui shows on the board, and the raw output of the network.

The maps of visits, winrates and the principal variation are those of a short search, which builds on the tree that is
kept for the position where there is one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, COLORS, opponent
from yomi.engine.go.gtp.arguments import integer, real
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.formats import board_of, dboard, raw_evaluation
from yomi.engine.go.gtp.session import GtpError, Session
from yomi.engine.go.gtp.table import command
from yomi.engine.go.vertex import board_points, format_color, format_vertex, parse_color
from yomi.engine.search.types import Limits, MoveReport, SearchReport
from yomi.native.go.board import PASS

SECONDS = 1.0
"""For a search that a map needs."""
CANDIDATES = 5
"""Moves that get a label."""


def search(session: Session) -> SearchReport:
    """Search the present position for a moment, or as far as the options allow, and return the report."""
    request = session.request()
    request.limits = Limits(seconds=SECONDS)
    report = session.player.decide(request).report
    session.tell_hurry()
    return report


def _by_point(report: SearchReport) -> dict[int, MoveReport]:
    return {move.move: move for move in report.moves}


def _for_black(report: SearchReport, value: float) -> float:
    return value if report.side_to_move == BLACK else -value


@command("kata-raw-nn")
def kata_raw_nn(session: Session, request: Command) -> str:
    """Answer what the network says as if it were COLOR's turn: [COLOR] SYMMETRY [OPTIMISM]; symmetry 0 to 7 or all.

    OPTIMISM, 0 to 1, is the share of the optimistic policy; networks without one pay no heed to it.
    """
    words = list(request.arguments)
    color = parse_color(words.pop(0)) if words and words[0].lower() in COLORS else None
    if not 1 <= len(words) <= 2:
        raise GtpError("syntax error: expected kata-raw-nn [COLOR] SYMMETRY [OPTIMISM]")
    symmetries = range(8) if words[0].lower() == "all" else [integer(words[0], "symmetry")]
    if not 0 <= symmetries[0] <= 7:
        raise GtpError("invalid symmetry: expected 0 to 7 or all")
    optimism = real(words[1], "optimism") if len(words) == 2 else None
    if optimism is not None and not 0.0 <= optimism <= 1.0:
        raise GtpError("invalid optimism: expected a number from 0 to 1")
    game = session.game.copy()
    if color is not None:
        game.turn_to(color)
    found = (session.player.evaluate(game, each, optimism) for each in symmetries)
    return "\n".join(raw_evaluation(raw, session.game.size) for raw in found)


@command("yomi-policy")
def policy(session: Session, request: Command) -> str:
    """Answer the network's policy as colors."""
    game = session.game
    probabilities = np.nan_to_num(session.player.evaluate(game, None).policy[:-1])
    return board_of(_colors(probabilities), game.size)


@command("yomi-visits")
def visits(session: Session, request: Command) -> str:
    """Answer the visits of each move as colors."""
    game = session.game
    moves = _by_point(search(session))
    counts = [float(moves[point].visits) if point in moves else 0.0 for point in board_points(game.size)]
    return board_of(_colors(np.array(counts, np.float32)), game.size)


def _colors(values: npt.NDArray[np.float32]) -> list[str]:
    """Return a color from pale to deep red for each value above 0; the square root keeps small ones visible."""
    top = float(values.max(initial=0.0))
    cells = []
    for value in values:
        share = (float(value) / top) ** 0.5 if top > 0 else 0.0
        other = round(255 * (1 - share))
        cells.append(f"#ff{other:02x}{other:02x}" if share > 0.03 else '""')
    return cells


@command("yomi-winrate")
def winrate(session: Session, request: Command) -> str:
    """Answer the winrate after each searched move, +1 where Black wins, as numbers."""
    game = session.game
    report = search(session)
    moves = _by_point(report)
    values = [
        _for_black(report, 2 * moves[point].winrate - 1) if point in moves else 0.0 for point in board_points(game.size)
    ]
    return dboard(np.array(values, np.float32), game.size)


@command("yomi-ownership")
def ownership(session: Session, request: Command) -> str:
    """Answer the expected owner of each point, +1 Black, as numbers."""
    return dboard(session.final_ownership(), session.game.size)


@command("yomi-territory")
def territory(session: Session, request: Command) -> str:
    """Answer the probable owner of each point by name."""
    cells = ["b" if value > 0.5 else "w" if value < -0.5 else '""' for value in session.final_ownership()]
    return board_of(cells, session.game.size)


@command("yomi-pv")
def principal_variation(session: Session, request: Command) -> str:
    """Answer the principal variation."""
    report = search(session)
    return " ".join(format_vertex(move, session.game.size) for move in report.moves[0].pv) if report.moves else ""


@command("yomi-evaluation")
def evaluation(session: Session, request: Command) -> str:
    """Answer winrate and lead of a short search for Black."""
    report = search(session)
    lead = _for_black(report, report.score_lead)
    chance = report.winrate if report.side_to_move == BLACK else 1 - report.winrate
    return f"Black wins {100 * chance:.1f}%, lead {lead:+.1f} points, {report.visits} visits"


@command("yomi-best")
def best_moves(session: Session, request: Command) -> str:
    """Answer the best moves as GoGui's graphics: winrates as labels, the expected course as a variation."""
    report = search(session)
    size = session.game.size
    if not report.moves:
        return "TEXT no move"
    shown = [move for move in report.moves[:CANDIDATES] if move.move != PASS]
    labels = " ".join(f"{format_vertex(move.move, size)} {100 * move.winrate:.0f}" for move in shown)
    color = report.side_to_move
    variation = []
    for move in report.moves[0].pv:
        variation.append(f"{format_color(color).lower()} {format_vertex(move, size)}")
        color = opponent(color)
    best = report.moves[0]
    lines = [f"VAR {' '.join(variation)}"]
    if labels:
        lines.append(f"LABEL {labels}")
    text = f"{format_vertex(best.move, size)} {100 * best.winrate:.1f}% {best.score_lead:+.1f} {report.visits} visits"
    return "\n".join([*lines, f"TEXT {text}"])
