"""Commands that search: analysis until the next line of input, and choosing moves.

Values are from the side to move's point of view. Sources: KataGo's docs/GTP_Extensions.md and Sabaki's
docs/guides/engine-analysis-integration.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from yomi.engine.go.cgos.codec import cgos_json
from yomi.engine.go.gtp.codec import Command, GtpError, boolean, expect_count, integer, real
from yomi.engine.go.gtp.session import Finished, Session, Stream
from yomi.engine.go.gtp.table import command
from yomi.engine.go.vertex import board_points, format_color, format_vertex, parse_color, parse_vertex
from yomi.engine.players.request import Decision
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.native.go.board import PASS

log = logging.getLogger("yomi.gtp")

LZ, SABAKI, KATA = "lz", "sabaki", "kata"  # forms of the lines of an analysis
DEFAULT_INTERVAL = 1.0
MIN_INTERVAL = 0.02  # Minimum seconds between reports. More frequent reports would keep the interpreter busy.
MAX_INTERVAL = 1e7  # maximum seconds between reports, so that waits cannot overflow
# Flags that change the output of each form. Any other flag gets a warning.
ANSWERED = {KATA: {"ownership", "rootinfo", "pvvisits", "pvedgevisits"}, SABAKI: {"ownership"}, LZ: set[str]()}
# Arguments that take true or false.
FLAGS = ANSWERED[KATA] | {"movesownership", "ownershipstdev", "movesownershipstdev", "noresultvalue"}


@dataclass
class AnalysisArguments:
    color: int
    form: str = KATA  # LZ, SABAKI or KATA
    interval: float = DEFAULT_INTERVAL  # seconds between reports
    max_moves: int | None = None
    flags: set[str] = field(default_factory=set)  # enabled members of FLAGS
    avoid: set[int] = field(default_factory=set)  # moves excluded at the root
    allow: set[int] | None = None  # the only moves searched at the root; None for all


def number(value: float) -> str:
    """Return a float with six digits and always a decimal point."""
    text = f"{value:.6g}"
    return text if any(c in text for c in ".en") else text + ".0"


def info_line(report: SearchReport, size: int, arguments: AnalysisArguments) -> str:
    """Return one line of an analysis; empty if there is no move yet."""
    moves = report.moves[: arguments.max_moves]
    parts = [_move_info(move, size, arguments.form, arguments.flags) for move in moves]
    if not parts:
        return ""
    if arguments.form == KATA and "rootinfo" in arguments.flags:
        parts.append(_root_info(report))
    if arguments.form != LZ and "ownership" in arguments.flags and report.ownership is not None:
        parts.append("ownership " + " ".join(number(float(value)) for value in report.ownership))
    return " ".join(parts)


def _move_info(move: MoveReport, size: int, form: str, flags: set[str]) -> str:
    vertex = format_vertex(move.move, size)
    pv = " ".join(format_vertex(later, size) for later in move.pv)
    if form != KATA:
        lead = f" scoreLead {number(move.score_lead)}" if form == SABAKI else ""
        return (
            f"info move {vertex} visits {move.visits} winrate {_per_10000(move.winrate)}{lead}"
            f" prior {_per_10000(move.prior)} lcb {round(10000 * move.lcb)} order {move.order} pv {pv}"
        )
    twin = "" if move.symmetry_of is None else f" isSymmetryOf {format_vertex(move.symmetry_of, size)}"
    text = (
        f"info move {vertex} visits {move.node_visits} edgeVisits {move.visits} utility {number(move.utility)}"
        f" winrate {number(move.winrate)} scoreMean {number(move.score_lead)} scoreStdev {number(move.score_stdev)}"
        f" scoreLead {number(move.score_lead)} scoreSelfplay {number(move.score_lead)}"
        f" prior {number(move.prior)} lcb {number(move.lcb)} utilityLcb {number(move.utility_lcb)}"
        f" weight {number(move.node_weight)}{twin} order {move.order} pv {pv}"
    )
    if "pvvisits" in flags:
        text += " pvVisits " + " ".join(map(str, move.pv_node_visits))
    if "pvedgevisits" in flags:
        text += " pvEdgeVisits " + " ".join(map(str, move.pv_visits))
    return text


def _root_info(report: SearchReport) -> str:
    return (
        f"rootInfo visits {report.visits} utility {number(report.utility)} winrate {number(report.winrate)}"
        f" scoreMean {number(report.score_lead)} scoreStdev {number(report.score_stdev)}"
        f" scoreLead {number(report.score_lead)} scoreSelfplay {number(report.score_lead)}"
        f" weight {number(report.weight)}"
    )


def _per_10000(value: float) -> int:
    return min(max(round(10000 * value), 0), 10000)


def form_of(name: str) -> str:
    if name.startswith("lz-"):
        return LZ
    return KATA if name.startswith("kata-") else SABAKI


def read_arguments(session: Session, request: Command) -> AnalysisArguments:
    """Parse `[color] [interval] [key value ...]`, as Leela Zero, KataGo and their clients write it."""
    game = session.game
    words = iter(request.arguments)
    arguments = AnalysisArguments(game.side_to_move, form_of(request.name))
    for word in words:
        key = word.lower()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", key):
            arguments.interval = _seconds(key)
        elif key in ("b", "w", "black", "white"):
            arguments.color = parse_color(key)
        elif key == "interval":
            arguments.interval = _seconds(_value(words, key))
        elif key == "maxmoves":
            arguments.max_moves = integer(_value(words, key), key)
            if arguments.max_moves < 0:
                raise GtpError(f"invalid maxmoves {arguments.max_moves}: expected a number from 0 on")
        elif key == "minmoves":
            if integer(_value(words, key), key) > 0:
                _warn_once(session, request, "minmoves is ignored: only moves with visits are reported")
        elif key in FLAGS:
            is_on = boolean(_value(words, key), word)
            (arguments.flags.add if is_on else arguments.flags.discard)(key)
            if is_on and key not in ANSWERED[arguments.form]:
                _warn_once(session, request, f"{word} is ignored: the lines leave it out")
        elif key in ("avoid", "allow"):
            _restrict(arguments, key, [_value(words, key) for _ in range(3)], game.size)
        else:
            raise GtpError(
                f"unknown argument {word!r}: expected a color, an interval in centiseconds, interval, minmoves,"
                " maxmoves, avoid, allow, ownership, rootInfo or pvVisits"
            )
    if arguments.allow is not None or arguments.avoid:
        left = set(board_points(game.size)) | {PASS} if arguments.allow is None else arguments.allow
        if not any(game.is_legal(arguments.color, move) for move in left - arguments.avoid):
            key = "avoid" if arguments.avoid else "allow"
            raise GtpError(f"{key}: expected at least one legal move to be left")
    return arguments


def _warn_once(session: Session, request: Command, text: str) -> None:
    """Log a warning once per session: clients send the same arguments at every move."""
    warning = f"{request.name}: {text}"
    if warning not in session.warned:
        session.warned.add(warning)
        log.warning("%s", warning)


def _value(words: Iterator[str], key: str) -> str:
    value = next(words, None)
    if value is None:
        raise GtpError(f"{key}: expected a value after it")
    return value


def _seconds(interval: str) -> float:
    """Parse the centiseconds between reports."""
    return min(max(real(interval, "interval") / 100, MIN_INTERVAL), MAX_INTERVAL)


def _restrict(arguments: AnalysisArguments, key: str, parts: list[str], size: int) -> None:
    """Parse `avoid|allow COLOR VERTEX,VERTEX,... DEPTH`. Only the root's moves are restricted."""
    color, vertices, depth = parts
    applies = parse_color(color) == arguments.color
    moves = {parse_vertex(vertex, size) for vertex in vertices.split(",") if vertex}
    if integer(depth, "depth") < 1 or not moves:
        raise GtpError(f"{key}: expected COLOR VERTEX,VERTEX,... DEPTH with a depth of at least 1")
    if not applies:
        log.warning(
            "%s %s is ignored: only the first move, %s's, is restricted", key, color, format_color(arguments.color)
        )
    elif integer(depth, "depth") > 1:
        log.warning("%s: depth %s is read as 1: only the first move is restricted", key, depth)
    if applies and key == "avoid":
        arguments.avoid |= moves
    elif applies:
        arguments.allow = (arguments.allow or set()) | moves


