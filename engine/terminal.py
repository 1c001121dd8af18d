"""A game in the terminal: the loop and the commands that all games share."""

from __future__ import annotations

import abc
import contextlib
import os
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from yomi.engine.color import BLACK, WHITE
from yomi.engine.mistakes import WARNING_SECONDS, WARNING_VISITS, is_worth_warning
from yomi.engine.play import G
from yomi.engine.players.request import Request
from yomi.engine.screen import CLEAR
from yomi.errors import printable
from yomi.language import tr

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
# Japanese words for commands, understood in any language
WORDS = {
    "待った": "undo",
    "ヒント": "hint",
    "形勢": "score",
    "形勢判断": "score",
    "盤": "board",
    "盤面": "board",
    "投了": "resign",
    "負けました": "resign",
    "終了": "quit",
    "保存": "save",
    "ヘルプ": "help",
    "宣言": "declare",
    "入玉宣言": "declare",
    "パス": "pass",
}

LEAVING = ("quit", "exit", "q")


def command_of(line: str) -> tuple[str, str]:
    """Split a line of the user into the command and the rest. An unknown first word is returned in lower case."""
    word, *rest = line.split(maxsplit=1) or [""]
    word = unicodedata.normalize("NFKC", word).lower()  # ｕｎｄｏ, as input methods write it
    return WORDS.get(word, word), "".join(rest)


YES, NO = ("", "y", "yes", "はい"), ("n", "no", "いいえ")


@dataclass(frozen=True, slots=True)
class TurnResult:
    text: str  # one line, below the board
    result: str | None = None  # set if this ended the game without a move on the board


def _printable(text: object) -> str:
    # File names in it cannot control the terminal. Boards, which have colors, are written as they are.
    return printable(text, keep="\n")


class TerminalGame(abc.ABC, Generic[G]):
    """A game and its engine. Wrong input of the user raises ValueError, whose message is one line."""

    commands: str  # the game's own commands, one a line
    for_advice: Mapping[str, Value] = {}  # options of all searches for hints and scores
    has_points = False  # whether the game is won by points

    def __init__(self, player: Player[G], game: G, advice: Mapping[str, Value] | None = None) -> None:
        """Show `game`. `advice` overrides options of the player in searches for hints and scores."""
        self.player = player
        self.game = game
        self._advice = advice or {}

    @property
    @abc.abstractmethod
    def prompt(self) -> str:
        """The side to move in one or two words, for the prompt."""

    def board(self) -> str:
        return str(self.game)

    @abc.abstractmethod
    def ended(self) -> str | None:
        """Return the result if the game is over by its rules, otherwise None."""

    @abc.abstractmethod
    def play(self, text: str) -> None: ...

    def undo(self) -> bool:
        """Take back the last move, and return whether there are more moves."""
        self.game.undo()
        return bool(self.game.moves)

    @abc.abstractmethod
    def obey(self, decision: Decision) -> TurnResult:
        """Apply the engine's decision: play its move, or end the game."""

    @abc.abstractmethod
    def hint(self) -> list[str]:
        """Return the engine's best moves as lines of text."""

    @abc.abstractmethod
    def score(self) -> str: ...

    @abc.abstractmethod
    def resigned(self) -> str: ...

    @abc.abstractmethod
    def winner(self, result: str) -> int | None:
        """Return the color that has won a game with this result, or None if neither has."""

    def in_words(self, result: str) -> str:
        return result

    @abc.abstractmethod
    def last_move(self) -> str:
        """Return the name of the last move."""

    def command(self, word: str, rest: str) -> TurnResult | None:
        """Run a command that only this game has. Return None if it is unknown."""
        return None

    @abc.abstractmethod
    def save(self, path: str, names: tuple[str, str], result: str) -> None:
        """Write the game to a file. `names` are the names of Black and White, in this order."""

    def search(
        self,
        game: G | None = None,
        seconds: float | None = None,
        allow: Collection[int] | None = None,
        **changes: Value,
    ) -> Decision:
        """Search a position (None: the current one) for a hint, a score or a warning. `changes` are options of this
        search.

        If there are options for advice, the tree is dropped afterwards, so that a level does not profit from the
        search.
        """
        limits = {} if seconds is None else {"visits": None, "playouts": None, "seconds": seconds}
        options = self.player.options.with_values({**self._advice, **self.for_advice, **limits, **changes})
        hide_history = options.ignore_pre_root_history
        try:
            return self.player.decide(Request(game or self.game, options, allow=allow, hide_history=hide_history))
        finally:
            if self._advice:
                self.player.clear()

    def loss_of_last_move(self) -> tuple[float, float | None]:
        """Return how much winrate, and points if the game has them, the last move lost against the best move.

        The position before the move is searched. The move itself is searched, too, if it got few visits there.
        """
        move = self.game.moves[-1][1]
        before = self.game.copy()
        before.undo()
        report = self.search(before, WARNING_SECONDS).report
        if not report.moves or report.moves[0].move == move:
            return 0.0, None
        best = report.moves[0]
        played = next((each for each in report.moves if each.move == move and each.visits >= WARNING_VISITS), None)
        after = played or self.search(before, WARNING_SECONDS, [move]).report
        return best.winrate - after.winrate, best.score_lead - after.score_lead if self.has_points else None


