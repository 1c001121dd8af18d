"""The CSA server protocol 1.2.1 as text: converts lines to messages, and moves and log-ins to lines."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.placement import SfenError, check
from yomi.engine.shogi.records.csa import read_csa
from yomi.engine.shogi.records.record import GameRecord, RecordError
from yomi.errors import reraised

COLORS = {"+": BLACK, "-": WHITE}
RESULTS = ("WIN", "LOSE", "DRAW", "CENSORED", "CHUDAN")
MAX_SUMMARY = 5000  # lines of a game's summary; a longer one is refused
MAX_SECONDS = 10.0**7
# The option `entering_king` by the text of `Declaration:`. The protocol allows this text only.
DECLARATIONS = {"Jishogi 1.1": "27"}
UNITS = {"msec": 0.001, "ms": 0.001, "sec": 1.0, "s": 1.0, "min": 60.0}

NUMBER = r"[0-9]{1,9}"

_MOVE = re.compile(r"([+-][0-9]{4}[A-Z]{2})(?:,T([0-9]{1,9}))?(?:,.*)?")
_SPECIAL = re.compile(r"%([A-Z_+-]+)(?:,T([0-9]{1,9}))?(?:,.*)?")
_UNIT = re.compile(r"([0-9]{0,6}) ?([a-z]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TimeRule:
    """The time of one side, in seconds."""

    total: float = 0.0
    byoyomi: float = 0.0
    increment: float = 0.0  # in no specification, but of the server in Ruby that runs floodgate, as is #MAX_MOVES
    delay: float = 0.0  # free time of each move
    unit: float = 1.0  # of times in messages
    is_rounded_up: bool = False  # whether a unit that has begun counts in full; otherwise only complete units count

    @property
    def is_limited(self) -> bool:
        return self.total > 0 or self.byoyomi > 0 or self.increment > 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The server's description of a game, sent before the game starts or is resumed."""

    game_id: str
    color: int  # our side
    names: dict[int, str]
    rules: dict[int, TimeRule]
    record: GameRecord  # the initial position, and the moves of a resumed game
    max_moves: int = 0  # 0: no limit
    declaration: str = ""  # the rule of the declaration win, a key of DECLARATIONS; empty if not sent
    remaining: dict[int, float] = field(default_factory=dict)  # clocks of a resumed game, if the server sends them


# Kinds of messages. `text` is the name after the log-in, a move with its sign, an identifier, a word or a fault.
Kind = Literal[
    "login",  # we are logged in under the name in `text`
    "refused",  # the password is wrong, or the name is in use
    "logout",
    "start",  # both sides have agreed to the game in `text`: the clock of the side to move runs
    "reject",  # a side has refused the game
    "move",  # of either side, ours included: +7776FU
    "special",  # a `%` word that ends a game: TORYO, KACHI, CHUDAN
    "reason",  # a `#` word for the reason of the end: RESIGN, TIME_UP, SENNICHITE and others
    "result",  # a `#` word that ends a game, one of RESULTS
    "keepalive",  # an empty line
    "other",  # chat, unexpected answers and noise
    "broken",  # a game's summary that cannot be used
]


@dataclass(frozen=True, slots=True)
class Message:
    kind: Kind
    text: str = ""
    units: int | None = None  # time charged for a move in the game's units; None if not sent


def parse_line(line: str) -> Message:
    """Convert a line outside a game's summary to a message."""
    text = line.strip()
    if not text:
        return Message("keepalive")
    if match := _MOVE.fullmatch(text):
        return Message("move", match[1], int(match[2]) if match[2] else None)
    if match := _SPECIAL.fullmatch(text):
        return Message("special", match[1], int(match[2]) if match[2] else None)
    if re.fullmatch(r"#[A-Z_]+", text):
        return Message("result" if text[1:] in RESULTS else "reason", text[1:])
    head, _, rest = text.partition(":")
    match head:
        case "LOGIN" if rest == "incorrect":
            return Message("refused")
        case "LOGIN" if rest.endswith(" OK"):
            return Message("login", rest.removesuffix(" OK"))
        case "LOGOUT":
            return Message("logout")
        case "START":
            return Message("start", rest)
        case "REJECT":
            return Message("reject", rest)
    return Message("other", text)


