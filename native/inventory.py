"""Compiled kernels in the cache that this yomi cannot use."""

import json
import re
from pathlib import Path
from typing import Any

from yomi.native.cache_folder import COMPLETE, FACTS
from yomi.native.jit import CACHE_DIRECTORY, kernel_facts, kernel_key
from yomi.native.kernel_groups import GROUPS
from yomi.native.precompile import mark_of

OUTSIDE = "others"  # package name of kernels in files outside native
_NAME = re.compile(rf"(?P<name>[a-z-]+)-(?P<key>[0-9a-f]{{16}})(?P<mark>{re.escape(COMPLETE)})?")


def unused_kernels() -> list[Path]:
    """Return the folders of kernels and the marks of groups that this yomi does not use with any settings.

    Raises:
        OSError: the cache cannot be read.
    """
    found = ((path, _NAME.fullmatch(path.name)) for path in sorted(CACHE_DIRECTORY.iterdir()))
    return [
        path for path, match in found if match and path.is_dir() != bool(match["mark"]) and not _may_use(path, match)
    ]


def _may_use(path: Path, match: re.Match[str]) -> bool:
    name, is_mark = match["name"], bool(match["mark"])
    facts = _read(path if is_mark else path / FACTS)
    package = GROUPS[name].packages[0] if is_mark and name in GROUPS else name
    differing = [fact for fact, value in kernel_facts(package).items() if facts.get(fact) != value]
    if differing:
        return differing == ["settings"] and "settings" in facts
    return path == mark_of(name) if is_mark and name in GROUPS else name == OUTSIDE or match["key"] == kernel_key(name)


def size_of(path: Path) -> int:
    """Return the size on disk in bytes of a mark or a folder."""
    return sum(file.lstat().st_size for file in path.rglob("*")) if path.is_dir() else path.lstat().st_size


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
