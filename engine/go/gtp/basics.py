"""Commands about the engine itself; nothing here waits for the player or imports the game."""

from __future__ import annotations

import time

from yomi import __version__
from yomi.engine.go.gtp import table
from yomi.engine.go.gtp.arguments import expect_count
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.session import Session
from yomi.engine.go.gtp.table import command
from yomi.engine.options import rows_for

NAME = "yomi"

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
    """Return a version that every client accepts: `a.b` with numbers only and b of at least 15.

    Lizzie takes a second number below 15 for an old Leela Zero and shows a warning. 0.1.0 becomes 0.110, 0.1.2
    0.112, 1.0.0 1.100.
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return f"{major}.{100 + 10 * minor + patch}"


@command("protocol_version")
def protocol_version(session: Session, request: Command) -> str:
    """Answer 2."""
    return "2"


@command("name")
def name(session: Session, request: Command) -> str:
    """Answer the engine's name."""
    return NAME


@command("version")
def version(session: Session, request: Command) -> str:
    """Answer the version; `gogui-title` has the usual form of it."""
    return gtp_version(__version__)


@command("gogui-version")
def gogui_version(session: Session, request: Command) -> str:
    """Answer the version of GoGui's extensions that is spoken."""
    return "1.6.0"


@command("gogui-title")
def gogui_title(session: Session, request: Command) -> str:
    """Answer a title for a window."""
    return f"{NAME} {__version__}"


@command("gomill-describe_engine")
def describe_engine(session: Session, request: Command) -> str:
    """Answer name, version and settings that are not the default."""
    values = [(row, session.options.get(row.name)) for row in rows_for("go")]
    changed = [f"{row.name} {row.format(value)}" for row, value in values if value != row.default]
    return "\n".join([f"{NAME} {__version__}", *changed])


@command("known_command")
def known_command(session: Session, request: Command) -> str:
    """Answer true or false, never an error (q5go ends the session at one)."""
    known = request.arguments and table.find(request.arguments[0].lower()) is not None
    return "true" if known else "false"


@command("list_commands")
def list_commands(session: Session, request: Command) -> str:
    """Answer the names of all commands."""
    return "\n".join(table.names())


@command("quit")
def quit_(session: Session, request: Command) -> None:
    """End the session after this answer."""
    session.quit()


@command("echo")
def echo(session: Session, request: Command) -> str:
    """Answer the arguments."""
    return request.text


@command("gogui-interrupt")
def gogui_interrupt(session: Session, request: Command) -> None:
    """Say that the comment line `# interrupt` ends the search in progress."""


@command("gogui-analyze_commands")
def gogui_analyze_commands(session: Session, request: Command) -> str:
    """Answer what GoGui can show: type/label/command on each line."""
    return ANALYZE_COMMANDS


@command("cputime", "gomill-cpu_time")
def cpu_time(session: Session, request: Command) -> str:
    """Answer the seconds that all processor cores together spent in this process."""
    expect_count(request, 0, 0, "")
    return f"{time.process_time():.3f}"


@command("cgos-opponent_name", "cgos-opponent_rating")
def cgos_opponent(session: Session, request: Command) -> None:
    """Hear who the opponent is; nothing depends on it."""
