"""`yomi gtp`, `usi` and `analysis`: the engine for graphical interfaces. `yomi cgos` and `floodgate`: on servers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import (
    add_old_names,
    add_options,
    add_value,
    check,
    check_limited,
    collect,
    named_options,
    user_values,
    visits_without_limit,
)
from yomi.engine.cli.output import say, set_up_logs
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.levels import LevelSwitch
from yomi.engine.options import ANALYSIS_DEFAULTS, NOT_FOR_ANALYSIS, OptionError, Options, Value
from yomi.errors import LineError, reraised

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.go.analysis.fields import Settings
    from yomi.engine.go.players.analyst import GoAnalyst
    from yomi.engine.servers.client import AnyClient
    from yomi.engine.servers.runner import Reporter
    from yomi.engine.servers.settings import Account, Password

    MakeClient = Callable[[Account, Password, Path, Reporter], AnyClient]

GTP_EPILOG = """\
examples:
  yomi gtp --net b6c96.bin.gz --seconds 5
  yomi gtp --net b18.bin.gz --visits 800 --ponder --rules chinese
  yomi gtp --level 3                                   at a level of strength, from 1 to 20
  yomi gtp --evaluator rollouts --memory 256M          without a network
  yomi gtp --config yomi.toml --log-file yomi.log --log-level debug

In GoGui, Sabaki, Lizzie or q5go enter such a line as the engine's command. To change options while the engine runs use
kata-set-param visits 400, or GoGui's analyze command `Parameters`.
"""
USI_EPILOG = """\
examples:
  yomi usi
  yomi usi --evaluator material                        without a network: material, exchanges and the safety of kings
  yomi usi --net model.onnx
  yomi usi --net model.onnx --playouts 800 --multipv 3
  yomi usi --level 3                                   at a level of strength, from 1 to 20; also the option Level
  yomi usi --config yomi.toml --log-file yomi.log --log-level debug

In ShogiGUI or ShogiHome register the program `yomi-usi`, which runs `yomi usi`. Set the network (DNN_Model) and
everything else in the dialog of options.
"""
ANALYSIS_EPILOG = """\
examples:
  yomi analysis --net b18.bin.gz
  yomi analysis --net b18.bin.gz --visits 1000 --perspective side-to-move < queries.jsonl > answers.jsonl

