"""The clocks of a game on a CSA server. All times are in seconds."""

from __future__ import annotations

from collections.abc import Mapping

from yomi.engine.clock import Clock, Clocks
from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.floodgate.codec import TimeRule


class CsaClock:
    """Remaining times of both sides, computed from the time that the server charges for each move.

    The server in Ruby adds the increment after a move, and a side may already use the next increment: a move may take
    the remaining time and one increment. `clocks` excludes this increment, because engines add it themselves.
    """

    def __init__(self, rules: Mapping[int, TimeRule], remaining: Mapping[int, float] | None = None) -> None:
        """Start a game, or resume one with its remaining times."""
        self.rules = dict(rules)
        self.left = {color: rules[color].total for color in (BLACK, WHITE)} | dict(remaining or {})

    @property
    def is_limited(self) -> bool:
        return any(rule.is_limited for rule in self.rules.values())

    def charge(self, color: int, units: int | None) -> float | None:
        """Charge a move and return its seconds, or None if the server sent no time."""
        rule = self.rules[color]
        seconds = None if units is None else units * rule.unit
        self.left[color] = max(self.left[color] + rule.increment - (seconds or 0.0), 0.0)
        return seconds

    def allowed(self, color: int) -> float:
        """Return the longest time of a side's next move."""
        rule = self.rules[color]
        return self.left[color] + rule.byoyomi + rule.increment + rule.delay

    def clocks(self, color: int, spent: float = 0.0) -> Clocks | None:
        """Return the clocks for a move of `color`, or None without a time limit.

        `spent` are seconds of this move that are not charged yet. If the server rounds up, the last unit is excluded,
        because a move that ends in it counts in full.
        """
        if not self.is_limited:
            return None
        rule = self.rules[color]
        last = rule.unit if rule.is_rounded_up else 0.0
        left = dict(self.left)
        left[color] = max(left[color] - spent, 0.0)
        if not rule.byoyomi:
            left[color] = max(left[color] - last, 0.0)
        byoyomi = max(rule.byoyomi - last, 0.0)
        return {each: Clock.of(left[each], byoyomi, self.rules[each].increment) for each in (BLACK, WHITE)}
