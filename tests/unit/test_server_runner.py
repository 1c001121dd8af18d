"""Several accounts in one process, and Ctrl-C."""

import io
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from tests.looping import looped
from yomi.engine.cli.parser import CliError
from yomi.engine.servers.client import Client
from yomi.engine.servers.game import GaveUpError
from yomi.engine.servers.runner import FAILED, Reporter, Runner
from yomi.engine.servers.settings import CGOS, Account, Server


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
            self.told.wait(60.0)

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


def run(
    chosen: list[Account], in_turn: bool = False, calls: list[str] | None = None, **errors: Exception
) -> tuple[int, list[str], str]:
    calls = [] if calls is None else calls
    terminal = io.StringIO()

    def make(account: Account) -> Client:
        return FakeClient(account, calls, errors.get(account.name))  # type: ignore[return-value]

    return Runner(chosen, make, Reporter(None, terminal), in_turn).run(), calls, terminal.getvalue()


def test_all_at_once() -> None:
    status, calls, _ = run(accounts(one=3, two=4))
    assert (status, sorted(calls)) == (0, ["one 3", "two 4"])


def test_in_turn() -> None:
    assert run(accounts(one=3, two=1), in_turn=True)[:2] == (0, ["one 3", "two 1"])


HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)  # Windows has none


@pytest.fixture
def terminal() -> Iterator[None]:
    """Whoever runs the tests, as by `nohup`, may have them ignore that a terminal goes."""
    before = signal.signal(HANGUP, signal.SIG_DFL)
    yield
    signal.signal(HANGUP, before)


@pytest.mark.linux  # os.kill of Windows ends the process
@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("signals", "words"),
    [
        ([signal.SIGINT, signal.SIGINT], ["finish", "leave"]),
        ([signal.SIGTERM], ["leave"]),
        ([HANGUP, HANGUP, signal.SIGTERM], ["finish", "leave"]),
        ([signal.SIGINT, HANGUP, signal.SIGINT], ["finish", "leave"]),
    ],
)
def test_signals(signals: list[int], words: list[str]) -> None:
    calls: list[str] = []

    def send() -> None:
        """Send the first when all play, and the others when it was taken: equal ones that wait become one."""
        end = time.monotonic() + 60
        for i, number in enumerate(signals):
            while len(calls) < (4 if i else 2):
                if time.monotonic() > end:
                    return  # when `run` has ended, a signal would end the tests
                time.sleep(0.01)
            os.kill(os.getpid(), number)
            time.sleep(0.1)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    status, *_ = run(accounts(one=0, two=0), calls=calls)
    thread.join()
    assert status == 0
    assert sorted(calls[2:]) == [f"{name} {word}" for name in ("one", "two") for word in words]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.linux
def test_a_terminal_that_has_gone_is_nothing_to_nohup() -> None:
    seen: list[object] = []

    def make(account: Account) -> Client:
        seen.append(signal.getsignal(signal.SIGHUP))
        return FakeClient(account, [])  # type: ignore[return-value]

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert Runner(accounts(one=3), make, Reporter(None, io.StringIO()), in_turn=False).run() == 0
        assert [*seen, signal.getsignal(signal.SIGHUP)] == [signal.SIG_IGN, signal.SIG_IGN]
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.linux  # os.kill of Windows ends the process
@looped("number", [signal.SIGINT, signal.SIGTERM])
@looped("in_turn", [False, True])
@looped("last", ["one", "two"])
def test_a_signal_while_clients_are_made(number: int, in_turn: bool, last: str) -> None:
    """Nobody is there to be told yet; nobody begins to play."""
    calls: list[str] = []

    def make(account: Account) -> Client:
        if account.name == last:
            os.kill(os.getpid(), number)
        return FakeClient(account, calls)  # type: ignore[return-value]

    assert Runner(accounts(one=3, two=4), make, Reporter(None, io.StringIO()), in_turn).run() == 0
    assert calls == []


@pytest.mark.linux
def test_a_signal_between_two_rounds() -> None:
    calls: list[str] = []
    made: list[str] = []

    def make(account: Account) -> Client:
        made.append(account.name)
        if len(made) == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return FakeClient(account, calls)  # type: ignore[return-value]

    assert Runner(accounts(one=0, two=3), make, Reporter(None, io.StringIO()), in_turn=True).run() == 0
    assert made == ["one", "two", "one", "two"]
    assert [call for call in calls if not call.endswith("leave")] == ["one 1", "two 3", "one 1"]


@pytest.mark.parametrize("in_turn", [False, True])
def test_mistakes_of_all_accounts_come_to_light_before_anyone_plays(in_turn: bool) -> None:
    calls: list[str] = []

    def make(account: Account) -> Client:
        if account.name == "two":
            raise CliError("two")
        return FakeClient(account, calls)  # type: ignore[return-value]

    with pytest.raises(CliError):
        Runner(accounts(one=3, two=4), make, Reporter(None, io.StringIO()), in_turn).run()
    assert calls == []


def test_one_account_fails_and_the_others_go_on() -> None:
    status, calls, text = run(accounts(one=3, two=4), one=GaveUpError("one: refused"), two=KeyError("geheim"))
    assert status == FAILED
    assert len(calls) == 2
    assert "one: error: one: refused" in text
    assert "two: internal error: KeyError: '****'" in text
