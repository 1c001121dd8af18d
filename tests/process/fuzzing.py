"""Numbers and changed bytes for broken lines of GTP, USI, and servers."""

from __future__ import annotations

import random

NUMBERS = [
    "0", "1", "2", "3", "5", "9", "13", "19", "25", "-1", "6.5", "-0.5", "1e3", "1e400", "nan", "inf", "-inf", "007",
    "٣", "99999999999999999999999", "0x10", "1_000", "2147483648",
]  # fmt: skip


def mutate(rng: random.Random, line: bytearray) -> bytearray:
    """Return a line after one to three changes: bytes put in or left out, its end cut off, or a carriage return."""
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(line) + 1)
        what = rng.random()
        if what < 0.3:
            line[at:at] = rng.randbytes(rng.randrange(1, 4))
        elif what < 0.6:
            del line[at : at + rng.randrange(1, 4)]
        elif what < 0.8:
            line = line[:at]
        else:
            line += b"\r"
    return line
