"""Processes of this machine with a connection, and actors made of them: for units without Ray."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from yomi.engine.clusters.actors import Answer, ClusterError, Recipe

END_SECONDS = 1.0  # time for a process to end by itself after its connection is closed


class ChildProcess:
    """A process with a connection to this one. It works until the connection is closed."""

    def __init__(self, main: Callable[..., None], *arguments: Any) -> None:
        """Start the process. It calls `main` with its end of the connection and the arguments."""
        context = multiprocessing.get_context("spawn")
        self.link, other = context.Pipe()
        self.process = context.Process(target=_run_child, args=(main, other, *arguments), daemon=True)
        self.process.start()
        other.close()

    def end(self) -> int | None:
        """Close the connection, end the process, and return its status."""
        self.link.close()
        self.process.join(END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return self.process.exitcode


def _run_child(main: Callable[..., None], link: Connection, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's goes to the whole group; the other end will close
    try:
        main(link, *arguments)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as error:
        with contextlib.suppress(OSError):
            link.send(f"{type(error).__name__}: {error}")


class ProcessActors:
    """Actors of one kind, each in a process. The loss of one ends the run."""

    def __init__(self, recipe: Recipe, count: int) -> None:
        """Start the processes."""
        self.count = count
        self.ready = list(range(count))  # calls wait until a process has made its object
        self._children = [ChildProcess(_answer_calls, recipe) for _ in range(count)]

    def poll(self, seconds: float) -> list[Answer]:
        """Return the answers that have arrived. Wait up to `seconds` for the first.

        Raises:
            ClusterError: a process has failed or is lost.
        """
        numbers = {child.link: number for number, child in enumerate(self._children)}
        answers = []
        for link in cast("list[Connection]", wait(list(numbers), seconds)):  # on Windows they are PipeConnections
            number = numbers[link]
            try:
                found = link.recv()
            except (EOFError, OSError):
                raise self._lost(number) from None
            if isinstance(found, str):
                raise ClusterError(f"a process has failed: {found}")
            answers.append(Answer(number, *found))
        return answers

    def call(self, number: int, name: str, *arguments: Any) -> None:
        """Call a method of an actor. `poll` returns its answer."""
        try:
            self._children[number].link.send((name, arguments))
        except OSError:
            raise self._lost(number) from None

    def lose(self, number: int, why: str) -> Answer:
        raise ClusterError(why)

    def note_success(self) -> None: ...

    def close(self) -> None:
        """End the processes. Unfinished units are lost."""
        for child in self._children:
            child.process.terminate()
        for child in self._children:
            child.end()

    def _lost(self, number: int) -> ClusterError:
        status = self._children[number].end()
        return ClusterError(f"a process has ended with status {status}; run the same command again to continue")


def _answer_calls(link: Connection, recipe: Recipe) -> None:
    made = recipe.make({path: path for path in recipe.networks}, *recipe.arguments)
    with contextlib.closing(made):
        while True:
            name, arguments = link.recv()
            link.send((name, getattr(made, name)(*arguments)))
