"""What a disk may hold after a power cut: records the writes of a run, and restores each state that may be left.

fsync of a file keeps its content, fsync of a folder keeps the names in it. Of all that was not flushed, a prefix is
kept. Names may be ahead of contents, as in ext4: such a file has its old content, zeros, or a part of the new content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Write:
    """One change: of a file's content, or of a name in a folder."""

    owner: int
    """The file or folder that changes."""
    name: str = ""
    """In a folder: the name that changes."""
    target: int | None = None
    """In a folder: the file or folder that the name stands for from now on; None: the name is removed."""
    is_folder: bool = False
    """Whether the target is a folder."""
    content: bytes | None = None
    """Of a file, from now on."""


@dataclass(frozen=True)
class Flush:
    """fsync of a file or folder."""

    owner: int


Tree = dict[str, bytes | None]
"""Content by path; None for a folder."""


class Recorder:
    """Notes all changes below a folder, as they are seen at each call that changes names or flushes."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.events: list[Write | Flush] = []
        self._ids: dict[int, int] = {}
        """Number of each file and folder by its inode; the open descriptors keep inodes from being used again."""
        self._open: list[int] = []
        self._names: dict[int, dict[str, int]] = {}
        self._contents: dict[int, bytes] = {}
        self._real_fsync = os.fsync
        folder.mkdir()
        self._id(folder)
        for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir"):
            patch.setattr(os, name, self._seen(getattr(os, name)))
        patch.setattr(os, "fsync", self._fsync)

    def scan(self) -> None:
        """Note what has changed since the last look."""
        self._scan(self.folder)

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def _seen(self, call: Any) -> Any:
        def called(*args: Any, **more: Any) -> Any:
            self.scan()
            result = call(*args, **more)
            self.scan()
            return result

        return called

    def _fsync(self, descriptor: int) -> None:
        self.scan()
        if (owner := self._ids.get(os.fstat(descriptor).st_ino)) is not None:
            self.events.append(Flush(owner))

    def _id(self, path: Path) -> int:
        inode = path.stat().st_ino
        if inode not in self._ids:
            self._open.append(os.open(path, os.O_RDONLY))
            self._ids[inode] = len(self._ids)
        return self._ids[inode]

    def _scan(self, folder: Path) -> None:
        owner, found = self._id(folder), dict[str, int]()
        before = self._names.setdefault(owner, {})
        for path in sorted(folder.iterdir()):
            if path.name == ".lock":
                continue
            found[path.name] = number = self._id(path)
            if path.is_dir():
                self._scan(path)
            elif (content := path.read_bytes()) != self._contents.get(number, b""):
                self.events.append(Write(number, content=content))
                self._contents[number] = content
        for name in {**found, **before}:
            if found.get(name) != before.get(name):
                is_folder = (folder / name).is_dir()
                self.events.append(Write(owner, name, found.get(name), is_folder))
        self._names[owner] = found


def states(events: list[Write | Flush]) -> Iterator[Tree]:
    """Yield every state that a power cut after any of the events may leave, each once."""
    seen = set[frozenset[tuple[str, bytes | None]]]()
    for end in range(len(events) + 1):
        flushed = {event.owner: at for at, event in enumerate(events[:end]) if isinstance(event, Flush)}
        numbered = [(at, event) for at, event in enumerate(events[:end]) if isinstance(event, Write)]
        writes = [event for _, event in numbered]
        loose = [place for place, (at, event) in enumerate(numbered) if at > flushed.get(event.owner, -1)]
        for count in range(len(loose) + 1):
            kept = set(range(len(writes))) - set(loose[count:])
            late = {place for place in loose if writes[place].content is not None}
            in_order = [writes[place] for place in sorted(kept)]
            names_first = [writes[place] for place in sorted(kept - late)]
            lost = [writes[place] for place in sorted(late)]
            for tree in (
                _tree(in_order),
                _tree(names_first),
                _tree(names_first, _zeros(names_first, lost)),
                _tree(in_order, _torn([writes[place] for place in loose[count:]])),
            ):
                content = frozenset(tree.items())
                if content not in seen:
                    seen.add(content)
                    yield tree


def _zeros(kept: list[Write], lost: list[Write]) -> dict[int, bytes]:
    """Return the contents of files whose length was kept, and whose new content was not."""
    old = {each.owner: each.content for each in kept if each.content is not None}
    new = {each.owner: each.content for each in lost if each.content is not None}
    return {owner: old.get(owner, b"").ljust(len(content), b"\0") for owner, content in new.items()}


def _torn(lost: list[Write]) -> dict[int, bytes]:
    """Return the content of the file that was written next, of which only a part was kept."""
    return next(({each.owner: each.content[: len(each.content) // 2]} for each in lost if each.content), {})


def _tree(writes: list[Write], contents: dict[int, bytes] | None = None) -> Tree:
    files: dict[int, bytes] = {}
    names: dict[int, dict[str, int]] = {0: {}}
    for each in writes:
        if each.content is not None:
            files[each.owner] = each.content
        elif each.target is None:
            names.setdefault(each.owner, {}).pop(each.name, None)
        else:
            names.setdefault(each.owner, {})[each.name] = each.target
    files |= contents or {}
    folders = {each.target for each in writes if each.is_folder}
    found: Tree = {}

    def visit(owner: int, path: str) -> None:
        for name, target in names.get(owner, {}).items():
            if target in folders:
                found[path + name] = None
                visit(target, f"{path}{name}/")
            else:
                found[path + name] = files.get(target, b"")

    visit(0, "")
    return found


def restore(tree: Tree, folder: Path) -> None:
    """Make the folder that a power cut has left."""
    folder.mkdir()
    for name, content in sorted(tree.items()):
        if content is None:
            (folder / name).mkdir(parents=True, exist_ok=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
