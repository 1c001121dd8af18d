"""Commands that exist for each game: one subcommand a game, with the options of that game."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.options import GAMES

if TYPE_CHECKING:
    from engine.game import Game

__all__ = ["GAMES", "add_games", "describe"]


def describe(name: str) -> Game[Any, Any]:
    """Return the descriptor of a game of GAMES; its kernels are imported, so that they must be compiled before."""
    game: Game[Any, Any] = importlib.import_module(f"engine.{name}.descriptor").GAME
    return game


def add_games(
    parser: argparse.ArgumentParser, command: str, text: str, epilogs: Mapping[str, str]
) -> dict[str, argparse.ArgumentParser]:
    """Add a subcommand for every game, kept as `game` in the arguments, and return their parsers.

    Args:
        parser: of the command.
        command: its name.
        text: what it does, with {} for the game.
        epilogs: examples by game.
    """
    children = parser.add_subparsers(dest="game", metavar="GAME", required=True, title="games", prog=f"yomi {command}")
    return {
        game: children.add_parser(
            game,
            help=text.format(game),
            usage=f"yomi {command} {game} [options]",
            description=text.format(game) + ".",
            epilog=epilogs[game],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for game in GAMES
    }
