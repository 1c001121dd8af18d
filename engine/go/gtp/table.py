"""The table of GTP commands, and the commands about the engine and its options.

The table lists the commands of all modules, so that `list_commands` needs no slow imports. Handlers are registered with
`@command(name)`; a test compares both. This module imports neither numpy nor the game.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yomi import __version__
from yomi.engine.default_network import network_file
from yomi.engine.go.gtp.codec import Command, GtpError, expect_count
from yomi.engine.options import Option, OptionError, Value, find, rows_for

if TYPE_CHECKING:
    from yomi.engine.go.gtp.session import Handler, Session

PACKAGE = "yomi.engine.go.gtp"

QUIET = "quiet"  # the command neither needs nor ends a background search
# The command ends a background search; pondering resumes afterwards, because the side to move is the same.
RESUMES = "resumes"
ENDS = "ends"  # the command ends a background search for good

# (module, effect of its commands on a background search, their names), in the order of `list_commands`.
MODULES = (
    (
        "table",
        QUIET,
        "protocol_version name version known_command list_commands quit echo gogui-interrupt gogui-title"
        " gogui-version gogui-analyze_commands cputime gomill-cpu_time gomill-describe_engine"
        " cgos-opponent_name cgos-opponent_rating",
    ),
    ("clock", QUIET, "time_settings time_left kgs-time_settings kata-time_settings kata-list_time_settings"),
    (
        "board",
        ENDS,
        "boardsize rectangular_boardsize clear_board komi get_komi play undo gg-undo showboard fixed_handicap"
        " place_free_handicap set_free_handicap loadsgf printsgf set_position gogui-setup gogui-setup_player"
        " gogui-play_sequence list_stones color is_legal all_legal captures move_history last_move query_boardsize"
        " kata-get-rules kata-set-rules kata-set-rule kgs-rules cgos-gameover kgs-game_over",
    ),
    (
        "moves",
        ENDS,
        "genmove reg_genmove kgs-genmove_cleanup kata-search kata-search_cancellable genmove_analyze"
        " lz-genmove_analyze kata-genmove_analyze cgos-genmove_analyze kata-search_analyze"
        " kata-search_analyze_cancellable stop clear_cache analyze lz-analyze kata-analyze",
    ),
    ("maps", RESUMES, "final_score final_status final_status_list"),
    (
        "table",
        RESUMES,
        "kata-get-param kata-set-param kata-list-params kata-get-params kata-set-params kata-get-models yomi-param",
    ),
    (
        "maps",
        RESUMES,
        "kata-raw-nn yomi-policy yomi-ownership yomi-visits yomi-winrate yomi-pv yomi-best yomi-evaluation"
        " yomi-territory",
    ),
)
# Commands of other modules that only read game and options, so they are quiet.
QUESTIONS = (
    "query_boardsize get_komi showboard printsgf list_stones color is_legal all_legal captures move_history last_move"
    " kata-get-rules kata-get-param kata-list-params kata-get-params kata-get-models"
)
OTHERS = {"komi": RESUMES} | dict.fromkeys(QUESTIONS.split(), QUIET)  # exceptions from a module's effect


@dataclass(frozen=True, slots=True)
class CommandRow:
    name: str
    module: str
    background: str  # QUIET, RESUMES or ENDS


ROWS = {
    name: CommandRow(name, module, OTHERS.get(name, background))
    for module, background, names in MODULES
    for name in names.split()
}
_HANDLERS: dict[str, Handler] = {}


def load(row: CommandRow) -> Handler:
    """Return the handler of a command, importing its module if necessary."""
    if row.name not in _HANDLERS:
        importlib.import_module(f"{PACKAGE}.{row.module}")
    return _HANDLERS[row.name]


def load_all() -> None:
    """Import all handlers now, so that none is imported while a clock runs."""
    for row in ROWS.values():
        load(row)


def command(*names: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of `names`."""

    def register(handler: Handler) -> Handler:
        for name in names:
            row = ROWS.get(name)
            if row is None or handler.__module__ != f"{PACKAGE}.{row.module}":
                raise ValueError(f"{name} is not a command of {handler.__module__} in the table")
            _HANDLERS[name] = handler
        return handler

    return register


