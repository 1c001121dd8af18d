"""The commands of USI. What `usi` does not need is imported where it is used: its answer comes at once."""

from __future__ import annotations

from yomi import __version__
from yomi.engine.levels import FULL, describe_level
from yomi.engine.options import OptionError
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.usi.codec import (
    Command,
    Go,
    format_error,
    format_string,
    parse_go,
    parse_position,
    parse_setoption,
)
from yomi.engine.shogi.usi.options import CLEAR_TREE, find_option, option_lines, set_option
from yomi.engine.shogi.usi.session import Session, UsiError, command

AUTHORS = "the yomi authors"


# -- the engine ----------------------------------------------------------------------------------------------------


@command("usi")
def usi(session: Session, request: Command) -> None:
    """Introduce the engine. Nothing slow may be imported for this."""
    session.send(f"id name yomi {__version__}", f"id author {AUTHORS}", *option_lines(session.level), "usiok")


@command("isready")
def isready(session: Session, request: Command) -> None:
    """Load what is not loaded; `readyok` comes at once, also during a search, where nothing is to be loaded."""
    if not session.is_loaded:
        session.end_turn()
        session.load()
        session.note(f"{session.player.description}")
        if session.options.level != FULL:
            session.note(describe_level(GAME, session.options, session.options.level))
    session.send("readyok")


@command("setoption")
def setoption(session: Session, request: Command) -> None:
    """Change a setting; it takes effect with the next `go`, or the next `isready` where something has to be loaded."""
    try:
        name, value = parse_setoption(request.text)
    except ValueError as error:
        raise UsiError(str(error)) from None
    if name.lower() == CLEAR_TREE.lower():
        player = session.player_if_made()
        if player is not None:
            session.end_turn()
            player.clear()
        return
    row = find_option(name)
    if row is None:
        raise UsiError(f"unknown option {name[:100]!r}")
    if value is None:
        raise UsiError(f"{name[:100]}: expected a value")
    try:
        set_option(row, value, session.level)
    except OptionError as error:
        raise UsiError(str(error)) from None


@command("usinewgame")
def usinewgame(session: Session, request: Command) -> None:
    """Forget what belongs to the last game."""
    session.end_turn()
    player = session.player_if_made()
    if player is not None:
        player.new_game(session.game)


@command("gameover")
def gameover(session: Session, request: Command) -> None:
    """End a search that is still running (mostly pondering)."""
    session.end_turn()


@command("quit")
def quit_(session: Session, request: Command) -> None:
    """End the session."""
    session.quit()


# -- the position --------------------------------------------------------------------------------------------------


@command("position")
def position(session: Session, request: Command) -> None:
    """Take up a position. After a refused one, searches answer that there is no move, until a position is accepted."""
    session.end_turn()
    try:
        sfen, moves = parse_position(request.text)
        session.game = session.game.going_on(sfen, moves)
    except ValueError as error:
        session.position_fault = str(error)
        raise UsiError(f"{error}; no move is searched until a position is accepted") from None
    session.position_fault = None


def _check_position(session: Session) -> None:
    if session.position_fault is not None:
        raise UsiError(f"there is no position: the last one was refused ({session.position_fault})")


@command("d")
def diagram(session: Session, request: Command) -> None:
    """Show the position."""
    session.end_turn()
    _check_position(session)
    game = session.game
    session.send(*(f"info string {line}" for line in f"{game}\n{game.sfen()}".splitlines()))


@command("moves")
def moves(session: Session, request: Command) -> None:
    """Show the legal moves."""
    from yomi.engine.shogi.notation import format_usi

    session.end_turn()
    _check_position(session)
    found = sorted(format_usi(move) for move in session.game.legal_moves())
    session.send(f"info string {len(found)} moves: {' '.join(found)}")


# -- searching -----------------------------------------------------------------------------------------------------


@command("go")
def go(session: Session, request: Command) -> None:
    """Start a search; its answer comes later, exactly one."""
    from yomi.engine.shogi.usi.turn import Turn

    session.end_turn()
    arguments, faults = parse_go(request.words)
    allowed = _searchmoves(session, arguments, faults) if session.position_fault is None else None
    if faults:
        session.send(*(format_error(f"go: {fault}") for fault in faults))
    turn = Turn(session, session.player, arguments, allowed)
    session.turn = turn
    turn.start()


def _searchmoves(session: Session, arguments: Go, faults: list[str]) -> tuple[int, ...] | None:
    """Return the legal ones of `searchmoves`, and add to the faults what is wrong with the others.

    Without a legal one there is no restriction: an answer is owed.
    """
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


@command("stop")
def stop(session: Session, request: Command) -> None:
    """End the search; without one nothing happens."""
    if session.turn is not None:
        session.turn.stop()
    session.end_turn()


@command("ponderhit")
def ponderhit(session: Session, request: Command) -> None:
    """Turn pondering into thinking; the clocks may be told (`ponderhit btime ...`), as ShogiHome does."""
    from yomi.engine.shogi.usi.turn import clocks_of

    if session.turn is None or not session.turn.is_pondering:
        raise UsiError("not pondering: expected after go ponder")
    arguments, faults = parse_go(request.words)
    if faults:
        session.send(*(format_string(f"ponderhit: {fault}") for fault in faults))
    session.turn.ponderhit(clocks_of(arguments), session.arrival)