@dataclass(eq=False)
class Terminal:
    """One game in the terminal. `read` returns a line of the user (EOFError at the end); `write` shows text."""

    game: TerminalGame[Any]
    human: int | None  # the user's color; None: watch
    read: Callable[[str], str]
    write: Callable[[str], None]
    save_to: str | None = None  # file that receives the game after every move
    level: str = ""  # description of the engine's level
    # Whether `save_to` is removed once the user has saved the game in another file.
    is_draft: bool = field(default=False, kw_only=True)
    in_place: bool = field(default=False, kw_only=True)  # erase the screen before each board
    warns: bool = field(default=False, kw_only=True)  # offer the user's blunders back
    result: str | None = field(default=None, init=False)  # set when the game is over

    def __post_init__(self) -> None:
        self._draft = self.save_to if self.is_draft else None
        self._is_saved = True  # whether a file that the user knows contains the current game
        self._complaint = ""  # last error of saving the game

    def _tell(self, text: str) -> None:
        self.write(_printable(text))

    def _show(self, text: str = "", *, board: bool = True) -> None:
        """Show the board, unless `board` is off, and a text below it. In place the board is always drawn."""
        if self.in_place:
            self.write(f"{CLEAR}{self.game.board()}")
        elif board:
            self.write(self.game.board())
        if text:
            self.write(text)

    def run(self) -> None:
        """Play until the game or the input ends. The game is saved after every move, and always at the end."""
        try:
            self._play()
            self._save_at_last()
        except BaseException:  # it may also have come while the game was being saved
            self._save_at_last()
            raise

    def _play(self) -> None:
        game = self.game
        begin = CLEAR if self.in_place else ""
        self.write(begin + tr("{engine}. Type help for the commands.", engine=game.player.setup_line))
        if self.level:
            self.write(self.level[0].upper() + self.level[1:])
        self.write(game.board())
        while self.result is None:
            self._keep()
            self.result = game.ended()
            if self.result is not None:
                break
            if game.game.side_to_move != self.human:
                self._take_turn()
            elif not self._ask():
                return
        self.write(tr("Result: {result}", result=game.in_words(self.result)))
        self._after()

    def _after(self) -> None:
        while self.human is not None:
            line = self._line(tr("save FILE or quit> "))
            if line is None or command_of(line)[0] in LEAVING:
                return
            self._command(line)

    def _line(self, prompt: str) -> str | None:
        try:
            return self.read(prompt).strip()
        except EOFError:
            return None

    def _ask(self) -> bool:
        """Handle one line of the user. Return False if the user wants to leave."""
        line = self._line(f"{self.game.prompt}> ")
        if line is None or command_of(line)[0] in LEAVING:
            return False
        if line:
            self._command(line)
        return True

    def _command(self, line: str) -> None:
        word, rest = command_of(line)
        try:
            match word:
                case "help" | "?":
                    self._show(f"{tr(self.game.commands)}\n{tr(COMMANDS)}", board=False)
                case "board":
                    self._show()
                case "undo":
                    self._undo()
                case "hint":
                    self._show("\n".join(self.game.hint()), board=False)
                case "score":
                    self._show(self.game.score(), board=False)
                case "save":
                    self._show(_printable(self._save(rest)), board=False)
                case "resign":
                    self.result = self.result or self.game.resigned()
                    self._is_saved = False
                case "pass":
                    self._other(word, rest, word)
                case name:
                    self._other(name, rest, line)
        except ValueError as error:  # a move or a file that cannot be: the message says what was expected
            self._show(_printable(error), board=False)

    def _other(self, word: str, rest: str, line: str) -> None:
        """Run a command of this game; if there is no such command, play the line as a move."""
        obeyed = self.game.command(word, rest)
        if obeyed is not None:
            self._show(obeyed.text, board=False)
            self.result = self.result or obeyed.result
            self._is_saved = self._is_saved and obeyed.result is None
            return
        self._check_running()
        try:
            self.game.play(line)
        except ValueError as error:
            if word.isascii() and word.isalpha():  # only pass is a move without a digit
                raise ValueError(tr("{error}; help lists the commands", error=error)) from None
            raise
        self._is_saved = False
        self._show()
        if self.warns and self._takes_back():
            self.game.undo()
            self._show()

    def _takes_back(self) -> bool:
        """If the last move is a blunder, ask the user; return whether it is taken back."""
        loss, lost_points = self.game.loss_of_last_move()
        if not is_worth_warning(loss, lost_points):
            return False
        points = tr(" and {points} points", points=f"{lost_points:.1f}") if (lost_points or 0.0) >= 0.5 else ""
        move, winrate = self.game.last_move(), f"{100 * loss:.0f}"
        self.write(tr("{move} may lose {winrate}% of the winrate{points}.", move=move, winrate=winrate, points=points))
        while True:
            line = self._line(tr("Take it back? (yes or no) "))
            if line is None or line.lower() in NO:
                return False
            if line.lower() in YES:
                return True

    def _check_running(self) -> None:
        if self.result is not None:
            raise ValueError(tr("the game is over: expected save FILE or quit"))

    def _undo(self) -> None:
        self._check_running()
        if self.game.undo() and self.game.game.side_to_move != self.human:
            self.game.undo()
        self._is_saved = False
        self._show()

    def _take_turn(self) -> None:
        if self.in_place:
            self.write(tr("yomi is thinking ..."))
        turn = self.game.obey(self.game.player.choose(self.game.game))
        self._is_saved = False
        self.result = turn.result
        self._show(turn.text, board=turn.result is None)

    def _save(self, path: str) -> str:
        if not path:
            raise ValueError(tr("expected a file name after save"))
        self._write_game(path)
        self.save_to, self._is_saved = path, True
        return tr("saved {path}", path=path)

    def _write_game(self, path: str) -> None:
        names = {BLACK: (YOU, ENGINE), WHITE: (ENGINE, YOU)}
        self.game.save(path, names.get(self.human or 0, (ENGINE, ENGINE)), self.result or "")

    @property
    def is_kept(self) -> bool:
        """Whether the game has been saved, or did not have to be."""
        return self.save_to is None or self._is_saved

    def _keep(self) -> None:
        """Save the game now, because the process may be killed later. An error is reported once."""
        if self.save_to is None or self._is_saved:
            return
        try:
            self._write_game(self.save_to)
        except ValueError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                self._tell(tr("the game is not saved yet: {error}", error=error))

    def _save_at_last(self) -> None:
        """Save the game in the file that was named last, and remove the draft if that is another file."""
        if self.save_to is None:
            return
        if not self._is_saved:
            try:
                told = self._save(self.save_to)
            except ValueError as error:
                told = str(error)
            with contextlib.suppress(OSError):  # the terminal may have gone
                self._tell(told)
        if self._draft is None or not self._is_saved:
            return
        try:
            if not os.path.samefile(self._draft, self.save_to):
                os.unlink(self._draft)
        except FileNotFoundError:
            pass  # the user has saved the game before the first move
        except OSError as error:
            self._tell(tr("cannot remove {path}: {why}", path=self._draft, why=error.strerror))
