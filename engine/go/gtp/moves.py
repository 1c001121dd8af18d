"""Commands that search: analysis until the next line of input, and choosing moves.

Values are from the side to move's point of view. Sources: KataGo's docs/GTP_Extensions.md and Sabaki's
docs/guides/engine-analysis-integration.md.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from yomi.engine.color import BLACK, COLORS, opponent
from yomi.engine.go.cgos.codec import cgos_json
from yomi.engine.go.game import score_text
from yomi.engine.go.gtp.board import result_of
from yomi.engine.go.gtp.codec import Command, GtpError, boolean, command, integer, real
from yomi.engine.go.gtp.session import Finished, Session, Stream
from yomi.engine.go.points import Board, format_color, parse_color
from yomi.engine.go.scoring import chains, final_status, removed_stones
from yomi.engine.players.request import Decision
from yomi.engine.protocols.session import PAUSES
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
    text = f"{value:.6g}"
    return text if any(c in text for c in ".en") else text + ".0"


def info_line(report: SearchReport, board: Board, arguments: AnalysisArguments) -> str:
    """Return one line of an analysis, or an empty text before the first move is found."""
    moves = report.moves[: arguments.max_moves]
    parts = [_move_info(move, board, arguments.form, arguments.flags) for move in moves]
    if not parts:
        return ""
    if arguments.form == KATA and "rootinfo" in arguments.flags:
        parts.append(_root_info(report))
    if arguments.form != LZ and "ownership" in arguments.flags and report.ownership is not None:
        parts.append("ownership " + " ".join(number(float(value)) for value in report.ownership))
    return " ".join(parts)


def _move_info(move: MoveReport, board: Board, form: str, flags: set[str]) -> str:
    vertex = board.vertex(move.move)
    pv = " ".join(board.vertex(later) for later in move.pv)
    if form != KATA:
        lead = f" scoreLead {number(move.score_lead)}" if form == SABAKI else ""
        return (
            f"info move {vertex} visits {move.visits} winrate {_per_10000(move.winrate)}{lead}"
            f" prior {_per_10000(move.prior)} lcb {round(10000 * move.lcb)} order {move.order} pv {pv}"
        )
    twin = "" if move.symmetry_of is None else f" isSymmetryOf {board.vertex(move.symmetry_of)}"
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


def read_arguments(session: Session, request: Command) -> AnalysisArguments:
    """Parse `[color] [interval] [key value ...]`, as Leela Zero, KataGo and their clients write it."""
    game = session.game
    words = iter(request.arguments)
    form = {"lz": LZ, "kata": KATA}.get(request.name.partition("-")[0], SABAKI)
    arguments = AnalysisArguments(game.side_to_move, form)
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
            _restrict(arguments, key, list(islice(words, 3)), game.board)
        else:
            raise GtpError(
                f"unknown argument {word!r}: expected a color, an interval in centiseconds, interval, minmoves,"
                " maxmoves, avoid, allow, ownership, rootInfo or pvVisits"
            )
    if arguments.allow is not None or arguments.avoid:
        left = set(game.board.points) | {PASS} if arguments.allow is None else arguments.allow
        if not any(game.is_legal(arguments.color, move) for move in left - arguments.avoid):
            key = "avoid" if arguments.avoid else "allow"
            raise GtpError(f"{key}: expected at least one legal move to be left")
    return arguments


def _warn_once(session: Session, request: Command, text: str) -> None:
    # Clients send the same arguments at every move.
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
    return min(max(real(interval, "interval") / 100, MIN_INTERVAL), MAX_INTERVAL)


def _restrict(arguments: AnalysisArguments, key: str, parts: list[str], board: Board) -> None:
    """Parse `avoid|allow COLOR VERTEX,VERTEX,... DEPTH`. Only the root's moves are restricted."""
    expected = f"{key}: expected COLOR VERTEX,VERTEX,... DEPTH"
    if len(parts) < 3:
        raise GtpError(f"{expected}, found {' '.join(parts) or 'nothing'}")
    color, vertices, depth = parts
    applies = parse_color(color) == arguments.color
    moves = {board.parse_vertex(vertex) for vertex in vertices.split(",") if vertex}
    if integer(depth, "depth") < 1 or not moves:
        raise GtpError(f"{expected} with a depth of at least 1")
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


POLL = 0.02  # seconds between checks for input during a cancellable search


class CancelledError(Exception):
    """A line of input has cancelled a cancellable search."""


def decide(session: Session, request: Command, arguments: AnalysisArguments, *, show: bool = False) -> Decision:
    """Choose a move. Commands with `genmove` also play it, charge the clock, then ponder; `reg_genmove` does not.

    Args:
        session: the session.
        request: the command; `..._cancellable` and `..._cleanup` change the search.
        arguments: color and restrictions.
        show: print reports during the search. The answer's header must have been written.
    """
    player, game = session.player, session.game
    plays = "genmove" in request.name and request.name != "reg_genmove"
    cancellable = request.name.endswith("_cancellable")
    due = session.arrival + arguments.interval

    def on_report(report: SearchReport) -> None:
        nonlocal due
        if cancellable and session.inbox.wait(0):
            raise CancelledError
        if show and session.now() >= due:
            due = session.now() + arguments.interval
            if text := info_line(report, game.board, arguments):
                session.write(text + "\n")

    # The controller's clock runs since the line arrived, not since its turn in the queue.
    session.clock.start(arguments.color, session.arrival)
    search = session.request(
        arguments.color,
        options=replace(session.options, cleanup=True) if request.name.endswith("_cleanup") else None,
        avoid=arguments.avoid,
        allow=arguments.allow,
        clocks=session.clock.clocks(),
        on_report=on_report if show or cancellable else None,
        interval=POLL if cancellable else arguments.interval,
    )
    try:
        decision = player.decide(search)
        if not plays:
            # If the controller plays this move next, pondering begins.
            session.proposed = len(game.moves), arguments.color, decision.move
        else:
            session.color = arguments.color
            if decision.resign:
                session.note_winner(opponent(arguments.color))
            else:
                game.play(arguments.color, move_of(decision))
            session.clock.stop(session.options.lag)
            session.ponder_after = not decision.resign
    finally:
        session.clock.cancel()
    if decision.report.visits:
        session.tell_hurry()
    return decision


