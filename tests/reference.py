"""Write the reference pages of docs from the code: `python -m tests.reference`. It needs PyTorch.

In docs/reference, options.md has the options of the engine, settings.md the settings of learning, training and matches.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yomi.engine.cli.pages import cells, default_text
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.matches.settings import MatchSettings
from yomi.engine.options import GROUPS, TABLE
from yomi.nets.files import write_atomically
from yomi.nets.training.config import TABLES
from yomi.settings import MISSING, Setting, rows_of

DOCS = Path(__file__).parents[1] / "docs/reference"
HEADER = "| key | value | default | meaning |\n|---|---|---|---|\n"
TYPES = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


TITLE = """\
# Settings of learning, training and matches

This page is made from the code by `python -m tests.reference`; do not edit it.
[Options](options.md) has the options of the engine.
"""
LEARN = """\
## yomi learn

Each setting is a flag (`--cheap-visits 10`) and an argument of `yomi.learn` (`cheap_visits=10`). You can change a live
setting when you continue a run. [Learning](../how-to/learning.md) explains them.
"""
TRAIN = """\
## Tables of a training configuration

`yomi train CONFIG.toml` reads all tables. `yomi learn --network FILE.toml` reads `[network]`, `[training]` and
`[loss]`. Both commands change a key by `--set TABLE.KEY=VALUE`. [Training](../../nets/README.md) explains them.
"""
NETWORK = """\
### [network]

`kind` is a name below, or `FILE.py:CLASS` for a network of your own, whose arguments are the other keys. `name` names
the network and its file. `start` trains a file further, in place of the other keys (`go` and `sparse-shogi`).
"""
TRUNK = """\
### [[network.trunk]]

Blocks of `go`. `kind` is a name below. `times` repeats a block.
"""
MATCH = """\
## yomi match

Each setting is a flag of `yomi match` and a key of its TOML file. [Matches](../how-to/matches.md) explains them.
"""


def settings_page() -> str:
    """Return the content of docs/reference/settings.md."""
    from yomi.nets.definitions.blocks import BLOCKS  # they need PyTorch
    from yomi.nets.definitions.catalog import NETWORKS

    parts = [TITLE, LEARN, reference(LearnSettings, "; live"), TRAIN]
    for table, settings in TABLES.items():
        parts += [f"### [{table}]\n", reference(settings)]
    parts.append(NETWORK)
    for kind, network in NETWORKS.items():
        parts += [f'#### kind = "{kind}"\n', _options(network)]
    parts.append(TRUNK)
    for kind, block in BLOCKS.items():
        parts += [f'#### kind = "{kind}" of a block\n', _options(block, positional=2)]
    return "\n".join([*parts, MATCH, reference(MatchSettings)])


def reference(kind: type, live: str = "") -> str:
    """Return a Markdown table of settings. `live` marks settings that may change later."""
    lines = []
    for row in rows_of(kind).values():
        default = "required" if row.default is MISSING else default_text(row, row.default)
        more = f". {row.more}" if row.more else ""
        lines.append(f"| `{row.key}` | {row.expected} | {default} | {row.help}{live if row.live else ''}{more} |\n")
    return HEADER + "".join(lines)


def _options(maker: type[Any], positional: int = 0) -> str:
    """Return the table of a class's options, from its signature and docstring."""
    rows = []
    meanings = _meanings(maker.__init__)
    for name, parameter in list(inspect.signature(maker).parameters.items())[positional:]:
        default = parameter.default
        if isinstance(default, tuple):
            kind, shown = "a list", ", ".join(map(str, default))
        else:
            kind, shown = TYPES[type(default)], str(default).lower() if isinstance(default, bool) else str(default)
        rows.append(f"| `{name}` | {kind} | {shown or 'none'} | {meanings[name]} |\n")
    return HEADER + "".join(rows)


def _meanings(function: Callable[..., Any]) -> dict[str, str]:
    """Return the texts of a docstring's arguments."""
    text = (inspect.getdoc(function) or "").partition("Args:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()).rstrip(".") for name, meaning in found}


def option_tables() -> str:
    """Return the tables of docs/reference/options.md."""
    lines: list[str] = []
    for group in GROUPS:
        lines += [
            f"## {group}",
            "",
            "| option | value | default | other names, when | meaning |",
            "|---|---|---|---|---|",
        ]
        lines += [*(_option_line(row) for row in TABLE.values() if row.group == group), ""]
    return "\n".join(lines)


def _option_line(row: Setting) -> str:
    return f"| {' | '.join(cells(row))} |"


def options_page() -> str:
    """Return the content of docs/reference/options.md: its introduction as it is, and the tables."""
    text = (DOCS / "options.md").read_text(encoding="utf-8")
    return text[: text.index(f"## {GROUPS[0]}")] + option_tables()


if __name__ == "__main__":
    write_atomically(DOCS / "options.md", options_page().encode())
    write_atomically(DOCS / "settings.md", settings_page().encode())
