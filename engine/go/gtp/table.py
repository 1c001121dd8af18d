"""The table of GTP commands: module and effect on pondering.

The table is separate from the handlers so that `list_commands` can be answered before slow imports. Handlers are
registered with `@command(name)`; a test compares both.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yomi.engine.go.gtp.session import Handler

PACKAGE = "yomi.engine.go.gtp"

QUIET = "quiet"  # the command neither needs nor ends a background search
# The command ends a background search; pondering resumes afterwards, because the side to move is the same.
RESUMES = "resumes"
ENDS = "ends"  # the command ends a background search for good

# Module -> (effect of its commands on a background search, their names).
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
# Commands of other modules that only read game and options, so they are quiet.
QUESTIONS = (
    "query_boardsize get_komi showboard printsgf list_stones color is_legal all_legal captures move_history last_move"
    " kata-get-rules kata-get-param kata-list-params kata-get-params kata-get-models"
)
OTHERS = {"komi": RESUMES} | dict.fromkeys(QUESTIONS.split(), QUIET)  # exceptions from a module's effect


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    module: str
    background: str  # QUIET, RESUMES or ENDS


_ROWS = {
    name: Row(name, module, OTHERS.get(name, background))
    for module, (background, names) in MODULES.items()
    for name in names.split()
}
_HANDLERS: dict[str, Handler] = {}


def names() -> list[str]:
    return list(_ROWS)


def find(name: str) -> Row | None:
    return _ROWS.get(name)


def load(row: Row) -> Handler:
    """Return the handler of a command, importing its module if necessary."""
    if row.name not in _HANDLERS:
        importlib.import_module(f"{PACKAGE}.{row.module}")
    return _HANDLERS[row.name]


def load_all() -> None:
    """Import all handlers now, so that none is imported while a clock runs."""
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
