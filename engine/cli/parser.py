"""The parser of command lines with its short and full help, and CliError, which it raises."""

import argparse
import copy
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine import screen
from yomi.errors import LineError
from yomi.language import is_japanese, tr, translated_line
from yomi.settings import did_you_mean

FOREIGN_FLAGS = {
    "-config": "remove KataGo's -config, whose files yomi does not read: use flags such as --visits 500, or"
    " --config FILE with a TOML file (yomi help options)",
    "-model": "use --net FILE for KataGo's -model",
    "-human-model": "use --human-net FILE for KataGo's -human-model",
    "-override-config": "only yomi analysis reads KataGo's -override-config: use flags such as --visits 500",
    "-override-version": "remove KataGo's -override-version",
    "--value-net": "only Go uses --value-net: search an NNUE evaluation (nn.bin) with --net FILE",
    "--level": "yomi play, gtp and usi have levels of strength: yomi play GAME --level 1 to 20",
}

FILE_FOR_A_PROTOCOL = (
    "; this command speaks to programs and takes no file: "
    "to review game records use yomi review FILE, to choose a network --net FILE"
)
TAKES_NO_FILE = ("yomi gtp", "yomi usi", "yomi analysis")
# Hints for commands that lack an argument
MISSING = {"yomi review": ", such as game.sgf or a folder; KaTrain runs yomi analysis, which needs no file"}
# Hints for a file in place of a game
CHOICES = {
    **dict.fromkeys(("yomi selfplay", "yomi learn", "yomi duel"), "; a game of your own is FILE.py:NAME"),
    "yomi tune": "; to find the fastest way to compute a network, use yomi net calibrate FILE",
    "yomi play": "; to resume a saved game, use yomi play --resume FILE",
}


argparse._ = tr  # type: ignore[attr-defined]  # argparse looks up its own texts by this name


