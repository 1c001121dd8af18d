"""The clocks of a game on a CSA server, as the server keeps them. All times are in seconds."""

from __future__ import annotations

from collections.abc import Mapping

from yomi.engine.clock import Clock, Clocks
from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.floodgate.codec import TimeRule


class CsaClock:
    """What both sides have left, from what the server charges for each move.

    The server in Ruby adds the increment after a move, and lets a side use the next one as well; a move may so take
    what is left and one increment. What is handed on leaves this increment out, for engines that add it themselves.
    """

    def __init__(self, rules: Mapping[int, TimeRule], remaining: Mapping[int, float] | None = None) -> None:
        """Begin a game, or go on with what is left of one."""
        self.rules = dict(rules)
        self.left = {color: rules[color].total for color in (BLACK, WHITE)} | dict(remaining or {})

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return any(rule.is_limited for rule in self.rules.values())

    def charge(self, color: int, units: int | None) -> float | None:
        """Charge a move; return its seconds, None where the server did not say."""
        rule = self.rules[color]
        seconds = None if units is None else units * rule.unit
        self.left[color] = max(self.left[color] + rule.increment - (seconds or 0.0), 0.0)
        return seconds

    def allowed(self, color: int) -> float:
        """Return the most seconds that the next move of a side can take."""
        rule = self.rules[color]
        return self.left[color] + rule.byoyomi + rule.increment + rule.delay

    def clocks(self, color: int, spent: float = 0.0) -> Clocks | None:
        """Return the clocks for a move of `color`, which has spent some seconds that are not charged yet.

        There are none (None) without a limit.

        Where time is rounded up a unit less is there to be used, as a move that ends in the last one counts in full.
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
