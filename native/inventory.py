"""The inventory of compiled kernels in the cache, with the reason why some are unused."""

import contextlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.language import tr
from yomi.native.cache_folder import COMPLETE, FACTS
from yomi.native.jit import CACHE_DIRECTORY, kernel_facts, kernel_key
from yomi.native.kernel_groups import GROUPS
from yomi.native.precompile import mark_of

OUTSIDE = "others"  # package name of kernels in files outside native
_NAME = re.compile(rf"(?P<package>[a-z-]+)-(?P<key>[0-9a-f]{{16}})(?P<mark>{re.escape(COMPLETE)})?")


@dataclass(frozen=True)
class Kept:
    path: Path
    name: str  # A package of native, `others`, or for a mark a name of yomi.native.kernel_groups.GROUPS
    is_mark: bool
    size: int  # bytes on disk
    time: float  # time of the last change, in seconds since 1970
    # Facts that it was compiled with, and more for a mark; empty for an earlier version of yomi.
    content: dict[str, Any]
    reason: str  # why this yomi does not use it; empty if it is used
    may_remove: bool  # whether no setting of this installation can use it


def inventory() -> list[Kept]:
    """Return all folders and marks, oldest first.

    Raises:
        OSError: the cache cannot be read.
    """
    found = []
    for path in CACHE_DIRECTORY.iterdir():
        if (match := _NAME.fullmatch(path.name)) and path.is_dir() != bool(match["mark"]):
            with contextlib.suppress(FileNotFoundError):  # another process removed it
                found.append(_examine(path, match["package"], match["key"], is_mark=bool(match["mark"])))
    return sorted(found, key=lambda kept: kept.time)


def _examine(path: Path, name: str, key: str, *, is_mark: bool) -> Kept:
    content = _read(path if is_mark else path / FACTS)
    package = GROUPS[name].packages[0] if is_mark and name in GROUPS else name
    reason = _difference(content, kernel_facts(package))
    if is_mark:
        is_used = name in GROUPS and path == mark_of(name)
    else:
        is_used = key == kernel_key(package) or (name == OUTSIDE and not reason)
    size = sum(file.lstat().st_size for file in path.iterdir()) if path.is_dir() else path.lstat().st_size
    why = "" if is_used else reason or "another version of the sources"
    return Kept(path, name, is_mark, size, path.lstat().st_mtime, content, why, bool(why) and not _is_setting(why))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


_SETTING = "other settings"


def _is_setting(reason: str) -> bool:
    return reason.startswith(_SETTING)


def _difference(facts: dict[str, Any], present: dict[str, str]) -> str:
    """Return a description of the first fact that differs from `present`; empty if all agree."""
    name = next((name for name in present if facts.get(name) != present[name]), None)
    if name is None:
        return ""
    if name not in facts:
        return tr("an earlier version of yomi")
    value = str(facts[name])
    if name == "processor":
        model = value.partition(" ")[0]
        is_same = model == present[name].partition(" ")[0]
        if is_same:
            return tr("other features of the processor {model}", model=model)
        return tr("another processor: {model}", model=model)
    if name == "settings":
        return f"{_SETTING}: {value or 'none'}"
    return tr("another version of the sources") if name == "sources" else f"{name.replace('python', 'Python')} {value}"
