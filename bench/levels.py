"""`bench levels`: measures the Elo of the levels of strength, by games between neighbouring levels in this process."""

import contextlib
import dataclasses
import json
import operator
import time
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.game import Game
from yomi.engine.levels import COUNT, TABLE, Rating, level_settings, subject_of
from yomi.engine.machine import usable_cores
from yomi.engine.matches.rating import CONFIDENCE, fit
from yomi.engine.matches.results import WinDrawLoss
from yomi.engine.options import Options
from yomi.engine.play import play_game
from yomi.engine.players.player import Player
from yomi.errors import LineError
from yomi.nets.files import write_atomically
from yomi.nets.text import parse_json

# Bytes for the tree of a player.
MEMORY = 64 * 2**20
# Moves after which a game of shogi is drawn.
SHOGI_MOVES = 320
# Random moves at the start of a game. Each opening is played with both colors, so it need not be balanced.
OPENING_MOVES = 2


class LevelsError(LineError):
    """A table of levels cannot be read."""


def play(game: Game[Any, Any], black: Player[Any], white: Player[Any], rng: np.random.Generator) -> float:
    """Play a game that begins with random moves drawn by `rng`. Return Black's score: 1, 0.5 or 0."""
    played = game.new_game(black.options)
    for _ in range(OPENING_MOVES):
        moves = [move for move in played.legal_moves() if move not in game.pass_moves]
        played.push(moves[int(rng.integers(len(moves)))])
    for player in (black, white):
        player.new_game(played)
    ended = play_game(played, {BLACK: black, WHITE: white}, game.referee(black))
    return {BLACK: 1.0, WHITE: 0.0, DRAW: 0.5}[ended.winner]


def rate(pairings: Mapping[int, WinDrawLoss]) -> dict[int, Rating]:
    """Return the ratings of the levels that pairings connect without a gap. The weakest level has 0.

    Args:
        pairings: results by the upper level of the pairing. Both sides have each color equally often, so the first
            player's advantage cancels.
    """
    top = next((level for level in range(2, COUNT + 2) if level not in pairings), COUNT + 1) - 1
    if top < 2:
        return {}
    counts = np.zeros((top, top, 3), np.int64)
    for level in range(2, top + 1):
        counts[level - 1, level - 2] = dataclasses.astuple(pairings[level])
    found = fit([str(level) for level in range(1, top + 1)], counts, advantage=False)
    ratings, games = {}, 0
    for index in range(top):
        games += pairings[index + 1].games if index else 0
        elo, error = float(found.elo[index] - found.elo[0]), CONFIDENCE * found.difference_error(index, 0)
        ratings[index + 1] = Rating(round(elo, 1), round(error, 1), games)
    return ratings


def play_pairing(game: Game[Any, Any], options: Options, level: int, games: int, seed: int) -> WinDrawLoss:
    """Play games between a level and the level below it, in pairs with the same opening and exchanged colors."""
    counts = {1.0: 0, 0.5: 0, 0.0: 0}
    with contextlib.ExitStack() as stack:
        players: list[Player[Any]] = []
        for number, own in enumerate((level, level - 1)):
            others = {"memory": MEMORY, "seed": seed + number, "max_moves": SHOGI_MOVES, "workers": 1}
            player = game.make_player(options.with_values({**level_settings(game, own, options), **others}))
            players.append(stack.enter_context(contextlib.closing(player)))
        for number in range(games):
            rng = np.random.default_rng((seed, level, number // 2))
            if number % 2 == 0:
                counts[play(game, players[0], players[1], rng)] += 1
            else:
                counts[1.0 - play(game, players[1], players[0], rng)] += 1
    return WinDrawLoss(counts[1.0], counts[0.5], counts[0.0])


def run(
    options: Options, game: Game[Any, Any], levels: Iterable[int], games: int, out: Path | None
) -> list[dict[str, Any]]:
    """Play games between each level and the level below it, and add the results to a table.

    Args:
        options: settings that the levels do not set: network, board size, rules.
        game: its descriptor.
        levels: upper levels of the pairings.
        games: number of games of each pairing, added to the games in the table.
        out: the table; None reads the package's table and writes nothing.

    Returns:
        One row for each level that has been measured so far.
    """
    subject = subject_of(game, options.with_values(level_settings(game, 1, options)))  # with the levels' network
    known = read_pairings(out or Path(str(resources.files("yomi.engine") / TABLE))).get(subject, {})
    seconds: dict[int, float] = {}
    for level in levels:
        begin = time.monotonic()
        before = known.get(level, WinDrawLoss())
        known[level] = before + play_pairing(game, options, level, games, 1000 * level + before.games)
        seconds[level] = (time.monotonic() - begin) / games
        if out is not None:
            _write(out, subject, known)
    ratings = rate(known)
    return [_row(level, known[level], ratings, seconds.get(level)) for level in sorted(known)]


def _row(level: int, pairing: WinDrawLoss, ratings: Mapping[int, Rating], seconds: float | None) -> dict[str, Any]:
    rating = ratings.get(level)
    return {
        "level": str(level),
        "against": str(level - 1),
        "games": pairing.games,
        "won": pairing.wins,
        "drawn": pairing.draws,
        "lost": pairing.losses,
        "elo_above_level_1": None if rating is None else round(rating.elo),
        "error": None if rating is None else round(rating.error),
        "seconds_a_game": seconds,
    }


def read_pairings(path: Path) -> dict[str, dict[int, WinDrawLoss]]:
    """Return the pairings in a table by subject and upper level; empty if there is no table yet.

    Raises:
        LevelsError: the file has another form.
    """
    try:
        data: dict[str, Any] = parse_json(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return {
            subject: {
                int(level): WinDrawLoss(*map(operator.index, counts)) for level, counts in entry["pairings"].items()
            }
            for subject, entry in data.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LevelsError(f"{path}: broken ({error}), expected the table of `yomi bench levels`") from None


def _write(path: Path, subject: str, known: Mapping[int, WinDrawLoss]) -> None:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    data[subject] = {
        "date": time.strftime("%Y-%m-%d"),
        "cores": usable_cores(),
        "pairings": {str(level): list(dataclasses.astuple(known[level])) for level in sorted(known)},
        "ratings": {str(level): dataclasses.asdict(rating) for level, rating in rate(known).items()},
    }
    write_atomically(path, (json.dumps(data, indent=1, sort_keys=True) + "\n").encode())
