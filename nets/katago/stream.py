"""The container of a KataGo network: ASCII tokens mixed with blocks of floats, binary or text, compressed or not."""

from __future__ import annotations

import lzma
import math
import zlib
from pathlib import Path
from typing import Protocol

import numpy as np

from yomi.nets.errors import NetworkError
from yomi.nets.katago.network import FloatArray

_GZIP_MAGIC, _XZ_MAGIC = b"\x1f\x8b", b"\xfd7zXZ\0"
_BLOCK_MARK = b"@BIN@"
_WHITESPACE = b" \t\r\n\v\f"
_MAX_TOKEN = 1024
# Weights hardly compress (1.1 to 4 times); the floor leaves room for tiny networks full of zeros.
_MAX_EXPANSION = 32
_EXPANSION_FLOOR = 1 << 26
_HEAD_BYTES = 1 << 16
_MAX_FLOAT = float(np.finfo(np.float32).max)
# Bytes; xz needs 65 MiB for the largest dictionary of its usual settings.
_XZ_MEMORY = 1 << 28


def read_container(path: Path) -> bytes:
    """Return the uncompressed content of a network file.

    Raises:
        NetworkError: the file cannot be read, or its compression is broken.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise NetworkError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not raw.startswith((_GZIP_MAGIC, _XZ_MAGIC)):
        return raw
    return _decompress(raw, _EXPANSION_FLOOR + _MAX_EXPANSION * len(raw), str(path))


def read_head(path: Path, size: int = 4096) -> bytes:
    """Return up to `size` first bytes of the uncompressed content; empty if it cannot be uncompressed."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise NetworkError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not raw.startswith((_GZIP_MAGIC, _XZ_MAGIC)):
        return raw[:size]
    try:
        return _decompressor(raw).decompress(raw, size)
    except (zlib.error, lzma.LZMAError):
        return b""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def _decompressor(raw: bytes) -> _Decompressor:
    if raw.startswith(_XZ_MAGIC):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    return zlib.decompressobj(wbits=31)


def _decompress(raw: bytes, limit: int, path: str) -> bytes:
    """Decompress gzip members or xz streams, up to `limit` bytes."""
    kind = "xz" if raw.startswith(_XZ_MAGIC) else "gzip"
    parts: list[bytes] = []
    room = limit
    while raw:
        decompressor = _decompressor(raw)
        try:
            part = decompressor.decompress(raw, room + 1)
        except (zlib.error, lzma.LZMAError) as error:
            raise NetworkError(f"{path}: broken {kind} data ({error}), expected a complete KataGo network") from error
        room -= len(part)
        if room < 0:
            raise NetworkError(f"{path}: expands to more than {limit} bytes, expected a KataGo network")
        if not decompressor.eof:
            raise NetworkError(f"{path}: the {kind} data ends early: the file is truncated")
        parts.append(part)
        # Zero padding after the last member is legal, as gzip and xz themselves have it.
        raw = decompressor.unused_data.lstrip(b"\0")
    return b"".join(parts)


class TokenStream:
    """Reads tokens and float blocks one after another from the content of a network file.

    Every error is a `NetworkError` with the file and the current record.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._view = memoryview(data)
        self._position = 0
        self._path = path
        # The first block's mark determines whether floats are binary or text.
        self._binary = _BLOCK_MARK in data[:_HEAD_BYTES]
        self._record = "header"

    def error(self, message: str) -> NetworkError:
        """Return an error with the position in the file; the caller raises it."""
        return NetworkError(f"{self._path}: record {self._record!r}: {message}")

    def name(self) -> str:
        """Read the name of a record, for later errors."""
        self._record = self.token("a name")
        return self._record

    def token(self, expected: str) -> str:
        """Read the next token. `expected` describes it in words."""
        self._skip_whitespace()
        data, start = self._data, self._position
        end = start
        limit = min(len(data), start + _MAX_TOKEN)
        while end < limit and data[end] not in _WHITESPACE:
            end += 1
        if end == start:
            raise self.error(f"the file ends where {expected} was expected: it is truncated")
        raw = data[start:end]
        if end - start == _MAX_TOKEN or not raw.isascii() or not raw.decode("ascii").isprintable():
            raise self.error(f"found binary data where {expected} was expected")
        self._position = end
        return raw.decode("ascii")

    def integer(self, what: str, low: int, high: int) -> int:
        expected = f"{what} ({low})" if low == high else f"{what} ({low} to {high})"
        text = self.token(expected)
        try:
            value = int(text)
        except ValueError:
            raise self.error(f"found {text[:40]!r}, expected {expected}") from None
        if not low <= value <= high:
            raise self.error(f"found {text[:40]}, expected {expected}")
        return value

    def flag(self, what: str) -> bool:
        return self.integer(what, 0, 1) == 1

    def zeros(self, count: int) -> None:
        """Read reserved integers, which must be 0."""
        # Another value means a feature that this reader does not know.
        for _ in range(count):
            self.integer("a reserved field", 0, 0)

    def real(self, what: str, low: float = -math.inf) -> float:
        text = self.token(what)
        try:
            value = float(text)
        except ValueError:
            raise self.error(f"found {text[:40]!r}, expected {what} (a number)") from None
        if not math.isfinite(value) or value < low:
            raise self.error(f"found {text[:40]}, expected {what} (a finite number of at least {low:g})")
        return value

    def floats(self, count: int) -> FloatArray:
        """Read a block of `count` floats [count]."""
        if self._binary:
            return self._binary_floats(count)
        return self._text_floats(count)

    def finish(self) -> None:
        self._skip_whitespace()
        left = len(self._data) - self._position
        if left:
            raise self.error(f"{left} bytes left after the value head, expected the end of the file")

    def _skip_whitespace(self) -> None:
        data, position = self._data, self._position
        while position < len(data) and data[position] in _WHITESPACE:
            position += 1
        self._position = position

    def _binary_floats(self, count: int) -> FloatArray:
        self._skip_whitespace()
        start = self._position + len(_BLOCK_MARK)
        if self._data[self._position : start] != _BLOCK_MARK:
            found = self._data[self._position : start]
            raise self.error(f"found {found!r}, expected a block of {count} floats ({_BLOCK_MARK!r})")
        end = start + 4 * count
        # Checked before memory is allocated.
        if end > len(self._data):
            raise self.error(f"{len(self._data) - start} bytes left, expected {4 * count}: the file is truncated")
        block = np.frombuffer(self._view[start:end], dtype="<f4").astype(np.float32)
        self._position = end
        return self._checked(block)

    def _text_floats(self, count: int) -> FloatArray:
        left = len(self._data) - self._position
        if 2 * count - 1 > left:
            raise self.error(f"{left} bytes left, expected {count} floats as text: the file is truncated")
        values = np.empty(count, dtype=np.float32)
        for index in range(count):
            text = self.token(f"float {index + 1} of {count}")
            try:
                value = float(text)
                if not abs(value) <= _MAX_FLOAT:
                    raise ValueError
            except ValueError:
                raise self.error(f"found {text[:40]!r}, expected float {index + 1} of {count}") from None
            values[index] = value
        return self._checked(values)

    def _checked(self, block: FloatArray) -> FloatArray:
        if not np.isfinite(block).all():
            raise self.error("found a weight that is not finite")
        # Weight decay leaves denormal numbers. Processors need a hundred times as long to multiply them.
        block[np.abs(block) < np.finfo(np.float32).tiny] = 0.0
        block.setflags(write=False)
        return block
