"""Files of networks and derived files: writes them atomically, identifies them by content, finds the cache folder."""

import contextlib
import errno
import functools
import hashlib
import logging
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from yomi.errors import reraised
from yomi.nets.errors import NetworkError
from yomi.system import patiently, replace

_log = logging.getLogger("yomi.networks")

# Names of open files of the process. Others may still write to them, so they cannot be replaced.
DESCRIPTORS = ("/dev/std", "/dev/fd/", "/proc/")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to an OSError that is raised in the block."""
    try:
        yield
    except OSError as error:
        # Errors of writing contain no name, unlike errors of opening.
        if error.filename is None:
            error.strerror = error.strerror or str(error)  # numpy reports only the number of written items
            error.filename = str(path)
        raise


@contextlib.contextmanager
def atomic_writer(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """Write a file that gets its name when the `with` block ends without an error. No reader sees a part of it.

    A link stays a link: its target is replaced. A device or pipe, such as /dev/stdout, is written directly.

    Args:
        path: the file.
        sync: after a power cut the file is the old one or the new one, never damaged. This waits for the disk.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    if str(path).startswith(DESCRIPTORS) or (path.exists() and not path.is_file()):
        with naming(path), path.open("wb") as stream:
            yield stream
        return
    path = path.resolve() if path.is_symlink() else path
    draft = _draft(path)
    try:
        # Not tempfile: its files are private, and this one gets the permissions of the old file or of the umask.
        with naming(path), draft.open("xb") as stream:
            if path.exists():
                shutil.copymode(path, draft)
            yield stream
            # The content must be on the disk before the name is, and the name before the caller continues.
            if sync:
                stream.flush()
                os.fsync(stream.fileno())
        replace(draft, path)
        if sync:
            sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def write_atomically(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a whole file with `atomic_writer`.

    Raises:
        OSError: it cannot be written.
    """
    with atomic_writer(path, sync=sync) as stream:
        stream.write(content)


def expect_regular(path: Path) -> None:
    """Raise OSError if a file is a link or a device. Parts of runs may come from other people."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "a link, folder or device found, expected a regular file", str(path))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file with `atomic_writer`. Errors of reading contain the source's name.

    Raises:
        OSError: it cannot be read or written, or is a symbolic link or a device.
    """
    expect_regular(source)
    with source.open("rb") as stream, atomic_writer(target) as out:
        shutil.copyfileobj(stream, out)


def append_whole(file: FileIO, data: bytes, *, sync: bool = False) -> None:
    """Append all of some data, or nothing, to a file that is open without a buffer. With `sync` flush it to the disk.

    Raises:
        OSError: the file cannot be written. A part that was written has been removed, so that later data stay readable.
    """
    end = file.seek(0, os.SEEK_END)
    try:
        while data:  # a disk that is almost full takes part of it
            data = data[file.write(data) :]
        if sync:
            os.fsync(file.fileno())
    except OSError:
        file.truncate(end)
        raise


def append_lines(path: Path, text: str) -> None:
    """Append lines to a text file with `append_whole`. An incomplete last line is removed first.

    Raises:
        OSError: the file cannot be written; the error names the file.
    """
    with naming(path), path.open("a+b", buffering=0) as file:
        file.truncate(complete_length(file))
        append_whole(file, text.encode())


def complete_length(file: FileIO) -> int:
    """Return the length of a file's complete lines. A killed process may leave an incomplete last line."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    if end == 0 or file.read(1) == b"\n":
        return end
    file.seek(0)
    return file.read().rfind(b"\n") + 1


def append_object(file: FileIO, value: Mapping[str, object], *, sync: bool = False) -> None:
    """Append an object to a file that is open as "a+b" without a buffer. With `sync` flush it to the disk.

    An incomplete last line, which a killed process may leave, is removed first.

    Raises:
        OSError: the file cannot be written. Nothing of the line stays.
    """
    import json  # not above: every start of an engine would wait for it

    line = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    file.truncate(complete_length(file))
    append_whole(file, line, sync=sync)


def complete_lines(content: bytes) -> list[bytes]:
    """Return the complete lines of a file without their ends. An incomplete last line is dropped."""
    return content.split(b"\n")[:-1]


def check_folder(folder: Path) -> None:
    """Check before a long computation that files can be written to a folder. The folder need not exist. Nothing is
    left.

    Raises:
        OSError: they cannot; the error names the folder.
    """
    while not os.path.lexists(folder):
        folder = folder.parent
    _try_file(folder)


def check_file(path: Path, *, may_lack_folder: bool = False) -> None:
    """Check before a long computation that a file can be written. By default its folder must exist. Nothing is left.

    Raises:
        OSError: it cannot; the error names it, or its folder.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.exists() or path.is_file():  # a device or pipe needs no folder
        (check_folder if may_lack_folder else _try_file)(path.resolve().parent)


def _try_file(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


@contextlib.contextmanager
def draft_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder for a draft. It is renamed to `path` when the `with` block ends without an error.

    Raises:
        OSError: it cannot be written; nothing of it remains.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(path)
    draft.mkdir()
    try:
        yield draft
        patiently(lambda: os.rename(draft, path))
        sync_folder(path.parent)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = str(error.filename).replace(str(draft), str(path))
        raise


def _draft(path: Path) -> Path:
    # Short, because the longest names leave no room for more.
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.part")


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk: names that were added, changed or removed.

    Raises:
        OSError: the disk fails.
    """
    # Windows cannot open folders. The journal of its file system keeps names in order.
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with naming(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Flush a closed file's content to the disk.

    Raises:
        OSError: the disk fails.
    """
    with naming(path), path.open("r+b") as stream:
        os.fsync(stream.fileno())


def remove_drafts(folder: Path) -> None:
    """Remove unfinished files and folders that a killed run has left in a folder.

    Raises:
        OSError: one cannot be removed.
    """
    for draft in folder.glob(".*.part"):
        if draft.is_dir():
            shutil.rmtree(draft)
        else:
            draft.unlink(missing_ok=True)


def source_digest(path: Path) -> str:
    """Return the hexadecimal SHA-256 digest of a file, including an ONNX file's separate weight files.

    Raises:
        NetworkError: a file cannot be read, or the ONNX file names weights outside of its folder.
    """
    from yomi.nets.onnx_file import data_files  # imports numpy, which starts need not wait for

    try:
        own = _digest(path)
        names = data_files(path)
        if not names:
            return own
        parts = [f"{name} {_digest(_beside(path, name))}" for name in names]
        return hashlib.sha256("\n".join([own, *parts]).encode()).hexdigest()
    except OSError as error:
        raise NetworkError(f"{error.filename or path}: cannot be read: {error.strerror or error}") from error


def name_with_digest(path: str | Path) -> str:
    """Return a file's name with the beginning of its digest, as manifests and runs describe files.

    Raises:
        NetworkError: see `source_digest`.
    """
    return f"{Path(path).name} {source_digest(Path(path))[:16]}"


def known_digest(path: Path) -> str:
    """Return `source_digest`, from the cache while size and modification time of the file stay the same.

    Raises:
        NetworkError: see `source_digest`.
    """
    with reraised(OSError, NetworkError, f"{path}: cannot be read: "):
        seen = path.stat()
    return _digest_of(path, seen.st_ino, seen.st_size, seen.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _digest_of(path: Path, inode: int, size: int, changed: int) -> str:
    return source_digest(path)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _beside(path: Path, name: str) -> Path:
    # By ONNX's specification weights are in the same folder. A hostile file may name any other.
    found = path.parent / name
    if ".." in Path(name).parts or Path(name).is_absolute() or not found.is_file():
        raise NetworkError(f"{path}: weights in {name!r} found, expected a file in the folder of the ONNX file")
    return found


def default_cache_dir() -> Path:
    """Return the absolute path of YOMI_CACHE_DIR, otherwise XDG_CACHE_HOME/yomi, otherwise ~/.cache/yomi."""
    if own := os.environ.get("YOMI_CACHE_DIR"):
        return _absolute(own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return _absolute(xdg) / "yomi"
    try:
        return Path.home() / ".cache" / "yomi"
    except RuntimeError:
        # A user without a home, as in some containers.
        return temporary_cache_dir()


@functools.cache
def _absolute(folder: str) -> Path:
    # Cached, because the process may change its current folder.
    return Path(folder).absolute()


def temporary_cache_dir() -> Path:
    """Return a private temporary folder. It is the same at each call, unless another user has taken its name."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"yomi-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        # Another user may have made the folder, or a link, to plant files in it.
        if not folder.is_symlink() and (not hasattr(os, "getuid") or folder.stat().st_uid == user):
            return folder
    except OSError as error:
        _log.debug("%s: %s", folder, error)
    return Path(tempfile.mkdtemp(prefix="yomi-"))
