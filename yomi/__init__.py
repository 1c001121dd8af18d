"""yomi, an engine for Go and shogi, as a library. `yomi help python` shows what it can do.

The names of `__all__` are loaded when they are first used: `import yomi` alone loads nothing. Type checkers find
them in `__init__.pyi`.
"""

import os

__version__ = "0.2.0"

_HOMES = {
    "BLACK": "engine.color",
    "WHITE": "engine.color",
    "Error": "errors",
    "ClosedError": "errors",
    "IllegalMove": "errors",
    "Position": "library.position",
    "Result": "library.position",
    "Analysis": "library.analysis",
    "BoardGame": "engine.board_game.definition",
    "Engine": "library.engines",
    "EngineError": "engine.clients.client",
    "ExternalEngine": "library.external",
    "open_engine": "library.external",
    "Environment": "library.environments",
    "EnvironmentState": "library.environments",
    "env": "library.environments",
    "Evaluation": "library.evaluation",
    "Clock": "library.values",
    "Decision": "library.values",
    "Limit": "library.values",
    "MoveReport": "library.values",
    "Report": "library.values",
    "Score": "library.values",
    "Review": "engine.reviews.review",
    "dataset": "library.commands",
    "learn": "library.commands",
    "review": "library.reviews",
    "selfplay": "library.commands",
    "duel": "library.commands",
    "match": "library.commands",
    "rate": "library.commands",
    "ratings": "library.commands",
    "tune": "library.commands",
    "go": "go",
    "shogi": "shogi",
}
"""Module of each name; the last two are modules themselves."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'yomi' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"yomi.{home}")
    found: object = module if name == home else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


# A checkout has symbolic links to the packages here. An unpacked sdist, and a checkout on Windows, have the packages in
# the folder above instead.
if not os.path.isdir(os.path.join(__path__[0], "engine")):
    __path__.append(os.path.dirname(__path__[0]))