@command("analyze", "lz-analyze", "kata-analyze")
def analyze(session: Session, request: Command) -> Stream:
    arguments = read_arguments(session, request)
    player, size = session.player, session.game.size
    search = session.request(arguments.color, is_analysis=True)
    search.avoid, search.allow = arguments.avoid, arguments.allow
    player.start(search)
    return Stream(lambda: info_line(player.report(), size, arguments), arguments.interval, player.stop)


POLL = 0.02  # seconds between checks for input during a cancellable search


class CancelledError(Exception):
    """Input arrived during a cancellable search."""


def decide(
    session: Session, command: Command, arguments: AnalysisArguments, *, show: bool, play: bool = True
) -> Decision:
    """Choose a move and, unless `play` is False, play it.

    Args:
        session: the session.
        command: its name selects special behavior.
        arguments: color and restrictions.
        show: print reports during the search. The answer must have begun.
        play: play the move, charge the clock, then ponder. Otherwise remember the move: if the controller plays it
            next, pondering continues.
    """
    player, game = session.player, session.game
    cancellable = command.name.endswith("_cancellable")
    due = session.arrival + arguments.interval

    def on_report(report: SearchReport) -> None:
        nonlocal due
        if cancellable and session.inbox.wait(0):
            raise CancelledError
        if show and session.now() >= due:
            due = session.now() + arguments.interval
            if text := info_line(report, game.size, arguments):
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
    """Return the chosen move. In Go there always is one."""
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
    """Choose and play a move and print reports during the search. The last line is `play VERTEX`."""
    arguments = read_arguments(session, request)
    session.begin()
    decision = decide(session, request, arguments, show=True)
    return _finish(session, arguments, decision)


