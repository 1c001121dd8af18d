"""Slow twin of NNUE evaluations, written from a description of the format: inputs, arithmetic, and a writer of files.

A piece is (kind, color, square); square = file * 9 + rank, colors are 0 (Black) and 1 (White).
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from yomi.nets.nnue import VERSION, Architecture, padded

KINDS = ["-", "P", "L", "N", "S", "B", "R", "G", "K", "+P", "+L", "+N", "+S", "H", "D"]
"""Names by piece code."""
ON_BOARD = {"P": 90, "L": 252, "N": 414, "S": 576, "G": 738, "B": 900, "H": 1062, "R": 1224, "D": 1386, "K": 1548}
IN_HAND = {"P": (1, 20), "L": (39, 44), "N": (49, 54), "S": (59, 64), "G": (69, 74), "B": (79, 82), "R": (85, 88)}
HAND = "PLNSGBR"


def flipped(square: int) -> int:
    """Return the same square on the board's other side."""
    file, rank = divmod(square, 9)
    return (8 - file) * 9 + rank


def rows_of(name: str, board: list[int], hands: list[list[int]], view: int) -> list[int]:
    """Return the rows of a view, sorted, those of absent pieces included.

    Args:
        name: of the inputs.
        board: 81 piece codes.
        hands: counts by color, in the order of HAND.
        view: 0: Black's, 1: White's.
    """
    pieces, kings, own_king = [], [], 0
    for square, code in enumerate(board):
        if code:
            is_own = (code >= 16) == (view == 1)
            place = 80 - square if view else square
            kind = KINDS[code % 16]
            if kind == "K":
                kings.append((is_own, place))
                own_king = place if is_own else own_king
            else:
                pieces.append(("G" if kind[0] == "+" else kind, is_own, place))
    mirror = name in ("HalfKP_vm", "HalfKA_hm1", "HalfKA_hm2") and own_king // 9 >= 5
    see = flipped if mirror else lambda square: square
    numbers = [ON_BOARD[kind] + (0 if is_own else 81) + see(place) for kind, is_own, place in pieces]
    for color, hand in enumerate(hands):
        for kind, count in zip(HAND, hand, strict=True):
            numbers += [IN_HAND[kind][color != view] + i for i in range(count)]
    numbers += [0] * (38 - len(numbers))
    if "KP" not in name:
        folded = name in ("HalfKA2", "HalfKA_hm2")
        found = [1548 + (0 if is_own or folded else 81) + see(place) for is_own, place in kings]
        numbers += found + [0] * (2 - len(found))
    size = {"HalfKP": 1548, "HalfKP_vm": 1548, "HalfKA1": 1710, "HalfKA_hm1": 1710, "K-P": 0}.get(name, 1629)
    return sorted(size * see(own_king) + number for number in numbers)


