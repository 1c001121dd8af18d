"""`yomi selfplay`: games of the engine against itself, written as records.

The loop over games and files is here; what a game adds is how one is played (selfplay_go, selfplay_shogi).
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.flags import add_options, check_limited, collect, visits_without_limit
from engine.cli.games import add_games
from engine.cli.selfplay_games import Played, Series
from engine.cli.signals import ended_by_a_signal
from engine.color import BLACK, WHITE
from nets.files import write_atomically

if TYPE_CHECKING:
    from engine.options import Value

USAGE = "yomi selfplay GAME [options]"
EPILOG = """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay shogi --games 100 --net model.onnx --format csa hcpe
"""

EPILOGS = {
    "go": """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay go --games 20 --size 9 --playouts 1000 --temperature 0.5 --temperature-moves 8 --seed 1

Unless told otherwise: 200 visits a move, temperature 1 for the first 10 moves, a quarter of noise at the root, and no
resignation. The comment of each move holds winrate and lead for the side that plays it.
""",
    "shogi": """\
examples:
  yomi selfplay shogi --games 100 --net model.onnx --visits 400 --format csa hcpe --out games
  yomi selfplay shogi --games 20 --openings openings.sfen --temperature 0 --root-noise 0

Unless told otherwise: 200 visits a move, temperature 1 for the first 20 moves, a quarter of noise at the root, no
resignation, and a draw after 320 moves. Each move's evaluation is written in centipawns. Openings are a file of
records or of lines `startpos moves ...`, taken in turn. hcpe goes into one file, games.hcpe, which grows.
""",
}

DEFAULT_VISITS = 200
COMMON: dict[str, Value] = {"temperature": 1.0, "root_noise": 0.25, "resign": False}
DEFAULTS = {"go": {**COMMON, "temperature_moves": 10}, "shogi": {**COMMON, "temperature_moves": 20, "max_moves": 320}}
"""Options that are others here than elsewhere."""
FORMATS = ("csa", "kif", "usi", "hcpe")
SUFFIXES = {"csa": ".csa", "kif": ".kifu", "usi": ".usi", "hcpe": ".hcpe"}
"""Endings of the file names: a `.kifu` is KIF in UTF-8."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each game, with its flags."""
    children = add_games(parser, "selfplay", "Let the engine play {} against itself and write game records", EPILOGS)
    for game, child in children.items():
        child.add_argument("--games", type=int, default=10, metavar="N", help="number of games (default: 10)")
        child.add_argument(
            "--out",
            type=Path,
            default=Path("selfplay"),
            metavar="FOLDER",
            help="where the records go (default: selfplay)",
        )
        if game == "shogi":
            child.add_argument(
                "--format", nargs="+", choices=FORMATS, default=["csa"], help="forms of the records (default: csa)"
            )
            child.add_argument("--openings", type=Path, metavar="FILE", help="positions or lines to begin with")
        shown = {**DEFAULTS[game], "visits": DEFAULT_VISITS}
        add_options(child, leave_out=("ponder", "stochastic_ponder", "lag"), game=game, defaults=shown)


class Files:
    """Names the files of games in a folder; nothing that is there is overwritten."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which exists."""
        self.folder = folder
        self._numbers = itertools.count(1)

    def write(self, files: dict[str, bytes]) -> None:
        """Write the records of one game under the next free number; hcpe is appended to one file for all.

        A name appears only once its content is complete; part of a record at the end of hcpe is cut off.
        """
        number = next(n for n in self._numbers if not any(self._path(n, suffix).exists() for suffix in files))
        for suffix, data in files.items():
            if suffix == ".hcpe":
                _append_hcpe(self.folder / "games.hcpe", data)
            else:
                write_atomically(self._path(number, suffix), data)

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"game-{number:05d}{suffix}"


def _append_hcpe(path: Path, data: bytes) -> None:
    """Append records behind the whole ones of a file: a full disk or a kill may have left part of one."""
    from engine.shogi.records.hcpe import HCPE_DTYPE

    with path.open("ab") as file:
        file.truncate(file.tell() // HCPE_DTYPE.itemsize * HCPE_DTYPE.itemsize)
        file.write(data)


def open_series(args: argparse.Namespace) -> Series:
    """Return what plays the games.

    Raises:
        CliError: an option or a file is wrong, or the player cannot be made.
    """
    limit = visits_without_limit(args, DEFAULT_VISITS, args.game)
    options = collect(args, args.game, **DEFAULTS[args.game], **limit)
    check_limited(options, args.game)
    logs.set_up(options)
    if args.game == "go":
        from engine.cli.selfplay_go import GoSeries

        return GoSeries.open(options)
    from engine.cli.selfplay_shogi import ShogiSeries

    suffixes = tuple(dict.fromkeys(SUFFIXES[name] for name in args.format))
    return ShogiSeries.open(options, suffixes, args.openings)


def run(args: argparse.Namespace) -> int:
    """Play the games and print a summary."""
    from tqdm import tqdm

    if args.games < 1:
        raise CliError(f"--games {args.games}: expected at least 1")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"--out {args.out}: {error.strerror}") from None
    series = open_series(args)
    start = time.monotonic()
    games: list[Played] = []
    files = Files(args.out)
    try:
        with ended_by_a_signal():
            for number in tqdm(range(args.games), unit="game", file=sys.stderr):
                game = series.play(number)
                files.write(game.files)
                games.append(game)
    except OSError as error:
        raise CliError(f"--out {args.out}: {error.strerror}") from None
    finally:  # what has been played is told whatever ends the games
        series.close()
        print(f"{_summary(games, time.monotonic() - start)}; records in {args.out}")
    return 0


def _summary(games: list[Played], seconds: float) -> str:
    """Return who won how many games, and how fast they were."""
    black = sum(game.winner == BLACK for game in games)
    white = sum(game.winner == WHITE for game in games)
    moves = sum(game.moves for game in games)
    counted = f"{len(games)} game{'s' if len(games) != 1 else ''}"
    drawn = len(games) - black - white
    return (
        f"{counted} in {seconds:.1f} s: Black won {black}, White {white}, drawn {drawn};"
        f" {moves / max(len(games), 1):.1f} moves a game, {moves / seconds:.1f} moves/s"
    )
