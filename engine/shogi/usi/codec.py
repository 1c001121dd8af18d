"""USI as text: converts lines to commands and arguments, and answers to lines.

Moves remain text here. Source: the USI draft of T. Romstad, and the commands of ShogiGUI, ShogiHome and YaneuraOu.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from yomi.engine.protocols.streams import MAX_LINE, decode
from yomi.errors import Error

MAX_ERROR = 500  # characters of a message, which quotes the input
MAX_MILLISECONDS = 10**10
MAX_COUNT = 10**15


class UsiError(Error, ValueError):
    """A command cannot be executed. The message is one line for the controller."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str  # in lower case
    text: str  # all text after the name

    @property
    def words(self) -> list[str]:
        return self.text.split()


def parse_line(line: bytes) -> Command | None:
    text = decode(line[: MAX_LINE + 1])
    name, _, rest = text.partition(" ")
    return Command(name.lower(), rest.strip(" ")) if name else None


# -- arguments -----------------------------------------------------------------------------------------------------


def parse_setoption(text: str) -> tuple[str, str | None]:
    """Return the name (which may contain blanks) and the value (None for buttons). Raises UsiError without a name."""
    # Some interfaces leave the word `name` out.
    found = re.fullmatch(r"(?:name +)?(.*?)(?: +value(?: +(.*))?)?", text.strip(" "), re.IGNORECASE | re.DOTALL)
    if found is None or not found[1] or found[1].lower().split(" ")[0] in ("name", "value"):
        raise UsiError(f"expected name NAME value VALUE, found {text[:MAX_ERROR]!r}")
    has_value = re.search(r" value( |$)", text.strip(" "), re.IGNORECASE) is not None
    return found[1].strip(" "), (found[2] or "").strip(" ") if has_value else None


def parse_position(text: str) -> tuple[str, list[str]]:
    """Return (`startpos` or the four fields of an SFEN, moves). Raises UsiError for other forms."""
    from yomi.engine.shogi.placement import START_WORD  # `usi` does without it

    kind, *words = text.split() or [""]
    cut = words.index("moves") if "moves" in words else len(words)
    before, after = words[:cut], words[cut + 1 :]
    if kind == START_WORD and not before:
        return START_WORD, after
    if kind == "sfen" and len(before) in (3, 4):
        return " ".join(before if len(before) == 4 else [*before, "1"]), after
    raise UsiError(f"expected startpos or sfen BOARD SIDE HANDS NUMBER, then moves ..., found {text[:100]!r}")


@dataclass(slots=True)
class Go:
    """The arguments of `go`. Times are in seconds. Missing arguments are None."""

    ponder: bool = False
    infinite: bool = False
    btime: float | None = None
    wtime: float | None = None
    byoyomi: float | None = None
    binc: float | None = None
    winc: float | None = None
    movetime: float | None = None
    nodes: int | None = None
    depth: int | None = None
    mate: float | None = None  # time for `go mate`; infinity for `infinite` or no number
    searchmoves: list[str] | None = None

    @property
    def has_clock(self) -> bool:
        return any(value is not None for value in (self.btime, self.wtime, self.byoyomi, self.binc, self.winc))

    @property
    def is_endless(self) -> bool:
        # shogiarena sends `nodes 500 infinite` and expects an answer.
        return self.infinite and self.nodes is None and self.depth is None and self.movetime is None


_TIMES = ("btime", "wtime", "byoyomi", "binc", "winc", "movetime")
_COUNTS = ("nodes", "depth")
_FLAGS = ("ponder", "infinite")
_LIMITS = (*_COUNTS, "movetime", "mate")
_KEYS = (*_TIMES, *_COUNTS, *_FLAGS, "mate", "searchmoves")


def parse_go(words: Sequence[str]) -> tuple[Go, list[str]]:
    """Return the arguments of `go` or `ponderhit`, and an error for each word that was ignored."""
    go = Go()
    faults = []
    i = 0
    while i < len(words):
        key = words[i].lower()
        i += 1
        if key in _FLAGS:
            setattr(go, key, True)
        elif key == "searchmoves":
            end = next((j for j in range(i, len(words)) if words[j].lower() in _KEYS), len(words))
            go.searchmoves = list(words[i:end])
            i = end
        elif key == "mate" and (i >= len(words) or words[i].lower() in _KEYS):
            go.mate = math.inf
            i += i < len(words) and words[i].lower() == "infinite"
        elif key in (*_TIMES, *_COUNTS, "mate"):
            number = _number(words[i]) if i < len(words) else None
            if number is None:
                faults.append(f"{key}: expected a number, found {repr(words[i][:50]) if i < len(words) else 'nothing'}")
                i += 1 if i < len(words) and words[i].lower() not in _KEYS else 0
                if key == "mate":  # the controller waits for `checkmate`
                    go.mate = math.inf
                continue
            i += 1
            if key in _LIMITS:
                number = max(number, 1)  # 0 asks for an answer at once
            setattr(go, key, number if key in _COUNTS else min(number, MAX_MILLISECONDS) / 1000)
        else:
            faults.append(f"unknown word {words[i - 1][:50]!r}")
    return go, faults


def _number(word: str) -> int | None:
    """Return a number without its fraction, or None. Negative numbers, such as overdrawn clocks, count as 0."""
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?", word, re.ASCII):
        return None
    digits = word.partition(".")[0].lstrip("+")
    if digits.startswith("-"):
        return 0
    return min(int(digits[:20]), MAX_COUNT)


# -- answers -------------------------------------------------------------------------------------------------------


def format_info(
    depth: int,
    seldepth: int,
    seconds: float,
    nodes: int,
    fullness: float,
    pv: Sequence[str],
    *,
    centipawns: int = 0,
    mate: int | None = None,
    bound: int = 0,
    multipv: int | None = None,
) -> str:
    """Return an `info` line for the side to move.

    `mate` is a number of plies, negative if the side to move is mated. `bound`: +1 if the score is a lower bound, -1 if
    it is an upper bound. `multipv` counts from 1; None if one move is reported.
    """
    words = [f"info depth {depth} seldepth {seldepth}"]
    if multipv is not None:
        words.append(f"multipv {multipv}")
    # USI's mate of 0 plies against the side to move is "-0".
    words.append(f"score cp {centipawns}" if mate is None else f"score mate {mate or '-0'}")
    if bound:
        words.append("lowerbound" if bound > 0 else "upperbound")
    nps, hashfull = int(nodes / seconds) if seconds >= 0.001 else 0, min(1000, int(1000 * fullness))
    words.append(f"nodes {nodes} nps {nps} hashfull {hashfull} time {int(1000 * seconds)}")
    return " ".join([*words, "pv", *pv] if pv else words)


def format_string(text: str) -> str:
    line = " ".join(text.split())
    return "info string " + (line if len(line) <= MAX_ERROR else line[:MAX_ERROR] + "...")


def format_error(text: str) -> str:
    return format_string(f"Error! {text}")


def format_bestmove(move: str, ponder: str | None = None) -> str:
    return f"bestmove {move} ponder {ponder}" if ponder else f"bestmove {move}"


def format_checkmate(moves: Sequence[str] | str) -> str:
    """Return the answer to `go mate`: a line of moves, or the word nomate or timeout."""
    return "checkmate " + (moves if isinstance(moves, str) else " ".join(moves))
