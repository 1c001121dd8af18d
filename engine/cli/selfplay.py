"""`yomi selfplay go`: games of the engine against itself, written as SGF."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.flags import add_options, collect
from engine.cli.make import load_player

if TYPE_CHECKING:
    from engine.players.base import Player

USAGE = "yomi selfplay go [options]"
EPILOG = """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay go --games 20 --size 9 --playouts 1000 --temperature 0.5 --temperature-moves 8 --seed 1

Unless told otherwise: 200 visits a move, temperature 1 for the first 10 moves, a quarter of noise at the root, and no
resignation. The comment of each move holds winrate and lead for the side that plays it.
"""

MOVES_PER_POINT = 3
"""Moves for each point of the board after which a game is scored as it stands."""


@dataclass
class Played:
    """One finished game."""

    sgf: str
    score: float
    """Black minus White; +-inf for a resignation."""
    moves: int


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("what", choices=["go"], metavar="go", help="the game (go)")
    parser.add_argument("--games", type=int, default=10, metavar="N", help="number of games (default: 10)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("selfplay"),
        metavar="FOLDER",
        help="where the SGF files go (default: selfplay)",
    )
    add_options(parser, leave_out=("ponder", "lag"))


def play_game(player: Player) -> Played:
    """Play one game from an empty board under the present game's size, rules and komi."""
    from engine.games.go.game import GoGame, score_text
    from engine.games.go.scoring import dead_stones
    from engine.games.go.sgf import to_sgf

    old = player.game
    game = player.game = GoGame(old.size, old.rules, old.komi)
    player.new_game()
    comments = [""]
    resigned = 0
    while not game.is_over and not resigned and len(game.moves) < MOVES_PER_POINT * game.size**2:
        color = game.side_to_move
        decision = player.genmove(color)
        if decision.resign:
            resigned = color
            break
        game.play(color, decision.move)
        report = decision.report
        comments.append(f"{100 * report.winrate:.1f}% {report.score_lead:+.1f} {report.visits} visits")
    if resigned:
        score = float("-inf") if resigned == 1 else float("inf")
        result = "W+R" if resigned == 1 else "B+R"
    else:
        score = game.final_score(dead_stones(game, player.final_ownership()))
        result = score_text(score)
    name = player.description
    text = to_sgf(game, comments, black=name, white=name, result=result, date=time.strftime("%Y-%m-%d"))
    return Played(text, score, len(game.moves))


def file_names(folder: Path) -> Iterator[Path]:
    """Yield names in a folder that do not exist yet."""
    number = 1
    while True:
        path = folder / f"game-{number:05d}.sgf"
        if not path.exists():
            yield path
        number += 1


def run(args: argparse.Namespace) -> int:
    """Play the games and print a summary."""
    from tqdm import tqdm

    if args.games < 1:
        raise CliError(f"--games {args.games}: expected at least 1")
    limits = {} if any(hasattr(args, name) for name in ("playouts", "seconds")) else {"visits": 200}
    options = collect(args, temperature=1.0, temperature_moves=10, root_noise=0.25, resign=False, **limits)
    logs.set_up(options)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(f"--out {args.out}: {error.strerror}") from None
    player = load_player(options)
    start = time.monotonic()
    games: list[Played] = []
    names = file_names(args.out)
    try:
        for _ in tqdm(range(args.games), unit="game", file=sys.stderr):
            games.append(play_game(player))
            next(names).write_text(games[-1].sgf, encoding="utf-8")
    finally:
        player.close()
    black = sum(game.score > 0 for game in games)
    white = sum(game.score < 0 for game in games)
    moves = sum(game.moves for game in games)
    seconds = time.monotonic() - start
    print(
        f"{len(games)} games in {seconds:.1f} s: Black won {black}, White {white}, drawn {len(games) - black - white};"
        f" {moves / len(games):.1f} moves a game, {moves / seconds:.1f} moves/s; records in {args.out}"
    )
    return 0
