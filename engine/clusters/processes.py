"""Processes of this machine that have a connection, and actors made of them: for work without Ray."""

import contextlib
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from yomi.engine.clusters.actors import BEGIN, RESTART_SECONDS, ActorTable, Answer, OnLoss, Recipe
from yomi.processes import CONTEXT

END_SECONDS = 1.0  # time for a process to end by itself after its connection is closed


class ChildProcess:
    """A process with a connection to this one. It works until the connection is closed."""

    def __init__(self, main: Callable[..., None], *arguments: Any) -> None:
        """Start the process. It calls `main` with its end of the connection, followed by the arguments."""
        self.link, other = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_run_child, args=(main, other, *arguments), daemon=True)
        self.process.start()
        other.close()

    def end(self, seconds: float = END_SECONDS) -> int | None:
        """Close the connection. If the process still runs after `seconds`, kill it. Return its exit status."""
        self.link.close()
        self.process.join(seconds)
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


class ProcessActors(ActorTable):
    """Actors of one kind, each in a process."""

    failed = "no process can play"

    def __init__(self, recipe: Callable[[int], Recipe], count: int, on_loss: OnLoss) -> None:
        """Start the processes. For the arguments see `ActorTable`."""
        super().__init__(recipe, count, on_loss)
        self._answers: list[Answer] = []  # that are there before the connections are asked
        for number in range(count):
            self._start(number)

    def poll(self, seconds: float) -> list[Answer]:
        self._start_lost()
        answers, self._answers = self._answers, []
        links = {child.link: number for number, child in enumerate(self._there) if child is not None}
        if not links:
            time.sleep(min(seconds, RESTART_SECONDS))
        # On Windows the links are PipeConnections.
        for link in cast("list[Connection]", wait(list(links), 0.0 if answers or not links else seconds)):
            number = links[link]
            try:
                found = link.recv()
            except (EOFError, OSError):
                found = ""
            answers.append(self.lose(number, found) if isinstance(found, str) else Answer(number, *found))
        for answer in answers:
            self._ready[answer.actor] = self._there[answer.actor] is not None
        return answers

    def call(self, number: int, name: str, *arguments: Any) -> None:
        if (child := self._there[number]) is not None:  # otherwise `poll` will tell of the loss
            try:
                child.link.send((name, arguments))
            except OSError:
                self._answers.append(self.lose(number, ""))

    def close(self) -> None:
        children = [child for child in self._there if child is not None]
        for child in children:
            child.link.close()
        end = time.monotonic() + END_SECONDS
        for child in children:
            child.end(max(0.0, end - time.monotonic()))
        self._there = [None] * self.count

    def _begin(self, number: int, recipe: Recipe) -> ChildProcess:
        self._answers.append(Answer(number, BEGIN, None))  # calls wait until the process has made its object
        return ChildProcess(_answer_calls, recipe)

    def _end(self, number: int, actor: ChildProcess) -> str:
        return f"ended with status {actor.end()}"


def _answer_calls(link: Connection, recipe: Recipe) -> None:
    made = recipe.make({path: path for path in recipe.networks}, *recipe.arguments)
    with contextlib.closing(made):
        while True:
            name, arguments = link.recv()
            link.send((name, getattr(made, name)(*arguments)))
