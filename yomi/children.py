"""The environment of Python processes that yomi starts: they import this yomi, and nothing from the current folder.

The current folder may contain anyone's files, such as a `queue.py` beside downloaded records.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # contains the package
VARIABLE, MARK = "PYTHONSAFEPATH", "yomi"  # any value has the effect; engines of others do not inherit this one


def environment() -> dict[str, str]:
    """Return the environment for a process that runs yomi in Python."""
    changes = {VARIABLE: os.environ.get(VARIABLE) or MARK}
    if _is_needed():
        changes["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    return {**os.environ, **changes}


def _is_needed() -> bool:
    """Return whether Python finds this yomi only in the folder of the start: a checkout that is not installed."""
    path = sys.path if sys.flags.safe_path else sys.path[1:]
    found = (each for each in map(os.path.realpath, path) if os.path.exists(os.path.join(each, "yomi", "__init__.py")))
    return next(found, None) != ROOT


def foreign_environment() -> dict[str, str]:
    """Return the environment for a program other than yomi. A Python script may then import from its own folder."""
    return {name: value for name, value in os.environ.items() if (name, value) != (VARIABLE, MARK)}


def leave_current_folder(*, is_module: bool) -> None:
    """Stop imports from the current folder, in this process (`python -m yomi`) and in all processes that it starts."""
    os.environ.update(environment())
    if is_module and not sys.flags.safe_path:
        sys.path[:1] = [ROOT] if _is_needed() else []
