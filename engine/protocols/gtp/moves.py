"""Commands that let the engine choose a move."""

from __future__ import annotations

from engine.games.go.vertex import format_vertex, parse_color
from engine.players.go_base import GoDecision
from engine.protocols.gtp.analysis import AnalysisArguments, form_of, read_arguments
from engine.protocols.gtp.arguments import expect_count
from engine.protocols.gtp.codec import Command
from engine.protocols.gtp.formats import cgos_json, info_line
from engine.protocols.gtp.session import HURRY, Finished, GtpError, Session
from engine.protocols.gtp.table import command
from engine.search.limits import Limits
from engine.search.report import SearchReport

POLL = 0.02
"""Seconds between looks at the input in a search that a line of input cancels."""


class CancelledError(Exception):
    """A line of input came during a search that it cancels."""


def decide(
    session: Session, request: Command, arguments: AnalysisArguments, *, show: bool, play: bool = True
) -> GoDecision:
    """Choose a move, and play it unless it is only asked for.

    Args:
        session: The session.
        request: The command; its name says how the reports look and what else is special.
        arguments: Color and restrictions.
        show: Print reports while the search runs; the answer has begun then.
        play: Play the move, charge the clock for it, and think on in the opponent's time. Else it is kept in mind: a
            controller that plays it next wants the same.
    """
    player, game = session.player, session.game
    style = arguments.style(form_of(request.name))
    cancellable = request.name.endswith("_cancellable")
    due = session.arrival + arguments.interval
    is_searched = False

    def on_report(report: SearchReport) -> None:
        nonlocal due
        if cancellable and session.inbox.wait(0):
            raise CancelledError
        if show and session.now() >= due:
            due = session.now() + arguments.interval
            if text := info_line(report, game.size, style):
                session.write(text + "\n")

    def is_stopped() -> bool:
        nonlocal is_searched
        is_searched = True
        return session.is_interrupted

    session.clock.start(arguments.color, session.arrival)
    try:
        decision = player.genmove(
            arguments.color,
            avoid=sorted(arguments.avoid),
            allow=None if arguments.allow is None else sorted(arguments.allow),
            limits=Limits(seconds=HURRY) if session.is_hurried else None,
            cleanup=request.name == "kgs-genmove_cleanup",
            on_report=on_report if show or cancellable else None,
            interval=POLL if cancellable else arguments.interval,
            is_stopped=is_stopped,
        )
        if play:
            if not decision.resign:
                game.play(arguments.color, decision.move)
            session.clock.stop(session.options.lag)
            session.ponder_after = not decision.resign
        else:
            session.proposed = len(game.moves), arguments.color, decision.move
    finally:
        session.clock.cancel()
    if is_searched:
        session.tell_hurry()
    return decision


def _answer(decision: GoDecision, size: int) -> str:
    return "resign" if decision.resign else format_vertex(decision.move, size)


def _only_color(request: Command) -> AnalysisArguments:
    expect_count(request, 1, 1, "COLOR")
    return AnalysisArguments(parse_color(request.arguments[0]))


@command("genmove", "kgs-genmove_cleanup")
def genmove(session: Session, request: Command) -> str:
    """Choose and play a move; answer it, or `resign`."""
    decision = decide(session, request, _only_color(request), show=False)
    return _answer(decision, session.game.size)


@command("reg_genmove", "kata-search", "kata-search_cancellable")
def search(session: Session, request: Command) -> str:
    """Choose a move and answer it without playing it."""
    try:
        decision = decide(session, request, _only_color(request), show=False, play=False)
    except CancelledError:
        return "cancelled"
    return _answer(decision, session.game.size)


@command("genmove_analyze", "lz-genmove_analyze", "kata-genmove_analyze")
def genmove_analyze(session: Session, request: Command) -> Finished:
    """Choose and play a move and print reports meanwhile; `play VERTEX` is the last line."""
    arguments = read_arguments(session, request)
    session.begin()
    decision = decide(session, request, arguments, show=True)
    return _finish(session, request, arguments, decision)


@command("kata-search_analyze", "kata-search_analyze_cancellable")
def search_analyze(session: Session, request: Command) -> Finished:
    """Like kata-genmove_analyze, without playing the move."""
    arguments = read_arguments(session, request)
    session.begin()
    try:
        decision = decide(session, request, arguments, show=True, play=False)
    except CancelledError:
        return Finished("play cancelled")
    return _finish(session, request, arguments, decision)


def _finish(session: Session, request: Command, arguments: AnalysisArguments, decision: GoDecision) -> Finished:
    """Print the final report, which is what clients show for the move, and the move."""
    style = arguments.style(form_of(request.name))
    last = info_line(decision.report, session.game.size, style)
    move = f"play {_answer(decision, session.game.size)}"
    return Finished(f"{last}\n{move}" if last else move)


@command("cgos-genmove_analyze")
def cgos_genmove_analyze(session: Session, request: Command) -> str:
    """Choose and play a move; answer one line of JSON for the server's records, then `play VERTEX`."""
    if not request.arguments:
        raise GtpError("syntax error: expected cgos-genmove_analyze COLOR")
    arguments = AnalysisArguments(parse_color(request.arguments[0]))
    decision = decide(session, request, arguments, show=False)
    size = session.game.size
    return f"{cgos_json(decision.report, size)}\nplay {_answer(decision, size)}"


@command("stop")
def stop(session: Session, request: Command) -> None:
    """End pondering (which any command of this module does before it starts)."""


@command("clear_cache")
def clear_cache(session: Session, request: Command) -> None:
    """Forget the tree and all evaluations."""
    session.player.clear_cache()
