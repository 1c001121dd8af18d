"""A GTP engine in a process of its own, driven through pipes."""

from __future__ import annotations

from tests.process.engine_process import PATIENCE, PipedProcess


class GtpProcess(PipedProcess):
    """One engine process; leaves nothing behind at the end of a `with` block."""

    def answer(self, timeout: float = PATIENCE) -> str:
        """Return the next answer up to the empty line that ends it."""
        lines: list[str] = []
        while True:
            line = self.line(timeout)
            if not line:
                return "\n".join(lines)
            lines.append(line)

    def ask(self, command: str) -> str:
        """Send a command and return its answer."""
        self.write(command + "\n")
        return self.answer()
