"""yomi, an engine for Go and shogi, as a library. `docs/PYTHON.md` shows what it can do.

The names of `__all__` are loaded when they are first used: `import yomi` alone loads nothing.
"""

import os

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers read it as true; the module typing would be loaded for nothing
if TYPE_CHECKING:
    from yomi import go as go
    from yomi import shogi as shogi
    from yomi.engine.color import BLACK as BLACK
    from yomi.engine.color import WHITE as WHITE
    from yomi.errors import ClosedError as ClosedError
    from yomi.errors import Error as Error
    from yomi.library.analysis import Analysis as Analysis
    from yomi.library.commands import learn as learn
    from yomi.library.commands import match as match
    from yomi.library.commands import ratings as ratings
    from yomi.library.commands import selfplay as selfplay
    from yomi.library.engines import Engine as Engine
    from yomi.library.evaluation import Evaluation as Evaluation
    from yomi.library.position import IllegalMove as IllegalMove
    from yomi.library.position import Position as Position
    from yomi.library.position import Result as Result
    from yomi.library.values import Clock as Clock
    from yomi.library.values import Decision as Decision
    from yomi.library.values import Limit as Limit
    from yomi.library.values import MoveReport as MoveReport
    from yomi.library.values import Report as Report
    from yomi.library.values import Score as Score

_HOMES = {
    "BLACK": "engine.color",
    "WHITE": "engine.color",
    "Error": "errors",
    "ClosedError": "errors",
    "IllegalMove": "library.position",
    "Position": "library.position",
    "Result": "library.position",
    "Analysis": "library.analysis",
    "Engine": "library.engines",
    "Evaluation": "library.evaluation",
    "Clock": "library.values",
    "Decision": "library.values",
    "Limit": "library.values",
    "MoveReport": "library.values",
    "Report": "library.values",
    "Score": "library.values",
    "learn": "library.commands",
    "match": "library.commands",
    "ratings": "library.commands",
    "selfplay": "library.commands",
    "go": "go",
    "shogi": "shogi",
}
"""Module of each name; the last two are modules themselves."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    """Load a name of the library."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'yomi' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"yomi.{home}")
    found: object = module if name == home else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the names of the library, loaded or not."""
    return sorted({*globals(), *_HOMES})


# A checkout has symbolic links to the packages here. An unpacked sdist, and a checkout on Windows, have the packages in
# the folder above instead.
if not os.path.isdir(os.path.join(__path__[0], "engine")):
    __path__.append(os.path.dirname(__path__[0]))
