"""`yomi cgos`: play Go on CGOS."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.cli import logs, servers
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.make import load_player
from yomi.engine.go.descriptor import GAME as GO

if TYPE_CHECKING:
    from yomi.engine.go.cgos.yomi_seat import GoSeat
    from yomi.engine.servers.client import Client
    from yomi.engine.servers.passwords import Password
    from yomi.engine.servers.reporter import Reporter
    from yomi.engine.servers.settings import Account

USAGE = "yomi cgos FILE [options]"
EPILOG = """\
FILE, for example servers.toml (docs/SERVERS.md has all of it):

  [servers.cgos-9]
  protocol = "cgos"
  host = "yss-aya.com"
  port = 6867
  size = 9

  [accounts.yomi]
  server = "cgos-9"
  user = "yomi-test"
  password_file = "~/.yomi-cgos"
  engine.net = "b18.bin.gz"
  engine.ponder = true

examples:
  yomi cgos servers.toml
  yomi cgos servers.toml --account yomi --games 10 --events events.jsonl

Ctrl-C ends after the game in hand, a second one at once. A `command` in the place of `engine` lets another GTP engine
play. The password's file holds it in its first line and has mode 0600.
"""


def add(parser: argparse.ArgumentParser) -> None:
    servers.add(parser)


def run(args: argparse.Namespace) -> int:
    return servers.run(args, "cgos", make_client)


def make_client(account: Account, password: Password, records: Path, reporter: Reporter) -> Client:
    """Return the client of an account. Raises CliError if its options do not go together."""
    from yomi.engine.go.cgos.client import CgosClient
    from yomi.engine.go.cgos.yomi_seat import YomiGoSeat
    from yomi.engine.servers.seat import GaveUpError

    options = servers.options_of(account, GO, size=account.server.size, cleanup=True)

    def open_seat() -> GoSeat:
        if account.command:
            from yomi.engine.go.cgos.gtp_seat import GtpSeat

            GO.compile(logs.say)  # the client checks moves
            return GtpSeat(account)
        try:
            return YomiGoSeat(load_player(GO, options.copy()))
        except CliError as error:
            raise GaveUpError(f"{account.name}: {error}") from None

    return CgosClient(account, password, records, reporter, open_seat)
