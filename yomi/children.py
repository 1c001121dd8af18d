"""Python processes that yomi starts: they import this yomi, and no module of the current folder.

The current folder may contain anyone's files, such as a `queue.py` beside downloaded records.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # contains the package
VARIABLE, MARK = "PYTHONSAFEPATH", "yomi"  # any value has the effect; engines of others do not inherit this one


def environment() -> dict[str, str]:
    """Return the environment of a Python process of yomi."""
    changes = {VARIABLE: os.environ.get(VARIABLE) or MARK}
    if _is_needed():
        changes["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **changes}


def _is_needed() -> bool:
    """Return whether Python finds this yomi in the current folder or the script's only: a checkout, not installed."""
    path = sys.path if sys.flags.safe_path else sys.path[1:]
    found = (each for each in map(os.path.realpath, path) if os.path.exists(os.path.join(each, "yomi", "__init__.py")))
    return next(found, None) != ROOT


def foreign_environment() -> dict[str, str]:
    """Return the environment of another program: a script in Python may import modules beside it."""
    return {name: value for name, value in os.environ.items() if (name, value) != (VARIABLE, MARK)}


def leave_current_folder(*, is_module: bool) -> None:
    """Import nothing from the current folder from now on, in this process (`python -m yomi`) and all that it starts."""
    os.environ.update(environment())
    if is_module and not sys.flags.safe_path:
        sys.path[:1] = [ROOT] if _is_needed() else []
