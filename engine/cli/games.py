"""The games that there are, and what commands add for each: a subcommand, and flags."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from engine.game import Game
from engine.go.descriptor import GAME as GO
from engine.shogi.descriptor import GAME as SHOGI

if TYPE_CHECKING:
    from nets.data.sparse import SparseEncoder

__all__ = ["GAMES", "GO", "SHOGI", "add_flags", "add_games", "find_encoder"]

GAMES: dict[str, Game[Any, Any]] = {game.name: game for game in (GO, SHOGI)}
"""By name; whoever has another one adds it here before `main` runs."""


def find_encoder(name: str) -> SparseEncoder | None:
    """Return the encoder of a feature set's boards, None where there is none."""
    from nets.features import feature_set

    return GAMES[feature_set(name).game].encoder(name)


def add_games(
    parser: argparse.ArgumentParser, command: str, text: str, children: Any = None
) -> list[tuple[Game[Any, Any], argparse.ArgumentParser]]:
    """Add a subcommand for every game that has this command, kept as `game` in the arguments.

    Args:
        parser: of the command.
        command: its name.
        text: what it does, with {} for the game.
        children: the command's subparsers, if it has others than those of games; they are kept as `game` too.

    Returns:
        The games with their parsers, to which the flags of a game only are still to be added.
    """
    if children is None:
        children = add_children(parser, command, "GAME", "games")
    return [
        (
            game,
            children.add_parser(
                name,
                help=text.format(name),
                usage=f"yomi {command} {name} [options]",
                description=text.format(name) + ".",
                epilog=game.examples[command],
            ),
        )
        for name, game in GAMES.items()
        if command in game.examples
    ]


def add_children(parser: argparse.ArgumentParser, command: str, metavar: str, title: str) -> Any:
    """Return what adds subparsers to the parser of a command."""
    return parser.add_subparsers(dest="game", metavar=metavar, required=True, title=title, prog=f"yomi {command}")


def add_flags(group: argparse._ActionsContainer, command: str, game: Game[Any, Any]) -> None:
    """Add the flags that a command has for a game only."""
    if command in game.flags:
        game.flags[command](group)
