"""How far compiling is: percent and the time left, as a bar on a terminal and as few lines elsewhere."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STEPS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "go-planes": (
        ("remove_chain", 2.2),
        ("_expand_defender", 2.1),
        ("read_ladders", 2.3),
        ("find_areas", 2.1),
        ("write_planes", 3.3),
        ("go-planes", 0.8),
    ),
    "go-tree": (
        ("store_cache", 2.2),
        ("weigh", 2.1),
        ("join", 4.6),
        ("select", 2.6),
        ("back_up_again", 2.5),
        ("probe_cache", 2.5),
        ("gather", 8.3),
        ("advance", 3.1),
        ("enter_all", 2.2),
        ("go-tree", 1.0),
    ),
    "go-rules": (
        ("drop_liberty", 2.0),
        ("_flood_from", 2.1),
        ("go-rules", 2.1),
    ),
    "go-rollouts": (
        ("weak_chain_move", 2.2),
        ("area_balance", 2.1),
        ("pattern_class", 2.9),
        ("prior_logit", 2.2),
        ("go-rollouts", 1.3),
    ),
    "forward": (
        ("forward", 11.6),
        ("forward", 3.4),
    ),
    "go-partial": (
        ("_write_saving", 2.6),
        ("find_areas", 2.7),
        ("write_aya", 2.7),
        ("_share_with_pass", 2.7),
        ("go-partial", 1.0),
    ),
    "shogi-rules": (
        ("drop_pawn_mates", 2.3),
        ("dropped_pawn", 2.2),
        ("shogi-rules", 1.5),
    ),
    "shogi-tree": (
        ("pattern_key", 3.7),
        ("attack", 2.5),
        ("policy_index", 2.1),
        ("write_planes", 2.4),
        ("gather", 4.6),
        ("advance", 2.1),
        ("shogi-tree", 0.5),
    ),
    "shogi-material": (
        ("find_attacks", 2.0),
        ("decode_rows", 2.5),
        ("shogi-material", 0.1),
    ),
    "shogi-sparse": (
        ("find_move_rows", 2.7),
        ("shogi-sparse", 0.9),
    ),
    "shogi-nnue": (
        ("_sum_afresh", 2.0),
        ("static_at", 2.2),
        ("quiesce", 7.7),
        ("search", 7.2),
        ("shogi-nnue", 1.9),
    ),
    "shogi-mate": (
        ("checking_moves", 2.7),
        ("_judge_repetition", 2.0),
        ("prove", 2.3),
        ("shogi-mate", 0.0),
    ),
    "shogi-forest": (
        ("advance_all", 2.8),
        ("shogi-forest", 1.1),
    ),
    "go-forest": (
        ("advance_all", 4.0),
        ("show_positions", 3.0),
        ("go-forest", 0.2),
    ),
}
"""Groups of native.warmup -> their slow kernels in the order in which they end, with the seconds since the one before.

The last step of a group has its name. One core of a Xeon of 2023 took these times with an empty cache. Only their
proportions matter: the estimate adapts to the machine.
"""
SECONDS_BETWEEN_LINES = 15.0
CHECK = "--check"
"""Argument of native.warmup's processes that look for mistakes only."""
SECONDS_TO_CHECK = 10.0
DEFAULT_STEP = 10.0
"""Seconds of a group that STEPS lacks."""
MIN_SAMPLE = 3.0
"""Seconds after which the machine's own speed replaces that of STEPS."""


class Progress:
    """Estimate of one compiling process: `groups` one after another."""

    def __init__(self, groups: tuple[str, ...], now: float, speed: float = 1.0) -> None:
        """Begin at the time `now`, in seconds, with the speed that the machine had before."""
        self._speed_before = speed
        if groups[:1] == (CHECK,):  # finds mistakes only, all at once
            self._steps = [(CHECK, SECONDS_TO_CHECK)]
        else:
            self._steps = [step for group in groups for step in STEPS.get(group, ((group, DEFAULT_STEP),))]
        self._begin = self._last = now
        self._reached = 0.0
        self.total = sum(seconds for _, seconds in self._steps)

    def finish(self, name: str, now: float) -> None:
        """Note that a kernel or a group has been compiled, or was found in the cache."""
        names = [step for step, _ in self._steps]
        if name in names:
            count = names.index(name) + 1
            self._reached += sum(seconds for _, seconds in self._steps[:count])
            self._steps = self._steps[count:]
            self._last = now

    def end(self, now: float) -> None:
        """Note that the process has ended."""
        self._steps, self._reached, self._last = [], self.total, now

    def left(self, now: float) -> float:
        """Return the estimated seconds until the process ends."""
        speed = self.speed
        step = next((seconds for _, seconds in self._steps), 0.0)
        position = self._reached + min(0.95 * step, (now - self._last) * speed)
        return (self.total - position) / speed

    @property
    def speed(self) -> float:
        """Seconds of STEPS that this machine does in one."""
        took = self._last - self._begin
        return max(self._reached / took, 0.02) if took >= MIN_SAMPLE <= self._reached else self._speed_before


class Display:
    """Shows a bar on stderr if that is a terminal. Otherwise `report` gets a line every 15 seconds."""

    def __init__(self, report: Callable[[str], None], totals: Sequence[float]) -> None:
        """Begin.

        Args:
            report: receives lines.
            totals: estimated seconds of each stage of the work.
        """
        self._report = report
        self._later = list(totals)
        self._stage = self._done = 0.0
        self._begin = self._last = time.monotonic()
        self._fraction = 0.0
        self._bar: Any = None
        if sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm

            form = "{desc} {percentage:3.0f}%|{bar}| {unit}"
            width = min(shutil.get_terminal_size().columns - 1, 100)
            self._bar = tqdm(
                total=100, unit="", desc="yomi: compiling", bar_format=form, file=sys.stderr, leave=False, ncols=width
            )

    def begin_stage(self) -> float:
        """Count the next stage as begun; return the speed of the machine in the stages before."""
        self._done += self._stage
        self._stage = self._later.pop(0)
        took = time.monotonic() - self._begin
        return max(self._done / took, 0.02) if took >= MIN_SAMPLE <= self._done else 1.0

    def show(self, running: Sequence[Progress]) -> None:
        """Show how far the processes of the current stage are."""
        now = time.monotonic()
        speed = min((progress.speed for progress in running), default=1.0)
        left = max((progress.left(now) for progress in running), default=0.0) + sum(self._later) / speed
        elapsed = now - self._begin
        self._fraction = max(self._fraction, min(elapsed / (elapsed + left), 0.99) if elapsed + left > 0 else 0.0)
        if self._bar is not None:
            shown = int(100 * self._fraction), f"{time_text(left)} left"
            if shown != (self._bar.n, self._bar.unit):
                self._bar.n, self._bar.unit = shown
                self._bar.refresh()
        elif now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            self._report(f"compiling: {100 * self._fraction:.0f}%, about {time_text(left)} left")

    def close(self) -> float:
        """Remove the bar; return the seconds that all took."""
        if self._bar is not None:
            self._bar.close()
        return time.monotonic() - self._begin


def time_text(seconds: float) -> str:
    """Return a duration for people: 40 s, 2 min."""
    return f"{max(seconds, 1.0):.0f} s" if seconds < 90.0 else f"{seconds / 60.0:.0f} min"
