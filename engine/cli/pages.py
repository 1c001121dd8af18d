"""`yomi help PAGE`: the table of options, and the pages of docs, which wheels contain as yomi/docs."""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import yomi
from yomi import nets
from yomi.engine.cli.main import COMMANDS
from yomi.engine.cli.parser import CliError
from yomi.engine.options import GROUPS, TABLE
from yomi.settings import Setting, Value, did_you_mean

OPTIONS = "options"
FOLDERS = ("how-to", "reference", "explanation", "tutorials")  # a name alone means the page of the first that has it
INTRODUCTION = """\
Each option is a flag, and a key of a TOML file (`_` for `-`). All commands read the file of `yomi config init`, then
the file of `--config FILE`, then the command line; later values take precedence. "start" marks options that cannot
change while the engine runs. `yomi help options WORD` lists only the options that contain WORD."""


def print_page(words: Sequence[str]) -> int:
    """Print a page, or the options that contain a word. Returns the exit status.

    Raises:
        CliError: no such page, or no such option.
    """
    name, *rest = words
    if name == OPTIONS:
        print(options_text(" ".join(rest)), end="")
        return 0
    found = {**pages(), OPTIONS: None}
    path = found.get(name.removesuffix(".md"))
    if path is None or rest:
        names = ", ".join(name for name in found if "/" not in name and name not in COMMANDS)
        hint = did_you_mean(name, (*COMMANDS, *found)) or f", expected a command, or one of {names}"
        raise CliError(f"yomi help {' '.join(words)}: no such page{hint}")
    print(path.read_text("utf-8"), end="")
    return 0


def pages() -> dict[str, Path]:
    """Return the pages by name: `levels` and `how-to/levels` are one page."""
    package = Path(yomi.__file__).parent
    docs = package / "docs" if (package / "docs").is_dir() else package.parent / "docs"
    found = {"training": Path(nets.__path__[0]) / "README.md"}
    for folder in FOLDERS:
        for path in sorted((docs / folder).rglob("*.md")):
            found.setdefault(path.stem, path)
            found[path.relative_to(docs).with_suffix("").as_posix()] = path
    return found


def options_text(word: str = "") -> str:
    """Return the table of options for a terminal, or only the options that contain a word.

    Raises:
        CliError: no option contains the word.
    """
    width = max(40, min(shutil.get_terminal_size().columns, 120))
    lines = [] if word else textwrap.wrap(INTRODUCTION, width)
    for group in GROUPS:
        rows = [row for row in TABLE.values() if row.group == group and word.lower() in " ".join(cells(row)).lower()]
        lines += ["", f"{group}:", *(line for row in rows for line in _lines(row, width))] if rows else []
    if not lines:
        raise CliError(f"yomi help options {word}: found no such option{did_you_mean(word, TABLE)}")
    return "\n".join([*lines, ""]).lstrip("\n").replace("`", "")


def _lines(row: Setting, width: int) -> Iterator[str]:
    flag, value, default, notes, meaning = cells(row)
    yield f"  {flag}"
    for text in (meaning, f"{value}; default {default}" + (f" ({notes})" if notes else "")):
        yield from textwrap.wrap(text, width, initial_indent=" " * 6, subsequent_indent=" " * 6)


def cells(row: Setting) -> tuple[str, str, str, str, str]:
    """Return an option's flag, value, default, other names with conditions, and meaning."""
    unit = f" ({row.unit})" if row.unit else ""
    default = default_text(row, row.default)
    default += "".join(f"; {game}: {default_text(row, value)}" for game, value in row.defaults.items())
    notes = [f"`{row.katago}`"] if row.katago else []
    if row.usi is not None:
        scaled = {1: "", 2.0**-20: " in MiB"}.get(row.usi.scale, f" × {row.usi.scale:g}")
        notes.append("USI " + " ".join(f"`{name}`" for name in row.usi.names) + scaled)
    notes += ["start"] if not row.live else []
    notes += [f"{row.games[0]} only"] if len(row.games) == 1 else []
    meaning = row.help + (f". {row.more}" if row.more else "")
    return f"`{row.flag}`", f"{row.expected}{unit}", default, ", ".join(notes), meaning


def default_text(row: Setting, value: Value) -> str:
    """Return a default value as text; none with its meaning."""
    return f"none: {row.unset}" if value is None and row.unset else row.format(value)
