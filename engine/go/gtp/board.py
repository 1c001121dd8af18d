"""Commands that set up and change the game: GTP 2, GoGui, KGS, GNU Go and KataGo."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.game import GoGame, IllegalMove, SetupError
from yomi.engine.go.gtp.codec import Command, GtpError, expect_count, integer, real
from yomi.engine.go.gtp.session import USER_ERRORS, Session
from yomi.engine.go.gtp.table import command
from yomi.engine.go.handicap import HandicapError, fixed_handicap, free_handicap, parse_free_handicap
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import Rules, RulesError
from yomi.engine.go.sgf import SgfError, to_sgf
from yomi.engine.go.vertex import VertexError, board_points, format_vertex, parse_color, parse_vertex
from yomi.engine.options import MAX_KOMI
from yomi.engine.records import report_notes
from yomi.native.go.board import EMPTY, MAX_SIZE, MIN_SIZE, PASS

log = logging.getLogger("yomi.gtp")

USER_ERRORS += [VertexError, IllegalMove, SetupError, HandicapError, RulesError, SgfError]

COLOR_NAMES = {EMPTY: "empty", BLACK: "black", WHITE: "white"}


def only_color(request: Command) -> int:
    """Parse the only argument of a command."""
    expect_count(request, 1, 1, "COLOR")
    return parse_color(request.arguments[0])


def new_game(session: Session, size: int) -> None:
    """Start a game with the same rules and komi."""
    game = session.game
    take_up(session, GoGame(size, game.rules, game.komi))
    session.clock.reset()


def take_up(session: Session, game: GoGame) -> None:
    """Replace the game. If no evaluator is available for the new game, the old game stays."""
    session.player.new_game(game)
    session.game = game


@command("boardsize", "rectangular_boardsize")
def boardsize(session: Session, request: Command) -> None:
    expect_count(request, 1, 2, "SIZE")
    words = [word for word in request.text.replace(":", " ").split(" ") if word]
    sizes = {int(word) for word in words if re.fullmatch("[0-9]{1,3}", word)}
    if len(words) > 2 or len(sizes) != 1 or not MIN_SIZE <= min(sizes) <= MAX_SIZE:
        raise GtpError(f"unacceptable size: expected {MIN_SIZE} to {MAX_SIZE} (square boards only)")
    new_game(session, sizes.pop())


@command("query_boardsize")
def query_boardsize(session: Session, request: Command) -> str:
    return str(session.game.size)


@command("clear_board")
def clear_board(session: Session, request: Command) -> None:
    """Empty the board and reset the clocks. Komi, rules and time settings stay."""
    new_game(session, session.game.size)


@command("komi")
def komi(session: Session, request: Command) -> None:
    """Set the komi. Pondering continues, because some controllers send this before every move."""
    expect_count(request, 1, 1, "KOMI")
    try:
        session.game.set_komi(real(request.arguments[0], "komi"))
    except (GtpError, SetupError):
        raise GtpError(f"unacceptable komi: expected a number from {-MAX_KOMI:g} to {MAX_KOMI:g}") from None


@command("get_komi")
def get_komi(session: Session, request: Command) -> str:
    return f"{session.game.komi:g}"


@command("play")
def play(session: Session, request: Command) -> None:
    expect_count(request, 2, 2, "COLOR VERTEX")
    game = session.game
    color = parse_color(request.arguments[0])
    if request.arguments[1].lower() == "resign":
        return  # some controllers pass on the opponent's resignation; the board stays
    move = parse_vertex(request.arguments[1], game.size)
    is_proposed = session.proposed == (len(game.moves), color, move)
    game.play(color, move)
    session.ponder_after = is_proposed


@command("undo")
def undo(session: Session, request: Command) -> None:
    expect_count(request, 0, 0, "")
    session.game.undo()


@command("gg-undo")
def gg_undo(session: Session, request: Command) -> None:
    """Take back several moves, or none if there are too few."""
    expect_count(request, 0, 1, "[MOVES]")
    count = integer(request.arguments[0], "number of moves") if request.arguments else 1
    if not 0 <= count <= len(session.game.moves):
        raise GtpError(f"cannot undo: expected 0 to {len(session.game.moves)} moves")
    for _ in range(count):
        session.game.undo()


@command("showboard")
def showboard(session: Session, request: Command) -> str:
    return "\n" + str(session.game)


# -- handicap ------------------------------------------------------------------------------------------------------


def _vertices(points: list[int], size: int) -> str:
    return " ".join(format_vertex(point, size) for point in points)


@command("fixed_handicap", "place_free_handicap")
def place_handicap(session: Session, request: Command) -> str:
    """Place handicap stones on the standard points, or on points of the engine's choice."""
    expect_count(request, 1, 1, "NUMBER_OF_STONES")
    game, choose = session.game, fixed_handicap if request.name == "fixed_handicap" else free_handicap
    points = choose(integer(request.arguments[0], "number of stones"), game.size)
    game.place_handicap(points)
    return _vertices(points, game.size)


@command("set_free_handicap")
def set_free_handicap(session: Session, request: Command) -> None:
    """Place handicap stones on the controller's points."""
    game = session.game
    game.place_handicap(parse_free_handicap(request.arguments, game.size))


# -- positions and records -----------------------------------------------------------------------------------------


def _pairs(words: tuple[str, ...], size: int) -> list[tuple[int, int]]:
    if len(words) % 2:
        raise GtpError("syntax error: expected pairs of COLOR VERTEX")
    return [(parse_color(c), parse_vertex(v, size)) for c, v in zip(words[::2], words[1::2], strict=True)]


@command("set_position")
def set_position(session: Session, request: Command) -> None:
    """Put stones on an otherwise empty board (KataGo)."""
    game = session.game
    stones = _pairs(request.arguments, game.size)
    if any(point == PASS for _, point in stones):
        raise GtpError("syntax error: expected vertices, found pass")
    game.set_position(stones)
    session.player.new_game(game)


@command("gogui-setup")
def gogui_setup(session: Session, request: Command) -> None:
    """Put stones on the empty board (GoGui)."""
    if session.game.stones():
        raise GtpError("board not empty")
    set_position(session, request)


@command("gogui-setup_player")
def gogui_setup_player(session: Session, request: Command) -> None:
    """Set the side to move in a set-up position."""
    session.game.edit((), only_color(request))


@command("gogui-play_sequence")
def gogui_play_sequence(session: Session, request: Command) -> None:
    """Play several moves, or none if one is illegal."""
    game = session.game
    played = 0
    try:
        for color, move in _pairs(request.arguments, game.size):
            game.play(color, move)
            played += 1
    except IllegalMove:
        for _ in range(played):
            game.undo()
        raise


@command("loadsgf")
def loadsgf(session: Session, request: Command) -> str:
    """Load a record to before move N, or to its end; answer the side to move.

    A broken record is loaded up to the fault, and stderr shows each fault. The current rules stay if the record names
    none or unknown ones.
    """
    expect_count(request, 1, None, "FILE [MOVE]")
    words = list(request.arguments)
    moves = None
    if len(words) > 1 and words[-1].isascii() and words[-1].isdigit():
        moves = max(integer(words.pop(), "move number") - 1, 0)
    path = " ".join(words).strip('"')
    try:
        record = load_record(path)
        game = record.game(moves, rules=session.game.rules, override_rules=record.rules is None, cut=True)
    except SgfError as error:
        if len(words) > 1 and _is_file(" ".join(words[:-1])) and not _is_file(path):
            raise GtpError(f"invalid move number {words[-1]!r}: expected a number") from None
        raise GtpError(f"cannot load file: {error}") from None
    report_notes(log.warning, path, record.notes)
    if record.rules_text:
        log.warning("%s: unknown rules '%s': keeping %s", path, record.rules_text, game.rules)
    take_up(session, game)
    return "black" if game.side_to_move == BLACK else "white"


