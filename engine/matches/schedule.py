"""Who plays whom, with which opening and color. Pure: the same schedule every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

FORMS = ("round-robin", "gauntlet")


@dataclass(frozen=True, slots=True)
class Pairing:
    """One game to play."""

    number: int
    """From 0. A game has the same one however many are asked for; where that is odd, some are missing at the end."""
    black: int
    """Index of the player."""
    white: int
    opening: int
    """Index of the opening."""


def pairs_of(players: int, form: str = "round-robin") -> list[tuple[int, int]]:
    """Return the pairs of players: everyone against everyone, or the first against all others.

    Raises:
        ValueError: an unknown form, or fewer than two players.
    """
    if players < 2:
        raise ValueError(f"{players} players: expected at least 2")
    if form not in FORMS:
        raise ValueError(f"form '{form}': expected one of {', '.join(FORMS)}")
    return [pair for pair in combinations(range(players), 2) if form == "round-robin" or pair[0] == 0]


def openings_before(number: int, pairs: int) -> int:
    """Return how many openings come before that of a game; one that comes again is counted each time.

    Args:
        number: of the game.
        pairs: how many pairs of players there are.
    """
    return number // (2 * pairs)


def schedule(pairs: Sequence[tuple[int, int]], games: int, openings: int) -> Iterator[Pairing]:
    """Yield all games in the order they are played in.

    Each opening is played twice by a pair, the second time with colors reversed, and all pairs play an opening before
    the next one comes: a match may be stopped at any time and is still almost balanced.

    Args:
        pairs: of players.
        games: of each pair.
        openings: how many there are; taken in turn.
    """
    for begin in range(0, games, 2):
        opening = begin // 2 % openings
        for index, (first, second) in enumerate(pairs):
            number = begin * len(pairs) + 2 * index
            for turn, (black, white) in enumerate(((first, second), (second, first))[: games - begin]):
                yield Pairing(number + turn, black, white, opening)
