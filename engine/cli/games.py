"""The subcommands and flags that commands add for each game."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from yomi.engine.cli.parser import CliError, sentence
from yomi.engine.game import Game
from yomi.engine.registry import GAMES, game_of_network
from yomi.language import tr

HELP = ("-h", "--help", "--help-all")


def add_games(
    parser: argparse.ArgumentParser, command: str, text: str, children: Any = None
) -> list[tuple[Game[Any, Any], argparse.ArgumentParser]]:
    """Add a subcommand for every game that has this command, and return the games with their parsers.

    The parsed name is `args.game`. `text` is the help, with {} for the game; `children` are the command's subparsers,
    if it has subcommands other than games.
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
                description=sentence(text.format(name)),
                epilog=game.examples[command],
            ),
        )
        for name, game in GAMES.items()
        if command in game.examples
    ]


def add_children(parser: argparse.ArgumentParser, command: str, metavar: str, title: str) -> Any:
    return parser.add_subparsers(dest="game", metavar=metavar, required=True, title=title, prog=f"yomi {command}")


def add_flags(group: argparse._ActionsContainer, command: str, game: Game[Any, Any]) -> None:
    if command in game.flags:
        game.flags[command](group)


def with_game(words: Sequence[str]) -> list[str]:
    """Return a command line with its game: `play --resume a.sgf` becomes `play go --resume a.sgf`.

    Changes only commands of `add_games`, and only if a file in the flags determines the game.
    """
    for length in (1, 2):
        command, rest = " ".join(words[:length]), words[length:]
        games = [name for name, game in GAMES.items() if command in game.examples]
        if not games or (rest and not rest[0].startswith("-")):
            continue
        if (moved := game_first(rest)) != rest:
            return [*words[:length], *moved]
        game = game_in_flags(rest)
        if game is None and any(word in rest for word in HELP):
            continue
        if game is None and (resumed := _values(rest).get("--resume")):
            raise CliError(
                ending_fault("--resume", resumed, [end for each in games for end in GAMES[each].save_suffixes])
            )
        if game is None:
            lines = tr(" or ").join(f"yomi {command} {name}" for name in games)
            found = tr(
                "yomi {command} without a game: expected {lines} (see yomi {command} --help)",
                command=command,
                lines=lines,
            )
            raise CliError(found)
        return [*words[:length], game, *rest]
    return [*words]


def game_first(words: Sequence[str]) -> list[str]:
    """Return words with the game before the flags: `--size 9 go` becomes `go --size 9`."""
    for index in range(2, len(words)):
        if words[index] in GAMES and words[0].startswith("-") and not words[index - 1].startswith("-"):
            return [words[index], *words[:index], *words[index + 1 :]]
    return [*words]


def split_game(words: Sequence[str], by_flag: str | None) -> tuple[str | None, list[str]]:
    """Return the game before a list of engines, or that of --game, and the engines."""
    if not words or words[0] not in GAMES:
        return by_flag, list(words)
    if by_flag not in (None, words[0]):
        raise CliError(f"{words[0]} with --game {by_flag}: expected one game")
    return words[0], list(words[1:])


def ending_fault(flag: str, name: str, endings: Sequence[str]) -> str:
    """Return an error message about the name of a saved game."""
    found = tr("is a folder, ") if Path(name).is_dir() else ""
    return tr(
        "{flag} {name}: {found}expected a name ending in {endings}",
        flag=flag,
        name=name,
        found=found,
        endings=" ".join(endings),
    )


def _values(flags: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for word, following in zip_longest(flags, flags[1:], fillvalue=""):
        flag, equals, value = word.partition("=")
        values[flag] = value if equals else following
    return values


def game_in_flags(flags: Sequence[str]) -> str | None:
    """Return the game of a saved game (--resume) or of a network (--net, --teacher), or None."""
    values = _values(flags)
    suffix = Path(values.get("--resume", "")).suffix.lower()
    for game in GAMES.values():
        if suffix in game.save_suffixes:
            return game.name
    networks = [values[flag] for flag in ("--net", "--teacher") if values.get(flag)]
    return game_of_network(networks[0]) if networks else None
