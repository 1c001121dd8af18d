"""Help of commands: `-h` shows the main options on one screen, `--help-all` shows all options."""

from __future__ import annotations

import argparse
import copy
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_LINES = 40
"""Lines of a screen. A help text that fits is shown completely."""
MAX_EXAMPLES = 3
MAX_OPTIONS = 11
"""Options in the short help of a command that ESSENTIAL lacks."""

COMMON = ("net", "size", "seconds", "visits", "device", "workers")
ESSENTIAL = {
    "gtp": "net seconds visits level size rules komi ponder memory workers log-file config",
    "usi": "net seconds visits level multipv book-file entering-king memory workers log-file config",
    "play": "color level save resume handicap sfen net seconds size rules komi config",
    "review": "net visits seconds out worst json plot rules komi workers config",
    "analysis": "net visits seconds at-once perspective rules memory workers log-file config",
    "selfplay": "games out format openings rows net visits seconds size rules komi config",
    "match": "config games out seconds visits main byoyomi cpus size komi openings sprt",
    "duel": "first second games sprt out processes openings net visits size config",
    "tune": "parameter games confirm out processes openings net visits size config",
    "learn": "out hours networks processes at-once network openings size visits device config",
}
"""Flags in the short help of a command and of its games. A game may lack some of them."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs of descriptions to the terminal's width. Indented lines (examples, files) stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        paragraph: list[str] = []
        for line in [*text.splitlines(), ""]:
            if line and not line.startswith(" ") and not line.endswith(":"):
                paragraph.append(line)
                continue
            if paragraph:
                lines += textwrap.wrap(" ".join([*paragraph, line] if line.endswith(":") else paragraph), width)
                paragraph = []
                if line.endswith(":"):
                    continue
            lines.append(line)
        return "\n".join(indent + line for line in lines).rstrip() + "\n"


class HelpAction(argparse.Action):
    """Prints the short help, or the full help if `const` is true, and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: bool, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        sys.stdout.write(parser.format_help() if self.const else short_help(parser))
        parser.exit()


def add_help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-h", "--help", action=HelpAction, const=False, help="show the main options")
    parser.add_argument("--help-all", action=HelpAction, const=True, help="show all options")


def short_help(parser: argparse.ArgumentParser) -> str:
    """Return the whole help of a command if it fits on a screen, otherwise its essential options."""
    text = parser.format_help()
    examples = MAX_EXAMPLES
    while not _is_screen(text) and examples > 0:
        text = _essential_help(parser, examples)
        examples -= 1
    return text


def _is_screen(text: str) -> bool:
    columns = shutil.get_terminal_size().columns
    return sum(max(1, -(-len(line) // columns)) for line in text.splitlines()) <= MAX_LINES


def _essential_help(parser: argparse.ArgumentParser, examples: int) -> str:
    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    options = [action for action in shown if action.option_strings and not isinstance(action, HelpAction)]
    fixed = [action for action in shown if not action.option_strings]
    chosen = [_shortened(action) for action in _essential(parser, options)]
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, [*chosen, *fixed], [])
    formatter.add_text(parser.description)
    for title, actions in (("arguments", fixed), ("main options", chosen)):
        formatter.start_section(title)
        formatter.add_arguments(actions)
        formatter.end_section()
    formatter.add_text(_examples(parser.epilog or "", examples))
    rest = f"All {len(options)} options" if len(chosen) < len(options) else "More"
    formatter.add_text(f"{rest}: {parser.prog} --help-all")
    return formatter.format_help()


def _essential(parser: argparse.ArgumentParser, options: Sequence[argparse.Action]) -> list[argparse.Action]:
    by_name = {action.option_strings[0].lstrip("-"): action for action in options}
    command = parser.prog.partition(" ")[2].partition(" ")[0]
    names = ESSENTIAL.get(command, "").split()
    if not names:
        required = [name for name, action in by_name.items() if action.required]
        own = [name for name, action in by_name.items() if action in parser._optionals._group_actions]
        known = dict.fromkeys([*required, *own[: MAX_OPTIONS - len(COMMON)], *COMMON, *own])
        names = [name for name in known if name in by_name][:MAX_OPTIONS]
    return [by_name[name] for name in names if name in by_name]


def _shortened(action: argparse.Action) -> argparse.Action:
    """Return the action with only the first clause of its help, and with its default if it has one."""
    found = re.fullmatch(
        r"(.*?)(?:; .*?)?( \(default: (?!none\)).*\))?(?: \(default: none\))?", action.help or "", re.DOTALL
    )
    assert found is not None
    action = copy.copy(action)
    action.help = found[1] + (found[2] or "")
    return action


def _examples(epilog: str, count: int) -> str:
    """Return the first examples of an epilog, or the whole epilog if it has none."""
    found = re.search(r"^examples?:\n((?: +.*\n?)+)", epilog, re.MULTILINE)
    if found is None:
        return epilog
    lines: list[str] = []
    for line in found[1].splitlines():
        if line.startswith("  yomi") and sum(earlier.startswith("  yomi") for earlier in lines) == count:
            break
        lines.append(line)
    return "\n".join(["examples:", *lines])


def overview(
    groups: Mapping[str, Iterable[str]], texts: Mapping[str, str], usage: str, heading: str, footer: str
) -> str:
    """Return the help of `yomi`: the commands of each group with their texts."""
    width = max(map(len, texts))
    lines = [f"usage: {usage}", heading]
    for title, names in groups.items():
        lines += ["", f"{title}:", *(f"  {name.ljust(width)}  {texts[name]}" for name in names)]
    return "\n".join([*lines, "", footer])
