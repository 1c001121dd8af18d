"""Games on the command line: subcommands, flags and the last lines of the help for each game."""

import argparse
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from yomi.engine.cli.parser import CliError, sentence
from yomi.engine.game import Game
from yomi.engine.registry import GAMES, find_game, game_of_network
from yomi.language import tr
from yomi.nets.user_files import is_in_file

HELP = ("-h", "--help", "--help-all")
EXAMPLES = {
    "go": {
        "play": """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play go --size 9 --level 3 --save game.sgf
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE continues it.
""",
        "selfplay": """\
examples:
  yomi selfplay go --games 100 --size 9 --net b6c96.bin.gz --visits 200 --out games
  yomi selfplay go --games 20 --size 9 --playouts 1000 --temperature 0.5 --temperature-moves 8 --seed 1

Defaults: 200 visits a move, temperature 1 for the first 10 moves, a quarter of noise at the root, no resignation. The
comment of each move contains winrate and lead for the side that plays it.
""",
        "duel": """\
examples:
  yomi duel go --size 9 --visits 200 --first c_puct=1.3 --second c_puct=1.0 --games 400
  yomi duel go --size 9 --first net=new.bin.gz --second net=old.bin.gz --sprt 0,20 --games 10000

Games are played to the end and scored as the board stands. The default komi is that of the rules. --first and --second
take options of networks and search, visits, and rollout_weight.
""",
        "tune": """\
example:
  yomi tune go --size 9 --visits 200 --parameter c_puct 0.5:2.0 --parameter fpu_reduction 0:0.5 --games 4000

Games are played as by yomi duel.
""",
        "learn": """\
examples:
  yomi learn go --size 5 --hours 2
  yomi learn go --size 7 --visits 200 --out seven
  yomi learn go --size 9 --sizes 7 8 --any-rules --handicap-share 0.05

Games are played to the end. The default rules are Tromp-Taylor's. The komi varies around the mean score of recent
games.
""",
        "dataset play": """\
examples:
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 500000 --out data/9
  yomi dataset play go --teacher b6c96.bin.gz --size 9 --positions 100000 --visits 64 --out data/9-searched

The network's policy plays, and its outputs label the positions. With --visits, searches label the kept positions; the
network alone still plays.
""",
    },
    "shogi": {
        "play": """\
examples:
  yomi play shogi --seconds 2
  yomi play shogi --level 2 --save game.kifu
  yomi play shogi --net model.onnx --color white --book-file book.bin
  yomi play shogi --handicap 2-piece

In the game: a move in USI (7g7f, 8h2b+, P*5e), CSA (7776FU) or Japanese (７六歩, 76歩, 同銀) is played; undo, hint,
score, declare, board, sfen, save FILE, resign, help, quit.
The game is saved after every move; --resume FILE continues it.
""",
        "selfplay": """\
examples:
  yomi selfplay shogi --games 100 --net model.onnx --visits 400 --format csa hcpe --out games
  yomi selfplay shogi --games 20 --openings openings.sfen --temperature 0 --root-noise 0

Defaults: 200 visits a move, temperature 1 for the first 20 moves, a quarter of noise at the root, no resignation, and a
draw after 320 moves. Records contain each move's evaluation in centipawns. Openings are a file of records or of lines
`startpos moves ...`, taken in turn. All games share one hcpe file, games.hcpe, which grows. hcpe3, CSA and --rows also
contain the visits of the searches.
""",
        "duel": """\
examples:
  yomi duel shogi --net model.onnx --visits 100 --first c_puct=2.5 --second c_puct=2.88 --openings taya36.sfen
  yomi duel shogi --first net=new.onnx --second net=old.onnx --sprt 0,20 --games 10000

Games end by mate, declaration, repetition, or after 320 moves (--max-moves). --first and --second take options of
networks and of the search, visits, leaf_mate_depth and all_legal_moves. root_mate_search is off here.
""",
        "tune": """\
example:
  yomi tune shogi --net model.onnx --visits 100 --parameter c_puct 1.5:4.5 --parameter fpu_reduction 0.2:0.9

Games are played as in yomi duel.
""",
        "learn": """\
examples:
  yomi learn shogi --hours 24
  yomi learn shogi --openings balanced.sfen --network net.toml --out shogi-10x128

Games begin with the usual position, or with lines drawn at random from a file. They end by mate, declaration,
repetition, or after 320 moves (--max-moves). Records contain evaluations and visits as comments:
yomi dataset convert FOLDER/games GAMES.hcpe3 turns them into training data for dlshogi.
""",
        "dataset play": """\
examples:
  yomi dataset play shogi --engine fairy-stockfish --nodes 1000 --positions 1000000 --out games/shogi
  yomi dataset play shogi --engine "engine --usi ;; option.USI_Hash=64" --nodes 3000 --openings balanced.sfen \\
      --positions 1000000 --out games/shogi
  yomi dataset make games/shogi --features dlshogi-62-57 --out data/shogi

The engine is the command line of a USI engine; settings follow after ` ;; ` as for `yomi match`. Positions,
evaluations, moves and results are written as hcpe. A game begins with an opening, up to a random ply of it, and random
moves; a few later moves are random, too. Positions before random moves and repeated positions are left out. The same
command continues a run, also with more --positions.
""",
    },
}


