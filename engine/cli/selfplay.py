"""`yomi selfplay`: games of the engine against itself, written as records."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from yomi.engine.cli.flags import add_settings, settings_of
from yomi.engine.cli.games import add_games
from yomi.engine.cli.loading import add_options, check_limited, collect, visits_without_limit
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.registry import GAMES
from yomi.engine.selfplay import COMMAND, DEFAULTS, VISITS, SelfplaySettings, open_series
from yomi.engine.signals import ended_by_a_signal
from yomi.language import counted

USAGE = "yomi selfplay GAME [options]"
EPILOG = """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay shogi --games 100 --net model.onnx --format csa hcpe
"""


def add(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, COMMAND, "Let the engine play {} against itself and write game records"):
        add_settings(child, SelfplaySettings)
        add_settings(child, game.settings_kind(COMMAND))
        shown = {**DEFAULTS, **game.defaults.get(COMMAND, {}), "visits": VISITS}
        add_options(child, game, leave_out=("ponder", "stochastic_ponder", "lag", "level"), defaults=shown)


def run(args: argparse.Namespace) -> int:
    from yomi.engine.cli.bars import Bar

    game, settings = GAMES[args.game], settings_of(SelfplaySettings, args)
    limit = visits_without_limit(args, VISITS, game)
    options = collect(args, game, **{**DEFAULTS, **game.defaults.get(COMMAND, {}), **limit})
    check_limited(options, game)
    set_up_logs(options)
    series = open_series(game, settings, settings_of(game.settings_kind(COMMAND), args), options, say)
    start = time.perf_counter()
    winners, moves = Counter[int](), 0
    try:
        with ended_by_a_signal():
            for number in Bar(range(settings.games), unit="game", file=sys.stderr):
                played = series.play(number)
                winners[played.ended.winner] += 1
                moves += len(played.game.moves)
    finally:  # the summary comes even after Ctrl-C
        series.close()
        seconds, games = time.perf_counter() - start, winners.total()
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
                folder=settings.out,
            )
        )
    return 0
