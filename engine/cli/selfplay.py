"""`yomi selfplay`: games of the engine against itself, written as records."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from yomi.engine.arguments import add_value, check_counts
from yomi.engine.cli.games import add_flags, add_games
from yomi.engine.cli.loading import (
    add_options,
    check_limited,
    collect,
    visits_without_limit,
)
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.cli.signals import ended_by_a_signal
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.play import Ended, G, play_game
from yomi.engine.registry import GAMES
from yomi.language import counted
from yomi.nets.files import append_whole, check_folder, naming, write_atomically

if TYPE_CHECKING:
    from yomi.engine.game import Game, Recorder
    from yomi.engine.learning.rows import Collection
    from yomi.engine.options import Value
    from yomi.engine.players.player import Player
    from yomi.engine.players.request import Decision

COMMAND = "selfplay"
USAGE = "yomi selfplay GAME [options]"
EPILOG = """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay shogi --games 100 --net model.onnx --format csa hcpe
"""

DEFAULT_VISITS = 200
# Options of all games whose defaults differ from other commands
DEFAULTS: dict[str, Value] = {"temperature": 1.0, "root_noise": 0.25, "resign": False}


@dataclass(frozen=True, slots=True)
class Played(Generic[G]):
    game: G
    ended: Ended
    files: dict[str, bytes]


def add(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, COMMAND, "Let the engine play {} against itself and write game records"):
        add_value(child, "--games", 10, "N", "play this many games")
        text = "write records to this folder (default: selfplay)"
        child.add_argument("--out", type=Path, default=Path("selfplay"), metavar="FOLDER", help=text)
        child.add_argument("--rows", type=Path, metavar="FOLDER", help="add positions to this data set")
        add_flags(child, COMMAND, game)
        shown = {**DEFAULTS, **game.defaults.get(COMMAND, {}), "visits": DEFAULT_VISITS}
        add_options(child, game, leave_out=("ponder", "stochastic_ponder", "lag", "level"), defaults=shown)


class Files:
    """Names the files of games in a folder. Existing files are never overwritten."""

    def __init__(self, folder: Path, row_bytes: Mapping[str, int]) -> None:
        self.folder = folder
        self._row_bytes = row_bytes
        self._numbers = itertools.count(1)

    def write(self, files: dict[str, bytes]) -> None:
        """Write the records of a game under the next free number. Rows of all games are appended to one file."""
        number = next(n for n in self._numbers if not any(self._path(n, suffix).exists() for suffix in files))
        for suffix, data in files.items():
            if suffix in self._row_bytes:
                _append(self.folder / f"games{suffix}", data, self._row_bytes[suffix])
            else:
                write_atomically(self._path(number, suffix), data)

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"game-{number:05d}{suffix}"


def _append(path: Path, data: bytes, row_bytes: int) -> None:
    """Append rows. Part of a row at the end of the file, left by a full disk or a kill, is removed."""
    with naming(path), path.open("ab", buffering=0) as file:
        file.truncate(file.tell() // row_bytes * row_bytes)
        append_whole(file, data)


class Series(Generic[G]):
    """Games of a player against itself, one after the other. Rows of them go to the collection."""

    def __init__(
        self, game: Game[G, Any], player: Player[G], recorder: Recorder[G], collection: Collection[G] | None = None
    ) -> None:
        self.game, self.player, self.recorder, self.collection = game, player, recorder, collection

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
        return Played(played, ended, recorder.files(played, ended, player.description))


def open_series(args: argparse.Namespace) -> Series[Any]:
    game = GAMES[args.game]
    limit = visits_without_limit(args, DEFAULT_VISITS, game)
    options = collect(args, game, **{**DEFAULTS, **game.defaults.get(COMMAND, {}), **limit})
    check_limited(options, game)
    set_up_logs(options)
    recorder = game.recorder(args, options)
    player = game.load_player(options, say)
    if args.rows is None:
        return Series(game, player, recorder, None)
    from yomi.engine.learning.rows import Collection
    from yomi.nets.errors import NetworkError

    try:
        return Series(game, player, recorder, Collection(args.rows, game.learnable(options)))
    except (NetworkError, OSError) as error:
        player.close()
        raise CliError(f"--rows {error}") from None


def run(args: argparse.Namespace) -> int:
    from yomi.engine.cli.bars import Bar

    check_counts(args, games=1)
    check_folder(args.out)
    series = open_series(args)
    args.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    winners, moves = Counter[int](), 0
    files = Files(args.out, series.recorder.row_bytes)
    try:
        with ended_by_a_signal():
            for number in Bar(range(args.games), unit="game", file=sys.stderr):
                game = series.play(number)
                files.write(game.files)
                winners[game.ended.winner] += 1
                moves += len(game.game.moves)
    finally:  # the summary comes even after Ctrl-C
        series.close()
        seconds, games = time.monotonic() - start, winners.total()
        echo(
            counted(
                "{n} game in {seconds} s: Black won {black}, White {white}, drawn {drawn}; {moves} moves a game,"
                " {speed} moves/s; records in {folder}",
                "{n} games in {seconds} s: Black won {black}, White {white}, drawn {drawn}; {moves} moves a game,"
                " {speed} moves/s; records in {folder}",
                games,
                seconds=f"{seconds:.1f}",
                black=winners[BLACK],
                white=winners[WHITE],
                drawn=winners[DRAW],
                moves=f"{moves / max(games, 1):.1f}",
                speed=f"{moves / seconds:.1f}",
                folder=args.out,
            )
        )
    return 0
