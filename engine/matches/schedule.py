"""Pairings, colors and openings of a match. The same arguments give the same schedule.

Openings come from records or are drawn from an engine's play. An opening is a text of `Game.format_opening`. The
journal keeps the texts, so that a match can continue without the file.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from yomi.engine.game import Say
from yomi.engine.matches.games import MatchGame
from yomi.engine.matches.results import MatchError
from yomi.engine.records import LeftOut

FORMS: tuple[str, ...] = ("round-robin", "gauntlet")
# Draws in a row without a new opening that end the search: per known opening, and at least.
ATTEMPTS, MIN_ATTEMPTS = 20, 200
INTERVAL = 10.0  # seconds between lines of progress


@dataclass(frozen=True, slots=True)
class Pairing:
    """One game to play."""

    number: int  # From 0. It does not depend on the number of games: if that is odd, numbers are missing at the end.
    black: int  # index of the player
    white: int
    opening: int  # index of the opening


def pairs_of(players: int, form: str = "round-robin") -> list[tuple[int, int]]:
    """Return the pairs of players: all pairs, or the first against all others.

    Raises:
        ValueError: an unknown form, or fewer than two players.
    """
    if players < 2:
        raise ValueError(f"players: {players} found, expected at least 2")
    if form not in FORMS:
        raise ValueError(f"form '{form}': expected one of {', '.join(FORMS)}")
    return [pair for pair in combinations(range(players), 2) if form == "round-robin" or pair[0] == 0]


def openings_before(number: int, pairs: int) -> int:
    """Return how many openings are played before that of game `number`. Repeated openings count again."""
    return number // (2 * pairs)


def schedule(pairs: Sequence[tuple[int, int]], games: int, openings: int) -> Iterator[Pairing]:
    """Yield all games in order.

    Each pair plays each opening twice, with colors reversed. All pairs play an opening before the next one, so that a
    match is almost balanced whenever it is stopped.

    Args:
        pairs: pairs of players.
        games: games per pair.
        openings: number of openings, used in turn.
    """
    for begin in range(0, games, 2):
        opening = begin // 2 % openings
        for index, (first, second) in enumerate(pairs):
            number = begin * len(pairs) + 2 * index
            for turn, (black, white) in enumerate(((first, second), (second, first))[: games - begin]):
                yield Pairing(number + turn, black, white, opening)


def load_openings(
    path: Path, moves: int | None, kind: MatchGame[Any], rules: Mapping[str, Any], left_out: LeftOut
) -> list[str]:
    """Return the openings of a file or a folder's records, each once, in the order of the files' names.

    Args:
        path: records of the game.
        moves: number of moves from the initial position; None for all.
        kind: the game.
        rules: rules of the match.
        left_out: collects games that cannot be read or used.

    Raises:
        MatchError: there is no opening.
    """
    files = record_files(path, kind.suffixes)
    found: dict[str, None] = {}
    for file in files:
        try:
            records = kind.load_records(file)
        except ValueError as error:
            left_out.add(file, error)
            continue
        left_out.report_notes(file, kind.notes_of(records))
        for record in records:
            try:
                found[kind.opening_of(record, moves, rules)] = None
            except ValueError as error:
                left_out.add(file, error)
    left_out.report(len(files))
    if not found and left_out.faults:
        raise MatchError(f"--openings {left_out.faults[0]}")
    if not found:
        raise MatchError(f"--openings {path}: no record found, expected files ending in {' '.join(kind.suffixes)}")
    return list(found)


def record_files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """Return the file `path`, or if that is a folder, its files with one of the suffixes, sorted by name."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and file.suffix.lower() in suffixes)


def draw_openings(draw: Callable[[], str], count: int, say: Say, known: Sequence[str] = ()) -> list[str]:
    """Return `count` different openings, the known ones first. If no more are found, return fewer.

    Raises:
        MatchError: none is known, and fewer than `count` were found.
    """
    found = dict.fromkeys(known)
    in_vain, told = 0, time.monotonic()
    while len(found) < count and in_vain < max(ATTEMPTS * len(found), MIN_ATTEMPTS):
        opening = draw()
        in_vain = in_vain + 1 if opening in found else 0
        found[opening] = None
        if time.monotonic() - told >= INTERVAL:
            told = time.monotonic()
            say(f"{len(found)} of {count} openings drawn")
    if len(found) < count and not known:
        raise MatchError(
            f"--openings policy: {len(found)} different openings found, expected {count}; increase --opening-moves"
        )
    return list(found)


def shuffled(openings: Sequence[str], seed: int) -> list[str]:
    """Return the openings in an order that depends only on the seed."""
    order = list(openings)
    random.Random(seed).shuffle(order)
    return order
