"""Files of JSON objects, one a line, for the journals of runs, matches and reviews. A line is complete or absent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import FileIO


def append_object(file: FileIO, value: Mapping[str, object], *, sync: bool = False) -> None:
    """Append an object to a file that is open as "a+b" without a buffer, and flush it to the disk if `sync` is set.

    An incomplete last line, which a killed process may leave, is removed first.

    Raises:
        OSError: the file cannot be written. Nothing of the line stays.
    """
    line = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    end = _complete_length(file)
    file.truncate(end)
    try:
        while line:  # a disk that is almost full takes part of it
            line = line[file.write(line) :]
        if sync:
            os.fsync(file.fileno())
    except OSError:
        file.truncate(end)  # a part would spoil the next line
        raise


def complete_lines(content: bytes) -> list[bytes]:
    """Return the lines of a file, without their ends, and without an incomplete last line."""
    return content.split(b"\n")[:-1]


def _complete_length(file: FileIO) -> int:
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    if end == 0 or file.read(1) == b"\n":
        return end
    file.seek(0)
    return file.read().rfind(b"\n") + 1
