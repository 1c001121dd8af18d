"""`yomi play`: a game against the engine in the terminal.

The loop and the commands that all games share are here; what a game adds is its table (play_go, play_shogi).
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.flags import add_options, collect
from engine.cli.games import add_games
from engine.cli.signals import ended_by_a_signal
from engine.color import BLACK, WHITE
from engine.options import TABLE
from engine.players.levels import COUNT, FULL, describe_level, level_settings

if TYPE_CHECKING:
    from engine.options import Options, Value

USAGE = "yomi play GAME [options]"
EPILOG = """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play shogi --net model.onnx --color white
  yomi play shogi --help
"""

EPILOGS = {
    "go": """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play go --size 9 --level 3 --save game.sgf
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
The game is saved when it ends or is left, by Ctrl-C or a closed terminal, too.
""",
    "shogi": """\
examples:
  yomi play shogi --seconds 2
  yomi play shogi --level 2 --save game.kifu
  yomi play shogi --net model.onnx --color white --book-file book.bin
  yomi play shogi --sfen "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"

In the game: a move in USI (7g7f, 8h2b+, P*5e), CSA (7776FU) or Japanese (７六歩, 76歩, 同銀) is played; undo, hint,
score, declare, board, sfen, save FILE, resign, help, quit.
The game is saved when it ends or is left, by Ctrl-C or a closed terminal, too.
""",
}

COMMANDS = """\
undo        take back your last move and the answer to it
hint        the best moves, at full strength
score       who is ahead, at full strength
board       draw the board again
resign      give up
quit        leave"""

COLORS = {"black": BLACK, "white": WHITE, "none": None}

AUTO = "auto"
"""For --save: a name made from date and time."""
SUFFIXES = {"go": (".sgf",), "shogi": (".kifu", ".kif", ".csa", ".usi", ".sfen")}
"""Endings of the names of saved games; the first is that of AUTO."""
ADVICE_SECONDS = 1.0
"""Time for a hint or a score where a level is played."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine did in its turn."""

    text: str
    """One line, shown below the board."""
    result: str | None = None
    """Set when this ended the game, without a move on the board."""


class Table(Protocol):
    """A game and the engine that plays in it. What the user types wrongly raises ValueError with one line."""

    commands: str
    """The game's own commands, a line each."""

    @property
    def description(self) -> str:
        """What plays, on one line."""

    @property
    def side_to_move(self) -> int:
        """1 or 2."""

    @property
    def prompt(self) -> str:
        """The side to move, shortly."""

    def board(self) -> str:
        """Return the board as text."""

    def ended(self) -> str | None:
        """Return the result where the game is over by its rules."""

    def play(self, text: str) -> None:
        """Play what the user typed."""

    def undo(self) -> bool:
        """Take the last move back; whether there are more."""

    def answer(self) -> Answer:
        """Let the engine move (or end the game)."""

    def hint(self) -> list[str]:
        """Return the engine's best moves, a line each."""

    def score(self) -> str:
        """Return who is ahead."""

    def resigned(self) -> str:
        """Return the result when the side to move gives up."""

    def command(self, word: str, rest: str) -> Answer | None:
        """Obey a command of this game; None where it has no such command."""

    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        """Write the game to a file; `names` are Black's and White's."""

    def close(self) -> None:
        """Release the engine."""


class Terminal:
    """One game; `read` returns a line that the user types (EOFError at the end), `write` shows text."""

    def __init__(
        self,
        table: Table,
        human: int | None,
        read: Callable[[str], str],
        write: Callable[[str], None],
        save: str | None = None,
        level: str = "",
    ) -> None:
        """Sit down at a table.

        Args:
            table: the game.
            human: the user's color, None to watch.
            read: see above.
            write: see above.
            save: file that the game is saved in when it is left; None for none.
            level: what the user is told of the engine's level.
        """
        self.table = table
        self.human = human
        self.read = read
        self.write = write
        self.result: str | None = None
        """Set when the game is over."""
        self._save_to = save
        self._level = level
        self._is_saved = True

    def run(self) -> None:
        """Play until the end of the game or of the input; save the game, whatever ends it."""
        try:
            self._play()
            self._save_at_last()
        except BaseException:  # it may also have come while the game was being saved
            self._save_at_last()
            raise

    def _play(self) -> None:
        table = self.table
        self.write(f"{table.description}. Type help for the commands.")
        if self._level:
            self.write(self._level[0].upper() + self._level[1:])
        self.write(table.board())
        while self.result is None:
            self.result = table.ended()
            if self.result is not None:
                break
            if table.side_to_move != self.human:
                self._answer()
            elif not self._ask():
                return
        self.write(f"Result: {self.result}")
        self._after()

    def _after(self) -> None:
        """Let the user save the game."""
        while self.human is not None:
            line = self._line("save FILE or quit> ")
            if line is None or line == "quit":
                return
            self._command(line)

    def _line(self, prompt: str) -> str | None:
        try:
            return self.read(prompt).strip()
        except EOFError:
            return None

    def _ask(self) -> bool:
        """Handle one line of the user; False when he leaves."""
        line = self._line(f"{self.table.prompt}> ")
        if line is None or line.lower() in ("quit", "exit", "q"):
            return False
        if line:
            self._command(line)
        return True

    def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        try:
            match word.lower():
                case "help" | "?":
                    self.write(f"{self.table.commands}\n{COMMANDS}")
                case "board":
                    self.write(self.table.board())
                case "undo":
                    self._undo()
                case "hint":
                    self.write("\n".join(self.table.hint()))
                case "score":
                    self.write(self.table.score())
                case "save":
                    self.write(self._save(rest.strip()))
                case "resign":
                    self.result = self.result or self.table.resigned()
                    self._is_saved = False
                case name:
                    self._other(name, rest.strip(), line)
        except ValueError as error:  # a move or a file that cannot be: the message says what was expected
            self.write(str(error))

    def _other(self, word: str, rest: str, line: str) -> None:
        """Obey a command of the game, or play a move."""
        answer = self.table.command(word, rest)
        if answer is not None:
            self.write(answer.text)
            self.result = self.result or answer.result
            self._is_saved = self._is_saved and answer.result is None
            return
        self._check_running()
        self.table.play(line)
        self._is_saved = False
        self.write(self.table.board())

    def _check_running(self) -> None:
        if self.result is not None:
            raise ValueError("the game is over: expected save FILE or quit")

    def _undo(self) -> None:
        self._check_running()
        if self.table.undo() and self.table.side_to_move != self.human:
            self.table.undo()
        self._is_saved = False
        self.write(self.table.board())

    def _answer(self) -> None:
        answer = self.table.answer()
        self._is_saved = False
        self.result = answer.result
        if answer.result is None:
            self.write(self.table.board())
        self.write(answer.text)

    def _save(self, path: str) -> str:
        """Save the game and return what the user is told."""
        if not path:
            raise ValueError("expected a file name after save")
        names = {BLACK: ("you", "yomi"), WHITE: ("yomi", "you")}
        self.table.save(path, names.get(self.human or 0, ("yomi", "yomi")), self.result or "")
        self._save_to, self._is_saved = path, True
        return f"saved {path}"

    def _save_at_last(self) -> None:
        """Save what is not saved yet, in the file that was named last."""
        if self._save_to is None or self._is_saved:
            return
        try:
            told = self._save(self._save_to)
        except ValueError as error:
            told = str(error)
        with contextlib.suppress(OSError):  # the terminal may have gone
            self.write(told)