def output_of(tensors: dict[str, Any], views: list[list[int]], mover: int, ranks: tuple[int, int] = (0, 0)) -> int:
    """Return the network's output for the rows of both views.

    Args:
        tensors: as `read_nnue` returns them.
        views: rows of Black's and of White's view.
        mover: 0: Black, 1: White.
        ranks: of the mover's and the opponent's king, each seen by its own side, 0 to 8. A network of nine stacks needs
            them.
    """
    sums = []
    for view in (mover, 1 - mover):
        total = tensors["bias"].astype(np.int64) + tensors["rows"][views[view]].astype(np.int64).sum(0)
        sums.append((total + 32768) % 65536 - 32768)  # 16 bits that wrap around
    stack = ranks[0] // 3 * 3 + ranks[1] // 3 if len(tensors["first"]) == 9 else 0
    layers = {name: tensors[name][stack].astype(np.int64) for name in ("first", "second", "last")}
    biases = {name: tensors[f"{name}_bias"][stack] for name in layers}
    if layers["first"].shape[1] == 2 * len(sums[0]):
        units = np.clip(np.concatenate(sums), 0, 127)
        units = np.clip((layers["first"] @ units + biases["first"]) >> 6, 0, 127)
        shortcut = 0
    else:
        halves = [np.split(np.clip(total, 0, 254), 2) for total in sums]
        units = np.concatenate([first * second // 512 for first, second in halves])
        totals = layers["first"] @ units + biases["first"]
        count = layers["second"].shape[1] // 2
        shortcut = totals[count] if len(totals) > count else 0
        squares = np.minimum(totals[:count] ** 2 // 2**19, 127)
        units = np.concatenate([squares, np.clip(totals[:count] >> 6, 0, 127)])
    units = np.clip((layers["second"] @ units + biases["second"]) >> 6, 0, 127)
    return int((layers["last"] @ units + biases["last"])[0] + shortcut)


def random_tensors(architecture: Architecture, seed: int, size: int = 40) -> dict[str, Any]:
    """Return a network of random numbers; `size`: about that of the first layer's rows."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-size, size + 1, (architecture.features.rows, architecture.width), np.int16)
    tensors: dict[str, Any] = {"rows": rows, "bias": rng.integers(-200, 200, architecture.width).astype(np.int16)}
    if architecture.stacks:
        tensors = {name: numbers * np.int16(2) for name, numbers in tensors.items()}
    stacks = max(1, architecture.stacks)
    for name, (outputs, inputs) in zip(("first", "second", "last"), architecture.layers, strict=True):
        # SFNN: small weights, so that squares are not all clipped.
        limit = 12 if architecture.stacks and name == "first" else 128
        tensors[name] = rng.integers(-limit, limit, (stacks, outputs, inputs)).astype(np.int8)
        tensors[f"{name}_bias"] = rng.integers(-9000, 9000, (stacks, outputs)).astype(np.int32)
    return tensors


def fixed_tensors(architecture: Architecture, used: Iterable[int]) -> dict[str, Any]:
    """Return a network whose numbers come from no random generator, so that values of another engine stay valid.

    Rows that are not `used` are 0 and take no memory.
    """

    def numbers(name: str, *shape: int) -> Any:
        data = hashlib.shake_128(name.encode()).digest(int(np.prod(shape)))
        return np.frombuffer(data, np.int8).reshape(shape)

    double = np.int16(2 if architecture.stacks else 1)
    width, stacks = architecture.width, max(1, architecture.stacks)
    tensors = {"bias": numbers("bias", width) * double}
    tensors["rows"] = np.zeros((architecture.features.rows, width), np.int16)
    for row in used:
        tensors["rows"][row] = numbers(f"row {row}", width) // np.int8(5) * double
    # Layers: such that not all outputs are clipped.
    for (name, divisor), shape in zip({"first": 8, "second": 1, "last": 3}.items(), architecture.layers, strict=True):
        tensors[name] = numbers(name, stacks, *shape) // np.int8(divisor)
        if name == "first" and not architecture.stacks:
            tensors[name] = numbers(name, stacks, *shape) % np.int8(9) - np.int8(4)
        tensors[f"{name}_bias"] = numbers(f"{name}_bias", stacks, shape[0]) * np.int32(64)
    return tensors


def text_of(architecture: Architecture) -> str:
    """Return the text that a trainer writes for an architecture."""
    (h1, inputs), (h2, _), _ = architecture.layers
    layers = f"AffineTransform[{h1}<-{inputs}](InputSlice[{inputs}(0:{inputs})])"
    layers = f"AffineTransform[1<-{h2}](ClippedReLU[{h2}](AffineTransform[{h2}<-{h1}](ClippedReLU[{h1}]({layers}))))"
    inputs_text = f"{architecture.features.name}[{architecture.features.rows}->{architecture.width}x2]"
    if architecture.stacks:
        name = "_".join(map(str, (architecture.width, *architecture.hidden)))
        layers = f"SFNN_X_{name}{{LayerStack={architecture.stacks}}}"
        return f"ModelType=SFNNWithoutPsqt;Features={inputs_text},Network={layers}"
    return f"Features={inputs_text},Network={layers}"


def file_of(architecture: Architecture, tensors: dict[str, Any], text: str | None = None) -> bytes:
    """Return the file of a network."""
    written = (text_of(architecture) if text is None else text).encode()

    def word(number: int) -> bytes:
        return number.to_bytes(4, "little")

    parts = [word(VERSION), word(architecture.hash), word(len(written)), written, word(architecture.transformer_hash)]
    for name in ("bias", "rows"):
        if architecture.stacks:
            block = packed(tensors[name].ravel() // 2)
            parts += [b"COMPRESSED_LEB128", word(len(block)), block]
        else:
            parts.append(tensors[name].astype("<i2").tobytes())
    for stack in range(max(1, architecture.stacks)):
        parts.append(word(architecture.network_hash))
        for name in ("first", "second", "last"):
            weights = tensors[name][stack]
            filled = np.zeros((len(weights), padded(weights.shape[1])), np.int8)
            filled[:, : weights.shape[1]] = weights
            parts += [tensors[f"{name}_bias"][stack].astype("<i4").tobytes(), filled.tobytes()]
    return b"".join(parts)


def packed(numbers: Any) -> bytes:
    """Return 16-bit numbers in bytes of 7 bits, the lowest first; bit 6 of a number's last byte is its sign."""
    numbers = numbers.astype(np.int64)
    sizes = 1 + ((numbers < -64) | (numbers > 63)) + ((numbers < -(2**13)) | (numbers >= 2**13))
    places = np.arange(3)
    data = (numbers[:, None] >> 7 * places & 127) | np.where(places + 1 < sizes[:, None], 128, 0)
    return bytes(data[places < sizes[:, None]].astype(np.uint8))
