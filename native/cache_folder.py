"""The folder of compiled kernels: its place, permissions and files."""

import contextlib
import functools
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from yomi.errors import CompileError
from yomi.system import IS_WINDOWS, lock_file, replace

try:
    import grp
    import pwd
except ImportError:  # Windows
    grp = pwd = None  # type: ignore[assignment]

# Suffix of marks: JSON files that exist once all kernels of a group are compiled.
COMPLETE = ".complete"
# File in a folder of kernels with the facts that the folder's key is a hash of.
FACTS = "facts.json"


def cache_directory() -> Path:
    """Return a writable, absolute folder for compiled kernels: the user's cache, or a temporary folder if that is
    read-only.

    Raises:
        CompileError: other users can write to the folder.
    """
    directory = _users_directory()
    try:
        for folder in (directory.parent, directory):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_cache()
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError as error:
        # The temporary folder links to all kernels of the user's cache, so that none is compiled again. New kernels
        # replace links. A process with YOMI_CACHE_DIR set to its parent gets the same folder.
        spare = _temporary_directory() / "kernels"
        print(f"yomi: cannot write {directory} ({error.strerror}): new kernels go to {spare}", file=sys.stderr)
        spare.mkdir(mode=0o700, exist_ok=True)
        _link_files(directory, spare)
        return spare


def _users_directory() -> Path:
    base = os.environ.get("YOMI_CACHE_DIR")
    home = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yomi"
    return home.absolute() / "kernels"


def check_cache() -> None:
    """Refuse the user's cache, which need not exist, if other users can write to it (`require_private`)."""
    directory = _users_directory()
    for folder in (directory.parent, directory):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            require_private(folder, may_be_sticky=folder != directory)


def require_private(folder: Path, *, may_be_sticky: bool = False) -> None:
    """Refuse a folder that other users can write to.

    Args:
        folder: an existing folder.
        may_be_sticky: accept a folder such as /tmp, in which users can replace only their own files.

    Raises:
        CompileError: the folder belongs to a user other than this one and root, or others can write to it.
        OSError: the folder cannot be examined.
    """
    # Its compiled code runs with this user's rights.
    if not hasattr(os, "getuid"):  # Windows has no such modes
        return
    found = folder.stat()
    way_out = "or set YOMI_CACHE_DIR to a folder of your own"
    if may_be_sticky and found.st_mode & stat.S_ISVTX:
        return
    if found.st_uid not in (os.getuid(), 0):
        raise CompileError(
            f"{folder} belongs to user {found.st_uid}: expected a folder of your own; chown it, {way_out}"
        )
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid)):
        fix = f"chmod -R go-w '{folder}'"
        raise CompileError(f"other users can write to {folder}, whose code would run as yours: {fix}, {way_out}")


@functools.cache
def _is_own_group(group: int) -> bool:
    """Return whether this user is the only member of a group, as on systems with a group per user."""
    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return found.gr_name == user.pw_name and not set(found.gr_mem) - {user.pw_name} and user.pw_uid != 0


def _link_files(source: Path, target: Path) -> None:
    """Link all kernels and marks of a folder that the target lacks; on Windows copy them. Two processes may do this."""
    files = [path for path in source.rglob("*") if path.suffix in (".nbi", ".nbc", COMPLETE)]
    for path in sorted(files, key=lambda path: path.suffix == COMPLETE):  # marks after the kernels that they promise
        link = target / path.relative_to(source)
        link.parent.mkdir(mode=0o700, exist_ok=True)
        if not link.exists():
            link.unlink(missing_ok=True)  # a link to a removed file
            if IS_WINDOWS:  # few users may make links there
                replace(shutil.copyfile(path, link.with_name(f"{link.name}.{os.getpid()}")), link)
                continue
            with contextlib.suppress(FileExistsError):  # the other process was faster
                link.symlink_to(path)


def _temporary_directory() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"yomi-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise CompileError(f"{folder} is a link: expected a folder; remove it, or set YOMI_CACHE_DIR to a folder")
    require_private(folder)
    return folder


@contextlib.contextmanager
def locked(path: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on a file; call `waits` before waiting for another process.

    Raises:
        OSError: the file cannot be created.
    """
    with path.open("ab") as stream:
        if not lock_file(stream.fileno(), wait=False):
            waits()
            lock_file(stream.fileno(), wait=True)
        yield


def make_folder(folder: Path, facts: Mapping[str, str]) -> None:
    """Create a folder for kernels, with a file of the facts on which they depend.

    Raises:
        OSError: it cannot be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / FACTS).exists():
        write_json(folder / FACTS, facts)


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a file atomically. Raises OSError."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(content), encoding="utf-8")
        replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def size_of(path: Path) -> int:
    """Return the size on disk in bytes of a file or folder."""
    return sum(file.lstat().st_size for file in path.rglob("*")) if path.is_dir() else path.lstat().st_size
