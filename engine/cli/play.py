"""`yomi play go`: a game against the engine in the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli import logs
from engine.cli.errors import CliError
from engine.cli.flags import add_options, collect
from engine.cli.make import load_player

if TYPE_CHECKING:
    from engine.players.base import Player

USAGE = "yomi play go [options]"
EPILOG = """\
examples:
  yomi play go --size 9 --seconds 2
  yomi play go --net b6c96.bin.gz --color white --handicap 4 --komi 0.5

In the game: a vertex such as D4 plays there; pass, undo, hint, score, board, save FILE, resign, help, quit.
"""

COMMANDS = """\
D4          play there
pass        pass; two passes end the game
undo        take back your last move and the answer to it
hint        what the engine would play
score       the score as the board stands, dead stones taken off
board       draw the board again
save FILE   write the game as SGF
resign      give up
quit        leave"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("what", choices=["go"], metavar="go", help="the game (go)")
    parser.add_argument(
        "--color", choices=["black", "white", "none"], default="black", help="your color; none: watch (default: black)"
    )
    parser.add_argument(
        "--handicap", type=int, default=0, metavar="N", help="handicap stones for Black, 2 to 9 (default: 0)"
    )
    add_options(parser, leave_out=("ponder",))


class Terminal:
    """One game; `read` returns a line that the user types (EOFError at the end), `write` shows text."""

    def __init__(self, player: Player, human: int | None, read: Callable[[str], str], write: Callable[[str], None]):
        """Play with `player`; `human` is the user's color, None to watch."""
        self.player = player
        self.human = human
        self.read = read
        self.write = write
        self.result: str | None = None
        """Set when the game is over: as in SGF."""

    def run(self) -> None:
        """Play until the end of the game or of the input."""
        self.write(f"{self.player.description}. Type help for the commands.")
        self.write(str(self.player.game))
        while self.result is None:
            game = self.player.game
            if game.is_over:
                self.result = self._score()
            elif game.side_to_move != self.human:
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
        from engine.games.go.vertex import format_color

        line = self._line(f"{format_color(self.player.game.side_to_move)}> ")
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
                    self.write(COMMANDS)
                case "board":
                    self.write(str(self.player.game))
                case "undo":
                    self._undo()
                case "hint":
                    self._hint()
                case "score":
                    self.write(self._score())
                case "save":
                    self._save(rest.strip())
                case "resign":
                    self._resign()
                case _:
                    self._play(line)
        except ValueError as error:  # a vertex, a move or a file that cannot be: the message says what was expected
            self.write(str(error))

    def _play(self, text: str) -> None:
        from engine.games.go.vertex import parse_vertex

        game = self.player.game
        if self.result is not None:
            raise ValueError("the game is over: expected save FILE or quit")
        game.play(game.side_to_move, parse_vertex(text, game.size))
        self.write(str(game))

    def _undo(self) -> None:
        game = self.player.game
        if self.result is not None:
            raise ValueError("the game is over: expected save FILE or quit")
        game.undo()
        if game.moves and game.side_to_move != self.human:
            game.undo()
        self.write(str(game))

    def _answer(self) -> None:
        from engine.games.go.vertex import format_color, format_vertex

        game = self.player.game
        color = game.side_to_move
        decision = self.player.genmove(color)
        if decision.resign:
            self.result = f"{format_color(3 - color)}+R"
            self.write(f"{format_color(color)} resigns.")
            return
        game.play(color, decision.move)
        report = decision.report
        self.write(str(game))
        self.write(
            f"{format_color(color)} {format_vertex(decision.move, game.size)}: winrate {100 * report.winrate:.1f}%,"
            f" lead {report.score_lead:+.1f}, {report.visits} visits, {report.seconds:.1f} s"
        )

    def _hint(self) -> None:
        from engine.games.go.vertex import format_vertex

        game = self.player.game
        report = self.player.genmove(game.side_to_move).report
        for move in report.moves[:5]:
            pv = " ".join(format_vertex(point, game.size) for point in move.pv[:8])
            self.write(f"{100 * move.winrate:5.1f}%  {move.score_lead:+6.1f}  {move.visits:7d} visits  {pv}")

    def _score(self) -> str:
        from engine.games.go.game import score_text
        from engine.games.go.scoring import dead_stones

        game = self.player.game
        return score_text(game.final_score(dead_stones(game, self.player.final_ownership())))

    def _resign(self) -> None:
        from engine.games.go.vertex import format_color

        if self.result is None:
            self.result = f"{format_color(3 - self.player.game.side_to_move)}+R"

    def _save(self, path: str) -> None:
        from engine.games.go.sgf import to_sgf

        if not path:
            raise ValueError("expected a file name after save")
        names = {1: {"black": "you", "white": "yomi"}, 2: {"black": "yomi", "white": "you"}}
        players = names.get(self.human or 0, {"black": "yomi", "white": "yomi"})
        try:
            Path(path).write_text(to_sgf(self.player.game, result=self.result or "", **players), encoding="utf-8")
        except OSError as error:
            raise ValueError(f"cannot write {path}: {error.strerror}") from None
        self.write(f"saved {path}")


def run(args: argparse.Namespace) -> int:
    """Play one game."""
    options = collect(args)
    logs.set_up(options)
    player = load_player(options)
    try:
        if args.handicap:
            from engine.games.go.handicap import HandicapError, fixed_handicap

            try:
                player.game.place_handicap(fixed_handicap(args.handicap, player.game.size))
            except HandicapError as error:
                raise CliError(f"--handicap {args.handicap}: {error}") from None
        human = {"black": 1, "white": 2, "none": None}[args.color]
        Terminal(player, human, input, print).run()
    finally:
        player.close()
    return 0
