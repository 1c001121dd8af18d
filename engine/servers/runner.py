"""Runs the clients of all accounts, at once or in turn. Reports go to the terminal, the log and the event file."""

import contextlib
import itertools
import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from yomi.engine.servers.client import AnyClient
from yomi.engine.servers.game import GaveUpError
from yomi.engine.servers.settings import Account
from yomi.errors import printable

log = logging.getLogger("yomi.servers")

JOIN = 0.2
FAILED, INTERRUPTED = 1, 130
HANGUP = getattr(signal, "SIGHUP", None)  # the signal of a closed terminal; None on Windows


class Reporter:
    """Reports events of all clients. Thread-safe.

    If the event file or the terminal cannot be written, the log reports it once, and games continue without them.
    """

    def __init__(self, events: Path | None = None, terminal: IO[str] | None = None) -> None:
        """Write events to a file as lines of JSON, and texts for people to `terminal`, by default stderr."""
        self._terminal: IO[str] | None = sys.stderr if terminal is None else terminal
        self._has_status = self._terminal is not None and self._terminal.isatty()
        self._events = None if events is None else events.open("a", encoding="utf-8", errors="backslashreplace")
        self._status: dict[str, str] = {}
        self._lock = threading.Lock()

    def event(self, account: str, kind: str, text: str = "", **data: object) -> None:
        """Report an event: `kind` (a word) and `data` for programs, `text` for people (empty if they need none)."""
        if text:
            log.info("%s: %s", account, text)
        with self._lock:
            if text:
                self._print(f"{time.strftime('%H:%M:%S')} {printable(f'{account}: {text}')}\n")
            if self._events is not None:
                fields = {"time": round(time.time(), 3), "account": account, "event": kind, **data}
                try:
                    self._events.write(json.dumps(fields, ensure_ascii=False) + "\n")
                    self._events.flush()
                except OSError as error:
                    log.error(
                        "cannot write events to %s: %s; games continue without", self._events.name, error.strerror
                    )
                    self._close_events()

    def status(self, account: str, text: str) -> None:
        if self._has_status:
            with self._lock:
                self._status[account] = text
                self._print("")

    def close(self) -> None:
        with self._lock:
            if self._has_status:
                self._write("\n")
            self._close_events()

    def _close_events(self) -> None:
        if self._events is not None:
            with contextlib.suppress(OSError):  # the buffer may still hold what a full disk refused
                self._events.close()
            self._events = None

    def _print(self, line: str) -> None:
        if self._has_status:
            width = shutil.get_terminal_size().columns - 1
            shown = " | ".join(f"{name}: {text}" for name, text in self._status.items())
            line = f"\r\x1b[K{line}{printable(shown)[:width]}"
        self._write(line)

    def _write(self, text: str) -> None:
        if self._terminal is None:
            return
        try:
            self._terminal.write(text)
            self._terminal.flush()
        except OSError as error:
            self._terminal, self._has_status = None, False
            log.error("cannot write to the terminal: %s; games continue without", error.strerror)


class Runner:
    def __init__(
        self,
        accounts: Sequence[Account],
        make_client: Callable[[Account], AnyClient],
        reporter: Reporter,
        in_turn: bool,
    ) -> None:
        """Prepare to play. `in_turn`: play one account after the other, again and again; otherwise all at once."""
        self._accounts = accounts
        self._make_client = make_client
        self._reporter = reporter
        self._in_turn = in_turn
        self._clients: list[AnyClient] = []
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

    def _run_in_turn(self, first: list[AnyClient]) -> None:
        limited = all(account.games for account in self._accounts)
        later = () if limited else itertools.cycle(self._accounts)
        for client in itertools.chain(first, map(self._make_client, later)):
            self._run_clients([client])
            if self._interrupts or self._has_failed:
                return

    def _run_clients(self, clients: list[AnyClient]) -> None:
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

    def _run_client(self, client: AnyClient) -> None:
        name = client.account.name
        try:
            client.run(client.account.games or int(self._in_turn))
        except GaveUpError as error:
            self._has_failed = True
            self._reporter.event(name, "error", f"error: {error}", why=str(error))
        except Exception as error:  # a bug in yomi: the other accounts continue
            self._has_failed = True
            log.exception("%s: internal error", name)
            why = client.safe(f"{type(error).__name__}: {error}")
            self._reporter.event(name, "error", f"internal error: {why}", why=why)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Ctrl-C or SIGHUP ends after the current game. The second one or SIGTERM ends at once. The third ends the
        # process, even if engines still work.
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
