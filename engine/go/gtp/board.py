"""Commands that set up and change the game: GTP 2, GoGui, KGS, GNU Go and KataGo."""

import logging
import re
from dataclasses import replace
from pathlib import Path

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.game import GoGame, score_text
from yomi.engine.go.gtp.codec import Command, GtpError, command, integer, real
from yomi.engine.go.gtp.session import Session
from yomi.engine.go.points import Board, SetupError, fixed_handicap, free_handicap, parse_color
from yomi.engine.go.record_files import load_record
from yomi.engine.go.rules import Rules, RulesError
from yomi.engine.go.scoring import final_score, removed_stones
from yomi.engine.go.sgf import SgfError, to_sgf
from yomi.engine.options import MAX_KOMI
from yomi.engine.protocols.session import KEEPS, PAUSES
from yomi.engine.records import report_notes
from yomi.errors import IllegalMove, reraised
from yomi.native.go.board import EMPTY, MAX_SIZE, MIN_SIZE, PASS
from yomi.nets.files import write_atomically

log = logging.getLogger("yomi.gtp")

COLOR_NAMES = {EMPTY: "empty", BLACK: "black", WHITE: "white"}


def new_game(session: Session, board: Board) -> None:
    game = session.game
    take_up(session, GoGame(board, game.rules, game.komi))
    session.clock.reset()


def take_up(session: Session, game: GoGame) -> None:
    """Replace the game of a session. If no evaluator is available for the new game, the old game stays."""
    session.player.new_game(game)
    session.game = game


@command("boardsize", "rectangular_boardsize", usage="SIZE...")
def boardsize(session: Session, request: Command) -> None:
    words = [word for word in request.text.replace(":", " ").split(" ") if word]
    sizes = [int(word) for word in words if re.fullmatch("[0-9]{1,3}", word)]
    if len(words) not in (1, 2) or len(sizes) < len(words) or not all(MIN_SIZE <= size <= MAX_SIZE for size in sizes):
        raise GtpError(f"unacceptable size: expected {MIN_SIZE} to {MAX_SIZE}, or columns and rows")
    session.expect_board(sizes[0], sizes[-1])
    new_game(session, Board(sizes[0], sizes[-1]))


@command("clear_board")
def clear_board(session: Session, request: Command) -> None:
    # Komi, rules and time settings stay.
    new_game(session, session.game.board)


@command("komi", background=PAUSES, usage="KOMI")
def komi(session: Session, request: Command) -> None:
    # Pondering only pauses, because some controllers send this before every move.
    try:
        session.game.set_komi(real(request.arguments[0], "komi"))
    except (GtpError, SetupError):
        raise GtpError(f"unacceptable komi: expected a number from {-MAX_KOMI:g} to {MAX_KOMI:g}") from None


@command("get_komi", background=KEEPS)
def get_komi(session: Session, request: Command) -> str:
    return f"{session.game.komi:g}"


@command("play", usage="COLOR VERTEX")
def play(session: Session, request: Command) -> None:
    game = session.game
    color = parse_color(request.arguments[0])
    if request.arguments[1].lower() == "resign":
        session.note_winner(opponent(color))
        return  # some controllers pass on the opponent's resignation; the board stays
    move = game.board.parse_vertex(request.arguments[1])
    is_proposed = session.proposed == (len(game.moves), color, move)
    game.play(color, move)
    session.ponder_after = is_proposed


@command("undo", usage="")
def undo(session: Session, request: Command) -> None:
    session.game.undo()


@command("gg-undo", usage="[MOVES]")
def gg_undo(session: Session, request: Command) -> None:
    count = integer(request.arguments[0], "number of moves") if request.arguments else 1
    played = len(session.game.moves)
    if not 0 <= count <= played:
        possible = f"a number of moves from 0 to {played}" if played else "0, because there is no move to undo"
        raise GtpError(f"cannot undo: expected {possible}, found {count}")
    for _ in range(count):
        session.game.undo()


@command("showboard", background=KEEPS)
def showboard(session: Session, request: Command) -> str:
    return "\n" + str(session.game)


# -- handicap ------------------------------------------------------------------------------------------------------


def _vertices(points: list[int], board: Board) -> str:
    return " ".join(board.vertex(point) for point in points)


@command("fixed_handicap", "place_free_handicap", usage="NUMBER_OF_STONES")
def place_handicap(session: Session, request: Command) -> str:
    game, choose = session.game, fixed_handicap if request.name == "fixed_handicap" else free_handicap
    points = choose(integer(request.arguments[0], "number of stones"), game.board)
    game.place_handicap(points)
    return _vertices(points, game.board)


@command("set_free_handicap")
def set_free_handicap(session: Session, request: Command) -> None:
    if not request.arguments:
        raise GtpError("syntax error: expected set_free_handicap VERTEX VERTEX ...")
    game = session.game
    game.place_handicap([game.board.parse_vertex(text) for text in request.arguments])


# -- positions and records -----------------------------------------------------------------------------------------


@command("loadsgf", usage="FILE... [MOVE]")
def loadsgf(session: Session, request: Command) -> str:
    """Load a record up to the position before move N, or to its end. Answer with the side to move.

    A broken record is loaded up to the fault, and stderr shows each fault. Rules and komi stay if the record names
    none, or unknown rules.
    """
    words = list(request.arguments)
    moves = None
    if len(words) > 1 and words[-1].isascii() and words[-1].isdigit():
        moves = max(integer(words.pop(), "move number") - 1, 0)
    path = " ".join(words).strip('"')
    try:
        record = load_record(path)
        old = session.game
        is_stated = record.rules is not None and record.rules.states_komi
        komi = old.komi if record.komi is None and record.handicap < 2 and not is_stated else None
        game = record.game(moves, rules=old.rules, override_rules=record.rules is None, komi=komi, cut=True)
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


