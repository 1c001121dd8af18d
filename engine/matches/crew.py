from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol, cast

from yomi.engine.matches.duel import Duel, DuelConfig, DuelGame, DuelTask
from yomi.engine.matches.results import MatchError

if TYPE_CHECKING:
    from types import TracebackType

    from yomi.engine.game import Game
    from yomi.engine.options import Options

END_SECONDS = 1.0  # time for a process to end by itself after its connection is closed


class DuelPlayer(Protocol):
    """Plays games: a Duel, or DuelProcesses."""

    def play(self, tasks: Sequence[DuelTask]) -> Iterator[DuelGame]:
        """Play games and yield each as it ends."""


class DuelProcesses:
    """Processes that play the games of a match. A context manager.

    The result of a game does not depend on the process that plays it.
    """

    def __init__(
        self, processes: int, game: Game[Any, Any], players: tuple[Options, Options], terms: DuelConfig, count: int
    ) -> None:
        """Start the processes. The other arguments are those of Duel."""
        context = multiprocessing.get_context("spawn")
        self._next = context.Value("q", 0)  # next task that no process has taken, counted over all lists of tasks
        self._sent = 0  # tasks of all lists so far
        self._links: list[Connection] = []
        self._processes: list[Any] = []
        for _ in range(processes):
            link, other = context.Pipe()
            arguments = other, self._next, game, players, terms, count
            process = context.Process(target=serve, args=arguments, daemon=True)
            process.start()
            other.close()
            self._links.append(link)
            self._processes.append(process)

    def play(self, tasks: Sequence[DuelTask]) -> Iterator[DuelGame]:
        """Play games and yield each as it ends.

        Raises:
            MatchError: a process cannot play or is lost.
        """
        for number, link in enumerate(self._links):
            try:
                link.send((self._sent, tasks))
            except OSError:
                raise self._lost(number) from None
        left = len(tasks)
        self._sent += left
        while left:
            for ready in cast("list[Connection]", wait(self._links)):  # on Windows they are PipeConnections
                try:
                    found = ready.recv()
                except (EOFError, OSError):
                    raise self._lost(self._links.index(ready)) from None
                if not isinstance(found, DuelGame):
                    raise MatchError(f"a playing process has failed: {found}")
                left -= 1
                yield found

    def close(self) -> None:
        """End the processes. Unfinished games are lost."""
        for link in self._links:
            link.close()
        for process in self._processes:
            process.terminate()
            process.join(END_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def __enter__(self) -> DuelProcesses:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _lost(self, number: int) -> MatchError:
        process = self._processes[number]
        process.join(END_SECONDS)
        return MatchError(
            f"a playing process has ended with status {process.exitcode}; run the same command again to continue"
        )


def serve(
    link: Connection,
    counter: Any,
    game: Game[Any, Any],
    players: tuple[Options, Options],
    terms: DuelConfig,
    count: int,
) -> None:
    # The main function of a process: play lists of tasks until the connection is closed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes to the whole group; the other end will close
    try:
        game.compile(lambda line: None, learning=True)
        with Duel(game, players, terms, count) as duel:
            while True:
                begin, tasks = link.recv()
                for played in duel.play(_taken(begin, tasks, counter)):
                    link.send(played)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        with contextlib.suppress(OSError):
            link.send(f"{type(error).__name__}: {error}")


def _taken(begin: int, tasks: Sequence[DuelTask], counter: Any) -> Iterator[DuelTask]:
    """Yield the tasks that no other process has taken. The first task has the number `begin`."""
    while True:
        with counter.get_lock():
            number = counter.value - begin
            if number >= len(tasks):
                return
            counter.value += 1
        yield tasks[number]
