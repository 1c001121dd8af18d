"""A game in the terminal: the loop and the commands that all games share."""

from __future__ import annotations

import abc
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from yomi.engine.color import BLACK, WHITE
from yomi.engine.play import G, PlayerSide
from yomi.engine.players.request import Request
from yomi.engine.records import printable

if TYPE_CHECKING:
    from yomi.engine.options import Value
    from yomi.engine.players.player import Player
    from yomi.engine.players.request import Decision

YOU, ENGINE = "you", "yomi"  # the players' names in records
COMMANDS = """\
undo        take back your last move and the answer to it
hint        the best moves, at full strength
score       who is ahead, at full strength
board       draw the board again
resign      give up
quit        leave"""


@dataclass(frozen=True, slots=True)
class TurnResult:
    text: str  # one line, below the board
    result: str | None = None  # set if this ended the game without a move on the board


class TerminalGame(abc.ABC, Generic[G]):
    """A game and its engine. Wrong input of the user raises ValueError with one line."""

    commands: str  # the game's own commands, one a line
    for_advice: Mapping[str, Value] = {}  # options of all searches for hints and scores

    def __init__(self, player: Player[G], game: G, advice: Mapping[str, Value] | None = None) -> None:
        """`advice` are the options for hints and scores that differ from the player's."""
        self.player = player
        self.game = game
        self._advice = advice or {}

    @property
    def description(self) -> str:
        return self.player.description

    @property
    def side_to_move(self) -> int:
        return self.game.side_to_move

    @property
    @abc.abstractmethod
    def prompt(self) -> str:
        """The side to move, in a word or two."""

    def board(self) -> str:
        return str(self.game)

    @abc.abstractmethod
    def ended(self) -> str | None:
        """Return the result if the game is over by its rules."""

    @abc.abstractmethod
    def play(self, text: str) -> None: ...

    def undo(self) -> bool:
        """Take back the last move, and return whether there are more."""
        self.game.undo()
        return bool(self.game.moves)

    def take_turn(self) -> TurnResult:
        """Let the engine move, or end the game."""
        return self.obey(PlayerSide(self.player).choose(self.game))

    @abc.abstractmethod
    def obey(self, decision: Decision) -> TurnResult:
        """Play the engine's decision."""

    @abc.abstractmethod
    def hint(self) -> list[str]:
        """Return the engine's best moves, a line each."""

    @abc.abstractmethod
    def score(self) -> str: ...

    @abc.abstractmethod
    def resigned(self) -> str: ...

    def command(self, word: str, rest: str) -> TurnResult | None:
        """Obey a command of this game, or return None if it is unknown."""
        return None

    @abc.abstractmethod
    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        """Write the game to a file. `names` are Black's and White's."""

    def close(self) -> None:
        self.player.close()

    def search(self) -> Decision:
        """Search for a hint or a score.

        With options of advice the tree is dropped afterwards, so that a level does not profit from the search.
        """
        options = self.player.options.with_values({**self._advice, **self.for_advice})
        try:
            return self.player.decide(Request(self.game, options, hide_history=options.ignore_pre_root_history))
        finally:
            if self._advice:
                self.player.clear()


