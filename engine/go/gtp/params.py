"""Commands about options: KataGo's parameters, GoGui's dialog, and the network."""

import json
from collections.abc import Mapping

from yomi.engine.go.gtp.codec import Command, GtpError, check_count, command
from yomi.engine.go.gtp.session import Session
from yomi.engine.options import Value, find, rows_for
from yomi.engine.protocols.session import KEEPS, PAUSES


def set_values(session: Session, values: Mapping[str, Value]) -> None:
    """Set options by name. If one cannot be set, change none and raise GtpError or EvaluatorError."""
    for row in (find(name, "go") for name in values):
        if not row.live:
            raise GtpError(f"{row.name} can only be set at the start: {row.flag} on the command line, or the TOML file")
    player, before = session.player, session.level.state()
    try:
        for name in sorted(values, key=lambda name: name != "level"):  # a level changes other options
            if values[name] != session.options.get(name):
                session.level.set(name, values[name], wins=True)
        # Once for all options, and before a clock runs.
        if session.level.state() != before:
            player.load(session.game)
            player.check_profile(session.options)
    except Exception:
        session.level.restore(before)
        raise


@command("kata-get-param", background=KEEPS, usage="PARAMETER")
def get_param(session: Session, request: Command) -> str:
    row = find(request.arguments[0], "go")
    return row.format(session.options.get(row.name))


@command("kata-set-param", background=PAUSES, usage="PARAMETER VALUE...")
def set_param(session: Session, request: Command) -> None:
    row = find(request.arguments[0], "go")
    set_values(session, {row.name: row.parse(" ".join(request.arguments[1:]))})


@command("kata-list-params", background=KEEPS)
def list_params(session: Session, request: Command) -> str:
    return " ".join(row.name for row in rows_for("go") if row.live)


@command("kata-get-params", background=KEEPS)
def get_params(session: Session, request: Command) -> str:
    return json.dumps({row.name: session.options.get(row.name) for row in rows_for("go")})


@command("kata-set-params", background=PAUSES)
def set_params(session: Session, request: Command) -> None:
    """Change the options that a JSON object contains; if one is wrong, change none."""
    try:
        values = json.loads(request.text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise GtpError('syntax error: expected a JSON object such as {"visits": 100}')
    found = {}
    for name, value in values.items():
        row = find(name, "go")
        found[row.name] = row.parse(value) if isinstance(value, str) else row.check(value)
    set_values(session, found)


@command("kata-get-models", background=KEEPS)
def get_models(session: Session, request: Command) -> str:
    return json.dumps(session.player.models)


@command("yomi-param", background=PAUSES)
def gogui_param(session: Session, request: Command) -> str:
    """Answer with the content of GoGui's parameter dialog, or change an option."""
    if request.arguments:
        check_count(request, "PARAMETER VALUE...")
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
