"""Commands that let the engine choose a move."""

from __future__ import annotations

from dataclasses import replace

from yomi.engine.go.gtp.analysis import AnalysisArguments, form_of, read_arguments
from yomi.engine.go.gtp.arguments import expect_count
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.formats import cgos_json, info_line
from yomi.engine.go.gtp.session import Finished, GtpError, Session
from yomi.engine.go.gtp.table import command
from yomi.engine.go.vertex import format_vertex, parse_color
from yomi.engine.players.request import Decision
from yomi.engine.search.types import SearchReport

POLL = 0.02
"""Seconds between looks at the input in a search that a line of input cancels."""


class CancelledError(Exception):
    """A line of input came during a search that it cancels."""


def decide(
    session: Session, command: Command, arguments: AnalysisArguments, *, show: bool, play: bool = True
) -> Decision:
    """Choose a move, and play it unless it is only asked for.

    Args:
        session: The session.
        command: The command; its name says how the reports look and what else is special.
        arguments: Color and restrictions.
        show: Print reports while the search runs; the answer has begun then.
        play: Play the move, charge the clock for it, and think on in the opponent's time. Else it is kept in mind: a
            controller that plays it next wants the same.
    """
    player, game = session.player, session.game
    style = arguments.style(form_of(command.name))
    cancellable = command.name.endswith("_cancellable")
    due = session.arrival + arguments.interval

    def on_report(report: SearchReport) -> None:
        nonlocal due
        if cancellable and session.inbox.wait(0):
            raise CancelledError
        if show and session.now() >= due:
            due = session.now() + arguments.interval
            if text := info_line(report, game.size, style):
                session.write(text + "\n")

    session.clock.start(arguments.color, session.arrival)
    request = session.request(arguments.color)
    request.avoid, request.allow = arguments.avoid, arguments.allow
    request.clocks = session.clock.clocks()
    request.on_report = on_report if show or cancellable else None
    request.interval = POLL if cancellable else arguments.interval
    if command.name == "kgs-genmove_cleanup":
        request.options = replace(session.options, cleanup=True)
    try:
        decision = player.decide(request)
        if play:
            if not decision.resign:
                game.play(arguments.color, move_of(decision))
            session.clock.stop(session.options.lag)
            session.ponder_after = not decision.resign
        else:
            session.proposed = len(game.moves), arguments.color, move_of(decision)
    finally:
        session.clock.cancel()
    if decision.report.visits:
        session.tell_hurry()
    return decision


def move_of(decision: Decision) -> int:
    """Return the move that was chosen: in Go there always is one."""
    assert decision.move is not None
    return decision.move


def _answer(decision: Decision, size: int) -> str:
    return "resign" if decision.resign else format_vertex(move_of(decision), size)


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


def _finish(session: Session, request: Command, arguments: AnalysisArguments, decision: Decision) -> Finished:
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
    session.player.clear()
