"""Packed programs of large networks, in the folder `programs` of the cache.

To pack a network of 100 MB takes several seconds and twice its memory. To read the packed program from its file takes
0.1 s. The file is read and not mapped into memory: numpy places large arrays on huge pages, which mapped files lack.
All threads of a process share the weights.
"""

import functools
import hashlib
import json
import logging
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from yomi.errors import one_line
from yomi.native.forward.builder import Program, aligned
from yomi.native.forward.program import OP_DTYPE, PLAN_DTYPE
from yomi.native.jit import kernel_key
from yomi.nets import katago
from yomi.nets.errors import NetworkError
from yomi.nets.files import atomic_writer, default_cache_dir
from yomi.nets.metadata import NetworkInfo
from yomi.nets.text import parse_json

_log = logging.getLogger("yomi.networks")

WORTH = 32 << 20  # bytes of weights; smaller programs are made in half a second, and are not stored
_KEY_LENGTH = 32


def load_program(digest: str, size: int, precision: str) -> tuple[Program, NetworkInfo] | None:
    """Return the cached program and its NetworkInfo, or None if no usable one exists.

    `digest` is that of the network's file (`yomi.nets.files.source_digest`), `precision` the requested one.
    """
    path = _path(digest, size, precision)
    try:
        with path.open("rb", buffering=0) as stream:
            program, info = _read(stream)
        if (info.source_sha256, info.board_size) != (digest, size):
            raise ValueError("it belongs to another network or board size")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, NetworkError) as error:
        _log.warning("%s cannot be used (%s): packing the network again", path, one_line(str(error)))
        return None
    return program, info


def keep_program(program: Program, info: NetworkInfo, precision: str) -> None:
    """Store a large program for the next start. Smaller programs are ignored. A failure goes to the log.

    The key contains the file's digest and the board size of `info`, and the requested precision.
    """
    if program.weights.nbytes < WORTH:
        return
    path = _path(info.source_sha256, info.board_size, precision)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{_stem(info.source_sha256, info.board_size, precision)}-*.bin"):
            old.unlink(missing_ok=True)
        with atomic_writer(path, sync=True) as stream:
            _write(stream, program, info)
    except OSError as error:
        reason = error.strerror or error
        _log.warning("%s cannot be written (%s): the network is packed again at every start", path, reason)


def _path(digest: str, size: int, precision: str) -> Path:
    return default_cache_dir() / "programs" / f"{_stem(digest, size, precision)}-{_recipe()}.bin"


def _stem(digest: str, size: int, precision: str) -> str:
    return f"{digest[:_KEY_LENGTH]}-{size}-{precision}"


@functools.cache
def _recipe() -> str:
    """Return a short hash of everything besides the file that determines a program: sources, target processor."""
    digest = hashlib.sha256(f"{kernel_key('forward')} {np.__version__}".encode())
    for path in (Path(__file__), *sorted(Path(katago.__file__).parent.glob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _write(stream: BinaryIO, program: Program, info: NetworkInfo) -> None:
    """Write a line with a checksum and JSON, then the arrays."""
    arrays = [np.array([program.plan], PLAN_DTYPE), program.ops, program.weights]
    header = {
        "info": info.to_json(),
        "precision": program.precision,
        "max_rows": program.max_rows,
        "scratch_floats": program.scratch_floats,
        "ops": len(program.ops),
        "weights": program.weights.size,
        "sums": [zlib.adler32(_bytes(array)) for array in arrays],
    }
    line = json.dumps(header).encode()
    stream.write(b"%08x %s\n" % (zlib.adler32(line), line))
    for array in arrays:
        stream.write(_bytes(array))


def _read(stream: Any) -> tuple[Program, NetworkInfo]:
    line = stream.read(1 << 16).partition(b"\n")[0]
    sum_, _, text = line.partition(b" ")
    if sum_ != b"%08x" % zlib.adler32(text):  # the kernels trust sizes
        raise ValueError("it is damaged")
    header = parse_json(text)
    sizes = PLAN_DTYPE.itemsize + header["ops"] * OP_DTYPE.itemsize + 4 * header["weights"]
    if stream.seek(0, 2) != len(line) + 1 + sizes:
        raise ValueError("it is truncated")
    stream.seek(len(line) + 1)
    plan, ops, weights = np.empty(1, PLAN_DTYPE), np.empty(header["ops"], OP_DTYPE), aligned(header["weights"])
    for array, expected in zip((plan, ops, weights), header["sums"], strict=True):
        view = _bytes(array)
        read = 0
        while count := stream.readinto(view[read:]):
            read += count
        if zlib.adler32(view) != expected:
            raise ValueError("it is damaged")
    program = Program(plan[0], ops, weights, header["max_rows"], header["scratch_floats"], header["precision"])
    return program, NetworkInfo.from_json(header["info"])


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return memoryview(array.view(np.uint8).reshape(-1))  # type: ignore[arg-type]  # unknown to mypy before 3.12
