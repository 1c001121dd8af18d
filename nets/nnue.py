"""NNUE evaluation files of shogi engines (nn.bin): architectures, and a reader.

    4 bytes        version 7AF32F16
    4 bytes        hash of the whole network
    4 bytes        length d of the architecture text
    d bytes        the text: the inputs as [N->Hx2], each layer as [outputs<-inputs], the last layer first
    4 bytes        hash of the first layer
    2 H bytes      its biases, int16
    2 N H bytes    its weights, int16, H for each input
    4 bytes        hash of the other layers
    then for each layer: biases, int32, and weights, int8, padded to a multiple of 32 for each output

All numbers are little-endian. An architecture's name is "features Hx2-h1-h2": H sums for each side's view of the board,
then layers of h1, h2 and 1 outputs.

SFNN networks ("SFNN features H-h1-h2") multiply one half of a view's sums by the other half. The numbers of their first
layer are packed: 17 bytes COMPRESSED_LEB128, the number of bytes, and 1 to 3 bytes for each number, 7 bits in each, the
lowest first. They have one or nine stacks of the other layers, each after a hash. The kings' ranks choose a stack.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError

# Weights of an output are padded to a multiple of this.
PADDING = 32
_WORD = (1 << 32) - 1


@dataclass(frozen=True)
class Features:
    """A set of inputs for the first layer."""

    name: str
    # Number of inputs. It identifies the set: no two sets have the same number.
    rows: int
    hash: int


FEATURES = (
    Features("K-P", 1710, 0x3F5717FF),
    Features("HalfKP", 125388, 0x5D69D5B8),
    Features("HalfKP_vm", 69660, 0x0B6B1D9A),
    Features("HalfKA1", 138510, 0x5F134CB8),
    Features("HalfKA2", 131949, 0x5F234CB8),
    Features("HalfKA_hm1", 76950, 0x7F134CB8),
    Features("HalfKA_hm2", 73305, 0x7F234CB8),
)
# Known pairs (h1, h2). Some trainers write a fixed text with other sizes into the file.
HIDDEN_SIZES = ((32, 32), (8, 64), (8, 96), (16, 32), (16, 64), (8, 32))
SFNN_SIZES = ((15, 32), (7, 64), (15, 64), (7, 32), (8, 64), (16, 32))


@dataclass(frozen=True)
class Architecture:
    """The inputs and layer sizes of a network."""

    features: Features
    width: int  # H: sums of the first layer for each view
    hidden: tuple[int, int]  # (h1, h2): outputs of the two following layers
    stacks: int = 0  # SFNN: stacks of the following layers, 1 or 9; otherwise 0

    @property
    def name(self) -> str:
        if self.stacks:
            stacks = " k3k3" if self.stacks > 1 else ""
            return f"SFNN {self.features.name} {self.width}-{self.hidden[0]}-{self.hidden[1]}{stacks}"
        return f"{self.features.name} {self.width}x2-{self.hidden[0]}-{self.hidden[1]}"

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(outputs, inputs) of each of the three layers after the first."""
        first, second = self.hidden
        if self.stacks:
            # If h1 is 7, 15, ... one more output goes straight into the value.
            return (first + (first % 8 == 7), self.width), (second, 2 * first), (1, second)
        return (first, 2 * self.width), (second, first), (1, second)

    @property
    def transformer_hash(self) -> int:
        return 0x5F134AB8 if self.stacks else self.features.hash ^ (2 * self.width)

    @property
    def network_hash(self) -> int:
        if self.stacks:
            return 0x6333718A
        value = 0xEC42E90D ^ (2 * self.width)
        for number, (outputs, _) in enumerate(self.layers):
            if number:
                value = (value + 0x538D24C7) & _WORD
            value = ((0xCC03DAE4 + outputs) & _WORD) ^ (value >> 1) ^ ((value << 31) & _WORD)
        return value

    @property
    def hash(self) -> int:
        return self.transformer_hash ^ self.network_hash

    def size(self, text: int, transformer: int = 0) -> int:
        """Return the size of the file in bytes.

        Args:
            text: length of its architecture text.
            transformer: bytes of its first layer; 0: two for each number.
        """
        transformer = transformer or 2 * self.width * (1 + self.features.rows)
        stack = 4 + sum(4 * out + out * padded(inputs) for out, inputs in self.layers)
        return 12 + text + 4 + transformer + max(1, self.stacks) * stack