def add(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each game, with its flags."""
    children = add_games(parser, "play", "Play {} against the engine in the terminal", EPILOGS)
    for game, child in children.items():
        child.add_argument(
            "--color",
            choices=list(COLORS),
            default="black",
            help="your color; none: watch (default: black)",
        )
        child.add_argument(
            "--level",
            choices=[*map(str, range(1, COUNT + 1)), FULL],
            default=FULL,
            help=f"strength, from a beginner's (1) to {COUNT}; max: full strength (default: max)",
        )
        child.add_argument(
            "--save",
            metavar="FILE",
            default=AUTO,
            help=f"save the game there when it ends or is left; the ending tells the form: {' '.join(SUFFIXES[game])}"
            " (default: a name made from date and time)",
        )
        child.add_argument("--no-save", dest="save", action="store_const", const=None, help="do not save the game")
        if game == "go":
            child.add_argument(
                "--handicap", type=int, default=0, metavar="N", help="handicap stones for Black, 2 to 9 (default: 0)"
            )
        else:
            child.add_argument("--sfen", metavar="SFEN", help="position to begin with (default: that of a game)")
            child.add_argument(
                "--board",
                choices=["auto", "japanese", "letters"],
                default="auto",
                help="how pieces are drawn; auto: Japanese where the terminal can show it (default: auto)",
            )
        add_options(child, leave_out=("ponder", "stochastic_ponder"), game=game)


def with_level(args: argparse.Namespace) -> tuple[Options, str]:
    """Return the options with those of the level, and what the user is told of it."""
    options = collect(args, args.game)
    if args.level == FULL:
        return options, ""
    level = int(args.level)
    settings = level_settings(args.game, level, has_network=options.net is not None)
    options = collect(args, args.game, **settings)
    changed = [name for name, value in settings.items() if options.get(name) != value]
    text = describe_level(args.game, options, level)
    return options, f"{text}, changed by {', '.join(changed)}" if changed else text


def advice_settings(args: argparse.Namespace) -> dict[str, Value]:
    """Return the options for hints and scores, where the engine plays at a level: those of full strength."""
    if args.level == FULL:
        return {}
    settings = level_settings(args.game, int(args.level), has_network=True)
    defaults = {name: TABLE[name].default_for(args.game) for name in settings if TABLE[name].live}
    return defaults | {"visits": None, "seconds": ADVICE_SECONDS}


def file_to_save(name: str | None, game: str) -> str | None:
    """Return the file that a game is to be saved in.

    Raises:
        CliError: an ending that tells no form, or a folder that does not exist.
    """
    if name is None:
        return None
    suffixes = SUFFIXES[game]
    if name == AUTO:
        return time.strftime("yomi-%Y%m%d-%H%M%S") + suffixes[0]
    path = Path(name)
    if path.suffix.lower() not in suffixes:
        raise CliError(f"--save {name}: expected a name ending in {' '.join(suffixes)}")
    if not path.parent.is_dir():
        raise CliError(f"--save {name}: no folder {path.parent}")
    return name


def run(args: argparse.Namespace) -> int:
    """Play one game."""
    options, level = with_level(args)
    save = file_to_save(args.save, args.game)
    logs.set_up(options)
    advice = advice_settings(args)
    table: Table
    if args.game == "go":
        from engine.cli.play_go import open_table as open_go

        table = open_go(options, args.handicap, advice)
    else:
        from engine.cli.play_shogi import open_table as open_shogi

        table = open_shogi(options, args.sfen, args.board, advice)
    try:
        with ended_by_a_signal():
            Terminal(table, COLORS[args.color], input, print, save, level).run()
    finally:
        table.close()
    return 0