class Terminal:
    """One game. `read` returns the user's line (EOFError at the end), `write` shows text."""

    def __init__(
        self,
        game: TerminalGame[Any],
        human: int | None,
        read: Callable[[str], str],
        write: Callable[[str], None],
        save: str | None = None,
        level: str = "",
        *,
        is_draft: bool = False,
    ) -> None:
        """Prepare a game.

        Args:
            game: with its engine.
            human: the user's color; None: watch.
            read: see above.
            write: see above.
            save: file that receives the game after every move.
            level: description of the engine's level.
            is_draft: whether to remove the file `save` once the user has saved the game in another.
        """
        self.game = game
        self.human = human
        self.read = read
        self.write = write
        self.result: str | None = None  # set when the game is over
        self._save_to = save
        self._draft = save if is_draft else None
        self._level = level
        self._is_saved = True  # whether a file that the user knows contains the current game
        self._complaint = ""  # last error of saving the game

    def _tell(self, text: str) -> None:
        """Show a message. File names in it cannot control the terminal; boards have colors."""
        self.write(printable(text, keep="\n"))

    def run(self) -> None:
        """Play until the end of the game or of the input. Save the game after every move, and always at the end."""
        try:
            self._play()
            self._save_at_last()
        except BaseException:  # it may also have come while the game was being saved
            self._save_at_last()
            raise

    def _play(self) -> None:
        game = self.game
        self.write(f"{game.description}. Type help for the commands.")
        if self._level:
            self.write(self._level[0].upper() + self._level[1:])
        self.write(game.board())
        while self.result is None:
            self._keep()
            self.result = game.ended()
            if self.result is not None:
                break
            if game.side_to_move != self.human:
                self._take_turn()
            elif not self._ask():
                return
        self.write(f"Result: {self.result}")
        self._after()

    def _after(self) -> None:
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
        """Handle one line of the user, and return False to leave."""
        line = self._line(f"{self.game.prompt}> ")
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
                    self.write(f"{self.game.commands}\n{COMMANDS}")
                case "board":
                    self.write(self.game.board())
                case "undo":
                    self._undo()
                case "hint":
                    self.write("\n".join(self.game.hint()))
                case "score":
                    self.write(self.game.score())
                case "save":
                    self._tell(self._save(rest.strip()))
                case "resign":
                    self.result = self.result or self.game.resigned()
                    self._is_saved = False
                case name:
                    self._other(name, rest.strip(), line)
        except ValueError as error:  # a move or a file that cannot be: the message says what was expected
            self._tell(str(error))

    def _other(self, word: str, rest: str, line: str) -> None:
        """Obey a command of the game, or play a move."""
        obeyed = self.game.command(word, rest)
        if obeyed is not None:
            self.write(obeyed.text)
            self.result = self.result or obeyed.result
            self._is_saved = self._is_saved and obeyed.result is None
            return
        self._check_running()
        try:
            self.game.play(line)
        except ValueError as error:
            if word.isascii() and word.isalpha():  # only pass is a move without a digit
                raise ValueError(f"{error}; help lists the commands") from None
            raise
        self._is_saved = False
        self.write(self.game.board())

    def _check_running(self) -> None:
        if self.result is not None:
            raise ValueError("the game is over: expected save FILE or quit")

    def _undo(self) -> None:
        self._check_running()
        if self.game.undo() and self.game.side_to_move != self.human:
            self.game.undo()
        self._is_saved = False
        self.write(self.game.board())

    def _take_turn(self) -> None:
        turn = self.game.take_turn()
        self._is_saved = False
        self.result = turn.result
        if turn.result is None:
            self.write(self.game.board())
        self.write(turn.text)

    def _save(self, path: str) -> str:
        if not path:
            raise ValueError("expected a file name after save")
        self._write_game(path)
        self._save_to, self._is_saved = path, True
        return f"saved {path}"

    def _write_game(self, path: str) -> None:
        names = {BLACK: (YOU, ENGINE), WHITE: (ENGINE, YOU)}
        self.game.save(path, names.get(self.human or 0, (ENGINE, ENGINE)), self.result or "")

    def _keep(self) -> None:
        """Save the game, because the process may be killed. A fault is reported once."""
        if self._save_to is None or self._is_saved:
            return
        try:
            self._write_game(self._save_to)
        except ValueError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                self._tell(f"the game is not saved yet: {error}")

    def _save_at_last(self) -> None:
        """Save the game in the last named file, and remove the draft if it is another file."""
        if self._save_to is None:
            return
        if not self._is_saved:
            try:
                told = self._save(self._save_to)
            except ValueError as error:
                told = str(error)
            with contextlib.suppress(OSError):  # the terminal may have gone
                self._tell(told)
        if self._draft is None or not self._is_saved:
            return
        try:
            if not os.path.samefile(self._draft, self._save_to):
                os.unlink(self._draft)
        except FileNotFoundError:
            pass  # the user has saved the game before the first move
        except OSError as error:
            self._tell(f"cannot remove {self._draft}: {error.strerror}")
