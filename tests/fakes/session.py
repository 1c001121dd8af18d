"""A GTP session without threads or streams: lines in, text out."""

from tests.fakes.player import FakePlayer
from yomi.engine.go.gtp.session import Session
from yomi.engine.options import Options
from yomi.engine.protocols.streams import Inbox


class ScriptedInbox(Inbox):
    """An inbox in which the next line of input comes after `ticks` reports of an analysis."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks = 0

    def wait(self, timeout: float | None = None) -> bool:
        if self.ticks == 0:
            return timeout != 0
        self.ticks -= 1
        return False


class ScriptedSession(Session):
    """A session that collects what it writes; `send` returns the answer to one line."""

    def __init__(self, player: FakePlayer | None = None, options: Options | None = None) -> None:
        self.written: list[str] = []
        options = options or (player.options if player else Options(size=9))
        self.fake = player or FakePlayer(options)
        super().__init__(options, lambda: self.fake, self.written.append)
        self.script = ScriptedInbox()
        self.inbox = self.script
        self._is_needed.set()
        self.start_loading().join()

    def now(self) -> float:
        """Let no time pass, so that reports during a move do not depend on the machine."""
        return self.arrival

    def send(self, line: str | bytes, ticks: int = 0) -> str:
        self.script.ticks = ticks
        self.written.clear()
        self.handle(line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape"))
        return "".join(self.written)
