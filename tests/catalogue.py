"""Compare the Japanese catalogue with the texts of the program.

`python -m tests.catalogue` prints an entry for every text that yomi/locale/ja.po lacks, and lists the stale ones.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

from yomi import language, settings
from yomi.engine import mistakes, play, terminal
from yomi.engine.cli import doctor
from yomi.engine.cli import main as command_line
from yomi.engine.cli import parser as parsers
from yomi.engine.go import terminal as go_terminal
from yomi.engine.registry import GAMES
from yomi.engine.reviews import review
from yomi.engine.shogi import placement
from yomi.engine.shogi import terminal as shogi_terminal

ROOT = Path(__file__).parents[1]
FOLDERS = ("engine", "native", "nets", "yomi/web")
PLACEHOLDER = re.compile(r"\{\w*(?::[^}]*)?\}|%(?:\(\w+\))?[sr]|%%")
TABLES = (
    *(table.values() for table in (parsers.MISSING, parsers.CHOICES, parsers.FOREIGN_FLAGS, settings.EXPECTED)),
    (terminal.COMMANDS, go_terminal.COMMANDS, shogi_terminal.COMMANDS),
    placement.NAMES[1:],
    review.PHASES,
    (play.RESIGNATION, play.SCORE, play.TIME, play.ILLEGAL, play.FAILURE, play.ADJUDICATION, play.MAX_MOVES),
    (play.NO_RESULT, play.MATE, play.REPETITION, play.PERPETUAL_CHECK, play.DECLARATION, play.IMPASSE, play.TRY),
    (*doctor.EXTRAS.values(), *doctor.PARTS.values()),
    (mistakes.EXPECTED, *(game.score.unit for game in GAMES.values())),
    (placement.DROP_PAWN_MATE, go_terminal.HINT_HEAD, shogi_terminal.HINT_HEAD),
)
"""Texts that are translated where they are used."""


class Recorder(dict[str, str]):
    """A catalogue that collects the texts which are looked up, and translates none."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, key: str, default: object = None) -> str:  # type: ignore[override]
        self.asked.add(key)
        return key


def literals() -> set[str]:
    """Return the literals in calls of `tr` and `counted`."""
    found = set()
    for paths in ((ROOT / "yomi").glob("*.py"), *((ROOT / folder).rglob("*.py") for folder in FOLDERS)):
        for path in sorted(paths):
            source = path.read_text("utf-8")
            if "yomi.language" in source:
                found |= set(_literals(ast.parse(source)))
    return found


def _literals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Name)
            or node.func.id not in ("tr", "counted")
        ):
            continue
        for part in ast.walk(node.args[0]):  # also both texts of a condition
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value


def help_texts() -> set[str]:
    """Return the texts in the help of the translated commands, and of yomi itself."""
    recorder = Recorder()
    earlier, language._texts = language._texts, recorder
    try:
        command_line.overview()
        command_line.overview(with_all=True)
        for name in command_line.IN_JAPANESE:
            for parser in _family(command_line.build([name]), name):
                parser.format_help()
    finally:
        language._texts = earlier
    colon = "%(heading)s:"  # only some versions of Python look it up
    asked = recorder.asked - {colon, argparse.SUPPRESS}
    return {text for text in asked if text and not text.endswith("。")}


def _family(parser: argparse.ArgumentParser, name: str) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values() if name == "" else [action.choices[name]]:
                yield child
                yield from _family(child, "")


def argparse_texts() -> set[str]:
    tree = ast.parse(Path(argparse.__file__).read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    first = [node.args[0] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "_"]
    return {node.value for node in first if isinstance(node, ast.Constant)}


def required() -> set[str]:
    tables = {text for table in TABLES for text in table}
    return literals() | help_texts() | tables


def missing() -> list[str]:
    return sorted(required() - language.read_catalogue().keys())


def stale() -> list[str]:
    return sorted(language.read_catalogue().keys() - required() - argparse_texts())


def placeholders(text: str) -> list[str]:
    return sorted(PLACEHOLDER.findall(text))


def main() -> None:
    for text in missing():
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        print(f'msgid "{escaped}"\nmsgstr ""\n')
    for text in stale():
        print(f"# stale: {text!r}")


if __name__ == "__main__":
    main()