def result_of(session: Session) -> str:
    game = session.game
    if game.is_no_result:
        return "Void"
    return score_text(final_score(game, removed_stones(game, session.final_ownership)))


@command("printsgf", background=KEEPS)
def printsgf(session: Session, request: Command) -> str:
    text = to_sgf(session.game, result=result_of(session) if session.game.is_over else "")
    path = request.text.strip('"')
    if path in ("", "-"):
        return text
    with reraised((OSError, ValueError), GtpError, f"cannot write {path}: "):
        write_atomically(Path(path), text.encode())
    return ""


def _pairs(words: tuple[str, ...], board: Board) -> list[tuple[int, int]]:
    if len(words) % 2:
        raise GtpError("syntax error: expected pairs of COLOR VERTEX")
    return [(parse_color(c), board.parse_vertex(v)) for c, v in zip(words[::2], words[1::2], strict=True)]


@command("set_position")
def set_position(session: Session, request: Command) -> None:
    game = session.game
    stones = _pairs(request.arguments, game.board)
    if any(point == PASS for _, point in stones):
        raise GtpError("syntax error: expected vertices, found pass")
    game.set_position(stones)
    session.player.new_game(game)


@command("gogui-setup")
def gogui_setup(session: Session, request: Command) -> None:
    if session.game.stones():
        raise GtpError("board not empty")
    set_position(session, request)


@command("gogui-setup_player", usage="COLOR")
def gogui_setup_player(session: Session, request: Command) -> None:
    session.game.edit((), parse_color(request.arguments[0]))


@command("gogui-play_sequence")
def gogui_play_sequence(session: Session, request: Command) -> None:
    game = session.game
    played = 0
    try:
        for color, move in _pairs(request.arguments, game.board):
            game.play(color, move)
            played += 1
    except IllegalMove:
        for _ in range(played):
            game.undo()
        raise


# -- questions about the board -------------------------------------------------------------------------------------


@command("list_stones", background=KEEPS, usage="COLOR")
def list_stones(session: Session, request: Command) -> str:
    color = parse_color(request.arguments[0])
    return _vertices([p for c, p in session.game.stones() if c == color], session.game.board)


@command("color", background=KEEPS, usage="VERTEX")
def color_at(session: Session, request: Command) -> str:
    point = session.game.board.parse_vertex(request.arguments[0])
    if point == PASS:
        raise GtpError("invalid vertex 'pass': expected a point of the board")
    return COLOR_NAMES[session.game.color_at(point)]


@command("is_legal", background=KEEPS, usage="COLOR VERTEX")
def is_legal(session: Session, request: Command) -> str:
    color, vertex = request.arguments
    return str(int(session.game.is_legal(parse_color(color), session.game.board.parse_vertex(vertex))))


@command("all_legal", background=KEEPS, usage="COLOR")
def all_legal(session: Session, request: Command) -> str:
    color, game = parse_color(request.arguments[0]), session.game
    return _vertices([point for point in game.board.points if game.is_legal(color, point)], game.board)


@command("captures", background=KEEPS, usage="COLOR")
def captures(session: Session, request: Command) -> str:
    return str(session.game.captures(parse_color(request.arguments[0])))


@command("move_history", background=KEEPS)
def move_history(session: Session, request: Command) -> str:
    board = session.game.board
    return "\n".join(f"{COLOR_NAMES[color]} {board.vertex(move)}" for color, move in reversed(session.game.moves))


@command("last_move", background=KEEPS)
def last_move(session: Session, request: Command) -> str:
    if session.game.last_move is None:
        raise GtpError("no previous move known")
    color, move = session.game.last_move
    return f"{COLOR_NAMES[color]} {session.game.board.vertex(move)}"


@command("query_boardsize", background=KEEPS)
def query_boardsize(session: Session, request: Command) -> str:
    board = session.game.board
    return str(board.width) if board.is_square else f"{board.width}:{board.height}"


# -- rules ---------------------------------------------------------------------------------------------------------


@command("kata-get-rules", background=KEEPS)
def kata_get_rules(session: Session, request: Command) -> str:
    return session.game.rules.to_json()


def set_rules(session: Session, rules: Rules) -> None:
    """Change the rules, and the komi if they state one. Without an evaluator for the new rules, the old ones stay."""
    game, old, komi = session.game, session.game.rules, session.game.komi
    if rules.states_komi:
        game.set_komi(rules.komi)
    game.set_rules(replace(rules, states_komi=False))  # a later komi, or a record's handicap, counts
    try:
        session.player.load(game)
    except EvaluatorError:
        game.set_rules(old)
        game.set_komi(komi)
        raise


@command("kata-set-rules", usage="RULES...")
def kata_set_rules(session: Session, request: Command) -> None:
    try:
        rules = Rules.parse(request.text)
    except RulesError as error:
        if len(request.arguments) == 2 and not request.text.startswith("{"):
            raise GtpError(f"{error}; kata-set-rule FIELD VALUE changes one field") from None
        raise
    set_rules(session, rules)


@command("kata-set-rule", usage="FIELD VALUE")
def kata_set_rule(session: Session, request: Command) -> None:
    set_rules(session, session.game.rules.with_rule(*request.arguments))


@command("kgs-rules", usage="RULES")
def kgs_rules(session: Session, request: Command) -> None:
    name = request.arguments[0].lower()
    set_rules(session, Rules.parse("chinese-kgs" if name == "chinese" else name))


@command("cgos-gameover", "kgs-game_over")
def game_over(session: Session, request: Command) -> None:
    """Accept that the game is over. The search in the background has ended before."""
