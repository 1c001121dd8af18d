"""The error that the command line shows, and the parser of command lines, which raises it."""

from __future__ import annotations

import argparse

from engine.option_row import did_you_mean
from nets.errors import LineError

FOREIGN_FLAGS = {
    "-config": "leave KataGo's -config out, yomi does not read its files: expected flags such as --visits 500, or"
    " --config FILE with a TOML file (docs/OPTIONS.md)",
    "-model": "KataGo's -model is --net FILE here",
    "-human-model": "yomi has no human model: leave KataGo's -human-model out",
    "-override-config": "KataGo's -override-config is read by yomi analysis only: expected flags such as --visits 500",
    "-override-version": "leave KataGo's -override-version out",
    "--level": "levels of strength are in yomi play, gtp and usi: yomi play GAME --level 1 to 10",
}
"""What to do about flags of KataGo and of other commands, if a command does not know them."""


class CliError(LineError):
    """Something the user has to put right; one line that says what was expected. Exit status 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and which asks whether something similar was meant."""

    def error(self, message: str) -> None:  # type: ignore[override]  # argparse says NoReturn; it raises here
        """Raise what `main` prints."""
        raise CliError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # as argparse's
        """Parse all words: what is unknown is an error of the command that it was given to, which knows its flags."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flags = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            hints = [f"; {FOREIGN_FLAGS[flag]}" for flag in dict.fromkeys(flags) if flag in FOREIGN_FLAGS]
            hint = "".join(hints) or (did_you_mean(flags[0], self._option_string_actions) if flags else "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise
