"""`yomi play`: a game against the engine in the terminal.

The loop and the commands that all games share are here; what a game adds is its table (play_go, play_shogi).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.cli import logs
from engine.cli.flags import add_options, collect
from engine.cli.games import add_games

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
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
""",
    "shogi": """\
examples:
  yomi play shogi --seconds 2
  yomi play shogi --net model.onnx --color white --book-file book.bin
  yomi play shogi --sfen "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"

In the game: a move in USI (7g7f, 8h2b+, P*5e), CSA (7776FU) or Japanese (７六歩, 76歩, 同銀) is played; undo, hint,
declare, board, sfen, save FILE, resign, help, quit.
""",
}

COMMANDS = """\
undo        take back your last move and the answer to it
hint        what the engine would play
board       draw the board again
resign      give up
quit        leave"""

COLORS = {"black": 1, "white": 2, "none": None}


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

    def __init__(self, table: Table, human: int | None, read: Callable[[str], str], write: Callable[[str], None]):
        """Play at `table`; `human` is the user's color, None to watch."""
        self.table = table
        self.human = human
        self.read = read
        self.write = write
        self.result: str | None = None
        """Set when the game is over."""

    def run(self) -> None:
        """Play until the end of the game or of the input."""
        table = self.table
        self.write(f"{table.description}. Type help for the commands.")
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
                case "save":
                    self._save(rest.strip())
                case "resign":
                    self.result = self.result or self.table.resigned()
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
            return
        self._check_running()
        self.table.play(line)
        self.write(self.table.board())

    def _check_running(self) -> None:
        if self.result is not None:
            raise ValueError("the game is over: expected save FILE or quit")

    def _undo(self) -> None:
        self._check_running()
        if self.table.undo() and self.table.side_to_move != self.human:
            self.table.undo()
        self.write(self.table.board())

    def _answer(self) -> None:
        answer = self.table.answer()
        self.result = answer.result
        if answer.result is None:
            self.write(self.table.board())
        self.write(answer.text)

    def _save(self, path: str) -> None:
        if not path:
            raise ValueError("expected a file name after save")
        names = {1: ("you", "yomi"), 2: ("yomi", "you")}
        self.table.save(path, names.get(self.human or 0, ("yomi", "yomi")), self.result or "")
        self.write(f"saved {path}")


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


def run(args: argparse.Namespace) -> int:
    """Play one game."""
    options = collect(args, args.game)
    logs.set_up(options)
    table: Table
    if args.game == "go":
        from engine.cli.play_go import open_table as open_go

        table = open_go(options, args.handicap)
    else:
        from engine.cli.play_shogi import open_table as open_shogi

        table = open_shogi(options, args.sfen, args.board)
    try:
        Terminal(table, COLORS[args.color], input, print).run()
    finally:
        table.close()
    return 0