In KaTrain enter such a line under General Settings as the override for the engine's command. On Linux and macOS write
exec before it (exec /path/to/yomi analysis), because KaTrain otherwise hangs when it restarts the engine. Clients may
add KataGo's flags -model, -human-model, -override-config, -analysis-threads and -quit-without-waiting. A query without
maxVisits gets 500 visits, unless --visits, --playouts or --seconds are set. The protocol: yomi help reference/analysis.
"""

DEFAULT_VISITS = 500
MAX_THREADS = 256
PERSPECTIVES = {"black": "BLACK", "white": "WHITE", "side-to-move": "SIDETOMOVE"}
# Keys of -override-config that clients set and that change no analysis
IGNORED = frozenset({"homeDataDir", "logDir", "logFile", "logToStderr", "logAllRequests", "logAllResponses"})


# A game is imported by its own command only: an interface waits for the first answer.
def _add_gtp(parser: argparse.ArgumentParser) -> None:
    from yomi.engine.go.descriptor import GAME as GO

    add_options(parser, GO)


def _run_gtp(args: argparse.Namespace) -> int:
    from yomi.engine.go.descriptor import GAME as GO
    from yomi.engine.go.gtp.session import serve

    options = collect(args, GO)
    level = LevelSwitch(GO, options, named_options(args, GO))
    set_up_logs(options)
    return serve(options, lambda: GO.load_player(options, say), level)


def _add_usi(parser: argparse.ArgumentParser) -> None:
    from yomi.engine.shogi.descriptor import GAME as SHOGI

    add_options(parser, SHOGI)


def _run_usi(args: argparse.Namespace) -> int:
    from yomi.engine.shogi.descriptor import GAME as SHOGI
    from yomi.engine.shogi.usi.session import serve

    try:
        options = collect(args, SHOGI)
        level = LevelSwitch(SHOGI, options, named_options(args, SHOGI))
        if options.log_file is not None:
            set_up_logs(options)
    except LineError as error:
        print(f"info string Error! {error}", flush=True)  # a graphical interface shows no stderr
        raise
    return serve(options, lambda say: SHOGI.load_player(options, say), level)


def _add_analysis(parser: argparse.ArgumentParser) -> None:
    from yomi.engine.go.descriptor import GAME as GO

    text = "search N positions at the same time (default: 1 on a processor, 4 on a GPU)"
    at_once = parser.add_argument("--at-once", type=int, metavar="N", help=text)
    add_old_names(parser, at_once, "--threads", "-analysis-threads")  # the last is KataGo's
    text = "set the default point of view of values (default: black)"
    parser.add_argument("--perspective", choices=list(PERSPECTIVES), default="black", help=text)
    quit_flags = ("--quit-without-waiting", "-quit-without-waiting")
    parser.add_argument(*quit_flags, action="store_true", help="end with the input, even if queries are open")
    override_flags = ("--override-config", "-override-config")
    text = "change settings by KataGo's names, as in overrideSettings"
    parser.add_argument(*override_flags, default="", metavar="KEY=VALUE,...", help=text)
    parser.add_argument("-model", dest="net", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("-human-model", dest="human_net", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    defaults = {"visits": DEFAULT_VISITS, **ANALYSIS_DEFAULTS}
    add_options(parser, GO, leave_out=(*NOT_FOR_ANALYSIS, "komi"), defaults=defaults)


def _run_analysis(args: argparse.Namespace) -> int:
    from yomi.engine.go.analysis.session import serve
    from yomi.engine.go.descriptor import GAME as GO

    options = collect(args, GO, **ANALYSIS_DEFAULTS, **visits_without_limit(args, DEFAULT_VISITS, GO))
    set_up_logs(options)
    pairs = {"reportAnalysisWinratesAs": PERSPECTIVES[args.perspective], **read_pairs(args.override_config)}
    count = take_threads(pairs, options, args.at_once)
    settings = override_settings(options, pairs)
    check_limited(settings.options, GO)

    def make() -> Sequence[GoAnalyst]:
        from yomi.engine.go.players.analyst import make_analysts

        GO.prepare(settings.options, say)
        return make_analysts(settings.options, count)

    return serve(settings, make, quit_without_waiting=args.quit_without_waiting)


def read_pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = part.partition("=")
        if not sign or not key.strip():
            raise CliError(f"--override-config {part}: expected KEY=VALUE")
        pairs[key.strip()] = value.strip()
    return pairs


def take_threads(pairs: dict[str, str], options: Options, count: int | None) -> int | None:
    """Remove KataGo's numbers of threads from `pairs`. Return the number of positions to search at the same time.

    `numSearchThreads` sets the option workers. `count` is the value of --at-once, which has precedence.
    """
    for key in ("numSearchThreads", "numSearchThreadsPerAnalysisThread"):
        if key in pairs:
            options.set("workers", _at_least_one(key, pairs.pop(key)))
    if "numAnalysisThreads" in pairs:
        threads = _at_least_one("numAnalysisThreads", pairs.pop("numAnalysisThreads"))
        count = threads if count is None else count
    return None if count is None else _at_least_one("--at-once", str(count))


def _at_least_one(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_THREADS):
        raise CliError(f"{name} {text}: expected a number from 1 to {MAX_THREADS}")
    return int(text[:9])


def override_settings(options: Options, pairs: Mapping[str, str]) -> Settings:
    """Return the initial settings of queries: the options, changed by `pairs`. Unknown keys are reported on stderr."""
    from yomi.engine.go.analysis.fields import FieldError, Settings, override

    with reraised(FieldError, CliError, "--override-config: "):
        settings, unknown = override(Settings(options), pairs)
    for key in sorted(set(unknown) - IGNORED):
        print(f"yomi: warning: --override-config {key}: unknown setting, ignored", file=sys.stderr)
    return settings


GTP = Command("yomi gtp [options]", GTP_EPILOG, _add_gtp, _run_gtp)
USI = Command("yomi usi [options]", USI_EPILOG, _add_usi, _run_usi)
ANALYSIS = Command("yomi analysis [options]", ANALYSIS_EPILOG, _add_analysis, _run_analysis)


# -- servers ----------------------------------------------------------------------------------------------------------

SERVER_EPILOG = """\
FILE, for example servers.toml (yomi help servers explains all keys):

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


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="read servers and accounts from this TOML file")
    parser.add_argument("--account", action="append", metavar="NAME", help="play only this account; repeatable")
    add_value(parser, "--games", None, "N", "end after N games of each account", "never", low=1)
    parser.add_argument("--events", type=Path, metavar="FILE", help="append events to FILE, as lines of JSON")
    parser.add_argument("--log-file", metavar="FILE", help="append the log to this file")
    levels = ("debug", "info", "warning", "error")
    text = "log this level and above; debug: all lines of the protocol (default: info)"
    parser.add_argument("--log-level", choices=levels, default="info", help=text)