def add_games(
    parser: argparse.ArgumentParser, command: str, text: str, children: Any = None
) -> list[tuple[Game[Any, Any], argparse.ArgumentParser]]:
    """Add a subcommand for each game that has this command. Return the games with their parsers.

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
                epilog=EXAMPLES.get(name, {}).get(command, ""),
            ),
        )
        for name, game in GAMES.items()
        if command in game.commands
    ]


def add_children(parser: argparse.ArgumentParser, command: str, metavar: str, title: str) -> Any:
    return parser.add_subparsers(dest="game", metavar=metavar, required=True, title=title, prog=f"yomi {command}")


def with_game(words: Sequence[str]) -> list[str]:
    """Return a command line with its game: `play --resume a.sgf` becomes `play go --resume a.sgf`.

    Changes only commands of `add_games`, and only if a file in the flags determines the game.
    """
    if len(words) > 1 and is_in_file(words[1]) and not words[1].startswith("-"):
        own = find_game(words[1])
        if words[0] not in own.commands:
            raise CliError(f"{words[1]}: yomi {words[0]} plays go and shogi; expected one of {', '.join(own.commands)}")
        GAMES[own.name] = own
        return [words[0], own.name, *words[2:]]
    for length in (1, 2):
        command, rest = " ".join(words[:length]), words[length:]
        games = [name for name, game in GAMES.items() if command in game.commands]
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
    """Return words in which the game comes before the flags: `--size 9 go` becomes `go --size 9`."""
    for index in range(2, len(words)):
        if words[index] in GAMES and words[0].startswith("-") and not words[index - 1].startswith("-"):
            return [words[index], *words[:index], *words[index + 1 :]]
    return [*words]


def split_game(words: Sequence[str], by_flag: str | None) -> tuple[str | None, list[str]]:
    """Split words into a game (the first word, or the value of --game) and a list of engines."""
    if not words or words[0] not in GAMES:
        return by_flag, list(words)
    if by_flag not in (None, words[0]):
        raise CliError(f"{words[0]} with --game {by_flag}: expected one game")
    return words[0], list(words[1:])


def ending_fault(flag: str, name: str, endings: Sequence[str]) -> str:
    """Return an error message about the suffix of a saved game's name."""
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
    """Return the game of a saved game (--resume) or a network (--net, --teacher) that flags name, or None."""
    values = _values(flags)
    suffix = Path(values.get("--resume", "")).suffix.lower()
    for game in GAMES.values():
        if suffix in game.save_suffixes:
            return game.name
    networks = [values[flag] for flag in ("--net", "--teacher") if values.get(flag)]
    return game_of_network(networks[0]) if networks else None