# -- commands about the engine -------------------------------------------------------------------------------------

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
    """Return a version that every client accepts: 0.1.0 becomes 0.110, 0.1.2 becomes 0.112, 1.0.0 becomes 1.100.

    Lizzie takes a second number below 15 for an old Leela Zero and warns.
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return f"{major}.{100 + 10 * minor + patch}"


ANSWERS = {
    "protocol_version": "2",
    "name": NAME,
    "version": gtp_version(__version__),
    "gogui-version": "1.6.0",
    "gogui-title": f"{NAME} {__version__}",
    "gogui-analyze_commands": ANALYZE_COMMANDS,
}


@command(*ANSWERS)
def fixed_answer(session: Session, request: Command) -> str:
    return ANSWERS[request.name]


@command("gomill-describe_engine")
def describe_engine(session: Session, request: Command) -> str:
    """Answer name, version and options that differ from their defaults."""
    values = [(row, session.options.get(row.name)) for row in rows_for("go")]
    changed = [f"{row.name} {row.format(value)}" for row, value in values if value != row.default]
    return "\n".join([f"{NAME} {__version__}", *changed])


@command("known_command")
def known_command(session: Session, request: Command) -> str:
    """Answer true or false, never an error: q5go ends the session at an error."""
    known = request.arguments and request.arguments[0].lower() in ROWS
    return "true" if known else "false"


@command("list_commands")
def list_commands(session: Session, request: Command) -> str:
    return "\n".join(ROWS)


@command("quit")
def quit_(session: Session, request: Command) -> None:
    """End the session after this answer."""
    session.quit()


@command("echo")
def echo(session: Session, request: Command) -> str:
    return request.text


@command("gogui-interrupt")
def gogui_interrupt(session: Session, request: Command) -> None:
    """Announce support for the comment line `# interrupt`, which ends the search in progress."""


@command("cputime", "gomill-cpu_time")
def cpu_time(session: Session, request: Command) -> str:
    """Answer the processor time of this process in seconds, summed over cores."""
    expect_count(request, 0, 0, "")
    return f"{time.process_time():.3f}"


@command("cgos-opponent_name", "cgos-opponent_rating")
def cgos_opponent(session: Session, request: Command) -> None:
    """Accept the opponent's name or rating, which are not used."""


# -- options -----------------------------------------------------------------------------------------------------


def set_value(session: Session, row: Option, value: Value) -> None:
    """Set an option to a checked value.

    Raises:
        GtpError: the option cannot be changed while the engine runs.
        EvaluatorError: no evaluator is available; the option is unchanged.
    """
    if not row.live:
        raise GtpError(f"{row.name} can only be set at the start: {row.flag} on the command line, or the TOML file")
    if value == session.options.get(row.name):
        return
    player, before = session.player, session.level.state()
    session.level.set(row.name, value, wins=True)
    try:
        player.load(session.game)
    except Exception:
        session.level.restore(before)
        raise


@command("kata-list-params")
def list_params(session: Session, request: Command) -> str:
    """Answer the names of all options that can be changed."""
    return " ".join(row.name for row in rows_for("go") if row.live)


@command("kata-get-param")
def get_param(session: Session, request: Command) -> str:
    expect_count(request, 1, 1, "PARAMETER")
    row = find(request.arguments[0], "go")
    return row.format(session.options.get(row.name))


@command("kata-set-param")
def set_param(session: Session, request: Command) -> None:
    expect_count(request, 2, None, "PARAMETER VALUE")
    row = find(request.arguments[0], "go")
    set_value(session, row, row.parse(" ".join(request.arguments[1:])))


@command("kata-get-params")
def get_params(session: Session, request: Command) -> str:
    """Answer all options as JSON."""
    return json.dumps({row.name: session.options.get(row.name) for row in rows_for("go")})


@command("kata-set-params")
def set_params(session: Session, request: Command) -> None:
    """Change several options of a JSON object, or none if one is wrong."""
    try:
        values = json.loads(request.text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise GtpError('syntax error: expected a JSON object such as {"visits": 100}')
    checked = []
    for name, value in values.items():
        row = find(name, "go")
        checked.append((row, row.parse(value) if isinstance(value, str) else row.check(value)))
        if not row.live:
            raise OptionError(f"{row.name} can only be set at the start")
    before = session.level.state()
    try:
        for row, value in sorted(checked, key=lambda pair: pair[0].name != "level"):  # the level goes before the others
            set_value(session, row, value)
    except Exception:
        session.level.restore(before)
        session.player.load(session.game)
        raise


@command("kata-get-models")
def get_models(session: Session, request: Command) -> str:
    """Answer the network in KataGo's JSON form, or an empty list."""
    model = session.player.model
    return json.dumps([] if model is None else [model.to_json(network_file(session.options, "go"))])


@command("yomi-param")
def gogui_param(session: Session, request: Command) -> str:
    """Answer GoGui's parameter dialog, or change an option."""
    if request.arguments:
        set_param(session, request)
        return ""
    lines = []
    for row in rows_for("go"):
        if row.live:
            value = session.options.get(row.name)
            kind = {"flag": "[bool]", "choice": f"[list/{'/'.join(row.choices)}]"}.get(row.kind, "[string]")
            text = str(int(bool(value))) if row.kind == "flag" else row.format(value)
            lines.append(f"{kind} {row.name} {text}")
    return "\n".join(lines)
