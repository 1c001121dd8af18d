"""Argument types of the benchmarks' own flags."""

from __future__ import annotations

from argparse import ArgumentTypeError


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e6:
        raise ArgumentTypeError(f"expected a positive number of seconds, found {text!r}")
    return value


def winrate(text: str) -> float:
    """Read the winrate of the side that is behind, from 0 to 0.5."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 0.5:
        raise ArgumentTypeError(f"expected a winrate from 0 to below 0.5, found {text!r}")
    return value


def count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**9:
        raise ArgumentTypeError(f"expected a positive number, found {text!r}")
    return int(text)


def board(text: str) -> int:
    from yomi.native.go.board import MAX_SIZE, MIN_SIZE  # imports numba

    if not text.isdecimal() or not MIN_SIZE <= int(text) <= MAX_SIZE:
        raise ArgumentTypeError(f"expected a board size of {MIN_SIZE} to {MAX_SIZE}, found {text!r}")
    return int(text)


def network(text: str) -> tuple[int, int]:
    blocks, _, channels = text.partition("x")
    if not (blocks.isdecimal() and channels.isdecimal() and int(channels)):
        raise ArgumentTypeError(f"expected blocks x channels such as 10x192, found {text!r}")
    return int(blocks), int(channels)
