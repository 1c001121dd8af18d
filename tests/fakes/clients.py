"""Clients of servers in threads of their own, for tests."""

import io
import json
import random
import threading
from pathlib import Path

from tests.fakes.seats import FakeGoSeat, FakeShogiSeat
from yomi.engine.go.cgos.client import CgosClient
from yomi.engine.servers.client import Client
from yomi.engine.servers.runner import Reporter
from yomi.engine.servers.settings import CGOS, CSA, Account, Password, Server
from yomi.engine.shogi.floodgate.client import CsaClient


class Running:
    """A client that plays until its games are played.

    Attributes:
        error: what it ended with.
    """

    def __init__(self, folder: Path, port: int, seat: FakeGoSeat | FakeShogiSeat, games: int = 1, **server) -> None:
        is_go = isinstance(seat, FakeGoSeat)
        self.folder = folder
        self.terminal = io.StringIO()
        self.reporter = Reporter(folder / "events", self.terminal)
        self.error: BaseException | None = None
        place = Server("home", CGOS if is_go else CSA, "127.0.0.1", port, **server)
        account = Account("one", place, "yomi-1", "password_env", "NONE")
        make = CgosClient if is_go else CsaClient
        self.client: Client = make(
            account,
            Password("secret1"),
            folder,
            self.reporter,
            lambda: seat,  # type: ignore[arg-type, return-value]
            random.Random(1),
        )
        self._thread = threading.Thread(target=self._run, args=(games,), daemon=True)
        self._thread.start()

    def _run(self, games: int) -> None:
        try:
            self.client.run(games)
        except BaseException as error:
            self.error = error

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def join(self, seconds: float = 60.0) -> None:
        """Wait for its end; an error that it did not expect fails the test."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), self.terminal.getvalue()
        self.reporter.close()
        if self.error is not None:
            raise self.error

    def events(self, kind: str) -> list[dict[str, object]]:
        found = [json.loads(line) for line in (self.folder / "events").read_text().splitlines()]
        return [event for event in found if event["event"] == kind]

    def records(self) -> list[str]:
        """Return the text of all records, in order of their names."""
        return [path.read_text() for path in sorted((self.folder / "one").iterdir())]
