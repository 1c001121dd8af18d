"""Write docs/SETTINGS.md, the reference of all settings of learning, training and matches. It needs PyTorch:

python -m yomi.engine.cli.settings_page docs/SETTINGS.md
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yomi.engine.cli.match_settings import MatchSettings
from yomi.engine.learning.settings import LearnSettings
from yomi.nets.definitions.blocks import BLOCKS
from yomi.nets.definitions.catalog import NETWORKS
from yomi.nets.files import write_atomically
from yomi.nets.settings import reference
from yomi.nets.training.config import TABLES

HEADER = "| key | value | default | meaning |\n|---|---|---|---|\n"
TYPES = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


TITLE = """\
# Settings of learning, training and matches

This page is made from the code by `python -m yomi.engine.cli.settings_page docs/SETTINGS.md`; do not edit it.
[OPTIONS.md](OPTIONS.md) has the options of the engine.
"""
LEARN = """\
## yomi learn

Each setting is a flag (`--cheap-visits 10`) and an argument of `yomi.learn` (`cheap_visits=10`). You can change a live
setting when you continue a run. [LEARNING.md](LEARNING.md) explains them.
"""
TRAIN = """\
## Tables of a training configuration

`yomi train CONFIG.toml` reads all tables. `yomi learn --network FILE.toml` reads `[network]`, `[training]` and
`[loss]`. Both commands change a key by `--set TABLE.KEY=VALUE`. [nets/README.md](../nets/README.md) explains them.
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

Each setting is a flag of `yomi match` and a key of its TOML file. [MATCHES.md](MATCHES.md) explains them.
"""


def page() -> str:
    """Return the content of docs/SETTINGS.md."""
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


if __name__ == "__main__":
    write_atomically(Path(sys.argv[1]), page().encode())