def _vertex(decision: Decision, board: Board) -> str:
    return "resign" if decision.resign else board.vertex(move_of(decision))


def move_of(decision: Decision) -> int:
    assert decision.move is not None  # in Go there always is a move
    return decision.move


@command(
    *("genmove", "reg_genmove", "kgs-genmove_cleanup", "kata-search", "kata-search_cancellable"),
    usage="COLOR",
)
def genmove(session: Session, request: Command) -> str:
    """Choose a move, and perhaps play it; see `decide`. `kgs-genmove_cleanup` captures dead stones before it passes."""
    try:
        decision = decide(session, request, AnalysisArguments(parse_color(request.arguments[0])))
    except CancelledError:
        return "cancelled"
    return _vertex(decision, session.game.board)


@command("genmove_analyze", "lz-genmove_analyze", "kata-genmove_analyze")
def genmove_analyze(session: Session, request: Command) -> Finished:
    """Choose a move, and print reports during the search. The last line is `play VERTEX`."""
    arguments = read_arguments(session, request)
    session.begin()
    try:
        decision = decide(session, request, arguments, show=True)
    except CancelledError:
        return Finished("play cancelled")
    last = info_line(decision.report, session.game.board, arguments)  # clients show it for the move
    move = f"play {_vertex(decision, session.game.board)}"
    return Finished(f"{last}\n{move}" if last else move)


@command("cgos-genmove_analyze", usage="COLOR...")
def cgos_genmove_analyze(session: Session, request: Command) -> str:
    """Choose and play a move. Answer with a line of JSON for the server's records, then `play VERTEX`."""
    decision = decide(session, request, AnalysisArguments(parse_color(request.arguments[0])))
    board = session.game.board
    return f"{cgos_json(decision.report, board)}\nplay {_vertex(decision, board)}"


command("kata-search_analyze", "kata-search_analyze_cancellable")(genmove_analyze)


@command("stop")
def stop(session: Session, request: Command) -> None:
    """Do nothing: pondering ends before every command of this module."""


@command("clear_cache")
def clear_cache(session: Session, request: Command) -> None:
    session.player.clear()


@command("analyze", "lz-analyze", "kata-analyze")
def analyze(session: Session, request: Command) -> Stream:
    arguments = read_arguments(session, request)
    player, board = session.player, session.game.board
    player.start(session.request(arguments.color, is_analysis=True, avoid=arguments.avoid, allow=arguments.allow))
    return Stream(lambda: info_line(player.report(), board, arguments), arguments.interval, player.stop)


# -- the status of stones --------------------------------------------------------------------------------------------

STATUS = ("alive", "dead", "seki")


@command("final_score", background=PAUSES, usage="")
def score(session: Session, request: Command) -> str:
    """Answer with the score. Before the end of the game it is the expected score of a short search."""
    game = session.game
    if game.is_over:
        result = "0" if game.is_no_result else result_of(session)
        session.note_winner(COLORS.get(result[0].lower()))
        return result
    report = session.short_search(is_analysis=True)
    lead = report.score_lead if report.side_to_move == BLACK else -report.score_lead
    komi = float(game.position["komi"])
    return score_text(round(lead + komi) - komi)


def _status_of_stones(session: Session) -> dict[str, list[int]]:
    game = session.game
    found = final_status(game, removed_stones(game, session.final_ownership))
    if not game.is_over:  # shared liberties may still be filled, or eyes made
        found["alive"] += found["seki"]
        found["seki"] = []
    return found


@command("final_status", background=PAUSES, usage="VERTEX")
def final_status_of(session: Session, request: Command) -> str:
    game = session.game
    point = game.board.parse_vertex(request.arguments[0])
    if point == PASS or not game.color_at(point):
        raise GtpError(f"no stone on {request.arguments[0]}: expected the vertex of a stone")
    found = _status_of_stones(session)
    return next(status for status in STATUS if point in found[status])


@command("final_status_list", background=PAUSES, usage="alive|dead|seki")
def final_status_list(session: Session, request: Command) -> str:
    """Answer with the stones that have a status, one chain on each line."""
    status = request.arguments[0].lower()
    if status not in STATUS:
        raise GtpError(f"invalid status {request.arguments[0]!r}: expected alive, dead or seki")
    game = session.game
    wanted = set(_status_of_stones(session)[status])
    lines = [" ".join(game.board.vertex(point) for point in chain) for _, chain in chains(game) if chain[0] in wanted]
    return "\n".join(lines)