class CliError(LineError):
    """The user has made a mistake. `main` prints it, as it prints any LineError and EvaluatorError of a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line `yomi NAME ...`. `add` adds its flags, and `run` runs it and returns the exit status."""

    usage: str
    epilog: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_actions(parser: argparse.ArgumentParser, command: str) -> Callable[..., argparse.ArgumentParser]:
    """Return a function that adds an action's parser to `yomi COMMAND`, given its name, help text and aliases."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog=f"yomi {command}")

    def add(name: str, text: str, *aliases: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, aliases=aliases, help=text, description=sentence(text))

    return add


def sentence(text: str) -> str:
    """Return the help of a command as a sentence."""
    return f"{tr(text)}。" if is_japanese() else f"{text[0].upper()}{text[1:]}."


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and suggest similar words. `-h` fits on one screen, `--help-all` shows all."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(**settings, add_help=False)
        self.add_argument("-h", "--help", action=HelpAction, const=False, help="show the main options")
        self.add_argument("--help-all", action=HelpAction, const=True, help="show all options")

    def error(self, message: str) -> None:  # type: ignore[override]  # argparse says NoReturn; it raises here
        hint = (
            MISSING.get(self.prog, "") if message.startswith(_start("the following arguments are required: %s")) else ""
        )
        is_unknown = message.startswith(_start("unrecognized arguments: %s"))
        more = "--help-all" if is_unknown and self.prog != "yomi" else "--help"
        raise CliError(tr("{message} (see {command})", message=message + tr(hint), command=f"{self.prog} {more}"))

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # as argparse's
        # The subparser, which knows its flags, reports unknown words; argparse leaves this to the main parser.
        found, unknown = super().parse_known_args(args, namespace)
        many = next((each for each in self._actions if not each.option_strings and each.nargs in ("*", "+")), None)
        if many is not None and not any(word.startswith("-") for word in unknown):
            # argparse ends such a list at the first flag. Words after flags continue it.
            setattr(found, many.dest, [*getattr(found, many.dest), *(self._get_value(many, word) for word in unknown)])
            unknown = []
        if unknown:
            flags = [word.partition("=")[0] for word in unknown if word.startswith("-")]
            hints = [f"; {tr(FOREIGN_FLAGS[flag])}" for flag in dict.fromkeys(flags) if flag in FOREIGN_FLAGS]
            hint = "".join(hints) or (did_you_mean(flags[0], self._option_string_actions) if flags else "")
            if not flags and self.prog in TAKES_NO_FILE:
                hint = FILE_FOR_A_PROTOCOL
            self.error(tr("unrecognized arguments: %s") % " ".join(unknown) + hint)
        return found, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            is_file = Path(str(value)).suffix != ""
            hint = CHOICES.get(self.prog, "") if is_file else ""
            error.message += tr(hint) or did_you_mean(str(value), map(str, action.choices or ()))
            raise


def _start(text: str) -> str:
    """Return the beginning of a message of argparse, up to the value in it."""
    return tr(text).partition("%")[0]


# -- help -----------------------------------------------------------------------------------------------------------

MAX_LINES = 40  # Lines of a screen. A help text that fits is shown completely.
MAX_EXAMPLES = 3
MAX_OPTIONS = 11

COMMON = ("net", "size", "seconds", "visits", "device", "workers")
# Flags in the short help of a command and of its games. A game may lack some of them.
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


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the paragraphs of descriptions to the terminal's width. Indented lines (examples, files) stay unchanged.

    Paragraphs and the texts of options are translated one by one.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        paragraph: list[str] = []
        for line in [*text.splitlines(), ""]:
            if line and not line.startswith(" ") and not line.endswith(":"):
                paragraph.append(line)
                continue
            if paragraph:
                whole = " ".join([*paragraph, line] if line.endswith(":") else paragraph)
                lines += screen.wrap(tr(whole), width) if is_japanese() else textwrap.wrap(whole, width)
                paragraph = []
                if line.endswith(":"):
                    continue
            lines.append(translated_line(line))
        return "\n".join(indent + line for line in lines).rstrip() + "\n"

    def _split_lines(self, text: str, width: int) -> list[str]:
        return screen.wrap(text, width) if is_japanese() else super()._split_lines(text, width)

    def _get_help_string(self, action: argparse.Action) -> str:
        text = super()._get_help_string(action) or ""
        return translated_help(text) if is_japanese() else text

    def start_section(self, heading: str | None) -> None:
        super().start_section(tr(heading) if heading else heading)

    def add_usage(self, usage, actions, groups, prefix=None):  # type: ignore[no-untyped-def]  # as argparse's
        super().add_usage(usage, actions, groups, tr("usage: ") if prefix is None else prefix)


def translated_help(text: str, *, is_short: bool = False) -> str:
    """Translate the help of an option to Japanese, with its default if that consists of words.

    With `is_short` the help is the first clause, and the default is omitted if it is none.
    """
    found = re.fullmatch(r"(.*?)(?: \(default: (.*)\))?", text, re.DOTALL)
    assert found is not None
    text, default = tr(found[1]), found[2] or ""
    if is_short:
        text, default = text.partition("。")[0], default.removeprefix("none")
    if not default:
        return text
    default = tr(default) if " " in default and not default[0].isdigit() else default
    return tr("{help} (default: {default})", help=text, default=default)


class HelpAction(argparse.Action):
    """Prints the short help, or the full help if `const` is true, and ends the program."""

    def __init__(self, option_strings: Sequence[str], dest: str, const: bool, help: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, const=const, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        sys.stdout.write(parser.format_help() if self.const else short_help(parser))
        parser.exit()


def short_help(parser: argparse.ArgumentParser) -> str:
    """Return the whole help of a command if it fits on a screen, otherwise the help of its essential options."""
    text = parser.format_help()
    examples = MAX_EXAMPLES
    while not _is_screen(text) and examples > 0:
        text = _essential_help(parser, examples)
        examples -= 1
    return text


def _is_screen(text: str) -> bool:
    import shutil  # not above: it would add two milliseconds to every start

    columns = shutil.get_terminal_size().columns
    return sum(max(1, -(-screen.width(line) // columns)) for line in text.splitlines()) <= MAX_LINES


def _essential_help(parser: argparse.ArgumentParser, examples: int) -> str:
    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    options = [action for action in shown if action.option_strings and not isinstance(action, HelpAction)]
    fixed = [action for action in shown if not action.option_strings]
    chosen = [_shortened(action) for action in _essential(parser, options)]
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, [*chosen, *fixed], [])
    formatter.add_text(parser.description)
    for title, actions in ((tr("arguments"), fixed), (tr("main options"), chosen)):
        formatter.start_section(title)
        formatter.add_arguments(actions)
        formatter.end_section()
    formatter.add_text(_examples(parser.epilog or "", examples))
    more = f"{parser.prog} --help-all"
    if len(chosen) < len(options):
        formatter.add_text(tr("All {n} options: {command}", n=len(options), command=more))
    else:
        formatter.add_text(tr("More: {command}", command=more))
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
    """Return an option whose help is only the first clause, followed by its default if it has one."""
    found = re.fullmatch(
        r"(.*?)(?:; .*?)?( \(default: (?!none\)).*\))?(?: \(default: none\))?", action.help or "", re.DOTALL
    )
    assert found is not None
    action = copy.copy(action)
    if is_japanese():
        action.help = translated_help(action.help or "", is_short=True)
    else:
        action.help = found[1] + (found[2] or "")
    return action


def _examples(epilog: str, count: int) -> str:
    """Return the first `count` examples of an epilog. An epilog without examples is returned whole."""
    found = re.search(r"^examples?:\n((?: +.*\n?)+)", epilog, re.MULTILINE)
    if found is None:
        return epilog
    lines: list[str] = []
    for line in found[1].splitlines():
        if line.startswith("  yomi") and sum(earlier.startswith("  yomi") for earlier in lines) == count:
            break
        lines.append(line)
    return "\n".join(["examples:", *lines])
