"""`yomi floodgate`: play shogi on floodgate and other servers of the CSA protocol."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.cli import servers
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.make import load_player
from yomi.engine.shogi.descriptor import GAME as SHOGI

if TYPE_CHECKING:
    from yomi.engine.servers.client import Client
    from yomi.engine.servers.passwords import Password
    from yomi.engine.servers.reporter import Reporter
    from yomi.engine.servers.settings import Account
    from yomi.engine.shogi.floodgate.yomi_seat import ShogiSeat

USAGE = "yomi floodgate FILE [options]"
EPILOG = """\
FILE, for example servers.toml (docs/SERVERS.md has all of it):

  [servers.floodgate]
  protocol = "csa"
  host = "wdoor.c.u-tokyo.ac.jp"
  port = 4081
  game_name = "floodgate-300-10F"

  [accounts.yomi]
  server = "floodgate"
  user = "yomi-test"
  password_file = "~/.yomi-floodgate"
  engine.net = "model.onnx"
  engine.ponder = true

examples:
  yomi floodgate servers.toml
  yomi floodgate servers.toml --account yomi --games 10 --events events.jsonl

Ctrl-C ends after the game in hand, a second one at once. A `command` in the place of `engine` lets another USI engine
play. The password's file holds it in its first line and has mode 0600.
"""


def add(parser: argparse.ArgumentParser) -> None:
    servers.add(parser)


def run(args: argparse.Namespace) -> int:
    return servers.run(args, "csa", make_client)


def make_client(account: Account, password: Password, records: Path, reporter: Reporter) -> Client:
    """Return the client of an account. Raises CliError if its options do not go together."""
    from yomi.engine.servers.seat import GaveUpError
    from yomi.engine.shogi.floodgate.client import CsaClient
    from yomi.engine.shogi.floodgate.yomi_seat import YomiShogiSeat

    options = servers.options_of(account, SHOGI)

    def open_seat() -> ShogiSeat:
        if account.command:
            from yomi.engine.shogi.floodgate.usi_seat import UsiSeat

            return UsiSeat(account)
        try:
            return YomiShogiSeat(load_player(SHOGI, options.copy()))
        except CliError as error:
            raise GaveUpError(f"{account.name}: {error}") from None

    return CsaClient(account, password, records, reporter, open_seat)
