"""Mutants of a file: bytes and words that change at random, and formats that stay whole around a changed part."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

Mutate = Callable[[random.Random, bytes], bytes]

DEPTHS = (50, 2_000, 100_000)
"""Levels of nested brackets: more than anyone writes, about Python's limit of recursion, and far beyond."""
NUMBERS = (
    "0", "-1", "1", "255", "256", "65536", "2147483648", "-2147483649", "4294967296", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "9" * 30, "9" * 400, "9" * 5000, "1e308", "1e999", "-1e999", "nan",
    "NaN", "inf", "Infinity", "-0.0", "1e-999", "0x10", "1_0", "٣", "1.5", "007", "", "true", "null", "[]", "{}", '""',
    "١٢", "²",
)  # fmt: skip
SNIPPETS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"\xed\xa0\x80", b"\x1b[31m", b"\r", b"\n", b"\r\n", b"\x85", b"\x1a",
    "\u2028".encode(), b"\\", b"]", b";", b'"', b"'", b"(", b")", b"{", b"}", b"[[", b"=", b"#", b"%s", b"../../x",
)  # fmt: skip
BRACKETS = ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"(;", b")"), (b"a.", b""), (b"{a=", b"}"))
EXTREMES = tuple(
    value.to_bytes(size, order)
    for size in (1, 2, 4, 8)
    for value in (0, 1, (1 << 8 * size - 1) - 1, 1 << 8 * size - 1, (1 << 8 * size) - 1)
    for order in ("little", "big")
)
VARINTS = (0, 1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 255, 1 << 31, 1 << 63, -(1 << 63) - 1, 1 << 64, 10**400, 1.5, -0.0, 1e308,
    float("inf"), float("nan"), "", "x", "\ud800", "a" * 5000, "\x1b[31m\n", [], {}, [[]], {"": None}, [None],
)  # fmt: skip


def mutant(rng: random.Random, name: str, content: bytes, others: Sequence[bytes]) -> bytes:
    """Return a mutant of the content of the file `name`; parts of `others` may come into it."""
    inside = next((change for suffix, change in FORMATS.items() if name.endswith(suffix)), None)
    if inside is not None and rng.random() < 0.6:
        return inside(rng, content)
    return mutate_bytes(rng, content, others)


