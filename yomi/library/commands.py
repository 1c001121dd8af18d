"""Matches, ratings, self-play, learning and data sets: the work of the commands, with their defaults."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from yomi.engine.clients.spec import spec_table
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.game import Game
from yomi.engine.matches.compare import DuelReport, duel_players
from yomi.engine.matches.compare import duel as play_duel
from yomi.engine.matches.match import match as play_match
from yomi.engine.matches.report import MatchReport, report
from yomi.engine.matches.results import GameResult, MatchError, read_results
from yomi.engine.matches.settings import (
    BOARD,
    DuelSettings,
    MatchSettings,
    SideBySideSettings,
    TuneSettings,
    duel_defaults,
    player_options,
)
from yomi.engine.matches.tuning import TuneReport, read_range
from yomi.engine.matches.tuning import tune as play_tuning
from yomi.engine.options import Options, rows_for
from yomi.engine.registry import GAMES, find_game
from yomi.errors import LineError
from yomi.library import arguments
from yomi.library.analysis import keep_stderr_quiet, reported, safe_children
from yomi.library.arguments import Progress, no_progress, plain
from yomi.library.position import Position, Result
from yomi.nets.user_files import is_in_file
from yomi.settings import OptionError, make_settings

S = TypeVar("S", bound=SideBySideSettings)
Value: TypeAlias = bool | int | float | str | PathLike[str] | Sequence[Any] | None
Loss: TypeAlias = Callable[[dict[str, Any], Any, dict[str, Any], Any], Any]
"""Returns the loss to minimize, a tensor: see `learn`."""
Player: TypeAlias = str | Mapping[str, Any]
"""A player of a match: "yomi", "yomi:visits=100,net=FILE", the command line of an engine, or a table with `engine`,
`name`, limits and the other settings of [[players]] in the TOML file of `yomi match`."""


@dataclasses.dataclass(frozen=True)
class SelfplayGame:
    """A finished game of the engine against itself."""

    game: Position[Any]
    """The game at its end: yomi.go.Game or yomi.shogi.Game."""
    result: Result
    files: dict[str, bytes]
    """The record as a file, by suffix, such as {".sgf": ...}."""


def selfplay(
    game: str,
    games: int = 10,
    *,
    out: str | PathLike[str] | None = None,
    progress: Progress = no_progress,
    on_game: Callable[[SelfplayGame], None] | None = None,
    **options: Value,
) -> list[SelfplayGame]:
    """Let the engine play against itself, as `yomi selfplay` does.

    Args:
        game: go or shogi.
        games: number of games.
        out: folder that receives the records; None: no files are written.
        progress: see `Engine`.
        on_game: called with each finished game.
        options: options of the engine and other flags of `yomi selfplay`, with `_` for `-`. Without a limit a move
            takes 200 visits.

    Raises:
        Error: an option is wrong, or the engine cannot be loaded.
    """
    from yomi.engine import selfplay as work

    descriptor = _descriptor(game)
    games = arguments.whole("games", games, 1)
    folder = None if out is None else arguments.folder("out", out)
    kind = descriptor.settings_kind(work.COMMAND)
    given, others, own = arguments.divided(options, (row.name for row in rows_for(game)), work.SelfplaySettings, kind)
    defaults = {**work.DEFAULTS, **descriptor.defaults.get(work.COMMAND, {})}
    if all(given.get(name) is None for name in ("seconds", "visits", "playouts", "depth")):
        defaults["visits"] = work.VISITS
    settings = make_settings(work.SelfplaySettings, {**others, "games": games, "out": plain(folder)})
    engine = Options.for_game(game).with_values({**defaults, **given})
    with _working(progress):
        series = work.open_series(descriptor, settings, make_settings(kind, own), engine, progress)
    found: list[SelfplayGame] = []
    with contextlib.closing(series):
        for number in range(games):
            with _working(progress):
                played = series.play(number)
            result = Result(played.ended.winner, played.ended.detail or played.ended.ending)
            position = cast(Position[Any], import_module(f"yomi.{game}").Game._of(played.game))
            found.append(SelfplayGame(position, result, played.files))
            if on_game is not None:
                on_game(found[-1])
    return found


def learn(
    game: str,
    *,
    loss: Loss | None = None,
    on_generation: Callable[[dict[str, float]], None] = lambda figures: None,
    progress: Progress = no_progress,
    **settings: Value,
) -> Path:
    """Learn a game by self-play, as `yomi learn` does, and return the folder of the run.

    A run continues where it ended when it is started again with the same arguments. Ctrl-C ends it in good order.

    Args:
        game: go, shogi, or `FILE.py:NAME` (docs/how-to/games.md).
        loss: called as loss(losses, weights, outputs, labels) for each batch, returns the tensor to minimize. `losses`
            holds the mean losses by name (policy, value, ...), `weights` their weights as attributes, `outputs` the
            network's outputs by name, `labels` the inputs and labels (yomi.nets.training.tensors.Example).
        on_generation: called after each network with its figures: `generation`, `loss/policy` and other losses,
            `selfplay/games`, `training/seconds`, `match/uniform` after a ladder, and others. An exception ends the run.
        progress: receives lines about the run.
        settings: flags of `yomi learn` with `_` for `-`, such as size=5, hours=1, networks=10, out="folder".

    Raises:
        Error: a setting is wrong, PyTorch is missing, or the run cannot go on.
    """
    from yomi.engine.learning import run as work
    from yomi.engine.learning.settings import LearnSettings, learn_settings

    descriptor = _descriptor(game, by_file=True)
    if loss is not None and not callable(loss):
        raise arguments.wrong("loss", loss, "a function")
    game, kind = descriptor.name, descriptor.settings_kind(work.COMMAND)
    known = (row.name for row in rows_for(game) if row.name in work.BOARD)
    if isinstance(until := settings.get("until"), tuple | list):
        settings["until"] = tuple(map(str, until))  # ("uniform", 0.9)
    given, run, own, learned = arguments.divided(settings, known, work.RunSettings, kind, LearnSettings)
    options = Options.for_game(game).with_values({**descriptor.defaults.get(work.COMMAND, {}), **given})
    made, found = make_settings(work.RunSettings, run), make_settings(kind, own)
    with _working(progress), safe_children():
        work.learn(
            descriptor,
            made,
            learn_settings(learned),
            found,
            options,
            progress,
            named=given,
            total=loss,
            on_generation=on_generation,
        )
    return work.folder_of_run(made, game)


def dataset(
    out: str | PathLike[str],
    records: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    game: str | None = None,
    progress: Progress = no_progress,
    **settings: Value,
) -> Path:
    """Make training data, or continue it, as `yomi dataset make` and `yomi dataset play` do, and return its folder.

    Args:
        out: folder of the data.
        records: files and folders of game records.
        game: go or shogi, for data from games against itself; without records.
        progress: receives lines about the work.
        settings: flags of the command with `_` for `-`, such as features="katago-v7" or positions=1000.

    Raises:
        Error: a setting, a record or a network cannot be used.
    """
    from yomi.engine.datasets.settings import MakeSettings
    from yomi.engine.datasets.shards import ShardWork
    from yomi.nets.metadata import FEATURE_SETS

    folder = arguments.folder("out", out)
    if (records is None) == (game is None):
        raise OptionError("records and game: expected one of them")
    if game is not None:
        descriptor, command = _descriptor(game), "dataset play"
    else:
        features = arguments.one_of("features", settings.get("features", MakeSettings().features), FEATURE_SETS)
        descriptor, command = _descriptor(FEATURE_SETS[features].game), "dataset make"
    made = make_settings(descriptor.settings_kind(command), {name: plain(value) for name, value in settings.items()})
    with _working(progress):
        if records is None:
            descriptor.play_dataset(folder, made, ShardWork(command), progress)
        else:
            paths = [records] if isinstance(records, str | PathLike) else records
            files = [arguments.path("records", path) for path in arguments.items("records", paths, "a list of paths")]
            descriptor.make_dataset(files, folder, made, ShardWork(command), progress)
    return folder


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
    arguments.folder("out", out)
    given = {**settings, "game": game, "out": out}
    made = make_settings(MatchSettings, {name: plain(value) for name, value in given.items() if value is not None})
    tables = [spec_table(player) if isinstance(player, str) else player for player in found]

    def show(lines: Sequence[str], results: Sequence[GameResult]) -> None:
        for line in lines:
            progress(line)

    with _working(progress):
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
        game: go, shogi, or `FILE.py:NAME`.
        first: options of the first player that differ from the common ones.
        second: options of the second player.
        out: folder of the journal.
        progress: receives a line from time to time.
        settings: flags of `yomi duel` with `_` for `-`, such as games=400, visits=200, size=9. All games are played in
            this process, unless `processes` is more than 1.

    Raises:
        Error: a setting is wrong, or the games cannot be played.
    """
    descriptor = _descriptor(game, by_file=True)
    sides = [arguments.divided(side or {}, player_options(descriptor.name))[0] for side in (first, second)]
    players, made = _side_by_side(descriptor, DuelSettings, {**settings, "out": out}, *sides)
    names = (_name(sides[0]), _name(sides[1]))
    with _working(progress), safe_children():
        return play_duel(descriptor, players, made, names, progress)


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
        game: go, shogi, or `FILE.py:NAME`.
        parameters: low and high value, and maybe the start, by name: {"c_puct": (0.5, 2.0)}.
        out: folder of the journal.
        progress: receives a line for each iteration.
        settings: flags of `yomi tune` with `_` for `-`, such as games=4000, visits=200, size=9. All games are played in
            this process, unless `processes` is more than 1.

    Raises:
        Error: a setting is wrong, or the games cannot be played.
    """
    descriptor = _descriptor(game, by_file=True)
    ranges: dict[str, list[float]] = {}
    if not isinstance(parameters, Mapping) or not parameters:
        raise arguments.wrong("parameters", parameters, 'a mapping such as {"c_puct": (0.5, 2.0)}')
    for name, values in parameters.items():
        text = ":".join(map(str, arguments.items(name, values, "low and high value")))
        ranges.update([read_range(descriptor, name, text)])
    players, made = _side_by_side(descriptor, TuneSettings, {**settings, "out": out})
    with _working(progress), safe_children():
        return play_tuning(descriptor, players, ranges, made, progress)


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
    """Return the result of a game given as (black, white, winner)."""
    if len(triple) != 3 or not all(isinstance(name, str) for name in triple[:2]):
        raise arguments.wrong("games", triple, "two names and a winner")
    black, white, winner = triple
    if winner not in (BLACK, WHITE, DRAW):
        raise arguments.wrong("games", triple, f"yomi.BLACK, yomi.WHITE or {DRAW} as the winner")
    return GameResult(number, black, white, int(winner), ending="score")


def _side_by_side(
    game: Game[Any, Any], kind: type[S], given: Mapping[str, Any], *changes: Mapping[str, Any]
) -> tuple[tuple[Options, Options], S]:
    """Return the options of both players and the settings of their games. `changes`: options of one player only."""
    given = {"processes": 1, **given, "out": arguments.folder("out", given["out"])}
    board = [row.name for row in rows_for(game.name) if row.name in BOARD]
    named, made = arguments.divided(given, [*player_options(game.name), *board], kind)
    options = Options.for_game(game.name).with_values({**duel_defaults(game), **named})
    return duel_players(game, options, named, *changes), make_settings(kind, made)


@contextlib.contextmanager
def _working(progress: Progress) -> Iterator[None]:
    """Send messages to `progress`. A file that cannot be read or written becomes an error of yomi."""
    try:
        with reported(progress):
            yield
    except OSError as error:
        if error.filename is None:  # perhaps of a function of the caller
            raise
        raise LineError(f"{error.filename}: {error.strerror or error}") from error


def _name(options: Mapping[str, Value]) -> str:
    return ",".join(f"{name}={value}" for name, value in options.items()) or "the options"


def _descriptor(game: str, *, by_file: bool = False) -> Any:
    keep_stderr_quiet()
    if by_file and isinstance(game, str) and is_in_file(game):
        return find_game(game)
    return GAMES[arguments.one_of("game", game, GAMES)]
