"""Files that anyone may have written: JSON, TOML and headers of arrays of any size, and errors of one line."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.looping import looped
from yomi.errors import one_line
from yomi.nets.arrays import read_header, read_npz
from yomi.nets.errors import NetworkError
from yomi.nets.text import MAX_DEPTH, parse_json, parse_toml


@looped(
    ("text", "message"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested too deep"),
        ('{"a": [1e999]}', "the number inf found"),
        ("NaN", "the number nan found"),
        ('["\\ud800"]', "lone surrogate"),
        ('{"\\udfff": 1}', "lone surrogate"),
        (f'{{"a": {10**400}}}', "an integer beyond 64 bits"),
        ("9" * 5000, "limit"),
        (b"\xff\xfe\xff", "can't decode"),
        ("{", "Expecting"),
    ],
)
def test_json_that_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_json_that_is_read() -> None:
    assert parse_json('{"a": [1, 2.5, -18446744073709551615, null]}') == {"a": [1, 2.5, 1 - 2**64, None]}
    assert parse_json('"\\ud83d\\ude00 \\udcff"') == "\U0001f600 \udcff"
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "nested too deep"),
        ("a." * 200_000 + "a = 1", "nested too deep"),
        ("a." * (MAX_DEPTH + 1) + "a = 1", "nested too deep"),
        ("a = " + "9" * 5000, "limit"),
        (f"a = {2**64}", "an integer beyond 64 bits"),
        ("a = ", "Invalid value"),
    ],
)
def test_toml_that_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_toml(text)


def test_toml_that_is_read() -> None:
    assert parse_toml("a.b = inf\nc = [0.5, 1.5]\nd = 'x...y'") == {"a": {"b": np.inf}, "c": [0.5, 1.5], "d": "x...y"}


def npy(header: str, content: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + content


@looped("shape", [(3,), (2, 5), (4, 0), ()])
@looped("dtype", [np.uint8, np.float16, np.int64, np.bool_, "U7"])
def test_what_numpy_writes_is_read(shape: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(shape, dtype))
    with path.open("rb") as stream:
        header = read_header(stream, path.stat().st_size)
    assert (header.dtype, header.shape) == (np.dtype(dtype), shape)
    expected = np.load(path, mmap_mode="r")
    assert header.offset == getattr(expected, "offset", header.offset)


@looped(
    ("content", "message"),
    [
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"), "expected float32"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", b"1234"), "4 bytes of numbers found"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"12345678"), "the header"),
        (npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", b"1234"), "C order"),
        (npy("{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }", b"123"), "element type '<f3'"),
        (npy("(" * 3000), "the header"),
        (npy("{'descr': [", version=3), "the header"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "the header"),
        (b"\x93NUMPY\x09\x00", "starts with"),
        (b"", "starts with"),
    ],
)
def test_headers_that_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        read_header(io.BytesIO(content), len(content))


def test_archives() -> None:
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(3), b=np.array(["x", "yz"]))
    read = read_npz(io.BytesIO(stream.getvalue()))
    assert {name: array.tolist() for name, array in read.items()} == {"a": [0, 1, 2], "b": ["x", "yz"]}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(1 << 20))
    for content, message in (
        (bomb.getvalue(), "compressed found"),
        (b"PK", "not a zip file"),
        (b"", "expected an arch"),
    ):
        with pytest.raises(NetworkError, match=message):
            read_npz(io.BytesIO(content))


def test_an_error_is_one_printable_line() -> None:
    assert one_line("a\nb\x1b[31m\x85\u2028\u202e\ud800") == r"a\nb\x1b[31m\x85\u2028\u202e\ud800"
    assert one_line("名前\u3000９ \udcff") == "名前\u3000９ \udcff"
    long = one_line("head " + "x" * 100_000 + " tail")
    assert len(long) < 1200
    assert long.startswith("head x")
    assert long.endswith("x tail")
    assert str(NetworkError("a\nb")) == r"a\nb"
