"""Reader of KataGo network files: `.bin.gz`, `.bin.xz`, `.bin` and the same as `.txt`, versions 8 to 17."""

import lzma
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from yomi.errors import reraised
from yomi.nets.errors import NetworkError
from yomi.nets.katago import network as katago
from yomi.nets.katago.network import FloatArray

# Versions differ in their content: activation kinds from 11, a second policy channel from 12, output scales from 13,
# the metadata encoder, the pass layer and the RMS norm of the trunk's tip from 15, four policy channels in 16, a stored
# number of policy channels from 17. Blocks of every kind are read in every version.
#
# Limits of sizes, so that a small damaged file cannot claim much memory.
_MAX_CHANNELS = 1 << 14
_MAX_KERNEL = 37
_MAX_BLOCKS = 1 << 12
_MAX_NESTING = 8

T = TypeVar("T")


def read_network(path: str | Path) -> katago.KataGoNetwork:
    """Read a KataGo network file.

    Raises:
        NetworkError: the file is broken, truncated, not a KataGo network, or of a version that is not supported.
    """
    path = Path(path)
    return parse_network(_read_container(path), str(path))


def parse_network(data: bytes, path: str = "network") -> katago.KataGoNetwork:
    """Parse the uncompressed content of a network file. `path` is used in messages only.

    Raises:
        NetworkError: as `read_network`.
    """
    return _Reader(_TokenStream(data, path)).network()


def looks_like_network(path: Path) -> bool:
    """Return whether a file begins like a KataGo network: with a name and three small integers.

    Raises:
        NetworkError: the file cannot be read.
    """
    tokens = _read_head(path, 1024).split(maxsplit=4)
    return len(tokens) == 5 and tokens[0].isascii() and all(t.isdigit() and len(t) < 5 for t in tokens[1:4])


