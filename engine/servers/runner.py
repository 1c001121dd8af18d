"""Runs the clients of all accounts, at once or in turn, and ends them on signals."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType

from yomi.engine.servers.client import Client
from yomi.engine.servers.reporter import Reporter
from yomi.engine.servers.seat import GaveUpError
from yomi.engine.servers.settings import Account

log = logging.getLogger("yomi.servers")

JOIN = 0.2
FAILED, INTERRUPTED = 1, 130
HANGUP = getattr(signal, "SIGHUP", None)
"""The signal of a closed terminal; None on Windows."""


class Runner:
    def __init__(
        self, accounts: Sequence[Account], make_client: Callable[[Account], Client], reporter: Reporter, in_turn: bool
    ) -> None:
        """Prepare to play, `in_turn` one account after the other, repeatedly, otherwise all at once.

        `run` calls `make_client` for all accounts before the first game.
        """
        self._accounts = accounts
        self._make_client = make_client
        self._reporter = reporter
        self._in_turn = in_turn
        self._clients: list[Client] = []
        self._interrupts = 0
        self._has_failed = False

    def run(self) -> int:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:  # as nohup has it
            numbers.append(HANGUP)
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            # All clients are created before the first game, so that mistakes of any account show at once.
            clients = [self._make_client(account) for account in self._accounts]
            if self._in_turn:
                self._run_in_turn(clients)
            else:
                self._run_clients(clients)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._reporter.close()
        return FAILED if self._has_failed else 0

    def _run_in_turn(self, first: list[Client]) -> None:
        """Play one client after the other. `first` are the clients of the first round."""
        limited = all(account.games for account in self._accounts)
        later = () if limited else itertools.cycle(self._accounts)
        for client in itertools.chain(first, map(self._make_client, later)):
            self._run_clients([client])
            if self._interrupts or self._has_failed:
                return

    def _run_clients(self, clients: list[Client]) -> None:
        self._clients = clients
        if self._interrupts:
            return  # the signal came while the clients were created, before any game
        threads = [
            threading.Thread(target=self._run_client, args=(client,), name=client.account.name, daemon=True)
            for client in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(JOIN)  # signals are handled meanwhile

    def _run_client(self, client: Client) -> None:
        name = client.account.name
        try:
            client.run(client.account.games or int(self._in_turn))
        except GaveUpError as error:
            self._has_failed = True
            self._reporter.event(name, "error", f"error: {error}", why=str(error))
        except Exception as error:  # a fault of ours: the other accounts go on
            self._has_failed = True
            log.exception("%s: internal error", name)
            why = client.safe(f"{type(error).__name__}: {error}")
            self._reporter.event(name, "error", f"internal error: {why}", why=why)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """End after the current game on the first Ctrl-C or SIGHUP; at once on the second or on SIGTERM.

        The third ends the process, even if engines still work.
        """
        if number == HANGUP and self._interrupts:
            return  # a closing terminal sends several
        self._interrupts += 1
        if self._interrupts > 2:
            os._exit(INTERRUPTED)
        for client in self._clients:
            if self._interrupts == 2 or number == signal.SIGTERM:
                client.leave()
            else:
                client.finish()
