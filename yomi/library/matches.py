"""Matches, duels, tunings and ratings: what the commands of the same names do, with their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from yomi.engine.clients.spec import spec_table
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.matches.compare import DuelReport, duel_players
from yomi.engine.matches.compare import duel as play_duel
from yomi.engine.matches.match import match as play_match
from yomi.engine.matches.report import MatchReport, report
from yomi.engine.matches.results import GameResult, MatchError, read_results
from yomi.engine.matches.settings import (
    BOARD,
    DuelSettings,
    MatchSettings,
    TuneSettings,
    duel_defaults,
    player_options,
)
from yomi.engine.matches.tuning import TuneReport, read_range
from yomi.engine.matches.tuning import tune as play_tuning
from yomi.engine.options import Options
from yomi.engine.registry import GAMES
from yomi.library import arguments
from yomi.library.analysis import keep_stderr_quiet, reported, safe_children
from yomi.library.arguments import Progress, no_progress, plain
from yomi.settings import make_settings

Value: TypeAlias = bool | int | float | str | PathLike[str] | Sequence[Any] | None
Player: TypeAlias = str | Mapping[str, Any]
"""A player of a match: "yomi", "yomi:visits=100,net=FILE", the command line of an engine, or a table with `engine`,
`name`, limits and the other settings of [[players]] in the TOML file of `yomi match`."""


def match(
    players: Sequence[Player],
    *,
    game: str | None = None,
    out: str | PathLike[str] = "match",
    progress: Progress = no_progress,
    **settings: Value,
) -> list[GameResult]:
    """Play a match between engines, as `yomi match` does, and return its games.

    The folder holds journal and records. A match that was interrupted continues when it is started again with the same
    arguments.

    Args:
        players: two or more.
        game: go or shogi; None: the players decide.
        out: folder of the match.
        progress: receives a line for each game.
        settings: flags of `yomi match` with `_` for `-`, such as games=10, visits=100, size=9.

    Raises:
        Error: a player or a setting is wrong, or the match cannot go on.
    """
    keep_stderr_quiet()
    expected = "a list of at least two players, each a text or a table"
    found = arguments.items("players", players, expected)
    if len(found) < 2 or not all(isinstance(player, str | Mapping) for player in found):
        raise arguments.wrong("players", found, expected)
    arguments.path("out", out)
    given = {**settings, "game": game, "out": out}
    made = make_settings(MatchSettings, {name: plain(value) for name, value in given.items() if value is not None})
    tables = [spec_table(player) if isinstance(player, str) else player for player in found]

    def show(lines: Sequence[str], results: Sequence[GameResult]) -> None:
        for line in lines:
            progress(line)

    with reported(progress):
        return play_match(made, tables, GAMES, progress, show)


def duel(
    game: str,
    first: Mapping[str, Value] | None = None,
    second: Mapping[str, Value] | None = None,
    *,
    out: str | PathLike[str] = "duel",
    progress: Progress = no_progress,
    **settings: Value,
) -> DuelReport:
    """Let two settings of the engine play each other, many games side by side, as `yomi duel` does.

    A duel that was interrupted continues when it is started again with the same arguments.

    Args:
        game: go or shogi.
        first: options of the first player that differ from the common ones.
        second: options of the second player.
        out: folder of the journal.
        progress: receives a line from time to time.
        settings: flags of `yomi duel` with `_` for `-`, such as games=400, visits=200, size=9. All games are played in
            this process, unless `processes` is more than 1.

    Raises:
        Error: a setting is wrong, or the games cannot be played.
    """
    keep_stderr_quiet()
    descriptor = GAMES[arguments.one_of("game", game, GAMES)]
    given = {"processes": 1, **settings, "out": arguments.path("out", out)}
    options, made = arguments.divided(given, [*player_options(game), *BOARD], DuelSettings)
    sides = [arguments.divided(side or {}, player_options(game))[0] for side in (first, second)]
    players = duel_players(descriptor, _options(game, options), options, *sides)
    names = (_name(sides[0]), _name(sides[1]))
    with reported(progress), safe_children():
        return play_duel(descriptor, players, make_settings(DuelSettings, made), names, progress)


def tune(
    game: str,
    parameters: Mapping[str, Sequence[float]],
    *,
    out: str | PathLike[str] = "tune",
    progress: Progress = no_progress,
    **settings: Value,
) -> TuneReport:
    """Tune parameters of the search by games between different values, as `yomi tune` does.

    A tuning that was interrupted continues when it is started again with the same arguments.

    Args:
        game: go or shogi.
        parameters: low and high value, and maybe the start, by name: {"c_puct": (0.5, 2.0)}.
        out: folder of the journal.
        progress: receives a line for each iteration.
        settings: flags of `yomi tune` with `_` for `-`, such as games=4000, visits=200, size=9. All games are played in
            this process, unless `processes` is more than 1.

    Raises:
        Error: a setting is wrong, or the games cannot be played.
    """
    keep_stderr_quiet()
    descriptor = GAMES[arguments.one_of("game", game, GAMES)]
    ranges: dict[str, list[float]] = {}
    for name, values in parameters.items():
        text = ":".join(map(str, arguments.items(name, values, "low and high value")))
        ranges.update([read_range(descriptor, name, text)])
    given = {"processes": 1, **settings, "out": arguments.path("out", out)}
    options, made = arguments.divided(given, [*player_options(game), *BOARD], TuneSettings)
    players = duel_players(descriptor, _options(game, options), options)
    with reported(progress), safe_children():
        return play_tuning(descriptor, players, ranges, make_settings(TuneSettings, made), progress)


def rate(
    games: Iterable[GameResult | tuple[str, str, int] | str | PathLike[str]],
    *,
    advantage: bool = True,
    unique: bool = False,
) -> MatchReport:
    """Return Elo ratings with mean 0 by maximum likelihood, as `yomi rate` does; `str` of the result is its table.

    Args:
        games: results of `match`; (black, white, winner) with the winner BLACK, WHITE or 0; journals, records, folders.
        advantage: also fit the advantage of the first player.
        unique: leave out games with the same moves as an earlier game.

    Raises:
        Error: a file cannot be read, or there is no game.
    """
    results: list[GameResult] = []
    paths: list[Path] = []
    for each in arguments.items("games", games, "a list of results, triples or paths"):
        if isinstance(each, GameResult):
            results.append(each)
        elif isinstance(each, tuple):
            results.append(_result(len(results), each))
        else:
            paths.append(arguments.path("games", each))
    if paths:
        results += read_results(paths, list(GAMES.values()), None)
    if not results:
        raise MatchError("no games found, expected at least one")
    return report(results, advantage=advantage, unique=unique)


ratings = rate  # the name in version 0.2.0


def _result(number: int, triple: tuple[Any, ...]) -> GameResult:
    """Return the result of a game of (black, white, winner)."""
    if len(triple) != 3 or not all(isinstance(name, str) for name in triple[:2]):
        raise arguments.wrong("games", triple, "two names and a winner")
    black, white, winner = triple
    if winner not in (BLACK, WHITE, DRAW):
        raise arguments.wrong("games", triple, f"yomi.BLACK, yomi.WHITE or {DRAW} as the winner")
    return GameResult(number, black, white, int(winner), ending="score")


def _options(game: str, given: Mapping[str, Any]) -> Options:
    return Options.for_game(game).with_values({**duel_defaults(GAMES[game]), **given})


def _name(options: Mapping[str, Value]) -> str:
    return ",".join(f"{name}={value}" for name, value in options.items()) or "the options"
