"""Several accounts in one process, and Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import threading
import time

import pytest

from engine.servers.reporter import Reporter
from engine.servers.runner import FAILED, Runner
from engine.servers.seat import GaveUpError
from engine.servers.settings import CGOS, Account, Server


class FakeClient:
    """Plays until it is told to end, or its games, which take no time."""

    def __init__(self, account: Account, calls: list[str], error: Exception | None = None) -> None:
        self.account, self.calls, self.error = account, calls, error
        self.told = threading.Event()

    def run(self, games: int) -> None:
        self.calls.append(f"{self.account.name} {games}")
        if self.error is not None:
            raise self.error
        if not games:
            self.told.wait(20.0)

    def finish(self) -> None:
        self.calls.append(f"{self.account.name} finish")

    def leave(self) -> None:
        self.calls.append(f"{self.account.name} leave")
        self.told.set()

    def safe(self, text: str) -> str:
        return text.replace("geheim", "****")


def accounts(**games: int) -> list[Account]:
    server = Server("home", CGOS, "localhost", 1)
    return [Account(name, server, name, "", "", games=count) for name, count in games.items()]


def run(chosen: list[Account], in_turn: bool = False, **errors: Exception) -> tuple[int, list[str], str]:
    calls: list[str] = []
    terminal = io.StringIO()
    runner = Runner(
        chosen,
        lambda account: FakeClient(account, calls, errors.get(account.name)),  # type: ignore[arg-type, return-value]
        Reporter(None, terminal),
        in_turn,
    )
    return runner.run(), calls, terminal.getvalue()


def test_all_at_once() -> None:
    status, calls, _ = run(accounts(one=3, two=4))
    assert (status, sorted(calls)) == (0, ["one 3", "two 4"])


def test_in_turn() -> None:
    assert run(accounts(one=3, two=1), in_turn=True)[:2] == (0, ["one 3", "two 1"])


@pytest.mark.parametrize("signals", [[signal.SIGINT, signal.SIGINT], [signal.SIGTERM]])
def test_signals(signals: list[int]) -> None:
    def send() -> None:
        for number in signals:
            time.sleep(0.2)
            os.kill(os.getpid(), number)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    status, calls, _ = run(accounts(one=0, two=0))
    thread.join()
    assert status == 0
    words = ["leave"] if len(signals) == 1 else ["finish", "leave"]
    assert sorted(calls[2:]) == [f"{name} {word}" for name in ("one", "two") for word in words]
    assert signal.getsignal(signal.SIGINT) is before


def test_one_account_fails_and_the_others_go_on() -> None:
    status, calls, text = run(accounts(one=3, two=4), one=GaveUpError("one: refused"), two=KeyError("geheim"))
    assert status == FAILED
    assert len(calls) == 2
    assert "one: error: one: refused" in text
    assert "two: internal error: KeyError: '****'" in text
