"""Commands about time, which never wait for the player."""

from __future__ import annotations

from yomi.engine.clock import MAX_TIME, ClockError, TimeSettings, TimeSystem
from yomi.engine.color import COLORS
from yomi.engine.go.gtp.arguments import expect_count, integer, real
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.session import GtpError, Session
from yomi.engine.go.gtp.table import command

KGS_SYSTEMS = (TimeSystem.NONE, TimeSystem.ABSOLUTE, TimeSystem.BYOYOMI, TimeSystem.CANADIAN)


@command("time_settings")
def time_settings(session: Session, request: Command) -> None:
    """Set main time, Canadian period and stones."""
    expect_count(request, 3, 3, "MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES")
    main, period, stones = request.arguments
    session.clock.set(
        TimeSettings.from_gtp(
            real(main, "main time"), real(period, "byo-yomi time"), integer(stones, "number of byo-yomi stones")
        )
    )


@command("kgs-time_settings")
def kgs_time_settings(session: Session, request: Command) -> None:
    session.clock.set(TimeSettings.parse(list(request.arguments), KGS_SYSTEMS))


@command("kata-time_settings")
def kata_time_settings(session: Session, request: Command) -> None:
    session.clock.set(TimeSettings.parse(list(request.arguments), tuple(TimeSystem)))


@command("kata-list_time_settings")
def kata_list_time_settings(session: Session, request: Command) -> str:
    return " ".join(system.value for system in TimeSystem)


@command("time_left")
def time_left(session: Session, request: Command) -> None:
    expect_count(request, 2, 3, "COLOR TIME [STONES]")
    color = COLORS.get(request.arguments[0].lower())
    if color is None:
        raise GtpError(f"invalid color {request.arguments[0]!r}: expected black or white")
    seconds = real(request.arguments[1], "time")
    stones = integer(request.arguments[2], "number of stones") if len(request.arguments) > 2 else 0
    if stones < 0 or seconds > MAX_TIME:
        raise ClockError(f"expected a time up to {MAX_TIME:.0f} and stones of at least 0")
    session.clock.set_left(color, seconds, stones)
