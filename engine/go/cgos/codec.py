"""CGOS's client protocol as text: converts lines to messages, and answers to lines.

Clients speak `e1`, with `genmove_analyze` if the server offers it. Times are milliseconds in the protocol and seconds
here. Source: server and client of zakki/cgos.
"""

import json
import re
from dataclasses import dataclass
from typing import Literal

from yomi import __version__
from yomi.engine.color import BLACK, COLORS, WHITE
from yomi.engine.go.points import Board, VertexError, square
from yomi.engine.options import MAX_KOMI
from yomi.engine.search.types import SearchReport
from yomi.native.go.board import MAX_SIZE, MIN_SIZE

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ANALYZE = "genmove_analyze"
MAX_ANALYSIS = 48_000  # maximum characters of an analysis; servers drop a connection whose line is longer than 64 KiB
MAX_MILLISECONDS = 10**10
# Beginning of the server's warning that another client logs in with the same name.
ANOTHER_LOGIN = "another login is being attempted"


Kind = Literal[
    "protocol",  # the server asks for our protocol; `text` is ANALYZE if it accepts an analysis with each move
    "user",  # it asks for our name
    "password",
    "info",  # a text for people
    "another login",  # another client logs in with our name: the server closes this connection if it accepts the login
    "refused",  # an error, after which the server closes the connection
    "broken",  # a game that cannot be played
    "other",
]


@dataclass(frozen=True, slots=True)
class Message:
    """A line from the server that does not concern a game."""

    kind: Kind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """A new game, or a game that continues after a break."""

    game_id: str
    board: Board
    komi: float
    seconds: float  # time of each side for the whole game
    names: dict[int, str]
    ratings: dict[int, str]  # as the server writes them, such as `1800?`
    moves: tuple[tuple[str, float], ...]  # (vertex, seconds left after the move), Black first


@dataclass(frozen=True, slots=True)
class OpponentMove:
    color: int
    vertex: str
    left: float  # seconds left to the opponent


@dataclass(frozen=True, slots=True)
class Genmove:
    color: int
    left: float  # seconds left to us


@dataclass(frozen=True, slots=True)
class Gameover:
    date: str
    result: str  # such as `B+2.0`, `W+Resign`, `B+Time`, `Draw`, `Abort`
    text: str


def parse_line(line: str) -> Message | Setup | OpponentMove | Genmove | Gameover:
    text = line.strip()
    other = Message("other", text)
    name, _, rest = text.partition(" ")
    words = rest.split()
    match name.lower(), len(words):
        case "protocol", _:
            return Message("protocol", ANALYZE if ANALYZE in words else "")
        case "username", 0:
            return Message("user")
        case "password", 0:
            return Message("password")
        case "info", _ if rest.startswith(ANOTHER_LOGIN):
            return Message("another login")
        case "info", _:
            return Message("info", rest)
        case "error:", _:
            return Message("refused", rest)
        case "setup", _:
            return _setup(words) or other
        case "play", 3:
            color, left = COLORS.get(words[0].lower()), _seconds(words[2])
            return other if color is None or left is None else OpponentMove(color, words[1].lower(), left)
        case "genmove", 2:
            color, left = COLORS.get(words[0].lower()), _seconds(words[1])
            return other if color is None or left is None else Genmove(color, left)
        case "gameover", count if count >= 2:
            return Gameover(words[0], words[1], " ".join(words[2:]))
    return other


def _setup(words: list[str]) -> Setup | Message | None:
    """Read the arguments of `setup`: id, size, komi, time, White, Black, then pairs of move and time.

    Returns:
        None if the form is wrong; a broken message if a number or move is out of range.
    """
    if len(words) < 6:
        return None
    game_id, size_text, komi_text, level, white, black, *rest = words
    seconds = _seconds(level)
    lefts = [_seconds(word) for word in rest[1::2]]
    if not re.fullmatch(r"[0-9]+", size_text) or seconds is None or None in lefts:
        return None
    size = int(size_text[:9])
    if not MIN_SIZE <= size <= MAX_SIZE:
        return Message("broken", f"board size {size_text[:20]}: expected {MIN_SIZE} to {MAX_SIZE}")
    board = square(size)
    is_number = re.fullmatch(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?", komi_text)
    if not is_number or abs(float(komi_text)) > MAX_KOMI:
        return Message("broken", f"komi {komi_text[:20]}: expected {-MAX_KOMI:g} to {MAX_KOMI:g}")
    moves = [(vertex.lower(), left) for vertex, left in zip(rest[0::2], lefts, strict=False) if left is not None]
    for number, (vertex, _) in enumerate(moves, 1):
        try:
            board.parse_vertex(vertex[:20])
        except VertexError as error:
            return Message("broken", f"move {number}: {error}")
    players = {WHITE: _player(white), BLACK: _player(black)}
    return Setup(
        game_id,
        board,
        float(komi_text),
        seconds,
        {color: name for color, (name, _) in players.items()},
        {color: rating for color, (_, rating) in players.items()},
        tuple(moves),
    )


def _player(word: str) -> tuple[str, str]:
    """Split a word such as `name(rating)` into name and rating. Without brackets the rating is empty."""
    match = re.fullmatch(r"(.+)\(([^()]*)\)", word)
    return (match[1], match[2]) if match else (word, "")


def _seconds(word: str) -> float | None:
    """Read a number of milliseconds and return seconds, at least 0. Return None if the word is not a number."""
    if not re.fullmatch(r"-?[0-9]{1,15}", word, re.ASCII):
        return None
    return min(max(int(word), 0), MAX_MILLISECONDS) / 1000


# -- to the server -------------------------------------------------------------------------------------------------


def format_protocol(has_analysis: bool) -> str:
    """Return the protocol line. Analysis is announced only if the server offers it."""
    return f"e1 yomi {__version__}" + (f" {ANALYZE}" if has_analysis else "")


def format_move(vertex: str, analysis: str = "") -> str:
    """Return the line for our move (a point, `pass` or `resign`), with a line of JSON unless that is too long."""
    has_analysis = analysis and len(analysis) <= MAX_ANALYSIS and vertex != "resign"
    return f"{vertex.lower()} {analysis}" if has_analysis else vertex.lower()


def cgos_json(report: SearchReport, board: Board, max_moves: int = 20) -> str:
    """Return a report as CGOS stores it: one line of JSON."""
    moves = [
        {
            "move": board.vertex(move.move).upper() if move.pv else "",
            "winrate": round(move.winrate, 4),
            "score": round(move.score_lead, 2),
            "prior": round(move.prior, 4),
            "visits": move.visits,
            "pv": " ".join(board.vertex(later).upper() for later in move.pv[1:]),
        }
        for move in report.moves[:max_moves]
    ]
    data: dict[str, object] = {
        "moves": moves,
        "winrate": round(report.winrate, 4),
        "score": round(report.score_lead, 2),
        "visits": report.visits,
    }
    if report.ownership is not None:
        data["ownership"] = "".join(BASE64[_level(value)] for value in report.ownership)
    return json.dumps(data, separators=(",", ":"))


def _level(ownership: float) -> int:
    return round(min(max((float(ownership) + 1) / 2, 0.0), 1.0) * 62)