@dataclass(slots=True)
class MessageReader:
    """Converts lines to messages. It collects the lines of a summary until the summary is complete."""

    _lines: list[str] | None = field(default=None, init=False)

    def feed(self, line: str) -> Message | Summary | None:
        """Return the message that is complete with this line, or None."""
        text = line.strip()
        if text == "BEGIN Game_Summary":
            self._lines = []
            return None
        # Outside a summary every line is a message.
        if self._lines is None:
            return parse_line(line)
        if text == "END Game_Summary":
            lines, self._lines = self._lines, None
            try:
                return parse_summary(lines)
            except ValueError as error:
                return Message("broken", str(error))
        self._lines.append(text)
        if len(self._lines) > MAX_SUMMARY:
            self._lines = None
            return Message("broken", f"a summary of more than {MAX_SUMMARY} lines")
        return None


def parse_summary(lines: Iterable[str]) -> Summary:
    """Read the lines of a game's summary. Raises ValueError if a field is missing or wrong."""
    sections: dict[str, list[str]] = {"": [], "Time": [], "Time+": [], "Time-": [], "Position": []}
    current = ""
    for line in lines:
        if line.startswith("BEGIN "):
            current = line.removeprefix("BEGIN ").strip()
        elif line.startswith("END "):
            current = ""
        elif current in sections:
            sections[current].append(line)
    fields = _fields(sections[""])
    for key in ("Game_ID", "Your_Turn"):
        if not fields.get(key):
            raise ValueError(f"a game's summary without {key}")
    if fields["Your_Turn"] not in COLORS:
        raise ValueError(f"Your_Turn:{fields['Your_Turn'][:20]}: expected + or -")
    max_moves = fields.get("Max_Moves") or "0"
    if not re.fullmatch(NUMBER, max_moves):
        raise ValueError(f"Max_Moves:{max_moves[:20]}: expected a number")
    common = _fields(sections["Time"])
    rules = {color: _time_rule(common | _fields(sections[f"Time{sign}"])) for sign, color in COLORS.items()}
    return Summary(
        game_id=fields["Game_ID"],
        color=COLORS[fields["Your_Turn"]],
        names={color: fields.get(f"Name{sign}", "") for sign, color in COLORS.items()},
        rules=rules,
        record=_position(sections["Position"]),
        remaining={
            color: _seconds(common, f"Remaining_Time{sign}", rules[color].unit)
            for sign, color in COLORS.items()
            if common.get(f"Remaining_Time{sign}")
        },
        max_moves=int(max_moves),
        declaration=fields.get("Declaration", ""),
    )


def _fields(lines: list[str]) -> dict[str, str]:
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _time_rule(fields: dict[str, str]) -> TimeRule:
    unit_text = fields.get("Time_Unit", "1sec")
    match = _UNIT.fullmatch(unit_text)
    if not match or match[2].lower() not in UNITS or int(match[1] or 1) == 0:
        raise ValueError(f"Time_Unit:{unit_text[:20]}: expected a number and msec, sec or min")
    unit = int(match[1] or 1) * UNITS[match[2].lower()]
    total, byoyomi, increment, delay = (
        _seconds(fields, key, unit) for key in ("Total_Time", "Byoyomi", "Increment", "Delay")
    )
    return TimeRule(total, byoyomi, increment, delay, unit, fields.get("Time_Roundup", "NO").upper() == "YES")


def _seconds(fields: dict[str, str], key: str, unit: float) -> float:
    """Return a time of at most MAX_SECONDS; 0 if it is missing."""
    text = fields.get(key) or "0"
    if not re.fullmatch(NUMBER, text):
        raise ValueError(f"{key}:{text[:20]}: expected a number")
    return min(int(text) * unit, MAX_SECONDS)


def _position(lines: list[str]) -> GameRecord:
    if not lines:
        raise ValueError("a game's summary without a position")
    with reraised((RecordError, SfenError), ValueError, "the position of a game's summary: "):
        record, *_ = read_csa("\n".join(lines))
        check(record.initial)
    if record.ending:  # such as an illegal move
        raise ValueError(f"the position of a game's summary: ended by {record.ending}, expected moves only")
    for move in record.moves:
        if move.seconds is not None and not move.seconds <= MAX_SECONDS:
            raise ValueError(f"the position of a game's summary: a move of more than {MAX_SECONDS:.0f} s")
    return record


# -- to the server -------------------------------------------------------------------------------------------------


def format_login(user: str, password: str, game_name: str) -> str:
    """Return the line that logs in. Servers like floodgate expect the kind of game before the password."""
    return f"LOGIN {user} {game_name},{password}" if game_name else f"LOGIN {user} {password}"


def format_move(move: str, score: int | None, line: str) -> str:
    """Return a move with floodgate's comment: centipawns for Black (None: no comment), expected line in CSA."""
    return move if score is None else f"{move},'* {score} {line}".rstrip()
