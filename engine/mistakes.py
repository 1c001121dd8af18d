"""Classes of mistakes: the loss from which a move is an inaccuracy, a mistake or a blunder."""

import math
import re
from dataclasses import dataclass

from yomi.engine.records import Score
from yomi.errors import LineError
from yomi.language import is_japanese, tr

CLASSES = ("inaccuracy", "mistake", "blunder")
PLURALS = {"inaccuracy": "inaccuracies", "mistake": "mistakes", "blunder": "blunders"}
JAPANESE = {"inaccuracy": "緩手", "mistake": "疑問手", "blunder": "悪手"}
WINRATE = "%"  # the unit of thresholds in winrate
BOTH = "worse"  # the unit of the default thresholds: percent of winrate, or percent of `Score.whole` if that is more
FORM = re.compile(r"(\d+\.?\d*),(\d+\.?\d*),(\d+\.?\d*)\s*(%|points|cp)")
EXPECTED = "three rising numbers and a unit, such as 5,10,20% (winrate), 2,5,10points (Go) or 200,400,800cp (shogi)"


def shown_class(name: str) -> str:
    """Return the name of a class in the user's language."""
    return JAPANESE.get(name, "") if is_japanese() else name


class ThresholdsError(LineError, ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The minimum loss of each class, in the order of CLASSES."""

    losses: tuple[float, float, float] = (5.0, 10.0, 20.0)
    unit: str = BOTH  # otherwise WINRATE, or the unit of a game's scores

    @classmethod
    def parse(cls, text: str) -> "Thresholds":
        match = FORM.fullmatch(text.strip())
        losses = tuple(map(float, match.groups()[:3])) if match else ()
        if match is None or not 0 < losses[0] < losses[1] < losses[2] < math.inf:
            raise ThresholdsError(tr("'{text}' found, expected {expected}", text=text, expected=tr(EXPECTED)))
        return cls((losses[0], losses[1], losses[2]), match[4])

    def __str__(self) -> str:
        return ",".join(f"{loss:g}" for loss in self.losses) + (WINRATE if self.unit == BOTH else self.unit)

    def text(self, score: Score) -> str:
        """Return the thresholds as text, such as "1.5,3,6points or 5,10,20%". `score` is the game's kind of score."""
        if self.unit != BOTH or math.isinf(score.whole):
            return str(self)
        losses = ",".join(f"{0.01 * loss * score.whole:g}" for loss in self.losses)
        return f"{losses}{score.unit} or {self}"

    def loss(self, winrate: float, points: float | None, score: Score) -> float | None:
        """Convert a loss of winrate [0, 1] and of points to `unit`. None if the unit is points and `points` is None."""
        if self.unit not in (WINRATE, BOTH):
            return points
        share = (points or 0.0) / score.whole if self.unit == BOTH else 0.0
        return 100.0 * max(winrate, share)

    def class_of(self, loss: float) -> str:
        """Return the class of a loss in `unit`; an empty text for smaller losses."""
        exact = round(loss, 4)  # 0.7 - 0.5 is less than 0.2
        return next((name for name, least in zip(CLASSES[::-1], self.losses[::-1], strict=True) if exact >= least), "")


DEFAULT = Thresholds()

# A warning before a move: from this loss of winrate or of points on. The points of short searches are rough. The search
# of the position is used if it has visited the move often enough; otherwise a search of the move alone follows.
WARNING_LOSS, WARNING_POINTS = 0.1, 6.0
WARNING_SECONDS = 0.4  # of each search
WARNING_VISITS = 30  # of the move


def is_worth_warning(winrate: float, points: float | None) -> bool:
    """Return whether a move's loss of winrate, or of points in Go, is worth a warning to the player."""
    return winrate >= WARNING_LOSS or (points or 0.0) >= WARNING_POINTS
