"""Which commands there are and which module handles each.

The names stand here and not with the handlers, so that `list_commands` is answered before anything slow is imported.
A handler is registered with `@command(name)`; a test compares both.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yomi.engine.go.gtp.session import Handler

PACKAGE = "yomi.engine.go.gtp"

QUIET = "quiet"
"""A command neither needs nor disturbs a search in the background."""
RESUMES = "resumes"
"""A command ends it, and pondering goes on afterwards: whose turn it is has not changed."""
ENDS = "ends"
"""A command ends it for good."""

MODULES: dict[str, tuple[str, str]] = {
    "basics": (
        QUIET,
        "protocol_version name version known_command list_commands quit echo gogui-interrupt gogui-title"
        " gogui-version gogui-analyze_commands cputime gomill-cpu_time gomill-describe_engine"
        " cgos-opponent_name cgos-opponent_rating",
    ),
    "timing": (
        QUIET,
        "time_settings time_left kgs-time_settings kata-time_settings kata-list_time_settings",
    ),
    "board": (
        ENDS,
        "boardsize rectangular_boardsize clear_board komi get_komi play undo gg-undo showboard fixed_handicap"
        " place_free_handicap set_free_handicap loadsgf printsgf set_position gogui-setup gogui-setup_player"
        " gogui-play_sequence list_stones color is_legal all_legal captures move_history last_move query_boardsize"
        " kata-get-rules kata-set-rules kata-set-rule kgs-rules cgos-gameover kgs-game_over",
    ),
    "moves": (
        ENDS,
        "genmove reg_genmove kgs-genmove_cleanup kata-search kata-search_cancellable genmove_analyze"
        " lz-genmove_analyze kata-genmove_analyze cgos-genmove_analyze kata-search_analyze"
        " kata-search_analyze_cancellable stop clear_cache",
    ),
    "analysis": (ENDS, "analyze lz-analyze kata-analyze"),
    "scores": (RESUMES, "final_score final_status final_status_list"),
    "parameters": (
        RESUMES,
        "kata-get-param kata-set-param kata-list-params kata-get-params kata-set-params kata-get-models yomi-param",
    ),
    "maps": (
        RESUMES,
        "kata-raw-nn yomi-policy yomi-ownership yomi-visits yomi-winrate yomi-pv yomi-best yomi-evaluation"
        " yomi-territory",
    ),
}
"""By module: what its commands do to a search in the background, and their names."""
QUESTIONS = (
    "query_boardsize get_komi showboard printsgf list_stones color is_legal all_legal captures move_history last_move"
    " kata-get-rules kata-get-param kata-list-params kata-get-params kata-get-models"
)
"""Commands of other modules that only look at game and options, and so are quiet."""
OTHERS = {"komi": RESUMES} | dict.fromkeys(QUESTIONS.split(), QUIET)
"""What commands do that differ from their module."""


@dataclass(frozen=True, slots=True)
class Row:
    """One command."""

    name: str
    module: str
    background: str
    """QUIET, RESUMES or ENDS."""


_ROWS = {
    name: Row(name, module, OTHERS.get(name, background))
    for module, (background, names) in MODULES.items()
    for name in names.split()
}
_HANDLERS: dict[str, Handler] = {}


def names() -> list[str]:
    """Return the names of all commands."""
    return list(_ROWS)


def find(name: str) -> Row | None:
    """Return the row of a command (in lower case); None where there is none."""
    return _ROWS.get(name)


def load(row: Row) -> Handler:
    """Return the handler of a command, importing its module where necessary."""
    if row.name not in _HANDLERS:
        importlib.import_module(f"{PACKAGE}.{row.module}")
    return _HANDLERS[row.name]


def load_all() -> None:
    """Import all handlers, so that none is imported while a clock runs."""
    for row in _ROWS.values():
        load(row)


def command(*names: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of `names`."""

    def register(handler: Handler) -> Handler:
        for name in names:
            row = _ROWS.get(name)
            if row is None or handler.__module__ != f"{PACKAGE}.{row.module}":
                raise ValueError(f"{name} is not a command of {handler.__module__} in the table")
            _HANDLERS[name] = handler
        return handler

    return register