def _is_file(text: str) -> bool:
    try:
        return Path(text.strip('"')).is_file()
    except (OSError, ValueError):  # no name that a file could have
        return False


@command("printsgf")
def printsgf(session: Session, request: Command) -> str:
    """Answer the game as SGF, or write it to a file."""
    text = to_sgf(session.game)
    path = request.text.strip('"')
    if path in ("", "-"):
        return text
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise GtpError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None
    return ""


# -- questions about the board -------------------------------------------------------------------------------------


@command("list_stones")
def list_stones(session: Session, request: Command) -> str:
    color = only_color(request)
    return _vertices([p for c, p in session.game.stones() if c == color], session.game.size)


@command("color")
def color_at(session: Session, request: Command) -> str:
    """Answer the content of a vertex."""
    expect_count(request, 1, 1, "VERTEX")
    point = parse_vertex(request.arguments[0], session.game.size)
    if point == PASS:
        raise GtpError("invalid vertex 'pass': expected a point of the board")
    return COLOR_NAMES[session.game.color_at(point)]


@command("is_legal")
def is_legal(session: Session, request: Command) -> str:
    """Answer 1 if the move is legal, otherwise 0."""
    expect_count(request, 2, 2, "COLOR VERTEX")
    color, vertex = request.arguments
    return str(int(session.game.is_legal(parse_color(color), parse_vertex(vertex, session.game.size))))


@command("all_legal")
def all_legal(session: Session, request: Command) -> str:
    """Answer the legal points of a color."""
    color, game = only_color(request), session.game
    return _vertices([point for point in board_points(game.size) if game.is_legal(color, point)], game.size)


@command("captures")
def captures(session: Session, request: Command) -> str:
    """Answer the number of stones that a color has captured."""
    return str(session.game.captures(only_color(request)))


@command("move_history")
def move_history(session: Session, request: Command) -> str:
    """Answer the moves, last move first."""
    size = session.game.size
    return "\n".join(
        f"{COLOR_NAMES[color]} {format_vertex(move, size)}" for color, move in reversed(session.game.moves)
    )


@command("last_move")
def last_move(session: Session, request: Command) -> str:
    if session.game.last_move is None:
        raise GtpError("no previous move known")
    color, move = session.game.last_move
    return f"{COLOR_NAMES[color]} {format_vertex(move, session.game.size)}"


# -- rules ---------------------------------------------------------------------------------------------------------


@command("kata-get-rules")
def kata_get_rules(session: Session, request: Command) -> str:
    return session.game.rules.to_json()


def set_rules(session: Session, rules: Rules) -> None:
    """Change the rules. If no evaluator is available for the new rules, the old rules stay."""
    game, old = session.game, session.game.rules
    game.set_rules(rules)
    try:
        session.player.load(game)
    except EvaluatorError:
        game.set_rules(old)
        raise


@command("kata-set-rules")
def kata_set_rules(session: Session, request: Command) -> None:
    """Set the rules by name or KataGo's JSON. Board and komi stay."""
    expect_count(request, 1, None, "RULES")
    try:
        rules = Rules.parse(request.text)
    except RulesError as error:
        if len(request.arguments) == 2 and not request.text.startswith("{"):
            raise GtpError(f"{error}; kata-set-rule FIELD VALUE changes one field") from None
        raise
    set_rules(session, rules)


@command("kata-set-rule")
def kata_set_rule(session: Session, request: Command) -> None:
    expect_count(request, 2, 2, "FIELD VALUE")
    set_rules(session, session.game.rules.with_rule(*request.arguments))


@command("kgs-rules")
def kgs_rules(session: Session, request: Command) -> None:
    """Set the rules by KGS's name."""
    expect_count(request, 1, 1, "RULES")
    name = request.arguments[0].lower()
    set_rules(session, Rules.parse("chinese-kgs" if name == "chinese" else name))


@command("cgos-gameover", "kgs-game_over")
def game_over(session: Session, request: Command) -> None:
    """Accept the end of the game. The table has already ended the search in the background."""
