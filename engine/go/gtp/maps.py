"""Answers about the position: score, status of stones, GoGui's maps of the board, and the network's raw output.

Maps of visits, winrates and the principal variation come from a short search, which continues the position's tree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, COLORS, opponent
from yomi.engine.go.game import score_text
from yomi.engine.go.gtp.codec import Command, GtpError, expect_count, integer, real
from yomi.engine.go.gtp.session import Session
from yomi.engine.go.gtp.table import command
from yomi.engine.go.players.setup import RawEvaluation
from yomi.engine.go.scoring import chains, final_status, removed_stones
from yomi.engine.go.vertex import board_points, format_color, format_vertex, parse_color, parse_vertex
from yomi.engine.search.types import Limits, MoveReport, SearchReport
from yomi.native.go.board import PASS

# Outputs of kata-raw-nn that not all networks have.
RAW_EXTRAS = ("varTimeLeft", "shorttermWinlossError", "shorttermScoreError")
SECONDS = 1.0  # time limit of the short search
CANDIDATES = 5  # number of moves with a label


def search(session: Session) -> SearchReport:
    """Search the current position briefly and return the report."""
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
    """Answer the network's outputs: [COLOR] SYMMETRY [OPTIMISM], with symmetry 0 to 7 or all.

    OPTIMISM (0 to 1) is the share of the optimistic policy. Networks without that output ignore it.
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
    found = (session.player.evaluate(game, symmetry, optimism) for symmetry in symmetries)
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
    """Return a color from pale to deep red for each positive value. The square root keeps small values visible."""
    top = float(values.max(initial=0.0))
    cells = []
    for value in values:
        share = (float(value) / top) ** 0.5 if top > 0 else 0.0
        other = round(255 * (1 - share))
        cells.append(f"#ff{other:02x}{other:02x}" if share > 0.03 else '""')
    return cells


@command("yomi-winrate")
def winrate(session: Session, request: Command) -> str:
    """Answer 2 * (Black's winrate) - 1 after each searched move."""
    game = session.game
    report = search(session)
    moves = _by_point(report)
    values = [
        _for_black(report, 2 * moves[point].winrate - 1) if point in moves else 0.0 for point in board_points(game.size)
    ]
    return dboard(np.array(values, np.float32), game.size)


@command("yomi-ownership")
def ownership(session: Session, request: Command) -> str:
    """Answer the expected owner of each point, +1 for Black."""
    return dboard(session.final_ownership(), session.game.size)


@command("yomi-territory")
def territory(session: Session, request: Command) -> str:
    """Answer the expected owner of each point by name."""
    cells = ["b" if value > 0.5 else "w" if value < -0.5 else '""' for value in session.final_ownership()]
    return board_of(cells, session.game.size)


@command("yomi-pv")
def principal_variation(session: Session, request: Command) -> str:
    report = search(session)
    return " ".join(format_vertex(move, session.game.size) for move in report.moves[0].pv) if report.moves else ""


@command("yomi-evaluation")
def evaluation(session: Session, request: Command) -> str:
    """Answer Black's winrate and lead after a short search."""
    report = search(session)
    lead = _for_black(report, report.score_lead)
    chance = report.winrate if report.side_to_move == BLACK else 1 - report.winrate
    return f"Black wins {100 * chance:.1f}%, lead {lead:+.1f} points, {report.visits} visits"


@command("yomi-best")
def best_moves(session: Session, request: Command) -> str:
    """Answer GoGui graphics: winrates as labels, the principal variation as a variation."""
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


STATUS = ("alive", "dead", "seki")


@command("final_score")
def final_score(session: Session, request: Command) -> str:
    """Answer the score, without dead stones if the rules have agreement. Before the end, score as if the game ended
    here.
    """
    expect_count(request, 0, 0, "")
    game = session.game
    if game.is_no_result:
        return "0"
    return score_text(game.final_score(removed_stones(game, session.final_ownership)))


@command("final_status_list")
def final_status_list(session: Session, request: Command) -> str:
    """Answer the stones with a status, one chain on each line."""
    expect_count(request, 1, 1, "alive|dead|seki")
    status = request.arguments[0].lower()
    if status not in STATUS:
        raise GtpError(f"invalid status {request.arguments[0]!r}: expected alive, dead or seki")
    game = session.game
    wanted = set(final_status(game, removed_stones(game, session.final_ownership))[status])
    lines = [
        " ".join(format_vertex(point, game.size) for point in chain) for _, chain in chains(game) if chain[0] in wanted
    ]
    return "\n".join(lines)


@command("final_status")
def final_status_(session: Session, request: Command) -> str:
    expect_count(request, 1, 1, "VERTEX")
    game = session.game
    point = parse_vertex(request.arguments[0], game.size)
    if point == PASS or not game.color_at(point):
        raise GtpError(f"no stone on {request.arguments[0]}: expected the vertex of a stone")
    found = final_status(game, removed_stones(game, session.final_ownership))
    return next(status for status in STATUS if point in found[status])


# -- formats -------------------------------------------------------------------------------------------------------


def raw_evaluation(raw: RawEvaluation, size: int) -> str:
    """Return an evaluation as kata-raw-nn does; -1 for missing outputs."""
    extra = dict(raw.extra)
    lines = [
        f"symmetry {raw.symmetry}",
        f"whiteWin {raw.white_win:.6f}",
        f"whiteLoss {raw.white_loss:.6f}",
        f"noResult {raw.no_result:.6f}",
        f"whiteLead {raw.white_lead:.3f}",
        f"whiteScoreSelfplay {raw.white_score_selfplay:.3f}",
        f"whiteScoreSelfplaySq {raw.white_score_mean_square:.3f}",
        *(f"{name} {extra.get(name, -1.0):.3f}" for name in RAW_EXTRAS),
        "policy",
        board_of([_probability(value) for value in raw.policy[:-1]], size),
        f"policyPass {_probability(raw.policy[-1])}",
        "whiteOwnership",
        board_of([f"{float(value):9.7f}" for value in raw.white_ownership], size),
    ]
    return "\n".join(lines)


def _probability(value: float) -> str:
    return "     NAN" if np.isnan(value) else f"{float(value):8.6f}"


def board_of(cells: list[str], size: int) -> str:
    """Return [area] texts as rows of a board, top row first."""
    return "\n".join(" ".join(cells[row * size : (row + 1) * size]) for row in range(size))


def dboard(values: npt.NDArray[np.float32], size: int) -> str:
    """Return [area] numbers in [-1, +1] as GoGui's dboard; NaN becomes 0."""
    return board_of([f"{float(value):.3f}" for value in np.nan_to_num(values)], size)