@command("kata-search_analyze", "kata-search_analyze_cancellable")
def search_analyze(session: Session, request: Command) -> Finished:
    """Like kata-genmove_analyze, without playing the move."""
    arguments = read_arguments(session, request)
    session.begin()
    try:
        decision = decide(session, request, arguments, show=True, play=False)
    except CancelledError:
        return Finished("play cancelled")
    return _finish(session, arguments, decision)


def _finish(session: Session, arguments: AnalysisArguments, decision: Decision) -> Finished:
    """Return the final report, which clients show for the move, and the move."""
    last = info_line(decision.report, session.game.size, arguments)
    move = f"play {_answer(decision, session.game.size)}"
    return Finished(f"{last}\n{move}" if last else move)


@command("cgos-genmove_analyze")
def cgos_genmove_analyze(session: Session, request: Command) -> str:
    """Choose and play a move; answer a line of JSON for the server's records, then `play VERTEX`."""
    if not request.arguments:
        raise GtpError("syntax error: expected cgos-genmove_analyze COLOR")
    arguments = AnalysisArguments(parse_color(request.arguments[0]))
    decision = decide(session, request, arguments, show=False)
    size = session.game.size
    return f"{cgos_json(decision.report, size)}\nplay {_answer(decision, size)}"


@command("stop")
def stop(session: Session, request: Command) -> None:
    """End pondering, which the table does before every command of this module."""


@command("clear_cache")
def clear_cache(session: Session, request: Command) -> None:
    """Forget the tree and all evaluations."""
    session.player.clear()
