"""Reading and changing options from a controller."""

from __future__ import annotations

import json

from yomi.engine.default_network import network_file
from yomi.engine.go.gtp.arguments import expect_count
from yomi.engine.go.gtp.codec import Command
from yomi.engine.go.gtp.session import GtpError, Session
from yomi.engine.go.gtp.table import command
from yomi.engine.options import Option, OptionError, Value, find, rows_for


def set_value(session: Session, row: Option, value: Value) -> None:
    """Put a checked value in force.

    Raises:
        GtpError: The option cannot be changed while the engine runs.
        EvaluatorError: There is no evaluator for it; it stays as it was.
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
    """Answer the value of an option."""
    expect_count(request, 1, 1, "PARAMETER")
    row = find(request.arguments[0], "go")
    return row.format(session.options.get(row.name))


@command("kata-set-param")
def set_param(session: Session, request: Command) -> None:
    """Change an option."""
    expect_count(request, 2, None, "PARAMETER VALUE")
    row = find(request.arguments[0], "go")
    set_value(session, row, row.parse(" ".join(request.arguments[1:])))


@command("kata-get-params")
def get_params(session: Session, request: Command) -> str:
    """Answer all options as JSON."""
    return json.dumps({row.name: session.options.get(row.name) for row in rows_for("go")})


@command("kata-set-params")
def set_params(session: Session, request: Command) -> None:
    """Change several options, given as a JSON object, or none where one of them is wrong."""
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
        for row, value in sorted(checked, key=lambda each: each[0].name != "level"):  # the level goes before the others
            set_value(session, row, value)
    except Exception:
        session.level.restore(before)
        session.player.load(session.game)
        raise


@command("kata-get-models")
def get_models(session: Session, request: Command) -> str:
    """Answer the network in KataGo's JSON form; an empty list where there is none."""
    model = session.player.model
    return json.dumps([] if model is None else [model.to_json(network_file(session.options, "go"))])


@command("yomi-param")
def gogui_param(session: Session, request: Command) -> str:
    """Show the options in the form of GoGui's parameter dialog, or change one."""
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
