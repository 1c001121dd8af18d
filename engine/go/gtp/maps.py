"""Answers about the position: GoGui's maps of the board, and the network's raw output.

Maps of visits, winrates and the principal variation come from a short search, which continues the position's tree.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, COLORS, opponent
from yomi.engine.go.game import GoGame
from yomi.engine.go.gtp.codec import Command, GtpError, command, integer, real
from yomi.engine.go.gtp.session import Session
from yomi.engine.go.players.setup import RawEvaluation
from yomi.engine.go.points import Board, format_color, parse_color
from yomi.engine.protocols.session import PAUSES
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.native.go.board import PASS

# Outputs of kata-raw-nn that not all networks have.
RAW_EXTRAS = ("varTimeLeft", "shorttermWinlossError", "shorttermScoreError")
CANDIDATES = 5  # number of moves with a label


def _by_point(report: SearchReport) -> dict[int, MoveReport]:
    return {move.move: move for move in report.moves}


def _for_black(report: SearchReport, value: float) -> float:
    return value if report.side_to_move == BLACK else -value


@command("kata-raw-nn", background=PAUSES)
def kata_raw_nn(session: Session, request: Command) -> str:
    """Answer with the network's outputs. Arguments: [COLOR] SYMMETRY [OPTIMISM], with symmetry 0 to 7 or all.

    OPTIMISM (0 to 1) is the share of the optimistic policy. Networks without that output ignore it.
    """
    game, symmetries, words = _raw_arguments(session, request, "[OPTIMISM]", 1)
    optimism = real(words[0], "optimism") if words else None
    if optimism is not None and not 0.0 <= optimism <= 1.0:
        raise GtpError("invalid optimism: expected a number from 0 to 1")
    found = (session.player.evaluate(game, symmetry, optimism) for symmetry in symmetries)
    return "\n".join(raw_evaluation(raw, session.game.board) for raw in found)


@command("kata-raw-human-nn", background=PAUSES)
def kata_raw_human_nn(session: Session, request: Command) -> str:
    """Answer with the outputs of the network of --human-net. Arguments: [COLOR] SYMMETRY; see `kata_raw_nn`."""
    game, symmetries, _ = _raw_arguments(session, request, "", 0)
    lines = []
    for symmetry in symmetries:
        raw = session.player.evaluate_human(game, symmetry)
        if raw is None and session.options.human_net is None:
            raise GtpError("Cannot run kata-raw-human-nn, -human-model was not provided: expected --human-net FILE")
        if raw is None:
            raise GtpError("Cannot run kata-raw-human-nn, humanSLProfile parameter was not set")
        lines.append(raw_evaluation(raw, session.game.board, is_human=True))
    return "\n".join(lines)


def _raw_arguments(session: Session, request: Command, more: str, most: int) -> tuple[GoGame, Sequence[int], list[str]]:
    """Read [COLOR] SYMMETRY ... and return the position, the symmetries and up to `most` further words."""
    words = list(request.arguments)
    color = parse_color(words.pop(0)) if words and words[0].lower() in COLORS else None
    if not 1 <= len(words) <= 1 + most:
        raise GtpError(f"syntax error: expected {request.name} [COLOR] SYMMETRY {more}".rstrip())
    symmetries = range(8) if words[0].lower() == "all" else [integer(words[0], "symmetry")]
    if not 0 <= symmetries[0] <= 7:
        raise GtpError("invalid symmetry: expected 0 to 7 or all")
    game = session.game.copy()
    if color is not None:
        game.turn_to(color)
    return game, symmetries, words[1:]


@command("yomi-policy", background=PAUSES)
def policy(session: Session, request: Command) -> str:
    game = session.game
    probabilities = np.nan_to_num(session.player.evaluate(game, None).policy[:-1])
    return board_of(_colors(probabilities), game.board)


@command("yomi-ownership", background=PAUSES)
def ownership(session: Session, request: Command) -> str:
    """Answer with the expected owner of each point; +1 is Black."""
    return dboard(session.final_ownership(), session.game.board)


@command("yomi-visits", background=PAUSES)
def visits(session: Session, request: Command) -> str:
    game = session.game
    moves = _by_point(session.short_search())
    counts = [float(moves[point].visits) if point in moves else 0.0 for point in game.board.points]
    return board_of(_colors(np.array(counts, np.float32)), game.board)


def _colors(values: npt.NDArray[np.float32]) -> list[str]:
    # The square root keeps small values visible.
    top = float(values.max(initial=0.0))
    cells = []
    for value in values:
        share = (float(value) / top) ** 0.5 if top > 0 else 0.0
        other = round(255 * (1 - share))
        cells.append(f"#ff{other:02x}{other:02x}" if share > 0.03 else '""')
    return cells


@command("yomi-winrate", background=PAUSES)
def winrate(session: Session, request: Command) -> str:
    """Answer with 2 * (Black's winrate) - 1 after each searched move."""
    game = session.game
    report = session.short_search()
    moves = _by_point(report)
    values = [
        _for_black(report, 2 * moves[point].winrate - 1) if point in moves else 0.0 for point in game.board.points
    ]
    return dboard(np.array(values, np.float32), game.board)


@command("yomi-pv", background=PAUSES)
def principal_variation(session: Session, request: Command) -> str:
    report = session.short_search()
    return " ".join(session.game.board.vertex(move) for move in report.moves[0].pv) if report.moves else ""


@command("yomi-best", background=PAUSES)
def best_moves(session: Session, request: Command) -> str:
    report = session.short_search()
    board = session.game.board
    if not report.moves:
        return "TEXT no move"
    shown = [move for move in report.moves[:CANDIDATES] if move.move != PASS]
    labels = " ".join(f"{board.vertex(move.move)} {100 * move.winrate:.0f}" for move in shown)
    color = report.side_to_move
    variation = []
    for move in report.moves[0].pv:
        variation.append(f"{format_color(color).lower()} {board.vertex(move)}")
        color = opponent(color)
    best = report.moves[0]
    lines = [f"VAR {' '.join(variation)}"]
    if labels:
        lines.append(f"LABEL {labels}")
    text = f"{board.vertex(best.move)} {100 * best.winrate:.1f}% {best.score_lead:+.1f} {report.visits} visits"
    return "\n".join([*lines, f"TEXT {text}"])


@command("yomi-evaluation", background=PAUSES)
def evaluation(session: Session, request: Command) -> str:
    report = session.short_search()
    lead = _for_black(report, report.score_lead)
    chance = report.winrate if report.side_to_move == BLACK else 1 - report.winrate
    return f"Black wins {100 * chance:.1f}%, lead {lead:+.1f} points, {report.visits} visits"


@command("yomi-territory", background=PAUSES)
def territory(session: Session, request: Command) -> str:
    cells = ["b" if value > 0.5 else "w" if value < -0.5 else '""' for value in session.final_ownership()]
    return board_of(cells, session.game.board)


# -- formats -------------------------------------------------------------------------------------------------------


def raw_evaluation(raw: RawEvaluation, board: Board, *, is_human: bool = False) -> str:
    """Return the answer to kata-raw-nn, or with `is_human` to kata-raw-human-nn."""
    if is_human:
        scores = [f"whiteScore {raw.white_score_selfplay:.3f}", f"whiteScoreSq {raw.white_score_mean_square:.3f}"]
    else:
        scores = [
            f"whiteLead {raw.white_lead:.3f}",
            f"whiteScoreSelfplay {raw.white_score_selfplay:.3f}",
            f"whiteScoreSelfplaySq {raw.white_score_mean_square:.3f}",
        ]
    lines = [
        f"symmetry {raw.symmetry}",
        f"whiteWin {raw.white_win:.6f}",
        f"whiteLoss {raw.white_loss:.6f}",
        f"noResult {raw.no_result:.6f}",
        *scores,
        *(f"{name} {raw.extra.get(name, -1.0):.3f}" for name in (RAW_EXTRAS[1:] if is_human else RAW_EXTRAS)),
        "policy",
        board_of([_probability(value) for value in raw.policy[:-1]], board),
        f"policyPass {_probability(raw.policy[-1])}",
        "whiteOwnership",
        board_of([f"{float(value):9.7f}" for value in raw.white_ownership], board),
    ]
    return "\n".join(lines)


def _probability(value: float) -> str:
    return "     NAN" if np.isnan(value) else f"{float(value):8.6f}"


def board_of(cells: list[str], board: Board) -> str:
    """Arrange texts [area] as rows of a board, top row first."""
    return "\n".join(map(" ".join, board.rows(cells)))


def dboard(values: npt.NDArray[np.float32], board: Board) -> str:
    """Format numbers [area] in [-1, +1] as GoGui's dboard; NaN becomes 0."""
    return board_of([f"{float(value):.3f}" for value in np.nan_to_num(values)], board)
