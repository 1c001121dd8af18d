"""Score and status of stones at the end of a game."""

from __future__ import annotations

from yomi.engine.go.game import score_text
from yomi.engine.go.gtp.arguments import expect_count
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.session import GtpError, Session
from yomi.engine.go.gtp.table import command
from yomi.engine.go.scoring import chains, final_status, removed_stones
from yomi.engine.go.vertex import format_vertex, parse_vertex
from yomi.native.go.board import PASS

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
