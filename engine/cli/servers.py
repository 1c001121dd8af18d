"""Shared parts of `yomi cgos` and `yomi floodgate`: flags, the file of accounts, log and events."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.options import Options, Value

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.servers.client import Client
    from yomi.engine.servers.passwords import Password
    from yomi.engine.servers.reporter import Reporter
    from yomi.engine.servers.settings import Account

    MakeClient = Callable[[Account, Password, Path, Reporter], Client]


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the TOML file of servers and accounts")
    parser.add_argument(
        "--account", action="append", metavar="NAME", help="play this account only (may be given several times)"
    )
    parser.add_argument("--games", type=int, metavar="N", help="end after N games of each account")
    parser.add_argument("--events", type=Path, metavar="FILE", help="append what happens to FILE, as lines of JSON")
    parser.add_argument("--log-file", metavar="FILE", help="write the log there (appended)")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what the log file receives; debug: every line of the protocol, passwords left out (default: info)",
    )


def run(args: argparse.Namespace, protocol: str, make_client: MakeClient) -> int:
    """Play the chosen accounts and return the exit status.

    Raises:
        CliError: the file, an account, a password or an output file is wrong.
    """
    from yomi.engine.servers.passwords import PasswordError, forget_environment
    from yomi.engine.servers.reporter import Reporter
    from yomi.engine.servers.runner import Runner
    from yomi.engine.servers.settings import SettingsError, read_settings

    if args.games is not None and args.games < 1:
        raise CliError(f"--games {args.games}: expected at least 1")
    try:
        settings = read_settings(args.file, protocol)
        accounts = _chosen(settings.accounts, args)
        passwords = {account.name: account.password() for account in accounts}
    except SettingsError as error:
        raise CliError(str(error)) from None
    except PasswordError as error:
        raise CliError(f"{args.file}: {error}") from None
    forget_environment(settings.password_variables)
    logs.set_up(Options(log_file=args.log_file, log_level=args.log_level))
    events = args.events or settings.events
    try:
        settings.records.mkdir(parents=True, exist_ok=True)
        reporter = Reporter(events)
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}") from None
    return Runner(
        accounts,
        lambda account: make_client(account, passwords[account.name], settings.records, reporter),
        reporter,
        settings.in_turn,
    ).run()


def _chosen(accounts: tuple[Account, ...], args: argparse.Namespace) -> list[Account]:
    known = [account.name for account in accounts]
    for name in args.account or []:
        if name not in known:
            raise CliError(f"--account {name}: expected one of {', '.join(known)}")
    chosen = [account for account in accounts if not args.account or account.name in args.account]
    return [replace(account, games=account.games if args.games is None else args.games) for account in chosen]


def options_of(account: Account, game: Game[Any, Any], **defaults: Value) -> Options:
    """Return the options of an account, over the defaults of the command and the user's file.

    Raises:
        CliError: a file or the rules do not exist. The message names file, line and key.
    """
    from yomi.engine.cli.flags import check, user_values
    from yomi.engine.levels import LevelSwitch

    options = Options.for_game(game.name)
    for name, value in {**user_values(game), **defaults, **account.options}.items():
        options.set(name, value)
    check(options, game, account.places)
    LevelSwitch(game, options, account.options)
    return options
