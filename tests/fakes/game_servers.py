"""Servers of CGOS's and the CSA protocol that play against one client on loopback and hold its game when it is away."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from yomi.engine.go.points import square

POINTS = [square(9).vertex(point).lower() for point in square(9).points]


class FakeServer:
    """Accepts connections, each with a thread of its own; the newest one is the client's.

    Attributes:
        port: where it listens.
        errors: what clients did that the protocol does not allow.
        results: of the games that have ended.
        logins: log-ins accepted so far.
        received: every line that came.
        is_closed: whether it has begun to close.
    """

    def __init__(self, password: str = "secret1", games: int = 1, plies: int = 20, is_strict: bool = True) -> None:
        self.password, self.games, self.plies = password, games, plies
        self.is_strict = is_strict
        """Only the moves of the fakes are right (CSA)."""
        self.errors: list[str] = []
        self.results: list[str] = []
        self.received: list[str] = []
        self.logins = 0
        self.lock = threading.RLock()
        self.link: socket.socket | None = None
        self.extra = b""
        """Bytes that go before each line from the server."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._links: list[socket.socket] = []
        self.is_closed = False
        self._run(self._accept)

    def _run(self, call, *args) -> None:
        thread = threading.Thread(target=call, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.is_closed:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            self._links.append(link)
            self._run(self._serve, link)

    def _serve(self, link: socket.socket) -> None:
        with link, contextlib.suppress(OSError, ValueError), link.makefile("rb") as lines:
            self.greet(link)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                text = line.decode().removesuffix("\n")
                with self.lock:
                    self.received.append(text)
                    if self.take(link, text):
                        return

    def send(self, link: socket.socket | None, *lines: str) -> None:
        if link is not None:
            with contextlib.suppress(OSError):
                link.sendall(self.extra + "".join(f"{line}\n" for line in lines).encode())

    def greet(self, link: socket.socket) -> None:
        """Say the first words."""

    def take(self, link: socket.socket, line: str) -> bool:
        """Take a line; return whether the connection ends."""
        raise NotImplementedError

    def cut(self) -> None:
        """Break all connections."""
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        self._links.clear()

    def close(self) -> None:
        self.is_closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.cut()
        for thread in self._threads:
            thread.join(5.0)

    @property
    def ply(self) -> int:
        """Moves of the game so far."""
        raise NotImplementedError

    def at_ply(self, ply: int, act: Callable[[], object]) -> None:
        """Do something, once, when the first line after so many moves comes; the game waits for it."""
        take, acted = self.take, threading.Event()

        def act_and_take(link: socket.socket, line: str) -> bool:
            if self.ply >= ply and not acted.is_set():
                acted.set()
                act()
            return take(link, line)

        self.take = act_and_take  # type: ignore[method-assign]

    def wait(self, condition, seconds: float = 60.0) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"timeout; errors {self.errors}, results {self.results}"
            time.sleep(0.005)


class CgosServer(FakeServer):
    """Plays White: the first point from the end of the board that is free. It captures nothing and counts nothing."""

    def __init__(self, *args, seconds: float = 60.0, analysis: bool = True, **keys) -> None:
        self.left = {"b": round(1000 * seconds), "w": round(1000 * seconds)}
        self.level = round(1000 * seconds)
        self.analysis = analysis
        self.moves: list[tuple[str, int]] = []
        self.number = 0
        self.analyses: list[str] = []
        self._states: dict[socket.socket, str] = {}
        super().__init__(*args, **keys)

    @property
    def ply(self) -> int:
        return len(self.moves)

    def greet(self, link: socket.socket) -> None:
        self._states[link] = "protocol"
        self.send(link, "protocol genmove_analyze" if self.analysis else "protocol")

    def take(self, link: socket.socket, line: str) -> bool:
        state = self._states[link]
        if state == "protocol":
            if not line.startswith("e1 ") or ("genmove_analyze" in line) != self.analysis:
                self.errors.append(f"protocol: {line}")
            self._states[link] = "username"
            self.send(link, "info welcome", "username")
        elif state == "username":
            self._states[link] = "password"
            self.send(link, "password")
        elif state == "password":
            if line != self.password:
                self.send(link, f"Error: Sorry, password doesn't match ({line})")
                return True
            self.logins += 1
            self.link = link
            self._states[link] = "waiting"
            if self.number > len(self.results):
                self._setup()
            elif self.number < self.games:
                self.begin()
        elif link is not self.link:
            pass  # an old connection
        elif state == "genmove":
            self._move(line)
        elif state == "gameover":
            if line == "ready" and self.number < self.games:
                self.begin()
            elif line not in ("ready", "quit"):
                self.errors.append(f"after gameover: {line}")
            return line == "quit"
        elif line == "quit":
            return True
        else:
            self.errors.append(f"unasked in state {state}: {line}")
        return False

    def begin(self) -> None:
        self.number += 1
        self.moves.clear()
        self.left = {"b": self.level, "w": self.level}
        self._setup()

    def _setup(self) -> None:
        pairs = "".join(f" {vertex} {left}" for vertex, left in self.moves)
        self.send(self.link, f"setup {self.number} 9 7.0 {self.level} fake(1800?) yomi-1(1750){pairs}")
        self._ask()

    def _ask(self) -> None:
        if self.link is not None:
            self._states[self.link] = "genmove"
        self.send(self.link, f"genmove b {self.left['b']}")

    def _move(self, line: str) -> None:
        vertex, _, analysis = line.partition(" ")
        if analysis:
            self.analyses.append(analysis)
        if vertex == "resign":
            self._over("W+Resign Resignation")
            return
        if vertex not in POINTS or vertex in [each for each, _ in self.moves]:
            self.errors.append(f"illegal move {line}")
        self.left["b"] -= 10
        self.moves.append((vertex, self.left["b"]))
        if len(self.moves) >= self.plies:
            self._over("B+2.0")
            return
        taken = [vertex for vertex, _ in self.moves]
        answer = next((point for point in reversed(POINTS) if point not in taken), "pass")
        self.moves.append((answer, self.left["w"]))
        self.send(self.link, f"play w {answer} {self.left['w']}")
        self._ask()

    def _over(self, result: str) -> None:
        self.results.append(result)
        assert self.link is not None
        self._states[self.link] = "gameover"
        self.send(self.link, f"gameover 2026-11-21 {result}")


OUR_MOVES = ("+2838HI", "+3828HI")
THEIR_MOVES = ("-8272HI", "-7282HI")


class CsaServer(FakeServer):
    """Plays White (gote) and moves its rook to and fro, as Black has to.

    A game that was broken off goes on with the next log-in, the moves so far in its summary.
    """

    def __init__(self, *args, seconds: float = 60.0, time_lines: tuple[str, ...] = (), **keys) -> None:
        self.moves: list[str] = []
        self.number = 0
        self.time_lines = time_lines or ("Time_Unit:1sec", f"Total_Time:{round(seconds)}", "Increment:1", "Byoyomi:0")
        self.comments: list[str] = []
        self.declaration = ""  # lines of the summary, with the rule of the declaration win
        self.ending = ("#RESIGN", "#WIN")
        self.is_running = False
        super().__init__(*args, **keys)

    @property
    def ply(self) -> int:
        return len(self.moves)

    def take(self, link: socket.socket, line: str) -> bool:
        if line.startswith("LOGIN "):
            if line.split()[2].split(",")[-1] != self.password:
                self.send(link, "LOGIN:incorrect")
                return True
            self.logins += 1
            self.link = link
            self.is_running = False
            self.send(link, f"LOGIN:{line.split()[1]} OK")
            if self.number > len(self.results) or self.number < self.games:
                self._propose(link)
        elif link is not self.link:
            pass
        elif line.startswith("AGREE"):
            self.is_running = True
            self.send(link, f"START:game-{self.number}")
        elif line == f"REJECT:game-{self.number}":
            self.send(link, f"{line} by yomi-1")
        elif line == "":
            self.send(link, "")
        elif line == "LOGOUT":
            self.send(link, "LOGOUT:completed")
            return True
        elif line == "%TORYO" and self.is_running:
            self._over("%TORYO", "#RESIGN", "#LOSE")
        elif line[:1] == "+" and self.is_running:
            self._move(line)
        else:
            self.errors.append(f"unasked: {line}")
        return False

    def _propose(self, link: socket.socket) -> None:
        if self.number == len(self.results):
            self.number += 1
            self.moves.clear()
        self.send(
            link,
            "BEGIN Game_Summary",
            "Protocol_Version:1.2",
            *self.declaration.splitlines(),
            f"Game_ID:game-{self.number}",
            "Name+:yomi-1",
            "Name-:fake",
            "Your_Turn:+",
            "To_Move:+",
            "BEGIN Time",
            *self.time_lines,
            "END Time",
            "BEGIN Position",
            "PI",
            "+",
            *(f"{move},T1" for move in self.moves),
            "END Position",
            "END Game_Summary",
        )

    def _move(self, line: str) -> None:
        move, _, comment = line.partition(",")
        if comment:
            self.comments.append(comment)
        if len(self.moves) % 2 or (self.is_strict and move != OUR_MOVES[len(self.moves) // 2 % 2]):
            self.errors.append(f"move {len(self.moves) + 1}: {line}")
        self.moves.append(move)
        self.send(self.link, f"{move},T0")
        if len(self.moves) >= self.plies:
            self._over(*self.ending)
            return
        answer = THEIR_MOVES[len(self.moves) // 2 % 2]
        self.moves.append(answer)
        self.send(self.link, f"{answer},T1")

    def _over(self, *lines: str) -> None:
        self.results.append(lines[-1])
        self.send(self.link, *lines)