def padded(inputs: int) -> int:
    """Return the number of weights that the file contains for each output of a layer."""
    return -(-inputs // PADDING) * PADDING


VERSION = 0x7AF32F16
LAYERS = ("first", "second", "last")  # after the layer of the inputs
# The kernels need a first layer whose width is a multiple of this.
WIDTH_STEP = 128
MAX_WIDTH, MAX_HIDDEN, MAX_TEXT = 4096, 256, 4096
_HEADER = 12
_MAKERS_HASH = "the file's hash {found:08X} is not {name}'s hash {expected:08X}; it is used all the same"
_PACKED = b"COMPRESSED_LEB128"
_CHUNK = 1 << 18  # bytes that are unpacked at a time, so that they stay in the processor's cache
_SFNN = "ModelType=SFNNWithoutPsqt;"
_SFNN_SIZES = re.compile(r"SFNN_[^_]*_\d+_(\d{1,5})_(\d{1,5})")
_STACKS = re.compile(r"\{LayerStack=(\d{1,9})\}")
_INPUTS = re.compile(r"\[(\d{1,7})->(\d{1,5})x2\]")
_LAYER = re.compile(r"\[(\d{1,5})<-(\d{1,5})\]")
_UNKNOWN = "expected " + ", ".join(row.name for row in FEATURES)

log = logging.getLogger("yomi.networks")


def looks_like_nnue(start: bytes) -> bool:
    """Return whether a file that begins with these bytes (at least four) is an NNUE file of any version."""
    return start[1:4] == VERSION.to_bytes(4, "little")[1:]


def read_architecture(path: Path) -> Architecture:
    """Return the architecture of a file. Only the header is read.

    Raises:
        NetworkError: the file cannot be used.
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return _read_header(path, stream)[0]


def read_nnue(path: Path) -> tuple[Architecture, dict[str, npt.NDArray[Any]]]:
    """Return the architecture of a file and its tensors.

    These are rows int16[N, H] and bias int16[H]; for the layers first, second and last, weights
    int8[stacks, outputs, inputs] and biases int32[stacks, outputs], as `first`, `first_bias` and so on. Rows and bias
    of an SFNN network are twice the file's numbers, as in YaneuraOu.

    Raises:
        NetworkError: the file cannot be used.
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        architecture, found = _read_header(path, stream)
        hashes = [(architecture.hash, found), (architecture.transformer_hash, int.from_bytes(stream.read(4), "little"))]
        read = _unpacked if architecture.stacks else _read
        tensors = {"bias": read(path, stream, "<i2", architecture.width)}
        tensors["rows"] = read(path, stream, "<i2", architecture.features.rows, architecture.width)
        stacks: dict[str, list[npt.NDArray[Any]]] = {}
        for _ in range(max(1, architecture.stacks)):
            hashes.append((architecture.network_hash, int.from_bytes(stream.read(4), "little")))
            for name, (outputs, inputs) in zip(LAYERS, architecture.layers, strict=True):
                stacks.setdefault(f"{name}_bias", []).append(_read(path, stream, "<i4", outputs))
                stacks.setdefault(name, []).append(_read(path, stream, "i1", outputs, padded(inputs))[:, :inputs])
    tensors.update({name: np.stack(parts) for name, parts in stacks.items()})
    # A wrong hash is only a warning, since engines use such files, too.
    for expected, found in hashes:
        if found != expected:
            text = _MAKERS_HASH.format(found=found, name=architecture.name, expected=expected)
            log.warning("%s: %s", path, text)
            break
    return architecture, tensors


def _read(path: Path, stream: BinaryIO, kind: str, *shape: int) -> npt.NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    numbers = np.fromfile(stream, kind, count)
    if len(numbers) != count:  # the file has become shorter since its size was read
        raise NetworkError(f"{path}: cut short while it was read")
    return numbers.reshape(shape)


def _unpacked(path: Path, stream: BinaryIO, kind: str, *shape: int) -> npt.NDArray[Any]:
    """Read packed numbers and double them. They wrap around as in YaneuraOu."""
    count = int(np.prod(shape, dtype=np.int64))
    left = _packed_bytes(path, stream, count)
    damaged = NetworkError(f"{path}: packed numbers are damaged, expected {count} of 1 to 3 bytes")
    numbers, done = np.empty(count, kind), 0
    rest = np.zeros(0, np.uint8)  # bytes of a number that the next chunk ends
    while left:
        data = np.concatenate([rest, _read(path, stream, "u1", min(left, _CHUNK))])
        left -= len(data) - len(rest)
        is_end = data < 128
        size = len(data) - int(np.argmax(is_end[::-1])) if is_end.any() else 0
        data, rest, is_end = data[:size], data[size:], is_end[:size]
        last = data[is_end]
        values = numbers[done : done + len(last)]
        # `places` of the few other bytes, and the `owners` that they are part of.
        places = np.flatnonzero(~is_end)
        owners = places - np.arange(len(places))
        is_second = np.diff(owners, prepend=-1) == 0
        if len(values) < len(last) or len(rest) > 2 or (is_second[1:] & is_second[:-1]).any():
            raise damaged
        np.subtract(last ^ 64, 64, out=values, dtype=np.int16)  # bit 6 of the last byte is the sign
        for is_part in (~is_second, is_second):
            values[owners[is_part]] <<= 7
        for is_part, shift in ((~is_second, 0), (is_second, 7)):
            values[owners[is_part]] |= (data[places[is_part]] & np.int16(127)) << shift
        done += len(last)
    if done != count or len(rest):
        raise damaged
    numbers <<= 1
    return numbers.reshape(shape)


def _packed_bytes(path: Path, stream: BinaryIO, count: int) -> int:
    """Return the length of a block of `count` packed numbers. Leave the stream at the first number."""
    start = stream.read(len(_PACKED))
    size = int.from_bytes(stream.read(4), "little")
    if start != _PACKED or not count <= size <= 3 * count:
        found = f"{start!r}, {size} bytes" if start == _PACKED else repr(start)
        raise NetworkError(f"{path}: {found} found, expected {_PACKED!r}, {count} to {3 * count} bytes")
    return size


def _read_header(path: Path, stream: BinaryIO) -> tuple[Architecture, int]:
    """Read the header. Return the architecture and the hash of the whole network. The stream is then after the text."""
    size = stream.seek(0, 2)
    stream.seek(0)
    start = stream.read(_HEADER)
    if len(start) < _HEADER:
        raise NetworkError(f"{path}: {size} bytes found, expected an NNUE file with a header of {_HEADER}")
    version, whole, length = (int.from_bytes(start[i : i + 4], "little") for i in (0, 4, 8))
    if version != VERSION:
        raise NetworkError(f"{path}: version {version:08X} found, expected an NNUE file of version {VERSION:08X}")
    if length > min(MAX_TEXT, size - _HEADER):
        limit = min(MAX_TEXT, size - _HEADER)
        raise NetworkError(f"{path}: an architecture text of {length} bytes found, expected at most {limit}")
    text = stream.read(length).decode("ascii", "replace")
    architecture = _architecture(path, text, size, stream)
    stream.seek(_HEADER + length)
    return architecture, whole


def _architecture(path: Path, text: str, size: int, stream: BinaryIO) -> Architecture:
    """Return the architecture with this text and file size. The stream is behind the text."""
    is_sfnn = text.startswith(_SFNN)
    if text.startswith("ModelType=") and not is_sfnn:
        raise NetworkError(f"{path}: {text[:100].split(';')[0]!r} found, expected SFNNWithoutPsqt or no ModelType")
    inputs = _INPUTS.search(text)
    if inputs is None:
        raise NetworkError(f"{path}: the architecture {text[:100]!r} found, expected its inputs as [N->Hx2]")
    rows, width = int(inputs[1]), int(inputs[2])
    features = next((row for row in FEATURES if row.rows == rows), None)
    if features is None:
        raise NetworkError(f"{path}: {rows} inputs found, {_UNKNOWN}")
    if width % WIDTH_STEP or not 0 < width <= MAX_WIDTH:
        raise NetworkError(f"{path}: width {width} found, expected a multiple of {WIDTH_STEP} up to {MAX_WIDTH}")
    pairs = [(int(pair[1]), int(pair[2])) for pair in _LAYER.finditer(text)]
    written = (pairs[1][1], pairs[0][1]) if len(pairs) == 3 else None
    stacks = transformer = 0
    if is_sfnn:
        found = _STACKS.search(text)
        stacks = int(found[1]) if found else 1
        if stacks not in (1, 9):
            raise NetworkError(f"{path}: {stacks} stacks of layers found, expected 1, or 9 for the kings' ranks (k3k3)")
        if named := _SFNN_SIZES.search(text):
            written = (int(named[1]), int(named[2]))
        start = stream.seek(4, 1)
        for count in (width, width * rows):
            transformer = stream.seek(_packed_bytes(path, stream, count), 1) - start
    if written is not None and not all(0 < outputs <= MAX_HIDDEN for outputs in written):
        raise NetworkError(f"{path}: layers of {written} outputs found, expected 1 to {MAX_HIDDEN}")
    # Some trainers write the text of another network. So its sizes are tried first, then known ones.
    sizes = [*([written] if written else []), *(SFNN_SIZES if is_sfnn else HIDDEN_SIZES)]
    sizes = [hidden for hidden in sizes if not is_sfnn or hidden[0] % 8 in (0, 7)]
    candidates = [Architecture(features, width, hidden, stacks) for hidden in sizes]
    for architecture in candidates:
        if architecture.size(len(text), transformer) == size:
            return architecture
    first = candidates[0]
    expected = first.size(len(text), transformer)
    raise NetworkError(f"{path}: {size} bytes found, expected {expected} for {first.name}: the file is cut or damaged")
