"""Self-play, learning and data sets: the work of the commands, with their defaults.

The laboratory (matches, learning, data sets) is imported when it is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

from yomi.engine.options import Options, rows_for
from yomi.engine.registry import GAMES
from yomi.library import arguments
from yomi.library.analysis import keep_stderr_quiet, reported, safe_children
from yomi.library.arguments import Progress, no_progress, plain
from yomi.library.position import Position, Result
from yomi.settings import OptionError, make_settings

Value: TypeAlias = bool | int | float | str | PathLike[str] | Sequence[Any] | None
Loss: TypeAlias = Callable[[dict[str, Any], Any, dict[str, Any], Any], Any]
"""Returns the loss to minimize, a tensor: see `learn`."""


@dataclasses.dataclass(frozen=True)
class SelfplayGame:
    """A finished game of the engine against itself."""

    game: Position[Any]
    """The game at its end: yomi.go.Game or yomi.shogi.Game."""
    result: Result
    files: dict[str, bytes]
    """The record by the ending of a file's name, such as {".sgf": ...}."""


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
    folder = None if out is None else arguments.path("out", out)
    kind = descriptor.settings_kind(work.COMMAND)
    given, others, own = arguments.divided(options, (row.name for row in rows_for(game)), work.SelfplaySettings, kind)
    defaults = {**work.DEFAULTS, **descriptor.defaults.get(work.COMMAND, {})}
    if all(given.get(name) is None for name in ("seconds", "visits", "playouts", "depth")):
        defaults["visits"] = work.VISITS
    settings = make_settings(work.SelfplaySettings, {**others, "games": games, "out": plain(folder)})
    engine = Options.for_game(game).with_values({**defaults, **given})
    with reported(progress):
        series = work.open_series(descriptor, settings, make_settings(kind, own), engine, progress)
    found: list[SelfplayGame] = []
    with contextlib.closing(series):
        for number in range(games):
            played = series.play(number)
            result = Result(played.ended.winner, played.ended.detail or played.ended.ending)
            found.append(SelfplayGame(_position(game, played.game), result, played.files))
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
        game: go or shogi.
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

    descriptor = _descriptor(game)
    kind = descriptor.settings_kind(work.COMMAND)
    known = (row.name for row in rows_for(game) if row.name in work.BOARD)
    if isinstance(until := settings.get("until"), tuple | list):
        settings["until"] = tuple(map(str, until))  # ("uniform", 0.9)
    given, run, own, learned = arguments.divided(settings, known, work.RunSettings, kind, LearnSettings)
    options = Options.for_game(game).with_values({**descriptor.defaults.get(work.COMMAND, {}), **given})
    made, found = make_settings(work.RunSettings, run), make_settings(kind, own)
    with reported(progress), safe_children():
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

    folder = arguments.path("out", out)
    if (records is None) == (game is None):
        raise OptionError("records and game: expected one of them")
    if game is not None:
        descriptor, command = _descriptor(game), "dataset play"
    else:
        features = arguments.one_of("features", settings.get("features", MakeSettings().features), FEATURE_SETS)
        descriptor, command = _descriptor(FEATURE_SETS[features].game), "dataset make"
    made = make_settings(descriptor.settings_kind(command), {name: plain(value) for name, value in settings.items()})
    with reported(progress):
        if records is None:
            descriptor.play_dataset(folder, made, ShardWork(command), progress)
        else:
            paths = [records] if isinstance(records, str | PathLike) else records
            files = [arguments.path("records", path) for path in arguments.items("records", paths, "a list of paths")]
            descriptor.make_dataset(files, folder, made, ShardWork(command), progress)
    return folder


def _descriptor(game: str) -> Any:
    keep_stderr_quiet()
    return GAMES[arguments.one_of("game", game, GAMES)]


def _position(game: str, raw: Any) -> Position[Any]:
    from importlib import import_module

    return cast(Position[Any], import_module(f"yomi.{game}").Game._of(raw))
