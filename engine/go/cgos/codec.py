"""CGOS's client protocol as text: lines into messages, answers into lines. No socket, no game.

Players say `e1`, with or without the word `genmove_analyze`, which a server has to offer first; these are all versions
in use. Times on the wire are milliseconds, here they are seconds. Colors are BLACK and WHITE, moves stay texts
(`d4`, `pass`). Source: the server and the client of zakki/cgos.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from yomi import __version__
from yomi.engine.color import BLACK, COLORS, WHITE
from yomi.engine.go.vertex import VertexError, parse_vertex
from yomi.engine.options import MAX_KOMI
from yomi.native.go.board import MAX_SIZE, MIN_SIZE

ANALYZE = "genmove_analyze"
MAX_ANALYSIS = 48_000
"""Characters; servers drop a connection whose line is longer than 64 KiB."""
MAX_MILLISECONDS = 10**10
ANOTHER_LOGIN = "another login is being attempted"
"""Begins what a server tells a player whose name somebody else logs in with."""


@dataclass(frozen=True, slots=True)
class AskProtocol:
    """Who are you?"""

    has_analysis: bool
    """The server takes an analysis with each move."""


@dataclass(frozen=True, slots=True)
class AskUser:
    """What is your name?"""


@dataclass(frozen=True, slots=True)
class AskPassword:
    """What is your password?"""


@dataclass(frozen=True, slots=True)
class Info:
    """Something for people."""

    text: str


@dataclass(frozen=True, slots=True)
class AnotherLogin:
    """Somebody else logs in with our name; the server closes this connection if it lets them in."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A new game, or one that goes on after a break."""

    game_id: str
    size: int
    komi: float
    seconds: float
    """Time of each side for the whole game."""
    names: dict[int, str]
    ratings: dict[int, str]
    """As the server writes them, such as `1800?`."""
    moves: tuple[tuple[str, float], ...]
    """(vertex, seconds left after it), Black first, in turn."""


@dataclass(frozen=True, slots=True)
class Played:
    """The opponent has moved."""

    color: int
    vertex: str
    left: float
    """Seconds that the opponent has left."""


@dataclass(frozen=True, slots=True)
class Genmove:
    """Our move is due."""

    color: int
    left: float
    """Seconds that we have left."""


@dataclass(frozen=True, slots=True)
class Gameover:
    """The game is over."""

    date: str
    result: str
    """Such as `B+2.0`, `W+Resign`, `B+Time`, `Draw`, `Abort`."""
    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The server says what is wrong, and closes the connection."""

    text: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A game that cannot be played."""

    why: str


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else."""

    text: str


Message = (
    AskProtocol
    | AskUser
    | AskPassword
    | Info
    | AnotherLogin
    | Setup
    | Broken
    | Played
    | Genmove
    | Gameover
    | Refused
    | Other
)


def parse_line(line: str) -> Message:
    """Read a line."""
    text = line.strip()
    name, _, rest = text.partition(" ")
    words = rest.split()
    match name.lower(), len(words):
        case "protocol", _:
            return AskProtocol(ANALYZE in words)
        case "username", 0:
            return AskUser()
        case "password", 0:
            return AskPassword()
        case "info", _ if rest.startswith(ANOTHER_LOGIN):
            return AnotherLogin()
        case "info", _:
            return Info(rest)
        case "error:", _:
            return Refused(rest)
        case "setup", _:
            return _setup(words) or Other(text)
        case "play", 3:
            color, left = COLORS.get(words[0].lower()), _seconds(words[2])
            return Other(text) if color is None or left is None else Played(color, words[1].lower(), left)
        case "genmove", 2:
            color, left = COLORS.get(words[0].lower()), _seconds(words[1])
            return Other(text) if color is None or left is None else Genmove(color, left)
        case "gameover", count if count >= 2:
            return Gameover(words[0], words[1], " ".join(words[2:]))
    return Other(text)


def _setup(words: list[str]) -> Setup | Broken | None:
    """Read the arguments of `setup`: id, size, komi, time, White, Black, and pairs of move and time.

    Returns:
        None if this is not a `setup`; Broken if a number or a move is outside its range.
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
        return Broken(f"board size {size_text[:20]}: expected {MIN_SIZE} to {MAX_SIZE}")
    is_number = re.fullmatch(r"[+-]?[0-9]{1,9}(\.[0-9]{1,9})?", komi_text)
    if not is_number or abs(float(komi_text)) > MAX_KOMI:
        return Broken(f"komi {komi_text[:20]}: expected {-MAX_KOMI:g} to {MAX_KOMI:g}")
    moves = [(vertex.lower(), left) for vertex, left in zip(rest[0::2], lefts, strict=False) if left is not None]
    for number, (vertex, _) in enumerate(moves, 1):
        try:
            parse_vertex(vertex[:20], size)
        except VertexError as error:
            return Broken(f"move {number}: {error}")
    players = {WHITE: _player(white), BLACK: _player(black)}
    return Setup(
        game_id,
        size,
        float(komi_text),
        seconds,
        {color: name for color, (name, _) in players.items()},
        {color: rating for color, (_, rating) in players.items()},
        tuple(moves),
    )


def _player(word: str) -> tuple[str, str]:
    """Return (name, rating) of `name(rating)`."""
    match = re.fullmatch(r"(.+)\(([^()]*)\)", word)
    return (match[1], match[2]) if match else (word, "")


def _seconds(word: str) -> float | None:
    """Return milliseconds as seconds; a clock that is overdrawn shows 0."""
    if not re.fullmatch(r"-?[0-9]{1,15}", word, re.ASCII):
        return None
    return min(max(int(word), 0), MAX_MILLISECONDS) / 1000


# -- to the server -------------------------------------------------------------------------------------------------


def format_protocol(has_analysis: bool) -> str:
    """Return who we are; the analysis is announced only where the server has offered to take it."""
    return f"e1 yomi {__version__}" + (f" {ANALYZE}" if has_analysis else "")


def format_move(vertex: str, analysis: str = "") -> str:
    """Return our move.

    Args:
        vertex: a point, `pass` or `resign`.
        analysis: one line of JSON, left out where it is too long; empty for none.
    """
    has_analysis = analysis and len(analysis) <= MAX_ANALYSIS and vertex != "resign"
    return f"{vertex.lower()} {analysis}" if has_analysis else vertex.lower()
