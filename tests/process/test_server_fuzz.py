"""Hostile servers, line by line, for both kinds of clients.

A line may be played, ignored as noise, or end the session. It never is an internal error or the engine's fault,
clocks and deadlines stay finite, and each record that was written can be read.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer
from tests.process.fuzzing import NUMBERS, mutate
from yomi.engine.go.cgos.client import CgosClient
from yomi.engine.go.cgos.game import YomiGoSeat
from yomi.engine.go.record_files import load_record
from yomi.engine.servers.client import Client, SessionOver
from yomi.engine.servers.connection import ConnectionLostError, Done, Line
from yomi.engine.servers.runner import Reporter
from yomi.engine.servers.settings import CGOS, CSA, Account, Password, Server
from yomi.engine.shogi.floodgate.client import CsaClient
from yomi.engine.shogi.floodgate.game import YomiShogiSeat
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_csa
from yomi.engine.shogi.placement import format_sfen
from yomi.engine.shogi.records.files import load_records

USER = "yomi-1"
VERTICES = ["a1", "e5", "c3", "g7", "d4", "pass", "resign", "j9", "T19", "z99", "i5", "a0", "é4", "a" + "9" * 400]
GOOD_NUMBERS = ["0", "1", "5", "9", "19", "60000", "-120", "7.5", "-6.5"]
TIMES = [*NUMBERS, "60000", "60000", "-120", "9" * 15, "9" * 16, "9" * 5000, "+5", "1.5", "-0"]
CSA_MOVES = [
    "+7776FU", "-3334FU", "+2726FU", "-8384FU", "+8822UM", "-2288UM", "+0055KA", "-0055FU", "+0000OU", "+5958OU",
]  # fmt: skip
POSITIONS = [
    ["PI", "+"],
    ["PI", "-"],
    ["P+59OU", "P-51OU", "+"],
    ["P+59OU", "P-51OU", "P+00FU", "P-00AL", "-"],
    ["P+59OU", "-"],
    ["+"],
    [],
    ["P+58FU59OU", "P-51OU", "P+57FU", "+"],
    ["P-51OU", "P+52KI", "+"],
    ["PI82HI22KA", "+", "+7776FU,T1", "-3334FU", "T99999999999"],
    ["PI", "+", "+7776FU", "T" + "9" * 400],
    ["PI", "+", "+7776FU,T-5", "T1.5", "-3334FU,Tnan", "%TORYO"],
]


class Driven:
    """A client without a thread and without a socket.

    Attributes:
        sent: lines to the server.
    """

    def __init__(self, protocol: str, folder: Path, rng: random.Random) -> None:
        self.rng = rng
        self.sent: list[str] = []
        self._terminal = (folder / "terminal").open("w")
        self._reporter = Reporter(folder / "events", self._terminal)
        self._work: deque[tuple[object, Callable[[], object]]] = deque()
        account = Account("one", Server("home", protocol, "127.0.0.1", 1), USER, "password_env", "NONE")
        make: Any = CgosClient if protocol == CGOS else CsaClient
        self.client: Client = make(account, Password("secret1"), folder, self._reporter, lambda: None, rng)
        self.client.seat = YomiGoSeat(FakePlayer()) if protocol == CGOS else YomiShogiSeat(FakeShogiPlayer())
        self.client.games_left = math.inf
        self.client._worker = self  # type: ignore[assignment]
        self.client._engine_failed = self._engine_failed  # type: ignore[method-assign]

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        self._work.append((tag, call))

    def send(self, text: str) -> None:
        self.sent.append(text)

    def close(self) -> None:
        self._reporter.close()
        self._terminal.close()
        self.client.mailbox.close()

    def _engine_failed(self, error: Exception) -> None:
        raise AssertionError(f"the engine's fault: {error!r}") from error

    def work(self) -> None:
        """Do some of what the engine has to do, and hand it over."""
        while self._work and self.rng.random() < 0.8:
            tag, call = self._work.popleft()
            try:
                done = Done(tag, call())
            except Exception as error:
                done = Done(tag, error=error)
            self.client.mailbox.post(done)
        self.client._take_mail()

    def session(self, count: int, next_lines: Callable[[random.Random, Client, list[str]], list[str]]) -> int:
        """Connect, log in, take up to `count` lines, and lose the connection; return the number of lines."""
        client, rng, taken = self.client, self.rng, 0
        client._connection = self  # type: ignore[assignment]
        client._noise = client._refusals = 0
        client.is_leaving = False
        client.last_line = client.last_sent = time.monotonic()
        lines = deque(["protocol", "username", "password"] if isinstance(client, CgosClient) else [f"LOGIN:{USER} OK"])
        try:
            client.on_connected()
            while taken < count:
                line = lines.popleft() if lines else ""
                if taken > 3 and rng.random() < 0.02:
                    line = mutate(rng, bytearray(line, "utf-8")).decode("utf-8", "replace")
                client.on_line(Line(line, time.monotonic()))
                taken += 1
                self.work()
                assert all(math.isfinite(at) for at, _ in client.dues()), f"{line[:200]!r}: a deadline"
                lines.extend([] if lines else next_lines(rng, client, self.sent[-2:]))
        except (ConnectionLostError, SessionOver):
            pass
        finally:
            client._connection = None
            client.on_lost()
        self.work()
        return taken + 1


def cgos_lines(rng: random.Random, client: Client, sent: list[str]) -> list[str]:
    """Return one line of a server of CGOS."""
    game = client.game  # type: ignore[attr-defined]
    number = rng.choice(rng.choice([NUMBERS, GOOD_NUMBERS]))
    left = rng.choice(rng.choice([TIMES, ["60000"]]))
    kind = rng.random()
    if game is not None and kind < 0.6:  # a line that fits the game
        color = "xbw"[game.side_to_move]
        vertex = f"{rng.choice('abcdefghj')}{rng.randrange(1, 10)}"
        return [f"genmove {color} {left}" if game.side_to_move == game.color else f"play {color} {vertex} {left}"]
    if kind < 0.85:
        size, komi = rng.choice([number, "9", "9", "19"]), rng.choice([number, "7.0"])
        names = [f"fake(1800?) {USER}(1750)", f"{USER} fake", f"{USER} {USER}", "a b", f"fake({'9' * 400}) {USER}"]
        moves = [
            f"{rng.choice(VERTICES[:8])} {rng.choice(['60000', left])}" for _ in range(rng.choice([0, 0, 1, 2, 5]))
        ]
        game_id = rng.choice(["7", "8", number, "../../x"])
        return [" ".join(["setup", game_id, size, komi, left, rng.choice(names), *moves])]
    color, vertex = rng.choice(["b", "w", "W", "x"]), rng.choice(VERTICES)
    words = [
        "protocol genmove_analyze", "username", "password", "info 9" * 9, f"gameover {number} B+{number}", "",
        "Error: no", f"gameover x {number}", "gameover 2026-11-21 W+Resign", f"play {vertex}", f"genmove {number}",
        f"setup {number}", f"genmove {color} {left}", f"play {color} {vertex} {left}",
    ]  # fmt: skip
    return [rng.choice(words)]


def csa_lines(rng: random.Random, client: Client, sent: list[str]) -> list[str]:
    """Return one line of a server of the CSA protocol, or a whole summary."""
    game = client.game  # type: ignore[attr-defined]
    number = rng.choice(rng.choice([TIMES, ["0", "1", "60"]]))
    time_used = rng.choice(["", ",T1", f",T{number}"])
    kind = rng.random()
    if game is None and kind < 0.7:
        keys = ["Total_Time", "Byoyomi", "Increment", "Delay", "Remaining_Time+", "Remaining_Time-", "Max_Moves"]
        times = [f"{rng.choice(keys)}:{rng.choice([number, '60', '60'])}" for _ in range(rng.randrange(4))]
        unit = rng.choice(["1sec", "1msec", "min", "sec", f"{number}sec", number])
        own = rng.choice([["BEGIN Time+", f"Total_Time:{number}", "END Time+"], [], []])
        return [
            "BEGIN Game_Summary", f"Game_ID:{rng.choice(['g-1', 'g-2', number])}", f"Your_Turn:{rng.choice('++-')}",
            f"Max_Moves:{rng.choice(['256', number, ''])}", "BEGIN Time", f"Time_Unit:{unit}", *times, "END Time",
            *own, "BEGIN Position", *rng.choice([POSITIONS[0], rng.choice(POSITIONS)]), "END Position",
            "END Game_Summary", "", "START:g-1", "",
        ]  # fmt: skip
    if game is not None and kind < 0.8:  # a line that fits the game
        own = [line.split(",")[0] for line in sent if line[:1] in ("+", "-")]
        if own and game.sent_at is not None:
            return [own[-1] + time_used]
        moves = ShogiGame(format_sfen(game.placement)).legal_moves()
        return [format_csa(rng.choice(moves), game.placement) + time_used] if moves else ["#WIN"]
    words = [
        "", "#WIN", "#LOSE", "#DRAW", "#CHUDAN", "#RESIGN", "#TIME_UP", "#MAX_MOVES", "%TORYO", f"%KACHI,T{number}",
        f"LOGIN:{USER} OK", "LOGIN:incorrect", "LOGOUT:completed", "START:g-1", f"START:{number}", f"REJECT:{number}",
        "##[CHAT] x", "BEGIN Game_Summary", "END Game_Summary", rng.choice(CSA_MOVES) + time_used,
    ]  # fmt: skip
    return [rng.choice(words)]


def run_clients(lines: int, seed: int) -> None:
    """Send lines to both clients; sessions are short, so that many begin anew."""
    for protocol, next_lines in ((CGOS, cgos_lines), (CSA, csa_lines)):
        with tempfile.TemporaryDirectory() as name:
            rng, folder = random.Random(seed), Path(name)
            driven = Driven(protocol, folder, rng)
            taken = 0
            while taken < lines // 2:
                driven.sent.clear()
                taken += driven.session(rng.randrange(60), next_lines)
            driven.close()
            for path in (folder / "one").iterdir():
                load_record(path) if protocol == CGOS else load_records(path)


@pytest.mark.slow
def test_clients_of_servers() -> None:
    run_clients(4_000, seed=30)
