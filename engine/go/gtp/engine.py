"""Commands that need neither the player nor the game: about the engine, its commands, and time.

They are answered while the player loads, so this module must not import numpy or numba.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from yomi import __version__
from yomi.engine.clock import MAX_TIME, Clock, ClockError, Clocks, TimeSettings, TimeSystem
from yomi.engine.color import BLACK, COLORS, WHITE
from yomi.engine.go.gtp.codec import COMMANDS, Command, GtpError, command, integer, real
from yomi.engine.options import rows_for
from yomi.engine.protocols.session import KEEPS

if TYPE_CHECKING:
    from yomi.engine.go.gtp.session import Session

NAME = "yomi"

# GoGui's menu: type/label/command on each line.
ANALYZE_COMMANDS = """\
gfx/Best moves/yomi-best
dboard/Ownership/yomi-ownership
dboard/Winrate of each move/yomi-winrate
cboard/Visits/yomi-visits
cboard/Policy/yomi-policy
bwboard/Territory/yomi-territory
var/Principal variation/yomi-pv
string/Evaluation/yomi-evaluation
string/Final score/final_score
plist/Dead stones/final_status_list dead
plist/Stones in seki/final_status_list seki
plist/Legal moves/all_legal %m
string/Rules/kata-get-rules
hstring/Raw network output/kata-raw-nn 0
param/Parameters/yomi-param
none/Forget evaluations/clear_cache"""


def gtp_version(version: str) -> str:
    """Return yomi's version behind a number that every client accepts, such as "0.112 (yomi 0.1.2)".

    Lizzie reads the first word. It takes a second number below 15 for an old Leela Zero and warns.
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return f"{major}.{100 + 10 * minor + patch} ({NAME} {version})"


def _register_answer(name: str, text: str) -> None:
    command(name, background=KEEPS)(lambda session, request: text)


_register_answer("protocol_version", "2")
_register_answer("name", NAME)
_register_answer("version", gtp_version(__version__))


@command("known_command", background=KEEPS)
def known_command(session: Session, request: Command) -> str:
    # Never an error: q5go ends the session at an error.
    return "true" if request.arguments and COMMANDS.find(request.arguments[0].lower()) else "false"


@command("list_commands", background=KEEPS)
def list_commands(session: Session, request: Command) -> str:
    return "\n".join(COMMANDS.names())


@command("quit", background=KEEPS)
def quit_(session: Session, request: Command) -> None:
    session.quit()


@command("echo", background=KEEPS)
def echo(session: Session, request: Command) -> str:
    return request.text


@command("gogui-interrupt", background=KEEPS)
def gogui_interrupt(session: Session, request: Command) -> None:
    """Announce support for the comment line `# interrupt`, which ends the search in progress."""


_register_answer("gogui-title", f"{NAME} {__version__}")
_register_answer("gogui-version", "1.6.0")
_register_answer("gogui-analyze_commands", ANALYZE_COMMANDS)


@command("cputime", "gomill-cpu_time", background=KEEPS, usage="")
def cpu_time(session: Session, request: Command) -> str:
    # In seconds, summed over cores.
    return f"{time.process_time():.3f}"


@command("gomill-describe_engine", background=KEEPS)
def describe_engine(session: Session, request: Command) -> str:
    values = [(row, session.options.get(row.name)) for row in rows_for("go")]
    changed = [f"{row.name} {row.format(value)}" for row, value in values if value != row.default]
    return "\n".join([f"{NAME} {__version__}", *changed])


@command("cgos-opponent_name", "cgos-opponent_rating", background=KEEPS)
def cgos_opponent(session: Session, request: Command) -> None:
    """Accept the opponent's name or rating, and ignore it."""


# -- time ----------------------------------------------------------------------------------------------------------


