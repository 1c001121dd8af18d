"""Reads arrays of numbers and text from .npy and .npz files."""

import errno
import math
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError

# numpy's own reader parses headers as Python code, passes on the errors of that parser, and allocates memory before it
# knows the size. This one accepts only what numpy writes, and checks sizes first.
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    r"\{'descr': '([<>|=]?[biufU]\d{1,4})', 'fortran_order': False, "
    r"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n"
)
_MAX_HEADER = 1 << 12
_MAX_AXES = 8
# Errors of zipfile for damaged archives
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, struct.error)


@dataclass(frozen=True)
class Header:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int  # position of the first number in the file


def read_header(stream: BinaryIO, size: int) -> Header:
    """Read the header of a .npy file. `stream` is at the beginning of the file, whose size is `size` bytes.

    Raises:
        NetworkError: another kind of header, or an array that does not fill the file. The message has no path.
        OSError: the file cannot be read.
    """
    start = stream.read(len(_MAGIC) + 2)
    # Version 1 stores the header's length in two bytes, later versions in four.
    width = {1: 2, 2: 4, 3: 4}.get(start[-2] if len(start) == len(_MAGIC) + 2 else 0, 0)
    if not start.startswith(_MAGIC) or not width:
        raise NetworkError(f"a file that starts with {start!r} found, expected an array (.npy)")
    length = int.from_bytes(stream.read(width), "little")
    text = stream.read(min(length, _MAX_HEADER)).decode("latin-1")
    match = _HEADER.fullmatch(text)
    if match is None or len(text) != length:
        raise NetworkError(f"the header {text[:100].strip()!r} found, expected an array of numbers in C order")
    try:
        dtype = np.dtype(match[1])
    except TypeError:
        raise NetworkError(f"element type {match[1]!r} found, expected numbers") from None
    shape = tuple(int(side) for side in match[2].split(",") if side.strip())
    offset = len(start) + width + length
    if len(shape) > _MAX_AXES or offset + math.prod(shape) * dtype.itemsize != size:
        raise NetworkError(f"{size - offset} bytes of numbers found, expected {dtype} of shape {shape}")
    return Header(dtype, shape, offset)


def read_npz(stream: BinaryIO, compressed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an archive written by `numpy.savez`.

    Args:
        stream: the archive.
        compressed: bytes that compressed arrays may have in total; 0: they are refused.

    Raises:
        NetworkError: the archive is damaged or of another kind. The message has no path.
        OSError: it cannot be read.
    """
    arrays, left = {}, compressed
    try:
        with zipfile.ZipFile(stream) as archive:
            for entry in archive.infolist():
                # An uncompressed entry cannot be larger than the file, so a small file cannot claim much memory.
                if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                    if not compressed or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise NetworkError(f"{entry.filename} compressed found, expected an archive of numpy.savez")
                    left -= entry.file_size
                    if left < 0:
                        raise NetworkError(f"more than {compressed} bytes of arrays found, expected less")
                with archive.open(entry) as member:
                    header = read_header(member, entry.file_size)  # type: ignore[arg-type]  # only its `read` is used
                    array = np.frombuffer(member.read(), header.dtype).reshape(header.shape)
                arrays[entry.filename.removesuffix(".npy")] = array
    except NetworkError:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a place before the file's beginning, which a damaged archive names
            raise
        raise NetworkError("damaged archive found, expected arrays (.npz)") from None
    except _DAMAGE as error:
        raise NetworkError(f"{error}: expected an archive of arrays (.npz)") from None
    return arrays
