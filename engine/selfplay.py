"""Games of the engine against itself, and their records. `yomi selfplay` runs them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from yomi.engine.color import BLACK, WHITE
from yomi.engine.play import Ended, G, play_game
from yomi.errors import LineError
from yomi.nets.errors import NetworkError
from yomi.nets.files import append_whole, check_folder, naming, write_atomically
from yomi.settings import number, option

if TYPE_CHECKING:
    from yomi.engine.game import Game, Recorder, Say
    from yomi.engine.learning.rows import Collection
    from yomi.engine.options import Options, Value
    from yomi.engine.players.player import Player
    from yomi.engine.players.request import Decision

COMMAND = "selfplay"
VISITS = 200  # of a move if no limit is set
# Options of all games whose defaults differ from other commands
DEFAULTS: dict[str, Value] = {"temperature": 1.0, "root_noise": 0.25, "resign": False}


@dataclass(frozen=True)
class SelfplaySettings:
    games: int = number(10, 1, None, "play this many games")
    out: str | None = option("selfplay", "write records to this folder", kind="file", word="FOLDER")
    rows: str | None = option(None, "add positions to this data set", kind="file", word="FOLDER")


class RowsError(LineError):
    """The positions of the games cannot be added to a data set."""


@dataclass(frozen=True, slots=True)
class Played(Generic[G]):
    game: G
    ended: Ended
    files: dict[str, bytes]  # the record by the ending of a file's name


class Files:
    """Names the files of games in a folder. Existing files are never overwritten."""

    def __init__(self, folder: Path, row_bytes: Mapping[str, int]) -> None:
        self.folder = folder
        self._row_bytes = row_bytes
        self._numbers = itertools.count(1)

    def write(self, files: dict[str, bytes]) -> None:
        """Write the files of a game's record under the next free number. Rows of all games go into one file."""
        number = next(n for n in self._numbers if not any(self._path(n, suffix).exists() for suffix in files))
        for suffix, data in files.items():
            if suffix in self._row_bytes:
                _append(self.folder / f"games{suffix}", data, self._row_bytes[suffix])
            else:
                write_atomically(self._path(number, suffix), data)

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"game-{number:05d}{suffix}"


def _append(path: Path, data: bytes, row_bytes: int) -> None:
    """Append rows to a file. First remove an incomplete row at its end, which a full disk or a kill may have left."""
    with naming(path), path.open("ab", buffering=0) as file:
        file.truncate(file.tell() // row_bytes * row_bytes)
        append_whole(file, data)


class Series(Generic[G]):
    """Games of a player against itself, one after the other. Rows and records of each game are written to files."""

    def __init__(
        self,
        game: Game[G, Any],
        player: Player[G],
        recorder: Recorder[G],
        collection: Collection[G] | None = None,
        files: Files | None = None,
    ) -> None:
        self.game, self.player, self.recorder, self.collection, self.files = game, player, recorder, collection, files

    def close(self) -> None:
        self.player.close()
        if self.collection is not None:
            self.collection.close()

    def play(self, number: int) -> Played[G]:
        player, recorder = self.player, self.recorder
        played = recorder.begin(number)
        player.new_game(played)
        if self.collection is not None:
            self.collection.begin(played)

        def record(decision: Decision, seconds: float) -> None:
            recorder.record(played, decision, seconds)
            if self.collection is not None:
                self.collection.note(played, decision)

        ended = play_game(played, {BLACK: player, WHITE: player}, self.game.referee(player), record)
        if self.collection is not None:
            self.collection.end(played, ended, player.description)
        files = recorder.files(played, ended, player.description)
        if self.files is not None:
            self.files.write(files)
        return Played(played, ended, files)


def open_series(game: Game[G, Any], settings: SelfplaySettings, own: object, options: Options, say: Say) -> Series[G]:
    """Load the player of a series, and make its folders.

    The caller plays `settings.games` games and then closes the series.

    Args:
        game: Go, shogi or another game.
        settings: settings of the series.
        own: the game's settings for this command.
        options: options of the engine.
        say: receives lines of progress.

    Raises:
        OptionError, EvaluatorError, RowsError, OSError: a setting is wrong, or the engine cannot be loaded.
    """
    folder = None if settings.out is None else Path(settings.out)
    if folder is not None:
        check_folder(folder)
    recorder = game.recorder(own, options)
    player = game.load_player(options, say)
    try:
        collection = None if settings.rows is None else _open_rows(game, Path(settings.rows), options)
        files = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            files = Files(folder, recorder.row_bytes)
    except BaseException:
        player.close()
        raise
    return Series(game, player, recorder, collection, files)


def _open_rows(game: Game[G, Any], folder: Path, options: Options) -> Collection[G]:
    from yomi.engine.learning.rows import Collection

    try:
        return Collection(folder, game.learnable(options))
    except (NetworkError, OSError) as error:
        raise RowsError(f"--rows {error}") from None
