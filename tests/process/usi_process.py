"""A USI engine in a process of its own, driven through pipes."""

from __future__ import annotations

from tests.process.engine_process import PATIENCE, PipedProcess


class UsiProcess(PipedProcess):
    """One engine process; leaves nothing behind at the end of a `with` block."""

    def until(self, start: str, timeout: float = PATIENCE) -> list[str]:
        """Return the lines up to the first that begins with `start`, that one included."""
        lines = [self.line(timeout)]
        while not lines[-1].startswith(start):
            lines.append(self.line(timeout))
        return lines

    def send(self, *lines: str) -> None:
        """Send lines."""
        self.write("".join(line + "\n" for line in lines))

    def bestmove(self, *lines: str) -> str:
        """Send lines and return the next answer to a `go`."""
        self.send(*lines)
        return self.until("bestmove")[-1]

    def ready(self) -> None:
        """Wait until the engine has loaded."""
        self.send("isready")
        self.until("readyok")
