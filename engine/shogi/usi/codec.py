"""USI as text: lines into commands and their arguments, answers into lines. No state, no streams, no rules of shogi.

Moves stay texts here. Source: the USI draft of T. Romstad, and what ShogiGUI, ShogiHome and YaneuraOu send.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from yomi.engine.protocols.streams import MAX_LINE, decode

MAX_ERROR = 500
"""Characters of a message; it quotes what was sent."""
MAX_MILLISECONDS = 10**10
MAX_COUNT = 10**15


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the controller."""

    name: str
    """In lower case."""
    text: str
    """All after the name, as it was sent."""

    @property
    def words(self) -> list[str]:
        """The words after the name."""
        return self.text.split()


def parse_line(line: bytes) -> Command | None:
    """Read one line of input; None where there is nothing to do (empty)."""
    text = decode(line[: MAX_LINE + 1])
    name, _, rest = text.partition(" ")
    return Command(name.lower(), rest.strip(" ")) if name else None


# -- arguments -----------------------------------------------------------------------------------------------------


def parse_setoption(text: str) -> tuple[str, str | None]:
    """Return name and value of `setoption`; the value is None where there is none (buttons).

    Names may hold blanks. The word `value` ends the name; the value goes on to the end of the line.

    Raises:
        ValueError: there is no name.
    """
    found = re.fullmatch(r"(?:name +)?(.*?)(?: +value(?: +(.*))?)?", text.strip(" "), re.IGNORECASE | re.DOTALL)
    if found is None or not found[1] or found[1].lower().split(" ")[0] in ("name", "value"):
        raise ValueError(f"expected name NAME value VALUE, found {text[:MAX_ERROR]!r}")
    has_value = re.search(r" value( |$)", text.strip(" "), re.IGNORECASE) is not None
    return found[1].strip(" "), (found[2] or "").strip(" ") if has_value else None


def parse_position(text: str) -> tuple[str, list[str]]:
    """Return (`startpos` or the four fields of an SFEN, moves) of `position`.

    Raises:
        ValueError: it is of another form.
    """
    from yomi.engine.shogi.sfen import START_WORD  # `usi` does without it

    kind, *words = text.split() or [""]
    cut = words.index("moves") if "moves" in words else len(words)
    before, after = words[:cut], words[cut + 1 :]
    if kind == START_WORD and not before:
        return START_WORD, after
    if kind == "sfen" and len(before) in (3, 4):
        return " ".join(before if len(before) == 4 else [*before, "1"]), after
    raise ValueError(f"expected startpos or sfen BOARD SIDE HANDS NUMBER, then moves ..., found {text[:100]!r}")


@dataclass(slots=True)
class Go:
    """The arguments of `go`. Times are in seconds; None is not given."""

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
    mate: float | None = None
    """Time for `go mate`; infinity for `infinite` and where none is given."""
    searchmoves: list[str] | None = None

    @property
    def has_clock(self) -> bool:
        """Whether there is a clock."""
        return any(value is not None for value in (self.btime, self.wtime, self.byoyomi, self.binc, self.winc))

    @property
    def is_endless(self) -> bool:
        """Whether only `stop` ends the search: shogiarena sends `nodes 500 infinite` and waits for an answer."""
        return self.infinite and self.nodes is None and self.depth is None and self.movetime is None


_TIMES = ("btime", "wtime", "byoyomi", "binc", "winc", "movetime")
_COUNTS = ("nodes", "depth")
_FLAGS = ("ponder", "infinite")
_KEYS = (*_TIMES, *_COUNTS, *_FLAGS, "mate", "searchmoves")


def parse_go(words: Sequence[str]) -> tuple[Go, list[str]]:
    """Return the arguments of `go` (or `ponderhit`), and what is wrong with those that were passed over."""
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
                faults.append(
                    f"{key}: expected a number, found {words[i][:50]!r}"
                    if i < len(words)
                    else f"{key}: expected a number, found nothing"
                )
                i += 1 if i < len(words) and words[i].lower() not in _KEYS else 0
                if key == "mate":  # whoever asks for one waits for `checkmate`
                    go.mate = math.inf
                continue
            i += 1
            setattr(go, key, number if key in _COUNTS else min(number, MAX_MILLISECONDS) / 1000)
        else:
            faults.append(f"unknown word {words[i - 1][:50]!r}")
    return go, faults


def _number(word: str) -> int | None:
    """Return a number from 0 on; a clock that is overdrawn shows 0."""
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?", word, re.ASCII):
        return None
    digits = word.partition(".")[0].lstrip("+")
    if digits.startswith("-"):
        return 0
    return min(int(digits[:20]), MAX_COUNT)


# -- answers -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Info:
    """One report of a search, for the side to move."""

    depth: int
    seldepth: int
    seconds: float
    nodes: int
    hashfull: int
    """In thousandths."""
    pv: tuple[str, ...]
    centipawns: int = 0
    mate: int | None = None
    """Plies to the mate, negative where the side to move is mated; goes before `centipawns`."""
    multipv: int | None = None
    """From 1; None where only one move is reported."""


def format_info(info: Info) -> str:
    """Return an `info` line; a mate of 0 plies for the side to move is `mate -0`."""
    milliseconds = int(1000 * info.seconds)
    words = [f"info depth {info.depth} seldepth {info.seldepth}"]
    if info.multipv is not None:
        words.append(f"multipv {info.multipv}")
    if info.mate is None:
        words.append(f"score cp {info.centipawns}")
    else:
        words.append(f"score mate {info.mate}" if info.mate else "score mate -0")
    nps = int(info.nodes / info.seconds) if info.seconds >= 0.001 else 0
    words.append(f"nodes {info.nodes} nps {nps} hashfull {info.hashfull} time {milliseconds}")
    if info.pv:
        words.append("pv " + " ".join(info.pv))
    return " ".join(words)


def format_string(text: str) -> str:
    """Return `info string` with a text made one line."""
    line = " ".join(text.split())
    return "info string " + (line if len(line) <= MAX_ERROR else line[:MAX_ERROR] + "...")


def format_error(text: str) -> str:
    """Return the `info string` that says what is wrong."""
    return format_string(f"Error! {text}")


def format_bestmove(move: str, ponder: str | None = None) -> str:
    """Return `bestmove`; the move may also be `resign` or `win`."""
    return f"bestmove {move} ponder {ponder}" if ponder else f"bestmove {move}"


def format_checkmate(moves: Sequence[str] | str) -> str:
    """Return the answer to `go mate`: the moves of the mate, or nomate, timeout or notimplemented."""
    return "checkmate " + (moves if isinstance(moves, str) else " ".join(moves))
