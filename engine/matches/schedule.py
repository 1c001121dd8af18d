"""Who plays whom, with which color and opening: the same schedule every time.

Openings come from records or are drawn from an engine's own play. One is a text as `Game.format_opening` writes it; the
journal keeps the texts, so that a match goes on with the same openings whatever becomes of the file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.matches.results import MatchError, fault_of
from yomi.engine.records import LeftOut

if TYPE_CHECKING:
    from yomi.engine.matches.games import MatchGame

FORMS = ("round-robin", "gauntlet")
ATTEMPTS, MIN_ATTEMPTS = 20, 200
"""Lines drawn in a row that are all known before no new one is expected: for each that is known, and at least."""


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


def load_openings(
    path: Path, moves: int | None, kind: MatchGame[Any], rules: Mapping[str, Any], left_out: LeftOut | None = None
) -> list[str]:
    """Return the openings in a file, or in the records of a folder in order of their names; each once.

    Args:
        path: records of the game.
        moves: of each game, counted from its first position; None for all.
        kind: what is played.
        rules: those of the match.
        left_out: games that cannot be read, or give no opening for this match, are added; None: raise at the first.

    Raises:
        MatchError: a file cannot be read, or no game gives an opening.
    """
    files = record_files(path, kind.suffixes)
    found: dict[str, None] = {}
    for file in files:
        try:
            records = kind.load_records(file)
        except ValueError as error:
            _leave_out(file, error, left_out)
            continue
        if left_out is not None:
            left_out.report_notes(file, kind.notes_of(records))
        for record in records:
            try:
                found[kind.opening_of(record, moves, rules)] = None
            except ValueError as error:
                _leave_out(file, error, left_out)
    if left_out is not None:
        left_out.report(len(files))
    if not found and left_out is not None and left_out.faults:
        raise MatchError(f"--openings {left_out.faults[0]}")
    if not found:
        raise MatchError(f"--openings {path}: no record in it, expected files ending in {' '.join(kind.suffixes)}")
    return list(found)


def _leave_out(file: Path, error: ValueError, left_out: LeftOut | None) -> None:
    if left_out is None:
        raise MatchError(f"--openings {fault_of(file, error)}") from None
    left_out.add(file, error)


def record_files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Return a file as it is; of a folder the files that end in one of `suffixes`, in order of their names."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.is_file() and each.suffix.lower() in suffixes)


def draw_openings(draw: Callable[[], str], count: int, known: Sequence[str] = ()) -> list[str]:
    """Return different openings; fewer than wanted where some are known and no more are found.

    Args:
        draw: returns one, a new one each time or not.
        count: how many are wanted.
        known: those that come first; the others are not among them.

    Raises:
        MatchError: none is known, and there are not so many.
    """
    found = dict.fromkeys(known)
    in_vain = 0
    while len(found) < count and in_vain < max(ATTEMPTS * len(found), MIN_ATTEMPTS):
        opening = draw()
        in_vain = in_vain + 1 if opening in found else 0
        found[opening] = None
    if len(found) < count and not known:
        raise MatchError(
            f"--openings policy: {len(found)} different ones, expected {count}; more --opening-moves are needed"
        )
    return list(found)


def shuffled(openings: Sequence[str], seed: int) -> list[str]:
    """Return openings in an order that depends on a seed only."""
    order = list(openings)
    random.Random(seed).shuffle(order)
    return order