class _Reader:
    """Reads records in the order of the file. Its methods correspond to the sections of the format."""

    def __init__(self, stream: "_TokenStream") -> None:
        self._stream = stream
        self._version = 0

    def network(self) -> katago.KataGoNetwork:
        stream = self._stream
        name = stream.name()
        self._version = stream.integer("a model version", 0, 1 << 20)
        if not katago.OLDEST_VERSION <= self._version <= katago.NEWEST_VERSION:
            known = f"{katago.OLDEST_VERSION} to {katago.NEWEST_VERSION}"
            raise stream.error(f"model version {self._version} found, expected one of {known}")
        stream.integer("the number of spatial inputs", katago.SPATIAL_CHANNELS, katago.SPATIAL_CHANNELS)
        stream.integer("the number of global inputs", katago.GLOBAL_CHANNELS, katago.GLOBAL_CHANNELS)
        scales = self._scales()
        meta_version, prefer_suicide = 0, False
        if self._version >= 15:
            meta_version = stream.integer("the metadata encoder's version", 0, 1)
            prefer_suicide = stream.flag("preferPassAliveUnderSuicideRules")
            stream.zeros(6)
        trunk = self._trunk(meta_version)
        policy_head = self._policy_head(trunk.channels)
        value_head = self._value_head(trunk.channels)
        stream.finish()
        return katago.KataGoNetwork(name, self._version, scales, prefer_suicide, trunk, policy_head, value_head)

    def _scales(self) -> katago.OutputScales:
        if self._version < 13:
            return katago.OutputScales()
        return katago.OutputScales(*(self._stream.real("an output scale", 0.0) for _ in range(7)))

    # Primitive records

    def _conv(self, in_channels: int, out_channels: int | None = None) -> katago.Conv:
        stream = self._stream
        name = stream.name()
        ky = self._odd("the kernel's height")
        kx = self._odd("the kernel's width")
        self._channels("input channels", in_channels)
        out_channels = self._channels("output channels", out_channels)
        stream.integer("the vertical dilation", 1, 1)
        stream.integer("the horizontal dilation", 1, 1)
        block = stream.floats(ky * kx * in_channels * out_channels).reshape(ky, kx, in_channels, out_channels)
        return katago.Conv(name, np.ascontiguousarray(block.transpose(3, 2, 0, 1)))

    def _odd(self, what: str) -> int:
        size = self._stream.integer(what, 1, _MAX_KERNEL)
        if size % 2 == 0:
            raise self._stream.error(f"found {size}, expected {what} to be odd")
        return size

    def _channels(self, what: str, expected: int | None) -> int:
        if expected is None:
            return self._stream.integer(what, 1, _MAX_CHANNELS)
        return self._stream.integer(what, expected, expected)

    def _batch_norm(self, channels: int) -> katago.BatchNorm:
        stream = self._stream
        name = stream.name()
        self._channels("channels", channels)
        epsilon = stream.real("epsilon", 0.0)
        has_scale = stream.flag("hasScale")
        has_bias = stream.flag("hasBias")
        mean = stream.floats(channels)
        variance = stream.floats(channels)
        if (variance + epsilon <= 0).any():
            raise stream.error("found a variance that is not positive")
        scale = stream.floats(channels) if has_scale else np.ones(channels, np.float32)
        bias = stream.floats(channels) if has_bias else np.zeros(channels, np.float32)
        return katago.BatchNorm(name, mean, variance, scale, bias, epsilon)

    def _rms_norm(self, channels: int, *, is_tip: bool = False) -> katago.RmsNorm:
        stream = self._stream
        name = stream.name()
        self._channels("channels", channels)
        epsilon = stream.real("epsilon", 0.0)
        spatial = is_tip and stream.flag("whether the norm is spatial")
        if is_tip:
            stream.integer("the norm's channel group", 0, 0)
        gamma = stream.floats(channels)
        beta = stream.floats(channels) if is_tip else np.zeros(channels, np.float32)
        return katago.RmsNorm(name, gamma, beta, epsilon, spatial)

    def _activation(self) -> katago.Activation:
        self._stream.name()
        if self._version < 11:
            return katago.Activation.RELU
        kind = self._stream.token("an activation")
        try:
            return katago.Activation(kind)
        except ValueError:
            known = ", ".join(member.value for member in katago.Activation)
            raise self._stream.error(f"activation {kind[:40]!r} found, expected one of {known}") from None

    def _matmul(self, in_channels: int, out_channels: int | None = None) -> katago.MatMul:
        name = self._stream.name()
        self._channels("input channels", in_channels)
        out_channels = self._channels("output channels", out_channels)
        return katago.MatMul(name, self._stream.floats(in_channels * out_channels).reshape(in_channels, out_channels))

    def _matbias(self, channels: int) -> katago.MatBias:
        name = self._stream.name()
        self._channels("channels", channels)
        return katago.MatBias(name, self._stream.floats(channels))

    def _make(self, kind: type[T], layout: str, sizes: dict[str, int], **others: Any) -> T:
        """Return an object of the dataclass `kind` from the records of a layout and other fields."""
        return kind(**{**others, **self._records(kind, layout, sizes)})

    def _records(self, kind: type, layout: str, sizes: dict[str, int]) -> dict[str, Any]:
        """Read the records of a layout, and return them by field. `sizes` contains the layout's numbers of channels."""
        found: dict[str, Any] = {}
        for name, record, letters in katago.entries(kind, layout):
            known = [sizes.get(letter, 0) * factor or None for factor, letter in letters]
            found[name] = _READERS[record](self, *known)
            if known and known[-1] is None:
                sizes[letters[-1][1]] = found[name].out_channels
        return found

    # Trunk

    def _trunk(self, meta_version: int) -> katago.Trunk:
        stream = self._stream
        stream.name()
        count = stream.integer("the number of blocks", 0, _MAX_BLOCKS)
        channels = stream.integer("the trunk's channels", 1, _MAX_CHANNELS)
        for what in ("middle", "regular", "dilated", "global pooling"):
            # Only the blocks' own records are used: these fields do not hold for every block kind.
            stream.integer(f"the trunk's {what} channels", 0, _MAX_CHANNELS)
        rms_tip = False
        if self._version >= 15:
            rms_tip = stream.flag("the trunk's norm kind")
            stream.zeros(5)
        conv = self._conv(katago.SPATIAL_CHANNELS, channels)
        matmul = self._matmul(katago.GLOBAL_CHANNELS, channels)
        encoder = self._meta_encoder(channels) if meta_version else None
        blocks = self._blocks(count, channels, 0)
        tip_norm = self._rms_norm(channels, is_tip=True) if rms_tip else self._batch_norm(channels)
        return katago.Trunk(conv, matmul, encoder, blocks, tip_norm, self._activation())

    def _meta_encoder(self, trunk_channels: int) -> katago.MetaEncoder:
        self._stream.name()
        self._stream.integer("the number of metadata inputs", katago.META_CHANNELS, katago.META_CHANNELS)
        sizes = {"i": katago.META_CHANNELS, "c": trunk_channels}
        return self._make(katago.MetaEncoder, katago.ENCODER, sizes)

    def _blocks(self, count: int, channels: int, depth: int) -> tuple[katago.Block, ...]:
        return tuple(self._block(channels, depth) for _ in range(count))

    def _block(self, channels: int, depth: int) -> katago.Block:
        stream = self._stream
        kind = stream.token("a block kind")
        if kind == "ordinary_block":
            return self._make(katago.OrdinaryBlock, katago.ORDINARY, {"c": channels}, name=stream.name())
        if kind == "gpool_block":
            return self._make(katago.GlobalPoolingBlock, katago.POOLING, {"c": channels}, name=stream.name())
        if kind == "nested_bottleneck_block" and depth < _MAX_NESTING:
            return self._bottleneck_block(channels, depth)
        if kind == "transformer_attention_block":
            return self._attention_block(channels)
        if kind == "transformer_ffn_block":
            return self._ffn_block(channels)
        if kind == "nested_bottleneck_block":
            raise stream.error(f"found blocks nested more than {_MAX_NESTING} deep")
        known = (
            "ordinary_block, gpool_block, nested_bottleneck_block, transformer_attention_block, transformer_ffn_block"
        )
        raise stream.error(f"found {kind[:40]!r}, expected a block kind: one of {known}")

    def _bottleneck_block(self, channels: int, depth: int) -> katago.BottleneckBlock:
        name = self._stream.name()
        count = self._stream.integer("the number of inner blocks", 0, _MAX_BLOCKS)
        sizes = {"c": channels}
        first = self._records(katago.BottleneckBlock, katago.BEFORE_BLOCKS, sizes)
        blocks = self._blocks(count, sizes["m"], depth + 1)
        return self._make(katago.BottleneckBlock, katago.AFTER_BLOCKS, sizes, name=name, blocks=blocks, **first)

    def _attention_block(self, channels: int) -> katago.AttentionBlock:
        stream = self._stream
        name = stream.name()
        heads = stream.integer("the number of heads", 1, _MAX_CHANNELS)
        kv_heads = stream.integer("the number of key-value heads", 1, heads)
        if heads % kv_heads:
            raise stream.error(f"found {kv_heads} key-value heads, expected a divisor of {heads} heads")
        q_dim = stream.integer("the width of a query", 1, _MAX_CHANNELS)
        v_dim = stream.integer("the width of a value", 1, _MAX_CHANNELS)
        use_rope = stream.flag("useRope")
        learnable = stream.flag("learnableRope")
        sizes = {"q": heads * q_dim, "k": kv_heads * q_dim, "v": kv_heads * v_dim, "o": heads * v_dim, "c": channels}
        records = self._records(katago.AttentionBlock, katago.ATTENTION, sizes)
        rope = self._rope(kv_heads, q_dim, learnable) if use_rope else None
        return katago.AttentionBlock(name, heads, kv_heads, q_dim, v_dim, rope=rope, **records)

    def _rope(self, kv_heads: int, q_dim: int, learnable: bool) -> FloatArray:
        """Read either kind of rotary encoding as rotations [kv_heads, q_dim / 2, (x, y)]."""
        stream = self._stream
        stream.name()
        if q_dim % 2:
            raise stream.error(f"found queries {q_dim} wide, expected an even width with RoPE")
        pairs = q_dim // 2
        if learnable:
            self._channels("RoPE heads", kv_heads)
            self._channels("RoPE pairs (half the width of a query)", pairs)
            self._channels("RoPE coordinates", 2)
            return stream.floats(kv_heads * pairs * 2).reshape(kv_heads, pairs, 2)
        return katago.fixed_rope(kv_heads, pairs, stream.real("theta", 1e-6))

    def _ffn_block(self, channels: int) -> katago.FeedForwardBlock:
        stream = self._stream
        name = stream.name()
        self._channels("the trunk's channels", channels)
        hidden = stream.integer("hidden channels", 1, _MAX_CHANNELS)
        layout = katago.GATED if stream.flag("useSwiGLU") else katago.UNGATED
        return self._make(katago.FeedForwardBlock, layout, {"c": channels, "h": hidden}, name=name, gate=None)

    # Heads

    def _policy_head(self, trunk_channels: int) -> katago.PolicyHead:
        self._stream.name()
        sizes = {"c": trunk_channels, "o": self._policy_channels()}
        passing = katago.PASS if self._version >= 15 else katago.OLD_PASS
        return self._make(katago.PolicyHead, f"{katago.POLICY}, {passing}", sizes, **katago.NO_PASS_LAYER)

    def _policy_channels(self) -> int:
        stream = self._stream
        if self._version < 12:
            return 1
        if self._version < 16:
            return 2
        if self._version == 16:
            return 4
        channels = stream.integer("the number of policy channels", 2, 4)
        if channels == 3:
            raise stream.error("found 3 policy channels, expected 2 or 4")
        stream.zeros(3)
        return channels

    def _value_head(self, trunk_channels: int) -> katago.ValueHead:
        self._stream.name()
        if self._version >= 17:
            self._stream.zeros(3)
        sizes = {"c": trunk_channels, "r": 3, "s": 4 if self._version < 9 else 6, "o": 1}
        return self._make(katago.ValueHead, katago.VALUE, sizes)


