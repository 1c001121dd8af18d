"""Bits to numbers, numbers to bits, and halves, beside numpy's."""

import numpy as np
import numpy.typing as npt
import pytest

from tests.looping import looped
from yomi.native.bits import U, reversed_bits
from yomi.native.go.outputs import decode_rows
from yomi.native.jit import kernel
from yomi.native.packing import pack, packed_bytes, unpack_bits, widened
from yomi.native.tree.arrays import VALUES

WIDTHS = [1, 7, 8, 31, 32, 33, 57, 63, 64, 65, 119, 22 * 64, 22 * 81, 62 * 81, 22 * 361]


@kernel
def widen_all(halves, numbers):  # type: ignore[no-untyped-def]
    """Write each half as float32."""
    for i in range(U(halves.size)):
        numbers[i] = widened(halves[i])


@kernel
def reverse(word):  # type: ignore[no-untyped-def]
    """Return a word with its bits in the opposite order."""
    return reversed_bits(word)


@looped("width", WIDTHS)
def test_packing_and_unpacking_are_numpys(width: int) -> None:
    values = (np.random.default_rng(width).random((5, width)) < 0.4).astype(np.float32)
    bits = pack(values)
    assert bits.shape == (5, packed_bytes(width) // 8)
    plain = np.packbits(values != 0.0, axis=1, bitorder="little")
    assert (bits.view(np.uint8)[:, : plain.shape[1]] == plain).all()
    assert not bits.view(np.uint8)[:, plain.shape[1] :].any()
    row = np.concatenate((np.full(3, 2**64 - 1, np.uint64), bits[4]))
    room = np.full(width + 2, 9.0, np.float32)
    unpack_bits(row, 3, room[1:-1])
    assert room.tolist() == [9.0, *values[4].tolist(), 9.0]


def test_every_half_is_widened_exactly() -> None:
    halves = np.arange(65536).astype(np.uint16)
    expected = halves.view(np.float16).astype(np.float32)
    found = np.zeros(65536, np.float32)
    widen_all(halves, found)
    np.testing.assert_array_equal(found, expected)  # to which any two NaN are equal
    assert (np.signbit(found) == np.signbit(expected)).all()
    assert np.isnan(found).sum() == 2 * 1023
    same = np.array([0.1, -np.inf, 3.0], np.float32)
    widen_all(same, found)
    assert found[:3].tolist() == same.tolist()


def test_bits_in_the_opposite_order() -> None:
    for word in (0, 1, 2**63, 0x0123456789ABCDEF, 2**64 - 1):
        assert int(reverse(np.uint64(word))) == int(f"{word:064b}"[::-1], 2)


@pytest.mark.parametrize("channels", [1, 2])
def test_halves_are_decoded_as_the_numbers_they_are(channels: int) -> None:
    rng = np.random.default_rng(3)
    shapes = (3, channels, 82), (3, 3), (3, 6), (3, 81)
    halves = [rng.normal(0.0, 2.0, shape).astype(np.float16) for shape in shapes]
    found, expected = (_decoded(outputs) for outputs in ([each.view(np.uint16) for each in halves], halves))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.isfinite(a).all()
        assert len(np.unique(a)) > 3


def _decoded(
    outputs: list[npt.NDArray[np.uint16]] | list[npt.NDArray[np.float16]],
) -> tuple[npt.NDArray[np.float32], ...]:
    numbers = [each if each.dtype == np.uint16 else each.astype(np.float32) for each in outputs]
    written = np.zeros((3, 82), np.float32), np.zeros((3, VALUES), np.float32), np.zeros((3, 81), np.float32)
    constants = np.ones(6, np.float32), np.array([1.0, 0.2], np.float32), np.array([1, 0, 0], np.uint8)
    decode_rows(3, *numbers, *constants, True, *written)
    return written
