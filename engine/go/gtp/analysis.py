"""Analysis until the next line of input, and the arguments of all analyzing commands."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from yomi.engine.go.gtp.arguments import boolean, integer, real
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.formats import KATA, LZ, SABAKI, Style, info_line
from yomi.engine.go.gtp.session import GtpError, Session, Stream
from yomi.engine.go.gtp.table import command
from yomi.engine.go.vertex import board_points, format_color, parse_color, parse_vertex
from yomi.native.go.board import PASS

log = logging.getLogger("yomi.gtp")

DEFAULT_INTERVAL = 1.0
MIN_INTERVAL = 0.02  # Minimum seconds between reports. More frequent reports would keep the interpreter busy.
MAX_INTERVAL = 1e7  # maximum seconds between reports, so that waits cannot overflow
# Arguments that take true or false.
FLAGS = {
    "ownership",
    "rootinfo",
    "pvvisits",
    "pvedgevisits",
    "movesownership",
    "ownershipstdev",
    "movesownershipstdev",
    "noresultvalue",
}
# Flags that change the output of each form. Any other flag gets a warning.
ANSWERED = {KATA: {"ownership", "rootinfo", "pvvisits", "pvedgevisits"}, SABAKI: {"ownership"}, LZ: set[str]()}


@dataclass
class AnalysisArguments:
    color: int
    interval: float = DEFAULT_INTERVAL  # seconds between reports
    max_moves: int | None = None
    flags: set[str] = field(default_factory=set)  # enabled members of FLAGS
    avoid: set[int] = field(default_factory=set)  # moves excluded at the root
    allow: set[int] | None = None  # the only moves searched at the root; None for all

    def style(self, form: str) -> Style:
        return Style(
            form,
            self.max_moves,
            "ownership" in self.flags,
            "rootinfo" in self.flags,
            "pvvisits" in self.flags,
            "pvedgevisits" in self.flags,
        )


def form_of(name: str) -> str:
    if name.startswith("lz-"):
        return LZ
    return KATA if name.startswith("kata-") else SABAKI


def read_arguments(session: Session, request: Command) -> AnalysisArguments:
    """Parse `[color] [interval] [key value ...]`, as Leela Zero, KataGo and their clients write it.

    Raises:
        GtpError: an unknown argument, color or vertex.
    """
    game = session.game
    words = iter(request.arguments)
    arguments = AnalysisArguments(game.side_to_move)
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
            if is_on and key not in ANSWERED[form_of(request.name)]:
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
    style = arguments.style(form_of(request.name))
    player, size = session.player, session.game.size
    search = session.request(arguments.color, is_analysis=True)
    search.avoid, search.allow = arguments.avoid, arguments.allow
    player.start(search)
    return Stream(lambda: info_line(player.report(), size, style), arguments.interval, player.stop)
