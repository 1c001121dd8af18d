"""Help for tests of the command line: errors, help, and games in a terminal."""

from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from yomi.engine.cli.main import main
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.terminal import GoTerminalGame
from yomi.engine.terminal import Terminal, TerminalGame


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line that a wrong command line gets."""
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("yomi: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def help_of(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the help that a command line prints."""
    try:
        status: object = main(words.split())
    except SystemExit as ended:  # of a command; the overview of all commands returns
        status = ended.code
    assert status == 0
    return capsys.readouterr().out


def play_with(
    lines: list[str], player: FakePlayer, human: int | None = 1, game: GoGame | None = None
) -> tuple[Terminal, str]:
    """Return the terminal and what it showed of a game of Go after the user typed `lines`."""
    return play_at(GoTerminalGame(player, game or new_game(player.options)), lines, human)


def play_at(game: TerminalGame[Any], lines: list[str], human: int | None) -> tuple[Terminal, str]:
    """Return the terminal and what it showed after the user typed `lines`."""
    shown: list[str] = []
    typed = iter(lines)

    def read(prompt: str) -> str:
        shown.append(prompt)
        line = next(typed, None)
        if line is None:
            raise EOFError
        return line

    terminal = Terminal(game, human, read, shown.append)
    terminal.run()
    return terminal, "\n".join(shown)
