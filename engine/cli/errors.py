"""CliError, and the parser of command lines, which raises it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from yomi.engine.cli import help
from yomi.engine.cli.help import Formatter
from yomi.engine.option_row import did_you_mean
from yomi.nets.errors import LineError

FOREIGN_FLAGS = {
    "-config": "remove KataGo's -config, whose files yomi does not read: use flags such as --visits 500, or"
    " --config FILE with a TOML file (docs/OPTIONS.md)",
    "-model": "use --net FILE for KataGo's -model",
    "-human-model": "remove KataGo's -human-model: yomi has no human model",
    "-override-config": "only yomi analysis reads KataGo's -override-config: use flags such as --visits 500",
    "-override-version": "remove KataGo's -override-version",
    "--level": "yomi play, gtp and usi have levels of strength: yomi play GAME --level 1 to 10",
}
"""Hints for flags of KataGo and of other commands."""

FILE_FOR_A_PROTOCOL = (
    "; this command speaks to programs and takes no file: "
    "to review game records use yomi review FILE, to choose a network --net FILE"
)
TAKES_NO_FILE = ("yomi gtp", "yomi usi", "yomi analysis")
MISSING = {"yomi review": ", such as game.sgf or a folder; KaTrain runs yomi analysis, which needs no file"}
"""Hints for commands that lack an argument."""
CHOICES = {
    "yomi tune": "; to find the fastest way to compute a network, use yomi net calibrate FILE",
    "yomi play": "; to resume a saved game, use yomi play --resume FILE",
}
"""Hints for a file in place of a game."""


class CliError(LineError):
    """A mistake that the user has to correct. The message is one line; the exit status is 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and suggest similar words. `-h` fills one screen, `--help-all` shows all."""

    def __init__(self, *, add_help: bool = True, **settings: Any) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(**settings, add_help=False)
        if add_help:
            help.add_help(self)

    def error(self, message: str) -> None:  # type: ignore[override]  # argparse says NoReturn; it raises here
        hint = MISSING.get(self.prog, "") if "arguments are required" in message else ""
        more = "--help-all" if message.startswith("unrecognized") and self.prog != "yomi" else "--help"
        raise CliError(f"{message}{hint} (see {self.prog} {more})")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # as argparse's
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            hints = [f"; {FOREIGN_FLAGS[flag]}" for flag in dict.fromkeys(flags) if flag in FOREIGN_FLAGS]
            hint = "".join(hints) or (did_you_mean(flags[0], self._option_string_actions) if flags else "")
            if not flags and self.prog in TAKES_NO_FILE:
                hint = FILE_FOR_A_PROTOCOL
            elif not flags and self.prog.startswith("yomi bench "):
                hint = f"; put the game first: {self.prog} go or {self.prog} shogi"
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            is_file = Path(str(value)).suffix != ""
            hint = CHOICES.get(self.prog, "") if is_file else ""
            error.message += hint or did_you_mean(str(value), map(str, action.choices or ()))
            raise
