"""Progress bars of long commands. This module needs tqdm, so import it only to show a bar."""

from typing import Any

from tqdm import tqdm

from yomi.time_left import SECONDS_BETWEEN_UPDATES, TimeLeft


class Bar(tqdm):
    """A progress bar. The time left is "?" until it can be estimated without the slow first units of a run."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._left, self._end, self._updated = TimeLeft(), 0.0, float("-inf")
        super().__init__(*args, **options)

    @property
    def format_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = super().format_dict
        if self.total is None or self.n >= self.total:
            return found
        now = self._time()
        if now - self._updated >= SECONDS_BETWEEN_UPDATES:
            self._updated, seconds = now, self._left.measure(now, self.n - self.initial, self.total - self.n)
            self._end = 0.0 if seconds is None else now + seconds
        # tqdm shows "?" for a rate of 0
        return found | {"rate": (self.total - self.n) / (self._end - now) if self._end > now else 0.0}
