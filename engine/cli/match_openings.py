"""The openings of a match, from files or from short searches of yomi."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from engine.cli import logs
from engine.color import BLACK, WHITE
from engine.options import Options

POLICY = "policy"
POLICY_MOVES = 8
POLICY_VISITS = 32
"""Of the search before each move, which is drawn with its visits as chances: they follow the policy, but for moves that
the next one refutes."""


def make_openings(settings: argparse.Namespace, game: str, known: Sequence[str] = ()) -> list[str]:
    """Return the openings that the settings want; a single empty one where they want none.

    Args:
        settings: of the match.
        game: go or shogi.
        known: those that the match has already; they stay, and more are drawn where its games have become more. Where
            there are not enough, those that are found are returned.

    Raises:
        MatchError: a file cannot be read, or there are too few.
        CliError: the engine that makes them cannot be made.
    """
    from engine.matches.openings import load_openings, shuffled

    wanted = (settings.games + 1) // 2
    if known and (settings.openings != POLICY or len(known) >= wanted):
        return list(known)
    if settings.openings is None:
        return [""]
    if settings.openings != POLICY:
        found = load_openings(Path(settings.openings), game, settings.opening_moves, settings.size)
        return shuffled(found, settings.opening_seed)
    moves = settings.opening_moves or POLICY_MOVES
    options = Options.for_game(game)
    without_network = "rollouts" if game == "go" else "material"
    values = {
        "visits": POLICY_VISITS, "temperature": 1.0, "temperature_moves": moves, "resign": False, "workers": 1,
        "seed": settings.opening_seed, "net": settings.opening_net and str(settings.opening_net),
        "evaluator": "auto" if settings.opening_net else without_network,
    }  # fmt: skip
    for name, value in values.items():
        options.set(name, value)
    if game == "go":
        options.set("size", settings.size)
    found = _policy_openings(game, options, moves, wanted, known)
    if len(found) < wanted:
        logs.say(f"--openings policy: only {len(found)} different ones of {moves} moves are found; they come again")
    return found


def _policy_openings(name: str, options: Options, moves: int, wanted: int, known: Sequence[str]) -> list[str]:
    from engine.cli.games import GAMES
    from engine.cli.make import load_player
    from engine.matches.openings import draw_openings
    from engine.play import FirstMoves, PlayerSide, play_game

    game = GAMES[name]
    player = load_player(game, options)
    side = PlayerSide(player)

    def draw() -> str:
        opening = game.new_game(options)
        player.new_game(opening)
        play_game(opening, {BLACK: side, WHITE: side}, FirstMoves(moves))
        return game.format_opening(opening)

    try:
        return draw_openings(draw, wanted, known)
    finally:
        player.close()