_READERS: dict[str, Callable[..., Any]] = {
    "Conv": _Reader._conv,
    "BatchNorm": _Reader._batch_norm,
    "MatMul": _Reader._matmul,
    "MatBias": _Reader._matbias,
    "Activation": _Reader._activation,
    "RmsNorm": _Reader._rms_norm,
}


# -- the container -----------------------------------------------------------------------------------------------------

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


def _read_container(path: Path) -> bytes:
    """Return the uncompressed content of a network file.

    Raises:
        NetworkError: the file cannot be read, or its compression is broken.
    """
    with reraised(OSError, NetworkError, f"{path}: cannot be read: "):
        raw = path.read_bytes()
    if not raw.startswith((_GZIP_MAGIC, _XZ_MAGIC)):
        return raw
    return _decompress(raw, _EXPANSION_FLOOR + _MAX_EXPANSION * len(raw), str(path))


def _read_head(path: Path, size: int = 4096) -> bytes:
    """Return up to `size` bytes from the beginning of the uncompressed content; empty if it cannot be uncompressed."""
    with reraised(OSError, NetworkError, f"{path}: cannot be read: "), path.open("rb") as stream:
        raw = stream.read(_HEAD_BYTES)
    if not raw.startswith((_GZIP_MAGIC, _XZ_MAGIC)):
        return raw[:size]
    try:
        return _decompressor(raw).decompress(raw, size)
    except (zlib.error, lzma.LZMAError):
        return b""


def _decompressor(raw: bytes) -> "lzma.LZMADecompressor | zlib._Decompress":
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


class _TokenStream:
    """Reads tokens and blocks of floats from the content of a network file.

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
        """Return an error with the position in the file. The caller raises it."""
        return NetworkError(f"{self._path}: record {self._record!r}: {message}")

    def name(self) -> str:
        """Read and return the name of a record. Later errors contain it."""
        self._record = self.token("a name")
        return self._record

    def token(self, expected: str) -> str:
        """Return the next token. `expected` describes it, for errors."""
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
        """Return a block of floats [count]."""
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