def _run_server(args: argparse.Namespace, protocol: str, make_client: MakeClient) -> int:
    from yomi.engine.servers.runner import Reporter, Runner
    from yomi.engine.servers.settings import PasswordError, forget_environment, read_settings

    settings = read_settings(args.file, protocol)
    accounts = _chosen(settings.accounts, args)
    with reraised(PasswordError, CliError, f"{args.file}: "):
        passwords = {account.name: account.password() for account in accounts}
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
    """Return an account's options. Priority: the account, the user's file, then the command's `defaults`."""
    options = Options.for_game(game.name)
    for name, value in {**defaults, **user_values(game), **account.options}.items():
        options.set(name, value)
    if game.name == "go":
        options.set("size", account.server.size)
    check(options, game, account.places)
    LevelSwitch(game, options, account.options)
    return options


def make_cgos_client(account: Account, password: Password, records: Path, reporter: Reporter) -> AnyClient:
    from yomi.engine.go.cgos.client import CgosClient
    from yomi.engine.go.cgos.game import GtpSeat, YomiGoSeat
    from yomi.engine.go.descriptor import GAME as GO

    options = account_options(account, GO, cleanup=True)

    def open_engine(account: Account) -> GtpSeat:
        GO.compile(say)  # the client checks moves
        return GtpSeat(account)

    open_seat = partial(_open_seat, account, GO, options, YomiGoSeat, open_engine)
    return CgosClient(account, password, records, reporter, open_seat)


def make_csa_client(account: Account, password: Password, records: Path, reporter: Reporter) -> AnyClient:
    from yomi.engine.shogi.descriptor import GAME as SHOGI
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
    from yomi.engine.evaluators.base import EvaluatorError
    from yomi.engine.servers.game import GaveUpError

    if account.command:
        return open_engine(account)
    with reraised((EvaluatorError, OptionError), GaveUpError, f"{account.name}: "):
        return open_yomi(game.load_player(options.copy(), say))


def _command(name: str, protocol: str, make_client: MakeClient, **example: object) -> Command:
    text = SERVER_EPILOG.format(command=name, protocol=protocol, **example)
    return Command(
        f"yomi {name} FILE [options]",
        text,
        _add_server,
        partial(_run_server, protocol=protocol, make_client=make_client),
    )


CGOS = _command(
    "cgos", "cgos", make_cgos_client,
    server="cgos-9", host="yss-aya.com", port=6867, key="size = 9", net="b18.bin.gz", engine="GTP",
)  # fmt: skip
FLOODGATE = _command(
    "floodgate", "csa", make_csa_client,
    server="floodgate", host="wdoor.c.u-tokyo.ac.jp", port=4081, key='game_name = "floodgate-300-10F"',
    net="model.onnx", engine="USI",
)  # fmt: skip
