"""Files of JSON objects, one a line, for the journals of runs, matches and reviews. A line is complete or absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import FileIO

from yomi.nets.files import append_whole, complete_length


def append_object(file: FileIO, value: Mapping[str, object], *, sync: bool = False) -> None:
    """Append an object to a file that is open as "a+b" without a buffer, and flush it to the disk if `sync` is set.

    An incomplete last line, which a killed process may leave, is removed first.

    Raises:
        OSError: the file cannot be written. Nothing of the line stays.
    """
    line = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    file.truncate(complete_length(file))
    append_whole(file, line, sync=sync)


def complete_lines(content: bytes) -> list[bytes]:
    """Return the lines of a file, without their ends, and without an incomplete last line."""
    return content.split(b"\n")[:-1]
