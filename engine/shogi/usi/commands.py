"""The commands of USI, and its `option` lines.

Handlers import slow modules on use, because `usi` must answer at once.
"""

from collections.abc import Iterator

from yomi import __version__
from yomi.engine.levels import FULL, LevelSwitch, describe_level
from yomi.engine.options import USI_NAMES, OptionError, Setting, rows_for
from yomi.engine.protocols.session import KEEPS
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.usi.codec import (
    Command,
    Go,
    UsiError,
    format_error,
    format_string,
    parse_go,
    parse_position,
    parse_setoption,
)
from yomi.engine.shogi.usi.session import Session, command
from yomi.settings import did_you_mean

# -- options -----------------------------------------------------------------------------------------------------------

AUTHORS = "the yomi authors"
CLEAR_TREE = "Clear_Tree"  # the one button: forget the tree and all evaluations
TYPES = {"file": "filename", "text": "string", "choice": "combo", "flag": "check", "own": "string"}


def option_lines(level: LevelSwitch) -> Iterator[str]:
    # The defaults are the values at full strength, because interfaces send all defaults back.
    for row in rows_for("shogi"):
        if row.usi is None:
            continue
        values = ""
        if row.kind == "choice":
            values = "".join(f" var {choice}" for choice in row.usi.choices or row.choices)
        elif row.kind not in TYPES:
            values = " min {} max {}".format(*row.usi_limits())
        default, kind = row.format_usi(level.own(row.name)), TYPES.get(row.kind, "spin")
        yield f"option name {row.usi.names[0]} type {kind} default {default}{values}"
    yield f"option name {CLEAR_TREE} type button"


def set_option(row: Setting, text: str, level: LevelSwitch) -> None:
    """Set an option. If the level overrides it, the value takes effect at full strength. Raises OptionError."""
    try:
        level.set(row.name, row.parse_usi(text), wins=False)
    except OptionError as error:
        raise OptionError(f"{error}; it stays {row.format_usi(level.own(row.name))}") from None


def find_option(name: str) -> Setting | None:
    return USI_NAMES.get("_".join(name.lower().split()))


# -- the engine ----------------------------------------------------------------------------------------------------


@command("usi", background=KEEPS)
def usi(session: Session, request: Command) -> None:
    # Nothing slow may be imported for this.
    session.send(f"id name yomi {__version__}", f"id author {AUTHORS}", *option_lines(session.level), "usiok")


@command("isready", background=KEEPS)
def isready(session: Session, request: Command) -> None:
    # Without anything to load, `readyok` comes at once, also during a search.
    if not session.is_loaded:
        session.end_turn()
        session.load_now()
        session.note(session.player.setup_line)
        if session.level.level != FULL:
            session.note(describe_level(GAME, session.options, session.level.level))
    session.send("readyok")


@command("setoption", background=KEEPS)
def setoption(session: Session, request: Command) -> None:
    # A change takes effect with the next `go`, or with the next `isready` if it needs loading.
    name, value = parse_setoption(request.text)
    if name.lower() == CLEAR_TREE.lower():
        if session.made_player is not None:
            session.end_turn()
            session.made_player.clear()
        return
    row = find_option(name)
    if row is None:
        names = (row.usi.names[0] for row in rows_for("shogi") if row.usi is not None)
        raise UsiError(f"unknown option {name[:100]!r}{did_you_mean(name, names)}")
    if value is None:
        raise UsiError(f"{name[:100]}: expected a value")
    set_option(row, value, session.level)


@command("usinewgame")
def usinewgame(session: Session, request: Command) -> None:
    if session.made_player is not None:
        session.made_player.new_game(session.game)


@command("gameover")
def gameover(session: Session, request: Command) -> None:
    result = request.words[0].lower() if request.words else ""
    if result in ("win", "lose") and (text := session.level.note_result(result == "lose")):
        session.note(text)
    # Clearing a large table takes a part of a second, which no clock counts now.
    if session.made_player is not None:
        session.made_player.clear()


@command("quit", background=KEEPS)
def quit_(session: Session, request: Command) -> None:
    session.quit()


# -- the position --------------------------------------------------------------------------------------------------


@command("position")
def position(session: Session, request: Command) -> None:
    try:
        sfen, moves = parse_position(request.text)
        session.game = session.game.continued(sfen, moves)
    except ValueError as error:
        session.refuse_position(str(error))
    session.position_fault = None


def _check_position(session: Session) -> None:
    if session.position_fault is not None:
        raise UsiError(f"there is no position: the last one was refused ({session.position_fault})")


@command("d")
def diagram(session: Session, request: Command) -> None:
    _check_position(session)
    game = session.game
    session.send(*(f"info string {line}" for line in f"{game}\n{game.sfen()}".splitlines()))


@command("moves")
def moves(session: Session, request: Command) -> None:
    from yomi.engine.shogi.notation import format_usi

    _check_position(session)
    found = sorted(format_usi(move) for move in session.game.legal_moves())
    session.send(f"info string {len(found)} moves: {' '.join(found)}")


# -- searching -----------------------------------------------------------------------------------------------------


@command("go")
def go(session: Session, request: Command) -> None:
    # The one answer comes later.
    from yomi.engine.shogi.usi.turn import Turn

    arguments, faults = parse_go(request.words)
    allowed = _searchmoves(session, arguments, faults) if session.position_fault is None else None
    if faults:
        session.send(*(format_error(f"go: {fault}") for fault in faults))
    turn = Turn(session, session.player, arguments, allowed)
    session.turn = turn
    turn.start()


def _searchmoves(session: Session, arguments: Go, faults: list[str]) -> tuple[int, ...] | None:
    """Return the legal moves of `searchmoves`; None means no restriction. Add a fault for each other move."""
    from yomi.engine.shogi.notation import parse_usi

    if arguments.searchmoves is None:
        return None
    legal = session.game.legal_moves()
    found = []
    for word in arguments.searchmoves:
        try:
            move = parse_usi(word)
        except ValueError as error:
            faults.append(f"searchmoves: {error}")
            continue
        if move in legal:
            found.append(move)
        else:
            faults.append(f"searchmoves: {word} is no legal move here")
    if not found:
        faults.append("searchmoves: expected at least one legal move; all moves are searched")
    return tuple(found) or None


@command("stop", background=KEEPS)
def stop(session: Session, request: Command) -> None:
    if session.turn is not None:
        session.turn.stop()
    session.end_turn()


@command("ponderhit", background=KEEPS)
def ponderhit(session: Session, request: Command) -> None:
    # ShogiHome sends the clocks along: `ponderhit btime ...`.
    from yomi.engine.shogi.usi.turn import clocks_of

    if session.turn is None or not session.turn.is_pondering:
        raise UsiError("not pondering: expected after go ponder")
    arguments, faults = parse_go(request.words)
    if faults:
        session.send(*(format_string(f"ponderhit: {fault}") for fault in faults))
    session.turn.ponderhit(clocks_of(arguments), session.arrival)