class GtpClocks:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start without time limits. `now` returns the current time in seconds from any origin."""
        self._now = now
        self.settings = TimeSettings()
        self._is_set = False
        self._left = {BLACK: Clock(), WHITE: Clock()}
        self._started: float | None = None
        self._color = BLACK
        self._reported = {BLACK: False, WHITE: False}

    def set(self, settings: TimeSettings) -> None:
        """Change the settings and reset both clocks."""
        self.settings = settings
        self._is_set = True
        self.reset()

    def reset(self) -> None:
        for color in (BLACK, WHITE):
            self._left[color] = Clock.full(self.settings)
            self._reported[color] = False
        self._started = None

    def set_left(self, color: int, seconds: float, stones: int) -> None:
        """Set a clock to the time that the controller reports (GTP `time_left`).

        Args:
            color: side.
            seconds: main time if `stones` is 0, otherwise the rest of the period.
            stones: stones left in the period; with byo-yomi the periods left, as on KGS.
        """
        seconds = min(max(seconds, 0.0), MAX_TIME)
        if not self.settings.is_limited:
            if self._is_set:
                return  # the settings specify a game without limits
            system = TimeSystem.CANADIAN if stones else TimeSystem.ABSOLUTE
            self.settings = TimeSettings(system, 0.0 if stones else seconds, seconds if stones else 0.0, stones)
            self.reset()
        s = self.settings
        has_overtime = s.system in (TimeSystem.CANADIAN, TimeSystem.BYOYOMI)
        if stones > 0 and has_overtime:
            self._left[color] = Clock(s, 0.0, seconds, stones)
        else:
            self._left[color] = Clock(s, seconds, s.period, s.count)
        self._reported[color] = True

    def start(self, color: int, at: float | None = None) -> None:
        self._color = color
        self._started = self._now() if at is None else at

    def cancel(self) -> None:
        self._started = None

    def stop(self, lag: float = 0.0) -> None:
        """Stop the clock and charge the time of the move, plus `lag` if the controller does not report times."""
        if self._started is None:
            return
        used = self._now() - self._started + (0.0 if self._reported[self._color] else lag)
        self._started = None
        self._reported[self._color] = False
        self._left[self._color] = self._left[self._color].after(used)

    def clocks(self) -> Clocks:
        """Return both clocks. A running clock shows its value at the start."""
        return {color: replace(left, is_exact=self._reported[color]) for color, left in self._left.items()}


@command("time_settings", background=KEEPS, usage="MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES")
def time_settings(session: Session, request: Command) -> None:
    main, period, stones = request.arguments
    session.clock.set(
        TimeSettings.from_gtp(
            real(main, "main time"), real(period, "byo-yomi time"), integer(stones, "number of byo-yomi stones")
        )
    )


@command("time_left", background=KEEPS, usage="COLOR TIME [STONES]")
def time_left(session: Session, request: Command) -> None:
    color = COLORS.get(request.arguments[0].lower())
    if color is None:
        raise GtpError(f"invalid color {request.arguments[0]!r}: expected black or white")
    seconds = real(request.arguments[1], "time")
    stones = integer(request.arguments[2], "number of stones") if len(request.arguments) > 2 else 0
    # Less than 0 is accepted and counts as 0: a controller that only warns of a loss on time lets the game continue.
    # KataGo accepts times from -10 on.
    if stones < 0 or seconds > MAX_TIME:
        raise ClockError(f"expected a time up to {MAX_TIME:.0f} and stones of at least 0")
    session.clock.set_left(color, seconds, stones)


@command("kgs-time_settings", "kata-time_settings", background=KEEPS)
def named_time_settings(session: Session, request: Command) -> None:
    kgs = (TimeSystem.NONE, TimeSystem.ABSOLUTE, TimeSystem.BYOYOMI, TimeSystem.CANADIAN)
    systems = kgs if request.name == "kgs-time_settings" else tuple(TimeSystem)
    session.clock.set(TimeSettings.parse(list(request.arguments), systems))


@command("kata-list_time_settings", background=KEEPS)
def list_time_settings(session: Session, request: Command) -> str:
    return " ".join(system.value for system in TimeSystem)
