"""Floodgate in a time of its own: hours pass at once, and everything happens in the thread of the test."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.fakes.game_servers import CsaServer
from yomi.engine.servers import client
from yomi.engine.servers.connection import ConnectionLostError, Done, Line
from yomi.engine.shogi.floodgate import client as csa_client
from yomi.engine.shogi.floodgate import game as csa_game

ROUND = 1800.0
"""Seconds between pairings, which are at :00 and :30."""
LATENCY = 0.05
"""Seconds that a line takes from the server."""
DAY = 86_400.0


class Link:
    """The client's end of a connection."""

    dropped_lines = 0

    def __init__(self, server: Floodgate) -> None:
        self.server = server
        self.waiting: list[Line] = []
        self.is_lost = False
        """The server has closed it."""
        self.is_dead = False
        """Nothing gets through any more, and nobody says so."""
        self.is_closed = False

    def send(self, text: str) -> None:
        if not self.is_dead and not self.is_lost:
            self.server.hear(self, text)

    def read(self) -> list[Line]:
        if self.is_lost:
            raise ConnectionLostError("the server has closed the connection")
        lines, self.waiting = self.waiting, []
        return lines

    def close(self) -> None:
        self.is_closed = True


class Floodgate(CsaServer):
    """Pairs whoever waits at :00 and :30; `install` puts its clock in the place of the client's.

    Attributes:
        now: seconds since :00.
        paired: when games were begun.
        refused: connections that nobody accepted.
        heard: (time, line) of all that came.
    """

    def __init__(self, now: float, plies: int) -> None:
        super().__init__(games=0, plies=plies)
        self.now = now
        self.paired: list[float] = []
        self.refused = 0
        self.heard: list[tuple[float, str]] = []
        self.newest: Link | None = None
        self._is_down = False
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.at(ROUND * (now // ROUND + 1), self._pair)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have a client live in this server's time."""
        clock = SimpleNamespace(monotonic=lambda: self.now)
        for module in (client, csa_client):
            monkeypatch.setattr(module, "time", clock)
        clock.strftime = csa_game.time.strftime
        monkeypatch.setattr(csa_game, "time", clock)
        monkeypatch.setattr(client, "Connection", SimpleNamespace(open=self.open))
        monkeypatch.setattr(client, "Mailbox", lambda: InstantMailbox(self))
        monkeypatch.setattr(client, "Worker", InstantWorker)

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Have something happen."""
        heapq.heappush(self._events, (when, next(self._numbers), call))

    def pass_time(self, until: float, link: Link | None) -> None:
        """Let time pass until then, or until the link has something to read."""
        assert until < 2 * DAY, "the client waits for nothing"
        while self._events and self._events[0][0] <= until and not (link and (link.waiting or link.is_lost)):
            self.now, _, call = heapq.heappop(self._events)
            call()
        if not (link and (link.waiting or link.is_lost)):
            self.now = until

    # -- the network -----------------------------------------------------------------------------------------------

    def open(self, host: str, port: int) -> Link:
        if self._is_down:
            self.refused += 1
            raise ConnectionLostError("cannot connect: connection refused")
        self.newest = Link(self)
        return self.newest

    def send(self, link, *lines: str) -> None:
        def arrive() -> None:
            if not link.is_dead:
                link.waiting += [Line(line, self.now) for line in lines]

        self.at(self.now + LATENCY, arrive)

    def hear(self, link: Link, line: str) -> None:
        self.heard.append((self.now, line))
        if self.take(link, line):  # type: ignore[arg-type]
            self.at(self.now + 2 * LATENCY, lambda: setattr(link, "is_lost", True))

    def restart(self, seconds: float) -> None:
        """Close the connection and be away for so long."""
        self._is_down = True
        if self.newest is not None:
            self.newest.is_lost = True
        self.link = None
        self.at(self.now + seconds, lambda: setattr(self, "_is_down", False))

    def fall_silent(self) -> None:
        """Let nothing through on the connection any more, as when a router has forgotten it."""
        assert self.newest is not None
        self.newest.is_dead = True

    def _pair(self) -> None:
        self.at(self.now + ROUND, self._pair)
        link = self.newest
        if link is not None and link is self.link and not (link.is_lost or link.is_closed or self.is_running):
            self.paired.append(self.now)
            self.games += 1
            self._propose(link)  # type: ignore[arg-type]


class InstantMailbox:
    """A mailbox that waits in the server's time."""

    def __init__(self, server: Floodgate) -> None:
        self._server = server
        self._items: list[object] = []

    def post(self, item: object) -> None:
        self._items.append(item)

    def take(self) -> object | None:
        return self._items.pop(0) if self._items else None

    def wait(self, link: Link | None, timeout: float) -> bool:
        if not self._items:
            self._server.pass_time(self._server.now + max(timeout, 0.0), link)
        return link is not None and bool(link.waiting or link.is_lost)

    def close(self) -> None:
        pass


class InstantWorker:
    """Does all work when it is submitted."""

    def __init__(self, post: Callable[[object], None], name: str) -> None:
        self._post = post

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        try:
            done = Done(tag, call())
        except Exception as error:
            done = Done(tag, error=error)
        self._post(done)

    def close(self, timeout: float) -> bool:
        return True