def mutate_bytes(rng: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return the content after one to three changes of bytes, words or blocks."""
    changes = [*BINARY, *TEXTUAL] if _is_text(content) else [*BINARY, *BINARY, *TEXTUAL]
    for _ in range(rng.choice((1, 1, 2, 3))):
        if others and rng.random() < 0.05:
            content = _splice(rng, content, rng.choice(others))
        else:
            content = rng.choice(changes)(rng, content)
    return content


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content[:4096].decode("utf-8")
    except UnicodeDecodeError:
        return False


# -- bytes ---------------------------------------------------------------------------------------------------------


def _place(rng: random.Random, content: bytes) -> int:
    """Return a place in the content; the beginning, where headers are, comes more often."""
    end = len(content) if rng.random() < 0.6 else min(len(content), 256)
    return rng.randint(0, end)


def _flip(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8)) if changed else 0):
        changed[_place(rng, content) % len(changed)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.choice((0, 1, len(content) - 1, _place(rng, content)))]


def _drop(rng: random.Random, content: bytes) -> bytes:
    at = _place(rng, content)
    return content[:at] + content[at + rng.choice((1, 2, 4, 8, 64, 512)) :]


def _repeat(rng: random.Random, content: bytes) -> bytes:
    at = _place(rng, content)
    return content[:at] + content[at : at + rng.choice((1, 8, 64, 1024))] * rng.choice((2, 3, 50)) + content[at:]


def _insert(rng: random.Random, content: bytes) -> bytes:
    at = _place(rng, content)
    block = rng.choice(SNIPPETS) if rng.random() < 0.5 else rng.randbytes(rng.choice((1, 4, 64)))
    return content[:at] + block + content[at:]


def _overwrite(rng: random.Random, content: bytes) -> bytes:
    """Set what may be a length to an extreme."""
    at, value = _place(rng, content), rng.choice(EXTREMES)
    return content[:at] + value + content[at + len(value) :]


def _zeros(rng: random.Random, content: bytes) -> bytes:
    """Zero a block, as a power cut does."""
    at = _place(rng, content)
    end = min(len(content), at + rng.choice((8, 512, len(content))))
    return content[:at] + bytes(end - at) + content[end:]


def _splice(rng: random.Random, content: bytes, other: bytes) -> bytes:
    at = _place(rng, other)
    return content[: _place(rng, content)] + other[at : at + rng.choice((16, 256, 4096))]


BINARY: tuple[Mutate, ...] = (_flip, _flip, _cut, _drop, _repeat, _insert, _overwrite, _overwrite, _zeros)


# -- text ----------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[^\s]+")


def _replace_number(rng: random.Random, content: bytes) -> bytes:
    return _replaced(rng, content, _NUMBER, rng.choice(NUMBERS).encode())


def _replace_word(rng: random.Random, content: bytes) -> bytes:
    words = _WORD.findall(content[:4096])
    word = rng.choice(words) if words and rng.random() < 0.6 else rng.choice(NUMBERS).encode()
    return _replaced(rng, content, _WORD, word)


def _replaced(rng: random.Random, content: bytes, pattern: re.Pattern[bytes], by: bytes) -> bytes:
    found = [*pattern.finditer(content[:65536])]
    if not found:
        return content + by
    match = rng.choice(found)
    return content[: match.start()] + by + content[match.end() :]


def _swap_lines(rng: random.Random, content: bytes) -> bytes:
    """Move, repeat or drop a line."""
    lines = content.split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.choice((0, 1, 1, 2))):
        lines.insert(rng.randint(0, len(lines)), line)
    return b"\n".join(lines)


def _nest(rng: random.Random, content: bytes) -> bytes:
    at, depth = _place(rng, content), rng.choice(DEPTHS)
    opening, closing = rng.choice(BRACKETS)
    block = opening * depth + (b"1" + closing * depth if rng.random() < 0.7 else b"")
    return content[:at] + block + content[at:]


def _long_line(rng: random.Random, content: bytes) -> bytes:
    at = _place(rng, content)
    return content[:at] + rng.choice((b"x", b" ", b"9", b"\n", b"-", b"\xe3\x81\x82")) * 20_000 + content[at:]


TEXTUAL: tuple[Mutate, ...] = (
    _replace_number, _replace_number, _replace_number, _replace_word, _replace_word, _swap_lines, _nest, _long_line,
)  # fmt: skip


# -- formats -------------------------------------------------------------------------------------------------------


def mutate_json(rng: random.Random, content: bytes) -> bytes:
    """Return JSON, or a line of JSON lines, in which one value is another one."""
    lines = content.split(b"\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if len(filled) < 2 or b"\n " in content:
        return _mutated_json(rng, content)
    number = rng.choice(filled)
    lines[number] = _mutated_json(rng, lines[number])
    return b"\n".join(lines)


def _mutated_json(rng: random.Random, content: bytes) -> bytes:
    try:
        value = json.loads(content)
    except ValueError:
        return mutate_bytes(rng, content)
    changed = json.dumps(_changed(rng, value))
    if rng.random() < 0.15:  # json.dumps cannot write what is nested that deep
        depth = rng.choice(DEPTHS)
        changed = re.sub(r"null|\d+", lambda _: "[" * depth + "]" * depth, changed, count=1)
    return changed.encode()


def _changed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice([*value])
        if rng.random() < 0.15:
            return {each: value[each] for each in value if each != key}
        if rng.random() < 0.1:
            return {**value, rng.choice(("", "x", "self", "__class__", "\n", key.upper())): value[key]}
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], *([_changed(rng, value[at])] * rng.choice((0, 1, 1, 1, 2))), *value[at + 1 :]]
    return rng.choice(VALUES)


def mutate_safetensors(rng: random.Random, content: bytes) -> bytes:
    """Change the header and set its length to the new one."""
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length]
    header = mutate_json(rng, header) if rng.random() < 0.7 else mutate_bytes(rng, header)
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def mutate_npy(rng: random.Random, content: bytes) -> bytes:
    """Change the header and set its length to the new one."""
    length = int.from_bytes(content[8:10], "little")
    header = mutate_bytes(rng, content[10 : 10 + length])[:65535]
    return content[:8] + len(header).to_bytes(2, "little") + header + content[10 + length :]


def mutate_zip(rng: random.Random, content: bytes) -> bytes:
    """Change, drop or rename a member of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice([*members])
    if rng.random() < 0.15:
        del members[name]
    elif rng.random() < 0.1:
        members[f"x{name}"] = members.pop(name)
    else:
        members[name] = mutate_npy(rng, members[name]) if rng.random() < 0.6 else mutate_bytes(rng, members[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for each, data in members.items():
            archive.writestr(each, data)
    return stream.getvalue()


def mutate_gzip(rng: random.Random, content: bytes) -> bytes:
    """Change what is compressed; now and then it becomes far larger than its file."""
    inside = gzip.decompress(content)
    if rng.random() < 0.03:
        compressor = zlib.compressobj(1, wbits=31)
        return b"".join([compressor.compress(bytes(1 << 20)) for _ in range(100)]) + compressor.flush()
    return gzip.compress(mutate_bytes(rng, inside), 1)


def mutate_xz(rng: random.Random, content: bytes) -> bytes:
    """Change what is compressed."""
    return lzma.compress(mutate_bytes(rng, lzma.decompress(content)), preset=0)


def mutate_protobuf(rng: random.Random, content: bytes) -> bytes:
    """Change one field of a message, at any depth; the lengths around it stay right."""
    parts = _fields(content)
    if not parts:
        return mutate_bytes(rng, content)
    at = rng.randrange(len(parts))
    number, wire, payload = parts[at]
    chance = rng.random()
    if wire == 2 and chance < 0.75 and payload:
        parts[at] = number, wire, mutate_protobuf(rng, payload)
    elif chance < 0.1:
        del parts[at]
    elif chance < 0.2:
        parts.insert(rng.randint(0, len(parts)), parts[at])
    elif chance < 0.25:
        parts[at] = rng.randrange(1, 20), wire, payload
    elif wire == 0:
        parts[at] = number, wire, _varint(rng.choice(VARINTS))
    else:
        changed = mutate_bytes(rng, payload)
        parts[at] = number, wire, changed if wire == 2 else changed[: len(payload)].ljust(len(payload), b"\0")
    return b"".join(
        _varint(number << 3 | wire) + (_varint(len(payload)) if wire == 2 else b"") + payload
        for number, wire, payload in parts
    )


def _fields(content: bytes) -> list[tuple[int, int, bytes]]:
    """Return number, wire type and payload of each field; an empty list for bytes that are no message."""
    found: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(content):
        tag, begin = _read_varint(content, at)
        wire = tag & 7
        if wire == 0:
            _, at = _read_varint(content, begin)
        elif wire == 2:
            length, begin = _read_varint(content, begin)
            at = begin + length
        else:
            at = begin + {1: 8, 5: 4}.get(wire, len(content))
        if at > len(content) or begin > len(content) or tag >> 3 == 0 or len(found) > 5000:
            return []
        found.append((tag >> 3, wire, content[begin:at]))
    return found


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number and the place behind it, which lies beyond the content if the number does not end."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            break
        value |= (content[at] & 0x7F) << shift
        at += 1
        if content[at - 1] < 0x80:
            return value, at
    return 0, len(content) + 1


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


FORMATS: dict[str, Mutate] = {
    ".json": mutate_json,
    ".jsonl": mutate_json,
    ".jkf": mutate_json,
    ".safetensors": mutate_safetensors,
    ".npy": mutate_npy,
    ".npz": mutate_zip,
    ".gz": mutate_gzip,
    ".xz": mutate_xz,
    ".onnx": mutate_protobuf,
}
"""By the end of a file's name."""
