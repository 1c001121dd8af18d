"""The score of two players by games and by pairs of games, and the state of a test."""

from collections import Counter
from dataclasses import dataclass

from yomi.engine.matches.rating import PAIR_SCORES, Sprt, color_note, difference
from yomi.engine.matches.results import ORDER, WinDrawLoss


@dataclass(frozen=True, slots=True)
class DuelScore(WinDrawLoss):
    """The score of a duel, from the point of view of the first player."""

    pairs: tuple[int, ...] = ()  # number of pairs with each of PAIR_SCORES
    # The reason for each game that failed because of an engine; such games were played again
    faults: tuple[str, ...] = ()
    colors: tuple[int, ...] = (0, 0)  # number of pairs in which Black, and White, won both games

    @property
    def verdict(self) -> str:
        """The difference of the players as text, or the reason why the games do not show it."""
        return color_note(sum(self.pairs), self.colors) or str(difference(self.pairs))

    def is_decided(self, test: Sprt | None) -> bool:
        """Return whether a test has ended. It continues while the colors decide the games."""
        return test is not None and not color_note(sum(self.pairs), self.colors) and test.verdict(self.pairs) != ""

    def __str__(self) -> str:
        """Return the score as text, such as `7-2-1 (wins-losses-draws)`."""
        return f"{self.wins}-{self.losses}-{self.draws} ({ORDER})"


class _Tally:
    """Counts games in any order."""

    def __init__(self) -> None:
        self.points: dict[int, int] = {}  # of the first player, by number: see `GameResult.points`
        self._games, self._pairs = Counter[int](), Counter[tuple[int, int]]()

    def add(self, number: int, points: int) -> None:
        self.points[number] = points
        self._games[points] += 1
        # The first player has Black in the first game of a pair
        first, second = (self.points.get(game) for game in (number & ~1, number | 1))
        if first is not None and second is not None:
            self._pairs[first, second] += 1

    @property
    def score(self) -> DuelScore:
        games, pairs = self._games, self._pairs
        scores = tuple(sum(n for pair, n in pairs.items() if sum(pair) == score) for score in range(len(PAIR_SCORES)))
        return DuelScore(games[2], games[1], games[0], scores, colors=(pairs[2, 0], pairs[0, 2]))


class MatchState:
    """The state of a match whose games end in any order.

    A test gets the pairs in the order of their numbers, and none after an unfinished one. Otherwise short games would
    count first, and the end would depend on the machine.
    """

    def __init__(self, test: Sprt | None = None) -> None:
        self._test, self._all, self._tested = test, _Tally(), _Tally()
        self.points = self._all.points
        self._seen = 0  # number of games that the test has seen
        self.is_decided = False

    def note(self, number: int, points: int) -> None:
        self._all.add(number, points)
        while (
            self._test is not None
            and not self.is_decided
            and self._seen in self.points
            and self._seen + 1 in self.points
        ):
            for game in (self._seen, self._seen + 1):
                self._tested.add(game, self.points[game])
            self._seen += 2
            self.is_decided = self._tested.score.is_decided(self._test)

    @property
    def score(self) -> DuelScore:
        """Score of all games, or if a test is decided, of the games that decided it."""
        return (self._tested if self.is_decided else self._all).score

    def line(self) -> str:
        score, test = self.score, self.test_line()
        text = f"{score}, {score.share:.1%}, {score.verdict}"
        return f"{text}; {test}" if test else text

    def test_line(self) -> str:
        """Return the state of the test as one line; "" without a test, or while the colors decide the games."""
        tested = self._tested.score
        if self._test is None or color_note(sum(tested.pairs), tested.colors):
            return ""
        return self._test.line(tested.pairs)
