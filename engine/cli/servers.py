"""`yomi cgos` and `yomi floodgate`: play for the accounts in a file, on CGOS and on servers of the CSA protocol."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import add_value, check, user_values
from yomi.engine.cli.output import say, set_up_logs
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.levels import LevelSwitch
from yomi.engine.options import OptionError, Options, Value
from yomi.engine.registry import GO, SHOGI

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.servers.client import AnyClient
    from yomi.engine.servers.runner import Reporter
    from yomi.engine.servers.settings import Account, Password

    MakeClient = Callable[[Account, Password, Path, Reporter], AnyClient]

EPILOG = """\
FILE, for example servers.toml (docs/SERVERS.md explains all keys):

  [servers.{server}]
  protocol = "{protocol}"
  host = "{host}"
  port = {port}
  {key}

  [accounts.yomi]
  server = "{server}"
  user = "yomi-test"
  password_file = "~/.yomi-{command}"
  engine.net = "{net}"
  engine.ponder = true

examples:
  yomi {command} servers.toml
  yomi {command} servers.toml --account yomi --games 10 --events events.jsonl

Ctrl-C ends after the current game, a second Ctrl-C at once. `command` instead of `engine` lets another {engine} engine
play. The first line of the password file is the password; its mode must be 0600.
"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="read servers and accounts from this TOML file")
    parser.add_argument("--account", action="append", metavar="NAME", help="play only this account; repeatable")
    add_value(parser, "--games", None, "N", "end after N games of each account", "never", low=1)
    parser.add_argument("--events", type=Path, metavar="FILE", help="append events to FILE, as lines of JSON")
    parser.add_argument("--log-file", metavar="FILE", help="append the log to this file")
    levels = ("debug", "info", "warning", "error")
    text = "log this level and above; debug: all lines of the protocol (default: info)"
    parser.add_argument("--log-level", choices=levels, default="info", help=text)


def _run(args: argparse.Namespace, protocol: str, make_client: MakeClient) -> int:
    from yomi.engine.servers.runner import Reporter, Runner
    from yomi.engine.servers.settings import PasswordError, forget_environment, read_settings

    settings = read_settings(args.file, protocol)
    accounts = _chosen(settings.accounts, args)
    try:
        passwords = {account.name: account.password() for account in accounts}
    except PasswordError as error:
        raise CliError(f"{args.file}: {error}") from None
    forget_environment(settings.password_variables)
    set_up_logs(Options(log_file=args.log_file, log_level=args.log_level))
    settings.records.mkdir(parents=True, exist_ok=True)
    reporter = Reporter(args.events or settings.events)
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


def account_options(account: Account, game: Game[Any, Any], **defaults: Value) -> Options:
    """Return the options of an account, over the defaults of the command and the user's file."""
    options = Options.for_game(game.name)
    for name, value in {**user_values(game), **defaults, **account.options}.items():
        options.set(name, value)
    check(options, game, account.places)
    LevelSwitch(game, options, account.options)
    return options


def make_cgos_client(account: Account, password: Password, records: Path, reporter: Reporter) -> AnyClient:
    from yomi.engine.go.cgos.client import CgosClient
    from yomi.engine.go.cgos.game import GtpSeat, YomiGoSeat

    options = account_options(account, GO, size=account.server.size, cleanup=True)

    def open_engine(account: Account) -> GtpSeat:
        GO.compile(say)  # the client checks moves
        return GtpSeat(account)

    open_seat = partial(_open_seat, account, GO, options, YomiGoSeat, open_engine)
    return CgosClient(account, password, records, reporter, open_seat)


def make_csa_client(account: Account, password: Password, records: Path, reporter: Reporter) -> AnyClient:
    from yomi.engine.shogi.floodgate.client import CsaClient
    from yomi.engine.shogi.floodgate.game import UsiSeat, YomiShogiSeat

    options = account_options(account, SHOGI)
    open_seat = partial(_open_seat, account, SHOGI, options, YomiShogiSeat, UsiSeat)
    return CsaClient(account, password, records, reporter, open_seat)


def _open_seat(
    account: Account,
    game: Game[Any, Any],
    options: Options,
    open_yomi: Callable[[Any], Any],
    open_engine: Callable[[Account], Any],
) -> Any:
    from yomi.engine.servers.game import GaveUpError

    if account.command:
        return open_engine(account)
    try:
        return open_yomi(game.load_player(options.copy(), say))
    except (EvaluatorError, OptionError) as error:
        raise GaveUpError(f"{account.name}: {error}") from None


def _command(name: str, protocol: str, make_client: MakeClient, **example: object) -> Command:
    text = EPILOG.format(command=name, protocol=protocol, **example)
    return Command(f"yomi {name} FILE [options]", text, _add, partial(_run, protocol=protocol, make_client=make_client))


CGOS = _command(
    "cgos", "cgos", make_cgos_client,
    server="cgos-9", host="yss-aya.com", port=6867, key="size = 9", net="b18.bin.gz", engine="GTP",
)  # fmt: skip
FLOODGATE = _command(
    "floodgate", "csa", make_csa_client,
    server="floodgate", host="wdoor.c.u-tokyo.ac.jp", port=4081, key='game_name = "floodgate-300-10F"',
    net="model.onnx", engine="USI",
)  # fmt: skip
